// SPDX-License-Identifier: Apache-2.0
// Operators that only place elements (bytes are copied, whatever their type), and those that read shapes.
#include <algorithm>
#include <cstring>

#include "millstream/ops/evaluate.h"
#include "millstream/ops/numbers.h"

namespace millstream {
namespace {

using Values = std::optional<std::vector<Tensor>>;
using Dims64 = std::vector<std::int64_t>;

bool fits(const TensorDesc& desc) {
  const auto bytes = desc.bytes();
  return bytes && *bytes <= kMaxEvaluatedBytes && dtype_bits(desc.dtype) >= 8;
}

bool present(const ShapeContext& c, std::size_t i) { return i < c.values.size() && c.values[i] != nullptr; }

/// Elements of an integer input; nullopt when absent or of another type.
std::optional<Dims64> ints(const ShapeContext& c, std::size_t i) {
  if (!present(c, i)) return std::nullopt;
  const auto x = Numbers::of(*c.values[i]);
  if (!x || x->is_real()) return std::nullopt;
  return x->whole;
}

std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

Dims64 strides_of(std::span<const std::int64_t> dims) {
  Dims64 out(dims.size(), 1);
  for (std::size_t k = dims.size(); k-- > 1;) out[k - 1] = out[k] * dims[k];
  return out;
}

/// Element i of the result is element from(position) of `in`, position being i's coordinates.
template <class From>
Values place(const Tensor& in, const TensorDesc& desc, From from) {
  if (!fits(desc) || desc.dtype != in.dtype()) return std::nullopt;
  Tensor out(desc.dtype, desc.dims());
  const std::size_t width = dtype_bits(desc.dtype) / 8;
  const std::span<const std::int64_t> dims = out.shape();
  Dims64 at(dims.size(), 0);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const std::int64_t source = from(at);
    if (source < 0 || source >= in.elements()) return std::nullopt;
    std::memcpy(out.mutable_bytes() + static_cast<std::size_t>(i) * width,
                in.bytes() + static_cast<std::size_t>(source) * width, width);
    for (std::size_t k = dims.size(); k-- > 0;) {
      if (++at[k] < dims[k]) break;
      at[k] = 0;
    }
  }
  return std::vector<Tensor>{std::move(out)};
}

Values shape_of(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 1 || c.inputs[0] == nullptr || !c.inputs[0]->shape) return std::nullopt;
  const auto& dims = *c.inputs[0]->shape;
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t begin = c.attrs.get_int("start", 0);
  std::int64_t end = c.attrs.get_int("end", rank);
  begin = std::clamp<std::int64_t>(begin < 0 ? begin + rank : begin, 0, rank);
  end = std::clamp<std::int64_t>(end < 0 ? end + rank : end, 0, rank);
  Numbers out = Numbers::zeros(DType::i64, {std::max<std::int64_t>(0, end - begin)});
  for (std::size_t i = 0; i < out.whole.size(); ++i) {
    const Dim& d = dims[static_cast<std::size_t>(begin) + i];
    if (!d.known()) return std::nullopt;
    out.whole[i] = *d.value;
  }
  return std::vector<Tensor>{out.tensor()};
}

Values size_of(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 1 || c.inputs[0] == nullptr) return std::nullopt;
  if (!c.inputs[0]->shape) return std::nullopt;
  TensorDesc counted = *c.inputs[0];
  if (counted.dtype == DType::undefined) counted.dtype = DType::u8;
  const auto n = counted.elements();
  if (!n) return std::nullopt;
  Numbers out = Numbers::zeros(DType::i64, {});
  out.whole[0] = *n;
  return std::vector<Tensor>{out.tensor()};
}

Values same_bytes(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || !present(c, 0) || !fits(outputs[0])) return std::nullopt;
  if (outputs[0].dtype != c.values[0]->dtype() || *outputs[0].elements() != c.values[0]->elements()) return std::nullopt;
  return std::vector<Tensor>{c.values[0]->reshaped(outputs[0].dims())};
}

Values constant_of_shape(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || !fits(outputs[0])) return std::nullopt;
  const Tensor* value = c.attrs.get_tensor("value");
  if (value == nullptr) {
    if (outputs[0].dtype != DType::f32) return std::nullopt;
    return std::vector<Tensor>{Tensor(DType::f32, outputs[0].dims())};
  }
  if (value->elements() != 1) return std::nullopt;
  return place(*value, outputs[0], [](const Dims64&) { return std::int64_t{0}; });
}

Values constant(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  const Tensor* value = c.attrs.get_tensor("value");
  if (outputs.size() != 1 || value == nullptr || value->byte_size() > kMaxEvaluatedBytes) return std::nullopt;
  return std::vector<Tensor>{*value};
}

