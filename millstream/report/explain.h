// SPDX-License-Identifier: Apache-2.0
// Why a node stands where it stands: the rule that placed it, the waits it needs, and what implies the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// Decisions can be explained although the device cannot hold the plan: then the schedule is empty.
struct ExplainInput {
  const Graph& graph;
  const StreamAssignment& on;
  const SyncPlan& sync;
  const Schedule& schedule;
};

/// Where a stream was cut in front of a node.
struct CutReason {
  PhysicalStreamId opened;
  std::string reason;
  std::optional<std::uint32_t> event;  ///< by which the piece waits for the piece before; none: other waits imply it
};

struct NodeReasons {
  NodeId node;
  std::optional<StreamId> stream;  ///< logical
  std::string rule;                ///< empty: it emits no task
  std::string reason;
  std::vector<std::string> decisions;  ///< every rule that had a say; empty where that was not asked for (explain_placement)
  std::vector<NodeId> stream_started_by;
  std::vector<CutReason> cuts;
  std::vector<std::uint32_t> waits;    ///< into SyncPlan::kept
  std::vector<std::uint32_t> dropped;  ///< into SyncPlan::dropped
};

/// Of every node in execution order, or of one. Errors: those of plan_activation. O(nodes + pairs + nodes x cuts).
Result<std::vector<NodeReasons>> explain(const ExplainInput& input, std::optional<NodeId> only = std::nullopt);

/// A line for the node, then one for each fact, indented.
std::string print(const ExplainInput& input, const NodeReasons& node);

}  // namespace millstream
