// SPDX-License-Identifier: Apache-2.0
// DFT, STFT, the window generators and MelWeightMatrix.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <optional>

#include "millstream/kernels/elements.h"
#include "millstream/kernels/function_kernel.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using Complex = std::complex<double>;

/// Discrete Fourier transforms of one length. O(n log n) for powers of two (Cooley and Tukey's
/// decimation in time), O(n^2) otherwise.
class Transform {
 public:
  Transform(std::int64_t n, bool inverse) : n_(n), inverse_(inverse), roots_(static_cast<std::size_t>(n)) {
    for (std::int64_t k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      roots_[static_cast<std::size_t>(k)] = {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
    }
  }

  /// In place; an inverse transform divides by n.
  void run(std::vector<Complex>& x) const {
    if ((n_ & (n_ - 1)) == 0) {
      halves(x);
    } else {
      sums(x);
    }
    if (inverse_) {
      for (Complex& v : x) v /= static_cast<double>(n_);
    }
  }

 private:
  void sums(std::vector<Complex>& x) const {
    std::vector<Complex> out(x.size());
    for (std::int64_t k = 0; k < n_; ++k) {
      Complex sum = 0;
      for (std::int64_t i = 0; i < n_; ++i) sum += x[static_cast<std::size_t>(i)] * roots_[static_cast<std::size_t>(i * k % n_)];
      out[static_cast<std::size_t>(k)] = sum;
    }
    x = std::move(out);
  }

  void halves(std::vector<Complex>& x) const {
    const auto n = static_cast<std::size_t>(n_);
    for (std::size_t i = 1, j = 0; i < n; ++i) {
      std::size_t bit = n >> 1;
      for (; (j & bit) != 0; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (std::size_t length = 2; length <= n; length *= 2) {
      for (std::size_t base = 0; base < n; base += length) {
        for (std::size_t k = 0; k < length / 2; ++k) {
          const Complex odd = x[base + k + length / 2] * roots_[k * (n / length)];
          const Complex even = x[base + k];
          x[base + k] = even + odd;
          x[base + k + length / 2] = even - odd;
        }
      }
    }
  }

  std::int64_t n_;
  bool inverse_;
  std::vector<Complex> roots_;
};

Result<std::unique_ptr<Kernel>> make_dft(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  const bool inverse = spec.attrs().get_int("inverse", 0) != 0, one_sided = spec.attrs().get_int("onesided", 0) != 0;
  if (inverse && one_sided) return unsupported_node(spec, "inverse of a one-sided spectrum");
  const bool axis_input = spec.opset() >= 20;
  return make_function_kernel([node = std::string(spec.name()), inverse, axis_input,
                               axis = spec.attrs().get_int("axis", 1)](KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &y = args.output(0);
    const auto rank = static_cast<std::int64_t>(x.shape().size());
    std::int64_t at = axis_input ? -2 : axis;
    if (axis_input && args.has_input(2)) {
      MST_TRY(const double given, read_scalar(node, args.input(2)));
      at = static_cast<std::int64_t>(given);
    }
    if (at < 0) at += rank;
    if (at < 0 || at >= rank - 1 || y.shape().size() != x.shape().size()) return kernel_failed(node, "axis is out of range");
    const auto split = static_cast<std::size_t>(at);
    std::int64_t length = x.shape()[split];
    if (args.has_input(1)) {
      MST_TRY(const double given, read_scalar(node, args.input(1)));
      length = static_cast<std::int64_t>(given);
    }
    const std::int64_t parts = x.shape().back(), bins = y.shape()[split];
    if (length < 1 || bins > length || (parts != 1 && parts != 2) || y.shape().back() != 2) {
      return kernel_failed(node, "dft_length or the number of components is wrong");
    }
    const std::int64_t outer = count_of(x.shape(), 0, split), inner = count_of(x.shape(), split + 1, x.shape().size() - 1);
    if (y.elements() != outer * bins * inner * 2) return kernel_failed(node, "output shape does not follow from the inputs");
    const std::int64_t extent = x.shape()[split];
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      const Transform transform(length, inverse);
      std::vector<Complex> line(static_cast<std::size_t>(length));
      for (std::int64_t row = 0; row < outer * inner; ++row) {
        const std::int64_t o = row / inner, i = row % inner;
        // Shorter signals continue with zeros, longer ones are cut.
        for (std::int64_t k = 0; k < length; ++k) {
          const std::int64_t from = ((o * extent + k) * inner + i) * parts;
          line[static_cast<std::size_t>(k)] =
              k >= extent ? Complex(0) : Complex(in[from], parts == 2 ? static_cast<double>(in[from + 1]) : 0.0);
        }
        transform.run(line);
        for (std::int64_t k = 0; k < bins; ++k) {
          const std::int64_t to = ((o * bins + k) * inner + i) * 2;
          out[to] = static_cast<T>(line[static_cast<std::size_t>(k)].real());
          out[to + 1] = static_cast<T>(line[static_cast<std::size_t>(k)].imag());
        }
      }
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_stft(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  return make_function_kernel([node = std::string(spec.name())](KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &y = args.output(0);
    const std::size_t rank = x.shape().size();
    if (rank != 2 && rank != 3) return kernel_failed(node, "signal needs rank 3");
    const std::int64_t batch = x.shape()[0], extent = x.shape()[1], parts = rank == 3 ? x.shape()[2] : 1;
    MST_TRY(const double step_value, read_scalar(node, args.input(1)));
    std::int64_t length = args.has_input(2) ? args.input(2).elements() : extent;
    if (args.has_input(3)) {
      MST_TRY(const double given, read_scalar(node, args.input(3)));
      length = static_cast<std::int64_t>(given);
    }
    const auto step = static_cast<std::int64_t>(step_value);
    if (step < 1 || length < 1 || (parts != 1 && parts != 2) ||
        (args.has_input(2) && (args.input(2).elements() != length || !is_real(args.input(2).dtype())))) {
      return kernel_failed(node, "frame_step, frame_length or window does not fit the signal");
    }
    const std::int64_t frames = extent < length ? 0 : (extent - length) / step + 1;
    if (y.shape().size() != 4 || y.shape()[0] != batch || y.shape()[1] != frames || y.shape()[2] > length ||
        y.shape()[3] != 2) {
      return kernel_failed(node, "output shape does not follow from the inputs");
    }
    const std::int64_t bins = y.shape()[2];
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      std::optional<RealIn<T>> window;
      if (args.has_input(2)) window.emplace(args.input(2));
      RealOut<T> out(args.output(0));
      const Transform transform(length, false);
      std::vector<Complex> line(static_cast<std::size_t>(length));
      for (std::int64_t bf = 0; bf < batch * frames; ++bf) {
        const std::int64_t start = bf / frames * extent + bf % frames * step;
        for (std::int64_t k = 0; k < length; ++k) {
          const std::int64_t from = (start + k) * parts;
          const double weight = window ? static_cast<double>((*window)[k]) : 1.0;
          line[static_cast<std::size_t>(k)] =
              weight * Complex(in[from], parts == 2 ? static_cast<double>(in[from + 1]) : 0.0);
        }
        transform.run(line);
        for (std::int64_t k = 0; k < bins; ++k) {
          out[(bf * bins + k) * 2] = static_cast<T>(line[static_cast<std::size_t>(k)].real());
          out[(bf * bins + k) * 2 + 1] = static_cast<T>(line[static_cast<std::size_t>(k)].imag());
        }
      }
    });
    return {};
  });
}

/// The output as the run gave it when it fits, else newly made (its shape is data).
Tensor& sized(KernelArgs& args, DType type, const Dims& shape) {
  Tensor& y = args.output(0);
  if (y.dtype() != type || dims_of(y) != shape) y = Tensor(type, shape);
  return y;
}

/// A sum of cosines: a0 - a1 cos(t) + a2 cos(2 t).
struct CosineWindow {
  double a0, a1, a2;
};

Result<std::unique_ptr<Kernel>> make_window(const KernelSpec& spec, CosineWindow w) {
  const auto type = static_cast<DType>(spec.attrs().get_int("output_datatype", static_cast<int>(DType::f32)));
  if (!is_real(type)) return unsupported_node(spec, "output_datatype is not floating point");
  return make_function_kernel([node = std::string(spec.name()), type, w,
                               periodic = spec.attrs().get_int("periodic", 1) != 0](KernelArgs& args) -> Result<void> {
    MST_TRY(const double given, read_scalar(node, args.input(0)));
    if (!(given >= 0 && given <= 1e9)) return kernel_failed(node, "window size is out of range");
    const auto size = static_cast<std::int64_t>(given);
    Tensor& y = sized(args, type, {size});
    const double period = static_cast<double>(periodic ? size : size - 1);
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      RealOut<T> out(y);
      for (std::int64_t i = 0; i < size; ++i) {
        const double t = 2 * std::numbers::pi * static_cast<double>(i) / period;
        out[i] = period == 0 ? T{1} : static_cast<T>(w.a0 - w.a1 * std::cos(t) + w.a2 * std::cos(2 * t));
      }
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_hann(const KernelSpec& spec) { return make_window(spec, {0.5, 0.5, 0}); }
Result<std::unique_ptr<Kernel>> make_hamming(const KernelSpec& spec) {
  return make_window(spec, {25.0 / 46.0, 21.0 / 46.0, 0});
}
Result<std::unique_ptr<Kernel>> make_blackman(const KernelSpec& spec) { return make_window(spec, {0.42, 0.5, 0.08}); }

Result<std::unique_ptr<Kernel>> make_mel(const KernelSpec& spec) {
  const auto type = static_cast<DType>(spec.attrs().get_int("output_datatype", static_cast<int>(DType::f32)));
  if (!is_real(type)) return unsupported_node(spec, "output_datatype is not floating point");
  return make_function_kernel([node = std::string(spec.name()), type](KernelArgs& args) -> Result<void> {
    std::array<double, 5> v{};
    for (std::size_t i = 0; i < 5; ++i) {
      MST_TRY(v[i], read_scalar(node, args.input(i)));
    }
    const auto filters = static_cast<std::int64_t>(v[0]), length = static_cast<std::int64_t>(v[1]);
    if (filters < 1 || filters > 1'000'000 || length < 1 || length > 100'000'000 || v[2] < 1 || !(v[3] >= 0) || !(v[4] >= v[3])) {
      return kernel_failed(node, "a parameter is out of range");
    }
    const std::int64_t bins = length / 2 + 1;
    const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    const double low = mel(v[3]), step = (mel(v[4]) - low) / static_cast<double>(filters + 2);
    std::vector<std::int64_t> edges;
    for (std::int64_t i = 0; i < filters + 2; ++i) {
      const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
      edges.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / v[2])));
      if (edges.back() < 0 || edges.back() > bins) return kernel_failed(node, "a filter lies beyond the spectrum");
    }
    Tensor& y = sized(args, type, {bins, filters});
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      RealOut<T> out(y);
      std::fill_n(out.data(), bins * filters, T{});
      for (std::int64_t f = 0; f < filters; ++f) {
        const auto at = static_cast<std::size_t>(f);
        const std::int64_t left = edges[at], centre = edges[at + 1], right = edges[at + 2];
        const auto set = [&](std::int64_t bin, double value) {
          if (bin < bins) out[bin * filters + f] = static_cast<T>(value);
        };
        if (left == centre) set(centre, 1);
        for (std::int64_t b = left; b <= centre && left < centre; ++b) {
          set(b, static_cast<double>(b - left) / static_cast<double>(centre - left));
        }
        for (std::int64_t b = centre; b < right; ++b) {
          set(b, static_cast<double>(right - b) / static_cast<double>(right - centre));
        }
      }
    });
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"BlackmanWindow", make_blackman}, {"DFT", make_dft},           {"HammingWindow", make_hamming},
    {"HannWindow", make_hann},         {"MelWeightMatrix", make_mel}, {"STFT", make_stft},
};

}  // namespace

std::span<const KernelEntry> kernels_signal() { return kEntries; }

}  // namespace millstream
