// SPDX-License-Identifier: Apache-2.0
// What a flattened graph's control flow does with values. Data, NetOutput and the nodes that own scopes emit no task: a
// body's input shows what its owner has, a call's output what its body made; the rest moves at tasks of control flow.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/exec/node_call.h"

namespace millstream {

/// Tensors move by reference. Loops keep what goes from turn to turn in slots of the table behind the graph's values.
class ControlValues {
 public:
  /// Nothing for a graph without scopes. Errors: control_flow naming the node for scopes that miss a node which `flatten`
  /// puts there, or whose owner another scheduler runs.
  /// `max_bytes`: what an output that stacks up its turns may take.
  static Result<ControlValues> of(const Graph& graph, std::uint64_t max_bytes);

  /// Size of the table: one for each value, then the loops' own.
  std::size_t slot_count() const { return slots_; }
  /// Where the tensor of `v` stands.
  ValueId slot(ValueId v) const;
  /// Whether `v`, which no launch makes, is there all the same.
  bool provides(ValueId v) const { return from_.find(v) != from_.end() || made_.find(v) != made_.end(); }
  /// Whether the node owns scopes whose tasks do its work.
  bool owns_scopes(NodeId n) const { return owners_.find(n) != owners_.end(); }

  /// Before the control task that `n` stands for: moves what it moves; the way it goes, as Launcher::steer. Errors:
  /// kernel, shape and memory_limit, naming the owner.
  Result<std::uint32_t> steer(const Graph& graph, NodeId n, TensorTable& table);

 private:
  class Builder;
  struct Initial {  // of one value that a loop carries
    std::optional<ValueId> value;
    Tensor constant;
  };
  struct Stacked {  // one output that is made of a part a turn
    ValueId part, output;
    TensorDesc desc;
    std::int64_t axis = 0;
    bool backwards = false;
    std::vector<Tensor> turns;  ///< of the loop that runs
    std::uint64_t bytes = 0;    ///< of those
  };
  struct Scanned {
    ValueId from, slot;
    std::int64_t axis = 0;
    bool backwards = false;
  };
  struct Loop {
    NodeId owner;
    std::vector<ValueId> state;  ///< slots; Loop, Scan and For: the counter first, then a Loop's condition
    std::optional<ValueId> trips;           ///< of a Loop
    std::optional<ValueId> step;            ///< of a For
    std::optional<std::size_t> condition;   ///< in `state`: that of a Loop
    std::size_t carried = 0;
    bool asks = true;                       ///< whether what the body says of it counts
    std::vector<Initial> initial;
    std::vector<ValueId> next;   ///< what the body makes of them
    std::vector<Stacked> stacked;
    std::vector<Scanned> scanned;
    std::int64_t turn = 0;
  };
  enum class At : std::uint8_t { branch_end, loop_start, loop_test, loop_turn };
  struct Step {
    At at = At::branch_end;
    std::size_t loop = 0;
    std::vector<std::pair<ValueId, ValueId>> moves;  ///< branch_end: from, to
    NodeId owner;
  };

  Result<void> start(const Graph& graph, Loop& loop, TensorTable& table);
  Result<void> test(const Graph& graph, Loop& loop, bool goes_on, TensorTable& table);
  Result<void> turn(const Graph& graph, Loop& loop, TensorTable& table);
  Result<void> settle_own(const Graph& graph, const Loop& loop, bool first, TensorTable& table) const;
  Result<void> check_state(const Graph& graph, const Loop& loop, const TensorTable& table) const;

  std::size_t slots_ = 0;
  std::uint64_t max_bytes_ = 0;
  std::map<ValueId, ValueId> from_;                ///< shows the tensor of another value or slot
  std::map<ValueId, bool> made_;                   ///< outputs that a step puts into the table
  std::map<ValueId, std::vector<ValueId>> shown_;  ///< by slot of a loop: the Data values that show it
  std::map<NodeId, bool> owners_;
  std::map<NodeId, Step> steps_;
  std::vector<Loop> loops_;
};

}  // namespace millstream
