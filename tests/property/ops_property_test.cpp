// SPDX-License-Identifier: Apache-2.0
// Random calls of every operator. Whatever the inputs: no crash; and what is found with less
// knowledge never contradicts what is found with more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "millstream/ops/op.h"
#include "tests/random_graph.h"

namespace millstream::testing {
namespace {

constexpr std::int64_t kOdd[] = {0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 -1,
                                 -2,
                                 7,
                                 64,
                                 std::int64_t{1} << 31,
                                 std::int64_t{1} << 48,
                                 std::int64_t{1} << 62,
                                 INT64_MAX,
                                 INT64_MIN};

std::int64_t number(Random& random) {
  return random.chance(0.9) ? static_cast<std::int64_t>(random.below(5))
                            : kOdd[random.below(std::size(kOdd))];
}

std::vector<std::int64_t> numbers(Random& random) {
  std::vector<std::int64_t> out(random.below(5));
  for (std::int64_t& n : out) n = number(random);
  return out;
}

DType dtype(Random& random) {
  constexpr DType kCommon[] = {DType::f32, DType::f32,     DType::i64, DType::i64,
                               DType::i32, DType::boolean, DType::u8,  DType::f16};
  return random.chance(0.95) ? kCommon[random.below(std::size(kCommon))]
                             : static_cast<DType>(random.below(27));
}

// Names that shape functions read, with values of their kinds.
Attrs attributes(Random& random) {
  constexpr std::string_view kInts[] = {"axis",
                                        "group",
                                        "keepdims",
                                        "k",
                                        "to",
                                        "num_outputs",
                                        "blocksize",
                                        "batch_dims",
                                        "ceil_mode",
                                        "hidden_size",
                                        "layout",
                                        "num_groups",
                                        "size",
                                        "q_num_heads",
                                        "kv_num_heads",
                                        "num_heads",
                                        "allowzero",
                                        "transA",
                                        "transB",
                                        "onesided",
                                        "block_size",
                                        "dtype",
                                        "output_dtype",
                                        "output_datatype",
                                        "num_scan_inputs",
                                        "start",
                                        "end",
                                        "noop_with_empty_axes",
                                        "training_mode",
                                        "fmod",
                                        "stash_type",
                                        "output_height",
                                        "output_width",
                                        "broadcast",
                                        "is_test",
                                        "p",
                                        "time_axis"};
  constexpr std::string_view kLists[] = {
      "axes", "pads",  "strides", "dilations", "kernel_shape", "output_shape", "output_padding",
      "perm", "split", "starts",  "ends",      "pooled_shape", "shape"};
  constexpr std::string_view kEquations[] = {
      "ij,jk->ik", "...i,...i->...", "ii->i", "i", "ij->ji", ",", "->", "a...b->ba"};
  Attrs out;
  for (const std::string_view name : kInts) {
    if (random.chance(0.3)) out.set(std::string(name), number(random));
  }
  for (const std::string_view name : kLists) {
    if (random.chance(0.4)) out.set(std::string(name), numbers(random));
  }
  if (random.chance(0.2))
    out.set("auto_pad", std::string(random.chance(0.5) ? "SAME_UPPER" : "VALID"));
  if (random.chance(0.5)) out.set("reduction", std::string(random.chance(0.5) ? "none" : "add"));
  if (random.chance(0.9))
    out.set("equation", std::string(kEquations[random.below(std::size(kEquations))]));
  if (random.chance(0.9))
    out.set("direction", std::string(random.chance(0.5) ? "LEFT" : "bidirectional"));
  if (random.chance(0.3)) out.set("keep_aspect_ratio_policy", std::string("not_larger"));
  if (random.chance(0.3))
    out.set("coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  if (random.chance(0.3))
    out.set("scales", std::vector<float>(random.below(4), random.chance(0.5) ? 2.0f : -1e30f));
  return out;
}

Tensor small_tensor(Random& random, DType type) {
  const bool scalar = random.chance(0.3);
  Tensor t(type, scalar ? std::vector<std::int64_t>{}
                        : std::vector<std::int64_t>{static_cast<std::int64_t>(random.below(5))});
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const std::int64_t n = number(random);
    const std::size_t width = dtype_bits(type) / 8;
    const float f =
        random.chance(0.9) ? static_cast<float>(n) : std::numeric_limits<float>::quiet_NaN();
    if (type == DType::f32) {
      std::memcpy(t.mutable_bytes() + 4 * i, &f, 4);
    } else if (width >= 1 && width <= 8) {
      std::memcpy(t.mutable_bytes() + width * static_cast<std::size_t>(i), &n, width);
    }
  }
  return t;
}

// Each of the two may be unknown anywhere; where both know, they agree.
bool agree(const TensorDesc& less, const TensorDesc& more) {
  if (less.dtype != DType::undefined && more.dtype != DType::undefined && less.dtype != more.dtype)
    return false;
  if (!less.shape || !more.shape) return true;
  if (less.shape->size() != more.shape->size()) return false;
  for (std::size_t i = 0; i < less.shape->size(); ++i) {
    const Dim& a = (*less.shape)[i];
    const Dim& b = (*more.shape)[i];
    if (a.known() && b.known() && *a.value != *b.value) return false;
  }
  return true;
}

TEST(OpsProperty, LessKnowledgeNeverContradictsMore) {
  const std::uint64_t count = property_count(300);
  std::size_t compared = 0;
  for (const OpSchema& row : all_ops()) {
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      Random random(seed * 1000 + static_cast<std::uint64_t>(&row - all_ops().data()));
      const int opset = row.first_opset + static_cast<int>(random.below(static_cast<std::uint64_t>(
                                              row.last_opset - row.first_opset + 1)));
      const std::size_t most =
          static_cast<std::size_t>(std::min(row.max_inputs, row.min_inputs + 3));
      const std::size_t least = static_cast<std::size_t>(row.min_inputs);
      const std::size_t inputs = least + random.below(most - least + 1);
      const DType common = dtype(random);
      const std::vector<std::int64_t> shape = numbers(random);
      std::vector<TensorDesc> descs(inputs);
      std::vector<Tensor> tensors(inputs);
      std::vector<const TensorDesc*> known(inputs), weak_descs(inputs);
      std::vector<const Tensor*> values(inputs);
      std::vector<TensorDesc> weak(inputs);
      for (std::size_t i = 0; i < inputs; ++i) {
        const DType type = random.chance(0.7) ? common : dtype(random);
        descs[i] = TensorDesc::of(type, random.chance(0.7) ? shape : numbers(random));
        for (Dim& d : *descs[i].shape) {
          if (*d.value < 0) d.value = 1;
        }
        if (random.chance(0.5) && type != DType::undefined && type != DType::string) {
          tensors[i] = small_tensor(random, random.chance(0.6) ? DType::i64 : type);
          descs[i] = tensors[i].desc();
          values[i] = &tensors[i];
        }
        known[i] = &descs[i];
        weak[i] = descs[i];
        for (Dim& d : *weak[i].shape) {
          if (random.chance(0.3)) d = random.chance(0.5) ? Dim::named("N") : Dim{};
        }
        if (random.chance(0.1)) weak[i].shape.reset();
        if (random.chance(0.1)) weak[i].dtype = DType::undefined;
        weak_descs[i] = &weak[i];
        if (i >= least && random.chance(0.2))
          known[i] = weak_descs[i] = nullptr, values[i] = nullptr;
      }
      // One symbol must not stand for two lengths.
      for (TensorDesc& d : weak) {
        if (!d.shape) continue;
        for (Dim& dim : *d.shape) dim.symbol.clear();
      }
      const Attrs attrs = attributes(random);
      const std::size_t outputs = row.type == "TopK"                    ? 2
                                  : row.type == "DynamicQuantizeLinear" ? 3
                                                                        : 1 + random.below(2);
      const auto full =
          row.shape(ShapeContext{"n", row.type, attrs, opset, known, values, outputs});
      std::vector<const Tensor*> weak_values = values;
      for (const Tensor*& v : weak_values) {
        if (random.chance(0.5)) v = nullptr;
      }
      const auto less =
          row.shape(ShapeContext{"n", row.type, attrs, opset, weak_descs, weak_values, outputs});
      if (!full.ok()) continue;
      // What opset 6 lays out in its own way is refused unless it is seen to be the common case.
      if (opset < 7 && !less.ok() && less.error().code == ErrorCode::unsupported_operator) continue;
      ASSERT_TRUE(less.ok()) << row.type << " seed " << seed << ": " << to_string(less.error());
      ASSERT_EQ(full->size(), less->size()) << row.type << " seed " << seed;
      for (std::size_t i = 0; i < full->size(); ++i) {
        ASSERT_TRUE(agree((*less)[i], (*full)[i]))
            << row.type << " seed " << seed << ": " << to_string((*less)[i]) << " against "
            << to_string((*full)[i]);
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, all_ops().size() * count / 20) << "too few calls were valid to mean anything";
}

}  // namespace
}  // namespace millstream::testing
