// SPDX-License-Identifier: Apache-2.0
// Attention and RotaryEmbedding of opset 23.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "millstream/kernels/product.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

struct AttentionAttrs {
  std::string node;
  bool causal;
  std::int64_t q_heads;   ///< 0 = the inputs have a head dimension
  std::int64_t kv_heads;
  std::int64_t score_output;  ///< 0 scaled product, 1 with mask, 2 after softcap, 3 after softmax
  std::optional<float> scale;
  float softcap;
  int threads;
};

/// [batch, heads, rows, width] over [batch, rows, heads * width] or [batch, heads, rows, width].
template <class T>
struct Heads {
  const T* data = nullptr;
  std::int64_t batch = 0, heads = 0, rows = 0, width = 0;
  std::int64_t batch_step = 0, head_step = 0, row_step = 0;
  const T* at(std::int64_t b, std::int64_t h) const { return data + b * batch_step + h * head_step; }
};

struct HeadDims {
  std::int64_t batch, heads, rows, width;
  bool merged;
};

Result<HeadDims> head_dims(std::string_view node, const Tensor& t, std::int64_t heads) {
  const auto shape = t.shape();
  if (shape.size() == 4) return HeadDims{shape[0], shape[1], shape[2], shape[3], false};
  if (shape.size() != 3) return kernel_failed(node, "Q, K and V need rank 3 or 4");
  if (heads < 1 || shape[2] % heads != 0) {
    return kernel_failed(node, fmt::format("{} columns do not divide into {} heads", shape[2], heads));
  }
  return HeadDims{shape[0], heads, shape[1], shape[2] / heads, true};
}

template <class T>
Heads<T> view_of(const T* data, const HeadDims& d) {
  if (d.merged) {
    return {data, d.batch, d.heads, d.rows, d.width, d.rows * d.heads * d.width, d.width, d.heads * d.width};
  }
  return {data, d.batch, d.heads, d.rows, d.width, d.heads * d.rows * d.width, d.rows * d.width, d.width};
}

/// Past rows, then the new ones, as [batch, heads, rows, width].
template <class T>
std::vector<T> joined(const T* past, std::int64_t past_rows, const Heads<T>& now) {
  const std::int64_t rows = past_rows + now.rows;
  std::vector<T> out(static_cast<std::size_t>(now.batch * now.heads * rows * now.width));
  for (std::int64_t b = 0; b < now.batch; ++b) {
    for (std::int64_t h = 0; h < now.heads; ++h) {
      T* to = out.data() + (b * now.heads + h) * rows * now.width;
      if (past_rows > 0) to = std::copy_n(past + (b * now.heads + h) * past_rows * now.width, past_rows * now.width, to);
      for (std::int64_t r = 0; r < now.rows; ++r) to = std::copy_n(now.at(b, h) + r * now.row_step, now.width, to);
    }
  }
  return out;
}

/// c[m, n] = alpha * a[m, k] x op(b), with row steps.
template <class T>
void strided_product(bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
                     std::int64_t lda, const T* b, std::int64_t ldb, T* c, std::int64_t ldc) {
  if constexpr (std::is_same_v<T, float>) {
    onednn::sgemm(false, trans_b, m, n, k, alpha, a, lda, b, ldb, 0.0f, c, ldc);
  } else {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        T sum{};
        for (std::int64_t x = 0; x < k; ++x) sum += a[i * lda + x] * (trans_b ? b[j * ldb + x] : b[x * ldb + j]);
        c[i * ldc + j] = alpha * sum;
      }
    }
  }
}

