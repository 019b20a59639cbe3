// SPDX-License-Identifier: Apache-2.0
// Binds a plan to memory and kernels.
#include "millstream/exec/executable.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "millstream/core/large_pages.h"
#include "millstream/exec/state.h"
#include "millstream/memory/storage.h"
#include "millstream/schedule/control_types.h"

namespace millstream {

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::~Executable() = default;
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;

namespace {

using State = Executable::State;

Error mismatch(std::string what) {
  return Error{ErrorCode::plan_mismatch, "the plan does not fit the graph: " + std::move(what)}.help(
      "compile the model again");
}

Result<IdVec<NodeId, std::uint8_t>> launched_once(const Graph& graph, const Schedule& schedule, const ControlValues& control) {
  IdVec<NodeId, std::uint8_t> launched(graph.node_count(), 0);
  std::vector<bool> steers(graph.node_count(), false);
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    for (const Task& t : schedule.streams[s].tasks) {
      if (t.kind != Task::Kind::launch) continue;
      if (t.index >= graph.node_count()) return mismatch(fmt::format("stream {} launches node #{} of {}", s.index, t.index, graph.node_count()));
      if (launched[t.node()]++ != 0) return mismatch(fmt::format("node \"{}\" is launched more than once", graph.name(t.node())));
    }
  }
  for (const ControlTask& c : schedule.controls) {
    if (c.node.index < graph.node_count()) steers[c.node.index] = true;
  }
  SchemaCache schemas(graph);
  const ControlTypes types(graph);
  for (const NodeId n : graph.nodes()) {
    if (launched[n] != 0 || steers[n.index] || control.owns_scopes(n)) continue;
    // An activation of nothing has no task.
    if (types.of(n) == Task::Kind::activate) continue;
    const OpSchema* schema = schemas.of(n);
    if (schema == nullptr || !schema->no_task) return mismatch(fmt::format("no stream launches node \"{}\"", graph.name(n)));
  }
  return launched;
}

Result<void> make_arena(State& state, const MemoryPlan& memory) {
  const std::uint64_t page = memory.peak_bytes >= kLargePage ? kLargePage : 64;
  const std::uint64_t size = std::max<std::uint64_t>(page, (memory.peak_bytes + page - 1) / page * page);
  auto* raw = static_cast<std::byte*>(size < (std::uint64_t{1} << 62) ? std::aligned_alloc(page, size) : nullptr);
  if (raw == nullptr) {
    return Error{ErrorCode::memory_limit, fmt::format("the system does not give the arena's {} bytes", size)};
  }
  prefer_large_pages(raw, size);
  state.arena = std::shared_ptr<std::byte>(raw, [](std::byte* p) { std::free(p); });
  state.arena_bytes = size;
  return {};
}

// Tensors over the arena; returns which values they are.
Result<std::vector<bool>> bind_buffers(State& state, const Graph& graph, const MemoryPlan& memory) {
  if (memory.buffers.size() != graph.value_count()) {
    return mismatch(fmt::format("it has {} values, the graph {}", memory.buffers.size(), graph.value_count()));
  }
  std::vector<bool> bound(graph.value_count(), false);
  const Storages storages(graph);
  for (const ValueId v : graph.values()) {
    const auto& buffer = memory.buffers[v];
    if (!buffer) continue;
    const ValueId root = storages.root(v);
    const auto bytes = storages.arena_bytes(root);
    if (!bytes || *bytes > buffer->size || buffer->offset % 64 != 0 || buffer->size > memory.peak_bytes ||
        buffer->offset > memory.peak_bytes - buffer->size || !memory.buffers[root] || !(*memory.buffers[root] == *buffer)) {
      return mismatch(fmt::format("the buffer of \"{}\" is {} bytes at {} in an arena of {}", graph.name(v), buffer->size,
                                  buffer->offset, memory.peak_bytes));
    }
    // A view whose shape only a run tells is made then, over the same bytes.
    if (graph.desc(v).bytes() != bytes) continue;
    state.tensors[v] = Tensor(graph.desc(v).dtype, graph.desc(v).dims(),
                              std::shared_ptr<const std::byte>(state.arena, state.arena.get() + buffer->offset));
    bound[v.index] = true;
  }
  return bound;
}

// Values that something else than a launch of their own scope reads.
std::vector<bool> read_elsewhere(const State& state, const Graph& graph) {
  std::vector<bool> out(graph.value_count(), false);
  for (const NodeId n : graph.nodes()) {
    const bool called = state.call_of[n] != State::kNoCall;
    const auto read = [&](ValueId v) {
      const auto p = graph.producer(v);
      if (!called || (p && graph.scope_of(*p) != graph.scope_of(n))) out[v.index] = true;
    };
    for (const InputRef in : graph.inputs(n)) {
      if (const auto v = in.get()) read(*v);
    }
    for (const ValueId v : graph.captures(n)) read(v);
  }
  // A result is kept.
  for (const ValueId v : graph.outputs()) out[v.index] = true;
  return out;
}

void count_readers(State& state, const Graph& graph, const std::vector<bool>& bound) {
  state.counter_of = IdVec<ValueId, std::uint32_t>(graph.value_count(), State::kNoCounter);
  const std::vector<bool> elsewhere = read_elsewhere(state, graph);
  for (const NodeCall& call : state.calls) {
    for (const ValueId v : graph.outputs(call.node)) {
      if (bound[v.index] || elsewhere[v.index]) continue;
      state.counter_of[v] = static_cast<std::uint32_t>(state.counted.size());
      state.counted.push_back(v);
    }
  }
  state.reader_count.assign(state.counted.size(), 0);
  state.drop_begin.push_back(0);
  for (const NodeCall& call : state.calls) {
    const auto take = [&](ValueId v) {
      const std::uint32_t counter = state.counter_of[v];
      if (counter == State::kNoCounter) return;
      ++state.reader_count[counter];
      state.drops.push_back(counter);
    };
    for (const InputRef in : graph.inputs(call.node)) {
      if (const auto v = in.get()) take(*v);
    }
    for (const ValueId v : graph.captures(call.node)) take(v);
    for (const ValueId v : graph.outputs(call.node)) take(v);  // so that what nobody reads goes at once
    state.drop_begin.push_back(static_cast<std::uint32_t>(state.drops.size()));
  }
  state.readers = std::make_unique<std::atomic<std::uint32_t>[]>(state.counted.size());
}

}  // namespace

