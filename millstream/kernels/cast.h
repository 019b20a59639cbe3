// SPDX-License-Identifier: Apache-2.0
// Conversion of elements between types, also for the kernels that quantize.
#pragma once

#include <cstdint>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"

namespace millstream {

/// The layout of an f8 kind, or null.
const SmallFloat* f8_format(DType type);

/// Elements [first, first + n) of packed `bytes` as floats. False when the type has no numbers.
bool load_floats(DType type, const std::byte* bytes, std::int64_t first, std::int64_t n, float* out);
/// The inverse; 4-bit integers are rounded to even and clamped, `saturate` concerns the f8 kinds.
bool store_floats(DType type, const float* in, std::int64_t first, std::int64_t n, bool saturate, std::byte* bytes);

/// out = in, converted; as many elements. False when one of the types has no numbers.
bool cast_elements(const Tensor& in, Tensor& out, bool saturate, int threads);

}  // namespace millstream
