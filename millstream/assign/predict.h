// SPDX-License-Identifier: Apache-2.0
// Predicts a plan before it exists: exact waits of an assignment, and its span on a target.
#pragma once

#include <cstdint>
#include <vector>

#include "millstream/assign/cost_model.h"
#include "millstream/assign/tasks.h"
#include "millstream/target/target.h"

namespace millstream {

/// Lane of each task node; a lane runs its nodes in execution order. Lanes are streams under a local
/// number, dense from 0. Nodes without a task: ignored.
struct Lanes {
  IdVec<NodeId, std::uint32_t> of;
  std::uint32_t count = 1;
};

struct LanePair {
  NodeId from;
  NodeId to;
  friend bool operator==(const LanePair&, const LanePair&) = default;
};

/// The waits that the sync stage will keep for these lanes: cross edges of the transitive reduction of
/// dependencies and lane order, by `to` in execution order. Vector clocks, freed after their last reader:
/// O(lanes x (nodes + pairs)). Above kMaxClockLanes only waits implied by a lane's own earlier ones
/// are dropped, which may count more. Own code: sync comes later in the pipeline, and its tests compare.
std::vector<LanePair> exact_pairs(const TaskGraph& tasks, const Lanes& lanes);
inline constexpr std::uint32_t kMaxClockLanes = 2048;

struct Prediction {
  double span_us = 0;     ///< infinite when the plan cannot finish
  double overlap = 0;     ///< share of busy time with two or more operators running
  std::uint64_t pairs = 0;
};

/// Discrete-event simulation: an operator runs on `threads` cores, at most cores / threads operators at
/// once; waits and records take stream time on their lanes, a lane that was blocked starts hand_off_us
/// after the record; operators that run together share total_bytes_per_us fairly (max-min).
/// Ties go to the lower lane. O((nodes + pairs) x lanes).
Prediction predict(const TaskGraph& tasks, const Lanes& lanes, const WorkTable& work,
                   const Target& target, std::uint32_t threads);

/// Span of all tasks on one lane: no waits, so a sum.
double one_lane_us(const TaskGraph& tasks, const WorkTable& work, const Target& target,
                   std::uint32_t threads);

/// No plan on this target is shorter, whatever its threads: the largest of three bounds.
struct LowerBound {
  double critical_path_us = 0;  ///< each node at its shortest
  double cores_us = 0;          ///< work on one core / cores
  double bandwidth_us = 0;      ///< bytes / total_bytes_per_us
};
LowerBound lower_bound(const TaskGraph& tasks, const WorkTable& work, const Target& target);

}  // namespace millstream
