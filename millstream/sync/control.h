// SPDX-License-Identifier: Apache-2.0
// What control flow does to the order of a stream: which scopes may not run or run again, what closes them,
// and in which ways a label is reached.
#pragma once

#include <optional>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/graph/graph.h"

namespace millstream {

bool is_stream_switch(std::string_view type);  ///< StreamSwitch, StreamSwitchN
bool is_enter(std::string_view type);          ///< Enter, RefEnter

/// What a scope is to the stream that runs it.
struct ScopeInfo {
  std::optional<NodeId> first_active;
  std::optional<NodeId> end;      ///< the first node flagged end_node; of a call without one, its NetOutput
  std::optional<NodeId> closing;  ///< the jump back or out, else `end`: where what the scope started is joined
  bool conditional = false;       ///< a branch, or a loop's body: may not run whenever its parent node does
  bool repeats = false;           ///< runs again while its parent node runs: a loop's condition or body
  bool in_loop = false;           ///< repeats, or lies in a scope that does
  bool guarded = false;           ///< jumps decide whether or how often it runs, or a scope around it
};

/// Facts of all scopes and labels; cheap and empty for a graph without scopes. O(nodes).
class ControlFlow {
 public:
  explicit ControlFlow(const Graph& graph);

  bool scoped() const { return !scopes_.empty(); }
  const ScopeInfo& scope(ScopeId s) const { return scopes_[s.index]; }
  /// The ancestor of `s` (or itself) directly under `above`, which is an ancestor of it.
  ScopeId child_of(ScopeId above, ScopeId s) const;
  bool inside(ScopeId s, ScopeId above) const;  ///< s is `above` or lies in it
  ScopeId common(ScopeId a, ScopeId b) const;
  /// End nodes of the scopes that n owns.
  const std::vector<NodeId>& ends_of(NodeId n) const;
  /// Scope that decides whether n runs: its own, but of the node that ends a conditional scope the parent node's.
  ScopeId region_of(NodeId n) const;

  bool has_jumps() const { return !jumps_.empty(); }
  /// Nodes from which a label is reached by a jump or branch, earlier in execution order only: what comes from
  /// behind is a later round, before which everything holds that held before the first. Empty for other nodes.
  std::vector<NodeId> jumps_to(NodeId label) const;
  /// Whether the task after n on its stream is not reached from n: LabelGoto, LabelGotoEx, LabelSwitch,
  /// LabelSwitchByIndex.
  bool leaves(NodeId n) const;
  /// Whether n is a label that some node names.
  bool is_target(NodeId n) const;

 private:
  struct Jump {
    std::int64_t label;
    NodeId from;
  };

  const Graph& graph_;
  std::vector<ScopeInfo> scopes_;
  std::vector<std::pair<NodeId, std::vector<NodeId>>> ends_;  // by node
  std::vector<NodeId> none_;
  std::vector<Jump> jumps_;                // by label, then execution order
  std::vector<std::uint32_t> place_;       // in execution order; empty without jumps
};

}  // namespace millstream
