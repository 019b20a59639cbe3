// SPDX-License-Identifier: Apache-2.0
// One operator call written in text, for table-driven tests of shape and cost functions.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "millstream/graph/text.h"
#include "millstream/ops/op.h"

namespace millstream::testing {

/// `call` is one node as in millstream text without its outputs, "Conv(x, w) {group=2}"; `values`
/// declare what it reads: "x : f32[1,N]" (unknown value) or "s : i64[2] = [1, 2]" (known value).
struct OpCall {
  int opset;
  std::vector<std::string> values;
  std::string call;
  std::size_t outputs = 1;
};

inline Result<Graph> graph_of(const OpCall& op) {
  std::string text = fmt::format("graph g opset={}\n", op.opset);
  for (const std::string& v : op.values) {
    text += (v.find('=') == std::string::npos ? "  input " : "  const ") + v + "\n";
  }
  text += "  ";
  for (std::size_t i = 0; i < op.outputs; ++i)
    text += fmt::format("{}out{}", i == 0 ? "" : ", ", i);
  if (op.outputs != 0) text += " = ";
  return parse_graph(text + op.call + " @name(\"n\")\n", "op.mst");
}

/// Calls the shape function alone: no arity check, no evaluation, no hints.
inline Result<std::vector<TensorDesc>> shapes_of(const Graph& graph) {
  const NodeId node(0);
  const OpSchema* schema = find_op(graph.type(node));
  if (schema == nullptr) return Error{ErrorCode::unsupported_operator, "no such operator"};
  std::vector<const TensorDesc*> descs;
  std::vector<const Tensor*> values;
  for (const InputRef in : graph.inputs(node)) {
    const auto v = in.get();
    descs.push_back(v ? &graph.desc(*v) : nullptr);
    values.push_back(v ? graph.constant(*v) : nullptr);
  }
  return schema->shape(ShapeContext{graph.name(node), graph.type(node), graph.attrs(node),
                                    graph.opset(), descs, values, graph.outputs(node).size()});
}

/// The descs in text, separated by blanks, or the error's message.
inline std::string shapes_text(const OpCall& op) {
  const Result<Graph> graph = graph_of(op);
  if (!graph.ok()) return "text: " + to_string(graph.error());
  const auto descs = shapes_of(*graph);
  if (!descs.ok()) {
    return fmt::format("[{}] {}", error_code_info(descs.error().code).number,
                       descs.error().message);
  }
  std::string out;
  for (const TensorDesc& d : *descs) out += (out.empty() ? "" : " ") + to_string(d);
  return out;
}

/// A row of a table: the call and what it must give (descs, or an error's text).
struct OpRow {
  OpCall call;
  std::string want;
};

}  // namespace millstream::testing
