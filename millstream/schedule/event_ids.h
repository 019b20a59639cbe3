// SPDX-License-Identifier: Apache-2.0
// Which pairs may share an event id.
#pragma once

#include <cstdint>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// Up to this many pairs the number of ids is the least there is.
inline constexpr std::size_t kExactEventPairs = 2048;

/// One event id a pair of plan.kept, dense, numbered by first record in execution order.
///
/// Our waits consume: whichever wait of an id comes first takes the record that is there. So q may take over
/// p's id only if p's wait happens before q's record, and also before q's wait by orders that do not come
/// over q itself; else q's wait could take p's record. This is a strict order on pairs, so the
/// least number of ids is its width: pairs - a maximum matching of the comparability graph (Dilworth,
/// Hopcroft-Karp), up to kExactEventPairs; above it, each pair takes an id that is free at its wait.
/// `walk`: a linear extension of stream order and kept pairs. O(streams x (nodes + pairs)), exact part
/// O(pairs^2.5) at worst.
std::vector<EventId> colour_events(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan,
                                   const std::vector<NodeId>& walk, EventIds how);

}  // namespace millstream
