// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "millstream/schedule/replay_control.h"

namespace millstream {
namespace {

// Clock entries that trying out may touch; seconds at most.
constexpr std::uint64_t kWork = 1'500'000'000;

}  // namespace

std::vector<CheckReport::Redundant> redundant_waits(const Graph& graph, const Schedule& schedule,
                                                    const RequirementList& required, const ReplayOutcome& outcome) {
  std::uint64_t one_run = required.items.size() + 4 * graph.node_count();
  for (const PhysicalStream& s : schedule.streams) one_run += 4 * s.tasks.size();
  one_run += 2 * outcome.waits.size() * schedule.streams.size();
  std::uint64_t tries = kWork / std::max<std::uint64_t>(one_run, 1);

  std::vector<CheckReport::Redundant> out;
  for (const ReplayOutcome::Wait& w : outcome.waits) {
    bool redundant = w.need == ReplayOutcome::Need::implied;
    if (w.need == ReplayOutcome::Need::open && tries > 0) {
      --tries;
      ReplayOptions without;
      without.ignore = w.wait;
      without.stop_at_first_race = true;
      redundant = replay(graph, schedule, required, without).races.empty();
    }
    if (redundant) out.push_back({w.event, w.wait});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.wait < b.wait; });
  return out;
}

std::vector<CheckReport::Redundant> redundant_waits(const Graph& graph, const Schedule& schedule,
                                                    const RequirementList& required, const ControlOutcome& outcome) {
  std::uint64_t one_run = required.items.size() + 4 * graph.node_count();
  for (const PhysicalStream& s : schedule.streams) one_run += s.tasks.size() * (4 + schedule.streams.size());
  std::uint64_t tries = kWork / 4 / std::max<std::uint64_t>(one_run, 1);
  std::vector<CheckReport::Redundant> out;
  for (const TaskRef& w : outcome.waits) {
    if (tries-- == 0) break;
    const ControlOutcome without = replay_control(graph, schedule, required, w);
    if (without.races.empty() && !without.unsafe_start) out.push_back({schedule.streams[w.stream].tasks[w.index].event(), w});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.wait < b.wait; });
  return out;
}

}  // namespace millstream
