// SPDX-License-Identifier: Apache-2.0
// RoiAlign, MaxRoiPool and DeformConv: windows whose places come from data.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"
#include "millstream/kernels/window.h"

namespace millstream {
namespace {

/// Four neighbours of a point in a plane, with bilinear weights.
template <class T>
struct Corners {
  std::array<std::int64_t, 4> at{0, 0, 0, 0};
  std::array<T, 4> weight{T{}, T{}, T{}, T{}};
};

/// Points more than one sample outside weigh nothing; the rest clamp to the plane.
template <class T>
Corners<T> corners_of(T y, T x, std::int64_t height, std::int64_t width) {
  Corners<T> out;
  if (!(y >= T{-1} && y <= static_cast<T>(height) && x >= T{-1} && x <= static_cast<T>(width))) return out;
  const auto along = [](T v, std::int64_t extent) {
    v = std::max(v, T{});
    std::int64_t low = static_cast<std::int64_t>(v);
    if (low >= extent - 1) return std::tuple(extent - 1, extent - 1, T{});
    return std::tuple(low, low + 1, v - static_cast<T>(low));
  };
  const auto [y0, y1, fy] = along(y, height);
  const auto [x0, x1, fx] = along(x, width);
  out.at = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  out.weight = {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx};
  return out;
}

struct RoiAttrs {
  std::string node;
  bool average;
  bool half_pixel;
  std::int64_t sampling_ratio;
  float spatial_scale;
};

template <class T>
void align_region(const RoiAttrs& attrs, const T* sample, std::int64_t channels, std::int64_t height,
                  std::int64_t width, const T* roi, T* y, std::int64_t out_h, std::int64_t out_w) {
  const T scale = static_cast<T>(attrs.spatial_scale), offset = static_cast<T>(attrs.half_pixel ? 0.5 : 0.0);
  const T x0 = roi[0] * scale - offset, y0 = roi[1] * scale - offset;
  T roi_w = roi[2] * scale - offset - x0, roi_h = roi[3] * scale - offset - y0;
  if (!attrs.half_pixel) roi_w = std::max(roi_w, T{1}), roi_h = std::max(roi_h, T{1});
  const T bin_h = roi_h / static_cast<T>(out_h), bin_w = roi_w / static_cast<T>(out_w);
  const auto samples = [&](T bin) {
    return attrs.sampling_ratio > 0 ? attrs.sampling_ratio
                                    : std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(std::min(T{4096}, bin))));
  };
  const std::int64_t rows = samples(bin_h), columns = samples(bin_w);
  for (std::int64_t ph = 0; ph < out_h; ++ph) {
    for (std::int64_t pw = 0; pw < out_w; ++pw) {
      for (std::int64_t c = 0; c < channels; ++c) y[(c * out_h + ph) * out_w + pw] = T{};
      for (std::int64_t s = 0; s < rows * columns; ++s) {
        const T py = y0 + static_cast<T>(ph) * bin_h + (static_cast<T>(s / columns) + T{0.5}) * bin_h / static_cast<T>(rows);
        const T px = x0 + static_cast<T>(pw) * bin_w + (static_cast<T>(s % columns) + T{0.5}) * bin_w / static_cast<T>(columns);
        const Corners<T> corners = corners_of(py, px, height, width);
        for (std::int64_t c = 0; c < channels; ++c) {
          const T* plane = sample + c * height * width;
          T& cell = y[(c * out_h + ph) * out_w + pw];
          std::array<T, 4> parts;
          for (std::size_t k = 0; k < 4; ++k) parts[k] = corners.weight[k] * plane[corners.at[k]];
          if (attrs.average) {
            cell += (parts[0] + parts[1] + parts[2] + parts[3]) / static_cast<T>(rows * columns);
          } else {
            // The operator's maximum is over the weighted neighbours, not over interpolated points.
            const T top = *std::max_element(parts.begin(), parts.end());
            cell = s == 0 ? top : std::max(cell, top);
          }
        }
      }
    }
  }
}

