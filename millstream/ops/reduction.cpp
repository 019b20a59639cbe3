// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, arg-reductions and running sums.
#include <fmt/format.h>

#include <algorithm>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

// `AxesSince`: the opset from which axes are an input.
template <int AxesSince, bool Booleans = false>
Descs reduce(const ShapeContext& c) {
  const Operands in(c);
  const bool booleans = Booleans && c.opset >= 20;
  MST_TRY_VOID(
      in.expect_types(0, "data", booleans ? types::kNumeric | types::kBool : types::kNumeric));
  MST_TRY(const IntList axes, int_list(in, "axes", 1, AxesSince));
  const bool keep = in.attrs().get_int("keepdims", 1) != 0;
  const bool noop = in.attrs().get_int("noop_with_empty_axes", 0) != 0;
  const Dims* x = in.dims(0);
  const DType dtype = in.dtype(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(dtype)};
  if (axes.given && !axes.values) {
    // Axes are computed: the rank is known when they are kept, or when their number is.
    if (keep) return std::vector<TensorDesc>{described(dtype, anonymous(x->size()))};
    if (axes.count && *axes.count > 0 && *axes.count <= x->size()) {
      return std::vector<TensorDesc>{described(dtype, anonymous(x->size() - *axes.count))};
    }
    return std::vector<TensorDesc>{unknown(dtype)};
  }
  const bool none = !axes.given || axes.values->empty();
  if (none && noop) return std::vector<TensorDesc>{in.desc(0)};
  std::vector<bool> reduced(x->size(), none);
  if (!none) {
    MST_TRY(const std::vector<std::size_t> list, sorted_axes(in, *axes.values, x->size()));
    for (const std::size_t a : list) reduced[a] = true;
  }
  Dims out;
  for (std::size_t i = 0; i < x->size(); ++i) {
    if (!reduced[i]) {
      out.push_back((*x)[i]);
    } else if (keep) {
      out.push_back(Dim::of(1));
    }
  }
  return std::vector<TensorDesc>{described(dtype, std::move(out))};
}

Descs arg_reduce(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "data", types::kNumeric));
  MST_TRY_VOID(in.expect_rank(0, "data", 1, OpSchema::kVariadic));
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(DType::i64)};
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 0), x->size()));
  if ((*x)[axis].known() && *(*x)[axis].value == 0) {
    return in.error(
        fmt::format("axis {} of {} is empty, so it has no extreme", axis, to_string(*x)));
  }
  Dims out = *x;
  if (in.attrs().get_int("keepdims", 1) != 0) {
    out[axis] = Dim::of(1);
  } else {
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return std::vector<TensorDesc>{described(DType::i64, std::move(out))};
}

Descs cum_sum(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "x", types::kNumeric));
  MST_TRY_VOID(in.expect_types(1, "axis", types::kIndex));
  MST_TRY_VOID(in.expect_rank(1, "axis", 0, 1));
  const auto axis = in.scalar_int(1);
  if (axis && in.dims(0) != nullptr) MST_TRY_VOID(in.axis(*axis, in.dims(0)->size()));
  return std::vector<TensorDesc>{in.desc(0)};
}

constexpr OpSchema row(std::string_view type, ShapeFn shape, CostFn cost) {
  return {type, "", 6, 23, 1, 2, shape, cost};
}

constexpr OpSchema kTable[] = {
    {"ArgMax", "", 6, 23, 1, 1, arg_reduce, per_input_cost<1>},
    {"ArgMin", "", 6, 23, 1, 1, arg_reduce, per_input_cost<1>},
    {"CumSum", "", 11, 23, 2, 2, cum_sum, per_input_cost<1>},
    row("ReduceL1", reduce<18>, per_input_cost<2>),
    row("ReduceL2", reduce<18>, per_input_cost<2>),
    row("ReduceLogSum", reduce<18>, per_input_cost<1>),
    row("ReduceLogSumExp", reduce<18>, per_input_cost<10>),
    row("ReduceMax", reduce<18, true>, per_input_cost<1>),
    row("ReduceMean", reduce<18>, per_input_cost<1>),
    row("ReduceMin", reduce<18, true>, per_input_cost<1>),
    row("ReduceProd", reduce<18>, per_input_cost<1>),
    row("ReduceSum", reduce<13>, per_input_cost<1>),
    row("ReduceSumSquare", reduce<18>, per_input_cost<2>),
};

}  // namespace

std::span<const OpSchema> table_reduction() { return kTable; }

}  // namespace millstream
