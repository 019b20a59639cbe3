// SPDX-License-Identifier: Apache-2.0
// One pass over the launches: outputs take blocks, the last use of a buffer gives its block back.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/memory/arena.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/memory/storage.h"
#include "millstream/memory/task_walk.h"

namespace millstream {
namespace {

constexpr std::uint64_t kAlignment = 64;
std::uint64_t aligned(std::uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// Which nodes the schedule launches, each once.
Result<IdVec<NodeId, std::uint8_t>> launched_nodes(const Graph& graph, const Schedule& schedule) {
  IdVec<NodeId, std::uint8_t> launched(graph.node_count(), 0);
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    for (const Task& t : schedule.streams[s].tasks) {
      const bool launch = t.kind == Task::Kind::launch;
      const bool of_node = t.names_node();
      if (t.index >= (of_node ? graph.node_count() : schedule.event_count)) {
        return Error{ErrorCode::plan_mismatch, fmt::format("stream {} names {} {}, which does not exist", s.index,
                                                           of_node ? "node" : "event", t.index)};
      }
      if (launch && launched[t.node()]++ != 0) {
        return Error{ErrorCode::plan_mismatch, fmt::format("node \"{}\" is launched more than once", graph.name(t.node()))};
      }
    }
  }
  return launched;
}

// What one plan is made from: the buffers and how often each is used.
class Buffers {
 public:
  Buffers(const Graph& graph, const IdVec<NodeId, std::uint8_t>& launched)
      : graph_(graph), storages_(graph), launched_(launched), uses_(graph.value_count(), 0) {
    for (const NodeId n : graph.nodes()) {
      for_each_use(n, [&](ValueId v) { ++uses_[v]; });
    }
    // Results, and what a node without a task passes on, stay to the end.
    for (const ValueId v : graph.outputs()) ++uses_[storages_.root(v)];
  }

  const Storages& storages() const { return storages_; }
  bool launched(NodeId n) const { return launched_[n] != 0; }
  std::uint32_t uses(ValueId v) const { return uses_[v]; }
  /// Aligned bytes of a value that needs a block; 0 when it needs none.
  std::uint64_t block_bytes(ValueId v) const {
    const auto bytes = storages_.arena_bytes(v);
    return bytes ? aligned(*bytes) : 0;
  }
  /// The owners of the bytes that a node touches, inputs once a slot.
  template <class F>
  void for_each_use(NodeId n, F use) const {
    for (const InputRef in : graph_.inputs(n)) {
      if (const auto v = in.get()) use(storages_.root(*v));
    }
    if (graph_.body_count() != 0) {
      for (const ValueId v : graph_.captures(n)) use(storages_.root(v));
    }
    for (const ValueId v : graph_.outputs(n)) {
      if (storages_.root(v) == v) use(v);
    }
  }

  /// Largest sum of live bytes at one node of the execution order.
  std::uint64_t largest_cut() const {
    IdVec<ValueId, std::uint32_t> left = uses_;
    std::uint64_t live = 0, most = 0;
    for (const NodeId n : graph_.order()) {
      if (!launched(n)) continue;
      for (const ValueId v : graph_.outputs(n)) live += block_bytes(v);
      most = std::max(most, live);
      for_each_use(n, [&](ValueId v) {
        if (--left[v] == 0) live -= std::min(live, block_bytes(v));
      });
    }
    return most;
  }

