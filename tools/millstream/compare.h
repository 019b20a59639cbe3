// SPDX-License-Identifier: Apache-2.0
// How far an output is from what was expected.
#pragma once

#include "millstream/core/result.h"
#include "millstream/graph/tensor.h"

namespace millstream::cli {

struct Difference {
  double max_abs_err = 0;
  double max_rel_err = 0;  ///< against max(|expected|), element by element where expected is not 0
  bool ok = false;         ///< |got - want| <= atol_scale * max|want| + rtol * |want| for every element; NaN equals NaN
};

/// Same type and shape needed (error: expectation, naming both).
Result<Difference> compare(const Tensor& got, const Tensor& want, double rtol, double atol_scale);

}  // namespace millstream::cli
