// SPDX-License-Identifier: Apache-2.0
// Matrix products and determinants.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;
constexpr TypeSet kProduct =
    types::kFloat | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64};
constexpr TypeSet kByte = {DType::u8, DType::i8};

// Numpy matmul: a vector counts as a row on the left and a column on the right, leading axes
// broadcast.
Result<std::optional<Dims>> product_dims(const Operands& in, std::size_t left, std::size_t right) {
  MST_TRY_VOID(in.expect_rank(left, "A", 1, kVariadic));
  MST_TRY_VOID(in.expect_rank(right, "B", 1, kVariadic));
  const Dims* a = in.dims(left);
  const Dims* b = in.dims(right);
  if (a == nullptr || b == nullptr) return std::optional<Dims>();
  const Dim inner = b->size() == 1 ? b->back() : (*b)[b->size() - 2];
  MST_TRY_VOID(in.same(a->back(), inner,
                       fmt::format("inner dimensions of {} and {}", to_string(*a), to_string(*b))));
  const Dims batch_a(a->begin(), a->end() - std::min<std::ptrdiff_t>(2, std::ssize(*a)));
  const Dims batch_b(b->begin(), b->end() - std::min<std::ptrdiff_t>(2, std::ssize(*b)));
  MST_TRY(Dims out, broadcast(in, batch_a, batch_b));
  if (a->size() > 1) out.push_back((*a)[a->size() - 2]);
  if (b->size() > 1) out.push_back(b->back());
  return std::optional<Dims>(std::move(out));
}

Descs product_of(const Operands& in, std::size_t left, std::size_t right, DType dtype) {
  MST_TRY(std::optional<Dims> dims, product_dims(in, left, right));
  return std::vector<TensorDesc>{dims ? described(dtype, std::move(*dims)) : unknown(dtype)};
}

Descs matmul(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "A", kProduct));
  MST_TRY(const DType dtype, in.common_dtype({0, 1}));
  return product_of(in, 0, 1, dtype);
}

Descs matmul_integer(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "A", kByte));
  MST_TRY_VOID(in.expect_types(1, "B", kByte));
  MST_TRY_VOID(in.common_dtype({0, 2}));
  MST_TRY_VOID(in.common_dtype({1, 3}));
  return product_of(in, 0, 1, DType::i32);
}

// Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point.
Descs qlinear_matmul(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.common_dtype({0, 2}));
  MST_TRY_VOID(in.common_dtype({3, 5}));
  return product_of(in, 0, 3, in.dtype(7));
}

Descs gemm(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "A", kProduct));
  MST_TRY(const DType dtype, in.common_dtype({0, 1, 2}));
  MST_TRY_VOID(in.expect_rank(0, "A", 2, 2));
  MST_TRY_VOID(in.expect_rank(1, "B", 2, 2));
  if (c.opset < 11 && !in.has(2)) return in.error("has no C, which is optional from opset 11 only");
  const bool trans_a = in.attrs().get_int("transA", 0) != 0;
  const bool trans_b = in.attrs().get_int("transB", 0) != 0;
  Dims out(2);
  const Dims* a = in.dims(0);
  const Dims* b = in.dims(1);
  if (a != nullptr) out[0] = (*a)[trans_a ? 1 : 0];
  if (b != nullptr) out[1] = (*b)[trans_b ? 0 : 1];
  if (a != nullptr && b != nullptr) {
    const std::string what =
        fmt::format("inner dimensions of {}{} and {}{}", to_string(*a),
                    trans_a ? " transposed" : "", to_string(*b), trans_b ? " transposed" : "");
    MST_TRY_VOID(in.same((*a)[trans_a ? 0 : 1], (*b)[trans_b ? 1 : 0], what));
  }
  if (in.dims(2) != nullptr) MST_TRY_VOID(expect_broadcasts_to(in, "C", *in.dims(2), out));
  return std::vector<TensorDesc>{described(dtype, std::move(out))};
}

