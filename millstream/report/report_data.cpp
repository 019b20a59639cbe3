// SPDX-License-Identifier: Apache-2.0
#include "millstream/report/report_data.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "millstream/trace/pairing.h"

namespace millstream {
namespace {

std::string lane_name(const ReportInput& in, const ReportPlan& plan, PhysicalStreamId s) {
  const PhysicalStream& stream = in.schedule.streams[s];
  std::string name;
  const auto add = [&](const std::string& part) { name += (name.empty() ? "" : ", ") + part; };
  if (stream.logical.index != s.index) add(fmt::format("of {}", stream.logical.index));
  if (stream.logical.index < in.assignment.streams.size()) {
    const StreamInfo& info = in.assignment.streams[stream.logical];
    if (!info.label.empty()) add(info.label_text());
    if (info.attached) add("attached");
    if (info.engine && info.engine->index < plan.engines.size()) {
      add(plan.engines[info.engine->index]);
      return name;
    }
  }
  if (plan.engines.size() < 2) return name;
  for (const Task& t : stream.tasks) {
    if (t.kind != Task::Kind::launch) continue;
    if (const auto engine = plan.nodes[t.index].engine) add(plan.engines[engine->index]);
    break;
  }
  return name;
}

}  // namespace

ReportPlan report_plan(const ReportInput& in) {
  const Graph& graph = in.graph;
  ReportPlan out;
  out.target = in.target.name;
  out.threads = in.assignment.threads_per_op;
  for (std::size_t i = 0; i < in.assignment.rules.size(); ++i) {
    out.rules.emplace_back(in.assignment.rules[i], i < in.assignment.reasons.size() ? in.assignment.reasons[i] : std::string());
  }
  out.nodes.resize(graph.node_count());
  for (const NodeId n : graph.nodes()) {
    ReportNode& node = out.nodes[n.index];
    node.name = std::string(graph.name(n));
    node.type = std::string(graph.type(n));
    const auto& placement = in.assignment.placement[n];
    if (placement && placement->decided_by.index < out.rules.size()) node.rule = placement->decided_by;
  }
  if (const auto engines = resolve_engines(graph, in.target); engines.ok()) {
    for (const NodeId n : graph.nodes()) out.nodes[n.index].engine = (*engines)[n];
    const std::vector<std::uint32_t>& slots = in.target.device.engine_slots;
    const std::uint32_t at_once = std::max<std::uint32_t>(1, in.target.cores / std::max<std::uint32_t>(1, out.threads));
    for (const EngineId e : ids<EngineId>(in.target.engines.size())) {
      out.engines.push_back(in.target.engines[e].name);
      out.engine_units.push_back(e.index < slots.size() ? slots[e.index] : at_once);
    }
  } else {
    out.notes.push_back("no use by engine: " + engines.error().message);
  }
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(in.schedule.streams.size())) {
    for (const Task& t : in.schedule.streams[s].tasks) {
      out.records += t.kind == Task::Kind::record;
      out.waits += t.kind == Task::Kind::wait;
      const bool stands_for = t.kind == Task::Kind::launch || t.is_control();
      if (!stands_for) continue;
      ReportNode& node = out.nodes[t.is_control() ? in.schedule.controls[t.index].node.index : t.index];
      if (!node.lane) node.lane = s.index;
    }
  }
  for (const SplitPoint& p : in.schedule.splits) {
    out.nodes[p.node.index].split = fmt::format("goes on as physical stream {}: {}", p.opened.index, p.reason);
  }
  out.events = in.schedule.event_count;
  out.streams = in.schedule.stream_count();
  out.sync = in.sync;
  out.pairs_inserted = in.sync.inserted - given_by_activations(in.sync);
  out.estimate = in.assignment.estimate;
  // Of control flow and open shapes the cost model knows no length.
  if (!in.schedule.has_control() && !graph.dynamic()) {
    out.bound = lower_bound(TaskGraph(graph), work_of(graph, in.target), in.target);
    if (!out.estimate) out.estimate = estimate(graph, in.target, in.assignment);
  }
  for (const auto* list : {&in.assignment.warnings, &in.sync.warnings, &in.schedule.warnings}) {
    for (const Error& w : *list) out.notes.push_back(w.message);
  }
  return out;
}

