// SPDX-License-Identifier: Apache-2.0
// Stream passes: functions of the user's that change the stream of single nodes after the rules have decided.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compat/include/register/mst_pass_abi.h"
#include "millstream/assign/assignment.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

struct StreamPass {
  std::string name;
  std::string library;  ///< path, for messages; empty: of the program itself
  std::string label;    ///< the name, with _2, _3, ... where an earlier pass has it: names files
  void* self = nullptr;
  std::int32_t (*run)(void* self, const mst_host_api*, const mst_graph*, mst_stream_ctx*) = nullptr;
};

/// Where a pass fails: ends the compilation, or only undoes what that pass did, with a warning. `strict` is `fail`, and what
/// is a warning otherwise fails as well: a library that cannot be loaded, a call that was refused.
enum class PassPolicy : std::uint8_t { fail, rollback, strict };

/// Just before and just behind a pass. Ids are those the pass sees: not yet renumbered.
struct PassMoment {
  bool after;
  const StreamPass& pass;
  const Graph& graph;
  ScopeId scope;  ///< the graph of the tree that the pass is given
  const StreamAssignment& on;
};

struct PassOptions {
  std::vector<StreamPass> passes;  ///< in the order they run
  PassPolicy policy = PassPolicy::fail;
  /// Options of the compilation by each of their names, for passes that ask; a later one counts.
  std::vector<std::pair<std::string, std::string>> values;
  /// Called before and after each pass, for dumps.
  std::function<void(const PassMoment&)> observe;
};

/// Runs the passes, once for the root graph, and in a graph of unknown shapes once more for each body of known shapes in it.
/// A pass sees what those before it decided. Afterwards streams that no node uses vanish and ids are dense again, main streams
/// before attached ones. Each pass is a rule of the result ("pass NAME"). Errors: stream_pass, by the policy.
Result<StreamAssignment> run_passes(const Graph& graph, const Target& target, StreamAssignment on, const PassOptions& options);

}  // namespace millstream
