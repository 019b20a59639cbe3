// SPDX-License-Identifier: Apache-2.0
// Which record each wait consumes, decided before a run: event ids are reused, so a run must not let whoever
// comes first take a record.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

/// Slot of each record and wait, by physical stream and index in it; a record and the wait that consumes it
/// share one. nullopt: a launch, a record nobody waits for, a wait nobody records for (it blocks for ever).
struct EventPairs {
  std::vector<std::vector<std::optional<std::uint32_t>>> slot;
  std::uint32_t count = 0;
};

/// Streams that run from the start: no task starts them.
std::vector<bool> heads(const Schedule& schedule);

/// When every stream launches in the graph's execution order (as `lower` writes them) and none is started by another,
/// events are paired along that order: an id that is used again was waited for before, so no two records are ever open.
/// Otherwise by running the streams untimed, the lowest first, waiters of an id in order of arrival. Control flow is read
/// as it stands: nothing jumps, and a stream runs once, from where a task first starts it.
/// Errors: shared_event_id when an id is recorded again before its wait; plan_mismatch for a node, event, label or stream
/// that does not exist; deadlock when the streams cannot all get to their end, with the cycle. O(tasks).
Result<EventPairs> pair_events(const Graph& graph, const Schedule& schedule);

}  // namespace millstream
