// SPDX-License-Identifier: Apache-2.0
// Descs of all values, in order; bodies with their node. Descs that are there already are hints: they fill
// in what inference leaves unknown.
#include <fmt/format.h>

#include "millstream/ops/infer_control.h"
#include "millstream/ops/known.h"
#include "millstream/ops/missing.h"
#include "millstream/ops/op.h"

namespace millstream {
namespace {

void collect_missing(const Graph& graph, MissingOperators& missing) {
  std::vector<std::uint8_t> state(graph.strings().size(), 0);  // by type: 0 new, 1 there, 2 missing
  for (const NodeId n : graph.nodes()) {
    std::uint8_t& seen = state[graph.type_id(n).index];
    if (seen == 1) continue;
    const std::string why = why_missing(graph.type(n), graph.opset());
    seen = why.empty() ? 1 : 2;
    if (!why.empty()) missing.add(graph.type(n), graph.opset(), why, graph.where(n));
  }
  for (std::size_t i = 0; i < graph.body_count(); ++i) collect_missing(graph.body(BodyId(i)), missing);
}

Result<void> check_arity(const Graph& graph, NodeId n, const OpSchema& schema) {
  const auto inputs = graph.inputs(n);
  const auto wrong = [&](std::string_view have) {
    const std::string need =
        schema.max_inputs == OpSchema::kVariadic ? fmt::format("at least {}", schema.min_inputs)
        : schema.min_inputs == schema.max_inputs ? fmt::format("{}", schema.min_inputs)
                                                 : fmt::format("{} to {}", schema.min_inputs, schema.max_inputs);
    return Error{ErrorCode::shape,
                 fmt::format("{} \"{}\": has {}, needs {} input(s)", graph.type(n), graph.name(n), have, need)};
  };
  if (inputs.size() < static_cast<std::size_t>(schema.min_inputs) ||
      (schema.max_inputs != OpSchema::kVariadic && inputs.size() > static_cast<std::size_t>(schema.max_inputs))) {
    return wrong(fmt::format("{} input(s)", inputs.size()));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(schema.min_inputs); ++i) {
    if (inputs[i].absent()) return wrong(fmt::format("no input {}", i));
  }
  return {};
}

class Inference {
 public:
  Inference(const InferOptions& options, std::size_t nodes) : options_(options), steps_left_(100'000 + 100 * nodes) {}

  Result<void> infer(Graph& graph, const KnownValues* outer) {
    KnownValues known(graph, outer);
    TypeCache types;
    for (const ValueId v : graph.values()) {
      if (graph.kind(v) == ValueKind::output) continue;
      if (graph.kind(v) == ValueKind::outer) {
        if (const TensorDesc* desc = known.outer_desc(v)) graph.set_desc(v, refine(*desc, graph.desc(v)));
      }
      MST_TRY_VOID(check_size(graph.desc(v), graph.name(v), value_word(graph.kind(v))));
    }
    for (const NodeId n : graph.order()) {
      Result<void> done = infer_one(graph, n, outer, known, types);
      if (done.ok()) continue;
      Error error = std::move(done).error();
      if (!error.where) error.where = graph.where(n);
      return error;
    }
    return {};
  }

 private:
  Result<void> infer_one(Graph& graph, NodeId n, const KnownValues* outer, KnownValues& known, TypeCache& types) {
    if (steps_left_-- == 0) {
      return Error{ErrorCode::shape, fmt::format("{} \"{}\": the shapes of nested loops around it do not settle",
                                                 graph.type(n), graph.name(n))};
    }
    const TypeCache::Row& type = types.of(graph, n);
    if (type.schema == nullptr) {
      return Error{ErrorCode::unsupported_operator, fmt::format("\"{}\": no operator {}", graph.name(n), graph.type(n))};
    }
    MST_TRY_VOID(check_arity(graph, n, *type.schema));
    const NodeView view(graph, n, known);
    std::vector<TensorDesc> found;
    if (graph.bodies(n).empty()) {
      MST_TRY(found, type.schema->shape(view.context));
    } else {
      MST_TRY(found, infer_control(graph, n, view.context,
                                   [&](Graph& body) { return infer(body, &known); }));
    }
    const auto outputs = graph.outputs(n);
    if (found.size() != outputs.size()) {
      return Error{ErrorCode::shape, fmt::format("{} \"{}\": has {} outputs, gives {}", graph.type(n), graph.name(n),
                                                 outputs.size(), found.size())};
    }
    auto values = evaluate_node(view, type, found);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorDesc desc = values ? (*values)[i].desc() : refine(found[i], graph.desc(outputs[i]));
      MST_TRY_VOID(check_size(desc, graph.name(n), graph.type(n)));
      // In bodies descs are found anew until loops settle: what stands there was not declared.
      if (outer == nullptr && contradicts(desc, graph.desc(outputs[i]))) {
        return Error{ErrorCode::shape, fmt::format("{} \"{}\": output \"{}\" is {}, the model declares {}", graph.type(n),
                                                   graph.name(n), graph.name(outputs[i]), to_string(desc), to_string(graph.desc(outputs[i])))};
      }
      if (values) known.set(outputs[i], std::move((*values)[i]));
      graph.set_desc(outputs[i], desc);
    }
    return {};
  }

