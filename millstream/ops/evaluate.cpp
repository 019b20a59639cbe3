// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons, reductions and casts of small tensors; movement is in evaluate_move.cpp.
#include "millstream/ops/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "millstream/ops/numbers.h"

namespace millstream {
namespace {

using Values = std::optional<std::vector<Tensor>>;

bool fits(const TensorDesc& desc) {
  const auto bytes = desc.bytes();
  return bytes && *bytes <= kMaxEvaluatedBytes && Numbers::widens(desc.dtype);
}

std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrap_sub(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t wrap_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// One element of each operand type; nullopt = undefined here.
struct Binary {
  std::optional<std::int64_t> (*whole)(std::int64_t, std::int64_t, DType);
  std::optional<double> (*real)(double, double);
};

Values combine(const ShapeContext& c, std::span<const TensorDesc> outputs, const Binary& op, bool to_bool) {
  if (outputs.size() != 1 || c.inputs.empty() || !fits(outputs[0])) return std::nullopt;
  const std::vector<std::int64_t> dims = outputs[0].dims();
  std::optional<Numbers> sum;
  for (const Tensor* input : c.values) {
    if (input == nullptr) return std::nullopt;
    auto operand = Numbers::of(*input);
    if (!operand) return std::nullopt;
    const auto index = broadcast_index(operand->dims, dims);
    if (!index) return std::nullopt;
    Numbers wide = Numbers::zeros(operand->dtype, dims);
    for (std::size_t i = 0; i < index->size(); ++i) {
      if (wide.is_real()) {
        wide.real[i] = operand->real[(*index)[i]];
      } else {
        wide.whole[i] = operand->whole[(*index)[i]];
      }
    }
    if (!sum) {
      sum = std::move(wide);
      continue;
    }
    if (sum->dtype != wide.dtype) return std::nullopt;
    Numbers out = Numbers::zeros(to_bool ? DType::boolean : sum->dtype, dims);
    for (std::size_t i = 0; i < index->size(); ++i) {
      if (wide.is_real()) {
        if (op.real == nullptr) return std::nullopt;
        const auto x = op.real(sum->real[i], wide.real[i]);
        if (!x) return std::nullopt;
        if (to_bool) {
          out.whole[i] = *x != 0;
        } else {
          out.real[i] = *x;
        }
      } else {
        if (op.whole == nullptr) return std::nullopt;
        const auto x = op.whole(sum->whole[i], wide.whole[i], sum->dtype);
        if (!x) return std::nullopt;
        out.whole[i] = *x;
      }
    }
    // Through the element type, so that each step rounds and wraps as the type does.
    sum = Numbers::of(out.tensor());
    if (!sum) return std::nullopt;
  }
  if (sum->dtype != outputs[0].dtype) return std::nullopt;
  return std::vector<Tensor>{sum->tensor()};
}

bool is_signed(DType t) { return t == DType::i8 || t == DType::i16 || t == DType::i32 || t == DType::i64; }

std::optional<std::int64_t> divide(std::int64_t a, std::int64_t b, DType t) {
  if (b == 0) return std::nullopt;
  if (t == DType::u64) return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) / static_cast<std::uint64_t>(b));
  if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return a / b;
}
bool less(std::int64_t a, std::int64_t b, DType t) {
  return t == DType::u64 ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
}

constexpr Binary kAdd = {[](std::int64_t a, std::int64_t b, DType) { return std::optional(wrap_add(a, b)); },
                         [](double a, double b) { return std::optional(a + b); }};
constexpr Binary kSub = {[](std::int64_t a, std::int64_t b, DType) { return std::optional(wrap_sub(a, b)); },
                         [](double a, double b) { return std::optional(a - b); }};
constexpr Binary kMul = {[](std::int64_t a, std::int64_t b, DType) { return std::optional(wrap_mul(a, b)); },
                         [](double a, double b) { return std::optional(a * b); }};
constexpr Binary kDiv = {divide, [](double a, double b) { return std::optional(a / b); }};
// NaN and the sign of zero are where kernels may differ: left to them.
constexpr Binary kMin = {
    [](std::int64_t a, std::int64_t b, DType t) { return std::optional(less(b, a, t) ? b : a); },
    [](double a, double b) {
      return std::isnan(a) || std::isnan(b) || a == b ? std::nullopt : std::optional(std::min(a, b));
    }};
constexpr Binary kMax = {
    [](std::int64_t a, std::int64_t b, DType t) { return std::optional(less(a, b, t) ? b : a); },
    [](double a, double b) {
      return std::isnan(a) || std::isnan(b) || a == b ? std::nullopt : std::optional(std::max(a, b));
    }};
constexpr Binary kEqual = {
    [](std::int64_t a, std::int64_t b, DType) { return std::optional<std::int64_t>(a == b); },
    [](double a, double b) { return std::optional<double>(a == b); }};
constexpr Binary kLess = {
    [](std::int64_t a, std::int64_t b, DType t) { return std::optional<std::int64_t>(less(a, b, t)); },
    [](double a, double b) { return std::optional<double>(a < b); }};
constexpr Binary kGreater = {
    [](std::int64_t a, std::int64_t b, DType t) { return std::optional<std::int64_t>(less(b, a, t)); },
    [](double a, double b) { return std::optional<double>(a > b); }};
constexpr Binary kLessOrEqual = {
    [](std::int64_t a, std::int64_t b, DType t) { return std::optional<std::int64_t>(!less(b, a, t)); },
    [](double a, double b) { return std::optional<double>(a <= b); }};
constexpr Binary kGreaterOrEqual = {
    [](std::int64_t a, std::int64_t b, DType t) { return std::optional<std::int64_t>(!less(a, b, t)); },
    [](double a, double b) { return std::optional<double>(a >= b); }};
constexpr Binary kAnd = {
    [](std::int64_t a, std::int64_t b, DType) { return std::optional<std::int64_t>(a != 0 && b != 0); }, nullptr};
constexpr Binary kOr = {
    [](std::int64_t a, std::int64_t b, DType) { return std::optional<std::int64_t>(a != 0 || b != 0); }, nullptr};
constexpr Binary kXor = {
    [](std::int64_t a, std::int64_t b, DType) { return std::optional<std::int64_t>((a != 0) != (b != 0)); }, nullptr};

// ONNX Mod of integers: the sign of the divisor, or with fmod=1 that of the dividend.
constexpr Binary kFloorMod = {[](std::int64_t a, std::int64_t b, DType t) -> std::optional<std::int64_t> {
                                if (b == 0 || t == DType::u64) return std::nullopt;
                                if (b == -1) return 0;
                                const std::int64_t r = a % b;
                                return r != 0 && (r < 0) != (b < 0) ? r + b : r;
                              },
                              nullptr};
constexpr Binary kTruncatedMod = {[](std::int64_t a, std::int64_t b, DType t) -> std::optional<std::int64_t> {
                                    if (b == 0 || t == DType::u64) return std::nullopt;
                                    return b == -1 ? 0 : a % b;
                                  },
                                  nullptr};

template <const Binary& op>
Values arithmetic(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (c.opset < 7 || c.inputs.size() != 2) return std::nullopt;
  return combine(c, outputs, op, false);
}
template <const Binary& op>
Values variadic(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  return combine(c, outputs, op, false);
}
template <const Binary& op>
Values comparison(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (c.opset < 7 || c.inputs.size() != 2) return std::nullopt;
  return combine(c, outputs, op, true);
}
Values modulo(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (c.inputs.size() != 2) return std::nullopt;
  return combine(c, outputs, c.attrs.get_int("fmod", 0) != 0 ? kTruncatedMod : kFloorMod, false);
}

struct Unary {
  std::optional<std::int64_t> (*whole)(std::int64_t);
  std::optional<double> (*real)(double);
};
constexpr Unary kNeg = {[](std::int64_t a) { return std::optional(wrap_sub(0, a)); },
                        [](double a) { return std::optional(-a); }};
constexpr Unary kAbs = {[](std::int64_t a) { return std::optional(a < 0 ? wrap_sub(0, a) : a); },
                        [](double a) { return std::optional(std::fabs(a)); }};
constexpr Unary kFloor = {nullptr, [](double a) { return std::optional(std::floor(a)); }};
constexpr Unary kCeil = {nullptr, [](double a) { return std::optional(std::ceil(a)); }};
constexpr Unary kSqrt = {nullptr,
                         [](double a) { return a < 0 || std::isnan(a) ? std::nullopt : std::optional(std::sqrt(a)); }};
constexpr Unary kNot = {[](std::int64_t a) { return std::optional<std::int64_t>(a == 0); }, nullptr};

template <const Unary& op>
Values unary(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 1 || !fits(outputs[0])) return std::nullopt;
  auto x = Numbers::of(*c.values[0]);
  if (!x || x->dtype != outputs[0].dtype || x->dims != outputs[0].dims()) return std::nullopt;
  if (x->dtype == DType::u64) return std::nullopt;
  for (std::size_t i = 0; i < x->size(); ++i) {
    if (x->is_real()) {
      const auto y = op.real == nullptr ? std::nullopt : op.real(x->real[i]);
      if (!y) return std::nullopt;
      x->real[i] = *y;
    } else {
      const auto y = op.whole == nullptr ? std::nullopt : op.whole(x->whole[i]);
      if (!y) return std::nullopt;
      x->whole[i] = *y;
    }
  }
  return std::vector<Tensor>{x->tensor()};
}

