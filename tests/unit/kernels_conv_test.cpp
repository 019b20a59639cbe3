// SPDX-License-Identifier: Apache-2.0
// Convolutions, products and pools against their definitions, for shapes drawn from a printed seed.
#include <gtest/gtest.h>

#include <algorithm>

#include "millstream/kernels/window.h"
#include "tests/kernel_run.h"

namespace millstream::testing {
namespace {

using Binding = KernelCall::Binding;
constexpr unsigned kSeed = 20;

struct Draw {
  std::mt19937 random;
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  }
  Dims dims(std::size_t n, std::int64_t low, std::int64_t high) {
    Dims out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(between(low, high));
    return out;
  }
};

Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Every binding and thread count of a call gives `want`, and a second run on the same scratch the same bits.
void expect_everywhere(KernelCall call, const Tensor& want, const std::string& what) {
  StreamScratch scratch;
  for (const Binding binding : {Binding::shaped, Binding::constant, Binding::shapeless}) {
    for (const int threads : {1, 2}) {
      call.binding = binding;
      call.threads = threads;
      const auto first = run_kernel(call, scratch), again = run_kernel(call, scratch);
      ASSERT_TRUE(first.ok()) << what << to_string(first.error());
      EXPECT_LT(distance((*first)[0], want), 1e-4) << what;
      EXPECT_TRUE((*first)[0] == (*again)[0]) << what << ": bits differ between runs";
    }
  }
}

TEST(KernelsConv, ConvolvesAsDefined) {
  Draw draw{std::mt19937(kSeed)};
  for (int i = 0; i < 60; ++i) {
    const auto rank = static_cast<std::size_t>(draw.between(1, 3));
    const std::int64_t groups = draw.between(1, 3), in = draw.between(1, 9), out = draw.between(1, 17);
    const Dims kernel = draw.dims(rank, 1, 3), dilations = draw.dims(rank, 1, 2), strides = draw.dims(rank, 1, 2);
    const Dims pads = draw.dims(2 * rank, 0, 2), space = draw.dims(rank, 5, 8);
    Window window{kernel, strides, dilations, Dims(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank)),
                  Dims(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end())};
    KernelCall call{"Conv",
                    {random_f32(draw.random, joined({2, groups * in}, space)),
                     random_f32(draw.random, joined({groups * out, in}, kernel)),
                     random_f32(draw.random, {groups * out})}};
    call.attrs.set("group", groups);
    call.attrs.set("strides", strides);
    call.attrs.set("dilations", dilations);
    call.attrs.set("pads", pads);
    Dims extents;
    for (std::size_t d = 0; d < rank; ++d) {
      extents.push_back((space[d] + window.begin[d] + window.end[d] - window.extent(d)) / strides[d] + 1);
    }
    Tensor want(DType::f32, joined({2, groups * out}, extents));
    direct_convolution<float, double>(call.inputs[0]->as<float>().data(), call.inputs[1]->as<float>().data(),
                                      call.inputs[2]->as<float>().data(), want.as_mutable<float>().data(), 2,
                                      groups * in, groups * out, groups, Window3(window, space, extents), 1);
    expect_everywhere(call, want, "seed " + std::to_string(kSeed) + ", draw " + std::to_string(i) + " ");
  }
}

