// SPDX-License-Identifier: Apache-2.0
// One run: inputs bound, the schedule executed, results taken out.
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "millstream/exec/executable.h"
#include "millstream/exec/state.h"

namespace millstream {
namespace {

using State = Executable::State;

// Runs nodes for the back-end. Streams touch disjoint slots of the table, except for the counters.
class NodeLauncher final : public Launcher {
 public:
  explicit NodeLauncher(State& state) : state_(state) {}

  Result<void> launch(NodeId node, PhysicalStreamId stream) override {
    try {
      return launch_call(node, stream);
    } catch (const std::bad_alloc&) {
      return out_of_memory(node);
    }
  }

  Result<std::uint32_t> steer(NodeId node) override {
    try {
      return state_.control.steer(state_.graph, node, state_.tensors);
    } catch (const std::bad_alloc&) {
      return out_of_memory(node);
    }
  }

 private:
  Error out_of_memory(NodeId node) const {
    return Error{ErrorCode::memory_limit, fmt::format("{} \"{}\": out of memory", state_.graph.type(node), state_.graph.name(node))};
  }

  Result<void> launch_call(NodeId node, PhysicalStreamId stream) {
    const std::uint32_t at = state_.call_of[node];
    if (at == State::kNoCall) return {};
    NodeCall& call = state_.calls[at];
    MST_TRY_VOID(run_call(state_.graph, call, state_.tensors, state_.scratch[stream.index]));
    for (std::size_t i = 0; i < call.outputs.size(); ++i) settle_output(call, i);
    for (const ValueId v : state_.graph.outputs(call.node)) {
      const std::uint32_t counter = state_.counter_of[v];
      if (counter != State::kNoCounter) state_.readers[counter].store(state_.reader_count[counter], std::memory_order_relaxed);
    }
    for (std::uint32_t i = state_.drop_begin[at]; i < state_.drop_begin[at + 1]; ++i) {
      const std::uint32_t counter = state_.drops[i];
      // The last reader comes behind all others, through the counter.
      if (state_.readers[counter].fetch_sub(1, std::memory_order_acq_rel) == 1) {
        state_.tensors[state_.counted[counter]] = Tensor();
      }
    }
    return {};
  }

  // What a kernel assigned may share an input's bytes; in the arena those are used again.
  void settle_output(const NodeCall& call, std::size_t i) {
    if (call.outputs[i] != OutputKind::assigned) return;
    Tensor& out = state_.tensors[state_.graph.outputs(call.node)[i]];
    const std::byte* const begin = state_.arena.get();
    if (out.bytes() >= begin && out.bytes() < begin + state_.arena_bytes) out = copy_of(out);
  }

  State& state_;
};

struct Binding {
  std::string symbol;
  std::int64_t value = 0;
  ValueId input;
};

Result<void> check_input(const Graph& graph, ValueId v, const Tensor& have, std::vector<Binding>& bindings) {
  const TensorDesc& want = graph.desc(v);
  if (have.bytes() == nullptr || !fits(want, have)) {
    return Error{ErrorCode::usage, fmt::format("input \"{}\" is {}, the graph wants {}", graph.name(v),
                                               have.bytes() == nullptr ? "empty" : to_string(have.desc()), to_string(want))};
  }
  if (!want.shape) return {};
  for (std::size_t i = 0; i < want.shape->size(); ++i) {
    const Dim& d = (*want.shape)[i];
    if (d.known() || d.symbol.empty()) continue;
    const Binding* bound = nullptr;
    for (const Binding& b : bindings) {
      if (b.symbol == d.symbol) bound = &b;
    }
    if (bound == nullptr) {
      bindings.push_back({d.symbol, have.shape()[i], v});
    } else if (bound->value != have.shape()[i]) {
      return Error{ErrorCode::usage, fmt::format("input \"{}\" is {}, which makes {} = {}; input \"{}\" makes it {}", graph.name(v),
                                                 to_string(have.desc()), d.symbol, have.shape()[i], graph.name(bound->input), bound->value)};
    }
  }
  return {};
}

Result<void> bind_inputs(State& state, std::span<const Tensor> inputs) {
  const auto wanted = state.graph.inputs();
  if (inputs.size() != wanted.size()) {
    std::string names;
    for (const ValueId v : wanted) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", state.graph.name(v));
    return Error{ErrorCode::usage, fmt::format("{} inputs given, the graph has {}: {}", inputs.size(), wanted.size(), names)};
  }
  std::vector<Binding> bindings;
  for (std::size_t i = 0; i < inputs.size(); ++i) MST_TRY_VOID(check_input(state.graph, wanted[i], inputs[i], bindings));
  for (std::size_t i = 0; i < inputs.size(); ++i) state.tensors[wanted[i]] = aligned_tensor(inputs[i]);
  return {};
}

// Results outlive the next run, so what lies in the arena is copied.
std::vector<Tensor> take_outputs(const State& state) {
  std::vector<Tensor> out;
  const std::byte* const begin = state.arena.get();
  for (const ValueId v : state.graph.outputs()) {
    const Tensor& t = state.tensors[state.control.slot(v)];
    const bool in_arena = t.bytes() >= begin && t.bytes() < begin + state.arena_bytes;
    out.push_back(in_arena ? copy_of(t) : t);
  }
  return out;
}

// Values of this run go: all but constants and what lies in the arena.
void forget(State& state) {
  const std::byte* const begin = state.arena.get();
  for (std::uint32_t i = 0; i < state.tensors.size(); ++i) {
    const ValueId v(i);
    if (i < state.graph.value_count() && state.graph.constant(v) != nullptr) continue;
    if (const std::byte* const at = state.tensors[v].bytes(); at < begin || at >= begin + state.arena_bytes) state.tensors[v] = Tensor();
  }
}

}  // namespace

Result<RunResult> run(Executable& executable, std::span<const Tensor> inputs, const ExecuteOptions& options) {
  State& state = executable.state();
  const std::lock_guard one(state.one_run);
  MST_TRY_VOID(bind_inputs(state, inputs));
  NodeLauncher launcher(state);
  Result<Trace> trace = state.backend.execute(state.graph, state.schedule, launcher, options);
  if (!trace.ok()) {
    forget(state);
    return std::move(trace).error();
  }
  RunResult result{take_outputs(state), std::move(trace).value()};
  forget(state);
  return result;
}

}  // namespace millstream
