// SPDX-License-Identifier: Apache-2.0
// Collectives of several ranks: ordered alike, or they wait for each other for ever.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "millstream/schedule/schedule.h"

namespace millstream {

struct RankPlan {
  std::string name;  ///< for messages
  const Graph* graph = nullptr;
  const Schedule* schedule = nullptr;
};

struct RankConflict {
  enum class Kind : std::uint8_t {
    order,    ///< two collectives that two ranks run in different orders
    unordered,  ///< on some rank nothing orders them, so it may start them either way
    missing,  ///< a rank of the group never runs the collective
  };
  Kind kind = Kind::order;
  std::string first;   ///< a collective, by node name
  std::string second;  ///< empty for missing
  std::vector<std::size_t> ranks;  ///< that disagree
  std::string message;
};

/// A collective is a node whose type begins with Hcom or Horovod; the same name and the same `group` attribute
/// (a string; none is a group of its own) on several ranks is one collective. Any two that two or more ranks
/// share must be ordered by stream order and record -> wait on each of them, and alike. In order of the first
/// rank. Errors: control_flow for a schedule with control flow, deadlock for one that does not run to its end.
/// O(tasks x streams + collectives^2 x ranks).
Result<std::vector<RankConflict>> check_ranks(std::span<const RankPlan> ranks);

}  // namespace millstream
