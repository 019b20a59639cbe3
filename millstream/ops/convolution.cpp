// SPDX-License-Identifier: Apache-2.0
// Convolutions: plain, transposed, deformable, integer.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;
constexpr TypeSet kByte = {DType::u8, DType::i8};

// Kernel lengths from kernel_shape, or from the weights [.., .., k1, k2, ..]; nullopt when unknown.
Result<std::optional<std::vector<std::int64_t>>> kernel_of(const Operands& in,
                                                           const Dims& weights) {
  std::vector<std::int64_t> kernel = in.attrs().get_ints("kernel_shape");
  const bool given = in.attrs().has("kernel_shape");
  if (given && kernel.size() != weights.size() - 2) {
    return in.error(fmt::format("kernel_shape {} has {} entries, expected {}", to_string(kernel),
                                kernel.size(), weights.size() - 2));
  }
  for (std::size_t i = 0; i + 2 < weights.size(); ++i) {
    const Dim& d = weights[i + 2];
    if (!given && !d.known()) return std::optional<std::vector<std::int64_t>>();
    if (!given) kernel.push_back(*d.value);
    if (d.known() && kernel[i] != *d.value) {
      return in.error(fmt::format("kernel_shape {} disagrees with weights {}", to_string(kernel),
                                  to_string(weights)));
    }
  }
  return std::optional<std::vector<std::int64_t>>(std::move(kernel));
}

Result<std::int64_t> group_of(const Operands& in) {
  const std::int64_t group = in.attrs().get_int("group", 1);
  if (group < 1) return in.error(fmt::format("group is {}, expected at least 1", group));
  return group;
}

// Bias must be a vector as long as the output channels.
Result<void> expect_bias(const Operands& in, std::size_t i, const Dim& channels) {
  if (!in.has(i)) return {};
  MST_TRY_VOID(in.expect_rank(i, "bias", 1, 1));
  if (in.dims(i) != nullptr)
    MST_TRY_VOID(in.same((*in.dims(i))[0], channels, "bias length and output channels"));
  return {};
}

// X [N, C, spatial..], W [M, C / group, kernel..] -> [N, M, outputs..]; nullopt when a rank is
// unknown.
Result<std::optional<Dims>> conv_dims(const Operands& in, std::size_t x_at, std::size_t w_at,
                                      std::size_t bias_at) {
  MST_TRY_VOID(in.expect_rank(x_at, "X", 3, kVariadic));
  const Dims* x = in.dims(x_at);
  const Dims* w = in.dims(w_at);
  MST_TRY(const std::int64_t group, group_of(in));
  if (x == nullptr || w == nullptr) return std::optional<Dims>();
  MST_TRY_VOID(in.expect_rank(w_at, "W", x->size(), x->size()));
  const Dim& m = (*w)[0];
  MST_TRY_VOID(in.same((*x)[1], times((*w)[1], Dim::of(group)),
                       fmt::format("input channels of X {} and W {} with group {}", to_string(*x),
                                   to_string(*w), group)));
  if (m.known() && *m.value % group != 0) {
    return in.error(
        fmt::format("{} output channels do not divide into {} groups", *m.value, group));
  }
  MST_TRY_VOID(expect_bias(in, bias_at, m));
  Dims out{(*x)[0], m};
  MST_TRY(const auto kernel, kernel_of(in, *w));
  if (!kernel) {
    out.resize(x->size());
    return std::optional<Dims>(std::move(out));
  }
  const Dims spatial(x->begin() + 2, x->end());
  MST_TRY(const std::vector<Window> each, windows(in, spatial, *kernel));
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    MST_TRY(Dim length, window_count(in, spatial[i], each[i], false));
    out.push_back(std::move(length));
  }
  return std::optional<Dims>(std::move(out));
}

Descs result_of(std::optional<Dims> dims, DType dtype) {
  return std::vector<TensorDesc>{dims ? described(dtype, std::move(*dims)) : unknown(dtype)};
}

Descs conv(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY(const DType dtype, in.common_dtype({0, 1, 2}));
  MST_TRY(std::optional<Dims> dims, conv_dims(in, 0, 1, 2));
  return result_of(std::move(dims), dtype);
}

Descs conv_integer(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "x", kByte));
  MST_TRY_VOID(in.expect_types(1, "w", kByte));
  MST_TRY_VOID(in.common_dtype({0, 2}));
  MST_TRY_VOID(in.common_dtype({1, 3}));
  MST_TRY(std::optional<Dims> dims, conv_dims(in, 0, 1, in.count()));
  return result_of(std::move(dims), DType::i32);
}

// Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B.
Descs qlinear_conv(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "x", kByte));
  MST_TRY_VOID(in.expect_types(3, "w", kByte));
  MST_TRY_VOID(in.expect_types(8, "B", {DType::i32}));
  MST_TRY_VOID(in.common_dtype({0, 2}));
  MST_TRY_VOID(in.common_dtype({3, 5}));
  MST_TRY(std::optional<Dims> dims, conv_dims(in, 0, 3, 8));
  return result_of(std::move(dims), in.dtype(7));
}

