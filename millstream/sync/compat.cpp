// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/compat.h"

#include <algorithm>
#include <map>

#include "millstream/assign/tasks.h"
#include "millstream/sync/control.h"
#include "millstream/sync/insert.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

std::vector<std::uint32_t> places(const Graph& graph) {
  std::vector<std::uint32_t> place(graph.node_count());
  for (std::size_t i = 0; i < graph.order().size(); ++i) place[graph.order()[i].index] = static_cast<std::uint32_t>(i);
  return place;
}

// Consumers of each node over data edges (by output, then consumer, parallel edges one each), then over control
// edges. Node attributes of an edge do not matter here.
struct OutEdges {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> raw;  // consumer, top bit: control
  static constexpr std::uint32_t kControl = 0x80000000u;
};

OutEdges out_edges(const Graph& graph) {
  OutEdges out;
  out.begin.assign(graph.node_count() + 1, 0);
  const auto each_data = [&](auto&& f) {
    for (const NodeId n : graph.nodes()) {
      for (const InputRef in : graph.inputs(n)) {
        const auto v = in.get();
        if (const auto p = v ? graph.producer(*v) : std::nullopt) f(*p, n, v->index);
      }
      if (graph.body_count() == 0) continue;
      for (const ValueId v : graph.captures(n)) {
        if (const auto p = graph.producer(v)) f(*p, n, v.index);
      }
    }
  };
  each_data([&](NodeId p, NodeId, std::uint32_t) { ++out.begin[p.index + 1]; });
  for (const ControlEdge& e : graph.control_edges()) ++out.begin[e.from.index + 1];
  for (std::size_t i = 1; i < out.begin.size(); ++i) out.begin[i] += out.begin[i - 1];
  out.raw.resize(out.begin.back());
  std::vector<std::uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  std::vector<std::uint32_t> value(out.begin.back(), 0);  // sorts a node's data edges by output
  bool several = false;
  each_data([&](NodeId p, NodeId n, std::uint32_t v) {
    value[next[p.index]] = v;
    several = several || (next[p.index] > out.begin[p.index] && value[next[p.index] - 1] > v);
    out.raw[next[p.index]++] = n.index;
  });
  if (several) {
    for (const NodeId p : graph.nodes()) {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> list;
      for (std::uint32_t i = out.begin[p.index]; i < next[p.index]; ++i) list.push_back({value[i], out.raw[i]});
      std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t i = 0; i < list.size(); ++i) out.raw[out.begin[p.index] + i] = list[i].second;
    }
  }
  for (const ControlEdge& e : graph.control_edges()) out.raw[next[e.from.index]++] = e.to.index | OutEdges::kControl;
  return out;
}

// Event numbers of each node's list, and nodes of each stream in execution order.
struct Lists {
  std::vector<std::uint32_t> begin, events;
  std::span<const std::uint32_t> of(NodeId n) const { return {events.data() + begin[n.index], begin[n.index + 1] - begin[n.index]}; }
};
template <class End>
Lists lists_by(const Graph& graph, const CompatEvents& events, End end) {
  Lists out;
  out.begin.assign(graph.node_count() + 1, 0);
  for (const CompatEvent& e : events) ++out.begin[end(e).index + 1];
  for (std::size_t i = 1; i < out.begin.size(); ++i) out.begin[i] += out.begin[i - 1];
  out.events.resize(events.size());
  std::vector<std::uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  for (std::uint32_t i = 0; i < events.size(); ++i) out.events[next[end(events[i]).index]++] = i;
  return out;
}

// Streams ascending, nodes without one first, each in execution order.
std::vector<NodeId> by_stream(const Graph& graph, const StreamAssignment& on) {
  std::vector<std::uint32_t> begin(on.streams.size() + 2, 0);
  const auto key = [&](NodeId n) { return on.placement[n] ? on.placement[n]->stream.index + 1 : 0; };
  for (const NodeId n : graph.nodes()) ++begin[key(n) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<NodeId> out(graph.node_count());
  for (const NodeId n : graph.order()) out[begin[key(n)]++] = n;
  return out;
}

std::uint32_t stream_key(const StreamAssignment& on, NodeId n) {
  return on.placement[n] ? on.placement[n]->stream.index + 1 : 0;
}

CompatEvents without(const CompatEvents& events, const std::vector<std::uint8_t>& gone) {
  CompatEvents out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (gone[i] == 0) out.push_back(events[i]);
  }
  return out;
}

}  // namespace