Result<std::unique_ptr<Kernel>> make_roi_align(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  const Attrs& a = spec.attrs();
  const std::string mode = a.get_string("mode", "avg");
  if (mode != "avg" && mode != "max") return unsupported_node(spec, fmt::format("mode \"{}\"", mode));
  // Before opset 16 there was no half-pixel shift.
  const std::string coordinates = a.get_string("coordinate_transformation_mode", spec.opset() < 16 ? "output_half_pixel" : "half_pixel");
  RoiAttrs attrs{std::string(spec.name()), mode == "avg", coordinates == "half_pixel", a.get_int("sampling_ratio", 0),
                 a.get_float("spatial_scale", 1.0f)};
  return make_function_kernel([attrs = std::move(attrs)](KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &rois = args.input(1), &batch = args.input(2), &y = args.output(0);
    if (x.shape().size() != 4 || rois.shape().size() != 2 || rois.shape()[1] != 4 || batch.dtype() != DType::i64 ||
        batch.elements() != rois.shape()[0] || !is_real(rois.dtype()) || y.shape().size() != 4 ||
        y.shape()[0] != rois.shape()[0] || y.shape()[1] != x.shape()[1]) {
      return kernel_failed(attrs.node, "regions do not fit the input");
    }
    if (y.elements() == 0) return {};
    if (x.elements() == 0) return kernel_failed(attrs.node, "there is nothing to sample");
    const auto from = batch.as<std::int64_t>();
    for (const std::int64_t b : from) {
      if (b < 0 || b >= x.shape()[0]) return kernel_failed(attrs.node, fmt::format("batch index {} is outside [0, {})", b, x.shape()[0]));
    }
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x), regions(rois);
      RealOut<T> out(args.output(0));
      const std::int64_t sample = count_of(x.shape(), 1, 4), cells = count_of(y.shape(), 1, 4);
      for (std::int64_t r = 0; r < y.shape()[0]; ++r) {
        align_region(attrs, in.data() + from[static_cast<std::size_t>(r)] * sample, x.shape()[1], x.shape()[2], x.shape()[3],
                     regions.data() + r * 4, out.data() + r * cells, y.shape()[2], y.shape()[3]);
      }
    });
    return {};
  });
}

template <class T>
void max_region(const T* sample, std::int64_t channels, std::int64_t height, std::int64_t width, const T* roi, T scale,
                T* y, std::int64_t out_h, std::int64_t out_w) {
  const auto scaled = [&](std::size_t i) {
    return static_cast<std::int64_t>(std::clamp(std::round(roi[i] * scale), T{-1e9}, T{1e9}));
  };
  const std::int64_t x0 = scaled(1), y0 = scaled(2);
  const T roi_w = static_cast<T>(std::max<std::int64_t>(scaled(3) - x0 + 1, 1));
  const T roi_h = static_cast<T>(std::max<std::int64_t>(scaled(4) - y0 + 1, 1));
  const auto range = [](std::int64_t p, T size, std::int64_t outs, std::int64_t origin, std::int64_t extent) {
    const T bin = size / static_cast<T>(outs);
    const auto low = static_cast<std::int64_t>(std::floor(static_cast<T>(p) * bin)) + origin;
    const auto high = static_cast<std::int64_t>(std::ceil(static_cast<T>(p + 1) * bin)) + origin;
    return std::pair(std::clamp<std::int64_t>(low, 0, extent), std::clamp<std::int64_t>(high, 0, extent));
  };
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t ph = 0; ph < out_h; ++ph) {
      const auto [h0, h1] = range(ph, roi_h, out_h, y0, height);
      for (std::int64_t pw = 0; pw < out_w; ++pw) {
        const auto [w0, w1] = range(pw, roi_w, out_w, x0, width);
        std::optional<T> best;  // an empty bin gives 0
        for (std::int64_t i = h0; i < h1; ++i) {
          for (std::int64_t j = w0; j < w1; ++j) {
            const T value = sample[(c * height + i) * width + j];
            if (!best || value > *best) best = value;
          }
        }
        *y++ = best.value_or(T{});
      }
    }
  }
}

Result<std::unique_ptr<Kernel>> make_max_roi_pool(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  return make_function_kernel([node = std::string(spec.name()),
                               scale = spec.attrs().get_float("spatial_scale", 1.0f)](KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &rois = args.input(1), &y = args.output(0);
    if (x.shape().size() != 4 || rois.shape().size() != 2 || rois.shape()[1] != 5 || rois.dtype() != x.dtype() ||
        y.shape().size() != 4 || y.shape()[0] != rois.shape()[0] || y.shape()[1] != x.shape()[1]) {
      return kernel_failed(node, "regions do not fit the input");
    }
    return with_real(x.dtype(), [&](auto zero) -> Result<void> {
      using T = decltype(zero);
      const RealIn<T> in(x), regions(rois);
      RealOut<T> out(args.output(0));
      const std::int64_t sample = count_of(x.shape(), 1, 4), cells = count_of(y.shape(), 1, 4);
      for (std::int64_t r = 0; r < y.shape()[0]; ++r) {
        const T* roi = regions.data() + r * 5;
        if (!(roi[0] >= T{} && roi[0] < static_cast<T>(x.shape()[0]))) return kernel_failed(node, "a batch index is out of range");
        max_region(in.data() + static_cast<std::int64_t>(roi[0]) * sample, x.shape()[1], x.shape()[2], x.shape()[3], roi,
                   static_cast<T>(scale), out.data() + r * cells, y.shape()[2], y.shape()[3]);
      }
      return {};
    });
  });
}

/// Bilinear read of a plane; beyond it lie zeros.
template <class T>
T read_bilinear(const T* plane, std::int64_t height, std::int64_t width, T y, T x) {
  if (!(y > T{-1} && y < static_cast<T>(height) && x > T{-1} && x < static_cast<T>(width))) return T{};
  const auto y0 = static_cast<std::int64_t>(std::floor(y)), x0 = static_cast<std::int64_t>(std::floor(x));
  const T fy = y - static_cast<T>(y0), fx = x - static_cast<T>(x0);
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return i < 0 || i >= height || j < 0 || j >= width ? T{} : plane[i * width + j];
  };
  return (1 - fy) * ((1 - fx) * at(y0, x0) + fx * at(y0, x0 + 1)) + fy * ((1 - fx) * at(y0 + 1, x0) + fx * at(y0 + 1, x0 + 1));
}

