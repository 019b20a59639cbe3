// SPDX-License-Identifier: Apache-2.0
// What each physical stream runs, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/core/id.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/sync/sync_plan.h"
#include "millstream/target/target.h"

namespace millstream {

using PhysicalStreamId = Id<struct PhysicalStreamTag>;
using EventId = Id<struct EventTag>;  ///< dense from 0; may be reused by pairs whose lifetimes do not overlap

/// One entry of a stream. Eight bytes. Record and wait name an event; a wait consumes the record (wait and
/// reset). Control flow moves only inside its own stream, except that `activate` and `stream_switch` start
/// others: a stream runs from its first task each time it is started, and a start of a stream that still
/// runs is lost.
struct Task {
  enum class Kind : std::uint8_t {
    launch,         ///< a node's kernel
    record,
    wait,
    attached,       ///< a node's part on one of its attached streams; its kernel fills it
    activate,       ///< starts one stream
    label,          ///< a place that jumps and branches name; does nothing itself
    jump,           ///< goes to a label of this stream
    branch,         ///< goes to one of several labels of this stream, by the node's index input
    stream_switch,  ///< StreamSwitch, one target: starts it and ends this stream if the comparison holds, else
                    ///< falls through; StreamSwitchN: starts the one of its targets that its input names
    self_attached,  ///< like attached, but the kernel orders it: it has neither fork nor join
  };
  Kind kind = Kind::launch;
  std::uint32_t index = 0;  ///< node, event, or an entry of Schedule::controls

  static Task launch(NodeId n) { return {Kind::launch, n.index}; }
  static Task attached(NodeId n) { return {Kind::attached, n.index}; }
  static Task self_attached(NodeId n) { return {Kind::self_attached, n.index}; }
  static Task record(EventId e) { return {Kind::record, e.index}; }
  static Task wait(EventId e) { return {Kind::wait, e.index}; }
  NodeId node() const { return NodeId(index); }        ///< where names_node
  bool names_node() const { return kind == Kind::launch || kind == Kind::attached || kind == Kind::self_attached; }
  EventId event() const { return EventId(index); }     ///< of record and wait
  bool is_control() const { return kind >= Kind::activate && kind <= Kind::stream_switch; }
  friend bool operator==(const Task&, const Task&) = default;
};

/// What a task of control flow names: streams for activate and stream_switch, labels for the others.
struct ControlTask {
  NodeId node;  ///< the graph's node that it stands for
  std::vector<std::uint32_t> targets;
  friend bool operator==(const ControlTask&, const ControlTask&) = default;
};

struct PhysicalStream {
  StreamId logical;
  std::vector<Task> tasks;
  /// Holds only activations that stand for one target of a switch whose label spans several streams.
  bool relay = false;
  bool huge = false;  ///< needs the device's huge kind
  friend bool operator==(const PhysicalStream&, const PhysicalStream&) = default;
};

/// Where a logical stream goes on on another physical stream.
struct SplitPoint {
  NodeId node;  ///< the first node of the piece
  PhysicalStreamId opened;
  std::string reason;  ///< one sentence with the figures
  friend bool operator==(const SplitPoint&, const SplitPoint&) = default;
};

struct Schedule {
  IdVec<PhysicalStreamId, PhysicalStream> streams;
  std::uint32_t logical_streams = 0;
  std::uint32_t event_count = 0;  ///< events, or notifies
  EventKind event_kind = EventKind::event;
  std::vector<ControlTask> controls;
  std::uint32_t label_count = 0;
  std::vector<SplitPoint> splits;  ///< by opened stream
  std::vector<Error> warnings;
  bool has_control() const { return !controls.empty(); }
  /// Physical streams of the model: one where nothing runs.
  std::size_t stream_count() const { return streams.empty() ? 1 : streams.size(); }
  /// What the streams run; how it came about (splits, warnings) does not count.
  friend bool operator==(const Schedule& a, const Schedule& b) {
    return a.streams == b.streams && a.logical_streams == b.logical_streams && a.event_count == b.event_count &&
           a.event_kind == b.event_kind && a.controls == b.controls && a.label_count == b.label_count;
  }
};

/// A task by position.
struct TaskRef {
  PhysicalStreamId stream;
  std::uint32_t index = 0;
  friend auto operator<=>(const TaskRef&, const TaskRef&) = default;
};

enum class EventIds : std::uint8_t { minimal, sequential };

enum class SplitUnits : std::uint8_t { task, node };

struct LowerOptions {
  EventIds event_ids = EventIds::minimal;
  SplitUnits split_units = SplitUnits::task;  ///< node: count nodes as Graph Engine of 2023 does
  std::uint32_t split_reserved = 2;           ///< tasks kept free for the pair that a split adds
  std::uint32_t multiplex_threshold = 0;      ///< explicit multiplexing acts only above this many events
  bool single_stream = false;                 ///< no splitting; a stream that is too long becomes huge
};

/// Waits stand directly before their node, records directly after. Event ids are coloured so that an id
/// is used again only when the last wait of its old use happens before the new record and before the new
/// wait (event_ids.h). Errors: stream_limit (E07), allocation_limit (E19, events), task_limit (E08), each
/// naming needed and allowed; plan_mismatch, deadlock for pairs that do not fit the assignment.
Result<Schedule> lower(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan,
                       const Target& target, const LowerOptions& options);

/// Lanes, one a line: "stream 0: x !e0 b ?e1 out"; a split piece is "stream 3 of 0: ...".
std::string print(const Graph& graph, const Schedule& schedule);
/// Reads what print writes, for this graph; errors: syntax at line and column. `file` and `first_line`
/// are for messages.
Result<Schedule> parse_schedule(std::string_view text, const Graph& graph, const std::string& file,
                                std::uint32_t first_line = 1);

/// Which record each wait consumes, in a run that takes every stream as far as it gets, lowest stream first:
/// by wait, the node before the record and the node after the wait (pairs.cpp). A record before any node or
/// a wait behind the last one has no pair. Control flow is read as it stands: every stream runs once, nothing jumps; a node
/// and its attached parts count alike. Errors: deadlock when the run stops early.
Result<std::vector<SyncPair>> pairs_of(const Graph& graph, const Schedule& schedule);

// ---- oracle (order.cpp): small, obviously right, quadratic; shares no code with reduce or check.

/// Which tasks happen before which, by brute force over stream order and record -> wait. `contains(a, b)`
/// for launches. Only for schedules that run to the end (see check).
class HappensBefore {
 public:
  explicit HappensBefore(const Graph& graph, const Schedule& schedule);
  bool before(NodeId a, NodeId b) const;

