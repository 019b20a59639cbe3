// SPDX-License-Identifier: Apache-2.0
// The dependencies between nodes that emit a task: what rules and predictions walk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millstream/core/id.h"
#include "millstream/graph/dependencies.h"
#include "millstream/graph/graph.h"

namespace millstream {

/// Whether a node emits a task (operators marked no_task do not). Asks each operator type once.
class TaskTypes {
 public:
  explicit TaskTypes(const Graph& graph);
  bool operator()(NodeId n) const { return by_type_[graph_.type_id(n).index] != 0; }
  bool all() const { return all_; }

 private:
  const Graph& graph_;
  std::vector<std::uint8_t> by_type_;
  bool all_ = true;
};

/// The same for nodes in scopes: a node whose scopes begin with an activation emits none, since their tasks do its work.
/// A node that owns scopes without one launches them as a model of its own.
class TaskNodes {
 public:
  explicit TaskNodes(const Graph& graph);
  bool operator()(NodeId n) const { return emits_(n) && (by_scopes_.empty() || by_scopes_[n] == 0); }

 private:
  TaskTypes emits_;
  IdVec<NodeId, std::uint8_t> by_scopes_;  // empty: none is
};

/// Nodes without a task (Data, NetOutput of dumps) are transparent: whatever precedes one precedes its
/// successors. O(nodes + edges) when there are none of them.
class TaskGraph {
 public:
  explicit TaskGraph(const Graph& graph);

  bool is_task(NodeId n) const { return is_task_.empty() || is_task_[n]; }
  /// Task nodes in execution order.
  std::span<const NodeId> order() const { return order_; }
  /// Place of a node in execution order, all nodes counted.
  std::uint32_t rank_in_order(NodeId n) const { return place_[n]; }
  std::span<const NodeId> predecessors(NodeId n) const {
    return is_task_.empty() ? direct_.predecessors(n) : list(pred_begin_, pred_, n);
  }
  std::span<const NodeId> successors(NodeId n) const {
    return is_task_.empty() ? direct_.successors(n) : list(succ_begin_, succ_, n);
  }
  std::size_t node_count() const { return place_.size(); }

 private:
  static std::span<const NodeId> list(const std::vector<std::uint32_t>& begin,
                                      const std::vector<NodeId>& pool, NodeId n) {
    return {pool.data() + begin[n.index], begin[n.index + 1] - begin[n.index]};
  }
  void contract();

  Dependencies direct_;
  std::vector<NodeId> order_;
  IdVec<NodeId, std::uint32_t> place_;
  IdVec<NodeId, std::uint8_t> is_task_;  // empty: every node is a task
  std::vector<std::uint32_t> pred_begin_, succ_begin_;
  std::vector<NodeId> pred_, succ_;
};

}  // namespace millstream
