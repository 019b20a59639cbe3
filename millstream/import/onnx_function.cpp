// SPDX-License-Identifier: Apache-2.0
// Model-local functions: each call becomes the function's nodes.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/import/onnx_reader.h"
#include "millstream/import/wire.h"

namespace millstream::onnx_file {

Result<void> Reader::read_functions(const ModelMessage& model) {
  for (const std::string_view bytes : model.functions) {
    MST_TRY(FunctionMessage function, read_function(bytes));
    const FunctionKey key{default_domain(function.domain), function.name, function.overload};
    const std::string name(function.name);
    if (!functions_.emplace(key, std::move(function)).second) {
      return Error{ErrorCode::bad_model, fmt::format("model \"{}\" defines function \"{}\" twice", name_, name)};
    }
  }
  return {};
}

const FunctionMessage* Reader::find_function(const NodeMessage& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find(FunctionKey{default_domain(node.domain), node.op_type, node.overload});
  return it == functions_.end() ? nullptr : &it->second;
}

Result<void> Reader::spend(std::uint64_t bytes) {
  spent_ += bytes;
  const std::uint64_t allowed = (std::uint64_t{32} << 20) + 4 * bytes_.size();
  if (spent_ <= allowed) return {};
  return Error{ErrorCode::memory_limit,
               fmt::format("the functions of model \"{}\" expand to more than {} bytes of nodes", name_, allowed)};
}

Result<void> Reader::inline_call(const FunctionMessage& function, const NodeMessage& node, Scope& scope, int depth) {
  const auto refuse = [&](std::string why) {
    return Error{ErrorCode::bad_model, fmt::format("function \"{}\" called by \"{}\": {}", function.name, node.name, why)};
  };
  if (std::find(active_.begin(), active_.end(), &function) != active_.end()) return refuse("it calls itself");
  if (active_.size() >= static_cast<std::size_t>(kMaxCallDepth)) {
    return refuse(fmt::format("functions call each other more than {} deep", kMaxCallDepth));
  }
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size()) {
    return refuse(fmt::format("has {} inputs and {} outputs, the function {} and {}", node.inputs.size(), node.outputs.size(),
                              function.inputs.size(), function.outputs.size()));
  }
  for (const OpsetMessage& opset : function.opsets) {
    if (default_domain(opset.domain).empty() && opset.version != opset_) {
      missing_.add(spelling(node), static_cast<int>(std::clamp<std::int64_t>(opset.version, 0, 1'000'000)),
                   fmt::format("a function of another operator set version than the model's {}", opset_));
    }
  }

  Call call;
  for (const std::string_view bytes : function.default_attributes) {
    MST_TRY(AttributeMessage attribute, read_attribute(bytes));
    const std::string_view name = attribute.name;
    call.attributes.insert_or_assign(name, std::move(attribute));
  }
  for (const std::string_view bytes : node.attributes) {
    MST_TRY(auto attribute, resolve_attribute(bytes, scope));
    if (!attribute) continue;
    const std::string_view name = attribute->name;
    call.attributes.insert_or_assign(name, *std::move(attribute));
  }

  Graph& graph = scope.state.graph;
  Scope inside{scope.state, nullptr, &call, node_name(scope, node.name, node.op_type), scope.opset, {}, {}};
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    InputRef value;
    if (i < node.inputs.size() && !node.inputs[i].empty()) {
      MST_TRY(value, resolve(scope, node.inputs[i]));
    }
    MST_TRY_VOID(define(inside, function.inputs[i], value));
  }
  // Whatever produces an output of the function gives it the caller's name at once.
  std::vector<std::string> wanted(node.outputs.size());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    wanted[i] = value_name(scope, node.outputs[i]);
    if (inside.names.count(function.outputs[i]) == 0) inside.renamed.emplace(function.outputs[i], wanted[i]);
  }

  active_.push_back(&function);
  MST_TRY_VOID(add_nodes(function.message, kFunctionNode, inside, depth));
  active_.pop_back();

  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const auto it = inside.names.find(function.outputs[i]);
    if (it == inside.names.end() || it->second.absent()) {
      return refuse(fmt::format("no node produces its output \"{}\"", function.outputs[i]));
    }
    InputRef value = it->second;
    if (graph.name(*value.get()) != wanted[i]) {
      // The function passes an input on, or gives one value twice.
      const InputRef inputs[] = {value};
      const std::string_view outputs[] = {wanted[i]};
      const NodeId copy = graph.add_node({"Identity", node_name(scope, {}, "Identity"), inputs, outputs, {}});
      value = graph.outputs(copy)[0];
    }
    MST_TRY_VOID(define(scope, node.outputs[i], value));
  }
  return {};
}

// Every value name in the file's graphs, so that names we make up differ from all of them.
Result<void> Reader::collect_user_names(std::string_view graph, int depth) {
  if (depth > kMaxDepth) return {};
  wire::Fields fields(graph);
  while (const auto f = fields.next()) {
    if (f->type != wire::Type::bytes) continue;
    if (f->number == kGraphInput || f->number == kGraphOutput) {
      MST_TRY(const ValueMessage value, read_value(f->bytes));
      user_names_.insert(value.name);
    } else if (f->number == kGraphInitializer) {
      MST_TRY(const TensorMessage tensor, read_tensor_message(f->bytes));
      user_names_.insert(tensor.name);
    } else if (f->number == kGraphNode) {
      MST_TRY(const NodeMessage node, read_node(f->bytes));
      user_names_.insert(node.outputs.begin(), node.outputs.end());
      for (const std::string_view bytes : node.attributes) {
        MST_TRY(const AttributeMessage attribute, read_attribute(bytes));
        if (!attribute.graph.empty()) MST_TRY_VOID(collect_user_names(attribute.graph, depth + 1));
      }
    }
  }
  return {};
}

}  // namespace millstream::onnx_file
