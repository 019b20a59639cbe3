// SPDX-License-Identifier: Apache-2.0
// The walk over the tree. What a control node adds to its scopes stands in flatten_control.cpp.
#include "millstream/graph/flatten.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/graph/flat_builder.h"
#include "millstream/graph/notes.h"

namespace millstream {

FlatBuilder::FlatBuilder(const Graph& root) : graph_(root.name()) {
  graph_.set_opset(root.opset());
  graph_.set_dynamic(root.dynamic());
  for (const NodeId n : root.nodes()) node_names_.insert(std::string(root.name(n)));
  for (const ValueId v : root.values()) value_names_.insert(std::string(root.name(v)));
}

std::string FlatBuilder::fresh(std::unordered_set<std::string>& taken, std::string wanted) {
  std::string name = wanted;
  for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

NodeId FlatBuilder::add_node(ScopeId scope, std::string_view type, std::string name, std::vector<InputRef> inputs,
                             std::vector<TensorDesc> outputs, Attrs attrs) {
  name = fresh(node_names_, std::move(name));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    names.push_back(fresh(value_names_, i == 0 ? name : fmt::format("{}:{}", name, i)));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  Graph::NodeSpec spec{type, name, inputs, views, std::move(attrs)};
  const NodeId n = graph_.add_node(spec);
  for (std::size_t i = 0; i < outputs.size(); ++i) graph_.set_desc(graph_.outputs(n)[i], std::move(outputs[i]));
  if (scope.index != 0) graph_.set_scope(n, scope);
  return n;
}

ValueId FlatBuilder::add_constant(std::string name, Tensor tensor) {
  return graph_.add_constant(fresh(value_names_, std::move(name)), std::move(tensor));
}

FlatBuilder::Level FlatBuilder::open(const Graph& source, ScopeId scope, std::string prefix) const {
  Level level{source, scope, std::move(prefix), {}, {}, {}, {}};
  level.values.resize(source.value_count());
  level.nodes.resize(source.node_count());
  return level;
}

// Values that no node makes. Outer values have the enclosing level's ids, found by name.
Result<void> FlatBuilder::add_values(Level& level, Level* outer) {
  const Graph& g = level.source;
  for (const ValueId v : g.values()) {
    const std::string name = level.prefix + std::string(g.name(v));
    switch (g.kind(v)) {
      case ValueKind::input:
        if (outer == nullptr) level.values[v] = graph_.add_input(g.name(v), g.desc(v));
        break;
      case ValueKind::constant:
        level.values[v] = outer == nullptr ? graph_.add_constant(g.name(v), *g.constant(v)) : add_constant(name, *g.constant(v));
        break;
      case ValueKind::outer: {
        if (outer == nullptr) {
          return Error{ErrorCode::bad_graph, fmt::format("graph \"{}\" reads the outer value \"{}\", but nothing encloses it", g.name(), g.name(v))};
        }
        if (outer->by_name.empty()) {
          for (const ValueId o : outer->source.values()) outer->by_name.emplace(outer->source.name(o), o);
        }
        const auto found = outer->by_name.find(g.name(v));
        if (found == outer->by_name.end() || !outer->values[found->second]) {
          return Error{ErrorCode::bad_graph, fmt::format("graph \"{}\": outer value \"{}\" does not exist before the node that owns the graph", g.name(), g.name(v))};
        }
        level.values[v] = outer->values[found->second];
        break;
      }
      case ValueKind::output: break;
    }
  }
  return {};
}

Result<NodeId> FlatBuilder::copy_node(Level& level, NodeId n) {
  const Graph& g = level.source;
  std::vector<InputRef> inputs;
  for (const InputRef in : g.inputs(n)) {
    const auto v = in.get();
    if (!v) {
      inputs.push_back(InputRef());
    } else if (level.values[*v]) {
      inputs.push_back(*level.values[*v]);
    } else {
      return Error{ErrorCode::bad_graph, fmt::format("graph \"{}\": node \"{}\" reads \"{}\" before it is made", g.name(), g.name(n), g.name(*v))};
    }
  }
  const bool root = level.scope.index == 0;
  std::vector<std::string> names;
  for (const ValueId v : g.outputs(n)) {
    const std::string name(g.name(v));
    names.push_back(root || name.empty() ? name : fresh(value_names_, level.prefix + name));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string name = root ? std::string(g.name(n)) : fresh(node_names_, level.prefix + std::string(g.name(n)));
  const NodeId flat = graph_.add_node({g.type(n), name, inputs, views, g.attrs(n)});
  for (std::size_t i = 0; i < g.outputs(n).size(); ++i) {
    const ValueId v = g.outputs(n)[i];
    level.values[v] = graph_.outputs(flat)[i];
    graph_.set_desc(*level.values[v], g.desc(v));
  }
  if (!root) graph_.set_scope(flat, level.scope);
  copy_notes(g, n, graph_, flat);
  if (level.thread_scope && !graph_.annotations().thread_scope.get(flat)) graph_.annotations().thread_scope.set(flat, *level.thread_scope);
  if (const auto where = g.where(n)) graph_.set_place(flat, where->line, where->column);
  level.nodes[n] = flat;
  return flat;
}

Result<std::vector<NodeId>> FlatBuilder::copy_nodes(Level& level) {
  const Graph& g = level.source;
  // Values must exist before they are read: execution order has that, or list order if the input fixed one.
  std::vector<NodeId> listed = g.order();
  if (g.order_is_fixed()) listed.assign(g.nodes().begin(), g.nodes().end());
  IdVec<NodeId, std::vector<NodeId>> blocks(g.order_is_fixed() ? g.node_count() : 0);
  std::vector<NodeId> order;
  for (const NodeId n : listed) {
    MST_TRY(const NodeId flat, copy_node(level, n));
    std::vector<NodeId> block = {flat};
    if (!g.bodies(n).empty()) {
      MST_TRY(const std::vector<NodeId> inner, lower_bodies(level, n, flat));
      block.insert(block.end(), inner.begin(), inner.end());
    }
    if (g.order_is_fixed()) {
      blocks[n] = std::move(block);
    } else {
      order.insert(order.end(), block.begin(), block.end());
    }
  }
  if (g.order_is_fixed()) {
    for (const NodeId n : g.order()) order.insert(order.end(), blocks[n].begin(), blocks[n].end());
    order_fixed_ = true;
  }
  if (level.scope.index != 0) rename_peers(level);
  for (const ControlEdge& e : g.control_edges()) control_.push_back({*level.nodes[e.from], *level.nodes[e.to]});
  for (const ControlEdge& e : g.loop_back_edges()) graph_.add_loop_back_edge(*level.nodes[e.from], *level.nodes[e.to]);
  return order;
}

// "SendTo;PEER;K": a peer of the same body has got another name; what is no node there keeps the name it has.
void FlatBuilder::rename_peers(const Level& level) {
  const Graph& g = level.source;
  const auto& given = g.annotations().multiplex;
  if (given.empty()) return;
  for (const NodeId n : g.nodes()) {
    const auto& list = given.get(n);
    if (!list) continue;
    std::vector<StringId> ids;
    for (const StringId id : *list) {
      std::string text(g.text(id));
      const std::size_t first = text.find(';'), last = text.rfind(';');
      if (first != last) {
        const auto peer = g.find_node(std::string_view(text).substr(first + 1, last - first - 1));
        if (peer) text.replace(first + 1, last - first - 1, graph_.name(*level.nodes[*peer]));
      }
      ids.push_back(graph_.intern(text));
    }
    graph_.annotations().multiplex.set(*level.nodes[n], std::move(ids));
  }
}

Result<Graph> FlatBuilder::build(const Graph& root) {
  if (root.scope_count() > 1) {
    return Error{ErrorCode::bad_graph, fmt::format("graph \"{}\" has scopes and nested bodies; it can have only one of the two", root.name())};
  }
  Level level = open(root, ScopeId(0), "");
  MST_TRY_VOID(add_values(level, nullptr));
  MST_TRY(std::vector<NodeId> order, copy_nodes(level));
  graph_.set_order(std::move(order), order_fixed_);
  // By target, as text has them.
  std::stable_sort(control_.begin(), control_.end(), [](const ControlEdge& a, const ControlEdge& b) { return a.to < b.to; });
  for (const ControlEdge& e : control_) graph_.add_control_edge(e.from, e.to);
  for (const ValueId v : root.outputs()) {
    if (!level.values[v]) return Error{ErrorCode::bad_graph, fmt::format("graph \"{}\": output \"{}\" is never made", root.name(), root.name(v))};
    graph_.add_output(*level.values[v]);
  }
  MST_TRY_VOID(graph_.finish());
  return std::move(graph_);
}

Result<Graph> flatten(const Graph& source) {
  if (source.body_count() == 0) return source;
  return FlatBuilder(source).build(source);
}

}  // namespace millstream
