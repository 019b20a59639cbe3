// SPDX-License-Identifier: Apache-2.0
#include "millstream/assign/estimate.h"

#include <algorithm>

namespace millstream {

std::vector<std::uint32_t> one_stream_threads(std::uint32_t cores, const WorkTable& work,
                                              std::optional<std::uint32_t> fixed) {
  if (fixed) return {*fixed};
  std::vector<std::uint32_t> out;
  for (std::uint32_t t = 1; t < cores; t *= 2) out.push_back(t);
  out.push_back(cores);
  if (work.unknown != 0) std::reverse(out.begin(), out.end());
  return out;
}

Candidate best_one_stream(const TaskGraph& tasks, const WorkTable& work, const Target& target,
                          std::optional<std::uint32_t> threads) {
  std::optional<Candidate> best;
  for (const std::uint32_t t : one_stream_threads(target.cores, work, threads)) {
    const Candidate c{1, t, one_lane_us(tasks, work, target, t), 0};
    if (!best || c.span_us < best->span_us) best = c;
  }
  return *best;
}

Estimate estimate_of(const TaskGraph& tasks, const WorkTable& work, const Target& target,
                     const Prediction& plan, double single_stream_us) {
  const LowerBound bound = lower_bound(tasks, work, target);
  Estimate out;
  out.span_us = plan.span_us;
  out.overlap = plan.overlap;
  out.single_stream_us = single_stream_us;
  out.lower_bound_us = std::max({bound.critical_path_us, bound.cores_us, bound.bandwidth_us});
  out.limited_by = out.lower_bound_us == bound.critical_path_us ? "critical path"
                   : out.lower_bound_us == bound.cores_us       ? "cores"
                                                                : "memory bandwidth";
  out.unknown_costs = work.unknown;
  return out;
}

Estimate estimate(const Graph& graph, const Target& target, const StreamAssignment& on) {
  const TaskGraph tasks(graph);
  const WorkTable work = work_of(graph, target);
  Lanes lanes;
  lanes.count = static_cast<std::uint32_t>(std::max<std::size_t>(1, on.streams.size()));
  lanes.of = IdVec<NodeId, std::uint32_t>(graph.node_count(), 0);
  for (const NodeId n : graph.nodes()) {
    if (const auto s = on.stream_of(n)) lanes.of[n] = s->index;
  }
  Prediction plan;
  if (lanes.count == 1) {
    plan.span_us = one_lane_us(tasks, work, target, on.threads_per_op);
  } else {
    plan = predict(tasks, lanes, work, target, on.threads_per_op);
  }
  return estimate_of(tasks, work, target, plan, best_one_stream(tasks, work, target, std::nullopt).span_us);
}

}  // namespace millstream
