// SPDX-License-Identifier: Apache-2.0
// The graph that rows with followed links stand for.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/dump/assemble.h"
#include "millstream/dump/notes.h"

namespace millstream::dump {
namespace {

std::string free_name(const StringPool& strings, const std::vector<bool>& taken, std::string wanted) {
  const auto is_taken = [&](const std::string& text) {
    const auto id = strings.find(text);
    return id && id->index < taken.size() && taken[id->index];
  };
  if (!is_taken(wanted)) return wanted;
  for (std::size_t k = 1;; ++k) {
    if (std::string next = fmt::format("{}_{}", wanted, k); !is_taken(next)) return next;
  }
}

void take(std::vector<bool>& taken, StringId id) {
  if (id.index >= taken.size()) taken.resize(std::max<std::size_t>(id.index + 1, 2 * taken.size()));
  taken[id.index] = true;
}

// What a body of this owner is called, where the dump does not say.
std::string body_attribute(std::string_view owner_type, std::size_t index) {
  if (owner_type == "If" || owner_type == "StatelessIf") return index == 0 ? "then_branch" : "else_branch";
  if (owner_type == "While" || owner_type == "StatelessWhile") return index == 0 ? "cond" : "body";
  if (owner_type == "Case" || owner_type == "StatelessCase") return fmt::format("branch_{}", index);
  if (owner_type == "PartitionedCall" || owner_type == "StatefulPartitionedCall") return "f";
  return index == 0 ? "body" : fmt::format("body_{}", index);
}

}  // namespace

TensorDesc Assembler::desc_of(const Row& row, std::uint32_t output) const {
  return output < row.descs ? descs_[desc_of_[row.first_desc + output]] : TensorDesc{};
}

// Inputs, constants and outer values come before all that nodes make.
void Assembler::add_values(std::uint32_t section, const std::vector<std::uint32_t>& rows, Graph& graph, std::vector<bool>& taken) {
  const auto called = [&](const Row& row) {
    const Attr* names = attr(row, kOutputNames);
    const auto* list = names == nullptr ? nullptr : std::get_if<std::vector<std::string>>(names);
    return list != nullptr && !list->empty() ? list->front() : std::string(name(row));
  };
  if (section != 0) {
    // In a body, what hands in the owner's inputs are the body's own inputs.
    std::vector<std::pair<std::int64_t, std::uint32_t>> handed;
    for (const std::uint32_t r : rows) {
      const Attr* index = rows_[r].kind == Kind::node && type(rows_[r]) == "Data" ? attr(rows_[r], "index") : nullptr;
      if (index != nullptr && std::holds_alternative<std::int64_t>(*index)) handed.push_back({std::get<std::int64_t>(*index), r});
    }
    std::stable_sort(handed.begin(), handed.end());
    for (const auto& [index, r] : handed) {
      first_value_[r] = graph.add_input(called(rows_[r]), desc_of(rows_[r], 0)).index;
      rows_[r].kind = Kind::value;
      rows_[r].outputs = 1;
      take(taken, graph.intern(called(rows_[r])));
    }
  }
  for (const std::uint32_t r : rows) {
    Row& row = rows_[r];
    if (row.kind != Kind::value || first_value_[r] != kNone) continue;
    const Attr* what = attr(row, kValueAttr);
    const auto* number = what == nullptr ? nullptr : std::get_if<std::int64_t>(what);
    const Attr* data = attr(row, "value");
    const auto* tensor = data == nullptr ? nullptr : std::get_if<Tensor>(data);
    if (number != nullptr && *number == 2) {
      if (tensor == nullptr) {  // a dump without weights: a node that gives them
        row.kind = Kind::node;
        take_attr(row, kValueAttr);
        continue;
      }
      first_value_[r] = graph.add_constant(called(row), *tensor).index;
    } else if (number != nullptr && *number == 3 && section != 0) {
      first_value_[r] = graph.add_outer(called(row), desc_of(row, 0)).index;
    } else {
      first_value_[r] = graph.add_input(called(row), desc_of(row, 0)).index;
    }
    take(taken, graph.intern(called(row)));
  }
}

Result<void> Assembler::add_nodes(std::uint32_t section, const std::vector<std::uint32_t>& rows, Graph& graph, std::vector<bool>& taken,
                                  Results& results) {
  // Values of nodes lie behind each other, so the number of each is known before its node is added.
  std::uint32_t next_value = static_cast<std::uint32_t>(graph.value_count()), next_node = 0;
  bool scoped = false;
  for (const std::uint32_t r : rows) {
    scoped = scoped || rows_[r].section != section;
    if (rows_[r].kind != Kind::node) continue;
    first_value_[r] = next_value;
    next_value += rows_[r].outputs;
    node_of_[r] = next_node++;
  }
  add_scopes(section, graph);
  std::vector<bool> node_taken;
  std::vector<InputRef> inputs;
  std::vector<NodeId> after;
  std::vector<std::string> names;
  std::vector<std::string_view> views;
  for (const std::uint32_t r : rows) {
    const Row& row = rows_[r];
    if (row.kind != Kind::node) continue;
    std::string called(name(row));
    if (scoped) {
      called = free_name(graph.strings(), node_taken, called);
      take(node_taken, graph.intern(called));
    }
    inputs.clear();
    after.clear();
    for (const Link& link : links(r)) {
      const std::uint32_t source = link.source.index;
      if (link.index == kAbsent) {
        inputs.push_back(InputRef());
      } else if (link.index >= 0) {
        if (first_value_[source] == kNone || static_cast<std::uint32_t>(link.index) >= rows_[source].outputs) {
          return error_at(row.place, ErrorCode::bad_graph, fmt::format("node \"{}\" reads output {} of \"{}\", which it does not have", name(row), link.index, name(rows_[source])));
        }
        inputs.push_back(ValueId(first_value_[source] + static_cast<std::uint32_t>(link.index)));
      } else if (node_of_[source] != kNone) {
        after.push_back(NodeId(node_of_[source]));
      }
    }
    names.clear();
    const Attr* listed = attr(row, kOutputNames);
    const auto* list = listed == nullptr ? nullptr : std::get_if<std::vector<std::string>>(listed);
    for (std::uint32_t i = 0; i < row.outputs; ++i) {
      if (list != nullptr && i < list->size()) {
        names.push_back((*list)[i]);
      } else {
        names.push_back(free_name(graph.strings(), taken, i == 0 ? called : fmt::format("{}:{}", called, i)));
      }
      if (!names.back().empty()) take(taken, graph.intern(names.back()));
    }
    views.assign(names.begin(), names.end());
    const std::string type_name(type(row));
    const NodeId n = graph.add_node({type_name, called, inputs, views, {}});
    for (std::uint32_t i = 0; i < row.descs; ++i) graph.set_desc(ValueId(first_value_[r] + i), desc_of(row, i));
    for (const NodeId from : after) graph.add_control_edge(from, n);
    if (row.stream >= 0) graph.annotations().preset_stream.set(n, row.stream);
    if (row.section != section) graph.set_scope(n, ScopeId(scope_of_[row.section]));
    graph.set_place(n, row.line, row.column);
    for (const std::int64_t pair : ints(row, kGraphOutputs)) {
      const auto index = static_cast<std::uint32_t>(pair & 0xffff);
      if (pair >= 0 && index < row.outputs) results.push_back({pair >> 16, ValueId(first_value_[r] + index)});
    }
    std::size_t bodies = 0;
    for (const auto& [owner, below] : owned_by(r)) {
      const Section& s = sections_[below];
      if (!s.body) continue;
      MST_TRY(Graph inner, build(below, s.rows));
      graph.add_body(n, s.attribute.empty() ? body_attribute(type_name, bodies) : s.attribute, std::move(inner));
      ++bodies;
    }
    add_attrs(row, n, graph);
  }
  return {};
}

// The scopes of a graph in the order of their sections, a parent before its children.
void Assembler::add_scopes(std::uint32_t section, Graph& graph) {
  std::vector<std::uint32_t> found = {section};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const std::uint32_t s : sections_[found[i]].inside) {
      if (!sections_[s].body) found.push_back(s);
    }
  }
  scope_of_[section] = 0;
  std::sort(found.begin() + 1, found.end());
  const auto add = [&](const auto& self, std::uint32_t s) -> void {
    if (scope_of_[s] != kNone) return;
    const Row& owner = rows_[sections_[s].owner];
    self(self, owner.section);
    scope_of_[s] = graph.add_scope({sections_[s].name, NodeId(node_of_[sections_[s].owner]), ScopeId(scope_of_[owner.section]), sections_[s].dynamic}).index;
  };
  for (const std::uint32_t s : found) add(add, s);
}

