// SPDX-License-Identifier: Apache-2.0
// A small tensor widened to int64 or double, computed on, and narrowed again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "millstream/graph/tensor.h"

namespace millstream {

/// Elements of integer and bool types lie in `whole` (u64 as the same bits), those of f16, f32 and f64 in
/// `real`. A double holds every value of all three, and rounding a double result of + - * / sqrt to f32
/// or f16 equals computing in that type (53 >= 2 * 24 + 2 bits), so nothing is rounded twice wrongly.
struct Numbers {
  DType dtype = DType::undefined;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> whole;
  std::vector<double> real;

  bool is_real() const { return dtype == DType::f16 || dtype == DType::f32 || dtype == DType::f64; }
  std::size_t size() const { return is_real() ? real.size() : whole.size(); }

  static Numbers zeros(DType dtype, std::vector<std::int64_t> dims);
  /// nullopt for types that are not widened and for more than 4096 elements.
  static std::optional<Numbers> of(const Tensor& tensor);
  /// Integers wrap to the type's width.
  Tensor tensor() const;
  static bool widens(DType dtype);
};

/// f16 bits to and from double, to nearest, ties to even.
double half_to_double(std::uint16_t bits);
std::uint16_t double_to_half(double value);

/// For each element of `to` in row-major order, the index of the element of `from` that broadcasting
/// puts there. nullopt when `from` does not broadcast to `to`.
std::optional<std::vector<std::size_t>> broadcast_index(std::span<const std::int64_t> from,
                                                        std::span<const std::int64_t> to);
std::int64_t count_of(std::span<const std::int64_t> dims);

}  // namespace millstream
