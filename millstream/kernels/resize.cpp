// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample. Every mode is separable: per axis, each output position is a weighted sum of a few
// input positions, so the tensor is resampled one axis at a time; nearest is one gather.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "millstream/kernels/function_kernel.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

enum class Mode { nearest, linear, cubic };

struct ResizeAttrs {
  std::string node;
  Mode mode = Mode::nearest;
  std::string coordinates;
  std::string nearest;
  std::string aspect;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  float extrapolation = 0;
  std::vector<std::int64_t> axes;
  std::vector<float> scales;            ///< Upsample before opset 9: an attribute
  std::optional<std::size_t> roi_input;  ///< inputs by position, which opsets moved
  std::optional<std::size_t> scales_input;
  std::optional<std::size_t> sizes_input;
  int threads = 1;
};

/// One axis' request: input and output extents, scale, region.
struct Axis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  double scale = 1;
  double roi_begin = 0;
  double roi_end = 1;
};

/// Where an output position samples: `count` inputs from `first`, weights beside; may need clamping.
struct Taps {
  std::int64_t count = 1;                ///< taps a position
  std::vector<std::int64_t> index;       ///< clamped, out * count
  std::vector<double> weight;            ///< out * count
  std::vector<bool> outside;             ///< extrapolated positions; empty = none
};

/// In float, as the operator's other implementations: positions that fall on the border between two
/// samples round alike.
float source_of(const ResizeAttrs& attrs, const Axis& axis, std::int64_t x) {
  const float at = static_cast<float>(x), in = static_cast<float>(axis.in), out = static_cast<float>(axis.out);
  const float scale = static_cast<float>(axis.scale);
  // The exact extent in * scale, which may lie above the integer one.
  const float width = scale * in;
  const std::string& mode = attrs.coordinates;
  if (mode == "align_corners") return axis.out == 1 ? 0.0f : at * (in - 1) / (width - 1);
  if (mode == "asymmetric") return at / scale;
  if (mode == "tf_crop_and_resize") {
    const float begin = static_cast<float>(axis.roi_begin), end = static_cast<float>(axis.roi_end);
    const float span = (end - begin) * (in - 1);
    return begin * (in - 1) + (axis.out == 1 ? span / 2 : at * span / (out - 1));
  }
  if (mode == "pytorch_half_pixel" && axis.out == 1) return 0.0f;
  const float offset = mode == "half_pixel_symmetric" ? in / 2 * (1 - out / width) : 0.0f;
  return offset + (at + 0.5f) / scale - 0.5f;
}

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

std::int64_t nearest_of(const ResizeAttrs& attrs, double source, double scale) {
  if (attrs.nearest == "floor") return static_cast<std::int64_t>(std::floor(source));
  if (attrs.nearest == "ceil") return static_cast<std::int64_t>(std::ceil(source));
  if (attrs.nearest == "simple") {
    return static_cast<std::int64_t>(scale < 1 ? std::ceil(source) : std::floor(source));
  }
  if (attrs.nearest == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(source + 0.5));
  return static_cast<std::int64_t>(std::ceil(source - 0.5));
}

Taps taps_of(const ResizeAttrs& attrs, const Axis& axis) {
  Taps taps;
  const double narrow = attrs.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double support = attrs.mode == Mode::cubic ? 2.0 : 1.0;
  // Taps lie symmetrically around the gap (base, base + 1].
  const auto first = static_cast<std::int64_t>(std::floor(-support / narrow)) + 1;
  taps.count = attrs.mode == Mode::nearest ? 1 : 2 - 2 * first;
  const bool crop = attrs.coordinates == "tf_crop_and_resize";
  if (crop) taps.outside.assign(static_cast<std::size_t>(axis.out), false);
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const double source = static_cast<double>(source_of(attrs, axis, o));
    if (crop && (source < 0 || source > static_cast<double>(axis.in - 1))) {
      taps.outside[static_cast<std::size_t>(o)] = true;
    }
    const auto clamped = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, axis.in - 1); };
    if (attrs.mode == Mode::nearest) {
      taps.index.push_back(clamped(nearest_of(attrs, source, axis.scale)));
      taps.weight.push_back(1);
      continue;
    }
    const double base = std::ceil(source) - 1;
    const double ratio = source - base;
    const std::size_t begin = taps.weight.size();
    double sum = 0;
    for (std::int64_t i = first; i < first + taps.count; ++i) {
      const double distance = (static_cast<double>(i) - ratio) * narrow;
      double weight = attrs.mode == Mode::cubic ? cubic_weight(distance, attrs.cubic_a)
                                                : std::max(0.0, 1 - std::abs(distance));
      const std::int64_t index = static_cast<std::int64_t>(base) + i;
      if (attrs.exclude_outside && (index < 0 || index >= axis.in)) weight = 0;
      taps.index.push_back(clamped(index));
      taps.weight.push_back(weight);
      sum += weight;
    }
    if (attrs.exclude_outside || attrs.antialias) {
      for (std::size_t k = begin; k < taps.weight.size(); ++k) taps.weight[k] /= sum;
    }
  }
  return taps;
}