// Bounds of the integers of `t` as doubles: low <= x < high converts without overflow.
std::optional<std::int64_t> to_whole(double x, DType t) {
  if (!std::isfinite(x)) return std::nullopt;
  const double y = std::trunc(x);
  const int bits = static_cast<int>(dtype_bits(t));
  const double low = is_signed(t) ? -std::ldexp(1.0, bits - 1) : 0.0;
  const double high = std::ldexp(1.0, is_signed(t) ? bits - 1 : bits);
  if (y < low || y >= high) return std::nullopt;
  if (t == DType::u64) return static_cast<std::int64_t>(static_cast<std::uint64_t>(y));
  return static_cast<std::int64_t>(y);
}

Values cast(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.empty() || !fits(outputs[0])) return std::nullopt;
  const auto x = Numbers::of(*c.values[0]);
  if (!x || x->dims != outputs[0].dims()) return std::nullopt;
  Numbers out = Numbers::zeros(outputs[0].dtype, x->dims);
  for (std::size_t i = 0; i < x->size(); ++i) {
    if (x->is_real() && out.is_real()) {
      // f64 -> f16 through f32 in some kernels: two roundings, so not ours to choose.
      if (x->dtype == DType::f64 && out.dtype == DType::f16) return std::nullopt;
      out.real[i] = x->real[i];
    } else if (x->is_real()) {
      if (out.dtype == DType::boolean) {
        out.whole[i] = x->real[i] != 0;
        continue;
      }
      const auto y = to_whole(x->real[i], out.dtype);
      if (!y) return std::nullopt;
      out.whole[i] = *y;
    } else if (out.is_real()) {
      // Beyond 2^24 a kernel's path (through double or not) could round differently.
      if (x->dtype == DType::u64 || std::llabs(x->whole[i]) > (1 << 24)) return std::nullopt;
      if (out.dtype == DType::f16 && std::llabs(x->whole[i]) > 2048) return std::nullopt;
      out.real[i] = static_cast<double>(x->whole[i]);
    } else {
      out.whole[i] = x->whole[i];
    }
  }
  return std::vector<Tensor>{out.tensor()};
}

