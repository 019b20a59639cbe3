// SPDX-License-Identifier: Apache-2.0
// Operators that move whole tensors or blocks: views, Transpose, Concat, Split, Slice, Tile, Expand,
// DepthToSpace and its inverse. They see only how wide an element is.
#include <algorithm>
#include <cstring>
#include <random>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using elements::kWholeBytes;

void copy_bytes(std::byte* to, const std::byte* from, std::size_t size, int threads) {
  if (threads <= 1 || size < (std::size_t{1} << 20)) {
    if (size != 0) std::memcpy(to, from, size);
    return;
  }
  const auto parts = static_cast<std::size_t>(threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t t = 0; t < parts; ++t) {
    const std::size_t first = size * t / parts, last = size * (t + 1) / parts;
    std::memcpy(to + first, from + first, last - first);
  }
}

/// Reshape and the like: nothing to do where the plan let the output share the input's bytes. A second
/// output is Dropout's mask: all true at inference.
Result<std::unique_ptr<Kernel>> make_view(const KernelSpec& spec) {
  return make_function_kernel(
      [node = std::string(spec.name()), threads = spec.threads](KernelArgs& args) -> Result<void> {
        const Tensor& in = args.input(0);
        Tensor& out = args.output(0);
        if (in.byte_size() != out.byte_size() || in.dtype() != out.dtype()) {
          return kernel_failed(node, fmt::format("cannot view {} as {}", to_string(in.desc()), to_string(out.desc())));
        }
        if (in.bytes() != out.bytes()) copy_bytes(out.mutable_bytes(), in.bytes(), in.byte_size(), threads);
        return {};
      });
}

/// Training mode with a seed. The standard leaves the generator open; this is the one its published data
/// were made with: MT19937 (Matsumoto, Nishimura 1998) seeded with the low 32 bits of `seed`, one draw of 53
/// bits an element in row-major order; an element is kept when its draw in [0, 1) is at least the ratio.
Result<void> drop_elements(std::string_view node, KernelArgs& args, double ratio, std::int64_t seed) {
  const Tensor& in = args.input(0);
  Tensor& out = args.output(0);
  if (!(ratio >= 0 && ratio < 1)) return kernel_failed(node, fmt::format("ratio {} is outside [0, 1)", ratio));
  if (in.elements() != 0 && in.bytes() == out.bytes()) return kernel_failed(node, "training mode cannot work in place");
  Bool8* mask = args.output_count() > 1 && args.output(1).dtype() == DType::boolean && args.output(1).elements() == in.elements()
                    ? args.output(1).as_mutable<Bool8>().data()
                    : nullptr;
  std::mt19937 draw(static_cast<std::uint32_t>(static_cast<std::uint64_t>(seed)));
  return on_element<elements::kReal>(node, in.dtype(), [&](auto e) {
    using T = typename decltype(e)::Type;
    const T* x = in.as<T>().data();
    T* y = out.as_mutable<T>().data();
    const auto scale = static_cast<Wide<T>>(1.0 / (1.0 - ratio));
    for (std::int64_t i = 0; i < in.elements(); ++i) {
      const double high = static_cast<double>(draw() >> 5), low = static_cast<double>(draw() >> 6);
      const bool kept = (high * 0x1p26 + low) * 0x1p-53 >= ratio;
      y[i] = kept ? static_cast<T>(static_cast<Wide<T>>(x[i]) * scale) : T(Wide<T>(0));
      if (mask != nullptr) mask[i] = Bool8(kept);
    }
  });
}

