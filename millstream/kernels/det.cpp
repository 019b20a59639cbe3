// SPDX-License-Identifier: Apache-2.0
// Small dense linear algebra.
#include <cmath>
#include <utility>

#include "millstream/kernels/elements.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using elements::kReal;

/// Determinant of an n x n row-major matrix by elimination with partial pivoting; destroys it. O(n^3).
double determinant(std::vector<double>& m, std::int64_t n) {
  const auto at = [&](std::int64_t r, std::int64_t c) -> double& { return m[static_cast<std::size_t>(r * n + c)]; };
  double det = 1;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t r = k + 1; r < n; ++r) {
      if (std::abs(at(r, k)) > std::abs(at(pivot, k))) pivot = r;
    }
    if (at(pivot, k) == 0) return 0;
    if (pivot != k) {
      for (std::int64_t c = k; c < n; ++c) std::swap(at(k, c), at(pivot, c));
      det = -det;
    }
    det *= at(k, k);
    for (std::int64_t r = k + 1; r < n; ++r) {
      const double factor = at(r, k) / at(k, k);
      for (std::int64_t c = k + 1; c < n; ++c) at(r, c) -= factor * at(k, c);
    }
  }
  return det;
}

Result<std::unique_ptr<Kernel>> make_det(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kReal)) return *refusal;
  return make_function_kernel([node = std::string(spec.name())](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const auto shape = in.shape();
    if (shape.size() < 2 || shape[shape.size() - 1] != shape[shape.size() - 2]) {
      return kernel_failed(node, fmt::format("expected square matrices, have {}", to_string(in.desc())));
    }
    const std::int64_t n = shape.back(), batch = count_of(shape, 0, shape.size() - 2);
    return on_element<kReal>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      for (std::int64_t b = 0; b < batch; ++b) {
        std::vector<double> matrix;
        for (std::int64_t i = 0; i < n * n; ++i) {
          matrix.push_back(static_cast<double>(static_cast<Wide<T>>(in.as<T>()[static_cast<std::size_t>(b * n * n + i)])));
        }
        args.output(0).as_mutable<T>()[static_cast<std::size_t>(b)] = static_cast<T>(static_cast<Wide<T>>(determinant(matrix, n)));
      }
    });
  });
}

constexpr KernelEntry kEntries[] = {{"Det", make_det}};

}  // namespace

std::span<const KernelEntry> kernels_det() { return kEntries; }

}  // namespace millstream
