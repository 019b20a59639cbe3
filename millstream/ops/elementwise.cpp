// SPDX-License-Identifier: Apache-2.0
// Operators whose output elements each depend on the input elements at the same place.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;
constexpr std::uint32_t kFloats = types::kFloat.bits;
constexpr std::uint32_t kNumbers = types::kNumeric.bits;
constexpr std::uint32_t kSignedOrFloat = (types::kFloat | types::kSigned).bits;

// A and B of one allowed type, broadcast against each other.
template <std::uint32_t AllowedBits>
Descs binary(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "A", TypeSet(AllowedBits)));
  MST_TRY_VOID(in.expect_types(1, "B", TypeSet(AllowedBits)));
  MST_TRY(const DType dtype, in.common_dtype({0, 1}));
  MST_TRY_VOID(expect_numpy_alignment(in));
  MST_TRY(std::optional<Dims> dims, broadcast(in, {0, 1}));
  return std::vector<TensorDesc>{dims ? described(dtype, std::move(*dims)) : unknown(dtype)};
}

// The exponent may have its own type (from opset 12); the base's type is the result's.
Descs pow_shape(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "base", types::kNumeric));
  MST_TRY_VOID(in.expect_types(1, "exponent", types::kNumeric));
  if (c.opset < 12) MST_TRY_VOID(in.common_dtype({0, 1}));
  MST_TRY_VOID(expect_numpy_alignment(in));
  MST_TRY(std::optional<Dims> dims, broadcast(in, {0, 1}));
  return std::vector<TensorDesc>{dims ? described(in.dtype(0), std::move(*dims))
                                      : unknown(in.dtype(0))};
}

Descs mod_shape(const ShapeContext& c) {
  const Operands in(c);
  if (in.attrs().get_int("fmod", 0) == 0 && types::kFloat.has(in.dtype(0))) {
    return in.error(fmt::format("has {} inputs and fmod=0, expected integers or fmod=1",
                                dtype_name(in.dtype(0))));
  }
  return binary<kNumbers>(c);
}

Descs bit_shift(const ShapeContext& c) {
  const Operands in(c);
  const std::string direction = in.attrs().get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return in.error(fmt::format("direction is \"{}\", expected LEFT or RIGHT", direction));
  }
  return binary<types::kUnsigned.bits>(c);
}

// Max, Min, Mean, Sum.
template <std::uint32_t AllowedBits>
Descs variadic(const ShapeContext& c) {
  const Operands in(c);
  DType dtype = DType::undefined;
  for (std::size_t i = 0; i < in.count(); ++i) {
    MST_TRY_VOID(in.expect_types(i, "input", TypeSet(AllowedBits)));
    MST_TRY(const DType both, in.common_dtype({0, i}));
    if (both != DType::undefined) dtype = both;
  }
  MST_TRY(std::optional<Dims> dims, broadcast_all(in));
  return std::vector<TensorDesc>{dims ? described(dtype, std::move(*dims)) : unknown(dtype)};
}

Descs prelu(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kNumeric));
  MST_TRY_VOID(in.common_dtype({0, 1}));
  if (in.dims(0) != nullptr && in.dims(1) != nullptr) {
    // Opset 6 lays a vector of slopes along axis 1, whatever the rank.
    if (c.opset < 7 && in.dims(0)->size() > 2) {
      const Dim slopes = product(*in.dims(1), 0, in.dims(1)->size());
      if (!slopes.known() || *slopes.value != 1)
        return in.unsupported("has a slope a channel at opset 6, expected one");
    }
    MST_TRY_VOID(expect_broadcasts_to(in, "slope", *in.dims(1), *in.dims(0)));
  }
  return std::vector<TensorDesc>{in.desc(0)};
}

