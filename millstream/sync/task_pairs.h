// SPDX-License-Identifier: Apache-2.0
// Orders between tasks only. A placed node without a task (Data, NetOutput, a node whose scopes do its work, a StreamActive that
// starts nothing) has a place on its stream, at which a plan may wait, but nothing runs there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/graph/graph.h"
#include "millstream/sync/activation.h"
#include "millstream/sync/control.h"
#include "millstream/sync/insert.h"
#include "millstream/sync/reduce.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// By node: 1 where a task runs, 0 where none does.
IdVec<NodeId, std::uint8_t> nodes_with_task(const Graph& graph, const Activation& activation);

/// What tasks need of tasks on other streams of `lanes`: dependencies through nodes without a task, and what scopes and loops
/// need beside them. `lanes` is `on`, or `on` with streams cut. O(nodes + edges), plus the paths through nodes
/// without a task.
Insertion task_pairs(const Graph& graph, const StreamAssignment& on, const StreamAssignment& lanes, const Activation& activation,
                     const ControlFlow& flow, const IdVec<NodeId, std::uint8_t>& tasks);

/// `pairs` without those that may go and that no order of `in.inserted` needs. First go those that no proof of such an order
/// uses, in one pass; then each of the others is tried, one pass each, within a bounded amount of work. Nothing goes
/// where `pairs` leave an order unproved.
Result<std::vector<SyncPair>> without_idle_pairs(const ReduceInput& in, std::vector<SyncPair> pairs, const std::function<bool(const SyncPair&)>& may_go);

}  // namespace millstream
