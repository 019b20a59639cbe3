// SPDX-License-Identifier: Apache-2.0
// Operators that make a tensor from a shape, a number or nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr std::int64_t kLongest = std::int64_t{1} << 48;

// The dimensions from `start` to `end`, both clamped (attributes from opset 15).
Descs shape_of(const ShapeContext& c) {
  const Operands in(c);
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{described(DType::i64, anonymous(1))};
  const auto rank = std::ssize(*x);
  const auto clamp = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
  };
  const std::int64_t first = clamp(in.attrs().get_int("start", 0));
  const std::int64_t last = clamp(in.attrs().get_int("end", rank));
  return std::vector<TensorDesc>{
      TensorDesc::of(DType::i64, {std::max<std::int64_t>(0, last - first)})};
}

Descs size_of(const ShapeContext&) {
  return std::vector<TensorDesc>{TensorDesc::of(DType::i64, {})};
}

Descs constant_of_shape(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "shape", types::kInt64));
  MST_TRY_VOID(in.expect_rank(0, "shape", 1, 1));
  DType dtype = DType::f32;
  if (const Tensor* value = in.attrs().get_tensor("value")) {
    if (value->elements() != 1) {
      return in.error(fmt::format("value has {} elements, expected 1", value->elements()));
    }
    dtype = value->dtype();
  }
  const auto shape = in.ints(0);
  if (!shape) {
    const auto rank = rank_from(in, 0);
    return std::vector<TensorDesc>{rank ? described(dtype, anonymous(*rank)) : unknown(dtype)};
  }
  MST_TRY_VOID(expect_usable_rank(in, shape->size()));
  for (const std::int64_t n : *shape) {
    if (n < 0) return in.error(fmt::format("shape {} is negative", to_string(*shape)));
  }
  return std::vector<TensorDesc>{TensorDesc::of(dtype, *shape)};
}

// max(ceil((limit - start) / delta), 0) elements.
Descs range(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(
      in.expect_types(0, "start", {DType::f32, DType::f64, DType::i16, DType::i32, DType::i64}));
  MST_TRY(const DType dtype, in.common_dtype({0, 1, 2}));
  MST_TRY_VOID(in.expect_rank(0, "start", 0, 1));
  MST_TRY_VOID(in.expect_rank(1, "limit", 0, 1));
  MST_TRY_VOID(in.expect_rank(2, "delta", 0, 1));
  std::optional<double> count;
  const auto start = in.scalar_int(0);
  const auto limit = in.scalar_int(1);
  const auto delta = in.scalar_int(2);
  const auto zero = [&] { return in.error("delta is 0"); };
  if (start && limit && delta) {
    if (*delta == 0) return zero();
    // In wide integers: the difference of two int64 may need 65 bits.
    const __int128 room = static_cast<__int128>(*limit) - *start;
    const __int128 step = *delta;
    const bool empty = step > 0 ? room <= 0 : room >= 0;
    count = empty ? 0.0 : static_cast<double>(room / step + (room % step != 0 ? 1 : 0));
  } else {
    const auto a = in.scalar(0);
    const auto b = in.scalar(1);
    const auto d = in.scalar(2);
    if (a && b && d) {
      if (*d == 0) return zero();
      count = std::max(0.0, std::ceil((*b - *a) / *d));
    }
  }
  if (!count) return std::vector<TensorDesc>{described(dtype, anonymous(1))};
  if (!(*count <= static_cast<double>(kLongest))) {
    return in.error(fmt::format("counts {} elements, expected at most 2^48", *count));
  }
  return std::vector<TensorDesc>{TensorDesc::of(dtype, {static_cast<std::int64_t>(*count)})};
}

Descs eye_like(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_rank(0, "input", 2, 2));
  TensorDesc out = in.desc(0);
  if (in.attrs().has("dtype")) {
    const std::int64_t dtype = in.attrs().get_int("dtype", 0);
    if (dtype < 1 || dtype > static_cast<std::int64_t>(DType::i2)) {
      return in.error(fmt::format("dtype is {}, expected the number of an element type", dtype));
    }
    out.dtype = static_cast<DType>(dtype);
  }
  return std::vector<TensorDesc>{std::move(out)};
}

// Our own: a seeded pseudo-random (seed, low, high) or constant (value) f32 tensor of attribute
// `shape`.
Descs fill(const ShapeContext& c) {
  const Operands in(c);
  const std::vector<std::int64_t> shape =
      in.attrs().has("shape") ? in.attrs().get_ints("shape") : std::vector<std::int64_t>{1};
  MST_TRY_VOID(expect_usable_rank(in, shape.size()));
  for (const std::int64_t n : shape) {
    if (n < 0) return in.error(fmt::format("shape {} is negative", to_string(shape)));
  }
  return std::vector<TensorDesc>{TensorDesc::of(DType::f32, shape)};
}

// The importer turns Constant nodes into constant values; this row describes those of other
// sources.
Descs constant(const ShapeContext& c) {
  const Operands in(c);
  if (const Tensor* value = in.attrs().get_tensor("value"))
    return std::vector<TensorDesc>{value->desc()};
  const auto length = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  const Attrs& attrs = in.attrs();
  if (attrs.has("value_float")) return std::vector<TensorDesc>{TensorDesc::of(DType::f32, {})};
  if (attrs.has("value_int")) return std::vector<TensorDesc>{TensorDesc::of(DType::i64, {})};
  if (attrs.has("value_floats")) {
    return std::vector<TensorDesc>{
        TensorDesc::of(DType::f32, {length(attrs.get_floats("value_floats").size())})};
  }
  if (attrs.has("value_ints")) {
    return std::vector<TensorDesc>{
        TensorDesc::of(DType::i64, {length(attrs.get_ints("value_ints").size())})};
  }
  return std::vector<TensorDesc>(c.output_count);
}

constexpr OpSchema kTable[] = {
    {"Constant", "", 6, 23, 0, 0, constant, no_cost, false, /*no_task=*/true},
    {"ConstantOfShape", "", 9, 23, 1, 1, constant_of_shape, move_cost},
    {"EyeLike", "", 9, 23, 1, 1, eye_like, move_cost},
    {"Fill", "millstream", 1, 23, 0, 0, fill, elementwise_cost<4>},
    {"Range", "", 11, 23, 3, 3, range, elementwise_cost<2>},
    {"Shape", "", 6, 23, 1, 1, shape_of, no_cost},
    {"Size", "", 6, 23, 1, 1, size_of, no_cost},
};

}  // namespace

std::span<const OpSchema> table_generator() { return kTable; }

}  // namespace millstream