// Bounds are attributes below opset 11, scalar inputs from there on.
Descs clip(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "input", types::kNumeric));
  if (c.opset < 11 && in.count() > 1)
    return in.error("has bounds as inputs, which begin at opset 11");
  for (std::size_t i = 1; i < 3; ++i) {
    if (!in.has(i)) continue;
    const std::string_view what = i == 1 ? "min" : "max";
    MST_TRY_VOID(in.common_dtype({0, i}));
    const Dims* d = in.dims(i);
    const Dim n = d == nullptr ? Dim{} : product(*d, 0, d->size());
    if (n.known() && *n.value != 1) {
      return in.error(
          fmt::format("{} (input {}) has shape {}, expected a scalar", what, i, to_string(*d)));
    }
  }
  return std::vector<TensorDesc>{in.desc(0)};
}

// Training draws random numbers: without a seed they differ from run to run, which is refused.
Descs dropout(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "data", types::kFloat));
  if (c.opset >= 12 && in.has(2)) {
    const auto training = in.scalar_int(2);
    const auto ratio = in.has(1) ? in.scalar(1) : std::optional<double>(0.5);
    const bool harmless = (training && *training == 0) || (ratio && *ratio == 0);
    if (training && !harmless && ratio && !in.attrs().has("seed")) {
      return in.unsupported(fmt::format("training with ratio {} draws random numbers, and there is no seed", *ratio))
          .help("export the model for inference, set training_mode to false, or give the node a seed");
    }
  }
  if (c.opset < 7 && in.attrs().get_int("is_test", 0) == 0) {
    return in.unsupported("is_test=0 (training) draws random numbers");
  }
  std::vector<TensorDesc> out{in.desc(0)};
  if (c.output_count > 1) {
    out.push_back(in.desc(0));
    if (c.opset >= 10) out[1].dtype = DType::boolean;
  }
  return out;
}

Descs cast(const ShapeContext& c) {
  const Operands in(c);
  const std::int64_t to = in.attrs().get_int("to", 0);
  if (to < 1 || to > static_cast<std::int64_t>(DType::i2)) {
    return in.error(fmt::format("to is {}, expected the number of an element type (1 to {})", to,
                                static_cast<int>(DType::i2)));
  }
  TensorDesc out = in.desc(0);
  out.dtype = static_cast<DType>(to);
  return std::vector<TensorDesc>{std::move(out)};
}

Descs cast_like(const ShapeContext& c) {
  const Operands in(c);
  TensorDesc out = in.desc(0);
  out.dtype = in.dtype(1);
  return std::vector<TensorDesc>{std::move(out)};
}

Descs gelu(const ShapeContext& c) {
  const Operands in(c);
  const std::string approximate = in.attrs().get_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return in.error(fmt::format("approximate is \"{}\", expected none or tanh", approximate));
  }
  return same_as_input<kFloats>(c);
}

constexpr OpSchema unary_row(std::string_view type, int since, ShapeFn shape, CostFn cost) {
  return {type, "", since, 23, 1, 1, shape, cost};
}
constexpr OpSchema binary_row(std::string_view type, int since, ShapeFn shape) {
  return {type, "", since, 23, 2, 2, shape, elementwise_cost<1>};
}
constexpr OpSchema variadic_row(std::string_view type, ShapeFn shape) {
  return {type, "", 6, 23, 1, kVariadic, shape, variadic_cost};
}

constexpr ShapeFn kFloatShape = same_as_input<kFloats>;
constexpr ShapeFn kNumberShape = same_as_input<kNumbers>;
constexpr ShapeFn kSignedShape = same_as_input<kSignedOrFloat>;

