// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/compare.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace millstream::cli {
namespace {

double half_to_double(std::uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  const double sign = (h & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

template <class T>
std::vector<double> widened(const Tensor& t) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(t.elements()));
  for (const T x : t.as<T>()) out.push_back(static_cast<double>(x));
  return out;
}

Result<std::vector<double>> as_doubles(const Tensor& t) {
  switch (t.dtype()) {
    case DType::f32: return widened<float>(t);
    case DType::f64: return widened<double>(t);
    case DType::u8: case DType::boolean: return widened<std::uint8_t>(t);
    case DType::i8: return widened<std::int8_t>(t);
    case DType::u16: return widened<std::uint16_t>(t);
    case DType::i16: return widened<std::int16_t>(t);
    case DType::u32: return widened<std::uint32_t>(t);
    case DType::i32: return widened<std::int32_t>(t);
    case DType::u64: return widened<std::uint64_t>(t);
    case DType::i64: return widened<std::int64_t>(t);
    case DType::f16: {
      std::vector<double> out;
      for (const std::uint16_t h : t.as<std::uint16_t>()) out.push_back(half_to_double(h));
      return out;
    }
    case DType::bf16: {
      std::vector<double> out;
      for (const std::uint16_t h : t.as<std::uint16_t>()) out.push_back(std::bit_cast<float>(std::uint32_t{h} << 16));
      return out;
    }
    default:
      return Error{ErrorCode::usage, fmt::format("cannot compare tensors of type {}", dtype_name(t.dtype()))};
  }
}

bool is_float(DType t) { return t == DType::f32 || t == DType::f64 || t == DType::f16 || t == DType::bf16; }

bool same_bytes(const Tensor& a, const Tensor& b, std::size_t i) {
  const std::size_t size = dtype_bits(a.dtype()) / 8;
  return std::memcmp(a.bytes() + i * size, b.bytes() + i * size, size) == 0;
}

// 64-bit integers do not fit a double.
std::string element(const Tensor& t, const std::vector<double>& widened, std::size_t i) {
  if (t.dtype() == DType::i64) return fmt::format("{}", t.as<std::int64_t>()[i]);
  if (t.dtype() == DType::u64) return fmt::format("{}", t.as<std::uint64_t>()[i]);
  return is_float(t.dtype()) ? fmt::format("{:.6g}", widened[i]) : fmt::format("{:.0f}", widened[i]);
}

template <class Shape>
std::vector<std::int64_t> index_of(std::size_t flat, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t k = shape.size(); k-- > 0;) {
    index[k] = static_cast<std::int64_t>(flat) % shape[k];
    flat /= static_cast<std::size_t>(shape[k]);
  }
  return index;
}

}  // namespace

Result<Difference> compare(const Tensor& got, const Tensor& want, double rtol, double atol_scale) {
  if (got.dtype() != want.dtype() || !std::equal(got.shape().begin(), got.shape().end(), want.shape().begin(), want.shape().end())) {
    return Error{ErrorCode::expectation, fmt::format("is {}, expected {}", to_string(got.desc()), to_string(want.desc()))};
  }
  Difference d;
  if (!is_float(got.dtype())) {  // 64-bit integers do not fit a double: bytes decide
    d.ok = got == want;
    if (d.ok) return d;
  }
  MST_TRY(const std::vector<double> a, as_doubles(got));
  MST_TRY(const std::vector<double> b, as_doubles(want));
  double scale = 0;
  for (const double x : b) {
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  }
  double furthest = -1;
  std::size_t worst = 0;
  double worst_allowed = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const bool same = is_float(got.dtype()) ? a[i] == b[i] : same_bytes(got, want, i);
    if (same) continue;
    const double err = std::abs(a[i] - b[i]);
    double allowed = is_float(got.dtype()) ? atol_scale * scale + rtol * std::abs(b[i]) : 0;
    double excess = INFINITY;
    if (!std::isfinite(err)) {
      allowed = 0;
      d.max_abs_err = INFINITY;
      d.max_rel_err = INFINITY;
    } else {
      d.max_abs_err = std::max(d.max_abs_err, err);
      if (b[i] != 0) d.max_rel_err = std::max(d.max_rel_err, err / std::abs(b[i]));
      excess = allowed > 0 ? err / allowed : INFINITY;
      if (is_float(got.dtype()) && err <= allowed) continue;
    }
    ++d.outside;
    if (excess > furthest) {
      furthest = excess;
      worst = i;
      worst_allowed = allowed;
    }
  }
  d.ok = d.outside == 0;
  if (d.ok) return d;
  d.where = index_of(worst, want.shape());
  std::string place;
  for (const std::int64_t k : d.where) place += fmt::format("{}{}", place.empty() ? "" : ",", k);
  d.worst = fmt::format("at [{}]: have {}, want {}, allowed error {:.3g}; {} of {} elements differ", place, element(got, a, worst),
                        element(want, b, worst), worst_allowed, d.outside, a.size());
  return d;
}

}  // namespace millstream::cli
