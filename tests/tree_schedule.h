// SPDX-License-Identifier: Apache-2.0
// A plain way from a graph with scopes to a schedule, for tests of the checkers: random streams, a pair for
// every edge between two of them, no reduction. Shares nothing with assign, sync and lower.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "millstream/schedule/schedule.h"
#include "tests/random_tree.h"

namespace millstream::testing {

class TreeScheduler {
 public:
  TreeScheduler(Random& random, const Graph& graph) : random_(random), graph_(graph), stream_of_(graph.node_count()), deps_(graph) {}

  /// Random streams for a tree: each scope shares its parent node's, and may have own ones, which its first
  /// activation starts. Attached streams as the nodes ask for, shared by key.
  StreamAssignment assignment() {
    place();
    StreamAssignment on;
    on.rules = {"test"};
    on.reasons = {"the test says so"};
    on.placement = IdVec<NodeId, std::optional<Placement>>(graph_.node_count());
    std::vector<std::optional<StreamId>> used(streams_.size());  // ids are dense
    for (const NodeId n : graph_.nodes()) {
      if (stream_of_[n]) used[*stream_of_[n]] = StreamId(0);
    }
    for (auto& u : used) {
      if (u) u = on.new_stream();
    }
    for (const NodeId n : graph_.nodes()) {
      if (stream_of_[n]) on.placement[n] = Placement{*used[*stream_of_[n]], RuleId(0)};
    }
    std::map<std::string, StreamId> shared;
    for (const NodeId n : graph_.nodes()) {
      const auto& wants = graph_.annotations().attached.get(n);
      if (!wants || !stream_of_[n]) continue;
      StreamInfo info;
      info.attached = true;
      std::optional<StreamId> a;
      // A key is one stream in a scope: outside a branch or loop it cannot be the one inside.
      const std::string key = wants->front().reuse_key.empty() ? "" : fmt::format("{}@{}", wants->front().reuse_key, graph_.scope_of(n).index);
      if (!key.empty() && shared.count(key) != 0) a = shared.at(key);
      if (!a) a = on.new_stream(info);
      if (!key.empty()) shared.emplace(key, *a);
      on.attached.set(n, {*a});
    }
    return on;
  }

  Schedule build() {
    place();
    find_pairs();
    Schedule out;
    out.streams.resize(streams_.size());
    std::vector<std::vector<EventId>> waits(graph_.node_count()), records(graph_.node_count());
    for (const auto& [from, to] : pairs_) {
      const EventId e(out.event_count++);
      records[from.index].push_back(e);
      waits[to.index].push_back(e);
    }
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(streams_.size())) out.streams[s].logical = StreamId(s.index);
    out.logical_streams = static_cast<std::uint32_t>(streams_.size());
    for (const NodeId n : graph_.order()) {
      if (!stream_of_[n]) continue;
      std::vector<Task>& lane = out.streams[PhysicalStreamId(*stream_of_[n])].tasks;
      for (const EventId e : waits[n.index]) lane.push_back(Task::wait(e));
      emit(out, lane, n);
      for (const EventId e : records[n.index]) lane.push_back(Task::record(e));
    }
    return out;
  }

 private:
  bool owner(NodeId n) const { return !graph_.scopes_under(n).empty(); }
  bool rts(NodeId n) const {
    const auto& r = graph_.annotations().roles.get(n);
    return r && r->rts_label;
  }
  bool first_active(NodeId n) const {
    const auto& r = graph_.annotations().roles.get(n);
    return r && r->first_active;
  }

  void place() {
    // Streams of a scope: its parent's, then its own.
    std::vector<std::vector<std::uint32_t>> of_scope(graph_.scope_count());
    for (std::size_t i = 1 + random_.below(3); i > 0; --i) of_scope[0].push_back(new_stream(ScopeId(0)));
    for (const NodeId n : graph_.order()) {
      const ScopeId s = graph_.scope_of(n);
      auto& mine = of_scope[s.index];
      if (mine.empty()) {
        mine.push_back(*stream_of_[*graph_.scope(s).parent_node]);
        for (std::size_t i = random_.below(3); i > 0; --i) mine.push_back(new_stream(s));
      }
      if (graph_.type(n) == "Data") continue;
      stream_of_[n] = rts(n) ? mine[0] : mine[random_.below(mine.size())];
    }
  }
  std::uint32_t new_stream(ScopeId s) {
    streams_.push_back(s);
    return static_cast<std::uint32_t>(streams_.size() - 1);
  }

