// SPDX-License-Identifier: Apache-2.0
// Sliding windows of convolutions and pools: attributes, automatic padding, direct loops.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "millstream/kernels/function_kernel.h"

namespace millstream {

/// A window over `kernel.size()` spatial dimensions, padding resolved.
struct Window {
  Dims kernel;
  Dims strides;
  Dims dilations;
  Dims begin;
  Dims end;
  std::size_t rank() const { return kernel.size(); }
  std::int64_t extent(std::size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

/// The attributes kernel_shape, strides, dilations, pads, auto_pad, as written.
struct WindowAttrs {
  Dims kernel;
  Dims strides;
  Dims dilations;
  Dims pads;
  std::string auto_pad;

  static WindowAttrs read(const Attrs& attrs);
  /// Fills defaults and resolves auto_pad for input extents `spatial`; `kernel` stands in when the
  /// attribute is absent. Error: kernel, when sizes do not fit together.
  Result<Window> resolve(std::string_view node, std::span<const std::int64_t> spatial,
                         Dims kernel_otherwise) const;
};

/// Up to three spatial dimensions as exactly three, the leading ones trivial.
struct Window3 {
  std::array<std::int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      dilation{1, 1, 1}, begin{0, 0, 0};

  Window3(const Window& w, std::span<const std::int64_t> in_dims, std::span<const std::int64_t> out_dims) {
    const std::size_t shift = 3 - w.rank();
    for (std::size_t d = 0; d < w.rank(); ++d) {
      in[shift + d] = in_dims[d];
      out[shift + d] = out_dims[d];
      kernel[shift + d] = w.kernel[d];
      stride[shift + d] = w.strides[d];
      dilation[shift + d] = w.dilations[d];
      begin[shift + d] = w.begin[d];
    }
  }
  std::int64_t in_size() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_size() const { return out[0] * out[1] * out[2]; }
  std::int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
};

/// Calls `body(sample, weight)`, places in [in...] and [kernel...], for each sample of the window at output o that lies inside.
template <class Body>
void for_window(const Window3& s, std::int64_t o0, std::int64_t o1, std::int64_t o2, Body body) {
  for (std::int64_t k0 = 0; k0 < s.kernel[0]; ++k0) {
    const std::int64_t i0 = o0 * s.stride[0] - s.begin[0] + k0 * s.dilation[0];
    if (i0 < 0 || i0 >= s.in[0]) continue;
    for (std::int64_t k1 = 0; k1 < s.kernel[1]; ++k1) {
      const std::int64_t i1 = o1 * s.stride[1] - s.begin[1] + k1 * s.dilation[1];
      if (i1 < 0 || i1 >= s.in[1]) continue;
      for (std::int64_t k2 = 0; k2 < s.kernel[2]; ++k2) {
        const std::int64_t i2 = o2 * s.stride[2] - s.begin[2] + k2 * s.dilation[2];
        if (i2 < 0 || i2 >= s.in[2]) continue;
        body((i0 * s.in[1] + i1) * s.in[2] + i2, (k0 * s.kernel[1] + k1) * s.kernel[2] + k2);
      }
    }
  }
}

/// Direct convolution, for element types and windows that the library does not take. x [N, C, in...],
/// w [M, C/groups, kernel...], bias [M] or null, y [N, M, out...]. O(N M C/groups |out| |kernel|).
template <class T, class Acc>
void direct_convolution(const T* x, const T* w, const T* bias, T* y, std::int64_t batch,
                        std::int64_t channels, std::int64_t maps, std::int64_t groups, const Window3& s,
                        int threads) {
  const std::int64_t per_group = channels / groups, maps_per_group = maps / groups;
#pragma omp parallel for num_threads(threads) schedule(static) if (batch * maps * s.out_size() * s.kernel_size() > kParallelWork)
  for (std::int64_t nm = 0; nm < batch * maps; ++nm) {
    const std::int64_t n = nm / maps, m = nm % maps, g = m / maps_per_group;
    const T* xg = x + (n * channels + g * per_group) * s.in_size();
    const T* wm = w + m * per_group * s.kernel_size();
    T* ym = y + nm * s.out_size();
    for (std::int64_t o0 = 0; o0 < s.out[0]; ++o0) {
      for (std::int64_t o1 = 0; o1 < s.out[1]; ++o1) {
        for (std::int64_t o2 = 0; o2 < s.out[2]; ++o2) {
          Acc sum = bias != nullptr ? static_cast<Acc>(bias[m]) : Acc{};
          for (std::int64_t c = 0; c < per_group; ++c) {
            const T* xc = xg + c * s.in_size();
            const T* wc = wm + c * s.kernel_size();
            for_window(s, o0, o1, o2, [&](std::int64_t sample, std::int64_t weight) {
              sum += static_cast<Acc>(xc[sample]) * static_cast<Acc>(wc[weight]);
            });
          }
          ym[(o0 * s.out[1] + o1) * s.out[2] + o2] = static_cast<T>(sum);
        }
      }
    }
  }
}

/// Direct transposed convolution: x [N, C, in...], w [C, M/groups, kernel...], y [N, M, out...]; the
/// window maps y (as its input) to x (as its output).
template <class T, class Acc>
void direct_deconvolution(const T* x, const T* w, const T* bias, T* y, std::int64_t batch,
                          std::int64_t channels, std::int64_t maps, std::int64_t groups,
                          const Window3& s, int threads) {
  const std::int64_t per_group = channels / groups, maps_per_group = maps / groups;
#pragma omp parallel for num_threads(threads) schedule(static) if (batch * maps * s.out_size() * s.kernel_size() > kParallelWork)
  for (std::int64_t nm = 0; nm < batch * maps; ++nm) {
    const std::int64_t n = nm / maps, m = nm % maps, g = m / maps_per_group;
    std::vector<Acc> sum(static_cast<std::size_t>(s.in_size()),
                         bias != nullptr ? static_cast<Acc>(bias[m]) : Acc{});
    for (std::int64_t c = g * per_group; c < (g + 1) * per_group; ++c) {
      const T* xc = x + (n * channels + c) * s.out_size();
      const T* wc = w + (c * maps_per_group + m % maps_per_group) * s.kernel_size();
      for (std::int64_t o0 = 0; o0 < s.out[0]; ++o0) {
        for (std::int64_t o1 = 0; o1 < s.out[1]; ++o1) {
          for (std::int64_t o2 = 0; o2 < s.out[2]; ++o2) {
            const Acc value = static_cast<Acc>(xc[(o0 * s.out[1] + o1) * s.out[2] + o2]);
            for_window(s, o0, o1, o2, [&](std::int64_t sample, std::int64_t weight) {
              sum[static_cast<std::size_t>(sample)] += value * static_cast<Acc>(wc[weight]);
            });
          }
        }
      }
    }
    T* ym = y + nm * s.in_size();
    for (std::int64_t i = 0; i < s.in_size(); ++i) ym[i] = static_cast<T>(sum[static_cast<std::size_t>(i)]);
  }
}

}  // namespace millstream
