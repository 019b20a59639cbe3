// SPDX-License-Identifier: Apache-2.0
// Quantisation to and from small types.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

// A scalar (also for a vector x), one entry along `axis`, or (from opset 21) blocks: x's rank with
// `axis` divided by block_size.
Result<void> expect_scale(const Operands& in, std::size_t i, std::string_view what) {
  const Dims* x = in.dims(0);
  const Dims* scale = in.dims(i);
  if (x == nullptr || scale == nullptr) return {};
  const Dim all = product(*scale, 0, scale->size());
  if (x->size() <= 1 && scale->size() <= 1) {
    if (all.known() && *all.value != 1 && !x->empty()) {
      MST_TRY_VOID(in.same((*scale)[0], (*x)[0], fmt::format("length of {} and x", what)));
    }
    return {};
  }
  // A vector of unknown length may hold one entry, and then has no axis.
  if (scale->empty() || (scale->size() == 1 && (!all.known() || *all.value == 1))) return {};
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 1), x->size()));
  const std::int64_t block = in.opset() >= 21 ? in.attrs().get_int("block_size", 0) : 0;
  if (block == 0) {
    MST_TRY_VOID(in.expect_rank(i, what, 1, 1));
    MST_TRY_VOID(in.same((*scale)[0], (*x)[axis],
                         fmt::format("length of {} and axis {} of {}", what, axis, to_string(*x))));
    return {};
  }
  if (block < 0) return in.error(fmt::format("block_size is {}, expected at least 0", block));
  MST_TRY_VOID(in.expect_rank(i, what, x->size(), x->size()));
  for (std::size_t k = 0; k < x->size(); ++k) {
    if (k != axis) {
      MST_TRY_VOID(in.same((*scale)[k], (*x)[k], fmt::format("axis {} of {} and x", k, what)));
    } else if ((*x)[k].known() && (*scale)[k].known()) {
      const std::int64_t blocks = *(*x)[k].value / block + (*(*x)[k].value % block != 0 ? 1 : 0);
      if (blocks != *(*scale)[k].value) {
        return in.error(fmt::format("{} has {} blocks on axis {}, expected {} of {}", what,
                                    *(*scale)[k].value, k, blocks, block));
      }
    }
  }
  return {};
}

// The element type that an attribute names, or `otherwise` when it is absent or 0.
Result<DType> named_type(const Operands& in, std::string_view attribute, DType otherwise) {
  const std::int64_t number = in.attrs().get_int(attribute, 0);
  if (number == 0) return otherwise;
  if (number < 0 || number > static_cast<std::int64_t>(DType::i2)) {
    return in.error(
        fmt::format("{} is {}, expected the number of an element type", attribute, number));
  }
  return static_cast<DType>(number);
}

Descs quantize_linear(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "x", types::kFloat | TypeSet{DType::i32}));
  MST_TRY_VOID(expect_scale(in, 1, "y_scale"));
  MST_TRY_VOID(expect_scale(in, 2, "y_zero_point"));
  MST_TRY(DType dtype, named_type(in, "output_dtype", DType::undefined));
  if (in.has(2)) {
    if (dtype != DType::undefined && in.dtype(2) != DType::undefined && in.dtype(2) != dtype) {
      return in.error(fmt::format("output_dtype is {} but y_zero_point is {}", dtype_name(dtype),
                                  dtype_name(in.dtype(2))));
    }
    dtype = in.dtype(2);
  } else if (dtype == DType::undefined) {
    dtype = DType::u8;
  }
  TensorDesc out = in.desc(0);
  out.dtype = dtype;
  return std::vector<TensorDesc>{std::move(out)};
}

// The result is f32 below opset 19, of the scale's type from there on (or output_dtype, from 23).
Descs dequantize_linear(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.common_dtype({0, 2}));
  MST_TRY_VOID(in.expect_types(1, "x_scale", types::kFloat | TypeSet{DType::f8e8m0}));
  MST_TRY_VOID(expect_scale(in, 1, "x_scale"));
  MST_TRY_VOID(expect_scale(in, 2, "x_zero_point"));
  TensorDesc out = in.desc(0);
  if (c.opset < 19) {
    out.dtype = DType::f32;
  } else {
    MST_TRY(out.dtype, named_type(in, "output_dtype", in.dtype(1)));
  }
  return std::vector<TensorDesc>{std::move(out)};
}

// y u8 like x, its scale, its zero point.
Descs dynamic_quantize_linear(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "x", {DType::f32}));
  TensorDesc y = in.desc(0);
  y.dtype = DType::u8;
  return std::vector<TensorDesc>{std::move(y), TensorDesc::of(DType::f32, {}),
                                 TensorDesc::of(DType::u8, {})};
}

constexpr OpSchema kTable[] = {
    {"DequantizeLinear", "", 10, 23, 2, 3, dequantize_linear, elementwise_cost<2>},
    {"DynamicQuantizeLinear", "", 11, 23, 1, 1, dynamic_quantize_linear, elementwise_cost<6>},
    {"QuantizeLinear", "", 10, 23, 2, 3, quantize_linear, elementwise_cost<4>},
};

}  // namespace

std::span<const OpSchema> table_quantize() { return kTable; }

}  // namespace millstream
