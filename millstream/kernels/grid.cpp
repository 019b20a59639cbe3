// SPDX-License-Identifier: Apache-2.0
// GridSample over 2 or 3 spatial dimensions, and AffineGrid. Interpolation is separable: a few taps a
// dimension, found once a position and used for every channel.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "millstream/kernels/function_kernel.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

enum class Sampling { nearest, linear, cubic };
enum class Border { zeros, border, reflection };

struct GridAttrs {
  std::string node;
  Sampling sampling;
  Border border;
  bool align_corners;
  int threads;
};

/// Mirrors x at low and high until it lies between.
template <class T>
T reflected(T x, T low, T high) {
  const T range = high - low;
  if (range <= T{}) return low;
  T distance = std::fmod(std::abs(x - low), 2 * range);
  if (distance > range) distance = 2 * range - distance;
  return low + distance;
}

template <class T>
struct GridTaps {
  int count = 0;
  std::array<std::int64_t, 4> index{};
  std::array<T, 4> weight{};
};

template <class T>
T cubic(T distance) {
  const T a = static_cast<T>(-0.75), x = std::abs(distance);
  if (x <= T{1}) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < T{2} ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : T{};
}

template <class T>
class Sampler {
 public:
  Sampler(const GridAttrs& attrs, std::int64_t extent) : attrs_(attrs), extent_(extent) {
    low_ = attrs.align_corners ? T{} : static_cast<T>(-0.5);
    high_ = attrs.align_corners ? static_cast<T>(extent - 1) : static_cast<T>(extent) - static_cast<T>(0.5);
  }

  /// Taps of a normalized coordinate; [-1, 1] spans the dimension.
  GridTaps<T> taps(T normalized) const {
    const T size = static_cast<T>(extent_);
    T x = attrs_.align_corners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
    // Far beyond any extent; keeps the conversion to an integer defined.
    if (!(std::abs(x) < T{1e9})) x = static_cast<T>(x > T{} ? 1e9 : -1e9);
    if (attrs_.sampling == Sampling::nearest) x = std::nearbyint(x);
    if (x < low_ || x > high_) {
      // Cubic taps clamp one by one instead: the position keeps its distance from the border.
      if (attrs_.border == Border::border && attrs_.sampling != Sampling::cubic) x = std::clamp(x, T{}, size - 1);
      if (attrs_.border == Border::reflection) x = reflected(x, low_, high_);
    }
    GridTaps<T> out;
    if (attrs_.sampling == Sampling::nearest) {
      add(out, static_cast<std::int64_t>(x), T{1});
      return out;
    }
    const auto base = static_cast<std::int64_t>(std::floor(x));
    const T ratio = x - static_cast<T>(base);
    if (attrs_.sampling == Sampling::linear) {
      add(out, base, 1 - ratio);
      add(out, base + 1, ratio);
    } else {
      for (std::int64_t i = -1; i <= 2; ++i) add(out, base + i, cubic(static_cast<T>(i) - ratio));
    }
    return out;
  }

 private:
  void add(GridTaps<T>& taps, std::int64_t index, T weight) const {
    if (index < 0 || index >= extent_) {
      if (attrs_.border == Border::zeros) return;
      if (attrs_.border == Border::reflection) index = static_cast<std::int64_t>(reflected(static_cast<T>(index), low_, high_));
      index = std::clamp<std::int64_t>(index, 0, extent_ - 1);
    }
    taps.index[static_cast<std::size_t>(taps.count)] = index;
    taps.weight[static_cast<std::size_t>(taps.count++)] = weight;
  }

  const GridAttrs& attrs_;
  std::int64_t extent_;
  T low_;
  T high_;
};

template <class T>
void sample_grid(const GridAttrs& attrs, const T* x, const T* grid, T* y, std::int64_t batch, std::int64_t channels,
                 const std::array<std::int64_t, 3>& in, std::size_t rank, std::int64_t points) {
  const std::array<Sampler<T>, 3> samplers = {Sampler<T>(attrs, in[0]), Sampler<T>(attrs, in[1]), Sampler<T>(attrs, in[2])};
  const std::int64_t in_size = in[0] * in[1] * in[2];
#pragma omp parallel for num_threads(attrs.threads) schedule(static) if (batch * points * channels > 4096)
  for (std::int64_t np = 0; np < batch * points; ++np) {
    const std::int64_t n = np / points, p = np % points;
    const T* at = grid + np * static_cast<std::int64_t>(rank);
    std::array<GridTaps<T>, 3> taps;
    taps[0].count = 1;
    taps[0].weight[0] = T{1};
    // The grid names the last dimension first.
    for (std::size_t d = 0; d < rank; ++d) taps[2 - d] = samplers[2 - d].taps(at[d]);
    for (std::int64_t c = 0; c < channels; ++c) {
      const T* plane = x + (n * channels + c) * in_size;
      T sum{};
      for (int i = 0; i < taps[0].count; ++i) {
        for (int j = 0; j < taps[1].count; ++j) {
          const auto ui = static_cast<std::size_t>(i), uj = static_cast<std::size_t>(j);
          const T* row = plane + (taps[0].index[ui] * in[1] + taps[1].index[uj]) * in[2];
          T line{};
          for (int k = 0; k < taps[2].count; ++k) {
            const auto uk = static_cast<std::size_t>(k);
            line += taps[2].weight[uk] * row[taps[2].index[uk]];
          }
          sum += taps[0].weight[ui] * taps[1].weight[uj] * line;
        }
      }
      y[(n * channels + c) * points + p] = sum;
    }
  }
}

