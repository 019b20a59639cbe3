// SPDX-License-Identifier: Apache-2.0
// Resampling: Resize, Upsample, GridSample, AffineGrid.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

std::vector<TensorDesc> one(DType dtype, Dims dims) { return {described(dtype, std::move(dims))}; }

// floor(length * scale) in single precision, the precision of the scales themselves: 10 * 0.7 is 7.
Result<Dim> scaled(const Operands& in, const Dim& length, float scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    return in.error(fmt::format("scale is {}, expected above 0", scale));
  if (!length.known()) return scale == 1.0f ? length : Dim{};
  const float n = std::floor(static_cast<float>(*length.value) * scale);
  if (!(n < 0x1p48f))
    return in.error(fmt::format("scale {} of length {} is out of range", scale, *length.value));
  return Dim::of(static_cast<std::int64_t>(n));
}

// An optional input counts as absent when it is left out or holds no element; nullopt: not known
// yet.
std::optional<bool> filled(const Operands& in, std::size_t i) {
  if (!in.has(i)) return false;
  const Dims* d = in.dims(i);
  if (d == nullptr || d->size() != 1 || !(*d)[0].known()) return std::nullopt;
  return *(*d)[0].value != 0;
}

// X, roi, scales, sizes (opset 10: X, scales). Exactly one of scales and sizes; both along `axes`
// only, from opset 18.
Descs resize(const ShapeContext& c) {
  const Operands in(c);
  const Dims* x = in.dims(0);
  const std::size_t scales_at = c.opset < 11 ? 1 : 2;
  const std::size_t sizes_at = 3;
  if (c.opset < 11 && in.count() > 2)
    return in.error(fmt::format("has {} inputs at opset 10, expected 2", in.count()));
  const std::optional<bool> has_scales = filled(in, scales_at);
  const std::optional<bool> has_sizes =
      c.opset >= 11 ? filled(in, sizes_at) : std::optional<bool>(false);
  if (has_scales && has_sizes && *has_scales == *has_sizes) {
    return in.error(*has_sizes ? "has both scales and sizes, expected one"
                               : "has neither scales nor sizes, expected one");
  }
  const bool by_scales = has_scales ? *has_scales : has_sizes && !*has_sizes;
  const bool by_sizes = has_sizes ? *has_sizes : has_scales && !*has_scales;
  if (by_scales) MST_TRY_VOID(in.expect_types(scales_at, "scales", {DType::f32}));
  if (by_sizes) MST_TRY_VOID(in.expect_types(sizes_at, "sizes", types::kInt64));
  const std::string policy = in.attrs().get_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    return in.error(fmt::format(
        "keep_aspect_ratio_policy is \"{}\", expected stretch, not_larger or not_smaller", policy));
  }
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  std::vector<std::int64_t> axes = in.attrs().get_ints("axes");
  if (!in.attrs().has("axes")) {
    for (std::size_t i = 0; i < x->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  MST_TRY_VOID(sorted_axes(in, axes, x->size()));
  Dims out = *x;
  const auto count_is_wrong = [&](std::string_view what, std::size_t have) {
    return in.error(fmt::format("{} has {} entries, expected {} for {}", what, have, axes.size(),
                                to_string(*x)));
  };
  const auto open = [&]() -> Descs {  // the values come at run time
    for (const std::int64_t a : axes)
      out[static_cast<std::size_t>(a < 0 ? a + std::ssize(*x) : a)] = Dim{};
    return one(in.dtype(0), std::move(out));
  };
  if (!by_scales && !by_sizes) return open();  // which of the two is empty comes at run time
  if (by_scales) {
    const auto scales = in.floats(scales_at);
    if (!scales) return open();
    if (scales->size() != axes.size()) return count_is_wrong("scales", scales->size());
    const bool crop =
        in.attrs().get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
    std::optional<std::vector<double>> roi;
    if (crop) {
      roi = in.floats(1);
      if (!roi) return open();
      if (roi->size() != 2 * axes.size()) {
        return in.error(
            fmt::format("roi has {} entries, expected {}", roi->size(), 2 * axes.size()));
      }
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      MST_TRY(const std::size_t axis, in.axis(axes[i], x->size()));
      const float part =
          roi ? static_cast<float>((*roi)[i + axes.size()]) - static_cast<float>((*roi)[i]) : 1.0f;
      MST_TRY(out[axis], scaled(in, (*x)[axis], part * static_cast<float>((*scales)[i])));
    }
    return one(in.dtype(0), std::move(out));
  }
  const auto sizes = in.ints(sizes_at);
  if (!sizes) return open();
  if (sizes->size() != axes.size()) return count_is_wrong("sizes", sizes->size());
  for (const std::int64_t n : *sizes) {
    if (n < 0 || n > (std::int64_t{1} << 48))
      return in.error(fmt::format("sizes {} are out of range", to_string(*sizes)));
  }
  std::optional<float> common;  // one scale for all axes
  if (policy != "stretch") {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      MST_TRY(const std::size_t axis, in.axis(axes[i], x->size()));
      if (!(*x)[axis].known() || *(*x)[axis].value == 0) return open();
      const float scale = static_cast<float>((*sizes)[i]) / static_cast<float>(*(*x)[axis].value);
      if (!common) {
        common = scale;
      } else {
        common = policy == "not_larger" ? std::min(*common, scale) : std::max(*common, scale);
      }
    }
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    MST_TRY(const std::size_t axis, in.axis(axes[i], x->size()));
    const std::int64_t n =
        common ? std::llround(*common * static_cast<float>(*(*x)[axis].value)) : (*sizes)[i];
    out[axis] = Dim::of(n);
  }
  return one(in.dtype(0), std::move(out));
}