ReportView view_of(const ReportInput& in, const ReportPlan& plan, const Trace& trace, std::string what) {
  ReportView view;
  view.what = std::move(what);
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(in.schedule.streams.size())) view.lanes.push_back(lane_name(in, plan, s));
  if (view.lanes.empty()) view.lanes.emplace_back();
  for (const Span& span : trace.spans) {
    const std::uint32_t index = span.what.is_control() ? in.schedule.controls[span.what.index].node.index : span.what.index;
    view.spans.push_back({span.task.stream.index, span.what.kind, index, span.begin_ns, std::max(span.begin_ns, span.end_ns)});
    view.total_ns = std::max(view.total_ns, span.end_ns);
  }
  for (const ConsumedRecord& c : pair_records(trace)) {
    if (c.record) view.arrows.emplace_back(static_cast<std::uint32_t>(*c.record), static_cast<std::uint32_t>(c.wait));
  }
  view.overlap = overlap(in.schedule, trace);
  return analyse(std::move(view), plan.nodes, plan.engines.size(), in.schedule.has_control());
}

StreamAssignment assignment_of(const Graph& graph, const Schedule& schedule) {
  StreamAssignment on;
  on.placement = IdVec<NodeId, std::optional<Placement>>(graph.node_count());
  for (std::uint32_t s = 0; s < schedule.logical_streams; ++s) on.new_stream();
  for (const PhysicalStream& stream : schedule.streams) {
    while (on.streams.size() <= stream.logical.index) on.new_stream();
    for (const Task& t : stream.tasks) {
      if (t.kind == Task::Kind::launch) on.placement[t.node()] = Placement{stream.logical, RuleId(~0u)};
      if (t.is_control()) on.placement[schedule.controls[t.index].node] = Placement{stream.logical, RuleId(~0u)};
    }
  }
  return on;
}

Trace walk_once(const Schedule& schedule, const IdVec<NodeId, double>& durations_us, const Costs& costs) {
  const auto ns = [](double us) { return static_cast<std::uint64_t>(std::llround(std::max(0.0, us) * 1000)); };
  Trace trace;
  trace.virtual_time = true;
  std::vector<std::vector<Span>> spans(schedule.streams.size());
  std::vector<std::uint64_t> now(schedule.streams.size(), 0);
  std::vector<std::vector<std::uint64_t>> recorded(schedule.event_count);  // by event: when its records ended
  std::vector<std::size_t> used(schedule.event_count, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
      const std::vector<Task>& tasks = schedule.streams[s].tasks;
      for (std::vector<Span>& done = spans[s.index]; done.size() < tasks.size();) {
        const Task& t = tasks[done.size()];
        const std::uint64_t begin = now[s.index];
        std::uint64_t end = begin;
        if (t.kind == Task::Kind::launch) end += ns(durations_us[t.node()]);
        if (t.kind == Task::Kind::record) {
          end += ns(costs.record_us);
          recorded[t.index].push_back(end);
        }
        if (t.kind == Task::Kind::wait) {
          if (used[t.index] == recorded[t.index].size()) break;
          const std::uint64_t made = recorded[t.index][used[t.index]++];
          end = (made > begin ? made + ns(costs.hand_off_us) : begin) + ns(costs.wait_us);
        }
        done.push_back({{s, static_cast<std::uint32_t>(done.size())}, t, begin, end, 0});
        now[s.index] = end;
        moved = true;
      }
    }
  }
  for (std::vector<Span>& of_stream : spans) trace.spans.insert(trace.spans.end(), of_stream.begin(), of_stream.end());
  for (const std::uint64_t end : now) trace.total_ns = std::max(trace.total_ns, end);
  return trace;
}

}  // namespace millstream
