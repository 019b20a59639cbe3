// SPDX-License-Identifier: Apache-2.0
// Element-wise, movement, reduction and indexing kernels against loops written the obvious way, and the
// errors that inputs out of range must give.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "millstream/kernels/cast.h"
#include "tests/kernel_run.h"

namespace millstream::testing {
namespace {

using Shape = std::vector<std::int64_t>;

std::vector<float> floats(const Tensor& t) { return {t.as<float>().begin(), t.as<float>().end()}; }
Tensor ints(std::vector<std::int64_t> v) {
  const auto n = static_cast<std::int64_t>(v.size());
  return tensor_of<std::int64_t>(DType::i64, {n}, std::move(v));
}
Tensor first_of(const KernelCall& call) {
  auto y = run_kernel(call);
  EXPECT_TRUE(y.ok()) << to_string(y.error());
  return y.ok() ? (*y)[0] : Tensor();
}
void expect_kernel_error(const KernelCall& call, const std::string& part) {
  const auto y = run_kernel(call);
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().code, ErrorCode::kernel);
  EXPECT_NE(y.error().message.find("\"n\""), std::string::npos) << y.error().message;
  EXPECT_NE(y.error().message.find(part), std::string::npos) << y.error().message;
}

/// Row-major position -> coordinates.
Shape at(std::int64_t i, std::span<const std::int64_t> dims) {
  Shape out(dims.size());
  for (std::size_t d = dims.size(); d-- > 0;) {
    out[d] = i % dims[d];
    i /= dims[d];
  }
  return out;
}
/// Element of `t` at coordinates of a shape that `t` broadcasts to.
float pick(const Tensor& t, const Shape& where) {
  std::int64_t i = 0;
  for (std::size_t d = 0; d < t.shape().size(); ++d) {
    const std::int64_t c = where[where.size() - t.shape().size() + d];
    i = i * t.shape()[d] + (t.shape()[d] == 1 ? 0 : c);
  }
  return t.as<float>()[static_cast<std::size_t>(i)];
}

TEST(KernelsHalf, EveryF16SurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float x = f16_to_f32(static_cast<std::uint16_t>(bits));
    if (std::isnan(x)) continue;
    ASSERT_EQ(f32_to_f16(x), bits);
  }
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);  // half way to 2^16 rounds to even: infinity
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);  // half the least subnormal rounds to even
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 1);
}

// The nearest of all values, and the even code on a tie, found by looking at every one.
TEST(KernelsHalf, F8NarrowsToTheNearestCode) {
  std::mt19937 random(7);
  for (const SmallFloat* format : {&kF8E4M3FN, &kF8E4M3FNUZ, &kF8E5M2, &kF8E5M2FNUZ}) {
    const float largest = widen(*format, format->max_code);
    for (int k = 0; k < 4000; ++k) {
      float x = std::ldexp(static_cast<float>(random() % 65536) / 65536.0f, static_cast<int>(random() % 32) - 20);
      if (k % 2 == 0) {  // exact ties
        const std::uint32_t code = random() % format->max_code;
        x = (widen(*format, code) + widen(*format, code + 1)) / 2;
      }
      if (x > largest) continue;
      std::uint32_t best = 0;
      for (std::uint32_t code = 0; code <= format->max_code; ++code) {
        const float d = std::abs(widen(*format, code) - x), e = std::abs(widen(*format, best) - x);
        if (d < e || (d == e && code % 2 == 0)) best = code;
      }
      ASSERT_EQ(narrow(*format, x, true), best) << x;
      const std::uint32_t minus = narrow(*format, -x, true);
      ASSERT_EQ(widen(*format, minus), -widen(*format, best)) << x;
    }
    EXPECT_EQ(narrow(*format, 1e30f, true), format->max_code);
    EXPECT_TRUE(std::isnan(widen(*format, narrow(*format, std::numeric_limits<float>::quiet_NaN(), true))));
  }
}

TEST(KernelsCast, RealsOutOfRangeBecomeTheNearestEnd) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = tensor_of<float>(DType::f32, {6}, {-1.9f, 300.0f, -inf, inf, nan, 2147483648.0f});
  Attrs attrs;
  attrs.set("to", static_cast<std::int64_t>(DType::i32));
  const Tensor y = first_of({"Cast", {x}, attrs});
  const auto v = y.as<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(v.begin(), v.end()),
            (std::vector<std::int32_t>{-1, 300, INT32_MIN, INT32_MAX, 0, INT32_MAX}));
}

