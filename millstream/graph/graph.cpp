// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/graph.h"

#include <algorithm>
#include <functional>
#include <queue>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"

namespace millstream {

Graph::Graph(const Graph& other) { *this = other; }

Graph& Graph::operator=(const Graph& other) {
  if (this == &other) return *this;
  name_ = other.name_;
  opset_ = other.opset_;
  strings_ = other.strings_;
  node_type_ = other.node_type_;
  node_name_ = other.node_name_;
  input_begin_ = other.input_begin_;
  input_pool_ = other.input_pool_;
  output_begin_ = other.output_begin_;
  output_count_ = other.output_count_;
  node_attrs_ = other.node_attrs_;
  attrs_pool_ = other.attrs_pool_;
  bodies_.clear();
  for (const auto& body : other.bodies_) bodies_.push_back(std::make_unique<Graph>(*body));
  node_bodies_ = other.node_bodies_;
  node_captures_ = other.node_captures_;
  value_name_ = other.value_name_;
  value_kind_ = other.value_kind_;
  value_origin_ = other.value_origin_;
  value_desc_ = other.value_desc_;
  descs_ = other.descs_;
  constants_ = other.constants_;
  inputs_ = other.inputs_;
  outputs_ = other.outputs_;
  control_edges_ = other.control_edges_;
  loop_back_edges_ = other.loop_back_edges_;
  order_ = other.order_;
  order_fixed_ = other.order_fixed_;
  annotations_ = other.annotations_;
  scopes_ = other.scopes_;
  node_scope_ = other.node_scope_;
  source_ = other.source_;
  places_ = other.places_;
  desc_index_ = other.desc_index_;
  return *this;
}

namespace {

template <class T>
const std::vector<T>* find_by_node(const std::vector<std::pair<NodeId, std::vector<T>>>& table, NodeId n) {
  auto it = std::lower_bound(table.begin(), table.end(), n,
                             [](const auto& row, NodeId key) { return row.first < key; });
  return it != table.end() && it->first == n ? &it->second : nullptr;
}

}  // namespace

const Attrs& Graph::attrs(NodeId n) const {
  static const Attrs none;
  if (n.index >= node_attrs_.size() || node_attrs_[n.index] == 0) return none;
  return attrs_pool_[node_attrs_[n.index] - 1];
}

void Graph::set_attrs(NodeId n, Attrs attrs) {
  if (node_attrs_.size() <= n.index) node_attrs_.resize(n.index + 1, 0);
  if (node_attrs_[n.index] == 0) {
    attrs_pool_.push_back(std::move(attrs));
    node_attrs_[n.index] = static_cast<std::uint32_t>(attrs_pool_.size());
  } else {
    attrs_pool_[node_attrs_[n.index] - 1] = std::move(attrs);
  }
}

std::span<const Body> Graph::bodies(NodeId n) const {
  const auto* found = find_by_node(node_bodies_, n);
  return found == nullptr ? std::span<const Body>() : std::span<const Body>(*found);
}

std::span<const ValueId> Graph::captures(NodeId n) const {
  const auto* found = find_by_node(node_captures_, n);
  return found == nullptr ? std::span<const ValueId>() : std::span<const ValueId>(*found);
}

std::optional<NodeId> Graph::find_node(std::string_view name) const {
  const auto id = strings_.find(name);
  if (!id) return std::nullopt;
  for (const NodeId n : nodes()) {
    if (node_name_[n] == *id) return n;
  }
  return std::nullopt;
}

std::optional<ValueId> Graph::find_value(std::string_view name) const {
  const auto id = strings_.find(name);
  if (!id) return std::nullopt;
  for (const ValueId v : values()) {
    if (value_name_[v] == *id) return v;
  }
  return std::nullopt;
}

DescId Graph::intern_desc(TensorDesc desc) {
  if (desc == descs_[0]) return DescId(0);
  std::string key = to_string(desc);
  const auto it = desc_index_.find(key);
  if (it != desc_index_.end() && descs_[it->second] == desc) return DescId(it->second);
  descs_.push_back(std::move(desc));
  const auto id = static_cast<std::uint32_t>(descs_.size() - 1);
  desc_index_.insert_or_assign(std::move(key), id);
  return DescId(id);
}

ValueId Graph::add_value(std::string_view name, ValueKind kind, std::uint32_t origin, TensorDesc desc) {
  value_name_.push_back(strings_.intern(name));
  value_kind_.push_back(kind);
  value_origin_.push_back(origin);
  return value_desc_.push_back(intern_desc(std::move(desc)));
}

std::optional<Where> Graph::where(NodeId n) const {
  if (source_ == nullptr || n.index >= places_.size() || places_[n.index].first == 0) return std::nullopt;
  const auto [line, column] = places_[n.index];
  Where where{source_->file, line, column, ""};
  std::size_t begin = 0;
  for (std::uint32_t l = source_->first_line; l < line && begin != std::string::npos; ++l) {
    begin = source_->text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin < source_->text.size()) {
    begin = source_->text.find_first_not_of(" \t", begin);
    where.text = source_->text.substr(begin, std::min<std::size_t>(source_->text.find('\n', begin) - begin, 120));
  }
  return where;
}

void Graph::set_place(NodeId n, std::uint32_t line, std::uint32_t column) {
  if (places_.size() <= n.index) places_.resize(n.index + 1, {0, 0});
  places_[n.index] = {line, column};
}

void Graph::copy_place(const Graph& from, NodeId a, NodeId b) {
  source_ = from.source_;
  if (a.index < from.places_.size()) set_place(b, from.places_[a.index].first, from.places_[a.index].second);
}

const Scope& Graph::scope(ScopeId s) const {
  static const Scope root;
  return scopes_.empty() ? root : scopes_[s];
}

std::vector<ScopeId> Graph::scopes_under(NodeId n) const {
  std::vector<ScopeId> out;
  for (const ScopeId s : ids<ScopeId>(scopes_.size())) {
    if (scopes_[s].parent_node == n) out.push_back(s);
  }
  return out;
}

ScopeId Graph::add_scope(Scope scope) {
  if (scopes_.empty()) scopes_.push_back(Scope{});
  return scopes_.push_back(std::move(scope));
}

void Graph::set_scope(NodeId n, ScopeId s) {
  if (n.index >= node_scope_.size()) node_scope_.resize(n.index + 1, ScopeId(0));
  node_scope_[n] = s;
}

void Graph::set_dynamic(bool dynamic) {
  if (scopes_.empty() && dynamic) scopes_.push_back(Scope{});
  if (!scopes_.empty()) scopes_[ScopeId(0)].dynamic = dynamic;
}

ValueId Graph::add_input(std::string_view name, TensorDesc desc) {
  const ValueId v = add_value(name, ValueKind::input, 0, std::move(desc));
  inputs_.push_back(v);
  return v;
}

ValueId Graph::add_constant(std::string_view name, Tensor tensor) {
  TensorDesc desc = tensor.desc();
  constants_.push_back(std::move(tensor));
  return add_value(name, ValueKind::constant, static_cast<std::uint32_t>(constants_.size() - 1),
                   std::move(desc));
}

ValueId Graph::add_outer(std::string_view name, TensorDesc desc) {
  return add_value(name, ValueKind::outer, 0, std::move(desc));
}

NodeId Graph::add_node(const NodeSpec& spec) {
  const NodeId n(node_count());
  MST_CHECK(!spec.name.empty() || !spec.outputs.empty(), "a node needs a name or an output");
  node_type_.push_back(strings_.intern(spec.type));
  node_name_.push_back(strings_.intern(spec.name.empty() ? spec.outputs[0] : spec.name));
  input_pool_.insert(input_pool_.end(), spec.inputs.begin(), spec.inputs.end());
  input_begin_.push_back(static_cast<std::uint32_t>(input_pool_.size()));
  output_begin_.push_back(static_cast<std::uint32_t>(value_count()));
  output_count_.push_back(static_cast<std::uint16_t>(spec.outputs.size()));
  for (const std::string_view name : spec.outputs) {
    add_value(name, ValueKind::output, n.index, TensorDesc{});
  }
  if (!spec.attrs.empty()) set_attrs(n, spec.attrs);
  return n;
}

BodyId Graph::add_body(NodeId node, std::string attribute, Graph body) {
  bodies_.push_back(std::make_unique<Graph>(std::move(body)));
  const BodyId id(bodies_.size() - 1);
  auto it = std::lower_bound(node_bodies_.begin(), node_bodies_.end(), node,
                             [](const auto& row, NodeId key) { return row.first < key; });
  if (it == node_bodies_.end() || it->first != node) it = node_bodies_.insert(it, {node, {}});
  it->second.push_back({std::move(attribute), id});
  return id;
}

void Graph::set_desc(ValueId v, TensorDesc desc) { value_desc_[v] = intern_desc(std::move(desc)); }

void Graph::compute_captures() {
  node_captures_.clear();
  if (node_bodies_.empty()) return;
  // find_value is linear, and a graph may have as many bodies as values.
  std::vector<std::uint32_t> value_of(strings_.size(), 0);  // value index + 1 by StringId
  for (const ValueId v : values()) {
    std::uint32_t& slot = value_of[value_name_[v].index];
    if (slot == 0) slot = v.index + 1;
  }
  for (const auto& [node, bodies] : node_bodies_) {
    std::vector<ValueId> captured;
    for (const Body& b : bodies) {
      const Graph& body = *bodies_[b.body.index];
      for (const ValueId v : body.values()) {
        if (body.kind(v) != ValueKind::outer) continue;
        const auto id = strings_.find(body.name(v));
        if (id && value_of[id->index] != 0) captured.push_back(ValueId(value_of[id->index] - 1));
      }
    }
    std::sort(captured.begin(), captured.end());
    captured.erase(std::unique(captured.begin(), captured.end()), captured.end());
    node_captures_.push_back({node, std::move(captured)});
  }
}

Result<void> Graph::compute_order() {
  const Dependencies deps(*this);
  std::vector<std::uint32_t> position(node_count());
  if (order_.empty()) {
    order_.reserve(node_count());
    for (const NodeId n : nodes()) order_.push_back(n);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) position[order_[i].index] = static_cast<std::uint32_t>(i);
  bool respected = true;
  for (const NodeId n : nodes()) {
    for (const NodeId p : deps.predecessors(n)) respected = respected && position[p.index] < position[n.index];
  }
  if (respected || order_fixed_) return {};

  // Kahn, always the ready node that the given order lists first.
  std::vector<std::uint32_t> missing(node_count());
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (const NodeId n : nodes()) {
    missing[n.index] = static_cast<std::uint32_t>(deps.predecessors(n).size());
    if (missing[n.index] == 0) ready.push(position[n.index]);
  }
  const std::vector<NodeId> listed = std::move(order_);
  order_.clear();
  while (!ready.empty()) {
    const NodeId n = listed[ready.top()];
    ready.pop();
    order_.push_back(n);
    for (const NodeId s : deps.successors(n)) {
      if (--missing[s.index] == 0) ready.push(position[s.index]);
    }
  }
  if (order_.size() == node_count()) return {};
  for (const NodeId n : listed) {
    if (missing[n.index] != 0) {
      return Error{ErrorCode::bad_graph,
                   fmt::format("graph \"{}\" has a cycle through or before node \"{}\"", name_, name(n))}
          .help("a loop needs a loop-back edge, which is not a dependency");
    }
  }
  MST_CHECK(false, "a graph without a full order has a node with a missing predecessor");
  return {};
}

Result<void> Graph::finish() {
  compute_captures();
  if (outputs_.empty()) {
    std::vector<bool> read(value_count(), false);
    for (const InputRef in : input_pool_) {
      if (const auto v = in.get(); v && v->index < read.size()) read[v->index] = true;
    }
    for (const auto& [node, captured] : node_captures_) {
      for (const ValueId v : captured) read[v.index] = true;
    }
    for (const ValueId v : values()) {
      if (kind(v) == ValueKind::output && !read[v.index] && !name(v).empty()) outputs_.push_back(v);
    }
  }
  for (const InputRef in : input_pool_) {
    if (const auto v = in.get(); v && v->index >= value_count()) {
      return Error{ErrorCode::bad_graph, fmt::format("graph \"{}\" reads a value that does not exist", name_)};
    }
  }
  for (const auto* edges : {&control_edges_, &loop_back_edges_}) {
    for (const ControlEdge& e : *edges) {
      if (e.from.index >= node_count() || e.to.index >= node_count()) {
        return Error{ErrorCode::bad_graph,
                     fmt::format("graph \"{}\" has an edge to a node that does not exist", name_)};
      }
    }
  }
  MST_TRY_VOID(compute_order());
  std::vector<Error> errors = verify(*this);
  if (errors.empty()) return {};
  Error first = std::move(errors.front());
  for (std::size_t i = 1; i < errors.size() && i < 10; ++i) first.note(errors[i].message);
  if (errors.size() > 10) first.note(fmt::format("and {} more", errors.size() - 10));
  return first;
}

}  // namespace millstream
