// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/event_pairs.h"

#include <deque>

#include <fmt/format.h>

namespace millstream {

Error control_flow_on_device() {
  return Error{ErrorCode::kernel, "this plan runs control flow on the device, which no back-end here does yet"}.help(
      "compile with --strategy auto, whose If, Loop and Scan are driven by the host");
}

namespace {

class Pairing {
 public:
  Pairing(const Graph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule), at_(schedule.streams.size(), 0) {}

  Result<EventPairs> run() {
    if (schedule_.has_control()) return control_flow_on_device();
    MST_TRY_VOID(check_ids());
    if (along_execution_order()) return std::move(pairs_);
    MST_TRY_VOID(untimed());
    return std::move(pairs_);
  }

 private:
  struct Event {
    std::optional<TaskRef> open;   // a record that no wait has consumed yet
    std::deque<TaskRef> waiters;
  };

  const std::vector<Task>& tasks(std::uint32_t s) const { return schedule_.streams[PhysicalStreamId(s)].tasks; }

  Result<void> check_ids() const {
    for (std::uint32_t s = 0; s < at_.size(); ++s) {
      for (const Task& t : tasks(s)) {
        const bool of_node = t.names_node();
        if (t.index < (of_node ? graph_.node_count() : schedule_.event_count)) continue;
        return Error{ErrorCode::plan_mismatch, fmt::format("stream {} names {} {}, which does not exist", s,
                                                           of_node ? "node" : "event", t.index)};
      }
    }
    return {};
  }

  void reset() {
    pairs_ = {};
    for (std::uint32_t s = 0; s < at_.size(); ++s) pairs_.slot.emplace_back(tasks(s).size());
    events_.assign(schedule_.event_count, {});
    at_.assign(at_.size(), 0);
  }

  void join(const TaskRef& record, const TaskRef& wait) {
    pairs_.slot[record.stream.index][record.index] = pairs_.count;
    pairs_.slot[wait.stream.index][wait.index] = pairs_.count++;
  }

  // False when the streams do not follow the graph's order or an event would be ambiguous in it.
  bool along_execution_order() {
    reset();
    constexpr std::uint32_t kNone = 0xffffffffu;
    IdVec<NodeId, std::uint32_t> stream_of(graph_.node_count(), kNone);
    for (std::uint32_t s = 0; s < at_.size(); ++s) {
      for (const Task& t : tasks(s)) {
        if (t.kind != Task::Kind::launch) continue;
        if (stream_of[t.node()] != kNone) return false;
        stream_of[t.node()] = s;
      }
    }
    for (const NodeId n : graph_.order()) {
      const std::uint32_t s = stream_of[n];
      if (s == kNone) continue;
      // Waits and records before the node, the node, the records after it.
      bool launched = false;
      for (; at_[s] < tasks(s).size(); ++at_[s]) {
        const Task& t = tasks(s)[at_[s]];
        if (t.kind == Task::Kind::launch) {
          if (launched) break;
          if (t.node() != n) return false;
          launched = true;
          continue;
        }
        if (launched && t.kind == Task::Kind::wait) break;
        if (!take(s, t)) return false;
      }
      if (!launched) return false;
    }
    for (std::uint32_t s = 0; s < at_.size(); ++s) {
      for (; at_[s] < tasks(s).size(); ++at_[s]) {
        if (!take(s, tasks(s)[at_[s]])) return false;
      }
    }
    return true;
  }

  bool take(std::uint32_t s, const Task& t) {
    Event& event = events_[t.index];
    const TaskRef here{PhysicalStreamId(s), at_[s]};
    if (t.kind == Task::Kind::record) {
      if (event.open) return false;
      event.open = here;
      return true;
    }
    if (!event.open) return false;
    join(*event.open, here);
    event.open.reset();
    return true;
  }

  Result<void> untimed() {
    reset();
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t s = 0; s < at_.size(); ++s) {
        while (at_[s] < tasks(s).size()) {
          const Task& t = tasks(s)[at_[s]];
          const TaskRef here{PhysicalStreamId(s), at_[s]};
          if (t.kind == Task::Kind::wait && !pairs_.slot[s][at_[s]]) {
            Event& event = events_[t.index];
            if (!event.open) {
              if (event.waiters.empty() || event.waiters.back() != here) enqueue(event, here);
              break;
            }
            join(*event.open, here);
            event.open.reset();
          } else if (t.kind == Task::Kind::record) {
            Event& event = events_[t.index];
            if (event.open) {
              return Error{ErrorCode::shared_event_id,
                           fmt::format("event {} is recorded again on stream {} before its wait", t.index, s)};
            }
            if (event.waiters.empty()) {
              event.open = here;
            } else {
              join(here, event.waiters.front());
              event.waiters.pop_front();
            }
          }
          ++at_[s];
          moved = true;
        }
      }
    }
    return {};
  }

  static void enqueue(Event& event, const TaskRef& here) {
    for (const TaskRef& w : event.waiters) {
      if (w == here) return;
    }
    event.waiters.push_back(here);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  EventPairs pairs_;
  std::vector<Event> events_;
  std::vector<std::uint32_t> at_;
};

}  // namespace

Result<EventPairs> pair_events(const Graph& graph, const Schedule& schedule) {
  return Pairing(graph, schedule).run();
}

}  // namespace millstream
