// SPDX-License-Identifier: Apache-2.0
// One node: a constant, a call that is inlined, or an operator with attributes and bodies.
#include <fmt/format.h>

#include "millstream/import/onnx_reader.h"
#include "millstream/ops/op.h"

namespace millstream::onnx_file {
namespace {

std::string node_words(const NodeMessage& node) {
  if (!node.name.empty()) return fmt::format("{} \"{}\"", spelling(node), node.name);
  for (const std::string_view out : node.outputs) {
    if (!out.empty()) return fmt::format("{} that produces \"{}\"", spelling(node), out);
  }
  return spelling(node);
}

std::string_view kind_word(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::tensors: return "a list of tensors";
    case AttributeKind::graphs: return "a list of graphs";
    case AttributeKind::sparse_tensor:
    case AttributeKind::sparse_tensors: return "a sparse tensor";
    case AttributeKind::type_proto:
    case AttributeKind::type_protos: return "a type";
    default: return "nothing";
  }
}

template <class T>
Tensor vector_tensor(DType dtype, const std::vector<T>& values) {
  Tensor out(dtype, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), out.as_mutable<T>().begin());
  return out;
}

}  // namespace

/// The attribute itself, or what the call gives for the function's attribute it refers to: nullopt when
/// the caller left that out and it has no default.
Result<std::optional<AttributeMessage>> Reader::resolve_attribute(std::string_view message, const Scope& scope) {
  MST_TRY(AttributeMessage attribute, read_attribute(message));
  if (attribute.name.empty()) return malformed("an attribute without a name");
  if (attribute.ref_name.empty()) return std::optional(std::move(attribute));
  if (scope.call == nullptr) {
    return Error{ErrorCode::bad_model, fmt::format("attribute \"{}\" refers to a function's attribute \"{}\", but is in no function",
                                                   attribute.name, attribute.ref_name)};
  }
  const auto it = scope.call->attributes.find(attribute.ref_name);
  if (it == scope.call->attributes.end()) return std::optional<AttributeMessage>();
  const AttributeMessage& source = it->second;
  MST_TRY_VOID(spend(8 * source.ints.size() + 4 * source.floats.size() + 48 * source.strings.size() + source.s.size() +
                     2 * source.tensor.size() + source.graph.size()));
  AttributeMessage given = source;
  given.name = attribute.name;
  return std::optional(std::move(given));
}

Result<std::vector<InputRef>> Reader::read_inputs(const NodeMessage& node, Scope& scope) {
  std::vector<InputRef> inputs;
  inputs.reserve(node.inputs.size());
  for (const std::string_view name : node.inputs) {
    if (name.empty()) {
      inputs.push_back({});
      continue;
    }
    auto found = resolve(scope, name);
    if (!found.ok()) {
      Error error = std::move(found).error();
      error.note(fmt::format("it is read by {}", node_words(node)));
      return error;
    }
    inputs.push_back(*found);
  }
  // What a Loop carries begins behind two inputs that may be left out, also when nothing follows.
  const std::size_t least = node.op_type == "Loop" ? 2 : 0;
  while (inputs.size() > least && inputs.back().absent()) inputs.pop_back();
  return inputs;
}

Result<void> Reader::add_constant_node(const NodeMessage& node, Scope& scope) {
  if (node.outputs.size() != 1 || node.outputs[0].empty() || !node.inputs.empty()) {
    return Error{ErrorCode::bad_model, fmt::format("{} must have no input and one output", node_words(node))};
  }
  std::optional<AttributeMessage> value;
  for (const std::string_view bytes : node.attributes) {
    MST_TRY(auto attribute, resolve_attribute(bytes, scope));
    if (!attribute) continue;
    if (value) return Error{ErrorCode::bad_model, fmt::format("{} has two values", node_words(node))};
    value = std::move(attribute);
  }
  if (!value) return Error{ErrorCode::bad_model, fmt::format("{} has no value", node_words(node))};
  const std::string what = node_words(node);
  const auto is = [&](std::string_view name, AttributeKind kind) { return value->name == name && value->kind == kind; };
  Tensor tensor;
  if (is("value", AttributeKind::tensor)) {
    MST_TRY(const TensorMessage message, read_tensor_message(value->tensor));
    if (message.data_type == static_cast<std::int64_t>(DType::string)) {
      missing_.add("Constant", scope.opset, "string tensors are not supported");
      return define(scope, node.outputs[0], scope.state.graph.add_outer(value_name(scope, node.outputs[0]), {}));
    }
    MST_TRY(tensor, tensors_.read(message, what));
  } else if (is("value_float", AttributeKind::float_value)) {
    tensor = Tensor(DType::f32, {});
    tensor.as_mutable<float>()[0] = value->f;
  } else if (is("value_int", AttributeKind::int_value)) {
    tensor = Tensor(DType::i64, {});
    tensor.as_mutable<std::int64_t>()[0] = value->i;
  } else if (is("value_floats", AttributeKind::floats)) {
    tensor = vector_tensor(DType::f32, value->floats);
  } else if (is("value_ints", AttributeKind::ints)) {
    tensor = vector_tensor(DType::i64, value->ints);
  } else if (value->name == "sparse_value" || value->name == "value_string" || value->name == "value_strings") {
    missing_.add("Constant", scope.opset, fmt::format("{} is not supported", value->name));
    return define(scope, node.outputs[0], scope.state.graph.add_outer(value_name(scope, node.outputs[0]), {}));
  } else {
    return Error{ErrorCode::bad_model, fmt::format("{} has an attribute \"{}\" of the wrong kind", what, value->name)};
  }
  if (options_.max_memory && tensor.byte_size() > *options_.max_memory) {
    return Error{ErrorCode::memory_limit, fmt::format("{}: takes {} bytes, allowed are {}", what, tensor.byte_size(), *options_.max_memory)};
  }
  return add_constant(scope, node.outputs[0], std::move(tensor));
}

