// SPDX-License-Identifier: Apache-2.0
// Loops over several operands of one iteration space, each with its own strides: broadcasting, transposed
// and stepped reads are the same thing. Neighbouring dimensions that every operand walks alike are merged,
// so that equal shapes, scalars and per-channel operands end as one or two long rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "millstream/kernels/function_kernel.h"

namespace millstream {

/// K operands over `dims` (never empty; all >= 0). strides[k][d] is in elements.
template <std::size_t K>
struct StridedLoop {
  Dims dims;
  std::array<Dims, K> strides;
  std::int64_t total = 0;

  std::int64_t inner() const { return dims.back(); }
  std::int64_t inner_stride(std::size_t k) const { return strides[k].back(); }
};

/// Drops dimensions of length 1 and merges neighbours. O(rank).
template <std::size_t K>
StridedLoop<K> strided_loop(std::span<const std::int64_t> dims, const std::array<Dims, K>& strides) {
  StridedLoop<K> loop;
  loop.total = count_of(dims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    bool merge = !loop.dims.empty();
    for (std::size_t k = 0; merge && k < K; ++k) merge = loop.strides[k].back() == strides[k][d] * dims[d];
    if (merge) {
      loop.dims.back() *= dims[d];
      for (std::size_t k = 0; k < K; ++k) loop.strides[k].back() = strides[k][d];
    } else {
      loop.dims.push_back(dims[d]);
      for (std::size_t k = 0; k < K; ++k) loop.strides[k].push_back(strides[k][d]);
    }
  }
  if (loop.dims.empty()) {
    loop.dims.push_back(1);
    for (std::size_t k = 0; k < K; ++k) loop.strides[k].push_back(1);
  }
  return loop;
}

/// Strides with which a tensor of shape `from` is read as if it had shape `to` (numpy rules: aligned at
/// the end, length 1 repeats). Error when it does not broadcast to `to`.
inline Result<Dims> broadcast_strides(std::string_view node, std::span<const std::int64_t> from,
                                      std::span<const std::int64_t> to) {
  Dims out(to.size(), 0);
  bool fits = from.size() <= to.size();
  std::int64_t stride = 1;
  for (std::size_t i = from.size(); fits && i-- > 0;) {
    const std::size_t d = to.size() - from.size() + i;
    if (from[i] == to[d]) {
      out[d] = stride;
    } else if (from[i] != 1) {
      fits = false;
    }
    stride *= from[i];
  }
  if (!fits) {
    return kernel_failed(node, fmt::format("shape [{}] does not broadcast to [{}]", fmt::join(from, ","),
                                           fmt::join(to, ",")));
  }
  return out;
}

// for_each_row, compiled once for each K and not for each f.
template <std::size_t K>
[[gnu::noinline]] void walk_rows(const StridedLoop<K>& loop, int threads, const void* f,
                                 void (*call)(const void* f, const std::array<std::int64_t, K>& offsets, std::int64_t n)) {
  if (loop.total == 0) return;
  const std::int64_t length = loop.inner();
  const std::int64_t rows = loop.total / length;
  const bool parallel = threads > 1 && loop.total > kParallelWork;
  // Long rows are cut so that one row alone keeps all threads busy.
  constexpr std::int64_t kCut = 8192;
  const std::int64_t cut = parallel && rows < 4 * threads ? kCut : length;
  const std::int64_t cuts = (length + cut - 1) / cut;
  const std::int64_t pieces = rows * cuts;
  const std::size_t outer = loop.dims.size() - 1;

  const auto work = [&](std::int64_t first, std::int64_t last) {
    Dims at(outer, 0);
    std::array<std::int64_t, K> base{};
    std::int64_t row = first / cuts, piece = first % cuts;
    for (std::size_t d = outer; d-- > 0;) {
      at[d] = row % loop.dims[d];
      row /= loop.dims[d];
      for (std::size_t k = 0; k < K; ++k) base[k] += at[d] * loop.strides[k][d];
    }
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = piece * cut;
      std::array<std::int64_t, K> offset = base;
      for (std::size_t k = 0; k < K; ++k) offset[k] += begin * loop.strides[k][outer];
      call(f, offset, std::min(cut, length - begin));
      if (++piece < cuts) continue;
      piece = 0;
      for (std::size_t d = outer; d-- > 0;) {
        if (++at[d] < loop.dims[d]) {
          for (std::size_t k = 0; k < K; ++k) base[k] += loop.strides[k][d];
          break;
        }
        for (std::size_t k = 0; k < K; ++k) base[k] -= loop.strides[k][d] * (loop.dims[d] - 1);
        at[d] = 0;
      }
    }
  };
  if (!parallel) {
    work(0, pieces);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; ++t) work(pieces * t / threads, pieces * (t + 1) / threads);
}

/// Calls f(offsets, n): n consecutive iterations of the innermost dimension, operand k starting at
/// offsets[k]. Rows are shared out statically; f must not depend on how.
template <std::size_t K, class F>
void for_each_row(const StridedLoop<K>& loop, int threads, const F& f) {
  walk_rows<K>(loop, threads, &f, [](const void* g, const std::array<std::int64_t, K>& offsets, std::int64_t n) {
    (*static_cast<const F*>(g))(offsets, n);
  });
}