/// A copy at inference. Training mode needs the seed attribute: without one the standard asks for a random
/// seed, and no random number is read here.
Result<std::unique_ptr<Kernel>> make_dropout(const KernelSpec& spec) {
  const bool has_mode = spec.opset() >= 12 && spec.has_input(2);
  const bool seeded = spec.attrs().has("seed");
  if (has_mode && !seeded) {
    const Tensor* training = spec.constant(2);
    const Tensor* ratio = spec.constant(1);
    const auto zero = [](const Tensor* t) {
      return t != nullptr &&
             std::all_of(t->bytes(), t->bytes() + t->byte_size(), [](std::byte b) { return b == std::byte{0}; });
    };
    if (!zero(training) && !zero(ratio)) {
      return unsupported_node(spec, "training_mode may be true and there is no seed: random seeds have no kernel");
    }
  }
  if (has_mode && seeded) {
    if (auto refusal = refuse_element(spec, 0, elements::kReal)) return *refusal;
    return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                                 seed = spec.attrs().get_int("seed", 0)](KernelArgs& args) -> Result<void> {
      MST_TRY(const double training, read_scalar(node, args.input(2)));
      double ratio = 0.5;
      if (args.has_input(1) && args.input(1).elements() > 0) {
        MST_TRY(const double given, read_scalar(node, args.input(1)));
        ratio = given;
      }
      if (training != 0) return drop_elements(node, args, ratio, seed);
      const Tensor& in = args.input(0);
      if (in.bytes() != args.output(0).bytes()) copy_bytes(args.output(0).mutable_bytes(), in.bytes(), in.byte_size(), threads);
      if (args.output_count() > 1 && args.output(1).byte_size() != 0) {
        std::memset(args.output(1).mutable_bytes(), 1, args.output(1).byte_size());
      }
      return {};
    });
  }
  return make_function_kernel([threads = spec.threads](KernelArgs& args) {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    if (in.bytes() != out.bytes()) copy_bytes(out.mutable_bytes(), in.bytes(), in.byte_size(), threads);
    if (args.output_count() < 2) return;
    Tensor& mask = args.output(1);
    if (mask.byte_size() == 0) return;
    if (mask.dtype() == DType::boolean) std::memset(mask.mutable_bytes(), 1, mask.byte_size());
    // Before operator set 10 the mask has the input's type.
    with_element<elements::kReal>(mask.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      for (T& x : mask.as_mutable<T>()) x = static_cast<T>(1.0f);
    });
  });
}

/// out = in read with `strides` from element `offset`.
Result<void> copy_strided(std::string_view node, const Tensor& in, Tensor& out, std::span<const std::int64_t> dims,
                          const Dims& strides, std::int64_t offset, int threads) {
  const bool done = with_width(in.dtype(), [&](auto e) {
    using T = typename decltype(e)::Type;
    strided_copy(reinterpret_cast<T*>(out.mutable_bytes()), reinterpret_cast<const T*>(in.bytes()) + offset, dims,
                 strides, threads);
  });
  return done ? Result<void>() : Result<void>(wrong_element(node, in.dtype()));
}

/// The dimensions `dims` (their product is in's elements) of `in`, permuted.
Result<void> transpose(std::string_view node, const Tensor& in, Tensor& out, const Dims& dims,
                       const std::vector<std::int64_t>& order, int threads) {
  const Dims from = strides_of(dims);
  Dims to, strides;
  for (const std::int64_t d : order) {
    to.push_back(dims[static_cast<std::size_t>(d)]);
    strides.push_back(from[static_cast<std::size_t>(d)]);
  }
  if (count_of(to) != out.elements()) return kernel_failed(node, "output shape does not fit");
  return copy_strided(node, in, out, to, strides, 0, threads);
}

Result<std::unique_ptr<Kernel>> make_transpose(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               perm = spec.attrs().get_ints("perm")](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const std::size_t rank = in.shape().size();
    std::vector<std::int64_t> order = perm;
    if (order.empty()) {
      for (std::size_t d = rank; d-- > 0;) order.push_back(static_cast<std::int64_t>(d));
    }
    std::vector<bool> seen(rank, false);
    for (const std::int64_t d : order) {
      if (order.size() != rank || d < 0 || d >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(d)]) {
        return kernel_failed(node, fmt::format("perm [{}] is no permutation of {} axes", fmt::join(order, ","), rank));
      }
      seen[static_cast<std::size_t>(d)] = true;
    }
    return transpose(node, in, args.output(0), dims_of(in), order, threads);
  });
}

Result<std::unique_ptr<Kernel>> make_expand(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel(
      [node = std::string(spec.name()), threads = spec.threads](KernelArgs& args) -> Result<void> {
        const Tensor& in = args.input(0);
        Tensor& out = args.output(0);
        MST_TRY(const Dims strides, broadcast_strides(node, in.shape(), out.shape()));
        return copy_strided(node, in, out, out.shape(), strides, 0, threads);
      });
}

/// Tile: each dimension becomes (repeat, length), the repeat with stride 0.
Result<std::unique_ptr<Kernel>> make_tile(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()),
                               threads = spec.threads](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const std::vector<std::int64_t> repeats, read_ints(node, args.input(1)));
    const Dims from = strides_of(in.shape());
    Dims dims, strides;
    for (std::size_t d = 0; d < in.shape().size(); ++d) {
      if (repeats.size() != in.shape().size() || out.shape()[d] != in.shape()[d] * repeats[d]) {
        return kernel_failed(node, fmt::format("repeats [{}] do not lead from {} to {}", fmt::join(repeats, ","),
                                               to_string(in.desc()), to_string(out.desc())));
      }
      dims.push_back(repeats[d]);
      strides.push_back(0);
      dims.push_back(in.shape()[d]);
      strides.push_back(from[d]);
    }
    return copy_strided(node, in, out, dims, strides, 0, threads);
  });
}

