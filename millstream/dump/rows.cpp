// SPDX-License-Identifier: Apache-2.0
#include "millstream/dump/rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/dump/notes.h"
#include "millstream/schedule/names.h"

namespace millstream::dump {
namespace {

using Visit = std::function<void(const NodeRow&)>;

}  // namespace

Rows::Rows(const Graph& graph, const DumpStreams& streams) : streams_(streams) {
  sections_.push_back({graph.name(), &graph, ScopeId(0), false});
  used_names_.insert(graph.name());
  for (std::size_t s = 1; s < graph.scope_count(); ++s) sections_.push_back({section_name(graph.scope(ScopeId(s)).name), &graph, ScopeId(s), false});
  names_.emplace(&graph, names_of(graph));
  by_scope_.resize(graph.scope_count());
  if (streams.schedule != nullptr) {
    for (const NodeId n : graph.order()) by_scope_[graph.scope_of(n).index].push_back(n);
  } else {
    for (const NodeId n : graph.nodes()) by_scope_[graph.scope_of(n).index].push_back(n);
  }
  for (std::uint32_t s = 1; s < graph.scope_count(); ++s) scopes_of_.push_back({graph.scope(ScopeId(s)).parent_node->index, s});
  std::sort(scopes_of_.begin(), scopes_of_.end());
  add_bodies(graph, "");
  if (streams.schedule != nullptr) place_sync(graph, *streams.schedule);
}

std::string Rows::section_name(std::string wanted) {
  std::string name = wanted;
  for (std::size_t k = 1; !used_names_.insert(name).second; ++k) name = fmt::format("{}_{}", wanted, k);
  return name;
}

void Rows::add_bodies(const Graph& graph, const std::string& prefix) {
  if (graph.body_count() == 0) return;
  for (const NodeId n : graph.nodes()) {
    for (const Body& b : graph.bodies(n)) {
      const std::string name = section_name(fmt::format("{}{}/{}", prefix, graph.name(n), b.attribute));
      const Graph& body = graph.body(b.body);
      section_of_.emplace(&body, sections_.size());
      names_.emplace(&body, names_of(body));
      sections_.push_back({name, &body, ScopeId(0), true});
      add_bodies(body, name + "/");
    }
  }
}

// Each record and wait stands with the node before it, or, behind a wait, with the node after it.
void Rows::place_sync(const Graph& graph, const Schedule& schedule) {
  task_names_ = task_names(graph, schedule);
  lane_.assign(graph.node_count(), -1);
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    const PhysicalStream& stream = schedule.streams[s];
    const std::vector<Task>& tasks = stream.tasks;
    std::optional<std::uint32_t> last;
    std::vector<std::uint32_t> pending;
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      const Task& t = tasks[i];
      if (t.kind == Task::Kind::record || t.kind == Task::Kind::wait) {
        if (last && pending.empty() && t.kind == Task::Kind::record) {
          sync_.push_back({*last, true, s, i});
        } else {
          pending.push_back(i);
        }
        continue;
      }
      const NodeId n = t.is_control() ? schedule.controls[t.index].node : t.node();
      for (const std::uint32_t p : pending) sync_.push_back({n.index, stream.relay, s, p});
      pending.clear();
      last = n.index;
      if (t.kind == Task::Kind::attached) {
        attached_.push_back({n.index, s.index});
      } else if (t.kind == Task::Kind::self_attached) {
        self_attached_.push_back({n.index, s.index});
      } else if (stream.relay) {
        if (relays_.empty() || relays_.back() != std::make_pair(n.index, s)) relays_.push_back({n.index, s});
      } else {
        lane_[n.index] = s.index;
      }
      if (stream.relay || (t.kind != Task::Kind::activate && t.kind != Task::Kind::stream_switch)) continue;
      if (starts_.empty() || starts_.back().first != n.index) starts_.push_back({n.index, {}});
      for (const std::uint32_t target : schedule.controls[t.index].targets) starts_.back().second.push_back(target);
    }
    for (const std::uint32_t p : pending) {
      if (graph.node_count() != 0) sync_.push_back({last.value_or(graph.order().back().index), true, s, p});
    }
  }
  std::stable_sort(sync_.begin(), sync_.end(), [](const SyncAt& a, const SyncAt& b) { return std::pair(a.node, a.after) < std::pair(b.node, b.after); });
  std::sort(attached_.begin(), attached_.end());
  std::sort(self_attached_.begin(), self_attached_.end());
  std::sort(starts_.begin(), starts_.end());
  std::sort(relays_.begin(), relays_.end());
  Names& known = names_.at(&graph);
  for (const SyncAt& s : sync_) {
    if (s.after && schedule.streams[s.stream].tasks[s.task].kind == Task::Kind::record) known.precedes[s.node] = true;
  }
  for (const auto& [owner, stream] : relays_) known.precedes[owner] = true;
}

