// SPDX-License-Identifier: Apache-2.0
// Normalizations, softmax, recurrent cells, resampling, 8-bit products: facts that need no other library.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "millstream/kernels/exp.h"
#include "tests/kernel_run.h"

namespace millstream::testing {
namespace {

using Dims = std::vector<std::int64_t>;

std::vector<float> floats(const Tensor& t) { return {t.as<float>().begin(), t.as<float>().end()}; }

/// The first output, which must exist.
Tensor first_of(const KernelCall& call) {
  auto y = run_kernel(call);
  EXPECT_TRUE(y.ok()) << to_string(y.error());
  return y.ok() ? (*y)[0] : Tensor();
}

TEST(KernelsExp, IsCloseToTheExponential) {
  for (double x = -87.0; x <= 88.0; x += 0.0137) {
    const double want = std::exp(static_cast<double>(static_cast<float>(x)));
    ASSERT_NEAR(static_cast<double>(fast_exp(static_cast<float>(x))) / want, 1.0, 4e-7) << x;
  }
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
  EXPECT_EQ(fast_exp(-1000.0f), 0.0f);
}

TEST(KernelsSoftmax, FlattensBeforeOpset13AndActsAlongAnAxisFromIt) {
  const Tensor x = tensor_of<float>(DType::f32, {1, 2, 2}, {0, 0, 0, 0});
  Attrs attrs;
  attrs.set("axis", std::int64_t{1});
  EXPECT_EQ(floats(first_of({"Softmax", {x}, attrs, 11})), std::vector<float>(4, 0.25f));
  EXPECT_EQ(floats(first_of({"Softmax", {x}, attrs, 13})), std::vector<float>(4, 0.5f));
}

TEST(KernelsSoftmax, SurvivesLargeAndMaskedScores) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = tensor_of<float>(DType::f32, {1, 3}, {1000, 1000, -inf});
  EXPECT_EQ(floats(first_of({"Softmax", {x}})), (std::vector<float>{0.5f, 0.5f, 0}));
  const Tensor none = tensor_of<float>(DType::f32, {1, 2}, {-inf, -inf});
  EXPECT_TRUE(std::isnan(floats(first_of({"Softmax", {none}}))[0]));
}

TEST(KernelsSoftmax, HardmaxMarksTheFirstLargest) {
  const Tensor x = tensor_of<float>(DType::f32, {1, 4}, {1, 3, 3, 2});
  EXPECT_EQ(floats(first_of({"Hardmax", {x}})), (std::vector<float>{0, 1, 0, 0}));
}

TEST(KernelsNorm, LayerNormalizationCentresAndScales) {
  const Tensor x = tensor_of<float>(DType::f32, {2, 2}, {1, 3, 10, 30});
  Attrs attrs;
  attrs.set("epsilon", 0.0f);
  const Tensor one = tensor_of<float>(DType::f32, {2}, {1, 1}), zero = Tensor(DType::f32, {2});
  EXPECT_EQ(floats(first_of({"LayerNormalization", {x, one, zero}, attrs})), (std::vector<float>{-1, 1, -1, 1}));
}

TEST(KernelsNorm, BatchNormalizationKeepsSmallVariancesApart) {
  // Far from zero with a tiny variance: float sums would lose it.
  const Tensor x = tensor_of<float>(DType::f32, {1, 1, 2}, {1000.0f, 1001.0f});
  const auto number = [](float v) { return tensor_of<float>(DType::f32, {1}, {v}); };
  Attrs attrs;
  attrs.set("epsilon", 0.0f);
  const Tensor y = first_of({"BatchNormalization", {x, number(2), number(5), number(1000), number(0.25f)}, attrs});
  EXPECT_EQ(floats(y), (std::vector<float>{5, 9}));
}

TEST(KernelsNorm, WrongScaleSizeNamesTheNode) {
  const Tensor x(DType::f32, {1, 4, 2, 2}), three(DType::f32, {3});
  const auto y = run_kernel({"InstanceNormalization", {x, three, three}});
  ASSERT_FALSE(y.ok());
}

TEST(KernelsRecurrent, AShortSampleStopsAtItsLengthAndReversesThere) {
  // An identity cell: h = relu(x + h). Sums run forward and, in the second direction, backward.
  const Tensor x = tensor_of<float>(DType::f32, {3, 2, 1}, {1, 10, 2, 20, 4, 40});
  const Tensor w = tensor_of<float>(DType::f32, {2, 1, 1}, {1, 1});
  const Tensor lengths = tensor_of<std::int32_t>(DType::i32, {2}, {3, 2});
  KernelCall call{"RNN", {x, w, w, std::nullopt, lengths}};
  call.outputs = 2;
  call.attrs.set("hidden_size", std::int64_t{1});
  call.attrs.set("direction", std::string("bidirectional"));
  call.attrs.set("activations", std::vector<std::string>{"Relu", "Relu"});
  const auto y = run_kernel(call);
  ASSERT_TRUE(y.ok()) << to_string(y.error());
  EXPECT_EQ(floats((*y)[0]), (std::vector<float>{1, 10, 7, 30, 3, 30, 6, 20, 7, 0, 4, 0}));
  EXPECT_EQ(floats((*y)[1]), (std::vector<float>{7, 30, 7, 30}));
}

TEST(KernelsRecurrent, AnUnknownActivationIsRefused) {
  KernelCall call{"RNN", {Tensor(DType::f32, {1, 1, 1}), Tensor(DType::f32, {1, 1, 1}), Tensor(DType::f32, {1, 1, 1})}};
  call.attrs.set("hidden_size", std::int64_t{1});
  call.attrs.set("activations", std::vector<std::string>{"Wave"});
  const auto y = run_kernel(call);
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().code, ErrorCode::unsupported_operator);
}