Descs det(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY_VOID(in.expect_rank(0, "X", 2, kVariadic));
  const Dims* d = in.dims(0);
  if (d == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  MST_TRY_VOID(in.same((*d)[d->size() - 2], d->back(), "rows and columns of a determinant"));
  return std::vector<TensorDesc>{described(in.dtype(0), Dims(d->begin(), d->end() - 2))};
}

// -- Einsum: one letter an axis, "..." the axes that broadcast.

struct Term {
  std::string before;  // letters left of the ellipsis (all of them when there is none)
  std::string after;
  bool ellipsis = false;
};

std::optional<Term> parse_term(std::string_view text) {
  Term term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char ch = text[i];
    const bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
    if (letter) {
      (term.ellipsis ? term.after : term.before) += ch;
    } else if (text.substr(i, 3) == "..." && !term.ellipsis) {
      term.ellipsis = true;
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return term;
}

Descs einsum(const ShapeContext& c) {
  const Operands in(c);
  DType dtype = DType::undefined;
  for (std::size_t i = 0; i < in.count(); ++i) {
    MST_TRY_VOID(in.expect_types(i, "input", types::kNumeric));
    MST_TRY(const DType both, in.common_dtype({0, i}));
    if (both != DType::undefined) dtype = both;
  }
  if (!in.attrs().has("equation")) return in.error("has no equation");
  std::string equation = in.attrs().get_string("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  const auto bad = [&](std::string_view why) {
    return in.error(fmt::format("equation \"{}\" {}", equation, why));
  };

  std::vector<Term> terms;
  for (std::size_t begin = 0; begin <= left.size();) {
    const std::size_t comma = std::min(left.find(',', begin), left.size());
    const auto term = parse_term(std::string_view(left).substr(begin, comma - begin));
    if (!term)
      return bad("holds something else than letters, commas, one \"...\" a term and one \"->\"");
    terms.push_back(*term);
    begin = comma + 1;
  }
  if (terms.size() != in.count()) {
    return bad(fmt::format("has {} terms for {} inputs", terms.size(), in.count()));
  }

  std::map<char, Dim> letters;
  std::map<char, int> uses;
  std::optional<Dims> spread = Dims{};
  bool any_ellipsis = false;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Term& term = terms[i];
    any_ellipsis |= term.ellipsis;
    for (const char ch : term.before + term.after) {
      ++uses[ch];
      letters.try_emplace(ch, Dim::of(1));
    }
    // Lengths of one letter broadcast: 1 gives way to any other, also to one not known yet.
    const auto bind = [&](char ch, const Dim& dim) -> Result<void> {
      Dim& known = letters[ch];
      if (dim.known() && *dim.value == 1) return {};
      if (known.known() && *known.value == 1) {
        known = dim;
      } else if (known.known() && dim.known()) {
        MST_TRY_VOID(
            in.same(known, dim, fmt::format("axis '{}' of equation \"{}\"", ch, equation)));
      } else if (dim.known()) {
        known = dim;
      } else if (!known.known() && !(known == dim)) {
        known = Dim{};
      }
      return {};
    };
    const Dims* d = in.dims(i);
    if (d == nullptr) {
      if (term.ellipsis) spread.reset();
      for (const char ch : term.before + term.after) MST_TRY_VOID(bind(ch, Dim{}));
      continue;
    }
    const std::size_t named = term.before.size() + term.after.size();
    if (d->size() < named || (!term.ellipsis && d->size() != named)) {
      return bad(fmt::format("names {} axes of input {}, which has rank {}", named, i, d->size()));
    }
    for (std::size_t k = 0; k < term.before.size(); ++k)
      MST_TRY_VOID(bind(term.before[k], (*d)[k]));
    for (std::size_t k = 0; k < term.after.size(); ++k) {
      MST_TRY_VOID(bind(term.after[k], (*d)[d->size() - term.after.size() + k]));
    }
    if (term.ellipsis && spread) {
      const Dims middle(d->begin() + std::ssize(term.before), d->end() - std::ssize(term.after));
      MST_TRY(spread, broadcast(in, *spread, middle));
    }
  }

  Term result;
  if (arrow != std::string::npos) {
    const auto term = parse_term(std::string_view(equation).substr(arrow + 2));
    if (!term) return bad("has an output that is not letters with at most one \"...\"");
    result = *term;
  } else {
    // Implicit output: the ellipsis, then every letter used once, in alphabetical order.
    result.ellipsis = any_ellipsis;
    for (const auto& [ch, count] : uses) {
      if (count == 1) result.after += ch;
    }
  }
  if (result.ellipsis && !spread) return std::vector<TensorDesc>{unknown(dtype)};
  Dims out;
  const auto put = [&](const std::string& names) -> Result<void> {
    for (const char ch : names) {
      const auto it = letters.find(ch);
      if (it == letters.end()) return bad(fmt::format("names '{}' in the output only", ch));
      out.push_back(it->second);
    }
    return {};
  };
  MST_TRY_VOID(put(result.before));
  if (result.ellipsis) out.insert(out.end(), spread->begin(), spread->end());
  MST_TRY_VOID(put(result.after));
  return std::vector<TensorDesc>{described(dtype, std::move(out))};
}

// -- costs: two flops a multiply-add

double last_dim(const TensorDesc* desc) {
  return desc != nullptr && desc->shape && !desc->shape->empty() && desc->shape->back().known()
             ? static_cast<double>(*desc->shape->back().value)
             : 1.0;
}

OpCost product_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  return {2 * elements_of(outputs[0]) * last_dim(inputs[0]), traffic(inputs, outputs)};
}

