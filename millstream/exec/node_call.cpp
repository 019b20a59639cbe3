// SPDX-License-Identifier: Apache-2.0
#include "millstream/exec/node_call.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "millstream/memory/storage.h"

namespace millstream {
namespace {

// Above this a tensor is refused instead of asking the system for it.
constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{1} << 40;

Error wrong_shape(const Graph& graph, NodeId n, std::string what) {
  return Error{ErrorCode::shape, fmt::format("{} \"{}\": {}", graph.type(n), graph.name(n), what)};
}

Error too_large(const Graph& graph, NodeId n, const TensorDesc& desc, std::uint64_t bytes, std::uint64_t allowed) {
  return Error{ErrorCode::memory_limit, fmt::format("{} \"{}\": an output {} takes {} bytes, allowed are {}", graph.type(n),
                                                    graph.name(n), to_string(desc), bytes, allowed)};
}

Result<Tensor> make_tensor(const Graph& graph, const NodeCall& call, const TensorDesc& desc) {
  const NodeId n = call.node;
  const auto bytes = desc.bytes();
  if (!bytes) return wrong_shape(graph, n, fmt::format("the inputs do not determine an output: {}", to_string(desc)));
  const std::uint64_t allowed = std::min(call.max_bytes, kMaxTensorBytes);
  if (*bytes > allowed) return too_large(graph, n, desc, *bytes, allowed);
  try {
    return Tensor(desc.dtype, desc.dims());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_limit, fmt::format("{} \"{}\": the system does not give the {} bytes of an output {}",
                                                      graph.type(n), graph.name(n), *bytes, to_string(desc))};
  }
}

Error name_node(const Graph& graph, NodeId n, Error error) {
  if (error.message.find(graph.name(n)) == std::string::npos) {
    error.message = fmt::format("{} \"{}\": {}", graph.type(n), graph.name(n), error.message);
  }
  return error;
}

Result<void> run_kernel(const Graph& graph, NodeCall& call, TensorTable& table, StreamScratch& scratch) {
  const auto outputs = graph.outputs(call.node);
  const std::span<Tensor> out =
      outputs.empty() ? std::span<Tensor>() : std::span<Tensor>(&table[outputs[0]], outputs.size());
  KernelArgs args(call.inputs, out, scratch);
  try {
    auto done = call.kernel->run(args);
    if (!done.ok()) return name_node(graph, call.node, std::move(done).error());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_limit, fmt::format("{} \"{}\": out of memory", graph.type(call.node), graph.name(call.node))};
  } catch (const std::exception& e) {
    return Error{ErrorCode::kernel, fmt::format("{} \"{}\": {}", graph.type(call.node), graph.name(call.node), e.what())};
  }
  return {};
}

Result<void> run_view(const Graph& graph, NodeCall& call, TensorTable& table, const std::vector<TensorDesc>& inferred) {
  if (call.outputs[0] == OutputKind::bound) return {};
  const ValueId v = graph.outputs(call.node)[0];
  const TensorDesc& desc = call.outputs[0] == OutputKind::sized ? graph.desc(v) : inferred[0];
  const Tensor& from = *call.inputs[0];
  const auto elements = desc.elements();
  if (!elements || *elements != from.elements() || desc.dtype != from.dtype()) {
    return wrong_shape(graph, call.node, fmt::format("cannot show {} as {}", to_string(from.desc()), to_string(desc)));
  }
  table[v] = from.reshaped(desc.dims());
  return {};
}

}  // namespace

bool fits(const TensorDesc& desc, const Tensor& tensor) {
  if (desc.dtype != DType::undefined && desc.dtype != tensor.dtype()) return false;
  if (!desc.shape) return true;
  if (desc.shape->size() != tensor.shape().size()) return false;
  for (std::size_t i = 0; i < desc.shape->size(); ++i) {
    const Dim& d = (*desc.shape)[i];
    if (d.known() && *d.value != tensor.shape()[i]) return false;
  }
  return true;
}

Tensor copy_of(const Tensor& tensor) {
  Tensor out(tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()});
  if (tensor.byte_size() != 0) std::memcpy(out.mutable_bytes(), tensor.bytes(), tensor.byte_size());
  return out;
}

Tensor aligned_tensor(const Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.bytes()) % 64 == 0 && tensor.bytes() != nullptr ? tensor : copy_of(tensor);
}

