// SPDX-License-Identifier: Apache-2.0
// Estimates from parts that a caller has already built.
#pragma once

#include <optional>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/assign/predict.h"

namespace millstream {

/// Threads an operator that a one-stream plan may use, the preferred first: `fixed`, or powers of two up to
/// the cores, and all cores. Fewer are preferred, unless costs are unknown: an operator that counts as one
/// launch may be a large one, and kernels stay on one core where more do not pay.
std::vector<std::uint32_t> one_stream_threads(std::uint32_t cores, const WorkTable& work,
                                              std::optional<std::uint32_t> fixed);

/// The best plan with one stream on these cores; ties go to the preferred threads.
Candidate best_one_stream(const TaskGraph& tasks, const WorkTable& work, const Target& target,
                          std::optional<std::uint32_t> threads);

Estimate estimate_of(const TaskGraph& tasks, const WorkTable& work, const Target& target,
                     const Prediction& plan, double single_stream_us);

}  // namespace millstream
