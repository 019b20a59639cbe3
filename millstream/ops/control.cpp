// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan. Inference takes their output descs from the bodies; what stands here is what the
// node alone tells, which is all there is when one node is inferred at run time.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

Descs branch(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "cond", types::kBool));
  return std::vector<TensorDesc>(c.output_count);
}

// Inputs: trip count, condition (both may be left out), carried values; outputs: carried, stacked.
Descs loop(const ShapeContext& c) {
  const Operands in(c);
  if (in.count() < 2)
    return in.error(
        fmt::format("has {} inputs, expected the trip count and the condition", in.count()));
  MST_TRY_VOID(in.expect_types(0, "trip count", types::kInt64));
  MST_TRY_VOID(in.expect_types(1, "condition", types::kBool));
  const std::size_t carried = in.count() - 2;
  if (c.output_count < carried) {
    return in.error(fmt::format("has {} outputs, expected at least the {} carried values",
                                c.output_count, carried));
  }
  std::vector<TensorDesc> out(c.output_count);
  for (std::size_t i = 0; i < carried; ++i)
    out[i].dtype = in.dtype(i + 2);  // the shape may change with each turn
  return out;
}

// Inputs: states, then num_scan_inputs scanned ones; outputs: states, stacked.
Descs scan(const ShapeContext& c) {
  const Operands in(c);
  const std::int64_t scanned = in.attrs().get_int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<std::int64_t>(in.count())) {
    return in.error(fmt::format("num_scan_inputs is {}, expected 1 to {}", scanned, in.count()));
  }
  const std::size_t states = in.count() - static_cast<std::size_t>(scanned);
  if (c.output_count < states) {
    return in.error(
        fmt::format("has {} outputs, expected at least the {} states", c.output_count, states));
  }
  std::vector<TensorDesc> out(c.output_count);
  for (std::size_t i = 0; i < states; ++i) out[i].dtype = in.dtype(i);
  return out;
}

// Scan's first form (opset 8) has a batch axis and is not followed.
constexpr OpSchema kTable[] = {
    {"If", "", 6, 23, 1, 1, branch, move_cost, false, false, /*data_dependent=*/true},
    {"Loop", "", 6, 23, 0, kVariadic, loop, move_cost, false, false, /*data_dependent=*/true},
    {"Scan", "", 9, 23, 1, kVariadic, scan, move_cost, false, false, /*data_dependent=*/true},
};

}  // namespace

std::span<const OpSchema> table_control() { return kTable; }

}  // namespace millstream