/// The additive mask, broadcast to [batch, heads, rows, columns].
template <class T>
class Mask {
 public:
  static Result<Mask> make(std::string_view node, const Tensor* mask, std::array<std::int64_t, 4> full) {
    Mask out;
    if (mask == nullptr) return out;
    const auto shape = mask->shape();
    if (shape.size() > 4) return kernel_failed(node, "attn_mask has more than 4 dimensions");
    const Dims strides = strides_of(shape);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::size_t at = 4 - shape.size() + d;
      if (shape[d] != full[at] && shape[d] != 1) return kernel_failed(node, "attn_mask does not broadcast to the scores");
      out.steps_[at] = shape[d] == 1 ? 0 : strides[d];
    }
    if (mask->dtype() == DType::boolean) {
      for (const std::uint8_t keep : mask->as<std::uint8_t>()) {
        out.values_.push_back(keep != 0 ? T{} : -std::numeric_limits<T>::infinity());
      }
    } else if (is_real(mask->dtype())) {
      const RealIn<T> in(*mask);
      out.values_.assign(in.data(), in.data() + mask->elements());
    } else {
      return kernel_failed(node, "attn_mask must be bool or floating point");
    }
    return out;
  }
  bool empty() const { return values_.empty(); }
  T at(std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c) const {
    return values_[static_cast<std::size_t>(b * steps_[0] + h * steps_[1] + r * steps_[2] + c * steps_[3])];
  }

 private:
  std::vector<T> values_;
  std::array<std::int64_t, 4> steps_{0, 0, 0, 0};
};

template <class T>
void softmax_rows(T* scores, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* row = scores + r * columns;
    T top = row[0];
    for (std::int64_t c = 1; c < columns; ++c) top = std::max(top, row[c]);
    T sum{};
    for (std::int64_t c = 0; c < columns; ++c) {
      row[c] = std::exp(row[c] - top);
      sum += row[c];
    }
    for (std::int64_t c = 0; c < columns; ++c) row[c] /= sum;
  }
}

/// Opset 23's text and the conformance data published with it disagree on where heads lie in rank-3
/// inputs and on which key head a query head of a group reads; neither reading is taken.
std::string_view contradictory(const HeadDims& q, const HeadDims& kv) {
  if (q.merged && (q.heads > 1 || kv.heads > 1)) return "rank-3 inputs with several heads are contradictory in the standard";
  if (q.heads != kv.heads && kv.heads > 1) return "groups of query heads over several key heads are contradictory in the standard";
  return {};
}

