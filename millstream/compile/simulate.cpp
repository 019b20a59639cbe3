// SPDX-License-Identifier: Apache-2.0
#include "millstream/compile/simulate.h"

#include <fmt/format.h>

#include "millstream/assign/cost_model.h"
#include "millstream/backend/backend.h"

namespace millstream {
namespace {

struct Nothing : Launcher {
  Result<void> launch(NodeId, PhysicalStreamId) override { return {}; }
};

}  // namespace

Result<Trace> simulate(const Graph& graph, const Target& target, const Schedule& schedule, std::uint32_t threads_per_op) {
  const IdVec<NodeId, double> durations = durations_us(graph, target, threads_per_op);
  if (schedule.has_control()) return walk_once(schedule, durations, target.costs);
  Nothing nothing;
  ExecuteOptions execute;
  execute.trace = true;
  return make_sim_backend(target, durations, false)->execute(graph, schedule, nothing, execute);
}

Result<ReportView> simulated_view(const ReportInput& input, const ReportPlan& plan) {
  MST_TRY(const Trace trace, simulate(input.graph, input.target, input.schedule, input.assignment.threads_per_op));
  std::string what = input.schedule.has_control() ? fmt::format("predicted on target {}, each branch and loop body once", input.target.name)
                                                  : fmt::format("simulated on target {}", input.target.name);
  return view_of(input, plan, trace, std::move(what));
}

}  // namespace millstream
