// SPDX-License-Identifier: Apache-2.0
#include "millstream/memory/storage.h"

namespace millstream {

bool is_view(const Graph& graph, NodeId n, const OpSchema* schema) {
  if (schema == nullptr || !schema->view || schema->data_dependent || schema->no_task) return false;
  const auto inputs = graph.inputs(n);
  const auto outputs = graph.outputs(n);
  if (inputs.empty() || inputs[0].absent() || outputs.size() != 1) return false;
  // With a training mode input Dropout may change what it passes on.
  if (graph.type(n) == "Dropout" && inputs.size() > 2 && !inputs[2].absent()) return false;
  const auto from = graph.desc(*inputs[0].get()).bytes(), to = graph.desc(outputs[0]).bytes();
  return !from || !to || *from == *to;
}

Storages::Storages(const Graph& graph) : graph_(graph), assigns_(graph.strings().size(), 0) {
  SchemaCache schemas(graph);
  for (const NodeId n : graph.order()) {
    const OpSchema* schema = schemas.of(n);
    if (schema != nullptr && schema->data_dependent) assigns_[graph.type_id(n).index] = 1;
    if (!is_view(graph, n, schema)) continue;
    if (root_.empty()) {
      root_.resize(graph.value_count());
      for (const ValueId v : graph.values()) root_[v] = v;
    }
    root_[graph.outputs(n)[0]] = *graph.inputs(n)[0].get();
  }
  if (root_.empty()) return;
  // Chains to their start, however the order lists them; a graph is acyclic.
  for (const ValueId v : graph.values()) {
    ValueId start = v;
    while (root_[start] != start) start = root_[start];
    for (ValueId at = v; root_[at] != start;) {
      const ValueId next = root_[at];
      root_[at] = start;
      at = next;
    }
  }
}

std::optional<std::uint64_t> Storages::arena_bytes(ValueId v) const {
  const auto producer = graph_.producer(v);
  if (!producer || root(v) != v || assigns_[graph_.type_id(*producer).index] != 0) return std::nullopt;
  const TensorDesc& desc = graph_.desc(v);
  if (dtype_bits(desc.dtype) == 0) return std::nullopt;
  return desc.bytes();
}

}  // namespace millstream