template <class T>
Result<void> run_attention(const AttentionAttrs& attrs, KernelArgs& args) {
  const std::string& node = attrs.node;
  MST_TRY(const HeadDims qd, head_dims(node, args.input(0), attrs.q_heads));
  MST_TRY(const HeadDims kd, head_dims(node, args.input(1), attrs.kv_heads));
  MST_TRY(const HeadDims vd, head_dims(node, args.input(2), attrs.kv_heads));
  if (qd.batch != kd.batch || kd.batch != vd.batch || qd.width != kd.width || kd.heads != vd.heads ||
      kd.rows != vd.rows || kd.heads == 0 || qd.heads % kd.heads != 0) {
    return kernel_failed(node, "shapes of Q, K and V do not fit together");
  }
  if (const std::string_view why = contradictory(qd, kd); !why.empty()) return kernel_failed(node, why);
  std::int64_t past_rows = 0;
  if (args.has_input(4) != args.has_input(5)) return kernel_failed(node, "past_key and past_value come together");
  if (args.has_input(4)) {
    const Tensor &pk = args.input(4), &pv = args.input(5);
    if (pk.shape().size() != 4 || pv.shape().size() != 4) return kernel_failed(node, "the past needs rank 4");
    past_rows = pk.shape()[2];
    if (pk.elements() != kd.batch * kd.heads * past_rows * kd.width ||
        pv.elements() != vd.batch * vd.heads * past_rows * vd.width || pk.shape()[1] != kd.heads ||
        pv.shape()[2] != past_rows) {
      return kernel_failed(node, "past_key or past_value has a wrong shape");
    }
  }
  const RealIn<T> q(args.input(0)), k(args.input(1)), v(args.input(2));
  std::optional<RealIn<T>> past_k, past_v;
  if (past_rows > 0) past_k.emplace(args.input(4)), past_v.emplace(args.input(5));
  const Heads<T> qs = view_of(q.data(), qd);
  Heads<T> ks = view_of(k.data(), kd), vs = view_of(v.data(), vd);
  std::vector<T> all_k, all_v;
  const auto wants = [&](std::size_t i, std::int64_t elements) {
    return i < args.output_count() && is_real(args.output(i).dtype()) && args.output(i).elements() == elements;
  };
  const std::int64_t columns = past_rows + kd.rows;
  const bool present_k = wants(1, kd.batch * kd.heads * columns * kd.width);
  const bool present_v = wants(2, vd.batch * vd.heads * columns * vd.width);
  if (past_rows > 0 || present_k || present_v) {
    all_k = joined(past_k ? past_k->data() : nullptr, past_rows, ks);
    all_v = joined(past_v ? past_v->data() : nullptr, past_rows, vs);
    ks = view_of<T>(all_k.data(), {kd.batch, kd.heads, columns, kd.width, false});
    vs = view_of<T>(all_v.data(), {vd.batch, vd.heads, columns, vd.width, false});
    if (present_k) std::copy(all_k.begin(), all_k.end(), RealOut<T>(args.output(1)).data());
    if (present_v) std::copy(all_v.begin(), all_v.end(), RealOut<T>(args.output(2)).data());
  }
  MST_TRY(const Mask<T> mask, Mask<T>::make(node, args.has_input(3) ? &args.input(3) : nullptr,
                                            {qd.batch, qd.heads, qd.rows, columns}));
  const std::int64_t rows = qd.rows;
  if (args.output(0).elements() != qd.batch * qd.heads * rows * vd.width) {
    return kernel_failed(node, "output shape does not follow from the inputs");
  }
  if (args.output(0).elements() == 0) return {};
  if (columns == 0) return kernel_failed(node, "there are no keys");
  RealOut<T> out(args.output(0));
  std::optional<RealOut<T>> scores_out;
  if (wants(3, qd.batch * qd.heads * rows * columns)) scores_out.emplace(args.output(3));
  const T scale = attrs.scale ? static_cast<T>(*attrs.scale) : T{1} / std::sqrt(static_cast<T>(qd.width));
  const T cap = static_cast<T>(attrs.softcap);
  const std::int64_t group = qd.heads / kd.heads;
  T* const target = out.data();
  T* const shown = scores_out ? scores_out->data() : nullptr;
  const std::int64_t out_row = qd.merged ? qd.heads * vd.width : vd.width;
  // One head is one thread's work: sums do not depend on the number of threads.
#pragma omp parallel for num_threads(attrs.threads) schedule(static) if (qd.batch * qd.heads > 1 && rows * columns * qd.width > 1024)
  for (std::int64_t bh = 0; bh < qd.batch * qd.heads; ++bh) {
    const std::int64_t b = bh / qd.heads, h = bh % qd.heads, from = h / group;
    std::vector<T> scores(static_cast<std::size_t>(rows * columns));
    strided_product<T>(true, rows, columns, qd.width, scale, qs.at(b, h), qs.row_step, ks.at(b, from), ks.row_step,
                       scores.data(), columns);
    const auto show = [&](std::int64_t stage) {
      if (shown != nullptr && attrs.score_output == stage) {
        std::copy(scores.begin(), scores.end(), shown + bh * rows * columns);
      }
    };
    show(0);
    for (std::int64_t r = 0; r < rows; ++r) {
      T* row = scores.data() + r * columns;
      if (!mask.empty()) {
        for (std::int64_t c = 0; c < columns; ++c) row[c] += mask.at(b, h, r, c);
      }
      if (attrs.causal) {
        for (std::int64_t c = r + 1; c < columns; ++c) row[c] = -std::numeric_limits<T>::infinity();
      }
    }
    show(1);
    if (cap > T{}) {
      for (T& s : scores) s = cap * std::tanh(s / cap);
    }
    show(2);
    softmax_rows(scores.data(), rows, columns);
    show(3);
    T* to = target + (qd.merged ? b * rows * out_row + h * vd.width : bh * rows * vd.width);
    strided_product<T>(false, rows, vd.width, columns, T{1}, scores.data(), columns, vs.at(b, from), vs.row_step, to,
                       out_row);
  }
  return {};
}

