// SPDX-License-Identifier: Apache-2.0
// Stretches of one stream that may not be cut.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millstream/graph/graph.h"

namespace millstream {

/// Positions on one stream. A cut may stand at `first` but not behind it up to `last`.
struct Bundle {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::string continuous;  ///< the label, empty for a stretch that jumps move in
  NodeId node;             ///< its first node
};

/// Of a stream's nodes in order, disjoint and ascending: from a branch to its last label and from a
/// StreamSwitch to the end (with `jumps`), and from the first to the last node of a continuous label. Those that overlap are one. O(nodes + labels log labels).
std::vector<Bundle> bundles_of(const Graph& graph, const std::vector<NodeId>& lane, bool jumps);

}  // namespace millstream
