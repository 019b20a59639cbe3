// SPDX-License-Identifier: Apache-2.0
// Normalizations. Moments are taken in two passes, in double.
#include <algorithm>
#include <cmath>

#include "millstream/kernels/function_kernel.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;  ///< of the population
};

template <class T>
Moments moments_of(const T* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - mean;
    squares += d * d;
  }
  return {mean, squares / static_cast<double>(n)};
}

template <class T>
void scale_and_shift(const T* x, T* y, std::int64_t n, T scale, T shift) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

Error refuse_type(const KernelSpec& spec) {
  return unsupported_node(spec, fmt::format("element type {}", dtype_name(spec.input_desc(0).dtype)));
}

bool real_input(const KernelSpec& spec) { return is_real(spec.input_desc(0).dtype); }

/// Moments of every channel over batch and space.
template <class T>
std::vector<Moments> channel_moments(const T* x, std::int64_t batch, std::int64_t channels, std::int64_t size) {
  std::vector<Moments> out(static_cast<std::size_t>(channels));
  const double count = static_cast<double>(batch * size);
  for (std::int64_t c = 0; c < channels; ++c) {
    Moments& m = out[static_cast<std::size_t>(c)];
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t i = 0; i < size; ++i) m.mean += static_cast<double>(x[(n * channels + c) * size + i]);
    }
    m.mean /= count;
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t i = 0; i < size; ++i) {
        const double d = static_cast<double>(x[(n * channels + c) * size + i]) - m.mean;
        m.variance += d * d;
      }
    }
    m.variance /= count;
  }
  return out;
}

template <class T>
void write_running(Tensor& out, const Tensor& before, const std::vector<Moments>& now, bool variance, float momentum) {
  const RealIn<T> old(before);
  RealOut<T> to(out);
  for (std::size_t c = 0; c < now.size(); ++c) {
    const double value = variance ? now[c].variance : now[c].mean;
    const auto i = static_cast<std::int64_t>(c);
    to[i] = static_cast<T>(static_cast<double>(old[i]) * momentum + value * (1.0 - static_cast<double>(momentum)));
  }
}

Result<std::unique_ptr<Kernel>> make_batch_norm(const KernelSpec& spec) {
  if (!real_input(spec)) return refuse_type(spec);
  if (spec.opset() < 9 && spec.attrs().get_int("spatial", 1) != 1) {
    return unsupported_node(spec, "spatial=0");
  }
  const bool training = spec.attrs().get_int("training_mode", 0) != 0;
  return make_function_kernel([node = std::string(spec.name()), training,
                      epsilon = spec.attrs().get_float("epsilon", 1e-5f),
                      momentum = spec.attrs().get_float("momentum", 0.9f),
                      threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    const std::size_t rank = x.shape().size();
    const std::int64_t batch = rank == 0 ? 1 : x.shape()[0], channels = rank < 2 ? 1 : x.shape()[1];
    const std::int64_t size = rank < 2 ? 1 : count_of(x.shape(), 2, rank);
    for (std::size_t i = 1; i < 5; ++i) {
      if (args.input(i).elements() != channels || !is_real(args.input(i).dtype())) {
        return kernel_failed(node, fmt::format("input {} must hold one number for each of {} channels", i, channels));
      }
    }
    if (x.elements() != args.output(0).elements()) return kernel_failed(node, "output and input differ in shape");
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x), scale(args.input(1)), bias(args.input(2)), mean(args.input(3)), variance(args.input(4));
      std::vector<Moments> used(static_cast<std::size_t>(channels));
      if (training) {
        used = channel_moments(in.data(), batch, channels, size);
      } else {
        for (std::int64_t c = 0; c < channels; ++c) {
          used[static_cast<std::size_t>(c)] = {static_cast<double>(mean[c]), static_cast<double>(variance[c])};
        }
      }
      RealOut<T> out(args.output(0));
      const T* from = in.data();
      T* to = out.data();
#pragma omp parallel for num_threads(threads) schedule(static) if (batch * channels * size > kParallelWork)
      for (std::int64_t plane = 0; plane < batch * channels; ++plane) {
        const std::int64_t c = plane % channels;
        const Moments& m = used[static_cast<std::size_t>(c)];
        const double factor = static_cast<double>(scale[c]) / std::sqrt(m.variance + static_cast<double>(epsilon));
        scale_and_shift(from + plane * size, to + plane * size, size, static_cast<T>(factor),
                        static_cast<T>(static_cast<double>(bias[c]) - m.mean * factor));
      }
      if (training) {
        for (std::size_t i = 1; i < args.output_count() && i < 3; ++i) {
          if (args.output(i).elements() == channels && is_real(args.output(i).dtype())) {
            write_running<T>(args.output(i), args.input(i + 2), used, i == 2, momentum);
          }
        }
      }
    });
    return {};
  });
}

