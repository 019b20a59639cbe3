// SPDX-License-Identifier: Apache-2.0
// The launches of a schedule in an order that it allows, with a clock a stream. For the planner only.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

/// Streams are taken by the place of their next node in the execution order, so that a schedule that
/// `lower` made is walked in that order. Rows of clocks live from a record to its wait.
class TaskWalk {
 public:
  TaskWalk(const Graph& graph, const Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        width_(schedule.streams.size()),
        clock_(width_ * width_, 0),
        at_(width_, 0),
        rank_(graph.node_count(), 0),
        row_(schedule.event_count, kNone),
        waiter_(schedule.event_count, kNone),
        next_waiter_(width_, kNone) {
    for (std::size_t i = 0; i < graph.order().size(); ++i) rank_[graph.order()[i]] = static_cast<std::uint32_t>(i);
  }

  /// Tasks of stream `t` that are done before whatever `s` runs now.
  std::uint32_t known(std::uint32_t s, std::uint32_t t) const { return clock_[s * width_ + t]; }

  /// Calls visit(node, stream, place), place = 1 + the task's index. Error: deadlock. O(tasks log streams +
  /// events x streams).
  template <class Visit>
  Result<void> run(Visit visit) {
    for (std::uint32_t s = 0; s < width_; ++s) push(s);
    while (!ready_.empty()) {
      const std::uint32_t s = ready_.top().second;
      ready_.pop();
      step(s, visit);
    }
    for (std::uint32_t s = 0; s < width_; ++s) {
      if (at_[s] == tasks(s).size()) continue;
      return Error{ErrorCode::deadlock, fmt::format("no memory plan: stream {} waits for event {} for ever", s,
                                                    tasks(s)[at_[s]].index)}
          .help("`millstream check` shows the cycle or the missing record");
    }
    return {};
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  using Entry = std::pair<std::uint32_t, std::uint32_t>;  // rank of the next node, stream

  const std::vector<Task>& tasks(std::uint32_t s) const { return schedule_.streams[PhysicalStreamId(s)].tasks; }

  void push(std::uint32_t s) {
    std::size_t i = at_[s];
    while (i < tasks(s).size() && tasks(s)[i].kind != Task::Kind::launch) ++i;
    if (at_[s] == tasks(s).size()) return;
    ready_.push({i < tasks(s).size() ? rank_[tasks(s)[i].node()] : kNone, s});
  }

  // One launch with the waits before and the records behind it, or less when a wait blocks.
  template <class Visit>
  void step(std::uint32_t s, Visit& visit) {
    bool launched = false;
    for (; at_[s] < tasks(s).size(); ++at_[s]) {
      const Task& task = tasks(s)[at_[s]];
      switch (task.kind) {
        case Task::Kind::launch:
          if (launched) return push(s);
          launched = true;
          visit(task.node(), s, at_[s] + 1);
          break;
        case Task::Kind::record:
          record(s, task.index);
          break;
        case Task::Kind::wait:
          if (launched) return push(s);
          if (row_[task.index] == kNone) {
            next_waiter_[s] = waiter_[task.index];
            waiter_[task.index] = s;
            return;
          }
          join(s, task.index);
          break;
        case Task::Kind::attached:
        case Task::Kind::self_attached:
          break;
        case Task::Kind::activate:
        case Task::Kind::label:
        case Task::Kind::jump:
        case Task::Kind::branch:
        case Task::Kind::stream_switch:
          MST_CHECK(false, "memory is not planned for schedules with control flow tasks");
      }
      clock_[s * width_ + s] = at_[s] + 1;
    }
  }

  void record(std::uint32_t s, std::uint32_t event) {
    if (row_[event] == kNone) {
      if (free_rows_.empty()) {
        row_[event] = static_cast<std::uint32_t>(rows_.size() / width_);
        rows_.resize(rows_.size() + width_);
      } else {
        row_[event] = free_rows_.back();
        free_rows_.pop_back();
      }
    }
    std::uint32_t* row = &rows_[row_[event] * width_];
    for (std::size_t t = 0; t < width_; ++t) row[t] = clock_[s * width_ + t];
    for (std::uint32_t w = waiter_[event]; w != kNone; w = next_waiter_[w]) push(w);
    waiter_[event] = kNone;
  }

  void join(std::uint32_t s, std::uint32_t event) {
    const std::uint32_t* row = &rows_[row_[event] * width_];
    for (std::size_t t = 0; t < width_; ++t) {
      std::uint32_t& mine = clock_[s * width_ + t];
      if (mine < row[t]) mine = row[t];
    }
    free_rows_.push_back(row_[event]);
    row_[event] = kNone;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const std::size_t width_;
  std::vector<std::uint32_t> clock_;  // by stream, stream
  std::vector<std::uint32_t> at_;
  IdVec<NodeId, std::uint32_t> rank_;
  std::vector<std::uint32_t> row_;          // by event: into rows_, of the record that no wait has taken
  std::vector<std::uint32_t> waiter_;       // by event: first of a list
  std::vector<std::uint32_t> next_waiter_;  // by stream
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> free_rows_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
};

}  // namespace millstream
