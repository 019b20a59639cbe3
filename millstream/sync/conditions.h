// SPDX-License-Identifier: Apache-2.0
// When a task runs at all: which wait could stand for a record that never comes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/graph/graph.h"
#include "millstream/sync/activation.h"
#include "millstream/sync/control.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// Conditions as sums of products over the outcomes of switches and of the nodes that choose a scope. Two
/// StreamSwitches that read one predicate, one of them with role true_branch, are two sides of one outcome.
class Conditions {
 public:
  Conditions(const Graph& graph, const StreamAssignment& on, const Activation& activation, const ControlFlow& flow);

  /// E17 when the record behind `from` may not happen though the wait before `to` runs.
  std::optional<Error> conditional_wait(const SyncPair& pair);
  /// Whether `task` cannot run in an execution that reaches `start` through an activator, a jump, or itself for
  /// falling into a label.
  bool excludes(NodeId start, NodeId through, NodeId task);
  /// Whether both run in the same executions.
  bool together(NodeId a, NodeId b);

 private:
  struct Literal {
    std::uint32_t variable;
    std::uint32_t value;
    friend auto operator<=>(const Literal&, const Literal&) = default;
  };
  using Product = std::vector<Literal>;  // sorted by variable
  struct Sum {
    std::vector<Product> products;
    bool unknown = false;  // too large to follow: taken for whatever is asked
  };

  Sum of_stream(StreamId s);
  Sum of_task(NodeId n, bool behind);
  Sum of_start(StreamId s, NodeId activator);
  bool carries(StreamId s, StringId label) const;
  bool beside(StreamId s, StreamId main) const;
  /// Equal for tasks of one condition; nullopt for a task that always runs.
  std::optional<std::array<std::uint32_t, 3>> key_of(NodeId n) const;
  Sum within_scopes(Sum sum, ScopeId region) const;
  static std::optional<Product> both(const Product& a, const Product& b);
  Sum conjoin(const Sum& a, const Sum& b) const;
  Sum simplify(Sum sum) const;
  bool implies(const Sum& a, const Sum& b) const;
  bool always(std::vector<Product> products, std::uint32_t& budget) const;
  std::uint32_t variable_of_switch(NodeId n);
  std::string describe(NodeId n) const;
  ScopeId repeated_scope(NodeId n, bool behind) const;

  struct SwitchAt {
    std::uint32_t position;
    NodeId node;
  };
  const Graph& graph_;
  const StreamAssignment& on_;
  const Activation& activation_;
  const ControlFlow& flow_;
  std::vector<std::uint32_t> place_;                 // in execution order
  std::vector<std::vector<SwitchAt>> switches_;      // by stream
  std::vector<std::uint32_t> values_;                // by variable: how many outcomes
  std::map<std::uint32_t, std::uint32_t> by_node_;   // switch node, or value id + node count, or scope owner: variable
  std::vector<std::uint32_t> scope_variable_;        // by scope
  std::vector<std::uint32_t> scope_value_;
  std::map<std::uint32_t, Sum> stream_sum_;
  std::map<std::array<std::uint32_t, 5>, bool> excludes_;
  std::vector<std::uint8_t> open_;                   // by stream: being followed
};

}  // namespace millstream
