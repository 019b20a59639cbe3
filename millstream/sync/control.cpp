// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/control.h"

#include <algorithm>

namespace millstream {
namespace {

bool one_of(std::string_view type, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), type) != names.end();
}
bool is_call(std::string_view type) {
  return one_of(type, {"PartitionedCall", "StatefulPartitionedCall", "StatelessPartitionedCall"});
}
bool is_choice(std::string_view type) { return one_of(type, {"If", "StatelessIf", "_If", "Case", "StatelessCase"}); }
bool is_loop(std::string_view type) {
  return one_of(type, {"While", "StatelessWhile", "_While", "For", "Loop", "Scan"});
}
bool is_jump(std::string_view type) {
  return one_of(type, {"LabelGoto", "LabelGotoEx", "LabelSwitch", "LabelSwitchByIndex"});
}

// Whether the graph has any node of these types: one look-up in its names.
bool has_type(const Graph& graph, std::initializer_list<std::string_view> types) {
  return std::any_of(types.begin(), types.end(), [&](std::string_view t) { return graph.strings().find(t).has_value(); });
}

}  // namespace

bool is_stream_switch(std::string_view type) { return type == "StreamSwitch" || type == "StreamSwitchN"; }
bool is_enter(std::string_view type) { return type == "Enter" || type == "RefEnter"; }

ControlFlow::ControlFlow(const Graph& graph) : graph_(graph) {
  if (has_type(graph, {"LabelGoto", "LabelGotoEx", "LabelSwitch", "LabelSwitchByIndex"})) {
    place_.resize(graph.node_count());
    for (std::size_t i = 0; i < graph.order().size(); ++i) {
      const NodeId n = graph.order()[i];
      place_[n.index] = static_cast<std::uint32_t>(i);
      if (!is_jump(graph.type(n))) continue;
      const Attrs& attrs = graph.attrs(n);
      for (const std::int64_t label : attrs.get_ints("label_list")) jumps_.push_back({label, n});
      if (attrs.has("label_index")) jumps_.push_back({attrs.get_int("label_index", 0), n});
    }
    std::stable_sort(jumps_.begin(), jumps_.end(), [](const Jump& a, const Jump& b) { return a.label < b.label; });
  }
  if (graph.scope_count() == 1) return;

  scopes_.resize(graph.scope_count());
  struct Seen {
    bool jumps_back = false, labels = false;
    std::optional<NodeId> net_output, jump;
  };
  std::vector<Seen> seen(scopes_.size());
  for (const NodeId n : graph.order()) {
    const ScopeId s = graph.scope_of(n);
    const std::string_view type = graph.type(n);
    ScopeInfo& info = scopes_[s.index];
    Seen& here = seen[s.index];
    if (const auto& roles = graph.annotations().roles.get(n)) {
      if (roles->first_active && !info.first_active) info.first_active = n;
      if (roles->end_node && !info.end) info.end = n;
    }
    if (type == "NetOutput") here.net_output = n;
    if (one_of(type, {"LabelGoto", "LabelGotoEx", "LabelSwitch"})) here.jump = n;
    here.jumps_back = here.jumps_back || type == "LabelGoto";
    here.labels = here.labels || type == "LabelSet" || is_jump(type);
  }
  // Parents stand before children.
  std::vector<std::pair<NodeId, ScopeId>> by_parent;
  for (std::size_t s = 1; s < scopes_.size(); ++s) by_parent.push_back({*graph.scope(ScopeId(s)).parent_node, ScopeId(s)});
  std::stable_sort(by_parent.begin(), by_parent.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < by_parent.size();) {
    const NodeId parent = by_parent[i].first;
    std::size_t end = i;
    bool back = false, labels = false;
    // Others run these scopes, as flatten leaves them: a plan has each of their nodes once for each run of the parent.
    bool apart = graph.scope(graph.scope_of(parent)).dynamic || graph.annotations().thread_scope.get(parent);
    for (; end < by_parent.size() && by_parent[end].first == parent; ++end) {
      back = back || seen[by_parent[end].second.index].jumps_back;
      labels = labels || seen[by_parent[end].second.index].labels;
      apart = apart || graph.scope(by_parent[end].second).dynamic;
    }
    apart = apart && !labels;
    const std::string_view type = graph.type(parent);
    const bool loop = !apart && (back || is_loop(type));
    const bool choice = !apart && !loop && !is_call(type) && (labels || is_choice(type));
    for (std::size_t j = i; j < end; ++j) {
      const ScopeId s = by_parent[j].second;
      ScopeInfo& info = scopes_[s.index];
      info.repeats = loop;
      info.guarded = labels && (loop || choice);
      info.conditional = choice || (loop && (back ? seen[s.index].jumps_back : j != i));
      if (!info.end && !info.conditional && !loop) info.end = seen[s.index].net_output;
      info.closing = seen[s.index].jump ? seen[s.index].jump : info.end;
      if (info.end) {
        if (ends_.empty() || ends_.back().first != parent) ends_.push_back({parent, {}});
        ends_.back().second.push_back(*info.end);
      }
    }
    i = end;
  }
  for (std::size_t s = 1; s < scopes_.size(); ++s) {
    const ScopeInfo& parent = scopes_[graph.scope(ScopeId(s)).parent.index];
    scopes_[s].in_loop = scopes_[s].repeats || parent.in_loop;
    scopes_[s].guarded = scopes_[s].guarded || parent.guarded;
  }
}

ScopeId ControlFlow::child_of(ScopeId above, ScopeId s) const {
  while (graph_.scope(s).parent != above) s = graph_.scope(s).parent;
  return s;
}

bool ControlFlow::inside(ScopeId s, ScopeId above) const {
  while (s.index > above.index) s = graph_.scope(s).parent;
  return s == above;
}

ScopeId ControlFlow::common(ScopeId a, ScopeId b) const {
  // A parent's id is smaller, so the larger of two different ones is not common.
  while (a != b) {
    if (a.index > b.index) {
      a = graph_.scope(a).parent;
    } else {
      b = graph_.scope(b).parent;
    }
  }
  return a;
}

const std::vector<NodeId>& ControlFlow::ends_of(NodeId n) const {
  const auto at = std::lower_bound(ends_.begin(), ends_.end(), n, [](const auto& e, NodeId k) { return e.first < k; });
  return at != ends_.end() && at->first == n ? at->second : none_;
}

ScopeId ControlFlow::region_of(NodeId n) const {
  ScopeId s = graph_.scope_of(n);
  if (scopes_.empty() || s.index == 0) return ScopeId(0);
  if (scopes_[s.index].end == n) s = graph_.scope(s).parent;
  while (s.index != 0 && !scopes_[s.index].conditional && !scopes_[s.index].repeats) s = graph_.scope(s).parent;
  return s;
}

bool ControlFlow::leaves(NodeId n) const { return !jumps_.empty() && is_jump(graph_.type(n)); }

bool ControlFlow::is_target(NodeId n) const { return !jumps_.empty() && graph_.type(n) == "LabelSet"; }

std::vector<NodeId> ControlFlow::jumps_to(NodeId label) const {
  std::vector<NodeId> out;
  if (!is_target(label)) return out;
  const std::int64_t index = graph_.attrs(label).get_int("label_index", -1);
  auto at = std::lower_bound(jumps_.begin(), jumps_.end(), index, [](const Jump& j, std::int64_t k) { return j.label < k; });
  for (; at != jumps_.end() && at->label == index; ++at) {
    if (place_[at->from.index] < place_[label.index] && (out.empty() || out.back() != at->from)) out.push_back(at->from);
  }
  return out;
}

}  // namespace millstream
