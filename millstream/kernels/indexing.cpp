// SPDX-License-Identifier: Apache-2.0
// Gather and Scatter in all their forms. Negative indices count from the end; one outside the dimension is
// an error. Scatter with a reduction applies updates in row-major order on one thread, so the result does
// not depend on threads; without one the last write wins.
#include <algorithm>
#include <cstring>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

Error out_of_range(std::string_view node, std::int64_t index, std::int64_t length) {
  return kernel_failed(node, fmt::format("index {} is outside [{}, {})", index, -length, length));
}

/// Indices of one dimension of `length`, counted from its start.
Result<std::vector<std::int64_t>> read_indices(std::string_view node, const Tensor& tensor, std::int64_t length) {
  MST_TRY(std::vector<std::int64_t> out, read_ints(node, tensor));
  for (std::int64_t& i : out) {
    if (i < -length || i >= length) return out_of_range(node, i, length);
    if (i < 0) i += length;
  }
  return out;
}

Result<std::unique_ptr<Kernel>> make_gather(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               axis = spec.attrs().get_int("axis", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const std::size_t d, resolve_axis(node, axis, in.shape().size()));
    const std::int64_t length = in.shape()[d];
    MST_TRY(const std::vector<std::int64_t> index, read_indices(node, args.input(1), length));
    const auto picks = static_cast<std::int64_t>(index.size());
    const std::int64_t outer = count_of(in.shape(), 0, d), inner = count_of(in.shape(), d + 1, in.shape().size());
    const std::size_t block = static_cast<std::size_t>(inner) * dtype_bits(in.dtype()) / 8;
    if (out.elements() != outer * picks * inner) return kernel_failed(node, "output shape does not fit");
    std::byte* to = out.mutable_bytes();
    const std::byte* from = in.bytes();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && out.elements() > kParallelWork)
    for (std::int64_t i = 0; i < outer * picks; ++i) {
      const std::int64_t row = i / picks * length + index[static_cast<std::size_t>(i % picks)];
      if (block != 0) std::memcpy(to + static_cast<std::size_t>(i) * block, from + static_cast<std::size_t>(row) * block, block);
    }
    return {};
  });
}

/// The element that position `i` of `shape` (row-major) names in `dims`, its axis replaced by `index`.
Result<std::vector<std::int64_t>> element_targets(std::string_view node, std::span<const std::int64_t> dims,
                                                  const Tensor& indices, std::size_t axis) {
  const auto shape = indices.shape();
  if (shape.size() != dims.size()) return kernel_failed(node, "data and indices differ in rank");
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d != axis && shape[d] > dims[d]) {
      return kernel_failed(node, fmt::format("indices [{}] reach beyond data [{}]", fmt::join(shape, ","), fmt::join(dims, ",")));
    }
  }
  MST_TRY(std::vector<std::int64_t> out, read_indices(node, indices, dims[axis]));
  const Dims strides = strides_of(dims);
  Dims at(shape.size(), 0);
  for (std::int64_t& target : out) {
    std::int64_t element = target * strides[axis];
    for (std::size_t d = 0; d < shape.size(); ++d) element += d == axis ? 0 : at[d] * strides[d];
    target = element;
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

Result<std::unique_ptr<Kernel>> make_gather_elements(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()),
                               axis = spec.attrs().get_int("axis", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const std::size_t d, resolve_axis(node, axis, in.shape().size()));
    MST_TRY(const std::vector<std::int64_t> from, element_targets(node, in.shape(), args.input(1), d));
    with_width(in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = reinterpret_cast<const T*>(in.bytes());
      T* y = reinterpret_cast<T*>(out.mutable_bytes());
      for (std::size_t i = 0; i < from.size(); ++i) y[i] = x[from[i]];
    });
    return {};
  });
}

/// For each index tuple: the first element of the slice that it names. `batch` leading dimensions are
/// walked along with the tuples.
struct Slices {
  std::vector<std::int64_t> first;
  std::int64_t size = 1;  ///< elements of one slice
};
Result<Slices> named_slices(std::string_view node, std::span<const std::int64_t> dims, const Tensor& indices,
                            std::int64_t batch) {
  const auto shape = indices.shape();
  if (shape.empty() || batch < 0 || batch >= static_cast<std::int64_t>(shape.size())) {
    return kernel_failed(node, "indices need a last dimension that holds the tuples");
  }
  const std::int64_t depth = shape.back();
  const auto lead = static_cast<std::size_t>(batch);
  if (depth < 0 || lead + static_cast<std::size_t>(depth) > dims.size()) {
    return kernel_failed(node, fmt::format("index tuples of {} for data of rank {}", depth, dims.size()));
  }
  for (std::size_t d = 0; d < lead; ++d) {
    if (shape[d] != dims[d]) return kernel_failed(node, "batch dimensions of data and indices differ");
  }
  MST_TRY(const std::vector<std::int64_t> tuple, read_ints(node, indices));
  const Dims strides = strides_of(dims);
  Slices out;
  out.size = count_of(dims, lead + static_cast<std::size_t>(depth), dims.size());
  const std::int64_t count = count_of(shape, 0, shape.size() - 1), batches = count_of(shape, 0, lead);
  const std::int64_t per_batch = count_of(dims, lead, dims.size());
  out.first.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = i / std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, batches)) * per_batch;
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::size_t d = lead + static_cast<std::size_t>(k);
      const std::int64_t index = tuple[static_cast<std::size_t>(i * depth + k)];
      if (index < -dims[d] || index >= dims[d]) return out_of_range(node, index, dims[d]);
      at += (index < 0 ? index + dims[d] : index) * strides[d];
    }
    out.first.push_back(at);
  }
  return out;
}

