// SPDX-License-Identifier: Apache-2.0
// Which streams a node starts. Streams that nothing starts begin with the model.
#pragma once

#include <optional>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

/// One StreamActive, StreamSwitch or StreamSwitchN and the logical streams it starts.
struct Activator {
  NodeId node;
  std::vector<StreamId> streams;  ///< in list order: by label, then ascending
  /// Starts the next iteration: what precedes the first activation precedes every iteration, so it is no
  /// alternative for what orders a stream's first task.
  bool loop = false;
  /// Of a loop_active node: the StreamSwitch up to two control edges before it. What the node starts again
  /// must have ended before that switch.
  std::optional<NodeId> loop_switch = std::nullopt;
  /// Of a switch that names stream ids: what each index starts, so with repeats.
  std::vector<StreamId> by_index = {};
  friend bool operator==(const Activator&, const Activator&) = default;
};

/// Activations on logical streams, before any stream is split.
struct Activation {
  std::vector<Activator> activators;  ///< in execution order
  /// Nodes that start a stream, loop activators left out; a stream of several alternatives starts after
  /// at least one of them. Empty for a head stream. The table itself is empty when nothing starts a stream.
  IdVec<StreamId, std::vector<NodeId>> started_by;
  bool empty() const { return activators.empty(); }
  bool head(StreamId s) const { return s.index >= started_by.size() || started_by[s].empty(); }
};

/// Resolves label lists, stream lists and the scopes' first activations: stream labels in execution order;
/// for a first activation every stream whose nodes all lie in its scope (or deeper), that nothing else starts
/// and that is not its own: a stream that nodes outside use too runs already, and so does one whose nodes all
/// carry a stream label, unless jumps decide whether the scope runs. For a loop activation without
/// labels every stream that nothing else starts. Attached streams follow their main stream into each list,
/// unless a stream that nothing starts uses them as well. No work when the graph has neither scopes nor
/// activations. Where one stream without a label holds every
/// node, labels start nothing.
/// Errors: E09 (a node starts its own stream), E10 (a stream that only streams start which never run), E22 (a switch without a target that exists, a loop activation
/// without a switch before it).
Result<Activation> plan_activation(const Graph& graph, const StreamAssignment& on);

}  // namespace millstream
