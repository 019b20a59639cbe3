// SPDX-License-Identifier: Apache-2.0
// Operators that choose by value: Where, OneHot, TopK, NonZero, Unique, Compress, NonMaxSuppression. The
// last four assign their outputs, whose shapes depend on the values.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

Result<std::unique_ptr<Kernel>> make_where(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kBool)) return *refusal;
  for (std::size_t i = 1; i < 3; ++i) {
    if (auto refusal = refuse_element(spec, i, kWholeBytes)) return *refusal;
  }
  return make_function_kernel([node = std::string(spec.name()),
                               threads = spec.threads](KernelArgs& args) -> Result<void> {
    const Tensor& choose = args.input(0);
    const Tensor& a = args.input(1);
    const Tensor& b = args.input(2);
    Tensor& out = args.output(0);
    if (a.dtype() != b.dtype()) return wrong_element(node, b.dtype());
    const Dims shape = dims_of(out);
    MST_TRY(Dims sc, broadcast_strides(node, choose.shape(), shape));
    MST_TRY(Dims sa, broadcast_strides(node, a.shape(), shape));
    MST_TRY(Dims sb, broadcast_strides(node, b.shape(), shape));
    const auto loop = strided_loop<4>(shape, {strides_of(shape), std::move(sc), std::move(sa), std::move(sb)});
    const Bool8* c = choose.as<Bool8>().data();
    const std::int64_t step_c = loop.inner_stride(1), step_a = loop.inner_stride(2), step_b = loop.inner_stride(3);
    const bool done = with_width(a.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = reinterpret_cast<const T*>(a.bytes());
      const T* y = reinterpret_cast<const T*>(b.bytes());
      T* z = reinterpret_cast<T*>(out.mutable_bytes());
      for_each_row(loop, threads, [&](const std::array<std::int64_t, 4>& at, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) {
          z[at[0] + i] = c[at[1] + i * step_c] ? x[at[2] + i * step_a] : y[at[3] + i * step_b];
        }
      });
    });
    return done ? Result<void>() : Result<void>(wrong_element(node, a.dtype()));
  });
}

/// An index outside [-depth, depth) selects nothing.
Result<std::unique_ptr<Kernel>> make_one_hot(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber)) return *refusal;
  if (auto refusal = refuse_element(spec, 2, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()),
                               axis = spec.attrs().get_int("axis", -1)](KernelArgs& args) -> Result<void> {
    const Tensor& indices = args.input(0);
    const Tensor& values = args.input(2);
    Tensor& out = args.output(0);
    const std::size_t rank = indices.shape().size() + 1;
    MST_TRY(const std::size_t d, resolve_axis(node, axis, rank));
    MST_TRY(const double depth_value, read_scalar(node, args.input(1)));
    const auto depth = static_cast<std::int64_t>(depth_value);
    if (out.shape().size() != rank || out.shape()[d] != depth || values.elements() != 2 || values.dtype() != out.dtype()) {
      return kernel_failed(node, "depth, values and output do not fit together");
    }
    const std::int64_t inner = count_of(out.shape(), d + 1, rank);
    std::vector<std::int64_t> hot;
    with_element<kNumber>(indices.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      for (const T x : indices.as<T>()) hot.push_back(static_cast<std::int64_t>(x));
    });
    with_width(values.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* v = reinterpret_cast<const T*>(values.bytes());
      T* y = reinterpret_cast<T*>(out.mutable_bytes());
      std::fill(y, y + out.elements(), v[0]);
      for (std::size_t i = 0; i < hot.size(); ++i) {
        if (hot[i] < -depth || hot[i] >= depth) continue;
        const std::int64_t index = hot[i] < 0 ? hot[i] + depth : hot[i];
        const auto at = static_cast<std::int64_t>(i);
        y[(at / inner * depth + index) * inner + at % inner] = v[1];
      }
    });
    return {};
  });
}

/// Always sorted (an unsorted result may have any order); equal values keep the order of their indices.
Result<std::unique_ptr<Kernel>> make_top_k(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               axis = spec.attrs().get_int("axis", -1),
                               largest = spec.attrs().get_int("largest", 1) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& values = args.output(0);
    const auto shape = in.shape();
    MST_TRY(const std::size_t d, resolve_axis(node, axis, shape.size()));
    if (values.shape().size() != shape.size()) return kernel_failed(node, "output rank differs");
    const std::int64_t n = shape[d], k = values.shape()[d];
    if (k < 0 || k > n) return kernel_failed(node, fmt::format("k = {} of {} elements", k, n));
    const std::int64_t outer = count_of(shape, 0, d), inner = count_of(shape, d + 1, shape.size());
    std::int64_t* where = args.output_count() > 1 ? args.output(1).as_mutable<std::int64_t>().data() : nullptr;
    return on_element<kNumber>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = in.as<T>().data();
      T* y = values.as_mutable<T>().data();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && in.elements() > kParallelWork)
      for (std::int64_t row = 0; row < outer * inner; ++row) {
        const T* from = x + row / inner * n * inner + row % inner;
        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        // NaN ranks above every number, which keeps the order strict.
        const auto before = [&](std::int64_t i, std::int64_t j) {
          const Wide<T> a = static_cast<Wide<T>>(from[i * inner]), b = static_cast<Wide<T>>(from[j * inner]);
          const bool a_nan = a != a, b_nan = b != b;
          if (a_nan || b_nan) {
            if (a_nan != b_nan) return largest ? a_nan : b_nan;
            return i < j;
          }
          return a == b ? i < j : (largest ? a > b : a < b);
        };
        std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
        for (std::int64_t i = 0; i < k; ++i) {
          const std::int64_t to = (row / inner * k + i) * inner + row % inner;
          const std::int64_t index = order[static_cast<std::size_t>(i)];
          y[to] = from[index * inner];
          if (where != nullptr) where[to] = index;
        }
      }
    });
  });
}