Result<CompatEvents> insert_events(const Graph& graph, const StreamAssignment& on, const Activation& activation, std::uint32_t next_id) {
  const OutEdges edges = out_edges(graph);
  const TaskTypes emits(graph);
  const ControlFlow flow(graph);
  // By stream label: the nodes that activate it.
  std::map<StringId, std::vector<NodeId>> activators;
  std::vector<std::uint32_t> place;
  if (!activation.empty()) {
    place = places(graph);
    for (const Activator& a : activation.activators) {
      const auto& labels = graph.annotations().activates.get(a.node);
      if (!labels) continue;
      for (const StringId l : *labels) activators[l].push_back(a.node);
    }
  }
  const bool any_enter = graph.strings().find("Enter") || graph.strings().find("RefEnter");

  CompatEvents out;
  const auto pair = [&](NodeId u, NodeId v, PairReason reason) -> Result<void> {
    if (!on.placement[u]) return {};
    if (on.placement[v] && on.placement[v]->stream == on.placement[u]->stream) return {};
    if (any_enter && is_enter(graph.type(u)) && graph.type(v) != "StreamActive") return {};
    if (!on.placement[v]) {
      if (needs_stream(graph, on, emits, v)) return unplaced_reader(graph, on, u, v);
      return {};
    }
    if (!activators.empty()) {
      const auto& label = graph.annotations().label.get(v);
      const auto found = label ? activators.find(*label) : activators.end();
      if (found != activators.end()) {
        for (const NodeId a : found->second) {
          if (on.placement[a] && on.placement[a]->stream == on.placement[u]->stream && place[u.index] <= place[a.index]) return {};
        }
      }
    }
    out.push_back({next_id++, u, v, reason});
    return {};
  };
  const auto successors = [&](NodeId n, auto&& f) -> Result<void> {
    for (std::uint32_t i = edges.begin[n.index]; i < edges.begin[n.index + 1]; ++i) {
      NodeId to(edges.raw[i] & ~OutEdges::kControl);
      NodeId from = n;
      if (flow.scoped() && graph.scope_of(n) != graph.scope_of(to)) {
        const auto e = lifted(graph, flow, n, to);
        if (!e) continue;
        from = e->from;
        to = e->to;
      }
      MST_TRY_VOID(f(from, to, (edges.raw[i] & OutEdges::kControl) != 0 ? PairReason::control : PairReason::data));
    }
    return {};
  };
  for (const NodeId u : graph.order()) MST_TRY_VOID(successors(u, pair));
  if (flow.scoped()) {
    for (std::size_t s = 1; s < graph.scope_count(); ++s) {
      const auto& end = flow.scope(ScopeId(s)).end;
      if (!end) continue;
      const auto exit = [&](NodeId, NodeId to, PairReason) { return pair(*end, to, PairReason::exit); };
      MST_TRY_VOID(successors(*graph.scope(ScopeId(s)).parent_node, exit));
    }
    for (const SyncPair& p : scope_pairs(graph, on, activation, flow)) {
      if (p.reason == PairReason::entry) MST_TRY_VOID(pair(p.from, p.to, p.reason));
    }
  }
  return out;
}

CompatEvents drop_by_send(const Graph& graph, const StreamAssignment& on, const CompatEvents& events) {
  const Lists waits = lists_by(graph, events, [](const CompatEvent& e) { return e.to; });
  std::vector<std::uint32_t> remembered(graph.node_count(), kNone);  // by sender: the stream that waited for it last
  std::vector<std::uint8_t> gone(events.size(), 0);
  for (const NodeId n : by_stream(graph, on)) {
    for (const std::uint32_t i : waits.of(n)) {
      std::uint32_t& last = remembered[events[i].from.index];
      if (last == stream_key(on, n)) gone[i] = 1;
      last = stream_key(on, n);
    }
  }
  return without(events, gone);
}

CompatEvents drop_by_receive(const Graph& graph, const StreamAssignment& on, const CompatEvents& events) {
  const Lists records = lists_by(graph, events, [](const CompatEvent& e) { return e.from; });
  std::vector<std::uint32_t> stream(graph.node_count(), kNone), event(graph.node_count(), kNone);  // by receiver
  std::vector<std::uint8_t> gone(events.size(), 0);
  for (const NodeId n : by_stream(graph, on)) {
    for (const std::uint32_t i : records.of(n)) {
      const NodeId to = events[i].to;
      if (stream[to.index] == stream_key(on, n)) gone[event[to.index]] = 1;
      stream[to.index] = stream_key(on, n);
      event[to.index] = i;
    }
  }
  return without(events, gone);
}

