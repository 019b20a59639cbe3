// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/summary.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "millstream/graph/text.h"

namespace millstream {
namespace {

// Slave streams: over the pieces of a stream, the most that one node of this graph needs on that piece.
void count_followed(const Graph& graph, const StreamAssignment& on, const Schedule& schedule, AllocationSummary& out) {
  const auto& used = graph.annotations().used_streams;
  if (used.empty()) return;
  IdVec<NodeId, std::uint32_t> opens(graph.node_count(), 0);
  for (const SplitPoint& p : schedule.splits) opens[p.node] = p.opened.index;
  std::vector<std::uint32_t> piece(on.streams.size());
  for (std::uint32_t s = 0; s < piece.size(); ++s) piece[s] = s;
  std::vector<std::vector<std::int64_t>> most(graph.scope_count(), std::vector<std::int64_t>(schedule.streams.size(), 0));
  std::vector<std::uint32_t> logical(schedule.streams.size(), 0);
  for (const NodeId n : graph.order()) {
    if (!on.placement[n]) continue;
    const std::uint32_t s = on.placement[n]->stream.index;
    if (opens[n] != 0) piece[s] = opens[n];
    logical[piece[s]] = s;
    if (const auto& count = used.get(n)) {
      std::int64_t& m = most[graph.scope_of(n).index][piece[s]];
      m = std::max(m, *count);
    }
  }
  for (std::size_t g = 0; g < most.size(); ++g) {
    for (std::size_t s = 0; s < most[g].size(); ++s) {
      if (most[g][s] > 0) out.graphs[g].streams[logical[s]].followed += static_cast<std::uint64_t>(most[g][s]);
    }
  }
}

}  // namespace

std::string StreamSummary::to_string_info() const {
  return fmt::format(
      "logic_stream_id: {}, user_stream_label: {}, is_assigned_by_user_stream_pass: {}, attached_stream_ids: {}, "
      "physical_model_stream_num: {}, hccl_followed_stream_num: {}.",
      id, user_label, assigned_by_pass, fmt::join(attached, ","), physical, followed);
}

const GraphSummary* AllocationSummary::find(std::string_view graph) const {
  for (const GraphSummary& g : graphs) {
    if (g.name == graph) return &g;
  }
  return nullptr;
}

AllocationSummary summarize(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const Schedule& schedule) {
  AllocationSummary out;
  std::vector<std::uint32_t> pieces(on.streams.size(), 0);
  for (const PhysicalStream& s : schedule.streams) {
    if (!s.relay && s.logical.index < pieces.size()) ++pieces[s.logical.index];
  }
  for (const ScopeId s : graph.scopes()) {
    GraphSummary g;
    g.name = s == ScopeId(0) ? graph.name() : graph.scope(s).name;
    g.dynamic = s == ScopeId(0) ? graph.dynamic() : graph.scope(s).dynamic;
    g.streams.resize(on.streams.size());
    for (std::uint32_t i = 0; i < g.streams.size(); ++i) {
      const StreamInfo& info = on.streams[StreamId(i)];
      g.streams[i].id = i;
      g.streams[i].assigned_by_pass = info.assigned_by_pass;
      if (info.user) g.streams[i].user_label = info.label;
    }
    out.graphs.push_back(std::move(g));
  }
  for (const NodeId n : graph.order()) {
    if (!on.placement[n]) continue;
    GraphSummary& g = out.graphs[graph.scope_of(n).index];
    StreamSummary& s = g.streams[on.placement[n]->stream.index];
    s.nodes.push_back(n);
    s.physical = g.dynamic ? 1 : pieces[s.id];
    if (const auto& attached = on.attached.get(n)) {
      for (const StreamId a : *attached) {
        s.attached.push_back(a.index);
        g.streams[a.index].physical = 1;
      }
    }
  }
  for (GraphSummary& g : out.graphs) {
    for (StreamSummary& s : g.streams) {
      std::sort(s.attached.begin(), s.attached.end());
      s.attached.erase(std::unique(s.attached.begin(), s.attached.end()), s.attached.end());
    }
  }
  count_followed(graph, on, schedule, out);
  out.streams = static_cast<std::uint32_t>(schedule.stream_count());
  (schedule.event_kind == EventKind::notify ? out.notifies : out.events) = schedule.event_count;
  out.pairs = static_cast<std::uint32_t>(plan.kept.size());
  out.compat = plan.compat;
  for (const SplitPoint& p : schedule.splits) {
    out.splits.push_back(fmt::format("stream {} goes on from stream {} at {}: {}", p.opened.index, schedule.streams[p.opened].logical.index,
                                     quote_name(graph.name(p.node)), p.reason));
  }
  return out;
}

std::vector<std::string> print_by_graph(const Graph& graph, const Schedule& schedule) {
  std::vector<std::string> out;
  for (const ScopeId scope : graph.scopes()) {
    if (scope == ScopeId(0)) {
      out.push_back(print(graph, schedule));
      continue;
    }
    Schedule own = schedule;
    std::string text;
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
      std::vector<Task> tasks, waits;
      bool inside = false;  // the last node was one of this graph
      for (const Task& t : schedule.streams[s].tasks) {
        if (t.kind == Task::Kind::wait) {
          waits.push_back(t);
        } else if (t.kind != Task::Kind::record) {
          inside = graph.scope_of(t.is_control() ? schedule.controls[t.index].node : t.node()) == scope;
          if (inside) tasks.insert(tasks.end(), waits.begin(), waits.end());
          waits.clear();
          if (inside) tasks.push_back(t);
        } else if (inside) {
          tasks.push_back(t);
        }
      }
      own.streams[s].tasks = std::move(tasks);
    }
    std::istringstream lines(print(graph, own));
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line.back() != ':') text += line + '\n';
    }
    out.push_back(std::move(text));
  }
  return out;
}

std::string print(const AllocationSummary& summary) {
  std::string out;
  auto to = std::back_inserter(out);
  for (const GraphSummary& g : summary.graphs) {
    if (summary.graphs.size() > 1) fmt::format_to(to, "graph {}:\n", quote_name(g.name));
    for (const StreamSummary& s : g.streams) {
      if (s.physical != 0) fmt::format_to(to, "{}\n", s.to_string_info());
    }
  }
  fmt::format_to(to, "streams {}, {} {}", summary.streams, summary.notifies != 0 ? "notifies" : "events",
                 summary.notifies != 0 ? summary.notifies : summary.events);
  if (summary.compat) fmt::format_to(to, "; pairs {}, compat {}", summary.pairs, summary.compat->kept());
  out += '\n';
  for (const std::string& split : summary.splits) fmt::format_to(to, "{}\n", split);
  return out;
}

}  // namespace millstream
