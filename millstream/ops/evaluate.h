// SPDX-License-Identifier: Apache-2.0
// Evaluation of small values at compile time: the arithmetic that models do on shapes.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "millstream/ops/op.h"

namespace millstream {

/// No evaluated output is larger than this.
inline constexpr std::uint64_t kMaxEvaluatedBytes = 4096;

/// Outputs of a node, or nullopt when they cannot be had here: unknown or too many elements, a type that
/// is not evaluated, or a result that the operator leaves undefined (division by zero). What is returned
/// is bitwise what a kernel gives: integers, and floating operations that IEEE rounds correctly.
/// `outputs` are the inferred descs.
using EvaluateFn = std::optional<std::vector<Tensor>> (*)(const ShapeContext&, std::span<const TensorDesc> outputs);

struct Evaluator {
  std::string_view type;
  EvaluateFn evaluate;
  bool needs_values = true;  ///< false: reads only descs (Shape, Size)
};

/// The evaluator of a type, or null.
const Evaluator* find_evaluator(std::string_view type);

/// The rows of each file, ascending by type.
std::span<const Evaluator> arithmetic_evaluators();
std::span<const Evaluator> movement_evaluators();

}  // namespace millstream
