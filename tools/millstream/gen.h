// SPDX-License-Identifier: Apache-2.0
// Generated graphs: topologies that people use to stress stream allocation, as millstream text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/core/result.h"

namespace millstream::cli {

enum class Listing : std::uint8_t { lanes, breadth };

struct GenOptions {
  std::string topology;
  std::uint64_t nodes = 32;             ///< operators wanted; a topology of blocks rounds up to whole blocks
  std::optional<std::uint64_t> width;   ///< lanes, branches, experts or heads; default depends on the topology
  std::uint64_t labels = 0;             ///< > 0: stream labels s0..s(K-1) over the lanes
  std::uint64_t engines = 0;            ///< > 0: engines of the `npu` target over the lanes, at most 5
  std::optional<double> p;              ///< chance of a cross edge or of rewiring, 0..1
  Listing listing = Listing::breadth;   ///< order of the lines: lane by lane, or step by step
  std::uint64_t seed = 0;
};

struct Topology {
  std::string_view name;
  std::string_view what;  ///< one line for --help
};
const std::vector<Topology>& topologies();

/// The text of the graph. Every node has a CPU kernel, inputs are bounded so that values stay finite.
/// Errors: usage (unknown topology, option out of range).
Result<std::string> generate(const GenOptions& options);

}  // namespace millstream::cli