/// y[o, j, i] = sum over taps of w * x[o, tap(j), i].
template <class T>
void resample(const T* x, T* y, std::int64_t outer, std::int64_t in, std::int64_t out, std::int64_t inner,
              const Taps& taps, int threads) {
  std::vector<T> weights(taps.weight.begin(), taps.weight.end());
#pragma omp parallel for num_threads(threads) schedule(static) if (outer * out * inner * taps.count > kParallelWork)
  for (std::int64_t oj = 0; oj < outer * out; ++oj) {
    const std::int64_t o = oj / out, j = oj % out;
    T* to = y + oj * inner;
    for (std::int64_t k = 0; k < taps.count; ++k) {
      const auto at = static_cast<std::size_t>(j * taps.count + k);
      const T w = weights[at];
      const T* from = x + (o * in + taps.index[at]) * inner;
      if (k == 0) {
#pragma omp simd
        for (std::int64_t i = 0; i < inner; ++i) to[i] = w * from[i];
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < inner; ++i) to[i] += w * from[i];
      }
    }
  }
}

template <class T>
void interpolate(const std::vector<Axis>& axes, const std::vector<Taps>& taps, const T* x, T* y, float extrapolation,
                 int threads) {
  Dims dims;
  for (const Axis& axis : axes) dims.push_back(axis.in);
  std::vector<T> current(x, x + count_of(dims)), next;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    // An axis that maps each position to itself needs no pass.
    if (axes[d].in == axes[d].out) {
      bool same = true;
      for (std::int64_t o = 0; same && o < axes[d].out; ++o) {
        for (std::int64_t k = 0; k < taps[d].count; ++k) {
          const auto at = static_cast<std::size_t>(o * taps[d].count + k);
          same = same && (taps[d].weight[at] == 0 || (taps[d].weight[at] == 1 && taps[d].index[at] == o));
        }
      }
      if (same) continue;
    }
    const std::int64_t outer = count_of(dims, 0, d), inner = count_of(dims, d + 1, dims.size());
    next.resize(static_cast<std::size_t>(outer * axes[d].out * inner));
    resample(current.data(), next.data(), outer, axes[d].in, axes[d].out, inner, taps[d], threads);
    std::swap(current, next);
    dims[d] = axes[d].out;
  }
  std::copy(current.begin(), current.begin() + count_of(dims), y);
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (taps[d].outside.empty()) continue;
    const std::int64_t inner = count_of(dims, d + 1, dims.size());
    for (std::int64_t row = 0; row < count_of(dims, 0, d + 1); ++row) {
      if (taps[d].outside[static_cast<std::size_t>(row % dims[d])]) {
        std::fill_n(y + row * inner, inner, static_cast<T>(extrapolation));
      }
    }
  }
}

template <class T>
void gather_nearest(const std::vector<Axis>& axes, const std::vector<Taps>& taps, const T* x, T* y, T extrapolation,
                    int threads) {
  if (axes.empty()) {
    *y = *x;
    return;
  }
  const std::size_t last = axes.size() - 1;
  Dims in, out;
  for (const Axis& axis : axes) in.push_back(axis.in), out.push_back(axis.out);
  const Dims strides = strides_of(in);
  const std::int64_t rows = count_of(out, 0, last), width = out[last];
  const std::int64_t* columns = taps[last].index.data();
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * width > kParallelWork)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row, base = 0;
    bool outside = false;
    for (std::size_t d = last; d-- > 0; rest /= out[d]) {
      const auto at = static_cast<std::size_t>(rest % out[d]);
      base += taps[d].index[at] * strides[d];
      outside = outside || (!taps[d].outside.empty() && taps[d].outside[at]);
    }
    T* to = y + row * width;
    const T* from = x + base;
    for (std::int64_t i = 0; i < width; ++i) to[i] = from[columns[i]];
    if (taps[last].outside.empty()) continue;
    for (std::int64_t i = 0; i < width; ++i) {
      if (outside || taps[last].outside[static_cast<std::size_t>(i)]) to[i] = extrapolation;
    }
  }
}

