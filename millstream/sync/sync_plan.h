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
  entry,     ///< what opens a scope before the scope's first nodes: its first activation before those on a stream it
             ///< shares, or the node that owns it where it has none
  loop,      ///< the last node of a stream before what starts the stream again
  fork,      ///< a node's start before its part on an attached stream; from == to
  join,      ///< the attached part before what follows the node on its own stream; from == to
  merged,    ///< stands for several pairs and orders more than they did (SyncMode::fewest)
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

/// A step of a path: a kept pair (below kStartStep), or a StartFact.
inline constexpr std::uint32_t kStartStep = 0x80000000u;

/// A dropped pair and the steps that imply it, in order: from <= (same stream) p0.from, p0.to <=
/// p1.from, ..., pk.to <= to. Re-checkable in O(length) by code that does not share the reducer. A pair's
/// record stands behind the join of its sender's attached streams, its wait before the receiver's fork. A fork
/// leads from what precedes the node on its stream to its part on the attached stream, a join from there to what
/// follows the node.
struct DroppedPair {
  SyncPair pair;
  std::uint32_t path_begin = 0;  ///< into SyncPlan::path_pool
  std::uint32_t path_length = 0;
};

/// `source` (its part on `stream`, if that is an attached stream) precedes `start` whichever way `start` is
/// reached: the first node of a started stream by one of its activators, a label by falling through or by a
/// jump that names it. One path for each way; its steps name kept pairs and earlier facts. A way in which a node of
/// `stream` at or before `source` cannot run needs a path for what precedes that node only.
struct StartFact {
  NodeId start;
  NodeId source;
  StreamId stream;  ///< of source
  std::uint32_t ways_begin = 0;  ///< into SyncPlan::start_ways
  std::uint32_t ways = 0;
};
struct StartWay {
  NodeId through;  ///< activator, jump, or the node before the label
  std::uint32_t path_begin = 0;  ///< into SyncPlan::path_pool; from source to `through`, empty on one stream
  std::uint32_t path_length = 0;
  std::optional<NodeId> idle = std::nullopt;  ///< of the source's stream: does not run in this way, nor does what follows it
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
  std::uint32_t after_activate = 0;
  std::uint32_t after_switch = 0;    ///< without events that a StreamSwitch sends
  std::uint32_t added = 0;           ///< afterwards: ends of streams that a loop starts again, forks and joins of attached streams
  std::uint32_t kept() const { return after_switch + added; }
  friend bool operator==(const CompatCounts&, const CompatCounts&) = default;
};

struct SyncPlan {
  std::vector<SyncPair> kept;      ///< by `to` in execution order, then `from` in execution order
  std::vector<DroppedPair> dropped;
  std::vector<PairId> path_pool;    ///< steps
  std::vector<StartFact> starts;    ///< empty without control flow
  std::vector<StartWay> start_ways;
  std::uint32_t inserted = 0;  ///< pairs before reduction, parallel edges once
  SyncMode mode = SyncMode::exact;  ///< how the plan was made: what verify holds it to
  EventKind kind = EventKind::event;
  std::optional<CompatCounts> compat;  ///< with SyncMode::compat or count_compat
  /// compat: pairs that its rules drop although nothing kept orders the two in every run; each is a warning too.
  std::vector<SyncPair> lost;
  /// compat: kept pairs whose record may never come; each is a warning too.
  std::vector<SyncPair> unmet;
  std::vector<Error> warnings;  ///< unsound drops of compat, order added by fewest, ...

  std::span<const PairId> path(const DroppedPair& d) const {
    return {path_pool.data() + d.path_begin, d.path_length};
  }
};

/// Inserts one pair per cross-stream dependency and keeps exactly those of the transitive reduction of
/// (dependencies u stream order u activations): unique and minimum in the class "fixed assignment, fixed order
/// on each stream, every dependency kept, no order added". Vector clocks, one column a logical stream, freed
/// after their last reader: O(streams x (nodes + pairs)) time. Of the pairs at nodes without a task only those stay that
/// some order between tasks needs; the rest are neither kept nor dropped. A stream of several activators and a label that
/// is reached in several ways know what all of them know: the minimum, entry by entry.
/// Errors: those of plan_activation; E04 (a node without a stream reads one that has one), E17 (a wait for a
/// record that may not happen), deadlock, plan_mismatch.
Result<SyncPlan> plan_sync(const Graph& graph, const StreamAssignment& on, const SyncOptions& options);

/// Dropped pairs that activations and the order of streams alone imply. Graph Engine inserts none for them, so what a
/// user compares with its counts leaves them out of `inserted`. O(steps).
std::uint32_t given_by_activations(const SyncPlan& plan);

/// Kept pairs with their reason, dropped pairs with the path that implies each; one a line.
std::string print(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan);
/// What implies a dropped pair: "a -> b .. c -> d", "=>" where an activation or a jump leads on.
std::string print_path(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const DroppedPair& dropped);

/// Every certificate re-checked, every cross-stream dependency kept or dropped with a path, or with `compat` among
/// the plan's lost ones, or one of a node without a task while every order between tasks holds without it; with `exact`
/// no kept pair implied by the others. Trusts nothing in the plan. Shares no code with plan_sync.
std::vector<Error> verify(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan);

}  // namespace millstream
