// SPDX-License-Identifier: Apache-2.0
// The order among the nodes of one parallel group.
#pragma once

#include <vector>

#include "millstream/graph/graph.h"

namespace millstream {

/// Control edges that put the nodes of each parallel group one behind the other, in execution order, scope by
/// scope; made before streams are decided. Across a conditional (from StreamSwitch to StreamMerge) the edge ends
/// at the node that feeds the switch and begins at the last of its merges; alternatives of one switch are not
/// chained to each other. Edges that are there or would close a cycle are left out.
/// O(members + switches x nodes).
std::vector<ControlEdge> group_chain(const Graph& graph);

}  // namespace millstream