Rows::Names Rows::names_of(const Graph& graph) const {
  Names out;
  std::vector<bool> node_names(graph.strings().size(), false);
  for (const NodeId n : graph.nodes()) {
    if (const auto id = graph.strings().find(graph.name(n))) node_names[id->index] = true;
  }
  out.of_value.resize(graph.value_count());
  for (const ValueId v : graph.values()) {
    if (graph.producer(v)) continue;
    std::string name(graph.name(v));
    const auto taken = [&](const std::string& text) {
      const auto id = graph.strings().find(text);
      return id && node_names[id->index];
    };
    for (std::size_t k = 1; taken(name); ++k) name = fmt::format("{}_{}", graph.name(v), k);
    out.of_value[v.index] = std::move(name);
  }
  out.read.assign(graph.value_count(), false);
  out.precedes.assign(graph.node_count(), false);
  for (const NodeId n : graph.nodes()) {
    for (const InputRef in : graph.inputs(n)) {
      if (const auto v = in.get()) out.read[v->index] = true;
    }
  }
  if (!graph.control_edges().empty()) out.after.resize(graph.node_count());
  for (const ControlEdge& e : graph.control_edges()) {
    out.precedes[e.from.index] = true;
    out.after[e.to.index].push_back(e.from);
  }
  out.position.resize(graph.node_count());
  for (std::uint32_t i = 0; i < graph.order().size(); ++i) out.position[graph.order()[i].index] = i;
  // Names and order say which outputs are results when each is the first of its node and stands there once.
  std::vector<bool> seen(graph.value_count(), false);
  bool plain = true;
  for (const ValueId v : graph.outputs()) {
    const auto node = graph.producer(v);
    plain = plain && !seen[v.index] && !(node && graph.outputs(*node)[0] != v);
    seen[v.index] = true;
  }
  for (std::size_t place = 0; !plain && place < graph.outputs().size(); ++place) {
    out.results.push_back({graph.outputs()[place].index, static_cast<std::int64_t>(place)});
  }
  std::sort(out.results.begin(), out.results.end());
  return out;
}

void Rows::add_results(const Names& known, ValueId first, std::size_t count, NodeRow& row) const {
  std::vector<std::int64_t> pairs;
  for (auto it = std::lower_bound(known.results.begin(), known.results.end(), std::make_pair(first.index, std::int64_t{0}));
       it != known.results.end() && it->first < first.index + count; ++it) {
    pairs.push_back(it->second << 16 | (it->first - first.index));
  }
  if (!pairs.empty()) row.attrs.push_back({std::string(kGraphOutputs), std::move(pairs)});
}

std::string Rows::source(const Graph& graph, const Names& known, ValueId v) const {
  const auto node = graph.producer(v);
  if (!node) return known.of_value[v.index] + ":0";
  return fmt::format("{}:{}", graph.name(*node), v.index - graph.outputs(*node)[0].index);
}

std::vector<std::pair<std::string, std::int64_t>> Rows::outputs(std::size_t section) const {
  const RowSection& s = sections_[section];
  std::vector<std::pair<std::string, std::int64_t>> out;
  if (s.scope != ScopeId(0)) return out;
  for (const ValueId v : s.graph->outputs()) {
    const auto node = s.graph->producer(v);
    if (node) {
      out.push_back({std::string(s.graph->name(*node)), v.index - s.graph->outputs(*node)[0].index});
    } else {
      out.push_back({names(s).of_value[v.index], 0});
    }
  }
  return out;
}

std::vector<std::string> Rows::inputs(std::size_t section) const {
  const RowSection& s = sections_[section];
  std::vector<std::string> out;
  if (s.scope != ScopeId(0)) return out;
  for (const ValueId v : s.graph->inputs()) out.push_back(names(s).of_value[v.index] + ":0");
  return out;
}

void Rows::value_rows(const RowSection& section, const Names& known, std::int64_t& next_id, const Visit& visit) const {
  const Graph& graph = *section.graph;
  NodeRow row;
  const auto give = [&](ValueId v, std::int64_t what) {
    row.clear();
    row.name = known.of_value[v.index];
    row.type = what == 2 ? "Const" : "Data";
    row.id = next_id++;
    row.stream = -1;
    row.output_descs.push_back(to_row(graph.desc(v)));
    if (known.read[v.index]) row.outputs.push_back(0);
    row.attrs.push_back({std::string(kValueAttr), what});
    if (row.name != graph.name(v)) row.attrs.push_back({std::string(kOutputNames), std::vector<std::string>{std::string(graph.name(v))}});
    if (const Tensor* tensor = graph.constant(v)) row.attrs.push_back({"value", *tensor});
    add_results(known, v, 1, row);
    visit(row);
  };
  for (const ValueId v : graph.inputs()) give(v, 1);
  for (const ValueId v : graph.values()) {
    if (graph.kind(v) == ValueKind::constant) give(v, 2);
    if (graph.kind(v) == ValueKind::outer) give(v, 3);
  }
}