struct DeformAttrs {
  std::string node;
  WindowAttrs window;
  std::int64_t groups;
  std::int64_t offset_groups;
  int threads;
};

template <class T>
void deform_convolution(const DeformAttrs& attrs, const Window3& s, KernelArgs& args) {
  const Tensor &x_tensor = args.input(0), &w_tensor = args.input(1);
  const RealIn<T> x(x_tensor), w(w_tensor), offset(args.input(2));
  std::optional<RealIn<T>> bias, mask;
  if (args.has_input(3)) bias.emplace(args.input(3));
  if (args.has_input(4)) mask.emplace(args.input(4));
  RealOut<T> out(args.output(0));
  T* y = out.data();
  const std::int64_t channels = x_tensor.shape()[1], maps = w_tensor.shape()[0], batch = x_tensor.shape()[0];
  const std::int64_t per_group = w_tensor.shape()[1], maps_per_group = maps / attrs.groups;
  const std::int64_t per_offset = channels / attrs.offset_groups, taps = s.kernel_size(), cells = s.out_size();
#pragma omp parallel for num_threads(attrs.threads) schedule(static) if (batch * maps * cells * taps > kParallelWork)
  for (std::int64_t nm = 0; nm < batch * maps; ++nm) {
    const std::int64_t n = nm / maps, m = nm % maps, first = m / maps_per_group * per_group;
    for (std::int64_t o = 0; o < cells; ++o) {
      double sum = bias ? static_cast<double>((*bias)[m]) : 0.0;
      for (std::int64_t c = 0; c < per_group; ++c) {
        const std::int64_t channel = first + c, group = n * attrs.offset_groups + channel / per_offset;
        for (std::int64_t k = 0; k < taps; ++k) {
          const T* shift = offset.data() + (group * taps + k) * 2 * cells + o;
          const T py = static_cast<T>(o / s.out[2] * s.stride[1] - s.begin[1] + k / s.kernel[2] * s.dilation[1]) + shift[0];
          const T px = static_cast<T>(o % s.out[2] * s.stride[2] - s.begin[2] + k % s.kernel[2] * s.dilation[2]) + shift[cells];
          const T value = read_bilinear(x.data() + (n * channels + channel) * s.in_size(), s.in[1], s.in[2], py, px);
          const T factor = mask ? (*mask)[(group * taps + k) * cells + o] : T{1};
          sum += static_cast<double>(value * factor) * static_cast<double>(w[(m * per_group + c) * taps + k]);
        }
      }
      y[nm * cells + o] = static_cast<T>(sum);
    }
  }
}

Result<std::unique_ptr<Kernel>> make_deform_conv(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  DeformAttrs attrs{std::string(spec.name()), WindowAttrs::read(spec.attrs()), spec.attrs().get_int("group", 1),
                    spec.attrs().get_int("offset_group", 1), std::max(1, spec.threads)};
  return make_function_kernel([attrs = std::move(attrs)](KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &w = args.input(1), &offset = args.input(2), &y = args.output(0);
    if (x.shape().size() != 4 || w.shape().size() != 4 || y.shape().size() != 4) {
      return kernel_failed(attrs.node, "only 2 spatial dimensions are supported");
    }
    const Dims kernel(w.shape().begin() + 2, w.shape().end());
    MST_TRY(const Window window, attrs.window.resolve(attrs.node, x.shape().subspan(2), kernel));
    const std::int64_t taps = count_of(kernel), places = x.shape()[0] * attrs.offset_groups * taps * y.shape()[2] * y.shape()[3];
    bool fits = window.kernel == kernel && attrs.groups >= 1 && attrs.offset_groups >= 1 &&
                x.shape()[1] == w.shape()[1] * attrs.groups && w.shape()[0] % attrs.groups == 0 &&
                x.shape()[1] % attrs.offset_groups == 0 && y.shape()[0] == x.shape()[0] && y.shape()[1] == w.shape()[0] &&
                offset.elements() == 2 * places;
    fits = fits && (!args.has_input(3) || args.input(3).elements() == w.shape()[0]) &&
           (!args.has_input(4) || args.input(4).elements() == places);
    for (std::size_t i = 1; i < 5; ++i) fits = fits && (!args.has_input(i) || args.input(i).dtype() == x.dtype());
    if (!fits) return kernel_failed(attrs.node, "shapes of the inputs do not fit together");
    const Window3 s(window, x.shape().subspan(2), y.shape().subspan(2));
    with_real(x.dtype(), [&](auto zero) { deform_convolution<decltype(zero)>(attrs, s, args); });
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"DeformConv", make_deform_conv}, {"MaxRoiPool", make_max_roi_pool}, {"RoiAlign", make_roi_align}};

}  // namespace

std::span<const KernelEntry> kernels_roi() { return kEntries; }

}  // namespace millstream
