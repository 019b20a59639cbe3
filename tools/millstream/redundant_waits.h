// SPDX-License-Identifier: Apache-2.0
// Waits that may all go together, and what makes each unnecessary.
#pragma once

#include <string>
#include <vector>

#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream::cli {

struct JointlyRedundant {
  CheckReport::Redundant what;
  bool ordered = false;           ///< the waits that stay still imply this order; else no dependency needs it
  std::vector<SyncPair> implied;  ///< the waits on that path, in order; empty where the streams' own order does it
};

struct RedundantWaits {
  std::vector<JointlyRedundant> waits;
  bool jointly = true;  ///< false: too many to try, or control flow: each may go, but perhaps not all of them
};

/// From what check found (each on its own), greedily in order: a wait and its record are taken out, and put
/// back when the schedule is no longer right. One check for each; `extra` as for check.
RedundantWaits redundant_together(const Graph& graph, const Schedule& schedule, const CheckReport& report,
                                  std::span<const Requirement> extra);

}  // namespace millstream::cli