// Nodes and values outside of a scope that nodes in it need, in the order in which they are first needed.
void Rows::outside_rows(const RowSection& section, const Names& known, std::int64_t& next_id, const Visit& visit) const {
  const Graph& graph = *section.graph;
  std::set<std::string> seen;
  NodeRow row;
  const auto begin = [&](std::string_view name) {
    if (!seen.emplace(name).second) return false;
    row.clear();
    row.name = name;
    row.type = "Data";
    row.id = next_id++;
    row.stream = -1;
    return true;
  };
  const auto node = [&](NodeId from) {
    if (graph.scope_of(from) == section.scope || !begin(graph.name(from))) return;
    for (const ValueId v : graph.outputs(from)) {
      row.outputs.push_back(static_cast<std::int64_t>(row.outputs.size()));
      row.output_descs.push_back(to_row(graph.desc(v)));
    }
    row.outputs.push_back(-1);
    visit(row);
  };
  for (const NodeId n : by_scope_[section.scope.index]) {
    for (const InputRef in : graph.inputs(n)) {
      const auto v = in.get();
      if (!v) continue;
      if (const auto from = graph.producer(*v)) {
        node(*from);
      } else if (begin(known.of_value[v->index])) {
        row.outputs.push_back(0);
        row.output_descs.push_back(to_row(graph.desc(*v)));
        visit(row);
      }
    }
    if (known.after.empty()) continue;
    for (const NodeId from : known.after[n.index]) node(from);
  }
}

void Rows::fill_attrs(const RowSection& section, const Names& known, NodeId n, NodeRow& row) const {
  const Graph& graph = *section.graph;
  row.attrs = graph.attrs(n).items();
  for (auto& note : notes_of(graph, n)) {
    std::erase_if(row.attrs, [&](const auto& a) { return a.first == note.first; });
    row.attrs.push_back(std::move(note));
  }
  std::vector<std::string> names;
  bool other = false;
  for (const ValueId v : graph.outputs(n)) {
    const std::string usual = names.empty() ? row.name : fmt::format("{}:{}", row.name, names.size());
    other = other || graph.name(v) != usual;
    names.emplace_back(graph.name(v));
  }
  if (other) row.attrs.push_back({std::string(kOutputNames), std::move(names)});
  if (graph.outputs(n).size() != 0) add_results(known, graph.outputs(n)[0], graph.outputs(n).size(), row);
  std::vector<std::string> back;
  for (const ControlEdge& e : graph.loop_back_edges()) {
    if (e.to == n) back.emplace_back(graph.name(e.from));
  }
  if (!back.empty()) row.attrs.push_back({std::string(kLoopBack), std::move(back)});
  // Subgraphs, by the names of their sections.
  std::vector<std::string> bodies;
  std::vector<std::int64_t> scopes;
  for (const Body& b : graph.bodies(n)) {
    row.subgraphs.push_back(sections_[section_of_.at(&graph.body(b.body))].name);
    bodies.push_back(b.attribute);
    bodies.push_back(graph.body(b.body).name());
  }
  if (!section.body) {
    for (auto it = std::lower_bound(scopes_of_.begin(), scopes_of_.end(), std::make_pair(n.index, std::uint32_t{0})); it != scopes_of_.end() && it->first == n.index; ++it) {
      row.subgraphs.push_back(sections_[it->second].name);
      scopes.push_back(graph.scope(ScopeId(it->second)).dynamic ? 2 : 1);
    }
  }
  if (!bodies.empty()) row.attrs.push_back({std::string(kBodies), std::move(bodies)});
  if (!scopes.empty()) row.attrs.push_back({std::string(kScopes), std::move(scopes)});
  if (!shows_schedule(section)) return;
  const auto streams_of = [&](const std::vector<std::pair<std::uint32_t, std::int64_t>>& list) {
    std::vector<std::int64_t> out;
    for (auto it = std::lower_bound(list.begin(), list.end(), std::make_pair(n.index, std::int64_t{0})); it != list.end() && it->first == n.index; ++it) out.push_back(it->second);
    return out;
  };
  if (auto list = streams_of(attached_); !list.empty()) row.attrs.push_back({std::string(kAttachedTo), std::move(list)});
  if (auto list = streams_of(self_attached_); !list.empty()) row.attrs.push_back({std::string(kSelfAttachedTo), std::move(list)});
  const auto starts = std::lower_bound(starts_.begin(), starts_.end(), std::make_pair(n.index, std::vector<std::int64_t>()));
  if (starts != starts_.end() && starts->first == n.index) {
    std::erase_if(row.attrs, [](const auto& a) { return a.first == "active_stream_list"; });
    row.attrs.push_back({"active_stream_list", starts->second});
  }
}

