// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes, ArgMax and ArgMin, CumSum. An output element is always reduced by one
// thread in one order, so the bits do not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

/// Sums of reals run in double, sums of integers in 64 bits (the low bits are what wrapping keeps).
template <class T>
using Total = std::conditional_t<kIsReal<T>, double, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

// A reduction: State start(), step(State&, value), value finish(State, count). States are independent of
// how the axes are walked only up to rounding; the walk is fixed by the shapes.
template <class T>
struct SumOf {
  using State = Total<T>;
  static State start() { return 0; }
  static void step(State& s, T x) {
    if constexpr (kIsReal<T>) s += static_cast<State>(static_cast<Wide<T>>(x));
    else s = static_cast<State>(static_cast<std::uint64_t>(s) + static_cast<std::uint64_t>(x));
  }
  static T finish(const State& s, std::int64_t) { return static_cast<T>(static_cast<Wide<T>>(s)); }
};
template <class T>
struct MeanOf : SumOf<T> {
  static T finish(const Total<T>& s, std::int64_t count) {
    if constexpr (kIsReal<T>) return static_cast<T>(static_cast<Wide<T>>(s / static_cast<double>(count)));
    else return count == 0 ? T(0) : static_cast<T>(s / static_cast<Total<T>>(count));
  }
};
template <class T>
struct ProductOf {
  using State = Total<T>;
  static State start() { return 1; }
  static void step(State& s, T x) {
    if constexpr (kIsReal<T>) s *= static_cast<State>(static_cast<Wide<T>>(x));
    else s = static_cast<State>(static_cast<std::uint64_t>(s) * static_cast<std::uint64_t>(x));
  }
  static T finish(const State& s, std::int64_t) { return static_cast<T>(static_cast<Wide<T>>(s)); }
};
template <class T>
struct AbsSumOf : SumOf<T> {
  static void step(Total<T>& s, T x) {
    if constexpr (kIsReal<T>) s += std::abs(static_cast<double>(static_cast<Wide<T>>(x)));
    else if (std::is_signed_v<T> && x < T(0)) s = static_cast<Total<T>>(static_cast<std::uint64_t>(s) - static_cast<std::uint64_t>(x));
    else SumOf<T>::step(s, x);
  }
};
template <class T>
struct SquareSumOf : SumOf<T> {
  static void step(Total<T>& s, T x) {
    if constexpr (kIsReal<T>) {
      const double v = static_cast<double>(static_cast<Wide<T>>(x));
      s += v * v;
    } else {
      s = static_cast<Total<T>>(static_cast<std::uint64_t>(s) + static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(x));
    }
  }
};
template <class T>
struct NormOf {
  using State = double;
  static State start() { return 0; }
  static void step(State& s, T x) {
    const double v = static_cast<double>(static_cast<Wide<T>>(x));
    s += v * v;
  }
  static T finish(State s, std::int64_t) { return static_cast<T>(static_cast<Wide<T>>(std::sqrt(s))); }
};
template <class T>
struct LogSumOf {
  using State = double;
  static State start() { return 0; }
  static void step(State& s, T x) { s += static_cast<double>(static_cast<Wide<T>>(x)); }
  static T finish(State s, std::int64_t) { return static_cast<T>(static_cast<Wide<T>>(std::log(s))); }
};
/// log(sum(e^x)) in one pass: the sum is kept relative to the largest value so far.
template <class T>
struct LogSumExpOf {
  struct State {
    double largest;
    double sum;
  };
  static State start() { return {-std::numeric_limits<double>::infinity(), 0}; }
  static void step(State& s, T value) {
    const double x = static_cast<double>(static_cast<Wide<T>>(value));
    if (x == s.largest) {
      s.sum += 1;
    } else if (x < s.largest) {
      s.sum += std::exp(x - s.largest);
    } else {
      s.sum = s.sum * std::exp(s.largest - x) + 1;
      s.largest = x;
    }
  }
  static T finish(const State& s, std::int64_t) {
    return static_cast<T>(static_cast<Wide<T>>(s.largest + std::log(s.sum)));
  }
};
template <class T, bool kLargest>
struct ExtremeOf {
  using W = std::conditional_t<std::is_same_v<T, Bool8>, bool, Wide<T>>;
  using State = W;
  /// What an empty set gives: the identity of the operation.
  static State start() {
    if constexpr (std::is_floating_point_v<W>) {
      return kLargest ? -std::numeric_limits<W>::infinity() : std::numeric_limits<W>::infinity();
    } else {
      return kLargest ? std::numeric_limits<W>::lowest() : std::numeric_limits<W>::max();
    }
  }
  static void step(State& s, T value) {
    const W x = static_cast<W>(value);
    if constexpr (std::is_floating_point_v<W>) {
      s = s != s || (kLargest ? s >= x : s <= x) ? s : x;
    } else {
      s = (kLargest ? s >= x : s <= x) ? s : x;
    }
  }
  static T finish(State s, std::int64_t) { return static_cast<T>(s); }
};
template <class T>
struct MaxOf : ExtremeOf<T, true> {};
template <class T>
struct MinOf : ExtremeOf<T, false> {};

