// SPDX-License-Identifier: Apache-2.0
// Operators that cut, pad or mirror along axes.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;
constexpr std::int64_t kLongest = std::int64_t{1} << 48;

std::vector<TensorDesc> one(DType dtype, Dims dims) { return {described(dtype, std::move(dims))}; }

// Axes 0, 1, ... n-1.
std::vector<std::int64_t> first_axes(std::size_t n) {
  std::vector<std::int64_t> axes(n);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Elements taken from `length` by numpy's start:end:step.
std::int64_t sliced(std::int64_t length, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (length == 0) return 0;
  const auto clamp = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
    return std::clamp(at < 0 ? std::max(at, -length - 1) + length : at, low, high);
  };
  if (step > 0) {
    const std::int64_t first = clamp(start, 0, length);
    const std::int64_t last = clamp(end, 0, length);
    return last > first ? (last - first - 1) / step + 1 : 0;
  }
  const std::int64_t first = clamp(start, 0, length - 1);
  const std::int64_t last = clamp(end, -1, length - 1);
  return first > last ? (first - last - 1) / -step + 1 : 0;
}

// Bounds are attributes below opset 10, inputs starts, ends, axes, steps from there on.
Descs slice(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY(const IntList starts, int_list(in, "starts", 1, 10));
  MST_TRY(const IntList ends, int_list(in, "ends", 2, 10));
  MST_TRY(const IntList axes, int_list(in, "axes", 3, 10));
  MST_TRY(const IntList steps, int_list(in, "steps", 4, 10));
  if (!starts.given || !ends.given) return in.error("has no starts or no ends");
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  std::optional<std::size_t> count;
  for (const IntList* list : {&starts, &ends, &axes, &steps}) {
    if (!list->given || !list->count) continue;
    if (count && *count != *list->count) {
      return in.error(
          fmt::format("starts, ends, axes and steps have {} and {} entries, expected as many each",
                      *count, *list->count));
    }
    count = list->count;
  }
  const bool axes_known = axes.given ? axes.values.has_value() : count.has_value();
  if (!axes_known) return one(in.dtype(0), anonymous(x->size()));
  const std::vector<std::int64_t> at = axes.given ? *axes.values : first_axes(*count);
  MST_TRY_VOID(sorted_axes(in, at, x->size()));
  Dims out = *x;
  for (std::size_t i = 0; i < at.size(); ++i) {
    MST_TRY(const std::size_t axis, in.axis(at[i], x->size()));
    const Dim length = (*x)[axis];
    out[axis] = Dim{};
    if (!starts.values || !ends.values || (steps.given && !steps.values)) continue;
    const std::int64_t start = (*starts.values)[i];
    const std::int64_t end = (*ends.values)[i];
    const std::int64_t step = steps.given ? (*steps.values)[i] : 1;
    if (step == 0) return in.error(fmt::format("step {} of axis {} is 0", i, axis));
    if (length.known()) {
      out[axis] = Dim::of(sliced(*length.value, start, end, std::max(step, -kLongest)));
    } else if (start == 0 && step == 1 && end >= std::numeric_limits<std::int32_t>::max()) {
      out[axis] = length;  // the whole axis
    }
  }
  return one(in.dtype(0), std::move(out));
}

// Pads are an attribute below opset 11; negative ones cut.
Descs pad(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY(const IntList pads, int_list(in, "pads", 1, 11));
  if (!pads.given) return in.error("has no pads");
  const std::string mode = in.attrs().get_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" &&
      !(mode == "wrap" && c.opset >= 19)) {
    return in.error(fmt::format("mode is \"{}\", expected constant, reflect, edge{}", mode,
                                c.opset >= 19 ? " or wrap" : ""));
  }
  if (in.has(2)) MST_TRY_VOID(in.common_dtype({0, 2}));
  IntList axes;
  if (in.has(3)) {
    if (c.opset < 18) return in.error("has an axes input, which begins at opset 18");
    MST_TRY(axes, int_list(in, "axes", 3, 18));
  }
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  if (axes.given && !axes.values) return one(in.dtype(0), anonymous(x->size()));
  const std::vector<std::int64_t> at = axes.given ? *axes.values : first_axes(x->size());
  MST_TRY_VOID(sorted_axes(in, at, x->size()));
  if (pads.count && *pads.count != 2 * at.size()) {
    return in.error(fmt::format("pads has {} entries, expected {} for {} axes", *pads.count,
                                2 * at.size(), at.size()));
  }
  Dims out = *x;
  for (std::size_t i = 0; i < at.size(); ++i) {
    MST_TRY(const std::size_t axis, in.axis(at[i], x->size()));
    if (!pads.values) {
      out[axis] = Dim{};
      continue;
    }
    const std::int64_t begin = (*pads.values)[i];
    const std::int64_t end = (*pads.values)[i + at.size()];
    if (std::min(begin, end) < -kLongest || std::max(begin, end) > kLongest) {
      return in.error(fmt::format("pads {} are out of range", to_string(*pads.values)));
    }
    out[axis] = plus((*x)[axis], begin + end);
    if (out[axis].known() && *out[axis].value < 0) {
      return in.error(fmt::format("pads {} cut more than axis {} of {} holds",
                                  to_string(*pads.values), axis, to_string(*x)));
    }
  }
  return one(in.dtype(0), std::move(out));
}