/// Instance and group normalization: `groups` slices of each sample, per-channel or per-group affine.
template <class T>
void normalize_groups(const T* x, T* y, std::int64_t batch, std::int64_t channels, std::int64_t size,
                      std::int64_t groups, const T* scale, const T* bias, bool affine_by_group, float epsilon,
                      int threads) {
  const std::int64_t per_group = channels / groups;
#pragma omp parallel for num_threads(threads) schedule(static) if (batch * channels * size > kParallelWork)
  for (std::int64_t slice = 0; slice < batch * groups; ++slice) {
    const std::int64_t g = slice % groups;
    const T* from = x + slice * per_group * size;
    T* to = y + slice * per_group * size;
    const Moments m = moments_of(from, per_group * size);
    const double inverse = 1.0 / std::sqrt(m.variance + static_cast<double>(epsilon));
    for (std::int64_t c = 0; c < per_group; ++c) {
      const std::int64_t at = affine_by_group ? g : g * per_group + c;
      const double factor = static_cast<double>(scale[at]) * inverse;
      scale_and_shift(from + c * size, to + c * size, size, static_cast<T>(factor),
                      static_cast<T>(static_cast<double>(bias[at]) - m.mean * factor));
    }
  }
}

Result<std::unique_ptr<Kernel>> make_group_like(const KernelSpec& spec, bool instance) {
  if (!real_input(spec)) return refuse_type(spec);
  return make_function_kernel([node = std::string(spec.name()), instance,
                      wanted = spec.attrs().get_int("num_groups", 1), by_group = !instance && spec.opset() < 21,
                      epsilon = spec.attrs().get_float("epsilon", 1e-5f),
                      threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    if (x.shape().size() < 2) return kernel_failed(node, "input has no channels");
    const std::int64_t channels = x.shape()[1], size = count_of(x.shape(), 2, x.shape().size());
    const std::int64_t groups = instance ? channels : wanted;
    if (x.elements() != args.output(0).elements()) return kernel_failed(node, "output and input differ in shape");
    if (x.elements() == 0) return {};
    if (groups < 1 || channels % groups != 0) {
      return kernel_failed(node, fmt::format("{} channels do not divide into {} groups", channels, groups));
    }
    const std::int64_t affine = by_group ? groups : channels;
    if (args.input(1).elements() != affine || args.input(2).elements() != affine ||
        !is_real(args.input(1).dtype()) || !is_real(args.input(2).dtype())) {
      return kernel_failed(node, fmt::format("scale and bias must hold {} numbers", affine));
    }
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x), scale(args.input(1)), bias(args.input(2));
      RealOut<T> out(args.output(0));
      normalize_groups(in.data(), out.data(), x.shape()[0], channels, size, groups, scale.data(), bias.data(),
                       by_group, epsilon, threads);
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_instance_norm(const KernelSpec& spec) { return make_group_like(spec, true); }
Result<std::unique_ptr<Kernel>> make_group_norm(const KernelSpec& spec) { return make_group_like(spec, false); }

/// `tensor` broadcast to `dims`, as T. Error: kernel.
template <class T>
Result<std::vector<T>> expanded(std::string_view node, const Tensor& tensor, std::span<const std::int64_t> dims) {
  const RealIn<T> from(tensor);
  Dims shape = dims_of(tensor);
  while (shape.size() > dims.size() && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() > dims.size()) return kernel_failed(node, "scale or bias has more dimensions than it normalizes");
  shape.insert(shape.begin(), dims.size() - shape.size(), 1);
  const Dims strides = strides_of(shape);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (shape[d] != dims[d] && shape[d] != 1) return kernel_failed(node, "scale or bias does not broadcast");
  }
  std::vector<T> out(static_cast<std::size_t>(count_of(dims)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), at = 0;
    for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
      if (shape[d] != 1) at += rest % dims[d] * strides[d];
    }
    out[i] = from[at];
  }
  return out;
}

