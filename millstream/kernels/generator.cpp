// SPDX-License-Identifier: Apache-2.0
// Operators that make data from shapes and attributes.
#include <algorithm>
#include <cstring>

#include "millstream/graph/fill.h"
#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/cast.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

Result<std::unique_ptr<Kernel>> make_shape(const KernelSpec& spec) {
  return make_function_kernel([node = std::string(spec.name()), start = spec.attrs().get_int("start", 0),
                               has_end = spec.attrs().has("end"),
                               end = spec.attrs().get_int("end", 0)](KernelArgs& args) -> Result<void> {
    const auto shape = args.input(0).shape();
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto at = [rank](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
    const std::int64_t first = at(start), last = has_end ? at(end) : rank;
    const auto out = args.output(0).as_mutable<std::int64_t>();
    if (static_cast<std::int64_t>(out.size()) != std::max<std::int64_t>(0, last - first)) {
      return kernel_failed(node, "output shape does not fit start and end");
    }
    for (std::int64_t i = first; i < last; ++i) out[static_cast<std::size_t>(i - first)] = shape[static_cast<std::size_t>(i)];
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_size(const KernelSpec&) {
  return make_function_kernel(
      [](KernelArgs& args) { args.output(0).as_mutable<std::int64_t>()[0] = args.input(0).elements(); });
}

/// The tensor that a Constant node's attribute holds; nullopt for strings and sparse tensors.
std::optional<Tensor> constant_of(const Attrs& attrs) {
  if (const Tensor* value = attrs.get_tensor("value")) return *value;
  if (attrs.has("value_float")) {
    Tensor t(DType::f32, {});
    t.as_mutable<float>()[0] = attrs.get_float("value_float", 0);
    return t;
  }
  if (attrs.has("value_int")) {
    Tensor t(DType::i64, {});
    t.as_mutable<std::int64_t>()[0] = attrs.get_int("value_int", 0);
    return t;
  }
  if (attrs.has("value_floats")) {
    const auto values = attrs.get_floats("value_floats");
    Tensor t(DType::f32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), t.as_mutable<float>().begin());
    return t;
  }
  if (attrs.has("value_ints")) {
    const auto values = attrs.get_ints("value_ints");
    Tensor t(DType::i64, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), t.as_mutable<std::int64_t>().begin());
    return t;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Kernel>> make_constant(const KernelSpec& spec) {
  const std::optional<Tensor> value = constant_of(spec.attrs());
  if (!value || value->dtype() == DType::string) {
    return unsupported_node(spec, "the value is neither a tensor of numbers nor a number nor a list of them");
  }
  return make_function_kernel([node = std::string(spec.name()), tensor = *value](KernelArgs& args) -> Result<void> {
    Tensor& out = args.output(0);
    if (out.byte_size() != tensor.byte_size() || out.dtype() != tensor.dtype()) {
      return kernel_failed(node, fmt::format("value is {}, the output {}", to_string(tensor.desc()), to_string(out.desc())));
    }
    if (tensor.byte_size() != 0) std::memcpy(out.mutable_bytes(), tensor.bytes(), tensor.byte_size());
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_constant_of_shape(const KernelSpec& spec) {
  Tensor value(DType::f32, {1});
  if (const Tensor* given = spec.attrs().get_tensor("value")) value = *given;
  if (value.elements() != 1 || !contains(kWholeBytes, value.dtype())) {
    return unsupported_node(spec, fmt::format("value is {}", to_string(value.desc())));
  }
  return make_function_kernel([node = std::string(spec.name()), value](KernelArgs& args) -> Result<void> {
    Tensor& out = args.output(0);
    if (out.dtype() != value.dtype()) return wrong_element(node, out.dtype());
    with_width(out.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      T* to = reinterpret_cast<T*>(out.mutable_bytes());
      std::fill(to, to + out.elements(), *reinterpret_cast<const T*>(value.bytes()));
    });
    return {};
  });
}

/// Element i is start + i * delta, computed in the element type.
Result<std::unique_ptr<Kernel>> make_range(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber)) return *refusal;
  return make_function_kernel([node = std::string(spec.name())](KernelArgs& args) -> Result<void> {
    const Tensor& start = args.input(0);
    const Tensor& delta = args.input(2);
    Tensor& out = args.output(0);
    if (start.elements() < 1 || delta.elements() < 1 || delta.dtype() != start.dtype() || out.dtype() != start.dtype()) {
      return kernel_failed(node, "start, limit and delta must be scalars of one type");
    }
    return on_element<kNumber>(node, start.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      using W = Wide<T>;
      const W first = static_cast<W>(start.as<T>()[0]), step = static_cast<W>(delta.as<T>()[0]);
      T* y = out.as_mutable<T>().data();
      for (std::int64_t i = 0; i < out.elements(); ++i) {
        if constexpr (std::is_floating_point_v<W>) {
          y[i] = static_cast<T>(first + static_cast<W>(i) * step);
        } else {
          y[i] = static_cast<T>(static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step));
        }
      }
    });
  });
}

Result<std::unique_ptr<Kernel>> make_eye_like(const KernelSpec& spec) {
  const DType type = spec.output_desc(0).dtype;
  if (type != DType::undefined && !contains(kNumber | kBool, type)) {
    return unsupported_node(spec, fmt::format("dtype {}", dtype_name(type)));
  }
  return make_function_kernel([node = std::string(spec.name()), k = spec.attrs().get_int("k", 0)](KernelArgs& args) -> Result<void> {
    Tensor& out = args.output(0);
    if (out.shape().size() != 2) return kernel_failed(node, "expected a matrix");
    const std::int64_t rows = out.shape()[0], columns = out.shape()[1];
    if (out.byte_size() != 0) std::memset(out.mutable_bytes(), 0, out.byte_size());
    return on_element<kNumber | kBool>(node, out.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      T* y = out.as_mutable<T>().data();
      for (std::int64_t r = 0; r < rows; ++r) {
        if (k > -rows - columns && k < rows + columns && r + k >= 0 && r + k < columns) {
          if constexpr (std::is_same_v<T, Bool8>) y[r * columns + r + k] = Bool8(true);
          else y[r * columns + r + k] = static_cast<T>(Wide<T>(1));
        }
      }
    });
  });
}

/// Our own: seeded data (graph/fill.h), or `value` everywhere. What text graphs use for weights and inputs.
Result<std::unique_ptr<Kernel>> make_fill(const KernelSpec& spec) {
  const Attrs& attrs = spec.attrs();
  const bool constant = attrs.has("value");
  const std::int64_t seed = attrs.get_int("seed", 0);
  const float low = attrs.get_float("low", -1.0f), high = attrs.get_float("high", 1.0f), value = attrs.get_float("value", 0.0f);
  return make_function_kernel([constant, seed, low, high, value](KernelArgs& args) {
    const auto out = args.output(0).as_mutable<float>();
    if (constant) {
      std::fill(out.begin(), out.end(), value);
    } else {
      fill_uniform(out, static_cast<std::uint64_t>(seed), low, high);
    }
  });
}

constexpr KernelEntry kEntries[] = {
    {"Constant", make_constant},
    {"ConstantOfShape", make_constant_of_shape},
    {"EyeLike", make_eye_like},
    {"Fill", make_fill},
    {"Range", make_range},
    {"Shape", make_shape},
    {"Size", make_size},
};

}  // namespace

std::span<const KernelEntry> kernels_generator() { return kEntries; }

}  // namespace millstream
