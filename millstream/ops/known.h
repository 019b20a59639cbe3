// SPDX-License-Identifier: Apache-2.0
// Values of a graph that are known before a run: constants and what arithmetic on them and on shapes gives.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "millstream/ops/evaluate.h"
#include "millstream/ops/op.h"

namespace millstream {

/// Per type name of one graph: its schema and evaluator, looked up once (a graph has few types and may
/// have a million nodes).
class TypeCache {
 public:
  struct Row {
    const OpSchema* schema = nullptr;
    const Evaluator* evaluator = nullptr;
    bool looked_up = false;
  };
  const Row& of(const Graph& graph, NodeId node);

 private:
  std::vector<Row> rows_;  // by StringId of the type
};

/// One graph while its nodes are visited in order. `outer` is the enclosing graph, for a body.
class KnownValues {
 public:
  KnownValues(const Graph& graph, const KnownValues* outer);

  /// The value, or null. For an outer value: what the enclosing graph knows.
  const Tensor* find(ValueId v) const;
  /// The desc of an outer value in the enclosing graph; null when there is none.
  const TensorDesc* outer_desc(ValueId v) const;
  void set(ValueId v, Tensor tensor) { computed_.insert_or_assign(v.index, std::move(tensor)); }
  /// True when the value was computed here, not a constant.
  bool computed(ValueId v) const { return computed_.count(v.index) != 0; }

 private:
  std::optional<ValueId> lookup(std::string_view name) const;

  const Graph& graph_;
  const KnownValues* outer_;
  std::unordered_map<std::uint32_t, Tensor> computed_;  // looked up only, never iterated
  std::vector<std::uint32_t> by_string_;                // value index + 1 by StringId; empty without bodies
};

/// What a shape function reads of one node; the vectors own what `context` views.
struct NodeView {
  NodeView(const Graph& graph, NodeId node, const KnownValues& known);
  NodeView(const NodeView&) = delete;
  NodeView& operator=(const NodeView&) = delete;

  std::vector<const TensorDesc*> descs;
  std::vector<const Tensor*> values;
  bool all_known = true;  ///< every input that is present
  ShapeContext context;
};

/// Outputs of `node` if they can be computed from what is known; descs are the node's inferred outputs.
std::optional<std::vector<Tensor>> evaluate_node(const NodeView& view, const TypeCache::Row& type,
                                                 std::span<const TensorDesc> outputs);

}  // namespace millstream