/// LayerNormalization and, without the mean, RMSNormalization, over [axis, rank).
Result<std::unique_ptr<Kernel>> make_layer_like(const KernelSpec& spec, bool centred) {
  if (!real_input(spec)) return refuse_type(spec);
  return make_function_kernel([node = std::string(spec.name()), centred, axis = spec.attrs().get_int("axis", -1),
                      epsilon = spec.attrs().get_float("epsilon", 1e-5f),
                      threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    const auto rank = static_cast<std::int64_t>(x.shape().size());
    const std::int64_t from_axis = axis < 0 ? axis + rank : axis;
    if (from_axis < 0 || from_axis >= rank) {
      return kernel_failed(node, fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
    }
    if (x.elements() != args.output(0).elements()) return kernel_failed(node, "output and input differ in shape");
    if (!is_real(args.input(1).dtype()) || (args.has_input(2) && !is_real(args.input(2).dtype()))) {
      return kernel_failed(node, "scale or bias is not floating point");
    }
    const auto split = static_cast<std::size_t>(from_axis);
    const std::int64_t rows = count_of(x.shape(), 0, split), n = count_of(x.shape()) == 0 ? 0 : x.elements() / rows;
    if (n == 0) return {};
    return with_real(x.dtype(), [&](auto zero) -> Result<void> {
      using T = decltype(zero);
      MST_TRY(const std::vector<T> scale, expanded<T>(node, args.input(1), x.shape().subspan(split)));
      std::vector<T> bias(static_cast<std::size_t>(n), T{});
      if (args.has_input(2)) {
        MST_TRY(bias, expanded<T>(node, args.input(2), x.shape().subspan(split)));
      }
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      std::vector<Moments> all(static_cast<std::size_t>(rows));
      const T* w = scale.data();
      const T* b = bias.data();
      const T* base = in.data();
      T* target = out.data();
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * n > kParallelWork)
      for (std::int64_t row = 0; row < rows; ++row) {
        const T* from = base + row * n;
        T* to = target + row * n;
        Moments m = moments_of(from, n);
        if (!centred) m = {0, m.variance + m.mean * m.mean};
        const double inverse = 1.0 / std::sqrt(m.variance + static_cast<double>(epsilon));
        const T mean = static_cast<T>(m.mean), by = static_cast<T>(inverse);
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) to[i] = (from[i] - mean) * by * w[i] + b[i];
        all[static_cast<std::size_t>(row)] = {m.mean, inverse};
      }
      for (std::size_t o = 1; centred && o < args.output_count() && o < 3; ++o) {
        Tensor& stat = args.output(o);
        if (!is_real(stat.dtype()) || stat.elements() != rows) continue;
        RealOut<T> to(stat);
        for (std::int64_t row = 0; row < rows; ++row) {
          const Moments& m = all[static_cast<std::size_t>(row)];
          to[row] = static_cast<T>(o == 1 ? m.mean : m.variance);
        }
      }
      return {};
    });
  });
}

Result<std::unique_ptr<Kernel>> make_layer_norm(const KernelSpec& spec) { return make_layer_like(spec, true); }
Result<std::unique_ptr<Kernel>> make_rms_norm(const KernelSpec& spec) { return make_layer_like(spec, false); }

/// base^-beta.
template <class T>
T inverse_power(T base, T beta, bool three_quarters) {
  if (three_quarters) {
    const T root = std::sqrt(base);
    return T{1} / (root * std::sqrt(root));
  }
  return std::pow(base, -beta);
}

template <class T, bool three_quarters>
void local_response(const T* x, T* y, std::int64_t batch, std::int64_t channels, std::int64_t size,
                    std::int64_t window, T alpha, T beta, T bias, int threads) {
  const std::int64_t low = (window - 1) / 2, high = window - 1 - low;
  const T factor = alpha / static_cast<T>(window);
#pragma omp parallel for num_threads(threads) schedule(static) if (batch * channels * size > kParallelWork)
  for (std::int64_t plane = 0; plane < batch * channels; ++plane) {
    const std::int64_t c = plane % channels;
    const T* from = x + plane * size;
    T* to = y + plane * size;
    std::fill(to, to + size, T{});
    for (std::int64_t k = std::max<std::int64_t>(0, c - low); k <= std::min(channels - 1, c + high); ++k) {
      const T* other = from + (k - c) * size;
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) to[i] += other[i] * other[i];
    }
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
      to[i] = from[i] * inverse_power<T>(bias + factor * to[i], beta, three_quarters);
    }
  }
}