// Reduction over integers only: the order of a floating sum belongs to the kernel.
template <const Binary& op>
Values reduce(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.empty() || !fits(outputs[0])) return std::nullopt;
  const auto x = Numbers::of(*c.values[0]);
  if (!x || x->is_real() || x->dtype != outputs[0].dtype) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(x->dims.size());
  std::vector<std::int64_t> axes = c.attrs.get_ints("axes");
  if (c.inputs.size() > 1 && c.values[1] != nullptr) {
    const auto given = Numbers::of(*c.values[1]);
    if (!given || given->is_real()) return std::nullopt;
    axes = given->whole;
  }
  std::vector<bool> gone(x->dims.size(), false);
  if (axes.empty()) {
    if (c.attrs.get_int("noop_with_empty_axes", 0) != 0) return std::nullopt;
    gone.assign(x->dims.size(), true);
  }
  for (const std::int64_t a : axes) {
    if (a < -rank || a >= rank) return std::nullopt;
    gone[static_cast<std::size_t>(a < 0 ? a + rank : a)] = true;
  }
  Numbers out = Numbers::zeros(x->dtype, outputs[0].dims());
  std::vector<bool> started(out.whole.size(), false);
  for (std::size_t i = 0; i < x->whole.size(); ++i) {
    std::size_t rest = i, to = 0, step = 1;
    for (std::size_t k = x->dims.size(); k-- > 0;) {
      const auto d = static_cast<std::size_t>(x->dims[k]);
      if (!gone[k]) {
        to += rest % d * step;
        step *= d;
      }
      rest /= d;
    }
    if (to >= out.whole.size()) return std::nullopt;
    if (!started[to]) {
      out.whole[to] = x->whole[i];
      started[to] = true;
      continue;
    }
    const auto y = op.whole(out.whole[to], x->whole[i], x->dtype);
    if (!y) return std::nullopt;
    out.whole[to] = *y;
  }
  for (const bool s : started) {
    if (!s) return std::nullopt;  // a reduction over nothing
  }
  return std::vector<Tensor>{out.tensor()};
}

