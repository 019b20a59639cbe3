// SPDX-License-Identifier: Apache-2.0
// check PLAN --ranks A B ...: collectives of several ranks.
#pragma once

#include <string>
#include <vector>

#include "tools/millstream/common.h"

namespace millstream::cli {

/// The first rank's plan and those of the others; prints what they disagree on. 0 when nothing, else 1.
Result<int> run_ranks(const ModelOptions& first, const std::vector<std::string>& others);

}  // namespace millstream::cli