// Scales are an attribute at opset 7 and 8, an input at 9.
Descs upsample(const ShapeContext& c) {
  const Operands in(c);
  std::optional<std::vector<double>> scales;
  if (c.opset < 9) {
    const std::vector<float> values = in.attrs().get_floats("scales");
    scales.emplace(values.begin(), values.end());
  } else {
    if (!in.has(1)) return in.error("has no scales (input 1)");
    MST_TRY_VOID(in.expect_types(1, "scales", {DType::f32}));
    scales = in.floats(1);
  }
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  if (!scales) return one(in.dtype(0), anonymous(x->size()));
  if (scales->size() != x->size()) {
    return in.error(fmt::format("scales has {} entries, expected {} for {}", scales->size(),
                                x->size(), to_string(*x)));
  }
  Dims out;
  for (std::size_t i = 0; i < x->size(); ++i) {
    MST_TRY(Dim n, scaled(in, (*x)[i], static_cast<float>((*scales)[i])));
    out.push_back(std::move(n));
  }
  return one(in.dtype(0), std::move(out));
}

// X [N, C, spatial..], grid [N, outputs.., spatial axes] -> [N, C, outputs..].
Descs grid_sample(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "grid", types::kFloat));
  const std::size_t least = c.opset < 20 ? 4 : 3;
  const std::size_t most = c.opset < 20 ? 4 : static_cast<std::size_t>(kVariadic);
  MST_TRY_VOID(in.expect_rank(0, "X", least, most));
  MST_TRY_VOID(in.expect_rank(1, "grid", least, most));
  const Dims* x = in.dims(0);
  const Dims* grid = in.dims(1);
  if (x == nullptr || grid == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  MST_TRY_VOID(in.expect_rank(1, "grid", x->size(), x->size()));
  MST_TRY(Dim n, in.same((*x)[0], (*grid)[0], "batches of X and grid"));
  MST_TRY_VOID(in.same(grid->back(), Dim::of(std::ssize(*x) - 2),
                       "last axis of grid and spatial axes of X"));
  Dims out{std::move(n), (*x)[1]};
  out.insert(out.end(), grid->begin() + 1, grid->end() - 1);
  return one(in.dtype(0), std::move(out));
}

// theta [N, r, r + 1], size [N, C, lengths..] -> [N, lengths.., r] for r = 2 or 3 spatial axes.
Descs affine_grid(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "theta", types::kFloat));
  MST_TRY_VOID(in.expect_types(1, "size", types::kInt64));
  MST_TRY_VOID(in.expect_rank(0, "theta", 3, 3));
  MST_TRY_VOID(in.expect_rank(1, "size", 1, 1));
  const auto size = in.ints(1);
  const Dims* theta = in.dims(0);
  if (!size) {
    const auto rank = rank_from(in, 1);
    return std::vector<TensorDesc>{rank ? described(in.dtype(0), anonymous(*rank))
                                        : unknown(in.dtype(0))};
  }
  if (size->size() != 4 && size->size() != 5) {
    return in.error(
        fmt::format("size {} has {} entries, expected 4 or 5", to_string(*size), size->size()));
  }
  const auto axes = std::ssize(*size) - 2;
  Dims out{Dim::of((*size)[0])};
  if (theta != nullptr) {
    MST_TRY(out[0], in.same(out[0], (*theta)[0], "batches of theta and size"));
    MST_TRY_VOID(in.same((*theta)[1], Dim::of(axes), "rows of theta and spatial axes"));
    MST_TRY_VOID(in.same((*theta)[2], Dim::of(axes + 1), "columns of theta and spatial axes + 1"));
  }
  for (const std::int64_t n : *size) {
    if (n < 0) return in.error(fmt::format("size {} is negative", to_string(*size)));
  }
  for (std::size_t i = 2; i < size->size(); ++i) out.push_back(Dim::of((*size)[i]));
  out.push_back(Dim::of(axes));
  return one(in.dtype(0), std::move(out));
}

// Taps of one output element: 1 nearest, 2 a resampled axis linear, 4 cubic; two flops a tap.
OpCost resample_cost(const Attrs& attrs, InputDescs inputs, OutputDescs outputs) {
  const std::string mode = attrs.get_string("mode", "nearest");
  const double per_axis = mode == "nearest"                      ? 1.0
                          : mode == "cubic" || mode == "bicubic" ? 4.0
                                                                 : 2.0;
  double taps = 1;
  if (inputs[0] != nullptr && inputs[0]->is_static() && outputs[0]->is_static()) {
    const auto from = inputs[0]->dims();
    const auto to = outputs[0]->dims();
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      if (from[i] != to[i]) taps *= per_axis;
    }
  }
  return {mode == "nearest" ? 0.0 : 2 * taps * elements_of(outputs[0]), traffic(inputs, outputs)};
}

constexpr OpSchema kTable[] = {
    {"AffineGrid", "", 20, 23, 2, 2, affine_grid, elementwise_cost<6>},
    {"GridSample", "", 16, 23, 2, 2, grid_sample, elementwise_cost<8>},
    {"Resize", "", 10, 23, 1, 4, resize, resample_cost},
    {"Upsample", "", 7, 9, 1, 2, upsample, resample_cost},
};

}  // namespace

std::span<const OpSchema> table_resize() { return kTable; }

}  // namespace millstream
