// SPDX-License-Identifier: Apache-2.0
// The required orders between streams, before any reduction.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/assign/tasks.h"
#include "millstream/graph/graph.h"
#include "millstream/sync/activation.h"
#include "millstream/sync/control.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// A node on another stream that must have run before. Four bytes.
class ForeignSource {
 public:
  static constexpr std::uint32_t kMostNodes = 1u << 29;

  ForeignSource(NodeId node, PairReason reason) : raw_(node.index | (code_of(reason) << 29)) {}
  NodeId node() const { return NodeId(raw_ & (kMostNodes - 1)); }
  PairReason reason() const { return kReasons[raw_ >> 29]; }

 private:
  static constexpr PairReason kReasons[] = {PairReason::data,  PairReason::control, PairReason::exit,
                                            PairReason::entry, PairReason::loop,    PairReason::merged};
  static std::uint32_t code_of(PairReason reason) {
    std::uint32_t code = 0;
    while (kReasons[code] != reason) ++code;
    return code;
  }
  std::uint32_t raw_;
};

/// Every pair of nodes on two streams that a dependency orders, once; `data` where any path of that
/// dependency is data only. Nodes without a stream are transparent: what precedes one precedes its
/// successors. Forks and joins of attached streams are not among them: they follow from the assignment.
struct Insertion {
  /// A linear extension of dependencies, stream order, activations and jumps over all nodes; empty: the graph's
  /// execution order.
  std::vector<NodeId> walk;
  std::vector<std::uint32_t> begin;  ///< by node, into `sources`; one more at the end
  std::vector<ForeignSource> sources;
  std::vector<Error> warnings;       ///< streams that a loop may start again too early

  std::span<const ForeignSource> of(NodeId n) const {
    return {sources.data() + begin[n.index], begin[n.index + 1] - begin[n.index]};
  }
};

/// In a graph with scopes: edges inside a scope; an edge between scopes counts as one of the parent node in the
/// common scope; what follows a parent node follows the ends of its scopes (exit); the first node of a scope on a
/// stream that runs already follows the activation that opens the scope, and the first nodes of a scope without one its
/// parent node (entry); and what a loop starts again has ended before it does (loop). What an Enter feeds, other than a StreamActive, is left to the activation.
/// O(nodes + edges), plus the paths through nodes without a stream. Errors: plan_mismatch (an assignment
/// of another graph), E04 (a node that needs a stream and has none), deadlock (a fixed order that runs a node
/// before one it needs, loops and activations that wait for each other).
Result<Insertion> insert_pairs(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                               const ControlFlow& flow);

/// Pairs that scopes and loops need beside the edges, by receiver; between streams or not.
std::vector<SyncPair> scope_pairs(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                                  const ControlFlow& flow);

/// Streams that a loop starts again although nothing says that they have ended: those that hold a StreamSwitch of
/// their own or end in a branch, where no node is sure to be the last.
std::vector<Error> loop_warnings(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                                 const ControlFlow& flow);

/// An edge between two scopes as one in the common scope; nullopt when both ends lie under one node there, or
/// one end owns the other.
std::optional<ControlEdge> lifted(const Graph& graph, const ControlFlow& flow, NodeId from, NodeId to);

/// E04: `reader` has no stream although `producer` has one.
Error unplaced_reader(const Graph& graph, const StreamAssignment& on, NodeId producer, NodeId reader);

/// Whether a node without a stream is an error behind one with a stream: it emits a task, or the rule chain of
/// Graph Engine placed the others; nodes of another scheduler have none.
bool needs_stream(const Graph& graph, const StreamAssignment& on, const TaskTypes& emits, NodeId n);

/// Nodes in an order that respects dependencies and each stream's order: the execution order, unless
/// the input fixed that against its own edges; then `out` is filled. Empty = execution order. Errors: deadlock.
Result<std::vector<NodeId>> walk_order(const Graph& graph, const StreamAssignment& on);

/// The same with activations (an activator before the first node of what it starts, loops left out) and `pairs`.
Result<std::vector<NodeId>> walk_order(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                                       std::span<const SyncPair> pairs);

}  // namespace millstream
