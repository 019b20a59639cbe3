// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool, their global forms and MaxUnpool.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"
#include "millstream/kernels/window.h"

namespace millstream {
namespace {

/// Positions o in [first, last) whose sample o * stride + offset lies in [0, extent).
struct Span {
  std::int64_t first;
  std::int64_t last;
};
Span inside(std::int64_t outs, std::int64_t stride, std::int64_t offset, std::int64_t extent) {
  const std::int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const std::int64_t last = extent - offset <= 0 ? 0 : (extent - offset - 1) / stride + 1;
  return {std::min(first, outs), std::clamp(last, std::min(first, outs), outs)};
}

template <class T, class Fold>
void fold_strided(T* y, const T* x, Span span, std::int64_t stride, Fold fold) {
  if (stride == 1) {
#pragma omp simd
    for (std::int64_t o = span.first; o < span.last; ++o) y[o] = fold(y[o], x[o]);
  } else if (stride == 2) {
#pragma omp simd
    for (std::int64_t o = span.first; o < span.last; ++o) y[o] = fold(y[o], x[2 * o]);
  } else {
    for (std::int64_t o = span.first; o < span.last; ++o) y[o] = fold(y[o], x[stride * o]);
  }
}

/// Folds every window: first the rows of the window into one row, then along it, so a k x k window
/// costs k + k folds a sample instead of k * k. `map` is applied to samples first.
template <class T, class Acc, class Map, class Fold>
void pool_planes(const T* x, Acc* y, std::int64_t planes, const Window3& s, Acc start, Map map, Fold fold,
                 int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (planes * s.out_size() * s.kernel_size() > kParallelWork)
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const T* xp = x + plane * s.in_size();
    std::vector<Acc> line(static_cast<std::size_t>(s.in[2]));
    for (std::int64_t o0 = 0; o0 < s.out[0]; ++o0) {
      for (std::int64_t o1 = 0; o1 < s.out[1]; ++o1) {
        std::fill(line.begin(), line.end(), start);
        for (std::int64_t k0 = 0; k0 < s.kernel[0]; ++k0) {
          const std::int64_t i0 = o0 * s.stride[0] - s.begin[0] + k0 * s.dilation[0];
          if (i0 < 0 || i0 >= s.in[0]) continue;
          for (std::int64_t k1 = 0; k1 < s.kernel[1]; ++k1) {
            const std::int64_t i1 = o1 * s.stride[1] - s.begin[1] + k1 * s.dilation[1];
            if (i1 < 0 || i1 >= s.in[1]) continue;
            const T* row = xp + (i0 * s.in[1] + i1) * s.in[2];
            Acc* to = line.data();
#pragma omp simd
            for (std::int64_t i = 0; i < s.in[2]; ++i) to[i] = fold(to[i], map(row[i]));
          }
        }
        Acc* out = y + ((plane * s.out[0] + o0) * s.out[1] + o1) * s.out[2];
        std::fill(out, out + s.out[2], start);
        for (std::int64_t k2 = 0; k2 < s.kernel[2]; ++k2) {
          const std::int64_t offset = k2 * s.dilation[2] - s.begin[2];
          const Span span = inside(s.out[2], s.stride[2], offset, s.in[2]);
          // Offsetting the index, not the pointer, which may lie before the line.
          if (span.first >= span.last) continue;
          const std::int64_t base = span.first * s.stride[2] + offset;
          fold_strided<Acc>(out + span.first, line.data() + base, {0, span.last - span.first}, s.stride[2], fold);
        }
      }
    }
  }
}

struct PoolKernelAttrs {
  std::string node;
  WindowAttrs window;
  bool include_pad;
  std::int64_t storage_order;
  std::int64_t p;
  int threads;
};

PoolKernelAttrs read_attrs(const KernelSpec& spec) {
  return {std::string(spec.name()),
          WindowAttrs::read(spec.attrs()),
          spec.attrs().get_int("count_include_pad", 0) != 0,
          spec.attrs().get_int("storage_order", 0),
          spec.attrs().get_int("p", 2),
          std::max(1, spec.threads)};
}

struct PoolShape {
  Window window;
  Window3 loops;
  std::int64_t planes;
};

/// Output extents come from the output tensor, so rounding modes need no second definition here.
Result<PoolShape> pool_shape(const PoolKernelAttrs& attrs, const Tensor& x, const Tensor& y) {
  const std::size_t rank = x.shape().size();
  if (rank < 3 || rank > 5 || y.shape().size() != rank) {
    return kernel_failed(attrs.node, "only 1 to 3 spatial dimensions are supported");
  }
  if (x.shape()[0] != y.shape()[0] || x.shape()[1] != y.shape()[1]) {
    return kernel_failed(attrs.node, "batch or channels of input and output differ");
  }
  MST_TRY(Window window, attrs.window.resolve(attrs.node, x.shape().subspan(2), {}));
  const Window3 loops(window, x.shape().subspan(2), y.shape().subspan(2));
  return PoolShape{std::move(window), loops, x.shape()[0] * x.shape()[1]};
}

template <class T>
T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

/// The window's first largest sample and where it lies.
template <class T>
void max_with_indices(const T* x, T* y, std::int64_t* indices, std::int64_t planes, const Window3& s,
                      bool column_major) {
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const T* xp = x + plane * s.in_size();
    std::int64_t o = plane * s.out_size();
    for (std::int64_t o0 = 0; o0 < s.out[0]; ++o0) {
      for (std::int64_t o1 = 0; o1 < s.out[1]; ++o1) {
        for (std::int64_t o2 = 0; o2 < s.out[2]; ++o2, ++o) {
          T best = lowest<T>();
          std::int64_t where = -1;
          for_window(s, o0, o1, o2, [&](std::int64_t sample, std::int64_t) {
            if (where >= 0 && !(xp[sample] > best)) return;
            best = xp[sample];
            where = sample;
          });
          if (where >= 0 && column_major) {
            const std::int64_t i2 = where % s.in[2], i1 = where / s.in[2] % s.in[1], i0 = where / (s.in[1] * s.in[2]);
            where = (i2 * s.in[1] + i1) * s.in[0] + i0;
          }
          y[o] = best;
          indices[o] = where < 0 ? -1 : plane * s.in_size() + where;
        }
      }
    }
  }
}