void Rows::fill(const RowSection& section, const Names& known, NodeId n, NodeRow& row) const {
  const Graph& graph = *section.graph;
  row.clear();
  row.name = graph.name(n);
  row.type = graph.type(n);
  for (const InputRef in : graph.inputs(n)) {
    const auto v = in.get();
    row.inputs.push_back(v ? source(graph, known, *v) : std::string());
    row.input_descs.push_back(v ? to_row(graph.desc(*v)) : DescRow{DType::undefined, {-2}, true});
  }
  if (!known.after.empty()) {
    for (const NodeId from : known.after[n.index]) row.inputs.push_back(fmt::format("{}:-1", graph.name(from)));
  }
  std::int64_t i = 0;
  for (const ValueId v : graph.outputs(n)) {
    row.output_descs.push_back(to_row(graph.desc(v)));
    if (known.read[v.index]) row.outputs.push_back(i);
    ++i;
  }
  if (known.precedes[n.index]) row.outputs.push_back(-1);
  if (shows_schedule(section)) {
    row.stream = lane_[n.index];
  } else if (!section.body && !streams_.stream.empty()) {
    row.stream = streams_.stream[n];
  } else {
    row.stream = graph.annotations().preset_stream.get(n).value_or(-1);
  }
  fill_attrs(section, known, n, row);
}

void Rows::sync_rows(const Graph& graph, NodeId n, bool after, std::int64_t& next_id, std::vector<std::string>& waits, const Visit& visit) const {
  const Schedule& schedule = *streams_.schedule;
  NodeRow row;
  const auto key = [](const SyncAt& s) { return std::make_pair(s.node, s.after); };
  const auto wanted = std::make_pair(n.index, after);
  for (auto it = std::lower_bound(sync_.begin(), sync_.end(), wanted, [&](const SyncAt& s, const auto& k) { return key(s) < k; });
       it != sync_.end() && key(*it) == wanted; ++it) {
    const Task& t = schedule.streams[it->stream].tasks[it->task];
    const bool send = t.kind == Task::Kind::record;
    row.clear();
    row.name = task_names_[it->stream][it->task];
    row.type = schedule.event_kind == EventKind::notify ? (send ? "NotifyRecord" : "NotifyWait") : (send ? "Send" : "Recv");
    row.id = next_id++;
    row.stream = it->stream.index;
    row.attrs.push_back({"event_id", static_cast<std::int64_t>(t.index)});
    if (after && send) row.inputs.push_back(fmt::format("{}:-1", graph.name(n)));
    if (!after && !send) {
      row.outputs.push_back(-1);
      waits.push_back(row.name + ":-1");
    }
    visit(row);
  }
  if (!after) return;
  for (auto it = std::lower_bound(relays_.begin(), relays_.end(), std::make_pair(n.index, PhysicalStreamId(0))); it != relays_.end() && it->first == n.index; ++it) {
    const std::vector<Task>& tasks = schedule.streams[it->second].tasks;
    row.clear();
    row.type = "StreamActive";
    row.id = next_id++;
    row.stream = it->second.index;
    row.inputs.push_back(fmt::format("{}:-1", graph.name(n)));
    std::vector<std::int64_t> list;
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].kind != Task::Kind::activate) continue;
      row.name = task_names_[it->second][i];
      list.push_back(schedule.controls[tasks[i].index].targets[0]);
    }
    row.attrs.push_back({"active_stream_list", std::move(list)});
    visit(row);
  }
}

void Rows::for_each(std::size_t index, bool alone, const Visit& visit) const {
  const RowSection& section = sections_[index];
  const Graph& graph = *section.graph;
  const Names& known = names(section);
  std::int64_t next_id = 0;
  if (section.scope == ScopeId(0)) {
    value_rows(section, known, next_id, visit);
  } else if (alone) {
    outside_rows(section, known, next_id, visit);
  }
  NodeRow row;
  const auto plain = [&](NodeId n) {
    fill(section, known, n, row);
    row.id = next_id + known.position[n.index];
    visit(row);
  };
  if (section.body) {
    for (const NodeId n : graph.nodes()) plain(n);
    return;
  }
  if (!shows_schedule(section)) {
    for (const NodeId n : by_scope_[section.scope.index]) plain(n);
    return;
  }
  std::vector<std::string> waits;
  for (const NodeId n : by_scope_[section.scope.index]) {
    waits.clear();
    sync_rows(graph, n, false, next_id, waits, visit);
    fill(section, known, n, row);
    row.id = next_id++;
    row.inputs.insert(row.inputs.end(), waits.begin(), waits.end());
    visit(row);
    sync_rows(graph, n, true, next_id, waits, visit);
  }
}

}  // namespace millstream::dump