Result<std::unique_ptr<Kernel>> make_gather_nd(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               batch = spec.attrs().get_int("batch_dims", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const Slices slices, named_slices(node, in.shape(), args.input(1), batch));
    const std::size_t width = dtype_bits(in.dtype()) / 8, block = static_cast<std::size_t>(slices.size) * width;
    const auto count = static_cast<std::int64_t>(slices.first.size());
    if (out.elements() != count * slices.size) return kernel_failed(node, "output shape does not fit");
    std::byte* to = out.mutable_bytes();
    const std::byte* from = in.bytes();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && out.elements() > kParallelWork)
    for (std::int64_t i = 0; i < count; ++i) {
      const auto first = static_cast<std::size_t>(slices.first[static_cast<std::size_t>(i)]);
      if (block != 0) std::memcpy(to + static_cast<std::size_t>(i) * block, from + first * width, block);
    }
    return {};
  });
}

enum class Combine { replace, add, mul, max, min };

std::optional<Combine> combine_of(const std::string& name) {
  if (name == "none") return Combine::replace;
  if (name == "add") return Combine::add;
  if (name == "mul") return Combine::mul;
  if (name == "max") return Combine::max;
  if (name == "min") return Combine::min;
  return std::nullopt;
}

template <class T>
T combined(Combine how, T old, T update) {
  if constexpr (std::is_same_v<T, Bool8>) {
    return how == Combine::add || how == Combine::max ? Bool8(old || update) : Bool8(old && update);
  } else {
    using W = Wide<T>;
    const W a = static_cast<W>(old), b = static_cast<W>(update);
    // Unsigned arithmetic keeps the low bits of integers without overflow.
    using U = std::conditional_t<std::is_floating_point_v<W>, W, std::uint64_t>;
    switch (how) {
      case Combine::add: return static_cast<T>(static_cast<W>(static_cast<U>(a) + static_cast<U>(b)));
      case Combine::mul: return static_cast<T>(static_cast<W>(static_cast<U>(a) * static_cast<U>(b)));
      case Combine::max: return static_cast<T>(a > b || a != a ? a : b);
      case Combine::min: return static_cast<T>(a < b || a != a ? a : b);
      case Combine::replace: break;
    }
    return update;
  }
}

/// out = data; then slice i of updates goes to element first[i].
Result<void> scatter(std::string_view node, const Tensor& data, const Slices& slices, const Tensor& updates,
                     Tensor& out, Combine how) {
  if (updates.dtype() != data.dtype() ||
      updates.elements() != static_cast<std::int64_t>(slices.first.size()) * slices.size) {
    return kernel_failed(node, fmt::format("updates are {}, expected {} slices of {} elements", to_string(updates.desc()),
                                           slices.first.size(), slices.size));
  }
  if (out.bytes() != data.bytes() && data.byte_size() != 0) std::memcpy(out.mutable_bytes(), data.bytes(), data.byte_size());
  if (how == Combine::replace) {
    const std::size_t width = dtype_bits(data.dtype()) / 8, block = static_cast<std::size_t>(slices.size) * width;
    for (std::size_t i = 0; i < slices.first.size() && block != 0; ++i) {
      std::memcpy(out.mutable_bytes() + static_cast<std::size_t>(slices.first[i]) * width, updates.bytes() + i * block, block);
    }
    return {};
  }
  return on_element<kNumber | kBool>(node, data.dtype(), [&](auto e) {
    using T = typename decltype(e)::Type;
    T* y = out.as_mutable<T>().data();
    const T* u = updates.as<T>().data();
    for (const std::int64_t first : slices.first) {
      for (std::int64_t k = 0; k < slices.size; ++k) y[first + k] = combined(how, y[first + k], *u++);
    }
  });
}

Result<Combine> read_reduction(const KernelSpec& spec) {
  const std::string name = spec.attrs().get_string("reduction", "none");
  const auto how = combine_of(name);
  if (!how) return unsupported_node(spec, fmt::format("reduction = \"{}\"", name));
  if (auto refusal = refuse_element(spec, 0, *how == Combine::replace ? kWholeBytes : (kNumber | kBool))) return *refusal;
  return *how;
}

Result<std::unique_ptr<Kernel>> make_scatter_elements(const KernelSpec& spec) {
  MST_TRY(const Combine how, read_reduction(spec));
  return make_function_kernel([node = std::string(spec.name()), how,
                               axis = spec.attrs().get_int("axis", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& data = args.input(0);
    MST_TRY(const std::size_t d, resolve_axis(node, axis, data.shape().size()));
    MST_TRY(std::vector<std::int64_t> targets, element_targets(node, data.shape(), args.input(1), d));
    return scatter(node, data, Slices{std::move(targets), 1}, args.input(2), args.output(0), how);
  });
}
Result<std::unique_ptr<Kernel>> make_scatter_nd(const KernelSpec& spec) {
  MST_TRY(const Combine how, read_reduction(spec));
  return make_function_kernel([node = std::string(spec.name()), how](KernelArgs& args) -> Result<void> {
    const Tensor& data = args.input(0);
    MST_TRY(const Slices slices, named_slices(node, data.shape(), args.input(1), 0));
    return scatter(node, data, slices, args.input(2), args.output(0), how);
  });
}

constexpr KernelEntry kEntries[] = {
    {"Gather", make_gather},
    {"GatherElements", make_gather_elements},
    {"GatherND", make_gather_nd},
    {"Scatter", make_scatter_elements},
    {"ScatterElements", make_scatter_elements},
    {"ScatterND", make_scatter_nd},
};

}  // namespace

std::span<const KernelEntry> kernels_indexing() { return kEntries; }

}  // namespace millstream
