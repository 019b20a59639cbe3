// SPDX-License-Identifier: Apache-2.0
// What `check` knows of a schedule with control flow or attached streams.
#pragma once

#include <optional>
#include <vector>

#include "millstream/schedule/replay.h"

namespace millstream {

struct ControlOutcome {
  std::vector<Violation> violations;  ///< all but races
  struct Race {
    std::uint32_t requirement = 0;
    TaskRef first, second;
    bool reversed = false;
  };
  std::vector<Race> races;
  std::vector<TaskRef> waits;  ///< those that may be taken out: not the fork and join of an attached stream
  bool unsafe_start = false;   ///< a stream may still run when it is started again
};

/// Walks every task once, in an order that every execution respects within an iteration, with a clock and a
/// region (regions.h) a stream. A stream with several activators starts, and a label that several ways lead
/// to is reached, after at least one of them: the element-wise minimum. Ways back and loop activations are
/// left out, since what precedes the first iteration precedes them all; in exchange everything a loop starts
/// must have ended where it goes back. `ignore`: that wait passes but orders nothing.
/// Node, event and control ids must be in range. O(tasks x log streams + (syncs + branches) x streams).
ControlOutcome replay_control(const Graph& graph, const Schedule& schedule, const RequirementList& required,
                              std::optional<TaskRef> ignore = std::nullopt);

/// Waits that can go, each taken alone, for a schedule without violations: by trying, within a bounded amount
/// of work; a wait not tried is not listed.
std::vector<CheckReport::Redundant> redundant_waits(const Graph& graph, const Schedule& schedule,
                                                    const RequirementList& required, const ControlOutcome& outcome);

}  // namespace millstream