/// out[i] = f(a[i]) over equal shapes.
template <class Out, class A, class F>
void map_elements(Out* out, const A* a, std::int64_t n, int threads, F f) {
  const auto part = [&](std::int64_t first, std::int64_t last) {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i) out[i] = f(a[i]);
  };
  if (threads <= 1 || n <= kParallelWork) {
    part(0, n);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; ++t) part(n * t / threads, n * (t + 1) / threads);
}

/// out[i] = f(a[i], b[i]); operand 0 of the loop is `out` and dense, 1 is a, 2 is b. `out` may be `a` or
/// `b` itself where their strides agree.
template <class Out, class A, class B, class F>
void map_elements(const StridedLoop<3>& loop, Out* out, const A* a, const B* b, int threads, F f) {
  const std::int64_t sa = loop.inner_stride(1), sb = loop.inner_stride(2);
  for_each_row(loop, threads, [&](const std::array<std::int64_t, 3>& at, std::int64_t n) {
    Out* o = out + at[0];
    const A* x = a + at[1];
    const B* y = b + at[2];
    if (sa == 1 && sb == 1) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i], y[i]);
    } else if (sa == 1 && sb == 0) {
      const B fixed = *y;
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i], fixed);
    } else if (sa == 0 && sb == 1) {
      const A fixed = *x;
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) o[i] = f(fixed, y[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i * sa], y[i * sb]);
    }
  });
}

/// The loop of a two-operand element-wise operator.
inline Result<StridedLoop<3>> binary_loop(std::string_view node, std::span<const std::int64_t> out,
                                          std::span<const std::int64_t> a,
                                          std::span<const std::int64_t> b) {
  MST_TRY(Dims sa, broadcast_strides(node, a, out));
  MST_TRY(Dims sb, broadcast_strides(node, b, out));
  return strided_loop<3>(out, {strides_of(out), std::move(sa), std::move(sb)});
}

/// out (dense, shape `dims`) = in read with `strides`; transposes in square tiles. Elements are plain.
template <class T>
void strided_copy(T* out, const T* in, std::span<const std::int64_t> dims, const Dims& strides, int threads) {
  StridedLoop<2> loop = strided_loop<2>(dims, {strides_of(dims), strides});
  if (loop.total == 0) return;
  const std::size_t last = loop.dims.size() - 1;
  // The dimension along which the source is contiguous, when it is not the innermost.
  std::size_t along = last;
  if (loop.strides[1][last] != 1) {
    for (std::size_t d = 0; d < last; ++d) {
      if (loop.strides[1][d] == 1 && loop.dims[d] > 1) along = d;
    }
  }
  if (along == last) {
    const std::int64_t step = loop.inner_stride(1);
    for_each_row(loop, threads, [&](const std::array<std::int64_t, 2>& at, std::int64_t n) {
      T* o = out + at[0];
      const T* x = in + at[1];
      if (step == 1) {
        std::copy(x, x + n, o);
      } else if (step == 0) {
        std::fill(o, o + n, *x);
      } else {
        for (std::int64_t i = 0; i < n; ++i) o[i] = x[i * step];
      }
    });
    return;
  }
  // Tiles over (along, last); the remaining dimensions and the tile rows are the outer loop.
  constexpr std::int64_t kTile = 32;
  const std::int64_t rows = loop.dims[along], columns = loop.dims[last];
  const std::int64_t out_row = loop.strides[0][along], in_column = loop.strides[1][last];
  const std::int64_t tiles = (rows + kTile - 1) / kTile;
  StridedLoop<2> outer;
  for (std::size_t d = 0; d < last; ++d) {
    if (d == along) continue;
    outer.dims.push_back(loop.dims[d]);
    for (std::size_t k = 0; k < 2; ++k) outer.strides[k].push_back(loop.strides[k][d]);
  }
  outer.dims.push_back(tiles);
  outer.strides[0].push_back(kTile * out_row);
  outer.strides[1].push_back(kTile);
  const std::int64_t outer_total = count_of(outer.dims);
  const auto work = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      std::int64_t rest = i, to = 0, from = 0;
      const std::int64_t tile = i % tiles;
      for (std::size_t d = outer.dims.size(); d-- > 0;) {
        const std::int64_t at = rest % outer.dims[d];
        rest /= outer.dims[d];
        to += at * outer.strides[0][d];
        from += at * outer.strides[1][d];
      }
      const std::int64_t height = std::min(kTile, rows - tile * kTile);
      for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
        const std::int64_t c1 = std::min(columns, c0 + kTile);
        for (std::int64_t r = 0; r < height; ++r) {
          for (std::int64_t c = c0; c < c1; ++c) out[to + r * out_row + c] = in[from + r + c * in_column];
        }
      }
    }
  };
  if (threads <= 1 || loop.total <= kParallelWork) {
    work(0, outer_total);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; ++t) work(outer_total * t / threads, outer_total * (t + 1) / threads);
}

}  // namespace millstream
