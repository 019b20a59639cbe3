// SPDX-License-Identifier: Apache-2.0
// What two plans of one model do differently. Streams are compared by what they run, not by their numbers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"
#include "tools/millstream/common.h"

namespace millstream::cli {

struct PlanSide {
  std::map<std::string, std::uint32_t> stream;  ///< node name -> logical stream
  std::set<std::pair<std::string, std::string>> waits;
  bool has_waits = true;  ///< false: a dump that says where nodes stand, and no more
};
/// Errors: deadlock, where it cannot be said which wait is for what.
Result<PlanSide> plan_side(const Graph& graph, const Schedule& schedule, bool has_waits);

/// Rows as `diff --json` prints them.
struct PlanDifference {
  Json moved = Json::array();
  Json renumbered = Json::array();
  Json added_waits = Json::array();
  Json removed_waits = Json::array();
};
PlanDifference plan_difference(const PlanSide& a, const PlanSide& b);
/// One line for each row; `a` and `b` are what the text calls the two.
void print_difference(const PlanDifference& difference, std::string_view a, std::string_view b);
void print_totals(const PlanDifference& difference);

}  // namespace millstream::cli
