// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/redundant_waits.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

namespace millstream::cli {
namespace {

constexpr std::uint64_t kWork = 20'000'000;  // tasks that all tries together may visit; a few seconds

// The record that each wait consumes, in a run that takes every stream as far as it gets.
std::map<TaskRef, TaskRef> records_of_waits(const Schedule& schedule) {
  std::map<TaskRef, TaskRef> record_of;
  std::vector<std::optional<TaskRef>> pending(schedule.event_count);
  std::vector<std::uint32_t> next(schedule.streams.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
      const std::vector<Task>& tasks = schedule.streams[s].tasks;
      for (std::uint32_t& i = next[s.index]; i < tasks.size(); ++i) {
        const Task& t = tasks[i];
        if (t.kind == Task::Kind::record) pending[t.index] = TaskRef{s, i};
        if (t.kind == Task::Kind::wait) {
          if (!pending[t.index]) break;
          record_of[{s, i}] = *pending[t.index];
          pending[t.index].reset();
        }
        progress = true;
      }
    }
  }
  return record_of;
}

using Gone = std::vector<std::vector<bool>>;

Schedule without(const Schedule& schedule, const Gone& gone) {
  Schedule out = schedule;
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    std::vector<Task>& tasks = out.streams[s].tasks;
    tasks.clear();
    for (std::uint32_t i = 0; i < schedule.streams[s].tasks.size(); ++i) {
      if (!gone[s.index][i]) tasks.push_back(schedule.streams[s].tasks[i]);
    }
  }
  return out;
}

// Fewest waits from `from` to `to` along the streams and the waits that stay.
std::optional<std::vector<TaskRef>> path(const Schedule& schedule, const Gone& gone, const std::map<TaskRef, TaskRef>& waits_at,
                                         TaskRef from, TaskRef to) {
  struct Reached {
    std::uint32_t hops = ~std::uint32_t{0};
    std::optional<TaskRef> by;      // the record that led here
    std::optional<TaskRef> before;  // where that stream was entered
  };
  // A stream is entered at its earliest task; later entries are kept only when they need fewer hops.
  std::map<TaskRef, Reached> reached;
  std::deque<TaskRef> open = {from};
  reached[from] = {0, std::nullopt, std::nullopt};
  while (!open.empty()) {
    const TaskRef at = open.front();
    open.pop_front();
    const Reached here = reached[at];
    if (at.stream == to.stream && at.index <= to.index) {
      std::vector<TaskRef> records;
      for (std::optional<TaskRef> step = at; step && reached[*step].by; step = reached[*step].before) records.push_back(*reached[*step].by);
      std::reverse(records.begin(), records.end());
      return records;
    }
    const std::vector<Task>& tasks = schedule.streams[at.stream].tasks;
    for (std::uint32_t i = at.index; i < tasks.size(); ++i) {
      if (tasks[i].kind != Task::Kind::record || gone[at.stream.index][i]) continue;
      const auto wait = waits_at.find({at.stream, i});
      if (wait == waits_at.end()) continue;
      if (reached.count(wait->second) != 0) continue;
      reached[wait->second] = {here.hops + 1, TaskRef{at.stream, i}, at};
      open.push_back(wait->second);
    }
  }
  return std::nullopt;
}

std::optional<NodeId> launch_before(const Schedule& schedule, TaskRef at) {
  const std::vector<Task>& tasks = schedule.streams[at.stream].tasks;
  for (std::uint32_t i = at.index; i-- > 0;) {
    if (tasks[i].kind == Task::Kind::launch) return tasks[i].node();
  }
  return std::nullopt;
}

std::optional<NodeId> launch_after(const Schedule& schedule, TaskRef at) {
  const std::vector<Task>& tasks = schedule.streams[at.stream].tasks;
  for (std::uint32_t i = at.index; i < tasks.size(); ++i) {
    if (tasks[i].kind == Task::Kind::launch) return tasks[i].node();
  }
  return std::nullopt;
}

}  // namespace

RedundantWaits redundant_together(const Graph& graph, const Schedule& schedule, const CheckReport& report,
                                  std::span<const Requirement> extra) {
  RedundantWaits out;
  std::uint64_t tasks = 1;
  for (const PhysicalStream& s : schedule.streams) tasks += s.tasks.size();
  if (!report.ok() || schedule.has_control() || report.redundant.size() > kWork / (tasks * schedule.streams.size() + 1)) {
    out.jointly = report.redundant.size() <= 1;
    for (const CheckReport::Redundant& r : report.redundant) out.waits.push_back({r, false, {}});
    return out;
  }
  const std::map<TaskRef, TaskRef> record_of = records_of_waits(schedule);
  Gone gone;
  for (const PhysicalStream& s : schedule.streams) gone.emplace_back(s.tasks.size(), false);
  const auto take = [&](const TaskRef& wait, bool away) {
    gone[wait.stream.index][wait.index] = away;
    const TaskRef record = record_of.at(wait);
    gone[record.stream.index][record.index] = away;
  };
  for (const CheckReport::Redundant& r : report.redundant) {
    if (record_of.count(r.wait) == 0) continue;
    take(r.wait, true);
    if (check(graph, without(schedule, gone), nullptr, extra, false).ok()) {
      out.waits.push_back({r, false, {}});
    } else {
      take(r.wait, false);
    }
  }
  std::map<TaskRef, TaskRef> wait_of;
  for (const auto& [wait, record] : record_of) wait_of[record] = wait;
  for (JointlyRedundant& r : out.waits) {
    // From the node before the record to the node after the wait: what stands beside them counts too.
    TaskRef from = record_of.at(r.what.wait);
    while (from.index > 0 && schedule.streams[from.stream].tasks[from.index].kind != Task::Kind::launch) --from.index;
    TaskRef to = r.what.wait;
    while (to.index + 1 < schedule.streams[to.stream].tasks.size() && schedule.streams[to.stream].tasks[to.index].kind != Task::Kind::launch) ++to.index;
    const auto records = path(schedule, gone, wait_of, from, to);
    r.ordered = records.has_value();
    if (!records) continue;
    for (const TaskRef& record : *records) {
      const auto before = launch_before(schedule, record);
      const auto after = launch_after(schedule, wait_of.at(record));
      if (before && after) r.implied.push_back({*before, *after});
    }
  }
  return out;
}

}  // namespace millstream::cli
