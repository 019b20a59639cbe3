// SPDX-License-Identifier: Apache-2.0
#include "millstream/ops/known.h"

namespace millstream {

const TypeCache::Row& TypeCache::of(const Graph& graph, NodeId node) {
  const StringId id = graph.type_id(node);
  if (id.index >= rows_.size()) rows_.resize(id.index + 1);
  Row& row = rows_[id.index];
  if (!row.looked_up) {
    row = {find_op(graph.text(id)), find_evaluator(graph.text(id)), true};
  }
  return row;
}

KnownValues::KnownValues(const Graph& graph, const KnownValues* outer) : graph_(graph), outer_(outer) {
  if (graph.body_count() == 0) return;
  by_string_.resize(graph.strings().size(), 0);
  for (const ValueId v : graph.values()) {
    const auto id = graph.strings().find(graph.name(v));
    if (id && !graph.name(v).empty()) by_string_[id->index] = v.index + 1;
  }
}

std::optional<ValueId> KnownValues::lookup(std::string_view name) const {
  const auto id = graph_.strings().find(name);
  if (!id || id->index >= by_string_.size() || by_string_[id->index] == 0) return std::nullopt;
  return ValueId(by_string_[id->index] - 1);
}

const Tensor* KnownValues::find(ValueId v) const {
  if (const Tensor* constant = graph_.constant(v)) return constant;
  if (graph_.kind(v) == ValueKind::outer) {
    if (outer_ == nullptr) return nullptr;
    const auto there = outer_->lookup(graph_.name(v));
    return there ? outer_->find(*there) : nullptr;
  }
  const auto it = computed_.find(v.index);
  return it != computed_.end() ? &it->second : nullptr;
}

const TensorDesc* KnownValues::outer_desc(ValueId v) const {
  if (outer_ == nullptr) return nullptr;
  const auto there = outer_->lookup(graph_.name(v));
  return there ? &outer_->graph_.desc(*there) : nullptr;
}

NodeView::NodeView(const Graph& graph, NodeId node, const KnownValues& known)
    : context{graph.name(node), graph.type(node), graph.attrs(node), graph.opset(), {}, {},
              graph.outputs(node).size()} {
  const auto inputs = graph.inputs(node);
  descs.reserve(inputs.size());
  values.reserve(inputs.size());
  for (const InputRef in : inputs) {
    const auto v = in.get();
    descs.push_back(v ? &graph.desc(*v) : nullptr);
    values.push_back(v ? known.find(*v) : nullptr);
    if (v && values.back() == nullptr) all_known = false;
  }
  context.inputs = descs;
  context.values = values;
}

std::optional<std::vector<Tensor>> evaluate_node(const NodeView& view, const TypeCache::Row& type,
                                                 std::span<const TensorDesc> outputs) {
  if (type.evaluator == nullptr || type.schema == nullptr) return std::nullopt;
  if (type.evaluator->needs_values && !view.all_known) return std::nullopt;
  const std::size_t least = static_cast<std::size_t>(type.schema->min_inputs);
  if (view.context.inputs.size() < least) return std::nullopt;
  for (std::size_t i = 0; i < least; ++i) {
    if (view.context.inputs[i] == nullptr) return std::nullopt;
  }
  return type.evaluator->evaluate(view.context, outputs);
}

}  // namespace millstream
