// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and Hardmax. From opset 13 they act along one axis; before, on the input flattened
// to a matrix at the axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "millstream/kernels/exp.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"
#include "millstream/kernels/function_kernel.h"

namespace millstream {
namespace {

enum class RowKind { softmax, log_softmax, hardmax };

template <class T>
T exponential(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return fast_exp(x);
  } else {
    return std::exp(x);
  }
}

/// One row with unit stride.
template <class T, RowKind kind>
void transform_row(const T* x, T* y, std::int64_t n) {
  T top = -std::numeric_limits<T>::infinity();
  int unordered = 0;
#pragma omp simd reduction(max : top) reduction(+ : unordered)
  for (std::int64_t i = 0; i < n; ++i) {
    top = x[i] > top ? x[i] : top;
    unordered += x[i] != x[i] ? 1 : 0;
  }
  if constexpr (kind == RowKind::hardmax) {
    const std::int64_t at = std::max_element(x, x + n) - x;
    std::fill(y, y + n, T{});
    if (n > 0) y[at] = T{1};
    return;
  }
  if (unordered != 0 || top == -std::numeric_limits<T>::infinity() || top == std::numeric_limits<T>::infinity()) {
    // As the definition gives: NaN wherever infinity minus infinity or NaN enters the sum.
    T sum{};
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = kind == RowKind::softmax ? std::exp(x[i] - top) / sum : x[i] - top - std::log(sum);
    }
    return;
  }
  T sum{};
  if constexpr (kind == RowKind::softmax) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = exponential<T>(x[i] - top);
      sum += y[i];
    }
    const T by = T{1} / sum;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] *= by;
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += exponential<T>(x[i] - top);
    const T shift = top + std::log(sum);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] - shift;
  }
}

template <class T, RowKind kind>
void transform(const T* x, T* y, std::int64_t outer, std::int64_t length, std::int64_t inner, int threads) {
  const std::int64_t rows = outer * inner;
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * length > kParallelWork)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row / inner * length * inner + row % inner;
    if (inner == 1) {
      transform_row<T, kind>(x + at, y + at, length);
      continue;
    }
    std::vector<T> line(static_cast<std::size_t>(2 * length));
    for (std::int64_t i = 0; i < length; ++i) line[static_cast<std::size_t>(i)] = x[at + i * inner];
    transform_row<T, kind>(line.data(), line.data() + length, length);
    for (std::int64_t i = 0; i < length; ++i) y[at + i * inner] = line[static_cast<std::size_t>(length + i)];
  }
}

template <RowKind kind>
Result<std::unique_ptr<Kernel>> make_rows(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  const bool flatten = spec.opset() < 13;
  return make_function_kernel([node = std::string(spec.name()), flatten,
                      axis = spec.attrs().get_int("axis", flatten ? 1 : -1),
                      threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    const auto rank = static_cast<std::int64_t>(x.shape().size());
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at > rank || (at == rank && !(flatten || rank == 0))) {
      return kernel_failed(node, fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
    }
    if (args.output(0).elements() != x.elements()) return kernel_failed(node, "output and input differ in shape");
    if (x.elements() == 0) return {};
    const auto split = static_cast<std::size_t>(at);
    const std::int64_t outer = count_of(x.shape(), 0, split);
    const std::int64_t length = flatten || rank == 0 ? x.elements() / outer : x.shape()[split];
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      transform<T, kind>(in.data(), out.data(), outer, length, x.elements() / (outer * length), threads);
    });
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"Hardmax", make_rows<RowKind::hardmax>},
    {"LogSoftmax", make_rows<RowKind::log_softmax>},
    {"Softmax", make_rows<RowKind::softmax>},
};

}  // namespace

std::span<const KernelEntry> kernels_softmax() { return kEntries; }

}  // namespace millstream
