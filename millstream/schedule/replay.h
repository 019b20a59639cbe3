// SPDX-License-Identifier: Apache-2.0
// One run of a schedule with clocks: what `check` knows of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "millstream/schedule/schedule.h"

namespace millstream {

/// What must run before each node, by the later node.
struct RequirementList {
  std::vector<std::uint32_t> begin;  ///< by node; one more at the end
  std::vector<Requirement> items;
  std::span<const Requirement> of(NodeId n) const {
    return {items.data() + begin[n.index], begin[n.index + 1] - begin[n.index]};
  }
};

/// What one run found. Indices of requirements refer to RequirementList::items.
struct ReplayOutcome {
  struct Race {
    std::uint32_t requirement = 0;
    TaskRef second;
    bool reversed = false;  ///< the later access happens before the earlier one
  };
  /// Two uses of one event that another run may pair differently.
  struct Reuse {
    EventId event;
    enum class Kind : std::uint8_t { record_unread, record_early, waits_unordered } kind;
    TaskRef earlier;
    TaskRef later;
  };
  /// A wait that no record came for.
  struct Stuck {
    TaskRef wait;
    EventId event;
    /// The record it could have had went to this wait.
    std::optional<TaskRef> taken_by;
  };
  std::vector<Race> races;
  std::vector<Reuse> reuses;  ///< the first of each event
  std::vector<Stuck> stuck;   ///< by stream
  std::vector<std::uint32_t> done;  ///< by physical stream: tasks completed

  enum class Need : std::uint8_t { implied, needed, open };
  struct Wait {
    TaskRef wait;
    EventId event;
    Need need = Need::open;
  };
  /// Every wait taken, when asked for: implied by the other orders at its place; needed because a
  /// dependency of the next node has no other way; or open.
  std::vector<Wait> waits;
};

struct ReplayOptions {
  bool classify_waits = false;
  std::optional<TaskRef> ignore;     ///< this wait passes but orders nothing
  bool stop_at_first_race = false;
};

/// Runs the schedule, streams in order of their next node's place in the execution order, so that a
/// plan with one wait too few still pairs as it was meant. If it finds no Reuse and nothing stuck, every run
/// pairs records and waits as this one does. Node and event ids must be in range.
/// O(tasks x log streams + (records + waits) x streams + requirements).
ReplayOutcome replay(const Graph& graph, const Schedule& schedule, const RequirementList& required,
                     const ReplayOptions& options);

/// Waits whose removal loses no required order, each taken alone, for a schedule without violations.
/// What `replay` leaves open is tried out, one run a wait, within a bounded amount of work; a wait not tried
/// is not listed.
std::vector<CheckReport::Redundant> redundant_waits(const Graph& graph, const Schedule& schedule,
                                                    const RequirementList& required,
                                                    const ReplayOutcome& outcome);

}  // namespace millstream