void Assembler::add_attrs(const Row& row, NodeId n, Graph& graph) {
  if (row.extra == kNone) return;
  // The lanes and loop-backs that come later ask for those of ours alone.
  std::vector<std::pair<std::string, Attr>> attrs = std::move(extras_[row.extra].attrs), later;
  for (const auto& a : attrs) {
    if (a.first == kLoopBack || a.first == kAttachedTo || a.first == kSelfAttachedTo || a.first == "active_stream_list" || a.first == "label_list") later.push_back(a);
  }
  extras_[row.extra].attrs = std::move(later);
  // What a StreamActive starts follows from its labels or its scope where it has them; the numbers are only their result.
  const auto follows = [](const auto& a) {
    return a.first == "active_label_list" || a.first == "_active_label_list" || a.first == "_subgraph_first_active" || a.first == "subgraph_first_active" ||
           a.first == "is_loop_active" || a.first == "_is_loop_active";
  };
  if (std::any_of(attrs.begin(), attrs.end(), follows)) {
    std::erase_if(attrs, [](const auto& a) { return a.first == "active_stream_list"; });
  }
  take_notes(graph, n, attrs);
  // Of two of one name the later one counts. In order, each takes its place at the end.
  std::stable_sort(attrs.begin(), attrs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Attrs kept;
  for (auto& [key, value] : attrs) {
    if (key == kOutputNames || key == kGraphOutputs || key == kLoopBack || key == kScopes || key == kAttachedTo || key == kSelfAttachedTo) continue;
    kept.set(std::move(key), std::move(value));
  }
  if (!kept.empty()) graph.set_attrs(n, std::move(kept));
}

void Assembler::add_loop_backs(const std::vector<std::uint32_t>& rows, Graph& graph) const {
  std::unordered_map<std::string_view, std::uint32_t> by_name;  // over all scopes; looked up only
  for (const std::uint32_t r : rows) {
    const Attr* from = attr(rows_[r], kLoopBack);
    const auto* list = from == nullptr ? nullptr : std::get_if<std::vector<std::string>>(from);
    if (list == nullptr || node_of_[r] == kNone) continue;
    if (by_name.empty()) {
      for (const std::uint32_t other : rows) by_name.emplace(name(rows_[other]), other);
    }
    for (const std::string& text : *list) {
      const auto source = by_name.find(text);
      if (source != by_name.end() && node_of_[source->second] != kNone) graph.add_loop_back_edge(NodeId(node_of_[source->second]), NodeId(node_of_[r]));
    }
  }
}

Result<Graph> Assembler::build(std::uint32_t section, const std::vector<std::uint32_t>& rows) {
  const Section& s = sections_[section];
  Graph graph(s.body_name.empty() ? s.name : s.body_name);
  if (graph.name().empty()) graph.set_name("graph");
  graph.set_opset(static_cast<int>(opset_));
  auto source = std::make_shared<SourceText>();
  source->file = scanner_.file();
  graph.set_source(std::move(source));
  std::vector<bool> taken;  // names of values, by StringId
  Results results;
  add_values(section, rows, graph, taken);
  MST_TRY_VOID(add_nodes(section, rows, graph, taken, results));
  add_loop_backs(rows, graph);
  set_outputs(section, graph, std::move(results));
  order_by_ids(rows, graph);
  MST_TRY_VOID(graph.finish());
  return graph;
}

// What the dump names; a node without outputs (NetOutput) stands for what it reads.
void Assembler::set_outputs(std::uint32_t section, Graph& graph, Results results) const {
  for (const std::uint32_t r : sections_[section].rows) {
    if (rows_[r].kind != Kind::value) continue;
    for (const std::int64_t pair : ints(rows_[r], kGraphOutputs)) {
      if (pair >= 0 && first_value_[r] != kNone) results.push_back({pair >> 16, ValueId(first_value_[r])});
    }
  }
  if (!results.empty()) {
    std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [place, v] : results) graph.add_output(v);
    return;
  }
  std::vector<bool> seen(graph.value_count(), false);
  const auto add = [&](ValueId v) {
    if (seen[v.index]) return;
    seen[v.index] = true;
    graph.add_output(v);
  };
  for (const auto& [node, index] : sections_[section].outputs) {
    const std::uint32_t r = find(section, node);
    if (r == kNone || first_value_[r] == kNone) continue;
    const std::uint32_t i = index < 0 ? 0 : static_cast<std::uint32_t>(index);
    if (i < rows_[r].outputs) {
      add(ValueId(first_value_[r] + i));
    } else if (node_of_[r] != kNone) {
      for (const InputRef in : graph.inputs(NodeId(node_of_[r]))) {
        if (const auto v = in.get(); v && v->index < graph.value_count()) add(*v);
      }
    }
  }
}