Descs reverse_sequence(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_rank(0, "input", 2, kVariadic));
  MST_TRY_VOID(in.expect_types(1, "sequence_lens", types::kInt64));
  MST_TRY_VOID(in.expect_rank(1, "sequence_lens", 1, 1));
  const std::int64_t time = in.attrs().get_int("time_axis", 0);
  const std::int64_t batch = in.attrs().get_int("batch_axis", 1);
  if (time < 0 || time > 1 || batch < 0 || batch > 1 || time == batch) {
    return in.error(fmt::format("time_axis {} and batch_axis {}: expected 0 and 1 in either order",
                                time, batch));
  }
  if (in.dims(0) != nullptr && in.dims(1) != nullptr) {
    MST_TRY_VOID(in.same((*in.dims(0))[static_cast<std::size_t>(batch)], (*in.dims(1))[0],
                         "batch and length of sequence_lens"));
  }
  return std::vector<TensorDesc>{in.desc(0)};
}

Descs center_crop_pad(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "shape", types::kIndex));
  MST_TRY_VOID(in.expect_rank(1, "shape", 1, 1));
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  const std::vector<std::int64_t> axes =
      in.attrs().has("axes") ? in.attrs().get_ints("axes") : first_axes(x->size());
  MST_TRY_VOID(sorted_axes(in, axes, x->size()));
  const auto shape = in.ints(1);
  Dims out = *x;
  if (shape && shape->size() != axes.size()) {
    return in.error(fmt::format("shape {} has {} entries, expected {}", to_string(*shape),
                                shape->size(), axes.size()));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    MST_TRY(const std::size_t axis, in.axis(axes[i], x->size()));
    if (shape && (*shape)[i] < 0)
      return in.error(fmt::format("shape {} is negative", to_string(*shape)));
    out[axis] = shape ? Dim::of((*shape)[i]) : Dim{};
  }
  return one(in.dtype(0), std::move(out));
}

// [N, C * block elements, blocks] with image and block shapes -> [N, C, image..].
Descs col2im(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_rank(0, "input", 3, 3));
  MST_TRY_VOID(in.expect_types(1, "image_shape", types::kInt64));
  MST_TRY_VOID(in.expect_types(2, "block_shape", types::kInt64));
  MST_TRY_VOID(in.expect_rank(1, "image_shape", 1, 1));
  MST_TRY_VOID(in.expect_rank(2, "block_shape", 1, 1));
  const auto image = in.ints(1);
  const auto block = in.ints(2);
  const Dims* x = in.dims(0);
  Dims out(2);
  if (x != nullptr) out[0] = (*x)[0];
  if (block) {
    std::int64_t elements = 1;
    for (const std::int64_t b : *block) {
      if (b < 1 || elements > kLongest / b) {
        return in.error(fmt::format("block_shape {} is not usable", to_string(*block)));
      }
      elements *= b;
    }
    if (x != nullptr && (*x)[1].known()) {
      if (*(*x)[1].value % elements != 0) {
        return in.error(
            fmt::format("axis 1 of {} does not divide by the {} elements of block_shape {}",
                        to_string(*x), elements, to_string(*block)));
      }
      out[1] = Dim::of(*(*x)[1].value / elements);
    }
  }
  if (!image) {
    const auto rank = rank_from(in, 1);
    if (!rank) return std::vector<TensorDesc>{unknown(in.dtype(0))};
    out.resize(2 + *rank);
    return one(in.dtype(0), std::move(out));
  }
  if (block && block->size() != image->size()) {
    return in.error(fmt::format("image_shape {} and block_shape {} differ in length",
                                to_string(*image), to_string(*block)));
  }
  MST_TRY_VOID(expect_usable_rank(in, 2 + image->size()));
  for (const std::int64_t n : *image) {
    if (n < 0) return in.error(fmt::format("image_shape {} is negative", to_string(*image)));
    out.push_back(Dim::of(n));
  }
  return one(in.dtype(0), std::move(out));
}

Descs trilu(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_rank(0, "input", 2, kVariadic));
  MST_TRY_VOID(in.expect_types(1, "k", types::kInt64));
  return std::vector<TensorDesc>{in.desc(0)};
}

constexpr OpSchema kTable[] = {
    {"CenterCropPad", "", 18, 23, 2, 2, center_crop_pad, move_cost},
    {"Col2Im", "", 18, 23, 3, 3, col2im, per_input_cost<1>},
    {"Pad", "", 6, 23, 1, 4, pad, move_cost},
    {"ReverseSequence", "", 10, 23, 2, 2, reverse_sequence, move_cost},
    {"Slice", "", 6, 23, 1, 5, slice, gather_cost},
    {"Trilu", "", 14, 23, 1, 2, trilu, move_cost},
};

}  // namespace

std::span<const OpSchema> table_window_moves() { return kTable; }

}  // namespace millstream
