// SPDX-License-Identifier: Apache-2.0
// Pooling over windows, over whole planes and over regions.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

// X [N, C, spatial..] -> [N, C, windows..], and for MaxPool the indices of the maxima.
Descs pool(const ShapeContext& c) {
  const Operands in(c);
  const bool max = c.type == "MaxPool";
  MST_TRY_VOID(
      in.expect_types(0, "X", max ? types::kFloat | TypeSet{DType::i8, DType::u8} : types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "X", 3, kVariadic));
  const std::vector<std::int64_t> kernel = in.attrs().get_ints("kernel_shape");
  if (kernel.empty()) return in.error("has no kernel_shape");
  std::vector<TensorDesc> out{unknown(in.dtype(0))};
  if (const Dims* x = in.dims(0)) {
    const Dims spatial(x->begin() + 2, x->end());
    MST_TRY(const std::vector<Window> each, windows(in, spatial, kernel));
    const bool ceil = in.attrs().get_int("ceil_mode", 0) != 0;
    Dims dims{(*x)[0], (*x)[1]};
    for (std::size_t i = 0; i < spatial.size(); ++i) {
      MST_TRY(Dim length, window_count(in, spatial[i], each[i], ceil));
      dims.push_back(std::move(length));
    }
    out[0] = described(in.dtype(0), std::move(dims));
  }
  if (c.output_count > 1) {
    if (!max) return in.error(fmt::format("has {} outputs, expected 1", c.output_count));
    out.push_back(out[0]);
    out[1].dtype = DType::i64;
  }
  return out;
}

// [N, C, spatial..] -> [N, C, 1, ..].
Descs global_pool(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "X", 2, kVariadic));
  TensorDesc out = in.desc(0);
  if (out.shape) {
    for (std::size_t i = 2; i < out.shape->size(); ++i) (*out.shape)[i] = Dim::of(1);
  }
  return std::vector<TensorDesc>{std::move(out)};
}

// Inputs X and the indices MaxPool gave, both alike; the pooled axes grow back.
Descs max_unpool(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.expect_types(1, "I", types::kInt64));
  MST_TRY_VOID(in.expect_rank(0, "X", 3, kVariadic));
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  if (const Dims* indices = in.dims(1)) {
    MST_TRY_VOID(in.expect_rank(1, "I", x->size(), x->size()));
    for (std::size_t i = 0; i < x->size(); ++i)
      MST_TRY_VOID(in.same((*x)[i], (*indices)[i], "shapes of X and I"));
  }
  const Dims spatial(x->begin() + 2, x->end());
  MST_TRY(const std::vector<Window> each,
          windows(in, spatial, in.attrs().get_ints("kernel_shape")));
  if (in.has(2)) {
    const auto wanted = in.ints(2);
    if (!wanted) return std::vector<TensorDesc>{described(in.dtype(0), anonymous(x->size()))};
    if (wanted->size() != x->size()) {
      return in.error(fmt::format("output_shape {} has {} entries, expected {}", to_string(*wanted),
                                  wanted->size(), x->size()));
    }
    for (const std::int64_t n : *wanted) {
      if (n < 0) return in.error(fmt::format("output_shape {} is negative", to_string(*wanted)));
    }
    return std::vector<TensorDesc>{TensorDesc::of(in.dtype(0), *wanted)};
  }
  Dims out{(*x)[0], (*x)[1]};
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    if (!spatial[i].known()) {
      out.emplace_back();
      continue;
    }
    Dim n = plus(times(spatial[i], Dim::of(each[i].stride)),
                 each[i].kernel - each[i].stride - each[i].pad_begin - each[i].pad_end);
    if (*n.value < 0) return in.error(fmt::format("padding leaves nothing of axis {}", i + 2));
    out.push_back(std::move(n));
  }
  return std::vector<TensorDesc>{described(in.dtype(0), std::move(out))};
}