Result<std::unique_ptr<Kernel>> make_grid_sample(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  const std::string mode = spec.attrs().get_string("mode", spec.opset() < 20 ? "bilinear" : "linear");
  const std::string padding = spec.attrs().get_string("padding_mode", "zeros");
  GridAttrs attrs{std::string(spec.name()), Sampling::linear, Border::zeros,
                  spec.attrs().get_int("align_corners", 0) != 0, std::max(1, spec.threads)};
  if (mode == "nearest") {
    attrs.sampling = Sampling::nearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    attrs.sampling = Sampling::cubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return unsupported_node(spec, fmt::format("mode \"{}\"", mode));
  }
  if (padding == "border") {
    attrs.border = Border::border;
  } else if (padding == "reflection") {
    attrs.border = Border::reflection;
  } else if (padding != "zeros") {
    return unsupported_node(spec, fmt::format("padding_mode \"{}\"", padding));
  }
  return make_function_kernel([attrs = std::move(attrs)](KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &grid = args.input(1);
    const std::size_t rank = x.shape().size();
    if ((rank != 4 && rank != 5) || grid.shape().size() != rank || !is_real(grid.dtype())) {
      return kernel_failed(attrs.node, "only 2 or 3 spatial dimensions are supported");
    }
    const std::int64_t points = count_of(grid.shape(), 1, rank - 1);
    if (grid.shape()[0] != x.shape()[0] || grid.shape().back() != static_cast<std::int64_t>(rank) - 2 ||
        args.output(0).elements() != x.shape()[0] * x.shape()[1] * points) {
      return kernel_failed(attrs.node, "grid does not fit the input");
    }
    if (args.output(0).elements() == 0) return {};
    if (x.elements() == 0) return kernel_failed(attrs.node, "there is nothing to sample");
    std::array<std::int64_t, 3> in{1, 1, 1};
    std::copy(x.shape().begin() + 2, x.shape().end(), in.begin() + static_cast<std::ptrdiff_t>(5 - rank));
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> values(x), places(grid);
      RealOut<T> out(args.output(0));
      sample_grid<T>(attrs, values.data(), places.data(), out.data(), x.shape()[0], x.shape()[1], in, rank - 2, points);
    });
    return {};
  });
}

/// Centre of cell i of n on [-1, 1]; with align_corners the first and last centres are -1 and 1.
double cell_centre(std::int64_t i, std::int64_t n, bool align_corners) {
  const double at = static_cast<double>(i), count = static_cast<double>(n);
  if (align_corners) return n == 1 ? 0.0 : -1.0 + 2.0 * at / (count - 1);
  return -1.0 + (2.0 * at + 1.0) / count;
}

Result<std::unique_ptr<Kernel>> make_affine_grid(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  return make_function_kernel([node = std::string(spec.name()),
                               align = spec.attrs().get_int("align_corners", 0) != 0](KernelArgs& args) -> Result<void> {
    const Tensor &theta = args.input(0), &y = args.output(0);
    const std::size_t rank = y.shape().size();
    if (rank != 4 && rank != 5) return kernel_failed(node, "only 2 or 3 spatial dimensions are supported");
    const auto dims = static_cast<std::int64_t>(rank) - 2;
    if (y.shape().back() != dims || dims_of(theta) != Dims{y.shape()[0], dims, dims + 1}) {
      return kernel_failed(node, "theta does not fit size");
    }
    std::array<std::int64_t, 3> out{1, 1, 1};
    std::copy(y.shape().begin() + 1, y.shape().end() - 1, out.begin() + (3 - dims));
    with_real(theta.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> matrix(theta);
      RealOut<T> grid(args.output(0));
      std::int64_t o = 0;
      for (std::int64_t n = 0; n < y.shape()[0]; ++n) {
        for (std::int64_t i = 0; i < out[0]; ++i) {
          for (std::int64_t j = 0; j < out[1]; ++j) {
            for (std::int64_t k = 0; k < out[2]; ++k) {
              const std::array<double, 3> place = {cell_centre(k, out[2], align), cell_centre(j, out[1], align),
                                                   cell_centre(i, out[0], align)};
              for (std::int64_t row = 0; row < dims; ++row) {
                const T* m = matrix.data() + (n * dims + row) * (dims + 1);
                double sum = static_cast<double>(m[dims]);
                for (std::int64_t d = 0; d < dims; ++d) sum += static_cast<double>(m[d]) * place[static_cast<std::size_t>(d)];
                grid[o++] = static_cast<T>(sum);
              }
            }
          }
        }
      }
    });
    return {};
  });
}

constexpr KernelEntry kEntries[] = {{"AffineGrid", make_affine_grid}, {"GridSample", make_grid_sample}};

}  // namespace

std::span<const KernelEntry> kernels_grid() { return kEntries; }

}  // namespace millstream
