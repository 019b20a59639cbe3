// SPDX-License-Identifier: Apache-2.0
// How long a plan takes in the virtual time of a target.
#pragma once

#include "millstream/core/result.h"
#include "millstream/report/report_data.h"
#include "millstream/schedule/schedule.h"
#include "millstream/target/target.h"
#include "millstream/trace/trace.h"

namespace millstream {

/// One run of the plan on the target's device, without values: of control flow each branch and loop body once.
/// `threads_per_op`: what the plan gives an operator. Errors: those of the back-end.
Result<Trace> simulate(const Graph& graph, const Target& target, const Schedule& schedule, std::uint32_t threads_per_op);

/// The same as a view of the report.
Result<ReportView> simulated_view(const ReportInput& input, const ReportPlan& plan);

}  // namespace millstream