template <class T>
void max_pool(const PoolKernelAttrs& attrs, const PoolShape& shape, const T* x, T* y, std::int64_t* indices) {
  if (indices != nullptr) {
    max_with_indices(x, y, indices, shape.planes, shape.loops, attrs.storage_order == 1);
    return;
  }
  pool_planes<T, T>(
      x, y, shape.planes, shape.loops, lowest<T>(), [](T v) { return v; },
      [](T a, T b) { return b > a ? b : a; }, attrs.threads);
}

Result<std::unique_ptr<Kernel>> make_max_pool(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type) && type != DType::u8 && type != DType::i8) {
    return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  }
  return make_function_kernel([attrs = read_attrs(spec)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    Tensor& y = args.output(0);
    MST_TRY(const PoolShape shape, pool_shape(attrs, x, y));
    std::int64_t* indices = nullptr;
    if (args.output_count() > 1 && args.output(1).dtype() == DType::i64 &&
        args.output(1).elements() == y.elements()) {
      indices = args.output(1).as_mutable<std::int64_t>().data();
    }
    if (x.dtype() == DType::u8) {
      max_pool(attrs, shape, x.as<std::uint8_t>().data(), y.as_mutable<std::uint8_t>().data(), indices);
    } else if (x.dtype() == DType::i8) {
      max_pool(attrs, shape, x.as<std::int8_t>().data(), y.as_mutable<std::int8_t>().data(), indices);
    } else {
      with_real(x.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const RealIn<T> in(x);
        RealOut<T> out(y);
        max_pool<T>(attrs, shape, in.data(), out.data(), indices);
      });
    }
    return {};
  });
}