/// Concat, and Split the other way round: block `i` of each row is `sizes[i]` bytes.
struct Rows {
  std::int64_t count = 1;
  std::size_t step = 1;  ///< bytes of one index of the axis
};
Rows rows_of(const Tensor& t, std::size_t axis) {
  return {count_of(t.shape(), 0, axis), static_cast<std::size_t>(count_of(t.shape(), axis + 1, t.shape().size())) *
                                            dtype_bits(t.dtype()) / 8};
}

Result<std::unique_ptr<Kernel>> make_concat(const KernelSpec& spec) {
  for (std::size_t i = 0; i < spec.input_count(); ++i) {
    if (auto refusal = refuse_element(spec, i, kWholeBytes)) return *refusal;
  }
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               axis = spec.attrs().get_int("axis", 1)](KernelArgs& args) -> Result<void> {
    Tensor& out = args.output(0);
    MST_TRY(const std::size_t at, resolve_axis(node, axis, out.shape().size()));
    const Rows rows = rows_of(out, at);
    std::int64_t length = 0;
    for (std::size_t i = 0; i < args.input_count(); ++i) {
      const Tensor& in = args.input(i);
      bool fits = in.shape().size() == out.shape().size() && in.dtype() == out.dtype();
      for (std::size_t d = 0; fits && d < out.shape().size(); ++d) fits = d == at || in.shape()[d] == out.shape()[d];
      if (!fits) {
        return kernel_failed(node, fmt::format("input {} is {}, which does not fit into {}", i, to_string(in.desc()),
                                               to_string(out.desc())));
      }
      length += in.shape()[at];
    }
    if (length != out.shape()[at]) return kernel_failed(node, "the inputs do not fill the output");
    const std::size_t row = rows.step * static_cast<std::size_t>(out.shape()[at]);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < args.input_count(); ++i) {
      const Tensor& in = args.input(i);
      const std::size_t block = rows.step * static_cast<std::size_t>(in.shape()[at]);
      if (block == 0) continue;
      std::byte* to = out.mutable_bytes() + begin;
      const std::byte* from = in.bytes();
      begin += block;
      if (rows.count == 1) {
        copy_bytes(to, from, block, threads);
        continue;
      }
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && in.byte_size() > (1u << 20))
      for (std::int64_t r = 0; r < rows.count; ++r) {
        std::memcpy(to + static_cast<std::size_t>(r) * row, from + static_cast<std::size_t>(r) * block, block);
      }
    }
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_split(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               axis = spec.attrs().get_int("axis", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    MST_TRY(const std::size_t at, resolve_axis(node, axis, in.shape().size()));
    const Rows rows = rows_of(in, at);
    std::int64_t length = 0;
    for (std::size_t i = 0; i < args.output_count(); ++i) {
      if (args.output(i).shape().size() != in.shape().size()) return kernel_failed(node, "output rank differs");
      length += args.output(i).shape()[at];
    }
    if (length != in.shape()[at]) {
      return kernel_failed(node, fmt::format("the parts hold {} of {} along axis {}", length, in.shape()[at], at));
    }
    const std::size_t row = rows.step * static_cast<std::size_t>(in.shape()[at]);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < args.output_count(); ++i) {
      Tensor& out = args.output(i);
      const std::size_t block = rows.step * static_cast<std::size_t>(out.shape()[at]);
      if (block == 0) continue;
      const std::byte* from = in.bytes() + begin;
      std::byte* to = out.mutable_bytes();
      begin += block;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && out.byte_size() > (1u << 20))
      for (std::int64_t r = 0; r < rows.count; ++r) {
        std::memcpy(to + static_cast<std::size_t>(r) * block, from + static_cast<std::size_t>(r) * row, block);
      }
    }
    return {};
  });
}

