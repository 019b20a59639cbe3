// SPDX-License-Identifier: Apache-2.0
// The names that tasks of synchronisation carry in the Ascend ecosystem.
#pragma once

#include <string>
#include <vector>

#include "millstream/schedule/schedule.h"

namespace millstream {

/// One name a task. Records and waits: GRAPH_Send_ID and GRAPH_Recv_ID (notifies: GRAPH_NotifyRecord_ID and
/// GRAPH_NotifyWait_ID); the k-th further use of a name, in execution order, ends in _Reuse_k. Activations of a relay
/// stream: SWITCH_StreamActive_BRANCH. Every other task has its node's name.
IdVec<PhysicalStreamId, std::vector<std::string>> task_names(const Graph& graph, const Schedule& schedule);

}  // namespace millstream