TEST(KernelsResize, NearestRepeatsAndLinearInterpolates) {
  const Tensor x = tensor_of<float>(DType::f32, {1, 1, 1, 2}, {0, 4});
  const Tensor scales = tensor_of<float>(DType::f32, {4}, {1, 1, 1, 2});
  KernelCall call{"Resize", {x, std::nullopt, scales}};
  EXPECT_EQ(floats(first_of(call)), (std::vector<float>{0, 0, 4, 4}));
  call.attrs.set("mode", std::string("linear"));
  EXPECT_EQ(floats(first_of(call)), (std::vector<float>{0, 1, 3, 4}));
}

TEST(KernelsQuantized, ConvIntegerTakesPaddingAsTheZeroPoint) {
  KernelCall call{"ConvInteger",
                  {tensor_of<std::uint8_t>(DType::u8, {1, 1, 2}, {5, 6}), tensor_of<std::uint8_t>(DType::u8, {1, 1, 3}, {1, 1, 1}),
                   tensor_of<std::uint8_t>(DType::u8, {}, {5})}};
  call.attrs.set("pads", Dims{1, 1});
  const auto y = run_kernel(call);
  ASSERT_TRUE(y.ok()) << to_string(y.error());
  EXPECT_TRUE((*y)[0] == tensor_of<std::int32_t>(DType::i32, {1, 1, 2}, {1, 1}));
}

TEST(KernelsQuantized, WhatTheStandardContradictsIsRefused) {
  const Tensor bytes = tensor_of<std::int8_t>(DType::i8, {1, 1}, {1}), zero = tensor_of<std::int8_t>(DType::i8, {}, {0});
  const Tensor scale = tensor_of<float>(DType::f32, {}, {1});
  const auto product = run_kernel({"QLinearMatMul", {bytes, scale, zero, bytes, scale, zero, scale, zero}});
  ASSERT_FALSE(product.ok());
  EXPECT_EQ(product.error().code, ErrorCode::unsupported_operator);
  const Tensor merged(DType::f32, {1, 2, 4});
  KernelCall attention{"Attention", {merged, merged, merged}, {}, 23};
  attention.attrs.set("q_num_heads", std::int64_t{2});
  attention.attrs.set("kv_num_heads", std::int64_t{2});
  const auto heads = run_kernel(attention);
  ASSERT_FALSE(heads.ok());
  EXPECT_EQ(heads.error().code, ErrorCode::unsupported_operator);
}

TEST(KernelsSignal, TheSpectrumOfACosineIsTwoLines) {
  for (const std::int64_t n : {8, 12}) {  // a power of two, and not
    Tensor x(DType::f32, {1, n, 1});
    for (std::int64_t i = 0; i < n; ++i) {
      x.as_mutable<float>()[static_cast<std::size_t>(i)] =
          static_cast<float>(std::cos(2 * std::numbers::pi * 2 * static_cast<double>(i) / static_cast<double>(n)));
    }
    const Tensor y = first_of({"DFT", {x}, {}, 20});
    for (std::int64_t k = 0; k < n; ++k) {
      const float want = k == 2 || k == n - 2 ? static_cast<float>(n) / 2 : 0.0f;
      EXPECT_NEAR(y.as<float>()[static_cast<std::size_t>(2 * k)], want, 1e-5) << n << " " << k;
      EXPECT_NEAR(y.as<float>()[static_cast<std::size_t>(2 * k + 1)], 0.0f, 1e-5) << n << " " << k;
    }
  }
}

TEST(KernelsScratch, TwoStreamsGiveTheSameBitsFromTheirOwnScratch) {
  std::mt19937 random(3);
  const Tensor x = random_f32(random, {1, 8, 12, 12}), w = random_f32(random, {16, 8, 3, 3});
  StreamScratch one, other;
  const auto a = run_kernel({"Conv", {x, w}}, one), b = run_kernel({"Conv", {x, w}}, other);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE((*a)[0] == (*b)[0]);
  EXPECT_NE(one.bytes(64).data(), other.bytes(64).data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.bytes(1000).data()) % 64, 0u);
}

}  // namespace
}  // namespace millstream::testing