/// Samples of each window position along one dimension, with or without the padding.
std::vector<std::int64_t> counts_along(const Window& w, std::size_t d, std::int64_t in, std::int64_t out,
                                       bool include_pad) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(out), 0);
  const std::int64_t low = include_pad ? -w.begin[d] : 0;
  const std::int64_t high = include_pad ? in + w.end[d] : in;
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t k = 0; k < w.kernel[d]; ++k) {
      const std::int64_t i = o * w.strides[d] - w.begin[d] + k * w.dilations[d];
      if (i >= low && i < high) ++counts[static_cast<std::size_t>(o)];
    }
  }
  return counts;
}

template <class T>
void average_pool(const PoolKernelAttrs& attrs, const PoolShape& shape, const Tensor& input, const T* x, T* y) {
  const Window3& s = shape.loops;
  pool_planes<T, T>(
      x, y, shape.planes, s, T{}, [](T v) { return v; }, [](T a, T b) { return a + b; }, attrs.threads);
  std::array<std::vector<std::int64_t>, 3> counts = {std::vector<std::int64_t>(1, 1), std::vector<std::int64_t>(1, 1),
                                                     std::vector<std::int64_t>(1, 1)};
  const std::size_t shift = 3 - shape.window.rank();
  for (std::size_t d = 0; d < shape.window.rank(); ++d) {
    counts[shift + d] = counts_along(shape.window, d, input.shape()[2 + d], s.out[shift + d], attrs.include_pad);
  }
  std::vector<T> divisors;
  for (const std::int64_t a : counts[0]) {
    for (const std::int64_t b : counts[1]) {
      for (const std::int64_t c : counts[2]) divisors.push_back(static_cast<T>(std::max<std::int64_t>(1, a * b * c)));
    }
  }
  for (std::int64_t plane = 0; plane < shape.planes; ++plane) {
    T* out = y + plane * s.out_size();
    const T* by = divisors.data();
#pragma omp simd
    for (std::int64_t i = 0; i < s.out_size(); ++i) out[i] /= by[i];
  }
}

template <class T>
void lp_pool(const PoolKernelAttrs& attrs, const PoolShape& shape, const T* x, T* y) {
  const T p = static_cast<T>(attrs.p);
  const auto add = [](T a, T b) { return a + b; };
  if (attrs.p == 1) {
    pool_planes<T, T>(x, y, shape.planes, shape.loops, T{}, [](T v) { return std::abs(v); }, add, attrs.threads);
    return;
  }
  if (attrs.p == 2) {
    pool_planes<T, T>(x, y, shape.planes, shape.loops, T{}, [](T v) { return v * v; }, add, attrs.threads);
  } else {
    pool_planes<T, T>(
        x, y, shape.planes, shape.loops, T{}, [p](T v) { return std::pow(std::abs(v), p); }, add, attrs.threads);
  }
  const std::int64_t n = shape.planes * shape.loops.out_size();
  for (std::int64_t i = 0; i < n; ++i) y[i] = attrs.p == 2 ? std::sqrt(y[i]) : std::pow(y[i], T{1} / p);
}

enum class PoolKind { average, lp };

template <PoolKind kind>
Result<std::unique_ptr<Kernel>> make_real_pool(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  return make_function_kernel([attrs = read_attrs(spec)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    MST_TRY(const PoolShape shape, pool_shape(attrs, x, args.output(0)));
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      if constexpr (kind == PoolKind::average) {
        average_pool<T>(attrs, shape, x, in.data(), out.data());
      } else {
        lp_pool<T>(attrs, shape, in.data(), out.data());
      }
    });
    return {};
  });
}

enum class GlobalKind { average, max, lp };

