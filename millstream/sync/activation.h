// SPDX-License-Identifier: Apache-2.0
// Which streams a node starts. Streams that nothing starts begin with the model.
#pragma once

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
  friend bool operator==(const Activator&, const Activator&) = default;
};

/// Activations on logical streams, before any stream is split.
struct Activation {
  std::vector<Activator> activators;  ///< in execution order
  /// Nodes that start a stream, loop activators left out; a stream of several alternatives starts after
  /// at least one of them. Empty: a head stream.
  IdVec<StreamId, std::vector<NodeId>> started_by;
  bool empty() const { return activators.empty(); }
};

/// Resolves label lists, stream lists and the scopes' first activations: stream labels in execution order;
/// for a first activation every stream of its scope without a stream label, but its own and those that the
/// caller uses too; for a loop activation without labels every stream that nothing else starts.
/// Errors: E09 (a node starts its own stream), E22 (a switch without a target that exists).
Result<Activation> plan_activation(const Graph& graph, const StreamAssignment& on);

}  // namespace millstream
