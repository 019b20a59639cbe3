// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/activate.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/control_types.h"

namespace millstream {
namespace {

using Streams = std::vector<std::uint32_t>;

bool contains(const Streams& list, std::uint32_t s) { return std::find(list.begin(), list.end(), s) != list.end(); }

void add(Streams& list, std::uint32_t s) {
  if (!contains(list, s)) list.push_back(s);
}

std::string node_name(const Graph& graph, NodeId n) { return quote_name(graph.name(n)); }

bool has_own_list(const Graph& graph, NodeId n) {
  const auto& labels = graph.annotations().activates.get(n);
  const auto& streams = graph.annotations().activates_streams.get(n);
  return (labels && !labels->empty()) || (streams && !streams->empty());
}

// Logical streams that nodes with each of the labels lie on, ascending.
std::map<std::uint32_t, Streams> labelled_streams(const Graph& graph, const StreamAssignment& on) {
  std::map<std::uint32_t, Streams> out;
  const auto& labels = graph.annotations().label;
  if (labels.empty()) return out;
  for (const NodeId n : graph.nodes()) {
    const auto& label = labels.get(n);
    if (label && on.placement[n]) add(out[label->index], on.placement[n]->stream.index);
  }
  for (auto& [label, streams] : out) std::sort(streams.begin(), streams.end());
  return out;
}

// By logical stream, the attached streams of its nodes that start and end with it: those of a head stream are
// heads themselves, and what a scope's first activation starts is in its list already.
std::vector<Streams> attached_streams(const StartInput& in) {
  std::vector<Streams> out;
  if (in.on.attached.empty()) return out;
  out.resize(in.on.streams.size());
  std::vector<std::uint8_t> head(in.on.streams.size(), 0);
  for (const NodeId n : in.graph.nodes()) {
    const auto& list = in.on.attached.get(n);
    if (!list || !in.on.placement[n]) continue;
    const StreamId main = in.on.placement[n]->stream;
    for (const StreamId a : *list) {
      add(out[main.index], a.index);
      if (a.index < in.activation.started_by.size()) {
        for (const NodeId by : in.activation.started_by[a]) {
          const auto& roles = in.graph.annotations().roles.get(by);
          if (roles && roles->first_active) head[a.index] = 1;
        }
      }
      if (main.index >= in.activation.started_by.size() || in.activation.started_by[main].empty()) head[a.index] = 1;
    }
  }
  for (Streams& list : out) {
    list.erase(std::remove_if(list.begin(), list.end(), [&](std::uint32_t a) { return head[a] != 0; }), list.end());
    std::sort(list.begin(), list.end());
  }
  return out;
}

Streams with_pieces(const StartInput& in, const Streams& logical, const std::vector<Streams>& attached,
                    const std::optional<ScopeId>& only_scope) {
  Streams out = logical;
  for (std::size_t i = 0; i < in.splitting.points.size(); ++i) {
    const SplitPoint& p = in.splitting.points[i];
    if (!contains(logical, in.splitting.logical_of[i].index)) continue;
    if (only_scope && in.graph.scope_of(p.node) != *only_scope) continue;
    add(out, p.opened.index);
  }
  if (!attached.empty()) {
    for (const std::uint32_t s : logical) {
      if (s >= attached.size()) continue;
      for (const std::uint32_t a : attached[s]) add(out, a);
    }
  }
  return out;
}

// Linear.
bool runs_before(const Graph& graph, NodeId a, NodeId b) {
  for (const NodeId n : graph.order()) {
    if (n == a || n == b) return n == a;
  }
  return false;
}

void collect_started(Starts& starts, const Graph& graph) {
  Streams all;
  for (const StartList& list : starts.lists) {
    if (list.loop && !has_own_list(graph, list.node)) continue;
    all.insert(all.end(), list.streams.begin(), list.streams.end());
  }
  for (const RelayStream& relay : starts.relays) {
    all.push_back(relay.stream);
    all.insert(all.end(), relay.targets.begin(), relay.targets.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  starts.started = std::move(all);
}

// By physical stream: its last node, whether it holds a StreamSwitch, its first node; and each activator's stream.
struct Lanes {
  std::vector<std::optional<NodeId>> first, last;
  std::vector<std::uint8_t> holds_switch;
  std::vector<std::uint32_t> stream_of;  // by StartList
  Lanes(const StartInput& in, const Starts& starts)
      : first(starts.streams), last(starts.streams), holds_switch(starts.streams, 0), stream_of(starts.lists.size(), 0) {
    const auto sw = in.graph.strings().find("StreamSwitch");
    std::vector<std::pair<NodeId, std::uint32_t>> of;
    for (std::uint32_t i = 0; i < starts.lists.size(); ++i) of.push_back({starts.lists[i].node, i});
    std::sort(of.begin(), of.end());
    PieceWalk walk(in.on, in.splitting);
    for (const NodeId n : in.graph.order()) {
      if (!in.on.placement[n]) continue;
      const std::uint32_t s = walk.next(n);
      if (!first[s]) first[s] = n;
      last[s] = n;
      if (sw && in.graph.type_id(n) == *sw) holds_switch[s] = 1;
      const auto it = std::lower_bound(of.begin(), of.end(), std::pair<NodeId, std::uint32_t>(n, 0));
      if (it != of.end() && it->first == n) stream_of[it->second] = s;
    }
  }
};

std::vector<NodeId> control_predecessors(const Graph& graph, NodeId n) {
  std::vector<NodeId> out;
  for (const ControlEdge& e : graph.control_edges()) {
    if (e.to == n) out.push_back(e.from);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<NodeId> switch_before(const Graph& graph, NodeId active) {
  const auto near = control_predecessors(graph, active);
  for (const NodeId p : near) {
    if (graph.type(p) == "StreamSwitch") return p;
  }
  for (const NodeId p : near) {
    for (const NodeId q : control_predecessors(graph, p)) {
      if (graph.type(q) == "StreamSwitch") return q;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Starts> update_starts(const StartInput& in) {
  Starts out;
  out.streams = in.splitting.streams;
  const std::vector<Streams> attached = attached_streams(in);
  for (const Activator& a : in.activation.activators) {
    StartList list{a.node, {}, a.loop, in.graph.type(a.node).substr(0, 12) == "StreamSwitch"};
    for (const StreamId s : a.streams) {
      if (s.index >= in.on.streams.size()) {
        return Error{ErrorCode::control_flow, fmt::format("{} starts stream {}, but there are {} logical streams", node_name(in.graph, a.node),
                                                          s.index, in.on.streams.size())};
      }
      list.streams.push_back(s.index);
    }
    const bool planned = list.is_switch || (a.loop && !has_own_list(in.graph, a.node));
    if (!planned) {
      std::optional<ScopeId> only;
      if (in.mode == SyncMode::compat) only = in.graph.scope_of(a.node);
      list.streams = with_pieces(in, list.streams, attached, only);
    }
    out.lists.push_back(std::move(list));
  }
  collect_started(out, in.graph);
  // Pieces that begin inside a scope, of streams that nothing starts.
  for (std::size_t i = 0; i < in.splitting.points.size(); ++i) {
    const SplitPoint& p = in.splitting.points[i];
    const ScopeId scope = in.graph.scope_of(p.node);
    if (scope == ScopeId(0) || in.graph.annotations().label.get(p.node)) continue;
    const auto started = [&](std::uint32_t s) { return std::binary_search(out.started.begin(), out.started.end(), s); };
    if (started(p.opened.index) || started(in.splitting.logical_of[i].index)) continue;
    for (StartList& list : out.lists) {
      const auto& roles = in.graph.annotations().roles.get(list.node);
      if (!roles || !roles->first_active || in.graph.scope_of(list.node) != scope) continue;
      // A cut before the activation, on its own stream: it stands on the piece.
      if (in.on.placement[list.node]->stream == in.splitting.logical_of[i] && runs_before(in.graph, p.node, list.node)) break;
      add(list.streams, p.opened.index);
      std::sort(list.streams.begin(), list.streams.end());
      break;
    }
  }
  collect_started(out, in.graph);
  return out;
}

Result<Starts> expand_switches(const StartInput& in, Starts starts) {
  const bool any = std::any_of(starts.lists.begin(), starts.lists.end(), [](const StartList& l) { return l.is_switch; });
  if (!any) return starts;
  const auto labelled = labelled_streams(in.graph, in.on);
  const std::vector<Streams> attached = attached_streams(in);
  for (std::size_t i = 0; i < starts.lists.size(); ++i) {
    StartList& list = starts.lists[i];
    if (!list.is_switch) continue;
    std::vector<Streams> branches;
    if (const auto& labels = in.graph.annotations().activates.get(list.node); labels && !labels->empty()) {
      for (const StringId label : *labels) {
        const auto it = labelled.find(label.index);
        if (it == labelled.end()) {
          return Error{ErrorCode::control_flow, fmt::format("switch {}: no stream carries label {}", node_name(in.graph, list.node),
                                                            quote(in.graph.text(label)))}
              .help("give a node of that branch the label, or take the label out of the switch");
        }
        branches.push_back(with_pieces(in, it->second, attached, std::nullopt));
      }
    } else {
      for (const StreamId s : in.activation.activators[i].by_index) branches.push_back(with_pieces(in, {s.index}, attached, std::nullopt));
    }
    if (branches.empty() || (in.graph.type(list.node) == "StreamSwitch" && branches.size() != 1)) {
      return Error{ErrorCode::control_flow, fmt::format("switch {} has {} targets, a {} has {}", node_name(in.graph, list.node), branches.size(),
                                                        in.graph.type(list.node), branches.empty() ? "at least one" : "exactly one")};
    }
    list.streams.clear();
    for (std::uint32_t b = 0; b < branches.size(); ++b) {
      if (branches[b].size() == 1) {
        list.streams.push_back(branches[b][0]);
        continue;
      }
      list.streams.push_back(starts.streams);
      starts.relays.push_back({list.node, b, starts.streams++, std::move(branches[b])});
    }
  }
  collect_started(starts, in.graph);
  return starts;
}

Result<Starts> start_loops(const StartInput& in, Starts starts) {
  const auto plain_loop = [&](const StartList& l) { return l.loop && !has_own_list(in.graph, l.node); };
  if (std::none_of(starts.lists.begin(), starts.lists.end(), plain_loop)) return starts;
  Streams loose;
  for (std::uint32_t s = 0; s < starts.streams; ++s) {
    if (!std::binary_search(starts.started.begin(), starts.started.end(), s)) loose.push_back(s);
  }
  const Lanes lanes(in, starts);
  for (StartList& list : starts.lists) {
    if (!plain_loop(list)) continue;
    const auto sw = switch_before(in.graph, list.node);
    if (!sw) {
      return Error{ErrorCode::control_flow, fmt::format("no switch before loop activation {}", node_name(in.graph, list.node))}
          .note("a StreamSwitch must be its control predecessor, or a control predecessor of one")
          .help("add the control edge from the switch that ends the loop");
    }
    list.streams = loose;
    if (in.mode != SyncMode::compat) continue;
    for (const std::uint32_t s : loose) {
      if (!lanes.last[s] || lanes.holds_switch[s] != 0 || in.graph.scope_of(*lanes.last[s]) != ScopeId(0)) continue;
      starts.loop_pairs.push_back({*lanes.last[s], *sw, PairReason::loop});
    }
  }
  return starts;
}

Result<void> check_starts(const StartInput& in, const Starts& starts) {
  if (starts.lists.empty()) return {};
  const Lanes lanes(in, starts);
  for (std::size_t i = 0; i < starts.lists.size(); ++i) {
    const StartList& list = starts.lists[i];
    for (const std::uint32_t s : list.streams) {
      if (s >= starts.streams) {
        return Error{ErrorCode::control_flow, fmt::format("{} starts stream {}, but there are {} streams", node_name(in.graph, list.node), s,
                                                          starts.streams)};
      }
      if (s == lanes.stream_of[i]) {
        return Error{ErrorCode::self_activation, fmt::format("node {} activates its own stream {}", node_name(in.graph, list.node), s)}
            .help("place the node on another stream, or take its stream out of the list");
      }
    }
  }
  // Which streams run: heads, and what streams that run start.
  std::vector<std::uint8_t> runs(starts.streams, 1);
  for (const std::uint32_t s : starts.started) runs[s] = 0;
  for (bool more = true; more;) {
    more = false;
    const auto start = [&](const Streams& list) {
      for (const std::uint32_t s : list) {
        more = more || runs[s] == 0;
        runs[s] = 1;
      }
    };
    for (std::size_t i = 0; i < starts.lists.size(); ++i) {
      if (runs[lanes.stream_of[i]] != 0) start(starts.lists[i].streams);
    }
    for (const RelayStream& relay : starts.relays) {
      if (runs[relay.stream] != 0) start(relay.targets);
    }
  }
  for (const std::uint32_t s : starts.started) {
    if (runs[s] != 0) continue;
    Error e{ErrorCode::never_activated,
            fmt::format("stream {} is never activated; its first node is {}", s,
                        lanes.first[s] ? node_name(in.graph, *lanes.first[s]) : "that of a switch's branch")};
    for (std::size_t i = 0; i < starts.lists.size(); ++i) {
      if (!contains(starts.lists[i].streams, s)) continue;
      e.note(fmt::format("{} would start it, but stands on stream {}, which never runs", node_name(in.graph, starts.lists[i].node),
                         lanes.stream_of[i]));
    }
    for (const RelayStream& relay : starts.relays) {
      if (contains(relay.targets, s)) e.note(fmt::format("switch {} would start it by stream {}, which never runs", node_name(in.graph, relay.switch_node), relay.stream));
    }
    return std::move(e.help("start one of these streams from a stream that begins with the model"));
  }
  return {};
}

Result<Starts> plan_starts(const StartInput& in) {
  MST_TRY(Starts starts, update_starts(in));
  MST_TRY(starts, expand_switches(in, std::move(starts)));
  MST_TRY(starts, start_loops(in, std::move(starts)));
  MST_TRY_VOID(check_starts(in, starts));
  return starts;
}

}  // namespace millstream