Result<std::vector<double>> floats_of(std::string_view node, const Tensor& tensor) {
  std::vector<double> out;
  if (!is_real(tensor.dtype())) return kernel_failed(node, "roi or scales are not floating point");
  const RealIn<double> in(tensor);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) out.push_back(in[i]);
  return out;
}

Result<std::vector<Axis>> axes_of(const ResizeAttrs& attrs, KernelArgs& args) {
  const Tensor& x = args.input(0);
  const Tensor& y = args.output(0);
  const std::size_t rank = x.shape().size();
  if (y.shape().size() != rank) return kernel_failed(attrs.node, "input and output differ in rank");
  std::vector<Axis> axes(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    axes[d].in = x.shape()[d];
    axes[d].out = y.shape()[d];
    axes[d].scale = axes[d].in == 0 ? 1.0 : static_cast<double>(axes[d].out) / static_cast<double>(axes[d].in);
  }
  std::vector<std::size_t> named;
  for (std::size_t i = 0; i < (attrs.axes.empty() ? rank : attrs.axes.size()); ++i) {
    std::int64_t at = attrs.axes.empty() ? static_cast<std::int64_t>(i) : attrs.axes[i];
    if (at < 0) at += static_cast<std::int64_t>(rank);
    if (at < 0 || at >= static_cast<std::int64_t>(rank)) return kernel_failed(attrs.node, "axes is out of range");
    named.push_back(static_cast<std::size_t>(at));
  }
  const auto present = [&](const std::optional<std::size_t>& i) {
    return i && args.has_input(*i) && args.input(*i).elements() > 0;
  };
  std::vector<double> scales(attrs.scales.begin(), attrs.scales.end());
  if (present(attrs.scales_input)) {
    MST_TRY(scales, floats_of(attrs.node, args.input(*attrs.scales_input)));
  }
  if (!scales.empty()) {
    if (scales.size() != named.size()) return kernel_failed(attrs.node, "scales does not have one entry an axis");
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (!(scales[i] > 0)) return kernel_failed(attrs.node, "a scale is not positive");
      axes[named[i]].scale = scales[i];
    }
  } else if (attrs.aspect != "stretch" && present(attrs.sizes_input)) {
    const Tensor& sizes = args.input(*attrs.sizes_input);
    if (sizes.dtype() != DType::i64 || sizes.elements() != static_cast<std::int64_t>(named.size())) {
      return kernel_failed(attrs.node, "sizes does not have one entry an axis");
    }
    double common = 0;
    for (std::size_t i = 0; i < named.size(); ++i) {
      const double scale = static_cast<double>(sizes.as<std::int64_t>()[i]) / static_cast<double>(axes[named[i]].in);
      const bool smaller = attrs.aspect == "not_larger" ? scale < common : scale > common;
      if (i == 0 || smaller) common = scale;
    }
    for (const std::size_t d : named) axes[d].scale = common;
  }
  if (attrs.coordinates == "tf_crop_and_resize") {
    if (!present(attrs.roi_input)) return kernel_failed(attrs.node, "tf_crop_and_resize needs roi");
    MST_TRY(const std::vector<double> roi, floats_of(attrs.node, args.input(*attrs.roi_input)));
    if (roi.size() != 2 * named.size()) return kernel_failed(attrs.node, "roi does not have two entries an axis");
    for (std::size_t i = 0; i < named.size(); ++i) {
      axes[named[i]].roi_begin = roi[i];
      axes[named[i]].roi_end = roi[named.size() + i];
    }
  }
  for (const Axis& axis : axes) {
    if (axis.in == 0 && axis.out != 0) return kernel_failed(attrs.node, "nothing to resize");
  }
  return axes;
}