  void pair(NodeId from, NodeId to) {
    if (!stream_of_[from] || !stream_of_[to] || *stream_of_[from] == *stream_of_[to]) return;
    if (first_active(from) && streams_[*stream_of_[to]] == graph_.scope_of(from)) return;  // it starts that stream
    pairs_.insert({from, to});
  }
  bool in_loop(ScopeId s) const {
    for (; s.index != 0; s = graph_.scope(s).parent) {
      if (graph_.type(*graph_.scope(s).parent_node) == "While") return true;
    }
    return false;
  }

  void find_pairs() {
    IdVec<ScopeId, std::optional<NodeId>> end(graph_.scope_count()), closing(graph_.scope_count());
    for (const NodeId n : graph_.order()) {
      const ScopeId s = graph_.scope_of(n);
      const auto& r = graph_.annotations().roles.get(n);
      if (r && r->end_node) end[s] = n;
      const std::string_view type = graph_.type(n);
      if (type == "LabelSwitch" || type == "LabelGoto" || type == "LabelGotoEx") closing[s] = n;
      if (r && r->end_node && !closing[s]) closing[s] = n;
    }
    for (const NodeId v : graph_.nodes()) {
      for (const NodeId u : deps_.predecessors(v)) {
        if (graph_.scope_of(u) != graph_.scope_of(v)) continue;
        pair(u, v);
        if (!owner(u)) continue;
        for (const ScopeId s : graph_.scopes_under(u)) {
          if (end[s]) pair(*end[s], v);
        }
      }
    }
    // What a loop starts ends before the scope does.
    for (std::uint32_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].index == 0 || !in_loop(streams_[s])) continue;
      std::optional<NodeId> last;
      for (const NodeId n : graph_.order()) {
        if (stream_of_[n] == s) last = n;
      }
      if (last) pair(*last, *closing[streams_[s]]);
    }
  }

  void emit(Schedule& out, std::vector<Task>& lane, NodeId n) {
    const std::string_view type = graph_.type(n);
    const auto control = [&](Task::Kind kind, std::vector<std::uint32_t> targets) {
      lane.push_back({kind, static_cast<std::uint32_t>(out.controls.size())});
      out.controls.push_back({n, std::move(targets)});
    };
    const auto labels = [&](std::string_view key) {
      std::vector<std::uint32_t> l;
      for (const std::int64_t v : graph_.attrs(n).get_ints(key)) l.push_back(static_cast<std::uint32_t>(v));
      return l;
    };
    const auto index = static_cast<std::uint32_t>(graph_.attrs(n).get_int("label_index", 0));
    if (type == "LabelSet") {
      out.label_count = std::max(out.label_count, index + 1);
      control(Task::Kind::label, {index});
    } else if (type == "LabelGoto" || type == "LabelGotoEx") {
      control(Task::Kind::jump, {index});
    } else if (type == "LabelSwitch" || type == "LabelSwitchByIndex") {
      control(Task::Kind::branch, labels("label_list"));
    } else if (type == "StreamActive") {
      for (std::uint32_t s = 0; s < streams_.size(); ++s) {
        if (streams_[s] == graph_.scope_of(n) && s != *stream_of_[n]) control(Task::Kind::activate, {s});
      }
    } else if (type != "NetOutput" && !owner(n)) {
      lane.push_back(Task::launch(n));
    }
  }

  Random& random_;
  const Graph& graph_;
  IdVec<NodeId, std::optional<std::uint32_t>> stream_of_;
  Dependencies deps_;
  std::vector<ScopeId> streams_;  // the scope that starts each
  std::set<std::pair<NodeId, NodeId>> pairs_;
};

}  // namespace millstream::testing
