// SPDX-License-Identifier: Apache-2.0
// Cuts streams that hold more tasks than the device lets a stream hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/activation.h"
#include "millstream/sync/sync_plan.h"
#include "millstream/target/target.h"

namespace millstream {

struct SplitInput {
  const Graph& graph;
  const StreamAssignment& on;
  std::span<const SyncPair> pairs;  ///< kept pairs; each is charged to both its streams
  const Target& target;             ///< limits, tasks of a node
  const LowerOptions& options;      ///< split_units, split_reserved, single_stream
  SyncMode mode = SyncMode::exact;  ///< exact and fewest leave out a boundary pair that other pairs imply
  const Activation* activation = nullptr;  ///< each started stream is a task; null: nothing is started
  bool charge_pairs = true;
};

struct Splitting {
  /// By opened stream. Ids continue behind all logical and attached streams, in order of occurrence.
  std::vector<SplitPoint> points;
  /// Boundary pairs, by opened stream: the node before a split point and the split point. With `exact` and `fewest` those that
  /// other pairs imply are left out; in a graph with control flow needed_cuts does that, once it is known what starts the pieces.
  std::vector<SyncPair> pairs;
  std::uint32_t streams = 0;  ///< physical streams so far
  std::vector<StreamId> logical_of;  ///< by points: the stream it is a piece of
  std::vector<PhysicalStreamId> huge;
  std::vector<Error> warnings;

  /// All pieces of a logical stream, ascending, itself first. Linear in the points.
  std::vector<std::uint32_t> pieces_of(StreamId s) const;
};

/// A node opens a stream when it is not its stream's first, count + cost + reserved is over the limit, it owns
/// no scope and is no label, jump, branch or first activation. `node` units count nodes and sync tasks against
/// limit / tasks of the node, as Graph Engine of 2023 does. Nodes of one continuous label, and in `task` units the
/// tasks between a branch and its last label and those behind a StreamSwitch, stay together: the split moves back before the first of them.
/// In single-stream mode nothing is split; a stream that is too long becomes huge.
/// O(nodes + pairs) when nothing is split, and for each stream that is, O(nodes + pairs) once more.
/// Errors: continuous_label (E11), task_limit (E08).
Result<Splitting> split_streams(const SplitInput& input);

/// Device tasks of nodes: by type, 0 for those that emit none. Asks each type once.
class TaskCosts {
 public:
  TaskCosts(const Graph& graph, const Target& target);
  std::uint32_t of(NodeId n) const { return cost_[graph_.type_id(n).index]; }
  /// As listed for the type, whether or not it emits a task.
  std::uint32_t listed(NodeId n) const { return listed_[graph_.type_id(n).index]; }

 private:
  const Graph& graph_;
  std::vector<std::uint32_t> cost_, listed_;
};

/// Node to physical stream, in execution order: `next(n)` for every placed node in turn.
class PieceWalk {
 public:
  PieceWalk(const StreamAssignment& on, const Splitting& splitting);
  std::uint32_t next(NodeId n) {
    const std::uint32_t s = on_.placement[n]->stream.index;
    if (!opens_.empty() && opens_[n] != 0) current_[s] = opens_[n];
    return current_[s];
  }

 private:
  const StreamAssignment& on_;
  IdVec<NodeId, std::uint32_t> opens_;  // stream that a node opens, 0: none; empty when nothing is split
  std::vector<std::uint32_t> current_;
};

}  // namespace millstream