Result<void> Reader::add_node(const NodeMessage& node, Scope& scope, int depth) {
  if (node.op_type.empty()) {
    return Error{ErrorCode::bad_model, fmt::format("graph \"{}\" has a node without an operator type", scope.state.graph.name())};
  }
  if (scope.call != nullptr) {
    std::uint64_t size = 256 + 64 * (node.inputs.size() + node.outputs.size());
    for (const std::string_view bytes : node.attributes) size += 2 * bytes.size();
    MST_TRY_VOID(spend(size));
  }
  if (const FunctionMessage* function = find_function(node)) return inline_call(*function, node, scope, depth);
  const std::string type = spelling(node);
  if (type == "Constant") return add_constant_node(node, scope);

  Graph& graph = scope.state.graph;
  MST_TRY(const std::vector<InputRef> inputs, read_inputs(node, scope));
  const bool default_set = default_domain(node.domain).empty();
  if (default_set && versions_.count("") == 0) {
    return Error{ErrorCode::bad_model,
                 fmt::format("model \"{}\" uses {} but imports no version of the default operator set", name_, node_words(node))};
  }
  const int version = default_set ? scope.opset : domain_version(node.domain);
  std::string lacking = why_missing(type, version);

  Attrs attrs;
  std::vector<std::pair<std::string, std::string_view>> bodies;
  for (const std::string_view bytes : node.attributes) {
    if (!lacking.empty()) break;
    MST_TRY(auto found, resolve_attribute(bytes, scope));
    if (!found) continue;
    AttributeMessage& a = *found;
    std::string name(a.name);
    if (attrs.has(name)) return Error{ErrorCode::bad_model, fmt::format("{} has two attributes \"{}\"", node_words(node), name)};
    switch (a.kind) {
      case AttributeKind::float_value: attrs.set(std::move(name), a.f); break;
      case AttributeKind::int_value: attrs.set(std::move(name), a.i); break;
      case AttributeKind::string_value: attrs.set(std::move(name), std::string(a.s)); break;
      case AttributeKind::floats: attrs.set(std::move(name), std::move(a.floats)); break;
      case AttributeKind::ints: attrs.set(std::move(name), std::move(a.ints)); break;
      case AttributeKind::strings: attrs.set(std::move(name), std::vector<std::string>(a.strings.begin(), a.strings.end())); break;
      case AttributeKind::tensor: {
        MST_TRY(const TensorMessage message, read_tensor_message(a.tensor));
        if (message.data_type == static_cast<std::int64_t>(DType::string)) {
          lacking = fmt::format("its attribute \"{}\" is a string tensor", name);
          break;
        }
        MST_TRY(Tensor tensor, tensors_.read(message, fmt::format("{}, attribute \"{}\"", node_words(node), name)));
        attrs.set(std::move(name), std::move(tensor));
        break;
      }
      case AttributeKind::graph: {
        MST_TRY(const AttributeMessage direct, read_attribute(bytes));
        if (!direct.ref_name.empty()) {
          lacking = fmt::format("its graph \"{}\" is passed to a function", name);
          break;
        }
        bodies.emplace_back(std::move(name), a.graph);
        break;
      }
      case AttributeKind::undefined:
        return Error{ErrorCode::bad_model, fmt::format("{}: attribute \"{}\" has no value", node_words(node), name)};
      default: lacking = fmt::format("its attribute \"{}\" is {}", name, kind_word(a.kind)); break;
    }
  }
  if (!lacking.empty()) {
    missing_.add(type, version, lacking);
    attrs = {};
    bodies.clear();
  }

  // Outputs left out at the end count too: Split divides by how many it has.
  const std::vector<std::string_view>& listed = node.outputs;
  if (listed.size() > 0xffff) return Error{ErrorCode::bad_model, fmt::format("{} has {} outputs", node_words(node), listed.size())};
  std::vector<std::string> names;
  for (const std::string_view out : listed) names.push_back(out.empty() ? std::string() : value_name(scope, out));
  const std::vector<std::string_view> outputs(names.begin(), names.end());
  const std::string label = node_name(scope, node.name, node.op_type);
  const NodeId n = graph.add_node({type, label, inputs, outputs, {}});
  if (!attrs.empty()) graph.set_attrs(n, std::move(attrs));
  // Bodies see what comes before the node, not its own outputs.
  for (const auto& [attribute, bytes] : bodies) {
    MST_TRY(Graph body, read_graph(bytes, &scope, label + "." + attribute, depth + 1));
    graph.add_body(n, attribute, std::move(body));
  }
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (!listed[i].empty()) MST_TRY_VOID(define(scope, listed[i], graph.outputs(n)[i]));
  }
  return {};
}

}  // namespace millstream::onnx_file
