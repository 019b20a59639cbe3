// SPDX-License-Identifier: Apache-2.0
// What the report page shows, as a value: the plan with its reasons, and views of it over time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millstream/assign/predict.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/sync_plan.h"
#include "millstream/trace/trace.h"

namespace millstream {

/// One bar on a lane. Of a record and a wait `index` is the event, of anything else the node.
struct ReportSpan {
  std::uint32_t lane = 0;
  Task::Kind kind = Task::Kind::launch;
  std::uint32_t index = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  friend bool operator==(const ReportSpan&, const ReportSpan&) = default;
};

/// Where a lane's time goes, in nanoseconds; together the view's total.
struct LaneUse {
  std::uint64_t run = 0;       ///< nodes
  std::uint64_t sync = 0;      ///< records, and waits that find their record made
  std::uint64_t wait = 0;      ///< until the record that a wait needs is made
  std::uint64_t hand_off = 0;  ///< from there until the lane goes on
  std::uint64_t busy = 0;      ///< ready, but the engine, core or worker is not
  std::uint64_t before = 0;    ///< not started
  std::uint64_t after = 0;     ///< no work left
};

/// The members of LaneUse with their names: a key for programs and words for people.
struct LaneCause {
  std::string_view key;
  std::string_view words;
  std::uint64_t LaneUse::*ns;
};
const std::array<LaneCause, 7>& lane_causes();

/// What a lane waited for another one.
struct LaneWait {
  std::uint32_t lane = 0;
  std::uint32_t other = 0;
  std::uint64_t ns = 0;
};

/// What the critical path consists of.
enum class PathCause : std::uint8_t { nodes, sync, hand_off, gap };
std::string_view to_string(PathCause cause);

/// One run of the plan: simulated, or measured.
struct ReportView {
  std::string what;                 ///< "simulated on target npu"
  std::vector<std::string> lanes;   ///< their names behind the number: "AIcore", "label s1"
  std::vector<ReportSpan> spans;    ///< by lane, then begin
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arrows;  ///< spans: what is waited for, and what waits
  std::uint64_t total_ns = 0;
  double overlap = 0;
  // Derived by `analyse`.
  std::vector<LaneUse> use;         ///< by lane
  std::vector<LaneWait> awaited;    ///< by lane, then other
  std::vector<std::uint32_t> critical;  ///< spans, in time order: each could begin only when the one before it ended
  std::array<std::uint64_t, 4> path_ns = {};  ///< by PathCause; together the total
  std::vector<std::uint64_t> engine_ns;  ///< busy time by engine
};

struct ReportNode {
  std::string name;
  std::string type;
  std::optional<std::uint32_t> lane;  ///< physical stream
  std::optional<RuleId> rule;
  std::optional<EngineId> engine;
  std::string split;  ///< why a new physical stream begins here; empty: none does
};

struct ReportPlan {
  std::string title;   ///< of the plan: its file's name
  std::string file;
  std::string target;
  std::uint32_t threads = 1;
  std::vector<ReportNode> nodes;          ///< by NodeId
  std::vector<std::string> engines;
  std::vector<std::uint32_t> engine_units;  ///< operators that each runs at once
  std::vector<std::pair<std::string, std::string>> rules;  ///< name and reason, by RuleId
  SyncPlan sync;
  std::size_t streams = 1;  ///< physical
  std::uint64_t pairs_inserted = 0;
  std::uint64_t records = 0;
  std::uint64_t waits = 0;
  std::uint32_t events = 0;
  std::optional<Estimate> estimate;
  std::optional<LowerBound> bound;
  std::vector<std::string> notes;
  std::vector<ReportView> views;          ///< at least one; the first is shown first
};

/// A plan that decisions led to, or only a schedule (then `assignment` names no rules).
struct ReportInput {
  const Graph& graph;
  const Target& target;
  const StreamAssignment& assignment;
  const SyncPlan& sync;
  const Schedule& schedule;
};

/// Everything but the views. Where the target refuses the graph's engines, nodes have none and a note says so.
ReportPlan report_plan(const ReportInput& input);

/// A run's trace over the plan's physical streams.
ReportView view_of(const ReportInput& input, const ReportPlan& plan, const Trace& trace, std::string what);

/// Fills in what is derived: use, waits, critical path, engines. Spans must lie by lane and begin; a span that overlaps the
/// one before it on its lane counts from that one's end. `starts_late`: a lane may wait to be started (control flow).
/// O(spans log spans).
ReportView analyse(ReportView view, const std::vector<ReportNode>& nodes, std::size_t engines, bool starts_late);

/// A view in lines for a terminal: its length, the critical path by cause, and where each lane's time goes, without causes
/// that took none. Of more than 16 lanes the first 16.
std::string to_text(const ReportView& view);

/// Every stream once from its first task to its last, nothing jumps, no engine is busy: what can be shown of control flow
/// without values. Ends early where a wait has no record.
Trace walk_once(const Schedule& schedule, const IdVec<NodeId, double>& durations_us, const Costs& costs);

/// A schedule's streams as an assignment without rules, for ReportInput.
StreamAssignment assignment_of(const Graph& graph, const Schedule& schedule);

/// The data as the page reads it: one JSON object in one line, without "<", in UTF-8 whatever the names are.
std::string to_json(const std::vector<ReportPlan>& plans);

/// The whole page, one plan or two. Nothing in it is fetched from elsewhere.
std::string to_html(const std::vector<ReportPlan>& plans);

}  // namespace millstream