TEST(KernelsCast, FourBitValuesPackTwoAByte) {
  const Tensor x = tensor_of<float>(DType::f32, {5}, {-8, 7, -1, 3, 100});
  Attrs attrs;
  attrs.set("to", static_cast<std::int64_t>(DType::i4));
  const Tensor y = first_of({"Cast", {x}, attrs});
  ASSERT_EQ(y.byte_size(), 3u);
  EXPECT_EQ(static_cast<int>(y.bytes()[0]), 0x78);
  float back[5];
  ASSERT_TRUE(load_floats(DType::i4, y.bytes(), 0, 5, back));
  EXPECT_EQ(std::vector<float>(back, back + 5), (std::vector<float>{-8, 7, -1, 3, 7}));
}

TEST(KernelsBinary, BroadcastsLikeNumpyForAnyShapesAndThreads) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const std::size_t rank = random() % 5;
    Shape out(rank), a, b;
    for (auto& d : out) d = 1 + static_cast<std::int64_t>(random() % 7);
    const auto thin = [&](std::size_t drop) {
      Shape s(out.begin() + static_cast<std::ptrdiff_t>(drop), out.end());
      for (auto& d : s) d = random() % 3 == 0 ? 1 : d;
      return s;
    };
    a = out;
    b = thin(rank == 0 ? 0 : random() % (rank + 1));
    if (random() % 2 == 0) std::swap(a, b);
    const Tensor x = random_f32(random, a), y = random_f32(random, b);
    const Tensor z = first_of({"Sub", {x, y}});
    ASSERT_EQ(Shape(z.shape().begin(), z.shape().end()), out);
    for (std::int64_t i = 0; i < z.elements(); ++i) {
      ASSERT_EQ(z.as<float>()[static_cast<std::size_t>(i)], pick(x, at(i, out)) - pick(y, at(i, out))) << "round " << round;
    }
  }
  // Large enough for several threads, one row and many rows.
  for (const Shape& big : {Shape{1, 70000}, Shape{300, 17, 11}}) {
    const Tensor x = random_f32(random, big), y = random_f32(random, {big.back()});
    KernelCall call{"Mul", {x, y}};
    const Tensor one = first_of(call);
    call.threads = 3;
    EXPECT_TRUE(one == first_of(call));
  }
}

TEST(KernelsBinary, IntegersWrapTruncateAndRefuseZeroDivisors) {
  const auto i32 = [](std::vector<std::int32_t> v) {
    const auto n = static_cast<std::int64_t>(v.size());
    return tensor_of<std::int32_t>(DType::i32, {n}, std::move(v));
  };
  const Tensor a = i32({-7, 7, INT32_MIN}), b = i32({2, -2, -1});
  EXPECT_TRUE(first_of({"Div", {a, b}}) == i32({-3, -3, INT32_MIN}));
  EXPECT_TRUE(first_of({"Mod", {a, b}}) == i32({1, -1, 0}));
  EXPECT_TRUE(first_of({"Add", {i32({INT32_MAX}), i32({1})}}) == i32({INT32_MIN}));
  expect_kernel_error({"Div", {a, i32({1, 0, 1})}}, "zero");
  expect_kernel_error({"Mod", {a, i32({0})}}, "zero");
}

TEST(KernelsUnary, ClipKeepsNaNAndRoundTiesGoToEven) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto number = [](float v) { return tensor_of<float>(DType::f32, {}, {v}); };
  const Tensor y = first_of({"Clip", {tensor_of<float>(DType::f32, {4}, {-5, 0.5f, 5, nan}), number(-1), number(1)}});
  EXPECT_EQ(floats(y)[0], -1);
  EXPECT_EQ(floats(y)[1], 0.5f);
  EXPECT_EQ(floats(y)[2], 1);
  EXPECT_TRUE(std::isnan(floats(y)[3]));
  EXPECT_EQ(floats(first_of({"Round", {tensor_of<float>(DType::f32, {5}, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f})}})),
            (std::vector<float>{0, 2, 2, -0.0f, -2}));
}