Values gather(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 2) return std::nullopt;
  const Tensor& data = *c.values[0];
  const auto index = ints(c, 1);
  const auto axis = axis_of(c.attrs.get_int("axis", 0), data.shape().size());
  if (!index || !axis || !fits(outputs[0])) return std::nullopt;
  const Dims64 strides = strides_of(data.shape());
  const Dims64 index_strides = strides_of(c.values[1]->shape());
  const std::size_t index_rank = index_strides.size();
  if (outputs[0].shape->size() + 1 != data.shape().size() + index_rank) return std::nullopt;
  const std::int64_t extent = data.shape()[*axis];
  return place(data, outputs[0], [&](const Dims64& at) {
    std::int64_t which = 0, source = 0;
    for (std::size_t k = 0; k < index_rank; ++k) which += at[*axis + k] * index_strides[k];
    std::int64_t i = (*index)[static_cast<std::size_t>(which)];
    if (i < 0) i += extent;
    if (i < 0 || i >= extent) return std::int64_t{-1};
    for (std::size_t k = 0; k < *axis; ++k) source += at[k] * strides[k];
    source += i * strides[*axis];
    for (std::size_t k = *axis + 1; k < strides.size(); ++k) source += at[k + index_rank - 1] * strides[k];
    return source;
  });
}

Values transpose(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 1) return std::nullopt;
  const Tensor& data = *c.values[0];
  const std::size_t rank = data.shape().size();
  Dims64 perm = c.attrs.get_ints("perm");
  if (perm.empty()) {
    for (std::size_t k = rank; k-- > 0;) perm.push_back(static_cast<std::int64_t>(k));
  }
  if (perm.size() != rank) return std::nullopt;
  for (const std::int64_t p : perm) {
    if (p < 0 || p >= static_cast<std::int64_t>(rank)) return std::nullopt;
  }
  const Dims64 strides = strides_of(data.shape());
  return place(data, outputs[0], [&](const Dims64& at) {
    std::int64_t source = 0;
    for (std::size_t k = 0; k < rank; ++k) source += at[k] * strides[static_cast<std::size_t>(perm[k])];
    return source;
  });
}

Values expand(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 2 || !fits(outputs[0])) return std::nullopt;
  const auto index = broadcast_index(c.values[0]->shape(), outputs[0].dims());
  if (!index) return std::nullopt;
  std::size_t i = 0;
  return place(*c.values[0], outputs[0], [&](const Dims64&) { return static_cast<std::int64_t>((*index)[i++]); });
}

Values tile(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 2) return std::nullopt;
  const Tensor& data = *c.values[0];
  const Dims64 strides = strides_of(data.shape());
  if (!fits(outputs[0]) || outputs[0].shape->size() != strides.size()) return std::nullopt;
  return place(data, outputs[0], [&](const Dims64& at) {
    std::int64_t source = 0;
    for (std::size_t k = 0; k < strides.size(); ++k) source += at[k] % data.shape()[k] * strides[k];
    return source;
  });
}

Values slice(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || !present(c, 0)) return std::nullopt;
  const Tensor& data = *c.values[0];
  const std::size_t rank = data.shape().size();
  Dims64 starts, axes, steps;
  if (c.inputs.size() == 1) {
    starts = c.attrs.get_ints("starts");
    axes = c.attrs.get_ints("axes");
  } else {
    const auto given = ints(c, 1);
    if (!given) return std::nullopt;
    starts = *given;
    if (c.inputs.size() > 3 && c.inputs[3] != nullptr) {
      const auto a = ints(c, 3);
      if (!a) return std::nullopt;
      axes = *a;
    }
    if (c.inputs.size() > 4 && c.inputs[4] != nullptr) {
      const auto s = ints(c, 4);
      if (!s) return std::nullopt;
      steps = *s;
    }
  }
  if (axes.empty()) {
    for (std::size_t k = 0; k < starts.size(); ++k) axes.push_back(static_cast<std::int64_t>(k));
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (axes.size() != starts.size() || steps.size() != starts.size()) return std::nullopt;
  Dims64 first(rank, 0), step(rank, 1);
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const auto axis = axis_of(axes[k], rank);
    if (!axis || steps[k] == 0) return std::nullopt;
    const std::int64_t extent = data.shape()[*axis];
    const std::int64_t s = starts[k] < 0 ? starts[k] + extent : starts[k];
    first[*axis] = std::clamp<std::int64_t>(s, 0, steps[k] < 0 ? std::max<std::int64_t>(0, extent - 1) : extent);
    step[*axis] = steps[k];
  }
  // How far each goes is the output's desc, which the shape rule checked against the ends.
  const Dims64 strides = strides_of(data.shape());
  if (!fits(outputs[0]) || outputs[0].shape->size() != rank) return std::nullopt;
  return place(data, outputs[0], [&](const Dims64& at) {
    std::int64_t source = 0;
    for (std::size_t k = 0; k < rank; ++k) {
      const std::int64_t i = first[k] + at[k] * step[k];
      if (i < 0 || i >= data.shape()[k]) return std::int64_t{-1};
      source += i * strides[k];
    }
    return source;
  });
}

