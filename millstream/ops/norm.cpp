// SPDX-License-Identifier: Apache-2.0
// Normalisation and softmax.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

// A vector with one entry a channel.
Result<void> expect_channels(const Operands& in, std::size_t i, std::string_view what,
                             const Dim& channels) {
  MST_TRY_VOID(in.expect_rank(i, what, 1, 1));
  if (in.dims(i) != nullptr) {
    MST_TRY_VOID(in.same((*in.dims(i))[0], channels,
                         fmt::format("length of {} (input {}) and channels", what, i)));
  }
  return {};
}

// Channels are axis 1; a vector input is one channel.
Dim channels_of(const Operands& in) {
  const Dims* x = in.dims(0);
  if (x == nullptr) return Dim{};
  return x->size() > 1 ? (*x)[1] : Dim::of(1);
}

// Inputs X, scale, B, mean, var. Below opset 14 further outputs mean training; from there on two
// running statistics with training_mode.
Descs batch_normalization(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "X", 1, kVariadic));
  if (c.opset < 14) {
    MST_TRY_VOID(in.common_dtype({0, 1, 2, 3, 4}));
  } else {
    if (c.opset < 15) MST_TRY_VOID(in.common_dtype({0, 1, 2}));
    MST_TRY_VOID(in.common_dtype({1, 2}));
    MST_TRY_VOID(in.common_dtype({3, 4}));
  }
  if (c.opset < 9 && in.attrs().get_int("spatial", 1) == 0) {
    return in.unsupported("spatial is 0 (statistics for each place), expected 1");
  }
  if (c.opset < 7 && in.attrs().get_int("is_test", 0) == 0) {
    return in.unsupported("is_test is 0 (training), expected 1 at opset 6");
  }
  constexpr std::string_view kNames[] = {"X", "scale", "B", "mean", "var"};
  const Dim channels = channels_of(in);
  for (std::size_t i = 1; i < 5; ++i) MST_TRY_VOID(expect_channels(in, i, kNames[i], channels));
  const bool training = c.opset >= 14 && in.attrs().get_int("training_mode", 0) != 0;
  const std::size_t most = c.opset < 14 ? 5 : 3;
  if (c.output_count > most)
    return in.error(fmt::format("has {} outputs, expected at most {}", c.output_count, most));
  if (c.opset >= 14 && c.output_count > 1 && !training) {
    return in.error(
        fmt::format("has {} outputs without training_mode=1, expected 1", c.output_count));
  }
  std::vector<TensorDesc> out{in.desc(0)};
  for (std::size_t i = 1; i < c.output_count; ++i)
    out.push_back(described(in.dtype(3), Dims{channels}));
  return out;
}

Descs instance_normalization(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "input", types::kFloat));
  MST_TRY_VOID(in.common_dtype({0, 1, 2}));
  MST_TRY_VOID(in.expect_rank(0, "input", 2, kVariadic));
  MST_TRY_VOID(expect_channels(in, 1, "scale", channels_of(in)));
  MST_TRY_VOID(expect_channels(in, 2, "B", channels_of(in)));
  return std::vector<TensorDesc>{in.desc(0)};
}

// Scale and bias hold one entry a group at opset 18, one a channel from 21 on.
Descs group_normalization(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.common_dtype({0, 1, 2}));
  MST_TRY_VOID(in.expect_rank(0, "X", 2, kVariadic));
  const std::int64_t groups = in.attrs().get_int("num_groups", 0);
  const Dim channels = channels_of(in);
  if (groups < 1) return in.error(fmt::format("num_groups is {}, expected at least 1", groups));
  if (channels.known() && *channels.value % groups != 0) {
    return in.error(
        fmt::format("{} channels do not divide into {} groups", *channels.value, groups));
  }
  const Dim entries = c.opset < 21 ? Dim::of(groups) : channels;
  MST_TRY_VOID(expect_channels(in, 1, "scale", entries));
  MST_TRY_VOID(expect_channels(in, 2, "bias", entries));
  return std::vector<TensorDesc>{in.desc(0)};
}