TEST(KernelsConv, WideOneByOneWindowsTakeTheProductPath) {
  Draw draw{std::mt19937(kSeed)};
  const Tensor x = random_f32(draw.random, {1, 32, 20, 20}), w = random_f32(draw.random, {48, 32, 1, 1});
  Tensor want(DType::f32, {1, 48, 20, 20});
  const Window window{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
  direct_convolution<float, double>(x.as<float>().data(), w.as<float>().data(), nullptr, want.as_mutable<float>().data(),
                                    1, 32, 48, 1, Window3(window, Dims{20, 20}, Dims{20, 20}), 1);
  expect_everywhere({"Conv", {x, w}}, want, "");
}

TEST(KernelsConv, TransposedConvolutionIsTheAdjoint) {
  // <conv(x), y> = <x, transposed(y)> for every x, y: checks strides, pads, groups and weight layout at once.
  Draw draw{std::mt19937(kSeed)};
  for (int i = 0; i < 40; ++i) {
    const auto rank = static_cast<std::size_t>(draw.between(1, 3));
    const std::int64_t groups = draw.between(1, 3), in = draw.between(1, 5), out = draw.between(1, 5);
    const Dims kernel = draw.dims(rank, 1, 3), dilations = draw.dims(rank, 1, 2), strides = draw.dims(rank, 1, 3);
    const Dims small = draw.dims(rank, 2, 5), pads = draw.dims(2 * rank, 0, 1);
    Attrs attrs;
    attrs.set("group", groups);
    attrs.set("strides", strides);
    attrs.set("dilations", dilations);
    attrs.set("pads", pads);
    Dims large;
    bool sound = true;
    for (std::size_t d = 0; d < rank; ++d) {
      large.push_back((small[d] - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - pads[d] - pads[rank + d]);
      sound = sound && large.back() > 0;
    }
    if (!sound) continue;
    const Tensor y = random_f32(draw.random, joined({2, groups * out}, small));
    const Tensor x = random_f32(draw.random, joined({2, groups * in}, large));
    const Tensor w = random_f32(draw.random, joined({groups * out, in}, kernel));
    for (const Binding binding : {Binding::shaped, Binding::constant, Binding::shapeless}) {
      const auto forward = run_kernel({"Conv", {x, w}, attrs, 21, 1, 1, binding});
      const auto back = run_kernel({"ConvTranspose", {y, w}, attrs, 21, 1, 1, binding});
      ASSERT_TRUE(forward.ok() && back.ok());
      ASSERT_EQ((*back)[0].elements(), x.elements());
      double left = 0, right = 0;
      for (std::int64_t k = 0; k < y.elements(); ++k) {
        const auto at = static_cast<std::size_t>(k);
        left += static_cast<double>((*forward)[0].as<float>()[at]) * static_cast<double>(y.as<float>()[at]);
      }
      for (std::int64_t k = 0; k < x.elements(); ++k) {
        const auto at = static_cast<std::size_t>(k);
        right += static_cast<double>((*back)[0].as<float>()[at]) * static_cast<double>(x.as<float>()[at]);
      }
      EXPECT_NEAR(left, right, 1e-3 * (1 + std::abs(left))) << "seed " << kSeed << ", draw " << i;
    }
  }
}

TEST(KernelsConv, DoublesAndHalvesTakeTheirOwnPrecision) {
  // 1 + 2^-40 survives in f64; in f16 a sum of 2049 rounds to 2048.
  const double near_one = 1.0 + 0x1p-40;
  const auto wide = run_kernel({"Conv", {tensor_of<double>(DType::f64, {1, 1, 1}, {near_one}),
                                         tensor_of<double>(DType::f64, {1, 1, 1}, {1.0})}});
  ASSERT_TRUE(wide.ok()) << to_string(wide.error());
  EXPECT_EQ((*wide)[0].as<double>()[0], near_one);
  const auto narrow = run_kernel({"Conv", {tensor_of<std::uint16_t>(DType::f16, {1, 1, 2}, {0x6800, 0x3c00}),
                                           tensor_of<std::uint16_t>(DType::f16, {1, 1, 2}, {0x3c00, 0x3c00})}});
  ASSERT_TRUE(narrow.ok()) << to_string(narrow.error());
  EXPECT_EQ((*narrow)[0].as<std::uint16_t>()[0], 0x6800);
}

TEST(KernelsMatMul, MultipliesBroadcastBatches) {
  Draw draw{std::mt19937(kSeed)};
  for (int i = 0; i < 60; ++i) {
    const std::int64_t m = draw.between(1, 9), n = draw.between(1, 40), k = draw.between(1, 33);
    const std::int64_t b0 = draw.between(1, 3), b1 = draw.between(1, 2);
    const bool flat = draw.between(0, 1) == 1, spread = draw.between(0, 1) == 1;
    const Tensor a = random_f32(draw.random, {b0, b1, m, k});
    const Tensor b = flat ? random_f32(draw.random, {k, n}) : random_f32(draw.random, {spread ? 1 : b0, b1, k, n});
    Tensor want(DType::f32, {b0, b1, m, n});
    for (std::int64_t batch = 0; batch < b0 * b1; ++batch) {
      const std::int64_t from = flat ? 0 : (spread ? batch % b1 : batch) * k * n;
      for (std::int64_t r = 0; r < m; ++r) {
        for (std::int64_t c = 0; c < n; ++c) {
          double sum = 0;
          for (std::int64_t x = 0; x < k; ++x) {
            sum += static_cast<double>(a.as<float>()[static_cast<std::size_t>((batch * m + r) * k + x)]) *
                   static_cast<double>(b.as<float>()[static_cast<std::size_t>(from + x * n + c)]);
          }
          want.as_mutable<float>()[static_cast<std::size_t>((batch * m + r) * n + c)] = static_cast<float>(sum);
        }
      }
    }
    expect_everywhere({"MatMul", {a, b}}, want, "seed " + std::to_string(kSeed) + ", draw " + std::to_string(i) + " ");
  }
}

TEST(KernelsMatMul, GemmScalesTransposesAndBroadcastsTheBias) {
  Draw draw{std::mt19937(kSeed)};
  for (int i = 0; i < 80; ++i) {
    const std::int64_t m = draw.between(1, 9), n = draw.between(1, 20), k = draw.between(1, 20);
    const bool ta = draw.between(0, 1) == 1, tb = draw.between(0, 1) == 1;
    const float alpha = draw.between(0, 1) == 1 ? 1.0f : 0.5f, beta = draw.between(0, 1) == 1 ? 1.0f : -2.0f;
    const Tensor a = random_f32(draw.random, ta ? Dims{k, m} : Dims{m, k});
    const Tensor b = random_f32(draw.random, tb ? Dims{n, k} : Dims{k, n});
    const std::vector<Dims> forms = {{n}, {1, n}, {m, 1}, {m, n}, {}};
    const Tensor c = random_f32(draw.random, forms[static_cast<std::size_t>(i) % forms.size()]);
    Tensor want(DType::f32, {m, n});
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t col = 0; col < n; ++col) {
        double sum = 0;
        for (std::int64_t x = 0; x < k; ++x) {
          sum += static_cast<double>(a.as<float>()[static_cast<std::size_t>(ta ? x * m + r : r * k + x)]) *
                 static_cast<double>(b.as<float>()[static_cast<std::size_t>(tb ? col * k + x : x * n + col)]);
        }
        const Dims dims(c.shape().begin(), c.shape().end());
        const bool by_row = dims.size() == 2 && dims[0] == m && m > 1, by_column = !dims.empty() && dims.back() == n && n > 1;
        const std::int64_t at = (by_row ? r * dims.back() : 0) + (by_column ? col : 0);
        want.as_mutable<float>()[static_cast<std::size_t>(r * n + col)] = static_cast<float>(
            static_cast<double>(alpha) * sum + static_cast<double>(beta) * static_cast<double>(c.as<float>()[static_cast<std::size_t>(at)]));
      }
    }
    KernelCall call{"Gemm", {a, b, c}};
    call.attrs.set("alpha", alpha);
    call.attrs.set("beta", beta);
    call.attrs.set("transA", std::int64_t{ta});
    call.attrs.set("transB", std::int64_t{tb});
    expect_everywhere(call, want, "seed " + std::to_string(kSeed) + ", draw " + std::to_string(i) + " ");
  }
}