// The dump's own order, where it numbers every node differently and no edge is against it.
void Assembler::order_by_ids(const std::vector<std::uint32_t>& rows, Graph& graph) const {
  if (graph.scope_count() > 1) return;  // there a node is followed by those of its scopes
  std::vector<std::pair<std::int64_t, std::uint32_t>> numbered;  // id, node
  for (const std::uint32_t r : rows) {
    if (rows_[r].kind == Kind::sync && rows_[r].id != kNoNumber) return;  // the list says in which order tasks run
    if (node_of_[r] == kNone) continue;
    if (rows_[r].id == kNoNumber) return;
    numbered.push_back({rows_[r].id, node_of_[r]});
  }
  if (std::is_sorted(numbered.begin(), numbered.end())) return;
  std::sort(numbered.begin(), numbered.end());
  const auto same_id = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(numbered.begin(), numbered.end(), same_id) != numbered.end()) return;
  std::vector<std::uint32_t> position(numbered.size());
  std::vector<NodeId> order;
  for (std::uint32_t i = 0; i < numbered.size(); ++i) {
    position[numbered[i].second] = i;
    order.push_back(NodeId(numbered[i].second));
  }
  for (const std::uint32_t r : rows) {
    if (node_of_[r] == kNone) continue;
    for (const Link& link : links(r)) {
      if (link.index == kAbsent) continue;
      const std::uint32_t from = node_of_[link.source.index];
      if (from != kNone && position[from] >= position[node_of_[r]]) return;
    }
  }
  graph.set_order(std::move(order), false);
}

}  // namespace millstream::dump
