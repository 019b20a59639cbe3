// SPDX-License-Identifier: Apache-2.0
// exp for float in straight arithmetic, so that loops over it become vector code.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace millstream {

/// e^x within 2 units in the last place; 0 below -87.3, clamped near the largest float above 88.3; NaN
/// is not kept. Method: x = k ln 2 + r with |r| <= ln 2 / 2, Taylor's polynomial of degree 7 in r (the
/// next term is below 2^-26), scaled by 2^k through the exponent bits.
inline float fast_exp(float x) {
  const float low = -87.3f, high = 88.3f;
  const float clamped = std::min(std::max(x, low), high);
  // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
  const float k = clamped * 1.44269504f + 12582912.0f;
  const float rounded = k - 12582912.0f;
  const float r = (clamped - rounded * 0.693359375f) + rounded * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto exponent = static_cast<std::int32_t>(rounded) + 127;
  const float scale = std::bit_cast<float>(exponent << 23);
  return x < low ? 0.0f : p * scale;
}

}  // namespace millstream