Result<void> run_resize(const ResizeAttrs& attrs, KernelArgs& args) {
  const Tensor& x = args.input(0);
  Tensor& y = args.output(0);
  MST_TRY(const std::vector<Axis> axes, axes_of(attrs, args));
  if (y.elements() == 0) return {};
  std::vector<Taps> taps;
  for (const Axis& axis : axes) {
    const bool identity = axis.in == axis.out && axis.scale == 1 && attrs.coordinates != "tf_crop_and_resize";
    if (identity) {
      Taps same;
      for (std::int64_t i = 0; i < axis.in; ++i) {
        same.index.push_back(i);
        same.weight.push_back(1);
      }
      taps.push_back(std::move(same));
    } else {
      taps.push_back(taps_of(attrs, axis));
    }
  }
  if (attrs.mode != Mode::nearest || (is_real(x.dtype()) && attrs.coordinates == "tf_crop_and_resize")) {
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(y);
      if (attrs.mode == Mode::nearest) {
        gather_nearest<T>(axes, taps, in.data(), out.data(), static_cast<T>(attrs.extrapolation), attrs.threads);
      } else {
        interpolate<T>(axes, taps, in.data(), out.data(), attrs.extrapolation, attrs.threads);
      }
    });
    return {};
  }
  switch (dtype_bits(x.dtype())) {
    case 8:
      gather_nearest<std::uint8_t>(axes, taps, x.as<std::uint8_t>().data(), y.as_mutable<std::uint8_t>().data(), 0, attrs.threads);
      return {};
    case 16:
      gather_nearest<std::uint16_t>(axes, taps, x.as<std::uint16_t>().data(), y.as_mutable<std::uint16_t>().data(), 0, attrs.threads);
      return {};
    case 32:
      gather_nearest<std::uint32_t>(axes, taps, x.as<std::uint32_t>().data(), y.as_mutable<std::uint32_t>().data(), 0, attrs.threads);
      return {};
    default:
      gather_nearest<std::uint64_t>(axes, taps, x.as<std::uint64_t>().data(), y.as_mutable<std::uint64_t>().data(), 0, attrs.threads);
      return {};
  }
}

Result<std::unique_ptr<Kernel>> make_resize(const KernelSpec& spec) {
  const Attrs& a = spec.attrs();
  const bool upsample = spec.type() == "Upsample";
  ResizeAttrs attrs;
  attrs.node = std::string(spec.name());
  attrs.threads = std::max(1, spec.threads);
  const std::string mode = a.get_string("mode", "nearest");
  if (mode == "nearest") {
    attrs.mode = Mode::nearest;
  } else if (mode == "linear" || mode == "bilinear") {
    attrs.mode = Mode::linear;
  } else if (mode == "cubic") {
    attrs.mode = Mode::cubic;
  } else {
    return unsupported_node(spec, fmt::format("mode \"{}\"", mode));
  }
  if (upsample || spec.opset() < 11) {
    // These forms fix the coordinates: output position over scale.
    attrs.coordinates = "asymmetric";
    attrs.nearest = upsample ? "floor" : "simple";
    attrs.scales = a.get_floats("scales");
    if (attrs.scales.empty()) attrs.scales_input = 1;
    attrs.aspect = "stretch";
  } else {
    attrs.coordinates = a.get_string("coordinate_transformation_mode", "half_pixel");
    attrs.nearest = a.get_string("nearest_mode", "round_prefer_floor");
    attrs.aspect = a.get_string("keep_aspect_ratio_policy", "stretch");
    attrs.cubic_a = static_cast<double>(a.get_float("cubic_coeff_a", -0.75f));
    attrs.exclude_outside = a.get_int("exclude_outside", 0) != 0;
    attrs.antialias = a.get_int("antialias", 0) != 0;
    attrs.extrapolation = a.get_float("extrapolation_value", 0.0f);
    attrs.axes = a.get_ints("axes");
    attrs.roi_input = 1;
    attrs.scales_input = 2;
    attrs.sizes_input = 3;
  }
  const auto known = [](const std::string& value, std::initializer_list<std::string_view> all) {
    return std::find(all.begin(), all.end(), value) != all.end();
  };
  if (!known(attrs.coordinates, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                 "asymmetric", "tf_crop_and_resize"})) {
    return unsupported_node(spec, fmt::format("coordinate_transformation_mode \"{}\"", attrs.coordinates));
  }
  if (!known(attrs.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"})) {
    return unsupported_node(spec, fmt::format("nearest_mode \"{}\"", attrs.nearest));
  }
  if (!known(attrs.aspect, {"stretch", "not_larger", "not_smaller"})) {
    return unsupported_node(spec, fmt::format("keep_aspect_ratio_policy \"{}\"", attrs.aspect));
  }
  const DType type = spec.input_desc(0).dtype;
  const std::size_t bits = dtype_bits(type);
  const bool bytes_do = attrs.mode == Mode::nearest && attrs.coordinates != "tf_crop_and_resize" &&
                        (bits == 8 || bits == 16 || bits == 32 || bits == 64);
  if (!is_real(type) && !bytes_do) {
    return unsupported_node(spec, fmt::format("mode \"{}\" on element type {}", mode, dtype_name(type)));
  }
  return make_function_kernel([attrs = std::move(attrs)](KernelArgs& args) { return run_resize(attrs, args); });
}

constexpr KernelEntry kEntries[] = {{"Resize", make_resize}, {"Upsample", make_resize}};

}  // namespace

std::span<const KernelEntry> kernels_resize() { return kEntries; }

}  // namespace millstream