TEST(KernelsUnary, SigmoidStaysFiniteAndPassesNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = tensor_of<float>(DType::f32, {5}, {-inf, -200, 0, 200, inf});
  const std::vector<float> y = floats(first_of({"Sigmoid", {x}}));
  EXPECT_NEAR(y[0], 0, 1e-30);
  EXPECT_NEAR(y[1], 0, 1e-30);
  EXPECT_EQ(y[2], 0.5f);
  EXPECT_EQ(y[3], 1);
  EXPECT_EQ(y[4], 1);
}

TEST(KernelsMovement, TransposeMovesEveryElementForEveryPermutation) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const std::size_t rank = 1 + random() % 4;
    Shape dims(rank), perm(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      dims[d] = 1 + static_cast<std::int64_t>(random() % (round < 4 ? 70 : 9));
      perm[d] = static_cast<std::int64_t>(d);
    }
    std::shuffle(perm.begin(), perm.end(), random);
    const Tensor x = random_f32(random, dims);
    KernelCall call{"Transpose", {x}};
    call.attrs.set("perm", perm);
    call.threads = 1 + round % 3;
    const Tensor y = first_of(call);
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const Shape to = at(i, y.shape());
      Shape from(rank);
      for (std::size_t d = 0; d < rank; ++d) from[static_cast<std::size_t>(perm[d])] = to[d];
      ASSERT_EQ(y.as<float>()[static_cast<std::size_t>(i)], pick(x, from)) << "round " << round;
    }
  }
}

