// SPDX-License-Identifier: Apache-2.0
// Node types of compiled-graph dumps that hold or name data and emit no task. Their descs stand in
// the dump.
#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

Descs as_declared(const ShapeContext& c) { return std::vector<TensorDesc>(c.output_count); }

constexpr OpSchema row(std::string_view type) {
  return {type, "millstream", 1, 23, 0, kVariadic, as_declared, no_cost, false, /*no_task=*/true};
}

// Constant, the remaining such type, is ONNX's operator too: its row is in generator.cpp.
constexpr OpSchema kTable[] = {
    row("AippData"),     row("Const"),     row("Data"),
    row("FileConstant"), row("NetOutput"), row("Variable"),
};

}  // namespace

std::span<const OpSchema> table_dumps() { return kTable; }

}  // namespace millstream
