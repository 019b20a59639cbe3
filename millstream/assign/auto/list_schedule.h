// SPDX-License-Identifier: Apache-2.0
// Candidate assignments for `auto`: critical-path ranks and list scheduling.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "millstream/assign/cost_model.h"
#include "millstream/assign/predict.h"
#include "millstream/assign/tasks.h"

namespace millstream {

/// Upward rank (Topcuoglu, Hariri, Wu 2002): longest way to the exit, own duration included. An edge
/// adds `sync_us` when its ends may part: a chain link, sole successor of a sole predecessor, never does.
IdVec<NodeId, double> upward_ranks(const TaskGraph& tasks, const IdVec<NodeId, double>& durations,
                                   double sync_us);

enum class ListOrder : std::uint8_t {
  execution_order,  ///< place nodes as the lanes will run them
  by_rank,          ///< place the ready node with the highest rank first; lanes still run in execution order
};

struct ListScheduleInput {
  const TaskGraph& tasks;
  const IdVec<NodeId, double>& durations;
  const Costs& costs;
  /// Lane of nodes that are already decided (labels), in [0, fixed_lanes).
  const IdVec<NodeId, std::optional<std::uint32_t>>& fixed;
  std::uint32_t fixed_lanes = 0;
  std::uint32_t free_lanes = 1;  ///< lanes [fixed_lanes, fixed_lanes + free_lanes) take the other nodes
  bool free_sync = false;        ///< price waits, records and hand-offs at nothing (forced streams)
};

/// Earliest finish over the free lanes, where a wait and a record take stream time and a lane that must
/// wait pays the hand-off. Ties: a predecessor's lane, then the lower lane. O(nodes x lanes + edges); by
/// rank a log factor more.
Lanes list_schedule(const ListScheduleInput& in, ListOrder order);

/// Moves nodes of `antichain` until as many free lanes as possible are in use: forced stream counts.
void spread(const ListScheduleInput& in, const std::vector<NodeId>& antichain, Lanes& lanes);

}  // namespace millstream
