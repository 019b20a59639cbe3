// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "millstream/schedule/schedule.h"

namespace millstream {

Result<std::vector<SyncPair>> pairs_of(const Graph& graph, const Schedule& schedule) {
  std::vector<SyncPair> pairs;
  // What the last unconsumed record of an event stands behind.
  struct Record {
    bool open = false;
    std::optional<NodeId> after;
  };
  std::vector<Record> records(schedule.event_count);
  std::vector<std::size_t> at(schedule.streams.size(), 0);
  std::vector<std::optional<NodeId>> last(schedule.streams.size());
  std::vector<std::vector<NodeId>> waiting_for(schedule.streams.size());  // sources of waits without a node yet
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < schedule.streams.size(); ++s) {
      const std::vector<Task>& tasks = schedule.streams[PhysicalStreamId(s)].tasks;
      for (; at[s] < tasks.size(); ++at[s], moved = true) {
        const Task& t = tasks[at[s]];
        const bool event = t.kind == Task::Kind::wait || t.kind == Task::Kind::record;
        if (event && t.index >= records.size()) {
          return Error{ErrorCode::bad_graph, fmt::format("the schedule names event e{} of {}", t.index, records.size())};
        }
        if (t.kind == Task::Kind::wait) {
          Record& r = records[t.index];
          if (!r.open) break;
          r.open = false;
          if (r.after) waiting_for[s].push_back(*r.after);
        } else if (t.kind == Task::Kind::record) {
          records[t.index] = {true, last[s]};
        } else {
          if (t.is_control() && t.index >= schedule.controls.size()) {
            return Error{ErrorCode::bad_graph, fmt::format("the schedule names control task {} of {}", t.index, schedule.controls.size())};
          }
          const NodeId n = t.is_control() ? schedule.controls[t.index].node : t.node();
          for (const NodeId from : waiting_for[s]) pairs.push_back({from, n, PairReason::user});
          waiting_for[s].clear();
          last[s] = n;
        }
      }
    }
  }
  for (std::size_t s = 0; s < schedule.streams.size(); ++s) {
    const std::vector<Task>& tasks = schedule.streams[PhysicalStreamId(s)].tasks;
    if (at[s] == tasks.size()) continue;
    return Error{ErrorCode::deadlock, fmt::format("stream {} waits for event e{} for ever after {}", s, tasks[at[s]].index,
                                                  last[s] ? fmt::format("\"{}\"", graph.name(*last[s])) : "its start")};
  }
  return pairs;
}

}  // namespace millstream
