// SPDX-License-Identifier: Apache-2.0
// The oracle: small, obviously right, quadratic. Nothing here is shared with the reducer or the verifier.
#include <map>

#include "millstream/schedule/schedule.h"

namespace millstream {

HappensBefore::HappensBefore(const Graph& graph, const Schedule& schedule)
    : reach_(graph.node_count(), std::vector<bool>(graph.node_count(), false)) {
  // Number all tasks.
  std::vector<Task> tasks;
  std::vector<std::vector<std::size_t>> lane(schedule.streams.size());
  for (std::size_t s = 0; s < lane.size(); ++s) {
    for (const Task& t : schedule.streams[PhysicalStreamId(s)].tasks) {
      lane[s].push_back(tasks.size());
      tasks.push_back(t);
    }
  }

  // Run one task of each stream in turn. The k-th record of an event pairs with the k-th wait.
  std::map<std::uint32_t, std::vector<std::size_t>> records;
  std::map<std::uint32_t, std::size_t> waits;
  std::vector<std::size_t> done(lane.size(), 0);
  std::vector<std::size_t> ran;                                    // tasks in the order they ran
  std::vector<std::vector<std::size_t>> directly_after(tasks.size());  // earlier tasks that one comes after
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < lane.size(); ++s) {
      if (done[s] == lane[s].size()) continue;
      const std::size_t t = lane[s][done[s]];
      if (tasks[t].kind == Task::Kind::wait) {
        const std::size_t k = waits[tasks[t].index];
        if (records[tasks[t].index].size() <= k) continue;
        directly_after[t].push_back(records[tasks[t].index][k]);
        ++waits[tasks[t].index];
      }
      if (tasks[t].kind == Task::Kind::record) records[tasks[t].index].push_back(t);
      if (done[s] > 0) directly_after[t].push_back(lane[s][done[s] - 1]);
      ran.push_back(t);
      ++done[s];
      moved = true;
    }
  }

  // Everything before a task is what it comes directly after and everything before that.
  std::vector<std::vector<bool>> before(tasks.size(), std::vector<bool>(tasks.size(), false));
  for (const std::size_t t : ran) {
    for (const std::size_t u : directly_after[t]) {
      before[t][u] = true;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (before[u][i]) before[t][i] = true;
      }
    }
  }
  for (const std::size_t t : ran) {
    for (const std::size_t u : ran) {
      if (before[t][u] && tasks[t].kind == Task::Kind::launch && tasks[u].kind == Task::Kind::launch) {
        reach_[tasks[u].index][tasks[t].index] = true;
      }
    }
  }
}

bool HappensBefore::before(NodeId a, NodeId b) const { return reach_[a.index][b.index]; }

}  // namespace millstream