Values concat(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.empty() || !fits(outputs[0])) return std::nullopt;
  const Dims64 dims = outputs[0].dims();
  const auto axis = axis_of(c.attrs.get_int("axis", 0), dims.size());
  if (!axis) return std::nullopt;
  Tensor out(outputs[0].dtype, dims);
  const std::size_t width = dtype_bits(out.dtype()) / 8;
  std::size_t outer = 1, row = width;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (k < *axis) outer *= static_cast<std::size_t>(dims[k]);
    if (k > *axis) row *= static_cast<std::size_t>(dims[k]);
  }
  const std::size_t out_block = row * static_cast<std::size_t>(dims[*axis]);
  std::size_t begin = 0;
  for (const Tensor* part : c.values) {
    if (part == nullptr || part->dtype() != out.dtype() || part->shape().size() != dims.size()) return std::nullopt;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (k != *axis && part->shape()[k] != dims[k]) return std::nullopt;
    }
    const std::size_t block = row * static_cast<std::size_t>(part->shape()[*axis]);
    if (begin + block > out_block) return std::nullopt;
    for (std::size_t i = 0; i < outer && block != 0; ++i) {
      std::memcpy(out.mutable_bytes() + i * out_block + begin, part->bytes() + i * block, block);
    }
    begin += block;
  }
  if (begin != out_block) return std::nullopt;
  return std::vector<Tensor>{std::move(out)};
}

Values split(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (!present(c, 0)) return std::nullopt;
  const Tensor& data = *c.values[0];
  const auto axis = axis_of(c.attrs.get_int("axis", 0), data.shape().size());
  if (!axis) return std::nullopt;
  const Dims64 strides = strides_of(data.shape());
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (const TensorDesc& desc : outputs) {
    if (!fits(desc) || desc.shape->size() != strides.size()) return std::nullopt;
    auto part = place(data, desc, [&](const Dims64& at) {
      std::int64_t source = begin * strides[*axis];
      for (std::size_t k = 0; k < strides.size(); ++k) source += at[k] * strides[k];
      return source;
    });
    if (!part) return std::nullopt;
    begin += part->front().shape()[*axis];
    out.push_back(std::move(part->front()));
  }
  if (begin != data.shape()[*axis]) return std::nullopt;
  return out;
}

Values where(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 3 || !fits(outputs[0])) return std::nullopt;
  const Dims64 dims = outputs[0].dims();
  const Tensor& yes = *c.values[1];
  const Tensor& no = *c.values[2];
  if (c.values[0]->dtype() != DType::boolean || yes.dtype() != outputs[0].dtype || no.dtype() != outputs[0].dtype) {
    return std::nullopt;
  }
  const auto test = broadcast_index(c.values[0]->shape(), dims);
  const auto a = broadcast_index(yes.shape(), dims);
  const auto b = broadcast_index(no.shape(), dims);
  if (!test || !a || !b) return std::nullopt;
  Tensor out(outputs[0].dtype, dims);
  const std::size_t width = dtype_bits(out.dtype()) / 8;
  for (std::size_t i = 0; i < test->size(); ++i) {
    const bool take = c.values[0]->bytes()[(*test)[i]] != std::byte{0};
    std::memcpy(out.mutable_bytes() + i * width, (take ? yes.bytes() + (*a)[i] * width : no.bytes() + (*b)[i] * width),
                width);
  }
  return std::vector<Tensor>{std::move(out)};
}

Values non_zero(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 1) return std::nullopt;
  const auto x = Numbers::of(*c.values[0]);
  if (!x) return std::nullopt;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < x->size(); ++i) {
    if (x->is_real() ? x->real[i] != 0 : x->whole[i] != 0) found.push_back(i);
  }
  const std::size_t rank = x->dims.size();
  if (rank == 0 || rank * found.size() * 8 > kMaxEvaluatedBytes) return std::nullopt;
  const Dims64 strides = strides_of(x->dims);
  Numbers out = Numbers::zeros(DType::i64, {static_cast<std::int64_t>(rank), static_cast<std::int64_t>(found.size())});
  for (std::size_t k = 0; k < rank; ++k) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      out.whole[k * found.size() + i] = static_cast<std::int64_t>(found[i]) / strides[k] % x->dims[k];
    }
  }
  return std::vector<Tensor>{out.tensor()};
}

// Ascending by type.
constexpr Evaluator kRows[] = {
    {"Concat", concat},
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Expand", expand},
    {"Flatten", same_bytes},
    {"Gather", gather},
    {"Identity", same_bytes},
    {"NonZero", non_zero},
    {"Reshape", same_bytes},
    {"Shape", shape_of, false},
    {"Size", size_of, false},
    {"Slice", slice},
    {"Split", split},
    {"Squeeze", same_bytes},
    {"Tile", tile},
    {"Transpose", transpose},
    {"Unsqueeze", same_bytes},
    {"Where", where},
};

}  // namespace

std::span<const Evaluator> movement_evaluators() { return kRows; }

}  // namespace millstream
