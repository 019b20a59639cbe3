// SPDX-License-Identifier: Apache-2.0
// Nodes that a plan of the rule chain may leave out.
#pragma once

#include "millstream/memory/memory_plan.h"

namespace millstream {

/// A node that no stream runs, which is no fault where no target says so: the rule chain leaves out nodes of skip
/// engines that read nothing that a stream makes in their own graph.
bool left_out(const Graph& graph, const Plan& plan, const Violation& v);

}  // namespace millstream
