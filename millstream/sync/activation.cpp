// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/activation.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/control.h"

namespace millstream {
namespace {

bool in(const std::vector<StreamId>& list, StreamId s) { return std::find(list.begin(), list.end(), s) != list.end(); }

class ActivationPlanner {
 public:
  ActivationPlanner(const Graph& graph, const StreamAssignment& on) : graph_(graph), on_(on), notes_(graph.annotations()) {}

  Result<Activation> run() {
    if (!needed()) return Activation{};
    specific_ = IdVec<StreamId, std::uint8_t>(on_.streams.size(), 0);
    index_labels();
    MST_TRY_VOID(by_list());
    if (graph_.scope_count() > 1) by_scope();
    MST_TRY_VOID(by_loop());
    if (!on_.attached.empty() && graph_.scope_count() > 1) MST_TRY_VOID(attach_in_scopes());
    order_and_attach();
    for (const Activator& a : out_.activators) MST_TRY_VOID(check_own(a));
    MST_TRY_VOID(check_reached());
    out_.started_by = IdVec<StreamId, std::vector<NodeId>>(on_.streams.size());
    for (const Activator& a : out_.activators) {
      if (a.loop) continue;
      for (const StreamId s : a.streams) out_.started_by[s].push_back(a.node);
    }
    return std::move(out_);
  }

 private:
  bool needed() const {
    return graph_.scope_count() > 1 || !notes_.activates.empty() || !notes_.activates_streams.empty() || !notes_.roles.empty() ||
           graph_.strings().find("StreamSwitch") || graph_.strings().find("StreamSwitchN");
  }

  // Streams of each stream label, ascending.
  void index_labels() {
    // Where labels were not asked, as in a baseline of one stream, all nodes share a stream that carries none.
    const bool ignored = on_.streams.size() <= 1 && (on_.streams.empty() || on_.streams[StreamId(0)].label.empty());
    for (const NodeId n : graph_.nodes()) {
      const auto& label = notes_.label.get(n);
      if (!label || !on_.placement[n]) continue;
      std::vector<StreamId>& list = by_label_[graph_.text(*label)];
      if (!ignored && !in(list, on_.placement[n]->stream)) list.push_back(on_.placement[n]->stream);
    }
    for (auto& [label, list] : by_label_) std::sort(list.begin(), list.end());
  }

  Result<void> by_list() {
    // A dump's ids are those that it gives its nodes.
    std::map<std::int64_t, StreamId> preset;
    if (!notes_.activates_streams.empty() && !notes_.preset_stream.empty()) {
      for (const NodeId n : graph_.nodes()) {
        const auto& id = notes_.preset_stream.get(n);
        if (id && on_.placement[n]) preset.try_emplace(*id, on_.placement[n]->stream);
      }
    }
    for (const NodeId n : graph_.order()) {
      const auto& labels = notes_.activates.get(n);
      const auto& ids = notes_.activates_streams.get(n);
      const bool is_switch = is_stream_switch(graph_.type(n));
      if (is_switch && (!labels || labels->empty()) && (!ids || ids->empty())) {
        return Error{ErrorCode::control_flow, fmt::format("switch {} names no stream that it starts", name(n))}
            .help("give it @activates(\"LABEL\") with the stream label of the branch");
      }
      if (!labels && !ids) continue;
      Activator a{n, {}};
      if (labels) {
        for (const StringId label : *labels) {
          const auto found = by_label_.find(graph_.text(label));
          if (found == by_label_.end()) {
            if (is_switch) {
              return Error{ErrorCode::control_flow,
                           fmt::format("switch {}: no stream carries label {}", name(n), quote(graph_.text(label)))}
                  .help("the nodes of the branch need that stream label");
            }
            continue;
          }
          for (const StreamId s : found->second) add(a, s);
        }
      }
      if (ids) {
        for (const std::int64_t id : *ids) {
          const auto known = preset.find(id);
          if (known == preset.end() && (id < 0 || static_cast<std::uint64_t>(id) >= on_.streams.size())) {
            return Error{ErrorCode::control_flow, fmt::format("{} starts stream {}, but there are {} streams", name(n), id, on_.streams.size())};
          }
          const StreamId s = known != preset.end() ? known->second : StreamId(static_cast<std::size_t>(id));
          add(a, s);
          if (is_switch) a.by_index.push_back(s);
        }
      }
      const auto& roles = notes_.roles.get(n);
      a.loop = (roles && roles->loop_active) || fed_by_next_iteration(n);
      if (a.loop) MST_TRY_VOID(find_switch(a));
      if (!a.streams.empty()) out_.activators.push_back(std::move(a));
    }
    for (const Activator& a : out_.activators) {
      for (const StreamId s : a.streams) specific_[s] = 1;
    }
    return {};
  }