// Inputs: X, W, offset, B, mask.
Descs deform_conv(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY(const DType dtype, in.common_dtype({0, 1, 2, 3, 4}));
  MST_TRY(std::optional<Dims> dims, conv_dims(in, 0, 1, 3));
  return result_of(std::move(dims), dtype);
}

// X [N, C, spatial..], W [C, M / group, kernel..]; an output is stride * (n - 1) + output_padding +
// span - pads.
Descs conv_transpose(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY(const DType dtype, in.common_dtype({0, 1, 2}));
  MST_TRY_VOID(in.expect_rank(0, "X", 3, kVariadic));
  MST_TRY(const std::int64_t group, group_of(in));
  const Dims* x = in.dims(0);
  const Dims* w = in.dims(1);
  if (x == nullptr || w == nullptr) return std::vector<TensorDesc>{unknown(dtype)};
  MST_TRY_VOID(in.expect_rank(1, "W", x->size(), x->size()));
  MST_TRY_VOID(
      in.same((*x)[1], (*w)[0],
              fmt::format("input channels of X {} and W {}", to_string(*x), to_string(*w))));
  if ((*w)[0].known() && *(*w)[0].value % group != 0) {
    return in.error(
        fmt::format("{} input channels do not divide into {} groups", *(*w)[0].value, group));
  }
  const Dim m = times((*w)[1], Dim::of(group));
  MST_TRY_VOID(expect_bias(in, 2, m));

  const std::size_t n = x->size() - 2;
  Dims out{(*x)[0], m};
  const std::vector<std::int64_t> wanted = in.attrs().get_ints("output_shape");
  const std::vector<std::int64_t> extra = in.attrs().get_ints("output_padding");
  if (!extra.empty() && extra.size() != n) {
    return in.error(fmt::format("output_padding has {} entries, expected {}", extra.size(), n));
  }
  for (const std::int64_t e : extra) {
    if (e < 0 || e > (std::int64_t{1} << 31))
      return in.error(fmt::format("output_padding {} is out of range", to_string(extra)));
  }
  if (!wanted.empty()) {
    if (wanted.size() != n)
      return in.error(fmt::format("output_shape has {} entries, expected {}", wanted.size(), n));
    for (const std::int64_t length : wanted) {
      if (length < 0)
        return in.error(fmt::format("output_shape {} is negative", to_string(wanted)));
      out.push_back(Dim::of(length));
    }
    return std::vector<TensorDesc>{described(dtype, std::move(out))};
  }
  MST_TRY(const auto kernel, kernel_of(in, *w));
  if (!kernel) {
    out.resize(x->size());
    return std::vector<TensorDesc>{described(dtype, std::move(out))};
  }
  const Dims spatial(x->begin() + 2, x->end());
  MST_TRY(const std::vector<Window> each, windows(in, spatial, *kernel));
  const std::string auto_pad = in.attrs().get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (std::size_t i = 0; i < n; ++i) {
    if (!spatial[i].known()) {
      out.emplace_back();
      continue;
    }
    const Window& v = each[i];
    Dim length = times(spatial[i], Dim::of(v.stride));
    if (!same) {
      const std::int64_t padding = extra.empty() ? 0 : extra[i];
      length = plus(length, v.span() - v.stride - v.pad_begin - v.pad_end + padding);
    }
    if (*length.value < 0) {
      return in.error(fmt::format("padding {} and {} leaves nothing of axis {}", v.pad_begin,
                                  v.pad_end, i + 2));
    }
    out.push_back(std::move(length));
  }
  return std::vector<TensorDesc>{described(dtype, std::move(out))};
}

// -- costs: two flops a multiply-add; the bias is not counted

// Multiply-adds behind one output element: weights per output channel.
double per_output(const TensorDesc* weights) {
  if (weights == nullptr || !weights->is_static()) return 0;
  const std::vector<std::int64_t> w = weights->dims();
  return w.empty() || w[0] == 0 ? 0.0 : elements_of(weights) / static_cast<double>(w[0]);
}

OpCost conv_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  return {2 * elements_of(outputs[0]) * per_output(inputs[1]), traffic(inputs, outputs)};
}

OpCost qlinear_conv_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  return {2 * elements_of(outputs[0]) * per_output(inputs[3]), traffic(inputs, outputs)};
}

// Every input element meets all weights of its channel.
OpCost conv_transpose_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  return {2 * elements_of(inputs[0]) * per_output(inputs[1]), traffic(inputs, outputs)};
}

constexpr OpSchema kTable[] = {
    {"Conv", "", 6, 23, 2, 3, conv, conv_cost},
    {"ConvInteger", "", 10, 23, 2, 4, conv_integer, conv_cost},
    {"ConvTranspose", "", 6, 23, 2, 3, conv_transpose, conv_transpose_cost},
    {"DeformConv", "", 19, 23, 3, 5, deform_conv, conv_cost},
    {"QLinearConv", "", 10, 23, 8, 9, qlinear_conv, qlinear_conv_cost},
};

}  // namespace

std::span<const OpSchema> table_convolution() { return kTable; }

}  // namespace millstream
