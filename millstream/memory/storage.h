// SPDX-License-Identifier: Apache-2.0
// Which values share bytes, and which of them live in the arena.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "millstream/graph/graph.h"
#include "millstream/ops/op.h"

namespace millstream {

/// Schemas by type, each looked up once.
class SchemaCache {
 public:
  explicit SchemaCache(const Graph& graph) : graph_(graph), rows_(graph.strings().size()) {}
  const OpSchema* of(NodeId n) {
    Row& row = rows_[graph_.type_id(n).index];
    if (!row.asked) row = {find_op(graph_.type(n)), true};
    return row.schema;
  }

 private:
  struct Row {
    const OpSchema* schema = nullptr;
    bool asked = false;
  };
  const Graph& graph_;
  std::vector<Row> rows_;
};

/// True when output 0 holds input 0's bytes, so that the node runs no kernel: an operator marked as a view,
/// with one output and without a training mode.
bool is_view(const Graph& graph, NodeId n, const OpSchema* schema);

/// The definition that planner, memory verifier and executable share; everything they conclude from it is
/// each one's own. O(nodes + values).
class Storages {
 public:
  explicit Storages(const Graph& graph);
  /// The value that owns v's bytes: v itself, or through views the one at their start.
  ValueId root(ValueId v) const { return root_.empty() ? v : root_[v]; }
  /// Bytes when `v` owns arena bytes: a node's output of static shape that its kernel does not assign.
  std::optional<std::uint64_t> arena_bytes(ValueId v) const;

 private:
  const Graph& graph_;
  IdVec<ValueId, ValueId> root_;            // empty: no views
  std::vector<std::uint8_t> assigns_;       // by StringId of the type: data_dependent
};

}  // namespace millstream
