// SPDX-License-Identifier: Apache-2.0
// Operators that address elements by computed indices.
#include <fmt/format.h>

#include <algorithm>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

std::vector<TensorDesc> one(DType dtype, Dims dims) { return {described(dtype, std::move(dims))}; }

// data[.., axis, ..] -> the axis is replaced by the indices' axes.
Descs gather(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "indices", types::kIndex));
  MST_TRY_VOID(in.expect_rank(0, "data", 1, kVariadic));
  const Dims* data = in.dims(0);
  const Dims* indices = in.dims(1);
  if (data == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 0), data->size()));
  if (indices == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  MST_TRY_VOID(expect_usable_rank(in, data->size() + indices->size() - 1));
  const auto at = data->begin() + static_cast<std::ptrdiff_t>(axis);
  Dims out(data->begin(), at);
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), at + 1, data->end());
  return one(in.dtype(0), std::move(out));
}

Descs gather_elements(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "indices", types::kIndex));
  MST_TRY_VOID(in.expect_rank(0, "data", 1, kVariadic));
  if (const Dims* data = in.dims(0)) {
    MST_TRY_VOID(in.axis(in.attrs().get_int("axis", 0), data->size()));
    MST_TRY_VOID(in.expect_rank(1, "indices", data->size(), data->size()));
  }
  TensorDesc out = in.desc(1);
  out.dtype = in.dtype(0);
  return std::vector<TensorDesc>{std::move(out)};
}

// The last axis of indices [.., k] addresses k axes of data behind the batch axes.
Descs gather_nd(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "indices", types::kInt64));
  MST_TRY_VOID(in.expect_rank(0, "data", 1, kVariadic));
  MST_TRY_VOID(in.expect_rank(1, "indices", 1, kVariadic));
  const Dims* data = in.dims(0);
  const Dims* indices = in.dims(1);
  const std::int64_t batch = in.attrs().get_int("batch_dims", 0);
  if (data == nullptr || indices == nullptr || !indices->back().known()) {
    return std::vector<TensorDesc>{unknown(in.dtype(0))};
  }
  const std::int64_t k = *indices->back().value;
  if (batch < 0 || batch >= std::min(std::ssize(*data), std::ssize(*indices))) {
    return in.error(fmt::format("batch_dims is {}, expected below the ranks {} and {}", batch,
                                data->size(), indices->size()));
  }
  if (k < 1 || batch + k > std::ssize(*data)) {
    return in.error(fmt::format("indices {} address {} axes behind {} batch axes of data {}",
                                to_string(*indices), k, batch, to_string(*data)));
  }
  MST_TRY_VOID(expect_usable_rank(in, data->size() + indices->size()));
  Dims out(indices->begin(), indices->end() - 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
    MST_TRY(out[i], in.same((*data)[i], (*indices)[i], fmt::format("batch axis {}", i)));
  }
  out.insert(out.end(), data->begin() + batch + k, data->end());
  return one(in.dtype(0), std::move(out));
}

Result<void> expect_reduction(const Operands& in) {
  const std::string reduction = in.attrs().get_string("reduction", "none");
  const bool known = reduction == "none" ||
                     (in.opset() >= 16 && (reduction == "add" || reduction == "mul")) ||
                     (in.opset() >= 18 && (reduction == "min" || reduction == "max"));
  if (known) return {};
  return in.error(fmt::format(
      "reduction is \"{}\", expected none, add and mul (opset 16) or min and max (18)", reduction));
}

Descs scatter_elements(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "indices", types::kIndex));
  MST_TRY_VOID(in.common_dtype({0, 2}));
  MST_TRY_VOID(in.expect_rank(0, "data", 1, kVariadic));
  MST_TRY_VOID(expect_reduction(in));
  if (const Dims* data = in.dims(0)) {
    MST_TRY_VOID(in.axis(in.attrs().get_int("axis", 0), data->size()));
    MST_TRY_VOID(in.expect_rank(1, "indices", data->size(), data->size()));
    MST_TRY_VOID(in.expect_rank(2, "updates", data->size(), data->size()));
  }
  const Dims* indices = in.dims(1);
  const Dims* updates = in.dims(2);
  if (indices != nullptr && updates != nullptr && indices->size() == updates->size()) {
    for (std::size_t i = 0; i < indices->size(); ++i) {
      MST_TRY_VOID(
          in.same((*indices)[i], (*updates)[i], fmt::format("axis {} of indices and updates", i)));
    }
  }
  return std::vector<TensorDesc>{in.desc(0)};
}