/// Slice: attributes before operator set 10, inputs after. The output's shape is already known; the
/// start of each axis and its step are what is left to find.
Result<std::unique_ptr<Kernel>> make_slice(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  const Attrs& attrs = spec.attrs();
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads, from_attributes = spec.opset() < 10,
                               starts = attrs.get_ints("starts"), ends = attrs.get_ints("ends"),
                               axes = attrs.get_ints("axes")](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    const std::size_t rank = in.shape().size();
    std::vector<std::int64_t> first = starts, last = ends, along = axes, step;
    if (!from_attributes) {
      std::vector<std::int64_t>* lists[] = {&first, &last, &along, &step};
      for (std::size_t i = 0; i < 4; ++i) {
        if (!args.has_input(i + 1)) continue;
        MST_TRY(std::vector<std::int64_t> read, read_ints(node, args.input(i + 1)));
        *lists[i] = std::move(read);
      }
    }
    if (along.empty()) {
      for (std::size_t d = 0; d < first.size(); ++d) along.push_back(static_cast<std::int64_t>(d));
    }
    if (step.empty()) step.assign(first.size(), 1);
    if (last.size() != first.size() || along.size() != first.size() || step.size() != first.size()) {
      return kernel_failed(node, "starts, ends, axes and steps differ in length");
    }
    Dims strides = strides_of(in.shape());
    Dims dims = dims_of(in);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      MST_TRY(const std::size_t d, resolve_axis(node, along[i], rank));
      const std::int64_t n = in.shape()[d], s = step[i];
      if (s == 0) return kernel_failed(node, "a step is 0");
      const auto from_end = [n](std::int64_t x) { return x < 0 ? x + n : x; };
      const std::int64_t low = s > 0 ? 0 : -1, high = s > 0 ? n : n - 1;
      // A negative start that is still negative after adding n is the first element, also when walking back.
      const std::int64_t begin = std::clamp(from_end(first[i]), std::int64_t{0}, std::max(high, std::int64_t{0}));
      const std::int64_t end = std::clamp(last[i] < -n ? low : from_end(last[i]), low, high);
      const std::int64_t span = s > 0 ? end - begin : begin - end;
      const std::int64_t width = s > 0 ? s : (s == INT64_MIN ? INT64_MAX : -s);
      dims[d] = n == 0 || span <= 0 ? 0 : (span - 1) / width + 1;
      offset += begin * strides[d];
      // Never walked when at most one element is taken; keeps the product within range.
      strides[d] = dims[d] <= 1 ? 0 : strides[d] * s;
    }
    if (!std::equal(dims.begin(), dims.end(), out.shape().begin(), out.shape().end())) {
      return kernel_failed(node, fmt::format("slice has shape [{}], the output {}", fmt::join(dims, ","),
                                             to_string(out.desc())));
    }
    if (out.elements() == 0) return {};
    return copy_strided(node, in, out, dims, strides, offset, threads);
  });
}

/// DepthToSpace and SpaceToDepth are transposes of six dimensions.
Result<std::unique_ptr<Kernel>> make_depth_to_space(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  const std::string mode = spec.attrs().get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return unsupported_node(spec, fmt::format("mode = \"{}\"", mode));
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads, crd = mode == "CRD",
                               b = spec.attrs().get_int("blocksize", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const auto s = in.shape();
    if (s.size() != 4 || b < 1 || s[1] % (b * b) != 0) {
      return kernel_failed(node, fmt::format("blocksize {} does not divide {}", b, to_string(in.desc())));
    }
    const std::int64_t c = s[1] / (b * b);
    if (crd) return transpose(node, in, args.output(0), {s[0], c, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, threads);
    return transpose(node, in, args.output(0), {s[0], b, b, c, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, threads);
  });
}
Result<std::unique_ptr<Kernel>> make_space_to_depth(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               b = spec.attrs().get_int("blocksize", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const auto s = in.shape();
    if (s.size() != 4 || b < 1 || s[2] % b != 0 || s[3] % b != 0) {
      return kernel_failed(node, fmt::format("blocksize {} does not divide {}", b, to_string(in.desc())));
    }
    return transpose(node, in, args.output(0), {s[0], s[1], s[2] / b, b, s[3] / b, b}, {0, 3, 5, 1, 2, 4}, threads);
  });
}

constexpr KernelEntry kEntries[] = {
    {"Concat", make_concat},
    {"DepthToSpace", make_depth_to_space},
    {"Dropout", make_dropout},
    {"Expand", make_expand},
    {"Flatten", make_view},
    {"Identity", make_view},
    {"Reshape", make_view},
    {"Slice", make_slice},
    {"SpaceToDepth", make_space_to_depth},
    {"Split", make_split},
    {"Squeeze", make_view},
    {"Tile", make_tile},
    {"Transpose", make_transpose},
    {"Unsqueeze", make_view},
};

}  // namespace

std::span<const KernelEntry> kernels_movement() { return kEntries; }

}  // namespace millstream