Values range(const ShapeContext& c, std::span<const TensorDesc> outputs) {
  if (outputs.size() != 1 || c.inputs.size() != 3) return std::nullopt;
  std::int64_t v[3];
  for (std::size_t k = 0; k < 3; ++k) {
    const auto x = Numbers::of(*c.values[k]);
    if (!x || x->is_real() || x->whole.size() != 1 || x->dtype == DType::u64) return std::nullopt;
    v[k] = x->whole[0];
    if (std::llabs(v[k]) > (std::int64_t{1} << 40)) return std::nullopt;
  }
  if (v[2] == 0) return std::nullopt;
  const std::int64_t span = v[1] - v[0];
  std::int64_t n = span / v[2] + (span % v[2] != 0 && (span < 0) == (v[2] < 0) ? 1 : 0);
  if (n < 0 || span == 0) n = 0;
  const DType type = c.values[0]->dtype();
  if (dtype_bytes(type, static_cast<std::size_t>(n)) > kMaxEvaluatedBytes) return std::nullopt;
  Numbers out = Numbers::zeros(type, {n});
  for (std::int64_t i = 0; i < n; ++i) out.whole[static_cast<std::size_t>(i)] = v[0] + i * v[2];
  return std::vector<Tensor>{out.tensor()};
}

// Ascending by type.
constexpr Evaluator kRows[] = {
    {"Abs", unary<kAbs>},
    {"Add", arithmetic<kAdd>},
    {"And", comparison<kAnd>},
    {"Cast", cast},
    {"Ceil", unary<kCeil>},
    {"Div", arithmetic<kDiv>},
    {"Equal", comparison<kEqual>},
    {"Floor", unary<kFloor>},
    {"Greater", comparison<kGreater>},
    {"GreaterOrEqual", comparison<kGreaterOrEqual>},
    {"Less", comparison<kLess>},
    {"LessOrEqual", comparison<kLessOrEqual>},
    {"Max", variadic<kMax>},
    {"Min", variadic<kMin>},
    {"Mod", modulo},
    {"Mul", arithmetic<kMul>},
    {"Neg", unary<kNeg>},
    {"Not", unary<kNot>},
    {"Or", comparison<kOr>},
    {"Range", range},
    {"ReduceMax", reduce<kMax>},
    {"ReduceMin", reduce<kMin>},
    {"ReduceProd", reduce<kMul>},
    {"ReduceSum", reduce<kAdd>},
    {"Sqrt", unary<kSqrt>},
    {"Sub", arithmetic<kSub>},
    {"Sum", variadic<kAdd>},
    {"Xor", comparison<kXor>},
};

}  // namespace

std::span<const Evaluator> arithmetic_evaluators() { return kRows; }

const Evaluator* find_evaluator(std::string_view type) {
  for (const auto rows : {arithmetic_evaluators(), movement_evaluators()}) {
    const auto it = std::lower_bound(rows.begin(), rows.end(), type,
                                     [](const Evaluator& row, std::string_view key) { return row.type < key; });
    if (it != rows.end() && it->type == type) return &*it;
  }
  return nullptr;
}

}  // namespace millstream
