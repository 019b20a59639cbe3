// SPDX-License-Identifier: Apache-2.0
// Writes out what each stream runs. Splitting of long streams will stand between the walk and the limits:
// it cuts `streams` into pieces and adds boundary pairs; one physical stream is one logical one until then.
#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/event_ids.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/insert.h"

namespace millstream {
namespace {

Result<void> check_pairs(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const std::vector<NodeId>& walk) {
  IdVec<NodeId, std::uint32_t> rank(graph.node_count(), 0);
  for (std::size_t i = 0; i < walk.size(); ++i) rank[walk[i]] = static_cast<std::uint32_t>(i);
  for (const SyncPair& p : plan.kept) {
    const auto bad = [&](std::string_view why) {
      const auto name = [&](NodeId n) {
        return n.index < graph.node_count() ? quote_name(graph.name(n)) : fmt::format("#{}", n.index);
      };
      return Error{ErrorCode::plan_mismatch, fmt::format("pair {} -> {} {}", name(p.from), name(p.to), why)};
    };
    if (p.from.index >= graph.node_count() || p.to.index >= graph.node_count()) return bad("names a node the graph lacks");
    if (!on.placement[p.from] || !on.placement[p.to]) return bad("names a node without a stream");
    if (on.placement[p.from]->stream == on.placement[p.to]->stream) return bad("stays on one stream");
    if (rank[p.from] >= rank[p.to]) return bad("runs against the execution order");
  }
  return {};
}

Result<void> check_limits(const Schedule& schedule, const StreamAssignment& on, const Target& target) {
  const Limits& limits = target.limits;
  if (schedule.streams.size() > limits.streams) {
    return Error{ErrorCode::stream_limit, fmt::format("the plan needs {} streams, target {} has {}", schedule.streams.size(),
                                                      target.name, limits.streams)}
        .help("use fewer stream labels, or --streams with a smaller number");
  }
  if (schedule.event_count > limits.events) {
    return Error{ErrorCode::allocation_limit, fmt::format("the plan needs {} events, target {} has {}", schedule.event_count,
                                                          target.name, limits.events)}
        .help("use fewer streams (--streams N), or event_ids=minimal if that is not set");
  }
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    const PhysicalStream& stream = schedule.streams[s];
    if (stream.tasks.size() <= limits.tasks_per_stream) continue;
    const std::string& label = on.streams[stream.logical].label;
    return Error{ErrorCode::task_limit, fmt::format("stream {}{} holds {} tasks, a stream of target {} holds {}", s.index,
                                                    label.empty() ? "" : fmt::format(" (label \"{}\")", label),
                                                    stream.tasks.size(), target.name, limits.tasks_per_stream)}
        .note("millstream does not split a stream yet")
        .help("spread the nodes over more streams, or raise limits.tasks_per_stream in the target's file");
  }
  return {};
}

}  // namespace

Result<Schedule> lower(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const Target& target,
                       const LowerOptions& options) {
  if (on.placement.size() != graph.node_count()) {
    return Error{ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on.placement.size(),
                                                       graph.node_count())};
  }
  MST_TRY(const std::vector<NodeId> fixed_walk, walk_order(graph, on));
  const std::vector<NodeId>& walk = fixed_walk.empty() ? graph.order() : fixed_walk;
  MST_TRY_VOID(check_pairs(graph, on, plan, walk));
  const std::vector<EventId> events = colour_events(graph, on, plan, walk, options.event_ids);

  Schedule out;
  out.logical_streams = static_cast<std::uint32_t>(on.streams.size());
  out.streams.resize(on.streams.size());
  for (const StreamId s : ids<StreamId>(on.streams.size())) out.streams[PhysicalStreamId(s.index)].logical = s;
  for (const EventId e : events) out.event_count = std::max(out.event_count, e.index + 1);

  // Pairs by either end, as chains in kept order: four bytes a node and pair.
  constexpr std::uint32_t kEnd = 0xffffffffu;
  std::vector<std::uint32_t> first_wait(graph.node_count(), kEnd), first_record(graph.node_count(), kEnd);
  std::vector<std::uint32_t> next_wait(plan.kept.size()), next_record(plan.kept.size());
  std::vector<std::size_t> tasks(on.streams.size(), 0);
  for (std::uint32_t i = static_cast<std::uint32_t>(plan.kept.size()); i-- > 0;) {
    const SyncPair& p = plan.kept[i];
    next_wait[i] = first_wait[p.to.index];
    first_wait[p.to.index] = i;
    next_record[i] = first_record[p.from.index];
    first_record[p.from.index] = i;
    ++tasks[on.placement[p.from]->stream.index];
    ++tasks[on.placement[p.to]->stream.index];
  }
  for (const NodeId n : graph.nodes()) {
    if (on.placement[n]) ++tasks[on.placement[n]->stream.index];
  }
  for (std::size_t s = 0; s < tasks.size(); ++s) out.streams[PhysicalStreamId(s)].tasks.reserve(tasks[s]);

  for (const NodeId n : graph.order()) {
    if (!on.placement[n]) continue;
    std::vector<Task>& lane = out.streams[PhysicalStreamId(on.placement[n]->stream.index)].tasks;
    for (std::uint32_t i = first_wait[n.index]; i != kEnd; i = next_wait[i]) lane.push_back(Task::wait(events[i]));
    lane.push_back(Task::launch(n));
    for (std::uint32_t i = first_record[n.index]; i != kEnd; i = next_record[i]) lane.push_back(Task::record(events[i]));
  }
  MST_TRY_VOID(check_limits(out, on, target));
  return out;
}

}  // namespace millstream