template <class T, GlobalKind kind>
T pool_plane(const T* x, std::int64_t n, std::int64_t p) {
  if constexpr (kind == GlobalKind::max) {
    T best = lowest<T>();
    for (std::int64_t i = 0; i < n; ++i) best = x[i] > best ? x[i] : best;
    return best;
  } else if constexpr (kind == GlobalKind::average) {
    T sum{};
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += x[i];
    return sum / static_cast<T>(n);
  } else {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::pow(std::abs(static_cast<double>(x[i])), static_cast<double>(p));
    return static_cast<T>(std::pow(sum, 1.0 / static_cast<double>(p)));
  }
}

template <GlobalKind kind>
Result<std::unique_ptr<Kernel>> make_global_pool(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  return make_function_kernel([node = std::string(spec.name()), p = spec.attrs().get_int("p", 2),
                      threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    if (x.shape().size() < 2) return kernel_failed(node, "input has no channels");
    const std::int64_t planes = x.shape()[0] * x.shape()[1], size = count_of(x.shape(), 2, x.shape().size());
    if (args.output(0).elements() != planes) return kernel_failed(node, "output does not hold one value a channel");
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      const T* from = in.data();
      T* to = out.data();
#pragma omp parallel for num_threads(threads) schedule(static) if (planes * size > kParallelWork)
      for (std::int64_t i = 0; i < planes; ++i) to[i] = pool_plane<T, kind>(from + i * size, size, p);
    });
    return {};
  });
}

/// Indices count in the output that the window alone gives; an explicit larger output_shape keeps that
/// block at its low corner and fills the rest with zeros.
Result<std::unique_ptr<Kernel>> make_max_unpool(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  return make_function_kernel([node = std::string(spec.name()), attrs = WindowAttrs::read(spec.attrs())](
                                  KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &indices = args.input(1);
    Tensor& y = args.output(0);
    if (indices.dtype() != DType::i64 || indices.elements() != x.elements()) {
      return kernel_failed(node, "indices do not match the input");
    }
    const std::size_t rank = x.shape().size();
    if (rank < 3 || y.shape().size() != rank) return kernel_failed(node, "input and output differ in rank");
    MST_TRY(const Window w, attrs.resolve(node, x.shape().subspan(2), {}));
    Dims block = {x.shape()[0], x.shape()[1]};
    for (std::size_t d = 0; d < w.rank(); ++d) {
      block.push_back((x.shape()[2 + d] - 1) * w.strides[d] - w.begin[d] - w.end[d] + w.kernel[d]);
    }
    for (std::size_t d = 0; d < rank; ++d) {
      if (block[d] > y.shape()[d]) return kernel_failed(node, "output_shape is smaller than the unpooled window");
    }
    const std::int64_t count = count_of(block);
    const Dims strides = strides_of(y.shape());
    const std::size_t size = dtype_bits(x.dtype()) / 8;
    std::fill(y.mutable_bytes(), y.mutable_bytes() + y.byte_size(), std::byte{0});
    const auto at = indices.as<std::int64_t>();
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] < 0 || at[i] >= count) {
        return kernel_failed(node, fmt::format("index {} is outside [0, {})", at[i], count));
      }
      std::int64_t rest = at[i], to = 0;
      for (std::size_t d = rank; d-- > 0; rest /= block[d]) to += rest % block[d] * strides[d];
      std::copy_n(x.bytes() + i * size, size, y.mutable_bytes() + static_cast<std::size_t>(to) * size);
    }
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"AveragePool", make_real_pool<PoolKind::average>},
    {"GlobalAveragePool", make_global_pool<GlobalKind::average>},
    {"GlobalLpPool", make_global_pool<GlobalKind::lp>},
    {"GlobalMaxPool", make_global_pool<GlobalKind::max>},
    {"LpPool", make_real_pool<PoolKind::lp>},
    {"MaxPool", make_max_pool},
    {"MaxUnpool", make_max_unpool},
};

}  // namespace

std::span<const KernelEntry> kernels_pool() { return kEntries; }

}  // namespace millstream
