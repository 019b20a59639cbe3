// SPDX-License-Identifier: Apache-2.0
// Under which decisions, and in which loops, a task runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "millstream/core/id.h"

namespace millstream {

using RegionId = Id<struct RegionTag>;  ///< 0 runs once in every run of the model

/// A branch or the predicate of switches: one of `options` outcomes each time.
struct Condition {
  std::uint32_t decision = 0;
  std::vector<std::uint32_t> outcomes;  ///< ascending, fewer than the decision's options
  friend auto operator<=>(const Condition&, const Condition&) = default;
};

/// All conditions hold, in the current iteration of every loop.
struct Region {
  std::vector<Condition> when;       ///< by decision, ascending
  std::vector<std::uint32_t> loops;  ///< outermost first
  friend auto operator<=>(const Region&, const Region&) = default;
};

/// The regions of one schedule. Equal regions have equal ids. Sets are small: costs are linear in them.
class Regions {
 public:
  Regions() { intern({}); }
  const Region& operator[](RegionId r) const { return list_[r]; }
  std::uint32_t add_decision(std::uint32_t options, std::vector<std::uint32_t> loops) {
    options_.push_back(options);
    made_in_.push_back(std::move(loops));
    return static_cast<std::uint32_t>(options_.size() - 1);
  }
  RegionId intern(Region region);
  /// `r` where the decision also has this outcome; nothing when that contradicts r.
  std::optional<RegionId> narrow(RegionId r, std::uint32_t decision, std::uint32_t outcome);
  RegionId enter_loop(RegionId r, std::uint32_t loop);
  /// Behind a loop that has one way out: what was decided inside it is past.
  RegionId leave_loop(RegionId r, std::uint32_t loop);
  /// No run has both (in one iteration of the loops they share).
  bool exclusive(RegionId a, RegionId b) const;
  /// Whenever a runs, so does b, and equally often.
  bool implies(RegionId a, RegionId b) const;
  /// Where at least one of them runs; a condition that no list of conditions can say becomes a decision of its
  /// own, which contains all of them only as far as their common conditions say.
  RegionId join(std::vector<RegionId> parts);

 private:
  std::vector<std::uint32_t> options_;                 // by decision
  std::vector<std::vector<std::uint32_t>> made_in_;    // by decision: the loops around it
  IdVec<RegionId, Region> list_;
  std::map<Region, RegionId> known_;
};

}  // namespace millstream