Result<std::unique_ptr<Kernel>> make_attention(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  const Attrs& a = spec.attrs();
  AttentionAttrs attrs{std::string(spec.name()),
                       a.get_int("is_causal", 0) != 0,
                       a.get_int("q_num_heads", 0),
                       a.get_int("kv_num_heads", 0),
                       a.get_int("qk_matmul_output_mode", 0),
                       std::nullopt,
                       a.get_float("softcap", 0.0f),
                       std::max(1, spec.threads)};
  if (a.has("scale")) attrs.scale = a.get_float("scale", 1.0f);
  const TensorDesc &q = spec.input_desc(0), &k = spec.input_desc(1);
  if (q.shape && k.shape && q.shape->size() == k.shape->size() && (q.shape->size() == 3 || q.shape->size() == 4)) {
    // Known ranks are refused here; unknown ones when they run.
    const bool merged = q.shape->size() == 3;
    const auto heads = [&](const TensorDesc& d, std::int64_t named) {
      return merged ? named : (*d.shape)[1].value.value_or(1);
    };
    const HeadDims qd{0, heads(q, attrs.q_heads), 0, 0, merged}, kd{0, heads(k, attrs.kv_heads), 0, 0, merged};
    if (const std::string_view why = contradictory(qd, kd); !why.empty()) return unsupported_node(spec, why);
  }
  if (attrs.score_output < 0 || attrs.score_output > 3) return unsupported_node(spec, "qk_matmul_output_mode");
  return make_function_kernel([attrs = std::move(attrs)](KernelArgs& args) -> Result<void> {
    for (std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{5}}) {
      if (args.has_input(i) && !is_real(args.input(i).dtype())) return kernel_failed(attrs.node, "element types differ");
    }
    const onednn::ThreadCount guard(attrs.threads);
    return with_real(args.input(0).dtype(), [&](auto zero) { return run_attention<decltype(zero)>(attrs, args); });
  });
}

Result<std::unique_ptr<Kernel>> make_rotary(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  const Attrs& a = spec.attrs();
  return make_function_kernel([node = std::string(spec.name()), interleaved = a.get_int("interleaved", 0) != 0,
                               heads = a.get_int("num_heads", 0),
                               partial = a.get_int("rotary_embedding_dim", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    MST_TRY(const HeadDims d, head_dims(node, x, heads));
    const std::int64_t rotated = partial == 0 ? d.width : partial, half = rotated / 2;
    const Tensor &cosines = args.input(1), &sines = args.input(2);
    if (rotated < 0 || rotated > d.width || rotated % 2 != 0) return kernel_failed(node, "rotary_embedding_dim does not fit");
    if (!is_real(cosines.dtype()) || !is_real(sines.dtype()) || cosines.shape().empty() ||
        dims_of(cosines) != dims_of(sines) || cosines.shape().back() < half || x.elements() != args.output(0).elements()) {
      return kernel_failed(node, "cos_cache or sin_cache does not fit the input");
    }
    const std::int64_t line = cosines.shape().back(), lines = line == 0 ? 0 : cosines.elements() / line;
    std::vector<std::int64_t> row(static_cast<std::size_t>(d.batch * d.rows));
    if (args.has_input(3)) {
      const Tensor& positions = args.input(3);
      if (positions.dtype() != DType::i64 || positions.elements() != d.batch * d.rows) {
        return kernel_failed(node, "position_ids must hold one int64 a position");
      }
      std::copy_n(positions.as<std::int64_t>().begin(), row.size(), row.begin());
    } else {
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::int64_t>(i);
    }
    for (const std::int64_t r : row) {
      if (r < 0 || r >= lines) return kernel_failed(node, fmt::format("position {} is outside [0, {})", r, lines));
    }
    with_real(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RealIn<T> in(x), cs(cosines), sn(sines);
      RealOut<T> out(args.output(0));
      const Heads<T> view = view_of(in.data(), d);
      for (std::int64_t b = 0; b < d.batch; ++b) {
        for (std::int64_t h = 0; h < d.heads; ++h) {
          for (std::int64_t s = 0; s < d.rows; ++s) {
            const T* from = view.at(b, h) + s * view.row_step;
            T* to = out.data() + (from - in.data());
            const T* c = cs.data() + row[static_cast<std::size_t>(b * d.rows + s)] * line;
            const T* w = sn.data() + (c - cs.data());
            for (std::int64_t i = 0; i < half; ++i) {
              const std::int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : half + i;
              const T real = from[first], imaginary = from[second];
              to[first] = c[i] * real - w[i] * imaginary;
              to[second] = w[i] * real + c[i] * imaginary;
            }
            std::copy(from + rotated, from + d.width, to + rotated);
          }
        }
      }
    });
    return {};
  });
}

constexpr KernelEntry kEntries[] = {{"Attention", make_attention}, {"RotaryEmbedding", make_rotary}};

}  // namespace

std::span<const KernelEntry> kernels_attention() { return kEntries; }

}  // namespace millstream
