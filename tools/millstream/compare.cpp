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
  bool ok = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double err = std::abs(a[i] - b[i]);
    if (!std::isfinite(err)) {
      d.max_abs_err = INFINITY;
      d.max_rel_err = INFINITY;
      ok = false;
      continue;
    }
    d.max_abs_err = std::max(d.max_abs_err, err);
    if (b[i] != 0) d.max_rel_err = std::max(d.max_rel_err, err / std::abs(b[i]));
    if (err > atol_scale * scale + rtol * std::abs(b[i])) ok = false;
  }
  d.ok = is_float(got.dtype()) ? ok : false;
  return d;
}

}  // namespace millstream::cli