/// The two halves of the iteration space: what stays and what is reduced, each merged.
struct Split {
  StridedLoop<2> kept;     ///< 0: output, 1: input
  StridedLoop<1> reduced;  ///< 0: input
};
Split split(std::span<const std::int64_t> dims, const std::vector<bool>& reduced) {
  const Dims strides = strides_of(dims);
  Dims kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    (reduced[d] ? reduced_dims : kept_dims).push_back(dims[d]);
    (reduced[d] ? reduced_strides : kept_strides).push_back(strides[d]);
  }
  return {strided_loop<2>(kept_dims, {strides_of(kept_dims), kept_strides}),
          strided_loop<1>(reduced_dims, {reduced_strides})};
}

template <class R, class T>
void reduce(const Split& s, T* out, const T* in, int threads) {
  const std::int64_t count = s.reduced.total;
  // The threshold counts input elements: hand out rows of the output when there is enough to read.
  const bool parallel = s.kept.total * std::max<std::int64_t>(count, 1) > kParallelWork;
  const std::int64_t step = s.reduced.inner_stride(0);
  const auto one = [&](std::int64_t at) {
    auto state = R::start();
    for_each_row(s.reduced, 1, [&](const std::array<std::int64_t, 1>& from, std::int64_t n) {
      const T* x = in + at + from[0];
      for (std::int64_t i = 0; i < n; ++i) R::step(state, x[i * step]);
    });
    return R::finish(state, count);
  };
  const std::int64_t length = s.kept.inner(), rows = length == 0 ? 0 : s.kept.total / length;
  const std::int64_t to_step = s.kept.inner_stride(0), from_step = s.kept.inner_stride(1);
  // Reducing over outer axes with the kept one contiguous: walk the input in order, a block of states.
  const bool columns = from_step == 1 && step != 1 && length >= 4;
  constexpr std::int64_t kBlock = 64;
  const std::int64_t blocks = columns ? (length + kBlock - 1) / kBlock : length;
  const std::size_t outer = s.kept.dims.size() - 1;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && parallel)
  for (std::int64_t piece = 0; piece < rows * blocks; ++piece) {
    std::int64_t row = piece / blocks, to = 0, from = 0;
    const std::int64_t block = piece % blocks;
    for (std::size_t d = outer; d-- > 0;) {
      const std::int64_t at = row % s.kept.dims[d];
      row /= s.kept.dims[d];
      to += at * s.kept.strides[0][d];
      from += at * s.kept.strides[1][d];
    }
    if (!columns) {
      out[to + block * to_step] = one(from + block * from_step);
      continue;
    }
    const std::int64_t first = block * kBlock, width = std::min(kBlock, length - first);
    typename R::State states[kBlock];
    for (std::int64_t i = 0; i < width; ++i) states[i] = R::start();
    for_each_row(s.reduced, 1, [&](const std::array<std::int64_t, 1>& at, std::int64_t n) {
      for (std::int64_t k = 0; k < n; ++k) {
        const T* x = in + from + first + at[0] + k * step;
        for (std::int64_t i = 0; i < width; ++i) R::step(states[i], x[i]);
      }
    });
    for (std::int64_t i = 0; i < width; ++i) out[to + (first + i) * to_step] = R::finish(states[i], count);
  }
}

/// `axes_input`: operator set from which the axes are input 1 instead of an attribute.
template <template <class> class R, ElementSet kSet>
Result<std::unique_ptr<Kernel>> make_reduction(const KernelSpec& spec, int axes_input) {
  if (auto refusal = refuse_element(spec, 0, kSet)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               from_input = spec.opset() >= axes_input, fixed = spec.attrs().get_ints("axes"),
                               noop = spec.attrs().get_int("noop_with_empty_axes", 0) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    std::vector<std::int64_t> axes = fixed;
    if (from_input && args.has_input(1)) {
      MST_TRY(std::vector<std::int64_t> read, read_ints(node, args.input(1)));
      axes = std::move(read);
    }
    if (axes.empty() && noop) {
      std::memcpy(out.mutable_bytes(), in.bytes(), in.byte_size());
      return {};
    }
    const std::size_t rank = in.shape().size();
    std::vector<bool> reduced(rank, axes.empty());
    for (const std::int64_t axis : axes) {
      MST_TRY(const std::size_t d, resolve_axis(node, axis, rank));
      reduced[d] = true;
    }
    const Split s = split(in.shape(), reduced);
    if (s.kept.total != out.elements()) return kernel_failed(node, "output shape does not fit the axes");
    return on_element<kSet>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      reduce<R<T>, T>(s, out.as_mutable<T>().data(), in.as<T>().data(), threads);
    });
  });
}

