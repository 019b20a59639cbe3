// SPDX-License-Identifier: Apache-2.0
// The clocks behind plan_sync: what happens before a node, and which pairs that leaves to be kept.
#pragma once

#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/sync/activation.h"
#include "millstream/sync/conditions.h"
#include "millstream/sync/control.h"
#include "millstream/sync/insert.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

struct ReduceInput {
  const Graph& graph;
  const StreamAssignment& on;
  const Insertion& inserted;
  const Activation& activation;
  const ControlFlow& flow;
  Conditions* conditions = nullptr;  ///< of a graph with activations or jumps: what cannot run needs no order
};

/// The exact plan: kept pairs with forks and joins, dropped pairs with the steps that imply them.
Result<SyncPlan> reduce(const ReduceInput& in);

/// A plan that keeps just `given` (between streams) with forks and joins: what it implies of the required pairs
/// is dropped with a proof, the others are lost.
struct GivenPlan {
  SyncPlan plan;
  std::vector<SyncPair> lost;
};
Result<GivenPlan> explain_given(const ReduceInput& in, const std::vector<SyncPair>& given);

}  // namespace millstream