// Normalises the axes from `axis` on; Mean and InvStdDev keep the leading axes, ones behind them.
Descs layer_normalization(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.common_dtype({0, 1, 2}));
  MST_TRY_VOID(in.expect_rank(0, "X", 1, kVariadic));
  const std::int64_t stash = in.attrs().get_int("stash_type", 1);
  if (stash != 1 && stash != 16) {
    return in.error(fmt::format("stash_type is {}, expected 1 (f32) or 16 (bf16)", stash));
  }
  TensorDesc statistics = unknown(static_cast<DType>(stash));
  if (const Dims* x = in.dims(0)) {
    MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", -1), x->size()));
    if (in.dims(1) != nullptr) MST_TRY_VOID(expect_broadcasts_to(in, "Scale", *in.dims(1), *x));
    if (in.dims(2) != nullptr) MST_TRY_VOID(expect_broadcasts_to(in, "B", *in.dims(2), *x));
    statistics.shape = *x;
    for (std::size_t i = axis; i < x->size(); ++i) (*statistics.shape)[i] = Dim::of(1);
  }
  std::vector<TensorDesc> out{in.desc(0)};
  if (c.output_count > 3)
    return in.error(fmt::format("has {} outputs, expected at most 3", c.output_count));
  for (std::size_t i = 1; i < c.output_count; ++i) out.push_back(statistics);
  return out;
}

// The result has the scale's element type.
Descs rms_normalization(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.expect_types(1, "scale", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "X", 1, kVariadic));
  if (const Dims* x = in.dims(0)) {
    MST_TRY_VOID(in.axis(in.attrs().get_int("axis", -1), x->size()));
    if (in.dims(1) != nullptr) MST_TRY_VOID(expect_broadcasts_to(in, "scale", *in.dims(1), *x));
  }
  TensorDesc out = in.desc(0);
  out.dtype = in.dtype(1);
  return std::vector<TensorDesc>{std::move(out)};
}

Descs lrn(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "X", 2, kVariadic));
  const std::int64_t size = in.attrs().get_int("size", 0);
  if (size < 1) return in.error(fmt::format("size is {}, expected at least 1", size));
  return std::vector<TensorDesc>{in.desc(0)};
}

// One axis, `DefaultAxis` unless given (13 changed softmax's default from 1 to -1).
template <std::int64_t BeforeThirteen, std::int64_t FromThirteen>
Descs along_axis(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "input", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "input", 1, kVariadic));
  if (const Dims* x = in.dims(0)) {
    const std::int64_t axis =
        in.attrs().get_int("axis", c.opset < 13 ? BeforeThirteen : FromThirteen);
    // The flattening form may begin behind the last axis: it then flattens to one column.
    const bool behind = c.opset < 13 && FromThirteen != BeforeThirteen && axis == std::ssize(*x);
    if (!behind) MST_TRY_VOID(in.axis(axis, x->size()));
  }
  return std::vector<TensorDesc>{in.desc(0)};
}

Descs lp_normalization(const ShapeContext& c) {
  const std::int64_t p = c.attrs.get_int("p", 2);
  if (p != 1 && p != 2) return Operands(c).error(fmt::format("p is {}, expected 1 or 2", p));
  return along_axis<-1, -1>(c);
}

Descs mean_variance(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  if (const Dims* x = in.dims(0)) {
    const std::vector<std::int64_t> axes =
        in.attrs().has("axes") ? in.attrs().get_ints("axes") : std::vector<std::int64_t>{0, 2, 3};
    MST_TRY_VOID(sorted_axes(in, axes, x->size()));
  }
  return std::vector<TensorDesc>{in.desc(0)};
}

// A sum of squares over `size` channels, a power and a division for each element.
OpCost lrn_cost(const Attrs& attrs, InputDescs inputs, OutputDescs outputs) {
  const double size = static_cast<double>(attrs.get_int("size", 1));
  return {(2 * size + 12) * elements_of(inputs[0]), traffic(inputs, outputs)};
}

// Flops an element: batch 2 (scale, shift); the others add two passes for mean and variance.
constexpr OpSchema kTable[] = {
    {"BatchNormalization", "", 6, 23, 5, 5, batch_normalization, per_input_cost<2>},
    {"GroupNormalization", "", 18, 23, 3, 3, group_normalization, per_input_cost<7>},
    {"Hardmax", "", 6, 23, 1, 1, along_axis<1, -1>, per_input_cost<1>},
    {"InstanceNormalization", "", 6, 23, 3, 3, instance_normalization, per_input_cost<7>},
    {"LRN", "", 6, 23, 1, 1, lrn, lrn_cost},
    {"LayerNormalization", "", 17, 23, 2, 3, layer_normalization, per_input_cost<7>},
    {"LogSoftmax", "", 6, 23, 1, 1, along_axis<1, -1>, per_input_cost<10>},
    {"LpNormalization", "", 6, 23, 1, 1, lp_normalization, per_input_cost<3>},
    {"MeanVarianceNormalization", "", 9, 23, 1, 1, mean_variance, per_input_cost<7>},
    {"RMSNormalization", "", 23, 23, 2, 2, rms_normalization, per_input_cost<4>},
    {"Softmax", "", 6, 23, 1, 1, along_axis<1, -1>, per_input_cost<10>},
};

}  // namespace

std::span<const OpSchema> table_norm() { return kTable; }

}  // namespace millstream
