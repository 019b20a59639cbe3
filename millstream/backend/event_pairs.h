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

/// A plan with labels, jumps or activations is refused (E36).
Error control_flow_on_device();

/// When every stream launches in the graph's execution order (as `lower` writes them), events are paired
/// along that order: an id that is used again was waited for before, so no two records are ever open.
/// Otherwise by running the streams untimed, the lowest first, waiters of an id in order of arrival.
/// Errors: shared_event_id when an id is recorded again before its wait; plan_mismatch for a node or event
/// that does not exist; control_flow_on_device. O(tasks).
Result<EventPairs> pair_events(const Graph& graph, const Schedule& schedule);

}  // namespace millstream
