// SPDX-License-Identifier: Apache-2.0
// The required orders between logical streams: kept pairs, dropped pairs and the proof for each drop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/core/id.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

using PairId = Id<struct PairTag>;  ///< index into SyncPlan::kept

enum class PairReason : std::uint8_t {
  data,
  control,
  reuse,
  split,
  user,
  exit,      ///< a scope's end node before a consumer of its parent node
  entry,     ///< the activation that opens a scope before the scope's first node on a stream it shares
  loop,      ///< the last node of a stream before what starts the stream again
  fork,      ///< a node's start before its part on an attached stream; from == to
  join,      ///< the attached part before what follows the node on its own stream; from == to
};
std::string_view to_string(PairReason reason);

/// `from` must have run before `to` starts; they are on different streams. A fork or join pair names one node
/// twice: it orders the node against its part on `stream`, an attached stream.
struct SyncPair {
  NodeId from;
  NodeId to;
  PairReason reason = PairReason::data;
  StreamId stream = {};  ///< of fork and join pairs: the attached stream
  friend bool operator==(const SyncPair&, const SyncPair&) = default;
};

/// A dropped pair and the kept pairs that imply it, in order: from <= (same stream) p0.from, p0.to <=
/// p1.from, ..., pk.to <= to. Re-checkable in O(length) by code that does not share the reducer.
struct DroppedPair {
  SyncPair pair;
  std::uint32_t path_begin = 0;  ///< into SyncPlan::path_pool
  std::uint32_t path_length = 0;
};

enum class SyncMode : std::uint8_t {
  exact,   ///< the least that keeps every order and adds none
  compat,  ///< the three local rules of Graph Engine, verbatim: counts and ids can be compared with its dumps
  fewest,  ///< fewer pairs than exact by adding order, only when exact exceeds `max_pairs`; reported
  none,    ///< every inserted pair (tests, comparisons)
};
enum class EventKind : std::uint8_t { event, notify };

struct SyncOptions {
  SyncMode mode = SyncMode::exact;
  EventKind kind = EventKind::event;  ///< a dynamic graph keeps events, with a warning
  std::uint32_t max_pairs = 0xffffffffu;  ///< fewest: the cap that must be met
  bool count_compat = false;  ///< exact: also compute what compat would keep, for the summary
};

/// Counts of the three local rules; what GetEventNum and old dumps show.
struct CompatCounts {
  std::uint32_t inserted = 0;        ///< parallel edges counted one by one
  std::uint32_t after_send = 0;
  std::uint32_t after_receive = 0;
  std::uint32_t after_activate = 0;  ///< kept
  friend bool operator==(const CompatCounts&, const CompatCounts&) = default;
};

struct SyncPlan {
  std::vector<SyncPair> kept;      ///< by `to` in execution order, then `from` in execution order
  std::vector<DroppedPair> dropped;
  std::vector<PairId> path_pool;
  std::uint32_t inserted = 0;  ///< pairs before reduction, parallel edges once
  SyncMode mode = SyncMode::exact;  ///< how the plan was made: what verify holds it to
  EventKind kind = EventKind::event;
  std::optional<CompatCounts> compat;  ///< with SyncMode::compat or count_compat
  std::vector<Error> warnings;  ///< unsound drops of compat, order added by fewest, ...

  std::span<const PairId> path(const DroppedPair& d) const {
    return {path_pool.data() + d.path_begin, d.path_length};
  }
};

/// Inserts one pair per cross-stream dependency and keeps exactly those of the transitive reduction of
/// (dependencies u stream order): unique and minimum in the class "fixed assignment, fixed order on each
/// stream, every dependency kept, no order added". Vector clocks, one column a logical stream, freed after
/// their last reader: O(streams x (nodes + pairs)) time.
Result<SyncPlan> plan_sync(const Graph& graph, const StreamAssignment& on, const SyncOptions& options);

/// Kept pairs with their reason, dropped pairs with the path that implies each; one a line.
std::string print(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan);

/// Every certificate re-checked, every cross-stream dependency kept or dropped with a path; with `exact`
/// no kept pair removable. Trusts nothing in the plan. Shares no code with plan_sync.
std::vector<Error> verify(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan);

}  // namespace millstream