 private:
  std::vector<std::vector<bool>> reach_;  // by node, node
};

// ---- fast verifier (verify.cpp): own clocks, shares no code with the reducer.

/// Two accesses that must be ordered.
struct Requirement {
  NodeId first;
  NodeId second;
  enum class Kind : std::uint8_t { data, control, buffer } kind = Kind::data;
  ValueId value;  ///< the value read, or the buffer's new owner
};

struct Violation {
  enum class Kind : std::uint8_t {
    race,            ///< two accesses not ordered
    deadlock,        ///< a wait that can never be satisfied, or a cycle
    unmatched_wait,  ///< E05
    event_reuse,     ///< E18: an id recorded again before its wait
    missing_node,    ///< a node the schedule never launches
    repeated_node,
    limit,
    start,           ///< a stream that is never started, starts itself (E09, E10), or may run when it is started
    region,          ///< a record and its wait, or a node and its graph, do not run under the same conditions (E17)
    memory,          ///< overlapping buffers that are alive together, or out of the arena
  };
  Kind kind = Kind::race;
  std::string message;             ///< one sentence
  std::optional<NodeId> first;
  std::optional<NodeId> second;
  std::vector<PhysicalStreamId> streams;
  /// For a race: the smallest repair, "from -> to" as nodes: a wait before `missing_to` for `missing_from`.
  std::optional<NodeId> missing_from;
  std::optional<NodeId> missing_to;
};

struct CheckReport {
  std::vector<Violation> violations;
  /// Waits whose removal loses no required order: (event, node that waits).
  struct Redundant {
    EventId event;
    TaskRef wait;
  };
  std::vector<Redundant> redundant;
  bool ok() const { return violations.empty(); }
};

/// Verifies any schedule, ours or not, against the graph's dependencies and `extra` requirements (memory
/// reuse). O(streams x tasks) time, clocks freed. Reports every violation, the smallest counter-example
/// first (fewest nodes between the two accesses, then list order).
CheckReport check(const Graph& graph, const Schedule& schedule, const Target* target,
                  std::span<const Requirement> extra = {}, bool find_redundant = true);

}  // namespace millstream