constexpr int kAxesInputOfSum = 13;
constexpr int kAxesInput = 18;
template <template <class> class R, ElementSet kSet, int kSince = kAxesInput>
Result<std::unique_ptr<Kernel>> make_reduce(const KernelSpec& spec) {
  return make_reduction<R, kSet>(spec, kSince);
}

/// Index of the largest (smallest) element; of equal ones the first, or the last with select_last_index.
/// A NaN counts as the extreme, as in numpy.
template <bool kLargest>
Result<std::unique_ptr<Kernel>> make_arg(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               axis = spec.attrs().get_int("axis", 0),
                               last = spec.attrs().get_int("select_last_index", 0) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const auto shape = in.shape();
    MST_TRY(const std::size_t d, resolve_axis(node, axis, std::max<std::size_t>(shape.size(), 1)));
    const std::int64_t n = shape.empty() ? 1 : shape[d];
    const std::int64_t outer = count_of(shape, 0, d), inner = shape.empty() ? 1 : count_of(shape, d + 1, shape.size());
    if (outer * inner != args.output(0).elements()) return kernel_failed(node, "output shape does not fit the axis");
    if (n == 0 && outer * inner > 0) return kernel_failed(node, "no index in an empty axis");
    std::int64_t* out = args.output(0).as_mutable<std::int64_t>().data();
    return on_element<kNumber>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = in.as<T>().data();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && in.elements() > kParallelWork)
      for (std::int64_t i = 0; i < outer * inner; ++i) {
        const T* from = x + i / inner * n * inner + i % inner;
        Wide<T> best = static_cast<Wide<T>>(from[0]);
        std::int64_t at = 0;
        for (std::int64_t k = 1; k < n; ++k) {
          const Wide<T> v = static_cast<Wide<T>>(from[k * inner]);
          bool better = kLargest ? v > best : v < best;
          if (last) better = better || v == best;
          if constexpr (kIsReal<T>) better = (best == best && (better || v != v)) || (last && best != best && v != v);
          if (better) best = v, at = k;
        }
        out[i] = at;
      }
    });
  });
}

Result<std::unique_ptr<Kernel>> make_cumsum(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               exclusive = spec.attrs().get_int("exclusive", 0) != 0,
                               reverse = spec.attrs().get_int("reverse", 0) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const std::vector<std::int64_t> axis, read_ints(node, args.input(1)));
    if (axis.size() != 1) return kernel_failed(node, "axis must be one number");
    const auto shape = in.shape();
    MST_TRY(const std::size_t d, resolve_axis(node, axis[0], shape.size()));
    const std::int64_t n = shape[d], outer = count_of(shape, 0, d), inner = count_of(shape, d + 1, shape.size());
    return on_element<kNumber>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = in.as<T>().data();
      T* y = out.as_mutable<T>().data();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && in.elements() > kParallelWork)
      for (std::int64_t i = 0; i < outer * inner; ++i) {
        const std::int64_t base = i / inner * n * inner + i % inner;
        auto sum = SumOf<T>::start();
        for (std::int64_t k = 0; k < n; ++k) {
          const std::int64_t at = base + (reverse ? n - 1 - k : k) * inner;
          if (exclusive) y[at] = SumOf<T>::finish(sum, n);
          SumOf<T>::step(sum, x[at]);
          if (!exclusive) y[at] = SumOf<T>::finish(sum, n);
        }
      }
    });
  });
}

constexpr KernelEntry kEntries[] = {
    {"ArgMax", make_arg<true>},
    {"ArgMin", make_arg<false>},
    {"CumSum", make_cumsum},
    {"ReduceL1", make_reduce<AbsSumOf, kNumber>},
    {"ReduceL2", make_reduce<NormOf, kNumber>},
    {"ReduceLogSum", make_reduce<LogSumOf, kNumber>},
    {"ReduceLogSumExp", make_reduce<LogSumExpOf, kNumber>},
    {"ReduceMax", make_reduce<MaxOf, kNumber | kBool>},
    {"ReduceMean", make_reduce<MeanOf, kNumber>},
    {"ReduceMin", make_reduce<MinOf, kNumber | kBool>},
    {"ReduceProd", make_reduce<ProductOf, kNumber>},
    {"ReduceSum", make_reduce<SumOf, kNumber, kAxesInputOfSum>},
    {"ReduceSumSquare", make_reduce<SquareSumOf, kNumber>},
};

}  // namespace

std::span<const KernelEntry> kernels_reduce() { return kEntries; }

}  // namespace millstream
