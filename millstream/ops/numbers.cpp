// SPDX-License-Identifier: Apache-2.0
#include "millstream/ops/numbers.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace millstream {
namespace {

constexpr std::int64_t kMaxElements = 4096;

template <class T>
void widen(const Tensor& tensor, std::vector<std::int64_t>& out) {
  for (const T x : tensor.as<T>()) out.push_back(static_cast<std::int64_t>(x));
}

template <class T>
void narrow(const std::vector<std::int64_t>& from, Tensor& tensor) {
  const auto out = tensor.as_mutable<T>();
  for (std::size_t i = 0; i < from.size(); ++i) out[i] = static_cast<T>(static_cast<std::uint64_t>(from[i]));
}

}  // namespace

double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0x1f) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(fraction), -24);
  return sign * std::ldexp(static_cast<double>(fraction + 0x400), exponent - 25);
}

std::uint16_t double_to_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
  const double size = std::fabs(value);
  if (size >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds to 2^16 = infinity
  // Scaled so that one unit is the last place; nearbyint ties to even in the default rounding mode.
  int exponent = 0;
  std::frexp(size, &exponent);                       // size in [2^(exponent-1), 2^exponent)
  const int unit = size == 0 || exponent < -13 ? -24 : exponent - 11;
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  // A subnormal's bits are its units; a normal number adds them to its exponent's, carry included.
  if (unit == -24) return static_cast<std::uint16_t>(sign | units);
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(unit + 24) << 10) + units));
}

std::int64_t count_of(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

bool Numbers::widens(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::i8:
    case DType::u16:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u32:
    case DType::u64:
    case DType::boolean:
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return true;
    default:
      return false;
  }
}

Numbers Numbers::zeros(DType dtype, std::vector<std::int64_t> dims) {
  Numbers out;
  out.dtype = dtype;
  const auto n = static_cast<std::size_t>(count_of(dims));
  out.dims = std::move(dims);
  if (out.is_real()) {
    out.real.resize(n);
  } else {
    out.whole.resize(n);
  }
  return out;
}

std::optional<Numbers> Numbers::of(const Tensor& tensor) {
  if (!widens(tensor.dtype()) || tensor.elements() > kMaxElements) return std::nullopt;
  Numbers out;
  out.dtype = tensor.dtype();
  out.dims.assign(tensor.shape().begin(), tensor.shape().end());
  switch (tensor.dtype()) {
    case DType::u8: widen<std::uint8_t>(tensor, out.whole); break;
    case DType::i8: widen<std::int8_t>(tensor, out.whole); break;
    case DType::u16: widen<std::uint16_t>(tensor, out.whole); break;
    case DType::i16: widen<std::int16_t>(tensor, out.whole); break;
    case DType::i32: widen<std::int32_t>(tensor, out.whole); break;
    case DType::i64: widen<std::int64_t>(tensor, out.whole); break;
    case DType::u32: widen<std::uint32_t>(tensor, out.whole); break;
    case DType::u64: widen<std::uint64_t>(tensor, out.whole); break;
    case DType::boolean:
      for (const std::uint8_t x : tensor.as<std::uint8_t>()) out.whole.push_back(x != 0);
      break;
    case DType::f16:
      for (const std::uint16_t x : tensor.as<std::uint16_t>()) out.real.push_back(half_to_double(x));
      break;
    case DType::f32:
      for (const float x : tensor.as<float>()) out.real.push_back(x);
      break;
    default:
      for (const double x : tensor.as<double>()) out.real.push_back(x);
      break;
  }
  return out;
}

Tensor Numbers::tensor() const {
  Tensor out(dtype, dims);
  switch (dtype) {
    case DType::u8: narrow<std::uint8_t>(whole, out); break;
    case DType::i8: narrow<std::int8_t>(whole, out); break;
    case DType::u16: narrow<std::uint16_t>(whole, out); break;
    case DType::i16: narrow<std::int16_t>(whole, out); break;
    case DType::i32: narrow<std::int32_t>(whole, out); break;
    case DType::i64: narrow<std::int64_t>(whole, out); break;
    case DType::u32: narrow<std::uint32_t>(whole, out); break;
    case DType::u64: narrow<std::uint64_t>(whole, out); break;
    case DType::boolean: {
      const auto to = out.as_mutable<std::uint8_t>();
      for (std::size_t i = 0; i < whole.size(); ++i) to[i] = whole[i] != 0;
      break;
    }
    case DType::f16: {
      const auto to = out.as_mutable<std::uint16_t>();
      for (std::size_t i = 0; i < real.size(); ++i) to[i] = double_to_half(real[i]);
      break;
    }
    case DType::f32: {
      const auto to = out.as_mutable<float>();
      for (std::size_t i = 0; i < real.size(); ++i) to[i] = static_cast<float>(real[i]);
      break;
    }
    case DType::f64: {
      const auto to = out.as_mutable<double>();
      for (std::size_t i = 0; i < real.size(); ++i) to[i] = real[i];
      break;
    }
    default: MST_CHECK(false, "a type that does not widen");
  }
  return out;
}

std::optional<std::vector<std::size_t>> broadcast_index(std::span<const std::int64_t> from,
                                                        std::span<const std::int64_t> to) {
  if (from.size() > to.size()) return std::nullopt;
  const std::size_t lead = to.size() - from.size();
  std::vector<std::size_t> stride(to.size(), 0);
  std::size_t step = 1;
  for (std::size_t k = from.size(); k-- > 0;) {
    if (from[k] != 1 && from[k] != to[lead + k]) return std::nullopt;
    if (from[k] != 1) stride[lead + k] = step;
    step *= static_cast<std::size_t>(from[k]);
  }
  const auto n = static_cast<std::size_t>(count_of(to));
  std::vector<std::size_t> out(n);
  std::vector<std::int64_t> at(to.size(), 0);
  std::size_t index = 0;
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = index;
    for (std::size_t k = to.size(); k-- > 0;) {
      index += stride[k];
      if (++at[k] < to[k]) break;
      index -= stride[k] * static_cast<std::size_t>(to[k]);
      at[k] = 0;
    }
  }
  return out;
}

}  // namespace millstream