// indices [.., k]; updates are [.., the axes of data behind the first k].
Descs scatter_nd(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "indices", types::kInt64));
  MST_TRY_VOID(in.common_dtype({0, 2}));
  MST_TRY_VOID(in.expect_rank(0, "data", 1, kVariadic));
  MST_TRY_VOID(in.expect_rank(1, "indices", 1, kVariadic));
  MST_TRY_VOID(expect_reduction(in));
  const Dims* data = in.dims(0);
  const Dims* indices = in.dims(1);
  const Dims* updates = in.dims(2);
  if (data != nullptr && indices != nullptr && indices->back().known()) {
    const std::int64_t k = *indices->back().value;
    if (k < 1 || k > std::ssize(*data)) {
      return in.error(fmt::format("indices {} address {} axes of data {}", to_string(*indices), k,
                                  to_string(*data)));
    }
    if (updates != nullptr) {
      Dims want(indices->begin(), indices->end() - 1);
      want.insert(want.end(), data->begin() + k, data->end());
      if (updates->size() != want.size()) {
        return in.error(
            fmt::format("updates are {}, expected {}", to_string(*updates), to_string(want)));
      }
      for (std::size_t i = 0; i < want.size(); ++i) {
        MST_TRY_VOID(in.same((*updates)[i], want[i], fmt::format("axis {} of updates", i)));
      }
    }
  }
  return std::vector<TensorDesc>{in.desc(0)};
}

// k is an attribute below opset 10, a one-element input from there on.
Descs top_k(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kNumeric));
  MST_TRY_VOID(in.expect_rank(0, "X", 1, kVariadic));
  std::optional<std::int64_t> k;
  if (c.opset < 10) {
    if (in.count() > 1 || !in.attrs().has("k"))
      return in.error("expected an attribute k and one input below opset 10");
    k = in.attrs().get_int("k", 0);
  } else {
    if (!in.has(1)) return in.error("has no K (input 1)");
    MST_TRY_VOID(in.expect_types(1, "K", types::kInt64));
    MST_TRY_VOID(in.expect_rank(1, "K", 0, 1));
    k = in.scalar_int(1);
  }
  TensorDesc values = in.desc(0);
  if (values.shape) {
    MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", -1), values.shape->size()));
    Dim& length = (*values.shape)[axis];
    if (k && (*k < 0 || (length.known() && *k > *length.value))) {
      return in.error(fmt::format("k is {}, expected 0 to {} (axis {} of {})", *k,
                                  length.known() ? fmt::format("{}", *length.value) : "the length",
                                  axis, to_string(*in.dims(0))));
    }
    length = k ? Dim::of(*k) : Dim{};
  }
  TensorDesc indices = values;
  indices.dtype = DType::i64;
  return std::vector<TensorDesc>{std::move(values), std::move(indices)};
}

// One column an element found.
Descs non_zero(const ShapeContext& c) {
  const Operands in(c);
  const Dims* x = in.dims(0);
  // A scalar counts as a vector of one.
  const Dim rank = x == nullptr
                       ? Dim{}
                       : Dim::of(static_cast<std::int64_t>(std::max<std::size_t>(1, x->size())));
  return one(DType::i64, Dims{rank, Dim{}});
}

Descs one_hot(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "indices", types::kNumeric));
  MST_TRY_VOID(in.expect_types(1, "depth", types::kNumeric));
  MST_TRY_VOID(in.expect_rank(1, "depth", 0, 1));
  MST_TRY_VOID(in.expect_rank(2, "values", 1, 1));
  if (in.dims(2) != nullptr)
    MST_TRY_VOID(in.same((*in.dims(2))[0], Dim::of(2), "length of values"));
  const Dims* indices = in.dims(0);
  if (indices == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(2))};
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", -1), indices->size() + 1));
  Dim depth;
  if (const auto value = in.scalar(1)) {
    if (!(*value >= 1 && *value <= 0x1p48))
      return in.error(fmt::format("depth is {}, expected at least 1", *value));
    depth = Dim::of(static_cast<std::int64_t>(*value));
  }
  MST_TRY_VOID(expect_usable_rank(in, indices->size() + 1));
  Dims out = *indices;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), std::move(depth));
  return one(in.dtype(2), std::move(out));
}