  // The scope whose first activation starts what belongs to `s`: a body of unknown shapes has none, so what is around
  // it starts its streams. The root: they start with the model.
  ScopeId starting_scope(const ControlFlow& flow, ScopeId s) const {
    while (s.index != 0 && !flow.scope(s).first_active) s = graph_.scope(s).parent;
    return s;
  }

  // A stream is started by the first activation of the smallest scope that holds all of its nodes.
  void by_scope() {
    const ControlFlow flow(graph_);
    IdVec<StreamId, std::optional<ScopeId>> owner(on_.streams.size());
    IdVec<StreamId, std::uint8_t> unlabelled(on_.streams.size(), 0);
    for (const NodeId n : graph_.nodes()) {
      if (!on_.placement[n]) continue;
      auto& s = owner[on_.placement[n]->stream];
      s = s ? flow.common(*s, graph_.scope_of(n)) : graph_.scope_of(n);
      if (!notes_.label.get(n)) unlabelled[on_.placement[n]->stream] = 1;
    }
    std::vector<std::vector<StreamId>> starts(graph_.scope_count());
    for (const StreamId s : ids<StreamId>(on_.streams.size())) {
      if (owner[s]) owner[s] = starting_scope(flow, *owner[s]);
      if (!owner[s] || owner[s]->index == 0 || specific_[s] != 0) continue;
      // A label stream waits for its label; where a jump decides whether it runs it cannot run by itself.
      if (unlabelled[s] != 0 || flow.scope(*owner[s]).guarded) starts[owner[s]->index].push_back(s);
    }
    for (std::size_t s = 1; s < starts.size(); ++s) {
      const auto& first = flow.scope(ScopeId(s)).first_active;
      if (!first) continue;
      Activator a{*first, {}};
      for (const StreamId stream : starts[s]) {
        if (!on_.placement[*first] || on_.placement[*first]->stream != stream) add(a, stream);
      }
      for (const StreamId stream : a.streams) specific_[stream] = 1;
      if (!a.streams.empty()) merge(std::move(a));
    }
  }

  Result<void> by_loop() {
    if (notes_.roles.empty()) return {};
    for (const NodeId n : graph_.order()) {
      const auto& roles = notes_.roles.get(n);
      if (!roles || !roles->loop_active) continue;
      const auto& labels = notes_.activates.get(n);
      const auto& ids_given = notes_.activates_streams.get(n);
      if ((labels && !labels->empty()) || (ids_given && !ids_given->empty())) continue;
      Activator a{n, {}, true};
      MST_TRY_VOID(find_switch(a));
      for (const StreamId s : ids<StreamId>(on_.streams.size())) {
        if (specific_[s] == 0 && !on_.streams[s].attached) a.streams.push_back(s);
      }
      if (!a.streams.empty()) merge(std::move(a));
    }
    return {};
  }

