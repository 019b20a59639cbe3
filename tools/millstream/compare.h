// SPDX-License-Identifier: Apache-2.0
// How far an output is from what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/tensor.h"

namespace millstream::cli {

struct Difference {
  double max_abs_err = 0;
  double max_rel_err = 0;  ///< against max(|expected|), element by element where expected is not 0
  /// Of the element that is furthest out, against what it may be off; only where not ok.
  std::string worst;                ///< "at [3,5]: have 0.5, want 0.25, allowed error 1e-06"
  std::vector<std::int64_t> where;  ///< its index in each dimension
  std::uint64_t outside = 0;        ///< elements further off than allowed
  bool ok = false;         ///< |got - want| <= atol_scale * max|want| + rtol * |want| for every element; NaN equals NaN
};

/// Same type and shape needed (error: expectation, naming both).
Result<Difference> compare(const Tensor& got, const Tensor& want, double rtol, double atol_scale);

}  // namespace millstream::cli
