// SPDX-License-Identifier: Apache-2.0
// Comparisons, boolean operators and selection.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNumbers = types::kNumeric.bits;
constexpr std::uint32_t kEqual = (types::kNumeric | types::kBool | TypeSet{DType::string}).bits;
constexpr std::uint32_t kFloats = (types::kFloat | types::kFloat8).bits;

// A and B of one allowed type, broadcast; the result is boolean.
template <std::uint32_t AllowedBits>
Descs predicate(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "A", TypeSet(AllowedBits)));
  MST_TRY_VOID(in.expect_types(1, "B", TypeSet(AllowedBits)));
  MST_TRY_VOID(in.common_dtype({0, 1}));
  MST_TRY_VOID(expect_numpy_alignment(in));
  MST_TRY(std::optional<Dims> dims, broadcast(in, {0, 1}));
  return std::vector<TensorDesc>{dims ? described(DType::boolean, std::move(*dims))
                                      : unknown(DType::boolean)};
}

// IsNaN, IsInf: one input, boolean result.
Descs classify(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", TypeSet(kFloats)));
  TensorDesc out = in.desc(0);
  out.dtype = DType::boolean;
  return std::vector<TensorDesc>{std::move(out)};
}

Descs where(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "condition", types::kBool));
  MST_TRY(const DType dtype, in.common_dtype({1, 2}));
  MST_TRY(std::optional<Dims> dims, broadcast(in, {0, 1, 2}));
  return std::vector<TensorDesc>{dims ? described(dtype, std::move(*dims)) : unknown(dtype)};
}

constexpr OpSchema row(std::string_view type, int since, ShapeFn shape) {
  return {type, "", since, 23, 2, 2, shape, elementwise_cost<1>};
}

constexpr OpSchema kTable[] = {
    row("And", 6, predicate<types::kBool.bits>),
    row("Equal", 6, predicate<kEqual>),
    row("Greater", 6, predicate<kNumbers>),
    row("GreaterOrEqual", 12, predicate<kNumbers>),
    {"IsInf", "", 10, 23, 1, 1, classify, elementwise_cost<1>},
    {"IsNaN", "", 9, 23, 1, 1, classify, elementwise_cost<1>},
    row("Less", 6, predicate<kNumbers>),
    row("LessOrEqual", 12, predicate<kNumbers>),
    {"Not", "", 1, 23, 1, 1, same_as_input<types::kBool.bits>, elementwise_cost<1>},
    row("Or", 6, predicate<types::kBool.bits>),
    {"Where", "", 9, 23, 3, 3, where, elementwise_cost<1>},
    row("Xor", 6, predicate<types::kBool.bits>),
};

}  // namespace

std::span<const OpSchema> table_logic() { return kTable; }

}  // namespace millstream
