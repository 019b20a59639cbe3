// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, windows and the mel matrix.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;
constexpr std::int64_t kLongest = std::int64_t{1} << 48;

std::vector<TensorDesc> one(DType dtype, Dims dims) { return {described(dtype, std::move(dims))}; }

// A scalar length input, checked: nullopt when not known yet.
Result<std::optional<std::int64_t>> length_of(const Operands& in, std::size_t i,
                                              std::string_view what) {
  MST_TRY_VOID(in.expect_types(i, what, types::kIndex));
  const auto value = in.scalar_int(i);
  if (value && (*value < 1 || *value > kLongest)) {
    return in.error(fmt::format("{} is {}, expected at least 1", what, *value));
  }
  return value;
}

// The element type that an attribute names; f32 when absent.
Result<DType> output_type(const Operands& in) {
  const std::int64_t number = in.attrs().get_int("output_datatype", 1);
  if (number < 1 || number > static_cast<std::int64_t>(DType::i2) ||
      !types::kNumeric.has(static_cast<DType>(number))) {
    return in.error(
        fmt::format("output_datatype is {}, expected the number of a numeric type", number));
  }
  return static_cast<DType>(number);
}

// [.., signal, .., 1 or 2] -> the same with dft_length (or half + 1 of it) along the axis, and 2 at
// the end. The axis is an attribute at opset 17 (default 1), an input from 20 (default -2).
Descs dft(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "input", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "input", 2, kVariadic));
  MST_TRY(const auto length, length_of(in, 1, "dft_length"));
  if (c.opset < 20 && in.has(2)) return in.error("has an axis input, which begins at opset 20");
  if (c.opset >= 20 && in.attrs().has("axis"))
    return in.error("has an axis attribute, which ends at opset 19");
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  const Dim& parts = x->back();
  if (parts.known() && *parts.value != 1 && *parts.value != 2) {
    return in.error(fmt::format("last axis of {} has length {}, expected 1 (real) or 2 (complex)",
                                to_string(*x), *parts.value));
  }
  std::optional<std::int64_t> axis = c.opset < 20 ? in.attrs().get_int("axis", 1) : -2;
  if (in.has(2)) axis = in.scalar_int(2);
  Dims out = *x;
  out.back() = Dim::of(2);
  const bool half = in.attrs().get_int("onesided", 0) != 0;
  if (!axis) {
    for (std::size_t i = 0; i + 1 < out.size(); ++i) out[i] = Dim{};
    return one(in.dtype(0), std::move(out));
  }
  MST_TRY(const std::size_t at, in.axis(*axis, x->size()));
  if (at + 1 == x->size())
    return in.error(fmt::format("axis {} is the one that holds real and imaginary parts", *axis));
  if (in.has(1)) out[at] = length ? Dim::of(*length) : Dim{};
  if (half) out[at] = out[at].known() ? Dim::of(*out[at].value / 2 + 1) : Dim{};
  return one(in.dtype(0), std::move(out));
}

// signal [batch, samples, 1 or 2] -> [batch, frames, bins, 2]; frames overlap by the step.
Descs stft(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "signal", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "signal", 3, 3));
  MST_TRY_VOID(in.expect_rank(2, "window", 1, 1));
  MST_TRY(const auto step, length_of(in, 1, "frame_step"));
  MST_TRY(const auto length, length_of(in, 3, "frame_length"));
  if (!in.has(2) && !in.has(3)) return in.error("has neither window nor frame_length");
  const Dims* x = in.dims(0);
  Dim frame = length ? Dim::of(*length) : Dim{};
  if (in.dims(2) != nullptr) {
    MST_TRY(frame, in.same(frame, (*in.dims(2))[0], "frame_length and length of window"));
  }
  Dims out{Dim{}, Dim{}, Dim{}, Dim::of(2)};
  const bool half = in.attrs().get_int("onesided", 1) != 0;
  if (frame.known()) out[2] = half ? Dim::of(*frame.value / 2 + 1) : frame;
  if (x != nullptr) {
    out[0] = (*x)[0];
    if ((*x)[1].known() && frame.known() && step) {
      if (*frame.value > *(*x)[1].value) {
        return in.error(
            fmt::format("frames of {} do not fit a signal of {}", *frame.value, *(*x)[1].value));
      }
      out[1] = Dim::of((*(*x)[1].value - *frame.value) / *step + 1);
    }
  }
  return one(in.dtype(0), std::move(out));
}

// Blackman, Hamming, Hann: `size` samples.
Descs window(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "size", types::kIndex));
  MST_TRY_VOID(in.expect_rank(0, "size", 0, 1));
  MST_TRY(const DType dtype, output_type(in));
  const auto size = in.scalar_int(0);
  if (size && (*size < 0 || *size > kLongest))
    return in.error(fmt::format("size is {}, expected at least 0", *size));
  return one(dtype, Dims{size ? Dim::of(*size) : Dim{}});
}

// [dft_length / 2 + 1, num_mel_bins].
Descs mel_weight_matrix(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY(const auto bins, length_of(in, 0, "num_mel_bins"));
  MST_TRY(const auto length, length_of(in, 1, "dft_length"));
  MST_TRY(const DType dtype, output_type(in));
  return one(dtype, Dims{length ? Dim::of(*length / 2 + 1) : Dim{}, bins ? Dim::of(*bins) : Dim{}});
}

// 5 n log2 n flops a transform of n points, by the usual count for radix 2; n from the longest
// axis.
OpCost fourier_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  double longest = 2;
  if (outputs[0]->is_static()) {
    for (const std::int64_t n : outputs[0]->dims())
      longest = std::max(longest, static_cast<double>(n));
  }
  return {2.5 * elements_of(outputs[0]) * std::log2(longest), traffic(inputs, outputs)};
}

constexpr OpSchema kTable[] = {
    {"BlackmanWindow", "", 17, 23, 1, 1, window, elementwise_cost<20>},
    {"DFT", "", 17, 23, 1, 3, dft, fourier_cost},
    {"HammingWindow", "", 17, 23, 1, 1, window, elementwise_cost<10>},
    {"HannWindow", "", 17, 23, 1, 1, window, elementwise_cost<10>},
    {"MelWeightMatrix", "", 17, 23, 5, 5, mel_weight_matrix, elementwise_cost<2>},
    {"STFT", "", 17, 23, 2, 4, stft, fourier_cost},
};

}  // namespace

std::span<const OpSchema> table_signal() { return kTable; }

}  // namespace millstream