CompatEvents drop_by_activate(const Graph& graph, const StreamAssignment& on, const Activation& activation, const CompatEvents& events) {
  if (activation.empty()) return events;
  std::vector<std::vector<std::uint32_t>> starters(on.streams.size());  // activators, loops included
  for (std::uint32_t a = 0; a < activation.activators.size(); ++a) {
    for (const StreamId s : activation.activators[a].streams) starters[s.index].push_back(a);
  }
  const std::vector<std::uint32_t> place = places(graph);
  std::vector<std::vector<NodeId>> in(graph.node_count());
  for (const NodeId n : graph.nodes()) {
    for (const InputRef ref : graph.inputs(n)) {
      const auto v = ref.get();
      if (const auto p = v ? graph.producer(*v) : std::nullopt) in[n.index].push_back(*p);
    }
  }
  std::vector<std::vector<NodeId>> control(graph.node_count());
  for (const ControlEdge& e : graph.control_edges()) control[e.to.index].push_back(e.from);
  for (const NodeId n : graph.nodes()) in[n.index].insert(in[n.index].end(), control[n.index].begin(), control[n.index].end());
  const auto next_iteration = [&](NodeId n) {
    const auto& from = control[n.index];
    return !from.empty() && std::all_of(from.begin(), from.end(), [&](NodeId p) {
      return graph.type(p) == "NextIteration" || graph.type(p) == "RefNextIteration";
    });
  };

  std::vector<std::uint8_t> gone(events.size(), 0);
  std::vector<std::uint32_t> visited(activation.activators.size(), kNone);
  const auto implied = [&](std::uint32_t i) {
    const NodeId u = events[i].from, v = events[i].to;
    if (!on.placement[u] || !on.placement[v]) return false;
    std::vector<std::uint32_t> now = starters[on.placement[v]->stream.index];
    while (!now.empty()) {
      std::vector<std::uint32_t> above;
      for (const std::uint32_t a : now) {
        const Activator& alpha = activation.activators[a];
        const auto& roles = graph.annotations().roles.get(alpha.node);
        if (visited[a] == i || (roles && roles->loop_active)) return false;
        visited[a] = i;
        if (next_iteration(alpha.node)) continue;
        for (const NodeId p : in[alpha.node.index]) {
          if (on.placement[p] && on.placement[p]->stream == on.placement[u]->stream && place[p.index] >= place[u.index]) return true;
          if (std::find(in[p.index].begin(), in[p.index].end(), u) != in[p.index].end()) return true;
        }
        if (!on.placement[alpha.node]) continue;
        const auto& more = starters[on.placement[alpha.node]->stream.index];
        above.insert(above.end(), more.begin(), more.end());
      }
      now = std::move(above);
    }
    return false;
  };
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    if (graph.annotations().label.get(events[i].to)) gone[i] = implied(i) ? 1 : 0;
  }
  return without(events, gone);
}

CompatEvents drop_switch_sends(const Graph& graph, const CompatEvents& events) {
  if (!graph.strings().find("StreamSwitch")) return events;
  CompatEvents out;
  for (const CompatEvent& e : events) {
    if (graph.type(e.from) != "StreamSwitch") out.push_back(e);
  }
  return out;
}

CompatEvents loop_events(const Graph& graph, const StreamAssignment& on, const Activation& activation, const CompatEvents& events) {
  std::uint32_t next_id = 0;
  for (const CompatEvent& e : events) next_id = std::max(next_id, e.id + 1);
  CompatEvents out;
  std::vector<std::optional<NodeId>> last;
  std::vector<std::uint8_t> has_switch(on.streams.size(), 0);
  for (const Activator& a : activation.activators) {
    if (!a.loop || !a.loop_switch || !on.placement[*a.loop_switch]) continue;
    if (last.empty()) {
      last.resize(on.streams.size());
      for (const NodeId n : graph.order()) {
        if (!on.placement[n]) continue;
        last[on.placement[n]->stream.index] = n;
        if (graph.type(n) == "StreamSwitch") has_switch[on.placement[n]->stream.index] = 1;
      }
    }
    for (const StreamId s : a.streams) {
      if (!last[s.index] || has_switch[s.index] != 0 || graph.scope_of(*last[s.index]).index != 0) continue;
      if (s == on.placement[*a.loop_switch]->stream) continue;
      out.push_back({next_id++, *last[s.index], *a.loop_switch, PairReason::loop});
    }
  }
  const ControlFlow flow(graph);
  if (!flow.scoped()) return out;
  for (const SyncPair& p : scope_pairs(graph, on, activation, flow)) {
    if (p.reason != PairReason::loop || graph.scope_of(p.to).index == 0) continue;
    if (on.placement[p.from]->stream != on.placement[p.to]->stream) out.push_back({next_id++, p.from, p.to, p.reason});
  }
  return out;
}

Result<CompatResult> compat_events(const Graph& graph, const StreamAssignment& on, const Activation& activation) {
  CompatResult out;
  MST_TRY(out.events, insert_events(graph, on, activation));
  const auto size = [&] { return static_cast<std::uint32_t>(out.events.size()); };
  out.counts.inserted = size();
  out.events = drop_by_send(graph, on, out.events);
  out.counts.after_send = size();
  out.events = drop_by_receive(graph, on, out.events);
  out.counts.after_receive = size();
  out.events = drop_by_activate(graph, on, activation, out.events);
  out.counts.after_activate = size();
  out.events = drop_switch_sends(graph, out.events);
  out.counts.after_switch = size();
  return out;
}

}  // namespace millstream
