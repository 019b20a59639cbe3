// SPDX-License-Identifier: Apache-2.0
// Which pairs may share an event id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// Up to this many pairs the number of ids is the least there is.
inline constexpr std::size_t kExactEventPairs = 2048;

/// Pairs on physical streams.
struct PairLanes {
  const Graph& graph;
  const StreamAssignment& on;           ///< for attached streams
  std::span<const SyncPair> pairs;      ///< records and waits of one node in list order
  const std::vector<NodeId>& walk;      ///< a linear extension of stream order and pairs
  const IdVec<NodeId, std::uint32_t>& lane;  ///< physical stream, of placed nodes
  std::uint32_t streams = 0;
  /// By node: whether it runs exactly once in every run of the model. Empty: all do.
  std::vector<std::uint8_t> always;
};

/// One event id a pair, dense, numbered by first record in execution order.
///
/// Our waits consume: whichever wait of an id comes first takes the record that is there. So q may take over
/// p's id only if p's wait happens before q's record, and also before q's wait by orders that do not come
/// over q itself; else q's wait could take p's record. This is a strict order on pairs, so the
/// least number of ids is its width: pairs - a maximum matching of the comparability graph (Dilworth,
/// Hopcroft-Karp), up to kExactEventPairs; above it, each pair takes an id that is free at its wait. With control
/// flow only pairs between nodes that always run share ids, by orders between such nodes: safe, not always least.
/// O(streams x (nodes + pairs)), exact part O(pairs^2.5) at worst.
std::vector<EventId> colour_events(const PairLanes& in, EventIds how);

/// Whether ids that were forced on pairs are safe by the same test; pairs of one `group` (by pair, 2^32 - 1: none)
/// share an id. Errors: shared_event_id (E18) naming both pairs.
Result<void> check_shared(const PairLanes& in, const std::vector<std::uint32_t>& group);

}  // namespace millstream