Result<std::unique_ptr<Kernel>> make_lrn(const KernelSpec& spec) {
  if (!real_input(spec)) return refuse_type(spec);
  const std::int64_t window = spec.attrs().get_int("size", 0);
  if (window < 1) return unsupported_node(spec, "attribute size must be at least 1");
  return make_function_kernel([node = std::string(spec.name()), window, alpha = spec.attrs().get_float("alpha", 1e-4f),
                      beta = spec.attrs().get_float("beta", 0.75f), bias = spec.attrs().get_float("bias", 1.0f),
                      threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    if (x.shape().size() < 2) return kernel_failed(node, "input has no channels");
    if (x.elements() != args.output(0).elements()) return kernel_failed(node, "output and input differ in shape");
    const std::int64_t size = count_of(x.shape(), 2, x.shape().size());
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      const auto run = beta == 0.75f ? local_response<T, true> : local_response<T, false>;
      run(in.data(), out.data(), x.shape()[0], x.shape()[1], size, window, static_cast<T>(alpha),
          static_cast<T>(beta), static_cast<T>(bias), threads);
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_lp_normalization(const KernelSpec& spec) {
  if (!real_input(spec)) return refuse_type(spec);
  const std::int64_t p = spec.attrs().get_int("p", 2);
  if (p != 1 && p != 2) return unsupported_node(spec, "attribute p must be 1 or 2");
  return make_function_kernel([node = std::string(spec.name()), p, axis = spec.attrs().get_int("axis", -1)](
                         KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    const auto rank = static_cast<std::int64_t>(x.shape().size());
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
      return kernel_failed(node, fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
    }
    if (x.elements() != args.output(0).elements()) return kernel_failed(node, "output and input differ in shape");
    if (x.elements() == 0) return {};
    const auto split = static_cast<std::size_t>(at);
    const std::int64_t n = x.shape()[split], inner = count_of(x.shape(), split + 1, x.shape().size());
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      for (std::int64_t row = 0; row < x.elements() / n; ++row) {
        const std::int64_t base = row / inner * n * inner + row % inner;
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double v = static_cast<double>(in[base + i * inner]);
          sum += p == 1 ? std::abs(v) : v * v;
        }
        const double norm = p == 1 ? sum : std::sqrt(sum);
        // A slice of zeros stays zero.
        for (std::int64_t i = 0; i < n; ++i) {
          out[base + i * inner] = norm == 0 ? T{} : static_cast<T>(static_cast<double>(in[base + i * inner]) / norm);
        }
      }
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_mean_variance(const KernelSpec& spec) {
  if (!real_input(spec)) return refuse_type(spec);
  Dims axes = spec.attrs().get_ints("axes");
  if (!spec.attrs().has("axes")) axes = {0, 2, 3};
  return make_function_kernel([node = std::string(spec.name()), axes](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    const auto rank = static_cast<std::int64_t>(x.shape().size());
    std::vector<bool> reduced(x.shape().size(), false);
    for (const std::int64_t a : axes) {
      const std::int64_t at = a < 0 ? a + rank : a;
      if (at < 0 || at >= rank) {
        return kernel_failed(node, fmt::format("axis {} is outside a tensor of rank {}", a, rank));
      }
      reduced[static_cast<std::size_t>(at)] = true;
    }
    if (x.elements() != args.output(0).elements()) return kernel_failed(node, "output and input differ in shape");
    // Slot of each element among the kept dimensions.
    Dims step(x.shape().size(), 0);
    std::int64_t slots = 1;
    for (std::size_t d = x.shape().size(); d-- > 0;) {
      if (reduced[d]) continue;
      step[d] = slots;
      slots *= x.shape()[d];
    }
    const auto slot_of = [&](std::int64_t i) {
      std::int64_t slot = 0;
      for (std::size_t d = x.shape().size(); d-- > 0; i /= x.shape()[d]) slot += i % x.shape()[d] * step[d];
      return static_cast<std::size_t>(slot);
    };
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x);
      RealOut<T> out(args.output(0));
      std::vector<Moments> m(static_cast<std::size_t>(slots));
      const double count = static_cast<double>(x.elements()) / static_cast<double>(std::max<std::int64_t>(1, slots));
      for (std::int64_t i = 0; i < x.elements(); ++i) m[slot_of(i)].mean += static_cast<double>(in[i]) / count;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        Moments& at = m[slot_of(i)];
        const double d = static_cast<double>(in[i]) - at.mean;
        at.variance += d * d / count;
      }
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const Moments& at = m[slot_of(i)];
        // The operator's definition adds 1e-9 to the deviation.
        out[i] = static_cast<T>((static_cast<double>(in[i]) - at.mean) / (std::sqrt(at.variance) + 1e-9));
      }
    });
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"BatchNormalization", make_batch_norm},
    {"GroupNormalization", make_group_norm},
    {"InstanceNormalization", make_instance_norm},
    {"LRN", make_lrn},
    {"LayerNormalization", make_layer_norm},
    {"LpNormalization", make_lp_normalization},
    {"MeanVarianceNormalization", make_mean_variance},
    {"RMSNormalization", make_rms_norm},
};

}  // namespace

std::span<const KernelEntry> kernels_norm() { return kEntries; }

}  // namespace millstream
