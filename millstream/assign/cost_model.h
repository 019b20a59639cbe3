// SPDX-License-Identifier: Apache-2.0
// How long an operator is believed to take on a target. Virtual microseconds.
#pragma once

#include <cstdint>

#include "millstream/core/id.h"
#include "millstream/graph/graph.h"
#include "millstream/target/target.h"

namespace millstream {

/// The parts of one node's cost that do not depend on threads.
struct NodeWork {
  double fixed_us = 0;    ///< launch, or the whole of @cost
  double compute_us = 0;  ///< flops on one core
  double bytes = 0;       ///< read and written
};

struct WorkTable {
  IdVec<NodeId, NodeWork> nodes;
  std::uint32_t unknown = 0;  ///< nodes that count as one launch because their shapes are not static
};

/// From @cost where it is given (it is the whole duration, launch included, whatever the threads), else
/// from flops and bytes of the operator: its attributes `_flops` and `_bytes`, or what its type says. A node with nested graphs costs the sum over their nodes, each
/// once. O(nodes); equal neighbours are computed once.
WorkTable work_of(const Graph& graph, const Target& target);

/// Roofline with Amdahl: launch + max(compute, bytes / bandwidth), where `threads` cores divide
/// costs.parallel_share of the work at the price of parallel_us, if that pays (kernels stay on one core
/// when it does not). Never less than bytes / total_bytes_per_us.
double duration_us(const NodeWork& work, const Costs& costs, std::uint32_t threads);

/// Duration of each node at `threads` cores an operator; what the sim back-end takes.
IdVec<NodeId, double> durations_us(const Graph& graph, const Target& target, std::uint32_t threads);

}  // namespace millstream