Result<std::unique_ptr<Kernel>> make_non_zero(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber | kBool)) return *refusal;
  return make_function_kernel([node = std::string(spec.name())](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const auto shape = in.shape();
    std::vector<std::int64_t> found;
    MST_TRY_VOID(on_element<kNumber | kBool>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = in.as<T>().data();
      for (std::int64_t i = 0; i < in.elements(); ++i) {
        if (x[i] != 0) found.push_back(i);
      }
    }));
    const auto count = static_cast<std::int64_t>(found.size());
    Tensor out(DType::i64, {static_cast<std::int64_t>(shape.size()), count});
    std::int64_t* y = out.as_mutable<std::int64_t>().data();
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = found[static_cast<std::size_t>(i)];
      for (std::size_t d = shape.size(); d-- > 0;) {
        y[static_cast<std::int64_t>(d) * count + i] = rest % shape[d];
        rest /= shape[d];
      }
    }
    args.output(0) = std::move(out);
    return {};
  });
}

Tensor int_tensor(const std::vector<std::int64_t>& values) {
  Tensor out(DType::i64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), out.as_mutable<std::int64_t>().begin());
  return out;
}

/// Without an axis the elements, with one the slices across it, compared lexicographically.
Result<std::unique_ptr<Kernel>> make_unique_elements(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber | kBool)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), flat = !spec.attrs().has("axis"),
                               axis = spec.attrs().get_int("axis", 0),
                               sorted = spec.attrs().get_int("sorted", 1) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Dims shape = dims_of(in);
    std::size_t d = 0;
    if (flat) {
      shape = {in.elements()};
    } else {
      MST_TRY(const std::size_t at, resolve_axis(node, axis, shape.size()));
      d = at;
    }
    const std::int64_t n = shape[d], outer = count_of(shape, 0, d), inner = count_of(shape, d + 1, shape.size());
    return on_element<kNumber | kBool>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = in.as<T>().data();
      // -1, 0 or 1: slice i against slice j.
      const auto compare = [&](std::int64_t i, std::int64_t j) {
        for (std::int64_t o = 0; o < outer; ++o) {
          for (std::int64_t k = 0; k < inner; ++k) {
            const T a = x[(o * n + i) * inner + k], b = x[(o * n + j) * inner + k];
            if (a < b) return -1;
            if (b < a) return 1;
          }
        }
        return 0;
      };
      std::vector<std::int64_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) { return compare(i, j) < 0; });
      std::vector<std::int64_t> first, inverse(static_cast<std::size_t>(n)), counts;
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || compare(order[i - 1], order[i]) != 0) {
          first.push_back(order[i]);
          counts.push_back(0);
        }
        inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(first.size()) - 1;
        ++counts.back();
      }
      if (!sorted) {
        // In order of first appearance.
        std::vector<std::int64_t> rank(first.size());
        std::iota(rank.begin(), rank.end(), 0);
        std::sort(rank.begin(), rank.end(), [&](std::int64_t i, std::int64_t j) {
          return first[static_cast<std::size_t>(i)] < first[static_cast<std::size_t>(j)];
        });
        std::vector<std::int64_t> place(rank.size()), first_then(rank.size()), counts_then(rank.size());
        for (std::size_t i = 0; i < rank.size(); ++i) {
          const auto old = static_cast<std::size_t>(rank[i]);
          place[old] = static_cast<std::int64_t>(i);
          first_then[i] = first[old];
          counts_then[i] = counts[old];
        }
        for (std::int64_t& i : inverse) i = place[static_cast<std::size_t>(i)];
        first = std::move(first_then);
        counts = std::move(counts_then);
      }
      Dims to = shape;
      to[d] = static_cast<std::int64_t>(first.size());
      Tensor out(in.dtype(), to);
      T* y = out.template as_mutable<T>().data();
      for (std::int64_t o = 0; o < outer; ++o) {
        for (const std::int64_t i : first) y = std::copy(x + (o * n + i) * inner, x + (o * n + i + 1) * inner, y);
      }
      args.output(0) = std::move(out);
      if (args.output_count() > 1) args.output(1) = int_tensor(first);
      if (args.output_count() > 2) args.output(2) = int_tensor(inverse);
      if (args.output_count() > 3) args.output(3) = int_tensor(counts);
    });
  });
}