 private:
  const Graph& graph_;
  const Storages storages_;
  const IdVec<NodeId, std::uint8_t>& launched_;
  IdVec<ValueId, std::uint32_t> uses_;
};

struct Layout {
  IdVec<ValueId, std::optional<Buffer>> buffers;
  std::vector<Requirement> reuse;
  std::uint64_t end = 0;
};

Result<Layout> lay_out(const Graph& graph, const Schedule& schedule, const Buffers& buffers, bool reuse, bool size_only) {
  Layout out;
  if (!size_only) out.buffers.resize(graph.value_count());
  Arena arena(schedule.streams.size(), reuse);
  TaskWalk walk(graph, schedule);
  IdVec<ValueId, Arena::Block> block(graph.value_count(), Arena::kNone);
  IdVec<ValueId, std::uint32_t> left(graph.value_count());
  for (const ValueId v : graph.values()) left[v] = buffers.uses(v);

  MST_TRY_VOID(walk.run([&](NodeId n, std::uint32_t stream, std::uint32_t place) {
    const auto known = [&](std::uint32_t t) { return walk.known(stream, t); };
    for (const ValueId v : graph.outputs(n)) {
      const auto bytes = buffers.storages().arena_bytes(v);
      if (!bytes) continue;
      Buffer buffer{0, *bytes};
      if (*bytes != 0) {
        block[v] = arena.take(aligned(*bytes), stream, known, [&](const Arena::Use& use) {
          if (size_only || use.stream == stream) return;  // stream order is no news
          const NodeId before = schedule.streams[PhysicalStreamId(use.stream)].tasks[use.place - 1].node();
          out.reuse.push_back({before, n, Requirement::Kind::buffer, v});
        });
        buffer.offset = arena.offset(block[v]);
      }
      if (!size_only) out.buffers[v] = buffer;
    }
    buffers.for_each_use(n, [&](ValueId v) {
      if (block[v] == Arena::kNone) return;
      arena.use(block[v], stream, place);
      if (--left[v] == 0) arena.give_back(block[v], stream);
    });
  }));
  out.end = arena.end();
  return out;
}

Schedule one_stream_of(const Graph& graph, const Buffers& buffers) {
  Schedule out;
  out.logical_streams = 1;
  PhysicalStream stream;
  stream.tasks.reserve(graph.node_count());
  for (const NodeId n : graph.order()) {
    if (buffers.launched(n)) stream.tasks.push_back(Task::launch(n));
  }
  out.streams.push_back(std::move(stream));
  return out;
}

bool follows_order(const Graph& graph, const Schedule& schedule, const Buffers& buffers) {
  if (schedule.streams.size() != 1) return false;
  const std::vector<Task>& tasks = schedule.streams[PhysicalStreamId(0)].tasks;
  std::size_t i = 0;
  for (const NodeId n : graph.order()) {
    if (!buffers.launched(n)) continue;
    if (i >= tasks.size() || !(tasks[i] == Task::launch(n))) return false;
    ++i;
  }
  return i == tasks.size();
}

Error too_large(const Graph& graph, const Layout& layout, std::uint64_t allowed) {
  Error error{ErrorCode::memory_limit, fmt::format("the arena needs {} bytes, allowed are {}", layout.end, allowed)};
  std::vector<ValueId> largest;
  for (const ValueId v : graph.values()) {
    if (layout.buffers[v]) largest.push_back(v);
  }
  const std::size_t shown = std::min<std::size_t>(3, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(shown), largest.end(), [&](ValueId a, ValueId b) {
    return std::pair(layout.buffers[b]->size, a.index) < std::pair(layout.buffers[a]->size, b.index);
  });
  for (std::size_t i = 0; i < shown; ++i) {
    error.note(fmt::format("\"{}\" takes {} bytes, {}", graph.name(largest[i]), layout.buffers[largest[i]]->size,
                           to_string(graph.desc(largest[i]))));
  }
  return std::move(error).help("raise --max-memory, use fewer streams, or bind smaller dimensions with --dim");
}

}  // namespace

Result<MemoryPlan> plan_memory(const Graph& graph, const Schedule& schedule, const MemoryOptions& options) {
  if (schedule.has_control()) {
    // Buffers of branches that exclude each other and of turns need rules of their own: each launch makes its outputs.
    MemoryPlan none;
    none.buffers = IdVec<ValueId, std::optional<Buffer>>(graph.value_count());
    return none;
  }
  MST_TRY(const auto launched, launched_nodes(graph, schedule));
  const Buffers buffers(graph, launched);
  MST_TRY(Layout layout, lay_out(graph, schedule, buffers, options.reuse, false));
  if (options.max_bytes && layout.end > *options.max_bytes) return too_large(graph, layout, *options.max_bytes);

  MemoryPlan plan;
  plan.peak_bytes = layout.end;
  plan.lower_bound_bytes = buffers.largest_cut();
  if (follows_order(graph, schedule, buffers)) {
    plan.single_stream_bytes = layout.end;
  } else {
    MST_TRY(const Layout single, lay_out(graph, one_stream_of(graph, buffers), buffers, options.reuse, true));
    plan.single_stream_bytes = single.end;
  }
  // Views show their owner's bytes.
  for (const ValueId v : graph.values()) {
    const ValueId root = buffers.storages().root(v);
    if (root != v) layout.buffers[v] = layout.buffers[root];
  }
  plan.buffers = std::move(layout.buffers);
  plan.reuse = std::move(layout.reuse);
  return plan;
}

}  // namespace millstream
