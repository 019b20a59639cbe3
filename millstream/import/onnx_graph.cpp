// SPDX-License-Identifier: Apache-2.0
// One graph, the top level's or a body's: initialisers, inputs, nodes, outputs, and the names of all.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/import/onnx_reader.h"
#include "millstream/import/wire.h"

namespace millstream::onnx_file {

using wire::Fields;
using wire::Type;

std::string Reader::unique_value_name(std::string base) {
  if (!user_names_known_) {
    user_names_known_ = true;
    // What cannot be read here is reported where it is converted.
    (void)collect_user_names(top_graph_, 0);
  }
  std::string name = base;
  for (std::size_t k = 1; user_names_.count(name) != 0 || !made_names_.insert(name).second; ++k) {
    name = fmt::format("{}_{}", base, k);
  }
  return name;
}

std::string Reader::value_name(Scope& scope, std::string_view name) {
  if (const auto it = scope.renamed.find(name); it != scope.renamed.end()) return it->second;
  if (scope.prefix.empty()) return std::string(name);
  return unique_value_name(fmt::format("{}/{}", scope.prefix, name));
}

// Names of nodes are labels in ONNX: they may be missing or repeat, and ours may not.
std::string Reader::node_name(Scope& scope, std::string_view name, std::string_view type) {
  GraphState& state = scope.state;
  const auto mark = [&](std::string_view text) -> std::uint8_t& {
    const StringId id = state.graph.intern(text);
    if (id.index >= state.node_names.size()) state.node_names.resize(id.index + 1, 0);
    return state.node_names[id.index];
  };
  std::string base(name);
  if (base.empty()) {
    base = fmt::format("{}_{}", type, state.unnamed++);
  } else if (scope.prefix.empty()) {
    std::uint8_t& seen = mark(base);
    if ((seen & 1) == 0) {
      seen |= 1;
      return base;
    }
  }
  if (!scope.prefix.empty()) base = fmt::format("{}/{}", scope.prefix, base);
  std::string candidate = base;
  for (std::size_t k = 1;; ++k) {
    std::uint8_t& seen = mark(candidate);
    if (seen == 0) {
      seen = 1;
      return candidate;
    }
    candidate = fmt::format("{}_{}", base, k);
  }
}

Result<void> Reader::define(Scope& scope, std::string_view name, InputRef value) {
  if (!scope.names.emplace(name, value).second) {
    return Error{ErrorCode::bad_model, fmt::format("graph \"{}\": value \"{}\" is defined twice", scope.state.graph.name(), name)};
  }
  return {};
}

Result<InputRef> Reader::resolve(Scope& scope, std::string_view name) {
  if (const auto it = scope.names.find(name); it != scope.names.end()) return it->second;
  if (scope.outer != nullptr) {
    MST_TRY(const InputRef there, resolve(*scope.outer, name));
    const auto v = there.get();
    if (!v) return there;  // an input that a function's caller left out
    const Graph& enclosing = scope.outer->state.graph;
    const InputRef here = scope.state.graph.add_outer(std::string(enclosing.name(*v)), enclosing.desc(*v));
    scope.names.emplace(name, here);
    return here;
  }
  return Error{ErrorCode::bad_model,
               fmt::format("graph \"{}\": value \"{}\" is read before any node produces it", scope.state.graph.name(), name)}
      .note("nodes must be listed so that each comes after those it reads from");
}

// A graph's output is always produced by a node (or is an input), so that who binds output buffers need
// not know constants: a constant of that name is copied to it.
Result<void> Reader::add_constant(Scope& scope, std::string_view name, Tensor tensor) {
  Graph& graph = scope.state.graph;
  const std::string actual = value_name(scope, name);
  if (scope.state.outputs.count(actual) == 0) {
    return define(scope, name, graph.add_constant(actual, std::move(tensor)));
  }
  if (scope.names.count(name) != 0) return define(scope, name, {});
  const InputRef inputs[] = {graph.add_constant(unique_value_name(actual + "_value"), std::move(tensor))};
  const std::string_view outputs[] = {actual};
  const NodeId n = graph.add_node({"Identity", node_name(scope, {}, "Identity"), inputs, outputs, {}});
  return define(scope, name, graph.outputs(n)[0]);
}

Result<TensorDesc> Reader::read_desc(const ValueMessage& value, std::string_view what, bool name_dims) {
  auto type = read_type(value.type);
  if (!type.ok()) {
    Error error = std::move(type).error();
    error.message = fmt::format("{} \"{}\": {}", what, value.name, error.message);
    return error;
  }
  const bool is_string = type->kind == "tensor" && type->desc.dtype == DType::string;
  if ((type->kind != "tensor" && !type->kind.empty()) || is_string) {
    if (!unsupported_) {
      unsupported_ = Error{ErrorCode::unsupported_operator,
                           fmt::format("{} \"{}\" is a {}: only tensors of numbers and bools are supported", what,
                                       value.name, is_string ? "string tensor" : type->kind)};
    }
    return TensorDesc{};
  }
  TensorDesc desc = std::move(type->desc);
  if (!desc.shape) return desc;
  for (std::size_t i = 0; i < desc.shape->size(); ++i) {
    Dim& d = (*desc.shape)[i];
    // So that a dimension without a name can be bound as well.
    if (name_dims && !d.known() && d.symbol.empty()) d.symbol = fmt::format("{}.{}", value.name, i);
    if (d.known() || d.symbol.empty()) continue;
    if (symbols_.size() < kMaxListed) symbols_.insert(d.symbol);
    if (const auto it = options_.dims.find(d.symbol); it != options_.dims.end()) d = Dim::of(it->second);
  }
  return desc;
}

namespace {

/// Calls `visit(bytes)` for each field of that number; stops at the first error.
template <class Visit>
Result<void> for_each(std::string_view message, std::uint32_t number, std::string_view what, Visit visit) {
  Fields fields(message);
  while (const auto f = fields.next()) {
    if (f->number != number) continue;
    if (f->type != Type::bytes) return malformed(what);
    MST_TRY_VOID(visit(f->bytes));
  }
  if (fields.malformed()) return malformed(what);
  return {};
}

}  // namespace

Result<void> Reader::add_initializers(std::string_view message, Scope& scope) {
  MST_TRY_VOID(for_each(message, kGraphSparseInitializer, "a sparse initialiser", [&](std::string_view) -> Result<void> {
    return Error{ErrorCode::unsupported_operator,
                 fmt::format("graph \"{}\" has a sparse initialiser, which is not supported", scope.state.graph.name())}
        .help("store it dense");
  }));
  return for_each(message, kGraphInitializer, "an initialiser", [&](std::string_view bytes) -> Result<void> {
    MST_TRY(const TensorMessage tensor, read_tensor_message(bytes));
    if (tensor.name.empty()) {
      return Error{ErrorCode::bad_model, fmt::format("graph \"{}\" has an initialiser without a name", scope.state.graph.name())};
    }
    if (tensor.data_type == static_cast<std::int64_t>(DType::string)) {
      if (!unsupported_) {
        unsupported_ = Error{ErrorCode::unsupported_operator,
                             fmt::format("initialiser \"{}\" is a string tensor: only numbers and bools are supported", tensor.name)};
      }
      return define(scope, tensor.name, scope.state.graph.add_outer(value_name(scope, tensor.name), {}));
    }
    MST_TRY(Tensor data, tensors_.read(tensor, fmt::format("initialiser \"{}\"", tensor.name)));
    return add_constant(scope, tensor.name, std::move(data));
  });
}

Result<void> Reader::add_inputs(std::string_view message, Scope& scope, bool is_body) {
  // Up to IR 3 every initialiser is listed as an input as well; later ones may be, as a default that a
  // caller could replace. Both are constants here.
  std::unordered_set<std::string_view> seen;
  return for_each(message, kGraphInput, "a graph input", [&](std::string_view bytes) -> Result<void> {
    MST_TRY(const ValueMessage value, read_value(bytes));
    const std::string_view graph_name = scope.state.graph.name();
    if (value.name.empty()) return Error{ErrorCode::bad_model, fmt::format("graph \"{}\" has an input without a name", graph_name)};
    if (!seen.insert(value.name).second) {
      return Error{ErrorCode::bad_model, fmt::format("graph \"{}\" has two inputs \"{}\"", graph_name, value.name)};
    }
    MST_TRY(TensorDesc desc, read_desc(value, "input", !is_body));
    if (scope.names.count(value.name) != 0) return {};
    if (!is_body && desc.dtype == DType::undefined && !unsupported_) {
      return Error{ErrorCode::bad_model, fmt::format("input \"{}\" has no element type", value.name)};
    }
    const auto size = desc.bytes();
    if (options_.max_memory && size && *size > *options_.max_memory) {
      return Error{ErrorCode::memory_limit, fmt::format("input \"{}\": a tensor {} takes {} bytes, allowed are {}", value.name,
                                                        to_string(desc), *size, *options_.max_memory)}
          .help("raise --max-memory, or bind smaller dimensions with --dim");
    }
    return define(scope, value.name, scope.state.graph.add_input(value_name(scope, value.name), std::move(desc)));
  });
}

Result<void> Reader::add_outputs(std::string_view message, Scope& scope) {
  std::size_t count = 0;
  MST_TRY_VOID(for_each(message, kGraphOutput, "a graph output", [&](std::string_view bytes) -> Result<void> {
    MST_TRY(const ValueMessage value, read_value(bytes));
    ++count;
    Graph& graph = scope.state.graph;
    MST_TRY(TensorDesc hint, read_desc(value, "output"));
    auto found = resolve(scope, value.name);
    if (!found.ok() || found->absent()) {
      return Error{ErrorCode::bad_model, fmt::format("graph \"{}\": no node produces output \"{}\"", graph.name(), value.name)};
    }
    ValueId v = *found->get();
    if (scope.outer != nullptr && graph.kind(v) != ValueKind::output) {
      // A body's outputs have places, not names; so that each is some node's, what passes through is copied.
      const InputRef inputs[] = {v};
      const std::string copy = unique_value_name(fmt::format("{}_copy", graph.name(v)));
      const std::string_view outputs[] = {copy};
      const NodeId n = graph.add_node({"Identity", node_name(scope, {}, "Identity"), inputs, outputs, {}});
      v = graph.outputs(n)[0];
    }
    graph.add_output(v);
    if (graph.kind(v) == ValueKind::output) graph.set_desc(v, std::move(hint));
    return {};
  }));
  if (count == 0 && scope.outer == nullptr) {
    return Error{ErrorCode::bad_model, fmt::format("graph \"{}\" has no outputs", scope.state.graph.name())};
  }
  return {};
}

// Descs that the file states about values inside; inference uses them where it finds nothing.
Result<void> Reader::add_hints(std::string_view message, Scope& scope) {
  return for_each(message, kGraphValueInfo, "a value description", [&](std::string_view bytes) -> Result<void> {
    MST_TRY(const ValueMessage value, read_value(bytes));
    const auto it = scope.names.find(value.name);
    if (it == scope.names.end() || it->second.absent()) return {};
    Graph& graph = scope.state.graph;
    const ValueId v = *it->second.get();
    if (graph.kind(v) != ValueKind::output) return {};
    MST_TRY(TensorDesc hint, read_desc(value, "value"));
    if (graph.desc(v) == TensorDesc{}) graph.set_desc(v, std::move(hint));
    return {};
  });
}

Result<void> Reader::add_nodes(std::string_view message, std::uint32_t node_field, Scope& scope, int depth) {
  return for_each(message, node_field, "a node", [&](std::string_view bytes) -> Result<void> {
    MST_TRY(const NodeMessage node, read_node(bytes));
    return add_node(node, scope, depth);
  });
}

Result<Graph> Reader::read_graph(std::string_view message, Scope* outer, const std::string& name, int depth) {
  if (depth > kMaxDepth) {
    return Error{ErrorCode::bad_model, fmt::format("graphs are nested more than {} deep", kMaxDepth)};
  }
  GraphState state{Graph(name), {}, {}, 0};
  if (outer == nullptr) {
    Fields fields(message);
    while (const auto f = fields.next()) {
      if (f->number == kGraphName && f->type == Type::bytes && !f->bytes.empty()) state.graph.set_name(std::string(f->bytes));
    }
  }
  state.graph.set_opset(opset_);
  Scope scope{state, outer, outer != nullptr ? outer->call : nullptr, outer != nullptr ? outer->prefix : std::string(),
              outer != nullptr ? outer->opset : opset_, {}, {}};
  // Names that nodes ask for come before names that we make up.
  MST_TRY_VOID(for_each(message, kGraphNode, "a node", [&](std::string_view bytes) -> Result<void> {
    MST_TRY(const NodeMessage node, read_node(bytes));
    if (node.name.empty() || !scope.prefix.empty()) return {};
    const StringId id = state.graph.intern(node.name);
    if (id.index >= state.node_names.size()) state.node_names.resize(id.index + 1, 0);
    state.node_names[id.index] = 2;
    return {};
  }));
  if (outer == nullptr) {
    MST_TRY_VOID(for_each(message, kGraphOutput, "a graph output", [&](std::string_view bytes) -> Result<void> {
      MST_TRY(const ValueMessage value, read_value(bytes));
      state.outputs.insert(value.name);
      return {};
    }));
  }
  MST_TRY_VOID(add_initializers(message, scope));
  MST_TRY_VOID(add_inputs(message, scope, outer != nullptr));
  MST_TRY_VOID(add_nodes(message, kGraphNode, scope, depth));
  MST_TRY_VOID(add_outputs(message, scope));
  MST_TRY_VOID(add_hints(message, scope));
  if (!missing_.empty() || unsupported_) return std::move(state.graph);  // refused by the caller
  MST_TRY_VOID(state.graph.finish());
  return std::move(state.graph);
}

}  // namespace millstream::onnx_file