constexpr OpSchema kTable[] = {
    unary_row("Abs", 6, kNumberShape, elementwise_cost<1>),
    unary_row("Acos", 7, kFloatShape, elementwise_cost<10>),
    unary_row("Acosh", 9, kFloatShape, elementwise_cost<10>),
    binary_row("Add", 6, binary<kNumbers>),
    unary_row("Asin", 7, kFloatShape, elementwise_cost<10>),
    unary_row("Asinh", 9, kFloatShape, elementwise_cost<10>),
    unary_row("Atan", 7, kFloatShape, elementwise_cost<10>),
    unary_row("Atanh", 9, kFloatShape, elementwise_cost<10>),
    binary_row("BitShift", 11, bit_shift),
    binary_row("BitwiseAnd", 18, binary<types::kInteger.bits>),
    unary_row("BitwiseNot", 18, same_as_input<types::kInteger.bits>, elementwise_cost<1>),
    binary_row("BitwiseOr", 18, binary<types::kInteger.bits>),
    binary_row("BitwiseXor", 18, binary<types::kInteger.bits>),
    {"Cast", "", 6, 23, 1, 1, cast, elementwise_cost<1>},
    {"CastLike", "", 15, 23, 2, 2, cast_like, elementwise_cost<1>},
    unary_row("Ceil", 6, kFloatShape, elementwise_cost<1>),
    unary_row("Celu", 12, kFloatShape, elementwise_cost<10>),
    {"Clip", "", 6, 23, 1, 3, clip, elementwise_cost<2>},
    unary_row("Cos", 7, kFloatShape, elementwise_cost<10>),
    unary_row("Cosh", 9, kFloatShape, elementwise_cost<10>),
    binary_row("Div", 6, binary<kNumbers>),
    {"Dropout", "", 6, 23, 1, 3, dropout, no_cost, /*view=*/true},
    unary_row("Elu", 6, kFloatShape, elementwise_cost<10>),
    unary_row("Erf", 9, kNumberShape, elementwise_cost<10>),
    unary_row("Exp", 6, kFloatShape, elementwise_cost<8>),
    unary_row("Floor", 6, kFloatShape, elementwise_cost<1>),
    unary_row("Gelu", 20, gelu, elementwise_cost<10>),
    unary_row("HardSigmoid", 6, kFloatShape, elementwise_cost<4>),
    unary_row("HardSwish", 14, kFloatShape, elementwise_cost<5>),
    {"Identity", "", 6, 23, 1, 1, same_as_input<types::kAny.bits>, no_cost, /*view=*/true},
    unary_row("LeakyRelu", 6, kFloatShape, elementwise_cost<2>),
    unary_row("Log", 6, kFloatShape, elementwise_cost<8>),
    variadic_row("Max", variadic<kNumbers>),
    variadic_row("Mean", variadic<kFloats>),
    variadic_row("Min", variadic<kNumbers>),
    unary_row("Mish", 18, kFloatShape, elementwise_cost<10>),
    {"Mod", "", 10, 23, 2, 2, mod_shape, elementwise_cost<2>},
    binary_row("Mul", 6, binary<kNumbers>),
    unary_row("Neg", 6, kSignedShape, elementwise_cost<1>),
    {"PRelu", "", 6, 23, 2, 2, prelu, elementwise_cost<2>},
    {"Pow", "", 6, 23, 2, 2, pow_shape, elementwise_cost<10>},
    unary_row("Reciprocal", 6, kFloatShape, elementwise_cost<1>),
    unary_row("Relu", 6, kSignedShape, elementwise_cost<1>),
    unary_row("Round", 11, kFloatShape, elementwise_cost<1>),
    unary_row("Selu", 6, kFloatShape, elementwise_cost<10>),
    unary_row("Shrink", 9, kNumberShape, elementwise_cost<2>),
    unary_row("Sigmoid", 6, kFloatShape, elementwise_cost<10>),
    unary_row("Sign", 9, kNumberShape, elementwise_cost<1>),
    unary_row("Sin", 7, kFloatShape, elementwise_cost<10>),
    unary_row("Sinh", 9, kFloatShape, elementwise_cost<10>),
    unary_row("Softplus", 6, kFloatShape, elementwise_cost<10>),
    unary_row("Softsign", 6, kFloatShape, elementwise_cost<3>),
    unary_row("Sqrt", 6, kFloatShape, elementwise_cost<1>),
    binary_row("Sub", 6, binary<kNumbers>),
    variadic_row("Sum", variadic<kFloats>),
    unary_row("Tan", 7, kFloatShape, elementwise_cost<10>),
    unary_row("Tanh", 6, kFloatShape, elementwise_cost<10>),
    unary_row("ThresholdedRelu", 10, kFloatShape, elementwise_cost<1>),
};

}  // namespace

std::span<const OpSchema> table_elementwise() { return kTable; }

}  // namespace millstream
