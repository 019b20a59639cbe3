// SPDX-License-Identifier: Apache-2.0
// The required orders between streams, before any reduction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/graph/graph.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// A node on another stream that must have run before. Four bytes.
class ForeignSource {
 public:
  ForeignSource(NodeId node, PairReason reason)
      : raw_(node.index | (reason == PairReason::control ? kControl : 0u)) {}
  NodeId node() const { return NodeId(raw_ & ~kControl); }
  PairReason reason() const { return (raw_ & kControl) != 0 ? PairReason::control : PairReason::data; }

 private:
  static constexpr std::uint32_t kControl = 0x80000000u;
  std::uint32_t raw_;
};

/// Every pair of nodes on two streams that a dependency orders, once; `data` where any path of that
/// dependency is data only. Nodes without a stream are transparent: what precedes one precedes its
/// successors.
struct Insertion {
  /// A linear extension of dependencies and stream order over all nodes; empty: the graph's execution order.
  std::vector<NodeId> walk;
  std::vector<std::uint32_t> begin;  ///< by node, into `sources`; one more at the end
  std::vector<ForeignSource> sources;

  std::span<const ForeignSource> of(NodeId n) const {
    return {sources.data() + begin[n.index], begin[n.index + 1] - begin[n.index]};
  }
};

/// O(nodes + edges), plus the paths through nodes without a stream. Errors: plan_mismatch (an assignment
/// of another graph), deadlock (a fixed order that runs a node before one it needs).
Result<Insertion> insert_pairs(const Graph& graph, const StreamAssignment& on);

/// Nodes in an order that respects dependencies and each stream's order: the execution order, unless
/// the input fixed that against its own edges; then `out` is filled. Empty = execution order. Errors: deadlock.
Result<std::vector<NodeId>> walk_order(const Graph& graph, const StreamAssignment& on);

}  // namespace millstream