// X [N, C, H, W], regions [R, `columns`] -> [R, C, height, width].
Descs regions(const Operands& in, std::int64_t columns, std::int64_t height, std::int64_t width) {
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY(const DType dtype, in.common_dtype({0, 1}));
  MST_TRY_VOID(in.expect_rank(0, "X", 4, 4));
  MST_TRY_VOID(in.expect_rank(1, "rois", 2, 2));
  if (height < 1 || width < 1)
    return in.error(fmt::format("output of {} x {}, expected at least 1 x 1", height, width));
  Dims out{Dim{}, Dim{}, Dim::of(height), Dim::of(width)};
  if (const Dims* x = in.dims(0)) out[1] = (*x)[1];
  if (const Dims* rois = in.dims(1)) {
    MST_TRY_VOID(in.same((*rois)[1], Dim::of(columns), "columns of rois"));
    out[0] = (*rois)[0];
  }
  return std::vector<TensorDesc>{described(dtype, std::move(out))};
}

Descs max_roi_pool(const ShapeContext& c) {
  const Operands in(c);
  const std::vector<std::int64_t> pooled = in.attrs().get_ints("pooled_shape");
  if (pooled.size() != 2)
    return in.error(fmt::format("pooled_shape has {} entries, expected 2", pooled.size()));
  return regions(in, 5, pooled[0], pooled[1]);
}

Descs roi_align(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(2, "batch_indices", types::kInt64));
  MST_TRY_VOID(in.expect_rank(2, "batch_indices", 1, 1));
  if (in.dims(1) != nullptr && in.dims(2) != nullptr && in.dims(1)->size() == 2) {
    MST_TRY_VOID(in.same((*in.dims(1))[0], (*in.dims(2))[0], "rows of rois and batch_indices"));
  }
  return regions(in, 4, in.attrs().get_int("output_height", 1),
                 in.attrs().get_int("output_width", 1));
}

// -- costs: one flop a window element (compare or add); LpPool three (power, add, root amortised)

double kernel_elements(const Attrs& attrs) {
  double n = 1;
  for (const std::int64_t k : attrs.get_ints("kernel_shape")) n *= static_cast<double>(k);
  return n;
}

template <int PerElement>
OpCost window_cost(const Attrs& attrs, InputDescs inputs, OutputDescs outputs) {
  return {PerElement * elements_of(outputs[0]) * kernel_elements(attrs), traffic(inputs, outputs)};
}

// Bilinear: 4 taps of a multiply-add each, at sampling_ratio^2 points (counted as 4 when adaptive).
OpCost roi_cost(const Attrs& attrs, InputDescs inputs, OutputDescs outputs) {
  const std::int64_t ratio = attrs.get_int("sampling_ratio", 0);
  const double points = ratio > 0 ? static_cast<double>(ratio) * static_cast<double>(ratio) : 4.0;
  return {8 * points * elements_of(outputs[0]), traffic(inputs, outputs)};
}

constexpr OpSchema kTable[] = {
    {"AveragePool", "", 6, 23, 1, 1, pool, window_cost<1>},
    {"GlobalAveragePool", "", 6, 23, 1, 1, global_pool, per_input_cost<1>},
    {"GlobalLpPool", "", 6, 23, 1, 1, global_pool, per_input_cost<3>},
    {"GlobalMaxPool", "", 6, 23, 1, 1, global_pool, per_input_cost<1>},
    {"LpPool", "", 6, 23, 1, 1, pool, window_cost<3>},
    {"MaxPool", "", 6, 23, 1, 1, pool, window_cost<1>},
    {"MaxRoiPool", "", 6, 23, 2, 2, max_roi_pool, per_input_cost<1>},
    {"MaxUnpool", "", 9, 23, 2, 3, max_unpool, move_cost},
    {"RoiAlign", "", 10, 23, 3, 3, roi_align, roi_cost},
};

}  // namespace

std::span<const OpSchema> table_pooling() { return kTable; }

}  // namespace millstream