TEST(KernelsMovement, SliceWalksBackwardsAndClampsItsEnds) {
  const Tensor x = tensor_of<float>(DType::f32, {5}, {0, 1, 2, 3, 4});
  const auto slice = [&](std::int64_t first, std::int64_t last, std::int64_t step) {
    return floats(first_of({"Slice", {x, ints({first}), ints({last}), ints({0}), ints({step})}}));
  };
  EXPECT_EQ(slice(-1, INT64_MIN, -2), (std::vector<float>{4, 2, 0}));
  EXPECT_EQ(slice(100, 0, -1), (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(slice(1, INT64_MAX, 3), (std::vector<float>{1, 4}));
  EXPECT_EQ(slice(3, 1, 1), std::vector<float>());
  EXPECT_EQ(slice(0, 5, INT64_MAX), (std::vector<float>{0}));
}

TEST(KernelsMovement, SeededDropoutScalesWhatItKeepsAndRepeats) {
  const Tensor x = tensor_of<float>(DType::f32, {4}, {1, 1, 1, 1});
  const Tensor ratio = tensor_of<float>(DType::f32, {}, {0.5f});
  Tensor on(DType::boolean, {});
  on.mutable_bytes()[0] = std::byte{1};
  KernelCall call{"Dropout", {x, ratio, on}};
  call.outputs = 2;
  // Without a seed the standard asks for a random one.
  EXPECT_EQ(run_kernel(call).error().code, ErrorCode::unsupported_operator);
  call.attrs.set("seed", std::int64_t{5489});
  const auto y = run_kernel(call), again = run_kernel(call);
  ASSERT_TRUE(y.ok() && again.ok());
  EXPECT_TRUE((*y)[0] == (*again)[0]);
  // First outputs of MT19937 with its default seed: 3499211612, 581869302, 3890346734, 3586334585, 545404204,
  // 4161255391, 3922919429, 949333985; every other one leads its draw.
  EXPECT_EQ(floats((*y)[0]), (std::vector<float>{2, 2, 0, 2}));
  EXPECT_EQ(std::vector<std::uint8_t>((*y)[1].as<std::uint8_t>().begin(), (*y)[1].as<std::uint8_t>().end()),
            (std::vector<std::uint8_t>{1, 1, 0, 1}));
  call.inputs[1] = tensor_of<float>(DType::f32, {}, {1.0f});
  expect_kernel_error(call, "ratio");
}

TEST(KernelsPad, EachModeFillsItsOwnWay) {
  const Tensor x = tensor_of<float>(DType::f32, {3}, {1, 2, 3});
  const auto pad = [&](const char* mode, std::vector<std::int64_t> pads) {
    Attrs attrs;
    attrs.set("mode", std::string(mode));
    return floats(first_of({"Pad", {x, ints(std::move(pads))}, attrs}));
  };
  EXPECT_EQ(pad("constant", {1, 2}), (std::vector<float>{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(pad("edge", {2, 1}), (std::vector<float>{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(pad("reflect", {2, 1}), (std::vector<float>{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(pad("wrap", {2, 1}), (std::vector<float>{2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(pad("constant", {-1, 1}), (std::vector<float>{2, 3, 0}));
}

TEST(KernelsReduce, AnyAxesSumAlikeOnAnyThreads) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const std::size_t rank = 1 + random() % 4;
    Shape dims(rank), axes, kept(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      dims[d] = 1 + static_cast<std::int64_t>(random() % (round % 9 == 0 ? 40 : 7));
      if (random() % 2 == 0) axes.push_back(static_cast<std::int64_t>(d));
    }
    if (axes.empty()) axes.push_back(0);
    kept = dims;
    for (const std::int64_t d : axes) kept[static_cast<std::size_t>(d)] = 1;
    const Tensor x = random_f32(random, dims);
    KernelCall call{"ReduceSum", {x, ints(axes)}};
    const Tensor y = first_of(call);
    call.threads = 3;
    ASSERT_TRUE(y == first_of(call)) << "round " << round;
    std::vector<double> want(static_cast<std::size_t>(y.elements()), 0);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const Shape c = at(i, dims);
      std::int64_t to = 0;
      for (std::size_t d = 0; d < rank; ++d) to = to * kept[d] + (kept[d] == 1 ? 0 : c[d]);
      want[static_cast<std::size_t>(to)] += static_cast<double>(x.as<float>()[static_cast<std::size_t>(i)]);
    }
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(y.as<float>()[i], want[i], 1e-5) << "round " << round;
  }
}

TEST(KernelsReduce, LogSumExpSurvivesLargeValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = tensor_of<float>(DType::f32, {3, 2}, {1000, 1000, -inf, -inf, -1000, inf});
  const std::vector<float> y = floats(first_of({"ReduceLogSumExp", {x, ints({1})}}));
  EXPECT_FLOAT_EQ(y[0], 1000.6931f);
  EXPECT_EQ(y[1], -inf);
  EXPECT_EQ(y[2], inf);
}

TEST(KernelsIndexing, IndicesOutsideTheDimensionNameTheNode) {
  const Tensor x = tensor_of<float>(DType::f32, {3}, {1, 2, 3});
  EXPECT_EQ(floats(first_of({"Gather", {x, ints({-1, 0})}})), (std::vector<float>{3, 1}));
  expect_kernel_error({"Gather", {x, ints({3})}}, "index 3");
  expect_kernel_error({"GatherElements", {x, ints({-4})}}, "index -4");
  expect_kernel_error({"GatherND", {x, tensor_of<std::int64_t>(DType::i64, {1, 1}, {3})}}, "index 3");
  expect_kernel_error({"ScatterND", {x, tensor_of<std::int64_t>(DType::i64, {1, 1}, {7}), tensor_of<float>(DType::f32, {1}, {0})}},
                      "index 7");
  expect_kernel_error({"ScatterElements", {x, ints({5}), tensor_of<float>(DType::f32, {1}, {0})}}, "index 5");
}

TEST(KernelsIndexing, ScatterAddsRepeatedIndices) {
  Attrs attrs;
  attrs.set("reduction", std::string("add"));
  const Tensor x = tensor_of<float>(DType::f32, {3}, {1, 2, 3});
  EXPECT_EQ(floats(first_of({"ScatterElements", {x, ints({1, 1}), tensor_of<float>(DType::f32, {2}, {10, 20})}, attrs})),
            (std::vector<float>{1, 32, 3}));
}

TEST(KernelsSelection, TopKBreaksTiesByIndex) {
  KernelCall call{"TopK", {tensor_of<float>(DType::f32, {5}, {1, 3, 3, 0, 3}), ints({2})}};
  call.outputs = 2;
  const auto y = run_kernel(call);
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(floats((*y)[0]), (std::vector<float>{3, 3}));
  EXPECT_TRUE((*y)[1] == ints({1, 2}));
}

TEST(KernelsRefusal, AnElementTypeWithoutAKernelIsRefusedBeforeTheRun) {
  const auto y = run_kernel({"Transpose", {Tensor(DType::i4, {2, 3})}});
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().code, ErrorCode::unsupported_operator);
}

}  // namespace
}  // namespace millstream::testing