Result<NodeCall> prepare_call(const KernelSpec& spec, const KernelTable& kernels, TensorTable& table,
                              const std::vector<bool>& bound) {
  const Graph& graph = spec.graph;
  const NodeId node = spec.node;
  NodeCall call;
  call.node = node;
  call.max_bytes = spec.max_bytes;
  const OpSchema* schema = find_op(graph.type(node));
  for (const InputRef in : graph.inputs(node)) {
    const auto v = in.get();
    call.inputs.push_back(v ? &table[*v] : nullptr);
  }
  call.own_inputs = call.inputs.size();
  for (const ValueId v : graph.captures(node)) call.inputs.push_back(&table[v]);
  const bool assigns = schema != nullptr && schema->data_dependent;
  for (const ValueId v : graph.outputs(node)) {
    call.outputs.push_back(bound[v.index]                        ? OutputKind::bound
                           : assigns                             ? OutputKind::assigned
                           : graph.desc(v).bytes().has_value()   ? OutputKind::sized
                                                                 : OutputKind::inferred);
  }
  if (is_view(graph, node, schema)) return call;
  const KernelFactory make = kernels.find(graph.type(node));
  if (make == nullptr) {
    return Error{ErrorCode::unsupported_operator, fmt::format("no CPU kernel for node \"{}\" ({})", graph.name(node), graph.type(node))};
  }
  MST_TRY(call.kernel, make(spec));
  return call;
}

Result<void> run_call(const Graph& graph, NodeCall& call, TensorTable& table, StreamScratch& scratch) {
  std::vector<TensorDesc> inferred;
  bool needs_shapes = false, all_bound = true;
  for (const OutputKind kind : call.outputs) {
    needs_shapes = needs_shapes || kind == OutputKind::inferred;
    all_bound = all_bound && kind == OutputKind::bound;
  }
  if (needs_shapes) {
    MST_TRY(inferred, infer_node(graph, call.node, std::span(call.inputs).first(call.own_inputs)));
    MST_CHECK(inferred.size() == call.outputs.size(), "a desc an output");
  }
  if (call.kernel == nullptr) {
    MST_TRY_VOID(run_view(graph, call, table, inferred));
  } else {
    const auto outputs = graph.outputs(call.node);
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i] == OutputKind::bound) continue;
      if (call.outputs[i] == OutputKind::assigned) {
        table[outputs[i]] = Tensor();
        continue;
      }
      const bool sized = call.outputs[i] == OutputKind::sized;
      MST_TRY(table[outputs[i]], make_tensor(graph, call, sized ? graph.desc(outputs[i]) : inferred[i]));
    }
    MST_TRY_VOID(run_kernel(graph, call, table, scratch));
  }
  if (all_bound) return {};
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const ValueId v = graph.outputs(call.node)[i];
    if (call.outputs[i] == OutputKind::bound) continue;
    if (table[v].bytes() == nullptr && !graph.name(v).empty()) {
      return Error{ErrorCode::kernel, fmt::format("{} \"{}\" did not give output \"{}\"", graph.type(call.node),
                                                  graph.name(call.node), graph.name(v))};
    }
    if (call.outputs[i] == OutputKind::assigned && table[v].byte_size() > call.max_bytes) {
      return too_large(graph, call.node, table[v].desc(), table[v].byte_size(), call.max_bytes);
    }
    // Kernels behind were made for what the graph declares.
    if (!graph.name(v).empty() && !fits(graph.desc(v), table[v])) {
      return wrong_shape(graph, call.node, fmt::format("output \"{}\" is {}, the model declares {}", graph.name(v),
                                                       to_string(table[v].desc()), to_string(graph.desc(v))));
    }
  }
  return {};
}

void MissingKernels::add(const Graph& graph, NodeId node, const Error& error) {
  std::string reason = error.message;
  // The factory names the node; one line stands for all nodes that share the reason.
  if (const std::size_t at = reason.find("): "); at != std::string::npos) reason = reason.substr(at + 3);
  if (reason.rfind("no CPU kernel", 0) == 0) reason = "no CPU kernel";
  for (Row& row : rows_) {
    if (row.type == graph.type(node) && row.reason == reason) {
      ++row.nodes;
      return;
    }
  }
  rows_.push_back({std::string(graph.type(node)), graph.opset(), std::move(reason), std::string(graph.name(node)), 1});
  for (const Note& note : error.notes) {
    if (note.kind == Note::Kind::note) rows_.back().reason += "; " + note.text;
  }
}

Error MissingKernels::error() const {
  const auto line = [](const Row& row) {
    return fmt::format("{} (opset {}), {} node{}, first \"{}\": {}", row.type, row.opset, row.nodes, row.nodes == 1 ? "" : "s",
                       row.first, row.reason);
  };
  if (rows_.size() == 1) return Error{ErrorCode::unsupported_operator, "no kernel for " + line(rows_[0])};
  Error error{ErrorCode::unsupported_operator, fmt::format("no kernel for {} operators", rows_.size())};
  for (const Row& row : rows_) error.note(line(row));
  return error;
}

}  // namespace millstream
