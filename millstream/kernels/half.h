// SPDX-License-Identifier: Apache-2.0
// Small floating-point formats as bit patterns: f16, bf16, the four f8 kinds and f4. Own bit code: no
// processor feature is assumed. Every narrowing rounds to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace millstream {

/// Layout of a format of at most 16 bits: sign, exponent, mantissa. `max_code` is the code (without
/// sign) of the largest finite value; `overflow_code` is what an infinity becomes without saturation.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  std::uint32_t max_code;
  std::uint32_t overflow_code;
  std::uint32_t nan_code;
  /// fnuz kinds: no negative zero, its code is the only NaN, and an infinity has no code.
  bool unsigned_zero;
  bool has_infinity;
};

inline constexpr SmallFloat kF16Format = {5, 10, 15, 0x7bff, 0x7c00, 0x7e00, false, true};
inline constexpr SmallFloat kF8E4M3FN = {4, 3, 7, 0x7e, 0x7f, 0x7f, false, false};
inline constexpr SmallFloat kF8E4M3FNUZ = {4, 3, 8, 0x7f, 0x80, 0x80, true, false};
inline constexpr SmallFloat kF8E5M2 = {5, 2, 15, 0x7b, 0x7c, 0x7e, false, true};
inline constexpr SmallFloat kF8E5M2FNUZ = {5, 2, 16, 0x7f, 0x80, 0x80, true, false};
/// No NaN and no infinity: NaN becomes the largest value, as saturation does.
inline constexpr SmallFloat kF4E2M1 = {2, 1, 1, 0x7, 0x7, 0x7, false, false};

/// With `saturate`, values beyond the largest finite one, infinities included, become it.
constexpr std::uint32_t narrow(const SmallFloat& f, float value, bool saturate) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const std::uint32_t sign = (bits >> 31) << (width - 1);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return f.unsigned_zero ? f.nan_code : (sign | f.nan_code);
  std::uint32_t code = 0;
  if (magnitude == 0x7f800000u) {
    code = f.max_code + 1;
  } else {
    const int field = static_cast<int>(magnitude >> 23);
    const int exponent = field == 0 ? -126 : field - 127;
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | (field == 0 ? 0u : 0x800000u);
    const int least = 1 - f.bias;
    const int shift = 23 - f.mantissa_bits + (exponent < least ? least - exponent : 0);
    if (shift < 32) {
      const std::uint32_t half = 1u << (shift - 1);
      std::uint32_t kept = mantissa >> shift;
      const std::uint32_t rest = mantissa & ((half << 1) - 1);
      if (rest > half || (rest == half && (kept & 1u) != 0)) ++kept;
      // The implicit one, when there is one, adds one to the exponent field: exactly what is needed.
      code = kept + (exponent > least ? static_cast<std::uint32_t>(exponent - least) << f.mantissa_bits : 0u);
    }
  }
  if (code > f.max_code) {
    if (saturate) return sign | f.max_code;
    return f.unsigned_zero ? f.nan_code : (sign | f.overflow_code);
  }
  if (code == 0 && f.unsigned_zero) return 0;
  return sign | code;
}

constexpr float widen(const SmallFloat& f, std::uint32_t bits) {
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const std::uint32_t sign_bit = 1u << (width - 1);
  const std::uint32_t code = bits & (sign_bit - 1);
  const std::uint32_t sign = (bits & sign_bit) != 0 ? 0x80000000u : 0u;
  if (f.unsigned_zero && (bits & ((sign_bit << 1) - 1)) == sign_bit) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (code > f.max_code) {
    if (f.has_infinity && code == f.overflow_code) return std::bit_cast<float>(sign | 0x7f800000u);
    return std::bit_cast<float>(sign | 0x7fc00000u);
  }
  const std::uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const int field = static_cast<int>(code >> f.mantissa_bits);
  if (field != 0) {
    return std::bit_cast<float>(sign | static_cast<std::uint32_t>(field - f.bias + 127) << 23 |
                                mantissa << (23 - f.mantissa_bits));
  }
  // Subnormal: mantissa * 2^(1 - bias - mantissa_bits), exact in float.
  const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(1 - f.bias - f.mantissa_bits + 127) << 23);
  const float value = static_cast<float>(mantissa) * unit;
  return sign != 0 ? -value : value;
}

constexpr float f16_to_f32(std::uint16_t bits) { return widen(kF16Format, bits); }
constexpr std::uint16_t f32_to_f16(float value) {
  return static_cast<std::uint16_t>(narrow(kF16Format, value, false));
}

constexpr float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
constexpr std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// f16 and bf16 as element types: storage is 16 bits, arithmetic is float.
struct F16 {
  std::uint16_t bits = 0;
  F16() = default;
  explicit F16(float value) : bits(f32_to_f16(value)) {}
  operator float() const { return f16_to_f32(bits); }  // NOLINT: a stored float reads as one
};
struct BF16 {
  std::uint16_t bits = 0;
  BF16() = default;
  explicit BF16(float value) : bits(f32_to_bf16(value)) {}
  operator float() const { return bf16_to_f32(bits); }  // NOLINT: a stored float reads as one
};
static_assert(sizeof(F16) == 2 && sizeof(BF16) == 2);

}  // namespace millstream
