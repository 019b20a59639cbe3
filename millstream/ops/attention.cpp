// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention and rotary positions (opset 23).
#include <fmt/format.h>

#include <algorithm>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

struct Heads {
  Dim batch, heads, length, size;
};

// [batch, heads, length, size], or [batch, length, heads * size] with the number of heads as an
// attribute.
Result<Heads> heads_of(const Operands& in, std::size_t i, std::string_view what,
                       std::string_view attribute) {
  Heads out;
  const Dims* d = in.dims(i);
  if (d == nullptr) return out;
  if (d->size() == 4) return Heads{(*d)[0], (*d)[1], (*d)[2], (*d)[3]};
  const std::int64_t heads = in.attrs().get_int(attribute, 0);
  if (heads < 1)
    return in.error(
        fmt::format("{} has rank 3, so {} must be at least 1, have {}", what, attribute, heads));
  out = Heads{(*d)[0], Dim::of(heads), (*d)[1], Dim{}};
  if ((*d)[2].known()) {
    if (*(*d)[2].value % heads != 0) {
      return in.error(
          fmt::format("{} {} does not divide into {} heads", what, to_string(*d), heads));
    }
    out.size = Dim::of(*(*d)[2].value / heads);
  }
  return out;
}

// Inputs Q, K, V, attn_mask, past_key, past_value; outputs Y, present_key, present_value,
// qk_matmul_output.
Descs attention(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "Q", types::kFloat));
  MST_TRY(const DType q_type, in.common_dtype({0, 1, 4}));
  MST_TRY(const DType v_type, in.common_dtype({2, 5}));
  for (std::size_t i = 0; i < 3; ++i)
    MST_TRY_VOID(in.expect_rank(i, i == 0 ? "Q" : i == 1 ? "K" : "V", 3, 4));
  MST_TRY_VOID(in.expect_rank(3, "attn_mask", 1, 4));
  MST_TRY_VOID(in.expect_rank(4, "past_key", 4, 4));
  MST_TRY_VOID(in.expect_rank(5, "past_value", 4, 4));
  if (in.has(4) != in.has(5))
    return in.error("has only one of past_key and past_value, expected both or none");
  MST_TRY(const Heads q, heads_of(in, 0, "Q", "q_num_heads"));
  MST_TRY(const Heads k, heads_of(in, 1, "K", "kv_num_heads"));
  MST_TRY(const Heads v, heads_of(in, 2, "V", "kv_num_heads"));
  MST_TRY_VOID(in.same(q.size, k.size, "head sizes of Q and K"));
  MST_TRY_VOID(in.same(k.heads, v.heads, "heads of K and V"));
  MST_TRY_VOID(in.same(k.length, v.length, "lengths of K and V"));
  MST_TRY(Dim batch, in.same(q.batch, k.batch, "batches of Q and K"));
  MST_TRY(batch, in.same(batch, v.batch, "batches of Q and V"));
  if (q.heads.known() && k.heads.known() &&
      (*k.heads.value == 0 || *q.heads.value % *k.heads.value != 0)) {
    return in.error(fmt::format("{} query heads do not divide into {} key heads", *q.heads.value,
                                *k.heads.value));
  }
  Dim total = k.length;
  if (in.has(4)) {
    const Dims* past = in.dims(4);
    total = past == nullptr ? Dim{} : plus(k.length, (*past)[2]);
    if (past != nullptr) {
      MST_TRY_VOID(in.same((*past)[1], k.heads, "heads of past_key and K"));
      MST_TRY_VOID(in.same((*past)[3], k.size, "head sizes of past_key and K"));
    }
    if (const Dims* past_v = in.dims(5)) {
      MST_TRY_VOID(in.same((*past_v)[1], v.heads, "heads of past_value and V"));
      MST_TRY_VOID(in.same((*past_v)[3], v.size, "head sizes of past_value and V"));
    }
  }
  std::vector<TensorDesc> out(4);
  out[0].dtype = q_type;
  if (const Dims* d = in.dims(0)) {
    out[0].shape = d->size() == 4 ? Dims{batch, q.heads, q.length, v.size}
                                  : Dims{batch, q.length, times(q.heads, v.size)};
  }
  out[1] = described(q_type, Dims{batch, k.heads, total, k.size});
  out[2] = described(v_type, Dims{batch, v.heads, total, v.size});
  out[3] = described(q_type, Dims{batch, q.heads, q.length, total});
  if (in.dims(3) != nullptr && in.dims(3)->size() >= 2) {
    MST_TRY_VOID(expect_broadcasts_to(in, "attn_mask", *in.dims(3), *out[3].shape));
  }
  if (c.output_count > 4)
    return in.error(fmt::format("has {} outputs, expected at most 4", c.output_count));
  out.resize(c.output_count);
  return out;
}

Descs rotary(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.common_dtype({0, 1, 2}));
  MST_TRY_VOID(in.expect_types(3, "position_ids", types::kInt64));
  MST_TRY_VOID(in.expect_rank(0, "X", 3, 4));
  MST_TRY_VOID(in.expect_rank(3, "position_ids", 2, 2));
  const std::size_t cache_rank = in.has(3) ? 2 : 3;
  MST_TRY_VOID(in.expect_rank(1, "cos_cache", cache_rank, cache_rank));
  MST_TRY_VOID(in.expect_rank(2, "sin_cache", cache_rank, cache_rank));
  MST_TRY_VOID(heads_of(in, 0, "X", "num_heads"));
  return std::vector<TensorDesc>{in.desc(0)};
}

// Two products over every score, and a softmax of 10 flops a score.
OpCost attention_cost(const Attrs& attrs, InputDescs inputs, OutputDescs outputs) {
  double scores = 0;
  double sizes = 0;  // head sizes of K and V together
  const TensorDesc* q = inputs[0];
  const TensorDesc* k = inputs[1];
  const TensorDesc* v = inputs[2];
  if (q != nullptr && k != nullptr && v != nullptr && q->is_static() && k->is_static() &&
      v->is_static()) {
    const auto qd = q->dims(), kd = k->dims(), vd = v->dims();
    const double past = inputs.size() > 4 && inputs[4] != nullptr && inputs[4]->is_static() &&
                                inputs[4]->dims().size() == 4
                            ? static_cast<double>(inputs[4]->dims()[2])
                            : 0.0;
    if (qd.size() == 4 && kd.size() == 4 && vd.size() == 4) {
      scores = static_cast<double>(qd[0]) * static_cast<double>(qd[1]) *
               static_cast<double>(qd[2]) * (static_cast<double>(kd[2]) + past);
      sizes = static_cast<double>(kd[3]) + static_cast<double>(vd[3]);
    } else if (qd.size() == 3 && kd.size() == 3 && vd.size() == 3) {
      const double heads =
          std::max<double>(1, static_cast<double>(attrs.get_int("q_num_heads", 1)));
      const double kv = std::max<double>(1, static_cast<double>(attrs.get_int("kv_num_heads", 1)));
      scores = static_cast<double>(qd[0]) * heads * static_cast<double>(qd[1]) *
               (static_cast<double>(kd[1]) + past);
      sizes = (static_cast<double>(kd[2]) + static_cast<double>(vd[2])) / kv;
    }
  }
  return {scores * (2 * sizes + 10), traffic(inputs, outputs)};
}

constexpr OpSchema kTable[] = {
    {"Attention", "", 23, 23, 3, 6, attention, attention_cost},
    {"RotaryEmbedding", "", 23, 23, 3, 4, rotary, elementwise_cost<4>},
};

}  // namespace

std::span<const OpSchema> table_attention() { return kTable; }

}  // namespace millstream