TEST(KernelsMatMul, IntegersWrap) {
  const Tensor a = tensor_of<std::int32_t>(DType::i32, {1, 1}, {2'000'000'000});
  const Tensor b = tensor_of<std::int32_t>(DType::i32, {1, 1}, {3});
  const auto y = run_kernel({"MatMul", {a, b}});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ((*y)[0].as<std::int32_t>()[0], 1'705'032'704);
}

TEST(KernelsMatMul, AnEmptySumIsZero) {
  const auto y = run_kernel({"MatMul", {Tensor(DType::f32, {2, 0}), Tensor(DType::f32, {0, 3})}});
  ASSERT_TRUE(y.ok()) << to_string(y.error());
  EXPECT_TRUE((*y)[0] == Tensor(DType::f32, {2, 3}));
}

TEST(KernelsPool, MaximaAndTheirPlacesAgreeWithAndWithoutIndices) {
  Draw draw{std::mt19937(kSeed)};
  for (int i = 0; i < 60; ++i) {
    const auto rank = static_cast<std::size_t>(draw.between(1, 3));
    const Dims kernel = draw.dims(rank, 2, 3);
    KernelCall call{"MaxPool", {random_f32(draw.random, joined({2, 3}, draw.dims(rank, 5, 9)))}};
    call.attrs.set("kernel_shape", kernel);
    call.attrs.set("strides", draw.dims(rank, 1, 3));
    call.attrs.set("dilations", draw.dims(rank, 1, 2));
    call.attrs.set("pads", draw.dims(2 * rank, 0, 1));
    call.attrs.set("ceil_mode", draw.between(0, 1));
    const auto plain = run_kernel(call);
    call.outputs = 2;
    const auto indexed = run_kernel(call);
    ASSERT_TRUE(plain.ok() && indexed.ok()) << to_string(plain.error());
    EXPECT_TRUE((*plain)[0] == (*indexed)[0]) << "seed " << kSeed << ", draw " << i;
    const auto values = (*indexed)[0].as<float>();
    const auto places = (*indexed)[1].as<std::int64_t>();
    for (std::size_t k = 0; k < values.size(); ++k) {
      ASSERT_EQ(values[k], call.inputs[0]->as<float>()[static_cast<std::size_t>(places[k])]);
    }
  }
}

TEST(KernelsPool, AveragesCountOnlyWhatIsThere) {
  KernelCall call{"AveragePool", {tensor_of<float>(DType::f32, {1, 1, 4}, {1, 2, 3, 4})}};
  call.attrs.set("kernel_shape", Dims{3});
  call.attrs.set("pads", Dims{1, 1});
  const auto inner = run_kernel(call);
  ASSERT_TRUE(inner.ok());
  EXPECT_LT(distance((*inner)[0], tensor_of<float>(DType::f32, {1, 1, 4}, {1.5f, 2, 3, 3.5f})), 1e-6);
  call.attrs.set("count_include_pad", std::int64_t{1});
  const auto padded = run_kernel(call);
  ASSERT_TRUE(padded.ok());
  EXPECT_LT(distance((*padded)[0], tensor_of<float>(DType::f32, {1, 1, 4}, {1, 2, 3, 7.0f / 3})), 1e-6);
}

TEST(KernelsPool, UnpoolRefusesAnIndexOutsideAndNamesTheNode) {
  KernelCall call{"MaxUnpool",
                  {Tensor(DType::f32, {1, 1, 1, 1}), tensor_of<std::int64_t>(DType::i64, {1, 1, 1, 1}, {4})}};
  call.attrs.set("kernel_shape", Dims{2, 2});
  call.attrs.set("strides", Dims{2, 2});
  const auto y = run_kernel(call);
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().code, ErrorCode::kernel);
  EXPECT_EQ(y.error().message, "node \"n\": index 4 is outside [0, 4)");
}

}  // namespace
}  // namespace millstream::testing