Result<std::unique_ptr<Kernel>> make_compress(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  if (auto refusal = refuse_element(spec, 1, kBool)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), flat = !spec.attrs().has("axis"),
                               axis = spec.attrs().get_int("axis", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Dims shape = dims_of(in);
    std::size_t d = 0;
    if (flat) {
      shape = {in.elements()};
    } else {
      MST_TRY(const std::size_t at, resolve_axis(node, axis, shape.size()));
      d = at;
    }
    const auto condition = args.input(1).as<Bool8>();
    if (static_cast<std::int64_t>(condition.size()) > shape[d]) {
      return kernel_failed(node, fmt::format("condition of {} for {} elements", condition.size(), shape[d]));
    }
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < condition.size(); ++i) {
      if (condition[i]) kept.push_back(i);
    }
    const auto outer = static_cast<std::size_t>(count_of(shape, 0, d)), n = static_cast<std::size_t>(shape[d]);
    const std::size_t block =
        static_cast<std::size_t>(count_of(shape, d + 1, shape.size())) * dtype_bits(in.dtype()) / 8;
    shape[d] = static_cast<std::int64_t>(kept.size());
    Tensor out(in.dtype(), shape);
    std::byte* to = out.mutable_bytes();
    for (std::size_t o = 0; o < outer; ++o) {
      for (const std::size_t i : kept) {
        if (block != 0) std::memcpy(to, in.bytes() + (o * n + i) * block, block);
        to += block;
      }
    }
    args.output(0) = std::move(out);
    return {};
  });
}

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};
Box read_box(const float* b, bool centre) {
  if (centre) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}
float overlap_ratio(const Box& a, const Box& b) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  const float both = height * width, either = a.area() + b.area() - both;
  return either <= 0 ? 0 : both / either;
}

/// Greedy suppression by class: boxes [B, N, 4], scores [B, C, N] -> selected [n, 3] of (batch, class, box).
Result<std::unique_ptr<Kernel>> make_non_max_suppression(const KernelSpec& spec) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (auto refusal = refuse_element(spec, i, element_set({DType::f32}))) return *refusal;
  }
  return make_function_kernel([node = std::string(spec.name()),
                               centre = spec.attrs().get_int("center_point_box", 0) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& boxes = args.input(0);
    const Tensor& scores = args.input(1);
    const auto bs = boxes.shape(), ss = scores.shape();
    if (bs.size() != 3 || ss.size() != 3 || bs[2] != 4 || bs[0] != ss[0] || bs[1] != ss[2]) {
      return kernel_failed(node, fmt::format("boxes {} and scores {} do not fit together", to_string(boxes.desc()),
                                             to_string(scores.desc())));
    }
    const auto scalar = [&](std::size_t i, double otherwise) -> Result<double> {
      if (!args.has_input(i) || args.input(i).elements() == 0) return otherwise;
      return read_scalar(node, args.input(i));
    };
    MST_TRY(const double most, scalar(2, 0));
    MST_TRY(const double overlap_limit, scalar(3, 0));
    MST_TRY(const double score_limit, scalar(4, -std::numeric_limits<double>::infinity()));
    std::vector<std::int64_t> selected;
    for (std::int64_t batch = 0; batch < ss[0]; ++batch) {
      for (std::int64_t klass = 0; klass < ss[1]; ++klass) {
        const float* score = scores.as<float>().data() + (batch * ss[1] + klass) * ss[2];
        std::vector<std::int64_t> order;
        for (std::int64_t i = 0; i < ss[2]; ++i) {
          if (static_cast<double>(score[i]) > score_limit) order.push_back(i);
        }
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) { return score[i] > score[j]; });
        std::vector<Box> kept;
        for (const std::int64_t i : order) {
          if (static_cast<double>(kept.size()) >= most) break;
          const Box box = read_box(boxes.as<float>().data() + (batch * bs[1] + i) * 4, centre);
          const bool hidden = std::any_of(kept.begin(), kept.end(), [&](const Box& other) {
            return static_cast<double>(overlap_ratio(box, other)) > overlap_limit;
          });
          if (hidden) continue;
          kept.push_back(box);
          selected.insert(selected.end(), {batch, klass, i});
        }
      }
    }
    Tensor out(DType::i64, {static_cast<std::int64_t>(selected.size() / 3), 3});
    std::copy(selected.begin(), selected.end(), out.as_mutable<std::int64_t>().begin());
    args.output(0) = std::move(out);
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"Compress", make_compress},
    {"NonMaxSuppression", make_non_max_suppression},
    {"NonZero", make_non_zero},
    {"OneHot", make_one_hot},
    {"TopK", make_top_k},
    {"Unique", make_unique_elements},
    {"Where", make_where},
};

}  // namespace

std::span<const KernelEntry> kernels_selection() { return kEntries; }

}  // namespace millstream