Result<Executable> instantiate(const Graph& graph, const Schedule& schedule, const MemoryPlan& memory,
                               const KernelTable& kernels, Backend& backend, const InstantiateOptions& options) {
  auto state = std::unique_ptr<State>(new State{graph, schedule, backend});
  MST_TRY(state->control, ControlValues::of(graph, options.max_bytes.value_or(~std::uint64_t{0})));
  const ControlValues& control = state->control;
  MST_TRY(const auto launched, launched_once(graph, schedule, control));
  state->tensors = TensorTable(control.slot_count());
  for (const ValueId v : graph.values()) {
    if (const Tensor* constant = graph.constant(v)) state->tensors[v] = aligned_tensor(*constant);
  }
  MST_TRY_VOID(make_arena(*state, memory));
  MST_TRY(const std::vector<bool> bound, bind_buffers(*state, graph, memory));

  state->call_of = IdVec<NodeId, std::uint32_t>(graph.node_count(), State::kNoCall);
  state->calls.reserve(graph.node_count());
  MissingKernels missing;
  for (const NodeId n : graph.order()) {
    if (launched[n] == 0 || control.owns_scopes(n)) continue;
    for (const InputRef in : graph.inputs(n)) {
      const auto v = in.get();
      const auto producer = v ? graph.producer(*v) : std::nullopt;
      if (producer && launched[*producer] == 0 && !control.provides(*v)) {
        missing.add(graph, *producer, Error{ErrorCode::unsupported_operator, fmt::format("gives \"{}\" without running", graph.name(*v))});
      }
    }
    KernelSpec spec{graph, n, options.threads_per_op};
    if (options.max_bytes) spec.max_bytes = *options.max_bytes;
    Result<NodeCall> call = prepare_call(spec, kernels, state->tensors, bound);
    if (!call.ok()) {
      if (call.error().code != ErrorCode::unsupported_operator) return std::move(call).error();
      missing.add(graph, n, call.error());
      continue;
    }
    // What a node without a task passes on is read where it stands.
    for (std::size_t i = 0; i < call->own_inputs; ++i) {
      if (const auto v = graph.inputs(n)[i].get()) call->inputs[i] = &state->tensors[control.slot(*v)];
    }
    state->call_of[n] = static_cast<std::uint32_t>(state->calls.size());
    state->calls.push_back(std::move(call).value());
  }
  if (!missing.empty()) return missing.error();
  count_readers(*state, graph, bound);
  for (std::size_t s = 0; s < schedule.streams.size(); ++s) state->scratch.emplace_back();
  return Executable(std::move(state));
}

}  // namespace millstream