  // The StreamSwitch that is a control predecessor, or one of a control predecessor.
  Result<void> find_switch(Activator& a) const {
    const auto predecessors = [&](NodeId n) {
      std::vector<NodeId> out;
      for (const ControlEdge& e : graph_.control_edges()) {
        if (e.to == n) out.push_back(e.from);
      }
      std::sort(out.begin(), out.end());
      return out;
    };
    const std::vector<NodeId> near = predecessors(a.node);
    for (const NodeId p : near) {
      if (graph_.type(p) == "StreamSwitch") a.loop_switch = p;
      if (a.loop_switch) return {};
    }
    for (const NodeId p : near) {
      for (const NodeId q : predecessors(p)) {
        if (graph_.type(q) == "StreamSwitch") a.loop_switch = q;
        if (a.loop_switch) return {};
      }
    }
    const auto& roles = notes_.roles.get(a.node);
    if (!roles || !roles->loop_active) return {};  // fed by NextIteration: its frame closes elsewhere
    return Error{ErrorCode::control_flow, fmt::format("no switch before loop-active {}", name(a.node))}
        .help("a StreamSwitch must stand at most two control edges before what starts the next iteration");
  }

  bool fed_by_next_iteration(NodeId n) const {
    if (!graph_.strings().find("NextIteration") && !graph_.strings().find("RefNextIteration")) return false;
    bool any = false;
    for (const ControlEdge& e : graph_.control_edges()) {
      if (e.to != n) continue;
      if (graph_.type(e.from) != "NextIteration" && graph_.type(e.from) != "RefNextIteration") return false;
      any = true;
    }
    return any;
  }

  // Into the list that the node has already, if any.
  void merge(Activator a) {
    for (Activator& known : out_.activators) {
      if (known.node != a.node) continue;
      for (const StreamId s : a.streams) add(known, s);
      return;
    }
    out_.activators.push_back(std::move(a));
  }

  static void add(Activator& a, StreamId s) {
    if (!in(a.streams, s)) a.streams.push_back(s);
  }

  // An attached stream whose nodes lie in one scope starts with that scope: its main stream may be the caller's,
  // which runs on while the scope is left out or runs again.
  Result<void> attach_in_scopes() {
    const ControlFlow flow(graph_);
    IdVec<StreamId, std::optional<ScopeId>> owner(on_.streams.size());
    const auto for_each_user = [&](auto visit) -> Result<void> {
      for (const NodeId n : graph_.nodes()) {
        const auto& list = on_.attached.get(n);
        if (!list || !on_.placement[n]) continue;
        for (const StreamId a : *list) MST_TRY_VOID(visit(n, a));
      }
      return {};
    };
    MST_TRY_VOID(for_each_user([&](NodeId n, StreamId a) -> Result<void> {
      owner[a] = owner[a] ? flow.common(*owner[a], graph_.scope_of(n)) : graph_.scope_of(n);
      return {};
    }));
    MST_TRY_VOID(for_each_user([&](NodeId n, StreamId a) -> Result<void> {
      for (ScopeId s = graph_.scope_of(n); s != *owner[a]; s = graph_.scope(s).parent) {
        const ScopeInfo& info = flow.scope(s);
        if (!info.conditional && !info.repeats) continue;
        return Error{ErrorCode::conditional_wait,
                     fmt::format("node {} in graph {} shares attached stream {} with nodes outside, which run when that graph does not", name(n),
                                 quote_name(graph_.scope(s).name), a.index)}
            .help("give the node a reuse key of its own");
      }
      return {};
    }));
    for (const StreamId a : ids<StreamId>(on_.streams.size())) {
      if (owner[a]) owner[a] = starting_scope(flow, *owner[a]);
      if (!owner[a] || owner[a]->index == 0) continue;
      const auto& first = flow.scope(*owner[a]).first_active;
      if (!first) continue;
      merge(Activator{*first, {a}});
      specific_[a] = 1;
    }
    return {};
  }