// Y, first indices, inverse indices, counts.
Descs unique(const ShapeContext& c) {
  const Operands in(c);
  const Dims* x = in.dims(0);
  std::vector<TensorDesc> out{unknown(in.dtype(0)), described(DType::i64, anonymous(1)),
                              described(DType::i64, anonymous(1)),
                              described(DType::i64, anonymous(1))};
  if (!in.attrs().has("axis")) {
    out[0].shape = anonymous(1);
    if (x != nullptr) (*out[2].shape)[0] = product(*x, 0, x->size());
  } else if (x != nullptr) {
    MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 0), x->size()));
    out[0].shape = *x;
    (*out[0].shape)[axis] = Dim{};
    (*out[2].shape)[0] = (*x)[axis];
  }
  if (c.output_count > 4)
    return in.error(fmt::format("has {} outputs, expected at most 4", c.output_count));
  out.resize(c.output_count);
  return out;
}

Descs compress(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "condition", types::kBool));
  MST_TRY_VOID(in.expect_rank(1, "condition", 1, 1));
  const Dims* x = in.dims(0);
  if (!in.attrs().has("axis")) return one(in.dtype(0), anonymous(1));
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 0), x->size()));
  Dims out = *x;
  out[axis] = Dim{};
  return one(in.dtype(0), std::move(out));
}

// boxes [batch, boxes, 4], scores [batch, classes, boxes] -> chosen [found, 3].
Descs non_max_suppression(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "boxes", {DType::f32}));
  MST_TRY_VOID(in.expect_types(1, "scores", {DType::f32}));
  MST_TRY_VOID(in.expect_rank(0, "boxes", 3, 3));
  MST_TRY_VOID(in.expect_rank(1, "scores", 3, 3));
  if (const Dims* boxes = in.dims(0)) {
    MST_TRY_VOID(in.same((*boxes)[2], Dim::of(4), "last axis of boxes"));
    if (const Dims* scores = in.dims(1)) {
      MST_TRY_VOID(in.same((*boxes)[0], (*scores)[0], "batches of boxes and scores"));
      MST_TRY_VOID(in.same((*boxes)[1], (*scores)[2], "boxes and scores of a class"));
    }
  }
  return one(DType::i64, Dims{Dim{}, Dim::of(3)});
}

// Comparison sort along the axis is bounded by 8 compares an element here: k is small in practice.
constexpr CostFn kSelectCost = per_input_cost<8>;

constexpr OpSchema kTable[] = {
    {"Compress", "", 9, 23, 2, 2, compress, move_cost, false, false, /*data_dependent=*/true},
    {"Gather", "", 6, 23, 2, 2, gather, gather_cost},
    {"GatherElements", "", 11, 23, 2, 2, gather_elements, gather_cost},
    {"GatherND", "", 11, 23, 2, 2, gather_nd, gather_cost},
    {"NonMaxSuppression", "", 10, 23, 2, 5, non_max_suppression, kSelectCost, false, false,
     /*data_dependent=*/true},
    {"NonZero", "", 9, 23, 1, 1, non_zero, move_cost, false, false, /*data_dependent=*/true},
    {"OneHot", "", 9, 23, 3, 3, one_hot, move_cost},
    {"Scatter", "", 9, 10, 3, 3, scatter_elements, move_cost},
    {"ScatterElements", "", 11, 23, 3, 3, scatter_elements, move_cost},
    {"ScatterND", "", 11, 23, 3, 3, scatter_nd, move_cost},
    {"TopK", "", 6, 23, 1, 2, top_k, kSelectCost},
    {"Unique", "", 11, 23, 1, 1, unique, kSelectCost, false, false, /*data_dependent=*/true},
};

}  // namespace

std::span<const OpSchema> table_indexing() { return kTable; }

}  // namespace millstream
