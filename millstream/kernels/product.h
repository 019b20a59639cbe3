// SPDX-License-Identifier: Apache-2.0
// Matrix products over broadcast batches: one prepared oneDNN primitive, or plain loops for other types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "millstream/kernels/dnnl.h"
#include "millstream/kernels/function_kernel.h"

namespace millstream {

/// One product dst = alpha * op(a) x op(b) (+ bias [N]). All shapes have the same rank >= 2; leading
/// dimensions of a and b are those of dst or 1. `a` and `b` are as stored, before transposition.
struct ProductShape {
  Dims a;
  Dims b;
  Dims dst;
  bool trans_a = false;
  bool trans_b = false;
  bool bias = false;
  float alpha = 1.0f;
  friend bool operator==(const ProductShape&, const ProductShape&) = default;

  std::int64_t rows() const { return dst[dst.size() - 2]; }
  std::int64_t columns() const { return dst[dst.size() - 1]; }
  std::int64_t depth() const { return a[a.size() - (trans_a ? 2 : 1)]; }
};

/// numpy's matmul: 1-D operands promoted, batches broadcast; batches of `a` fold into rows when `b` has
/// none. Error: kernel, naming the node.
Result<ProductShape> matmul_shape(std::string_view node, std::span<const std::int64_t> a,
                                  std::span<const std::int64_t> b);

/// An f32 product for one set of shapes.
class PreparedProduct {
 public:
  /// `packed_from`: constant b in the file's layout, packed once here; null = b comes with each run.
  static Result<PreparedProduct> make(const ProductShape& shape, const float* packed_from);
  Result<void> run(const float* a, const float* b, const float* bias, float* dst, StreamScratch& scratch,
                   std::string_view node) const;

 private:
  onednn::Prepared prepared_;
  onednn::Desc b_file_;
  dnnl::memory packed_;
};

/// Calls f(a offset, b offset, dst offset) in elements for each matrix of the batch, in order.
template <class F>
void for_each_matrix(const ProductShape& s, F f) {
  const std::size_t rank = s.dst.size();
  const Dims sa = strides_of(s.a), sb = strides_of(s.b), sd = strides_of(s.dst);
  Dims at(rank, 0);
  std::int64_t a = 0, b = 0, d = 0;
  const std::int64_t batch = count_of(s.dst, 0, rank - 2);
  for (std::int64_t i = 0; i < batch; ++i) {
    f(a, b, d);
    for (std::size_t k = rank - 2; k-- > 0;) {
      const std::int64_t step_a = s.a[k] == 1 ? 0 : sa[k], step_b = s.b[k] == 1 ? 0 : sb[k];
      if (++at[k] < s.dst[k]) {
        a += step_a, b += step_b, d += sd[k];
        break;
      }
      a -= step_a * (s.dst[k] - 1), b -= step_b * (s.dst[k] - 1), d -= sd[k] * (s.dst[k] - 1);
      at[k] = 0;
    }
  }
}

/// The same product for any element type, accumulated in Acc. Integers wrap.
template <class T, class Acc>
void plain_product(const ProductShape& s, const T* a, const T* b, T* dst, int threads) {
  const std::int64_t m = s.rows(), n = s.columns(), depth = s.depth();
  const std::int64_t a_row = s.trans_a ? 1 : depth, a_step = s.trans_a ? m : 1;
  const std::int64_t b_step = s.trans_b ? 1 : n, b_column = s.trans_b ? depth : 1;
  for_each_matrix(s, [&](std::int64_t oa, std::int64_t ob, std::int64_t od) {
#pragma omp parallel for num_threads(threads) schedule(static) if (m * n * depth > kParallelWork)
    for (std::int64_t i = 0; i < m; ++i) {
      std::vector<Acc> row(static_cast<std::size_t>(n), Acc{});
      for (std::int64_t k = 0; k < depth; ++k) {
        const Acc value = static_cast<Acc>(a[oa + i * a_row + k * a_step]);
        const T* from = b + ob + k * b_step;
        for (std::int64_t j = 0; j < n; ++j) {
          row[static_cast<std::size_t>(j)] += value * static_cast<Acc>(from[j * b_column]);
        }
      }
      for (std::int64_t j = 0; j < n; ++j) dst[od + i * n + j] = static_cast<T>(row[static_cast<std::size_t>(j)]);
    }
  });
}

}  // namespace millstream