  static std::string_view value_word(ValueKind kind) {
    return kind == ValueKind::input ? "input" : kind == ValueKind::constant ? "constant" : "value";
  }

  bool contradicts(const TensorDesc& found, const TensorDesc& declared) const {
    if (found.dtype != DType::undefined && declared.dtype != DType::undefined && found.dtype != declared.dtype) return true;
    if (!options_.shapes_must_agree || !found.shape || !declared.shape) return false;
    if (found.shape->size() != declared.shape->size()) return true;
    for (std::size_t i = 0; i < found.shape->size(); ++i) {
      const Dim& a = (*found.shape)[i];
      const Dim& b = (*declared.shape)[i];
      if (a.known() && b.known() && *a.value != *b.value) return true;
    }
    return false;
  }

  // Unlimited runs too must not meet a size that does not fit 56 bits: later stages add sizes up.
  Result<void> check_size(const TensorDesc& desc, std::string_view name, std::string_view what) const {
    if (!desc.is_static()) return {};
    const auto bytes = desc.bytes();
    if (!bytes) {
      return Error{ErrorCode::memory_limit, fmt::format("{} \"{}\": a tensor {} has no representable size", what, name,
                                                        to_string(desc))};
    }
    if (options_.max_tensor_bytes && *bytes > *options_.max_tensor_bytes) {
      return Error{ErrorCode::memory_limit, fmt::format("{} \"{}\": a tensor {} takes {} bytes, allowed are {}", what,
                                                        name, to_string(desc), *bytes, *options_.max_tensor_bytes)}
          .help("raise --max-memory, or bind smaller dimensions with --dim");
    }
    return {};
  }

  const InferOptions& options_;
  // Nested loops are inferred until they settle, each time anew: without a bound, a small hostile model
  // could keep us busy for ever.
  std::size_t steps_left_;
};

std::size_t count_nodes(const Graph& graph) {
  std::size_t n = graph.node_count();
  for (std::size_t i = 0; i < graph.body_count(); ++i) n += count_nodes(graph.body(BodyId(i)));
  return n;
}

}  // namespace

Result<Graph> infer_shapes(Graph graph, const InferOptions& options) {
  MissingOperators missing;
  collect_missing(graph, missing);
  if (!missing.empty()) return missing.error(graph.name());
  MST_TRY_VOID(Inference(options, count_nodes(graph)).infer(graph, nullptr));
  return graph;
}

Result<std::vector<TensorDesc>> infer_node(const Graph& graph, NodeId node, std::span<const Tensor* const> inputs) {
  const OpSchema* schema = find_op(graph.type(node));
  if (schema == nullptr) {
    return Error{ErrorCode::unsupported_operator, fmt::format("\"{}\": no operator {}", graph.name(node), graph.type(node))};
  }
  std::vector<TensorDesc> descs;
  descs.reserve(inputs.size());
  for (const Tensor* t : inputs) descs.push_back(t != nullptr ? t->desc() : TensorDesc{});
  std::vector<const TensorDesc*> pointers;
  for (std::size_t i = 0; i < inputs.size(); ++i) pointers.push_back(inputs[i] != nullptr ? &descs[i] : nullptr);
  const ShapeContext context{graph.name(node), graph.type(node), graph.attrs(node),           graph.opset(),
                             pointers,         inputs,           graph.outputs(node).size()};
  return schema->shape(context);
}

std::optional<OpCost> cost_of(const Graph& graph, NodeId node) {
  const OpSchema* schema = find_op(graph.type(node));
  if (schema == nullptr) return std::nullopt;
  if (schema->no_task) return OpCost{};
  OpCost total;
  std::vector<const TensorDesc*> inputs, outputs;
  for (const InputRef in : graph.inputs(node)) {
    const auto v = in.get();
    inputs.push_back(v ? &graph.desc(*v) : nullptr);
    if (!v) continue;
    const auto bytes = graph.desc(*v).bytes();
    if (!bytes) return std::nullopt;
    total.bytes += static_cast<double>(*bytes);
  }
  for (const ValueId v : graph.outputs(node)) {
    outputs.push_back(&graph.desc(v));
    const auto bytes = graph.desc(v).bytes();
    if (!bytes) return std::nullopt;
    total.bytes += static_cast<double>(*bytes);
  }
  // A body counts once: how often a loop turns, or which branch is taken, is not known here.
  for (const Body& b : graph.bodies(node)) {
    const Graph& body = graph.body(b.body);
    for (const NodeId n : body.nodes()) {
      const auto inner = cost_of(body, n);
      if (!inner) return std::nullopt;
      total.flops += inner->flops;
      total.bytes += inner->bytes;
    }
  }
  if (!graph.bodies(node).empty() || schema->cost == nullptr) return total;
  return schema->cost(graph.attrs(node), inputs, outputs);
}

}  // namespace millstream