OpCost gemm_cost(const Attrs& attrs, InputDescs inputs, OutputDescs outputs) {
  const double rows = std::max(1.0, static_cast<double>(outputs[0]->dims()[0]));
  const double inner =
      attrs.get_int("transA", 0) != 0 ? elements_of(inputs[0]) / rows : last_dim(inputs[0]);
  return {2 * elements_of(outputs[0]) * inner, traffic(inputs, outputs)};
}

// LU elimination: 2/3 n^3 a matrix.
OpCost det_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  const double n = last_dim(inputs[0]);
  return {elements_of(inputs[0]) * n * 2 / 3, traffic(inputs, outputs)};
}

// One pass over the full index space (no contraction order is assumed): inputs flops a point.
OpCost einsum_cost(const Attrs& attrs, InputDescs inputs, OutputDescs outputs) {
  const std::string equation = attrs.get_string("equation", "");
  std::map<char, double> lengths;
  double spread = 1;
  std::size_t i = 0;
  std::string text;
  const auto flush = [&] {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const auto term = parse_term(text);
    if (term && i < inputs.size() && inputs[i] != nullptr && inputs[i]->is_static()) {
      const std::vector<std::int64_t> dims = inputs[i]->dims();
      const std::size_t named = term->before.size() + term->after.size();
      if (dims.size() >= named) {
        double middle = 1;
        for (std::size_t k = 0; k < dims.size(); ++k) {
          const double n = static_cast<double>(dims[k]);
          const std::size_t tail = dims.size() - term->after.size();
          if (k < term->before.size()) {
            lengths[term->before[k]] = std::max(lengths[term->before[k]], n);
          } else if (k >= tail) {
            lengths[term->after[k - tail]] = std::max(lengths[term->after[k - tail]], n);
          } else {
            middle *= n;
          }
        }
        spread = std::max(spread, middle);
      }
    }
    text.clear();
    ++i;
  };
  for (const char ch : equation.substr(0, equation.find("->"))) {
    if (ch == ',') {
      flush();
    } else {
      text += ch;
    }
  }
  flush();
  double points = spread;
  for (const auto& [ch, n] : lengths) points *= n;
  return {static_cast<double>(inputs.size()) * points, traffic(inputs, outputs)};
}

constexpr OpSchema kTable[] = {
    {"Det", "", 11, 23, 1, 1, det, det_cost},
    {"Einsum", "", 12, 23, 1, kVariadic, einsum, einsum_cost},
    {"Gemm", "", 6, 23, 2, 3, gemm, gemm_cost},
    {"MatMul", "", 6, 23, 2, 2, matmul, product_cost},
    {"MatMulInteger", "", 10, 23, 2, 4, matmul_integer, product_cost},
    {"QLinearMatMul", "", 10, 23, 8, 8, qlinear_matmul, product_cost},
};

}  // namespace

std::span<const OpSchema> table_matrix() { return kTable; }

}  // namespace millstream