  void order_and_attach() {
    std::vector<std::uint32_t> place(graph_.node_count());
    for (std::size_t i = 0; i < graph_.order().size(); ++i) place[graph_.order()[i].index] = static_cast<std::uint32_t>(i);
    std::stable_sort(out_.activators.begin(), out_.activators.end(),
                     [&](const Activator& a, const Activator& b) { return place[a.node.index] < place[b.node.index]; });
    if (on_.attached.empty()) return;
    std::vector<std::vector<StreamId>> users(on_.streams.size());  // by attached stream: main streams
    for (const NodeId n : graph_.nodes()) {
      if (const auto& list = on_.attached.get(n); list && on_.placement[n]) {
        for (const StreamId a : *list) {
          if (!in(users[a.index], on_.placement[n]->stream)) users[a.index].push_back(on_.placement[n]->stream);
        }
      }
    }
    std::vector<std::uint8_t> started(on_.streams.size(), 0);  // by what is no loop
    for (const Activator& a : out_.activators) {
      for (const StreamId s : a.streams) started[s.index] = started[s.index] | (a.loop ? 0 : 1);
    }
    for (std::size_t s = 0; s < users.size(); ++s) {
      if (users[s].empty() || specific_[StreamId(s)] != 0) continue;
      const bool runs_from_the_start =
          std::any_of(users[s].begin(), users[s].end(), [&](StreamId u) { return started[u.index] == 0; });
      for (Activator& a : out_.activators) {
        if (runs_from_the_start && !a.loop) continue;
        if (std::any_of(users[s].begin(), users[s].end(), [&](StreamId u) { return in(a.streams, u); })) add(a, StreamId(s));
      }
    }
  }

  Result<void> check_own(const Activator& a) const {
    if (!on_.placement[a.node] || !in(a.streams, on_.placement[a.node]->stream)) return {};
    return Error{ErrorCode::self_activation,
                 fmt::format("node {} activates its own stream {}", name(a.node), on_.placement[a.node]->stream.index)}
        .help("put the node on another stream than those it starts");
  }

  // Whether streams that begin with the model lead to every other one.
  Result<void> check_reached() const {
    IdVec<StreamId, std::uint8_t> runs(on_.streams.size(), 1);
    for (const Activator& a : out_.activators) {
      for (const StreamId s : a.streams) runs[s] = a.loop ? runs[s] : 0;
    }
    // A loop starts again what has run: its own starts count like others, from a stream that runs.
    std::vector<std::vector<std::uint32_t>> on_stream(on_.streams.size());
    std::vector<StreamId> todo;
    for (std::uint32_t a = 0; a < out_.activators.size(); ++a) {
      const auto& p = on_.placement[out_.activators[a].node];
      if (p) on_stream[p->stream.index].push_back(a);
    }
    for (const StreamId s : ids<StreamId>(on_.streams.size())) {
      if (runs[s] != 0) todo.push_back(s);
    }
    while (!todo.empty()) {
      const StreamId s = todo.back();
      todo.pop_back();
      for (const std::uint32_t a : on_stream[s.index]) {
        for (const StreamId t : out_.activators[a].streams) {
          if (runs[t] == 0) todo.push_back(t);
          runs[t] = 1;
        }
      }
    }
    for (const StreamId s : ids<StreamId>(on_.streams.size())) {
      if (runs[s] != 0) continue;
      std::string first = "nothing";
      for (const NodeId n : graph_.order()) {
        if (!on_.placement[n] || on_.placement[n]->stream != s) continue;
        first = name(n);
        break;
      }
      Error e{ErrorCode::never_activated, fmt::format("stream {} is never activated; its first node is {}", s.index, first)};
      for (const Activator& a : out_.activators) {
        if (!in(a.streams, s)) continue;
        const auto& p = on_.placement[a.node];
        e.note(p ? fmt::format("{} would start it, but stands on stream {}, which never runs", name(a.node), p->stream.index)
                 : fmt::format("{} would start it, but has no stream", name(a.node)));
      }
      return std::move(e.help("start one of these streams from a stream that begins with the model"));
    }
    return {};
  }

  std::string name(NodeId n) const { return quote_name(graph_.name(n)); }
  static std::string quote(std::string_view text) { return fmt::format("\"{}\"", text); }

  const Graph& graph_;
  const StreamAssignment& on_;
  const Annotations& notes_;
  std::map<std::string_view, std::vector<StreamId>> by_label_;
  IdVec<StreamId, std::uint8_t> specific_;
  Activation out_;
};

}  // namespace

Result<Activation> plan_activation(const Graph& graph, const StreamAssignment& on) {
  return ActivationPlanner(graph, on).run();
}

}  // namespace millstream
