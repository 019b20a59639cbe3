// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/event_pairs.h"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

namespace millstream {

namespace {

class Pairing {
 public:
  Pairing(const Graph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule), at_(schedule.streams.size(), 0) {}

  Result<EventPairs> run() {
    MST_TRY_VOID(check_ids());
    if (!schedule_.has_control() && along_execution_order()) return std::move(pairs_);
    MST_TRY_VOID(untimed());
    MST_TRY_VOID(all_finished());
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
        if (t.is_control()) {
          MST_TRY_VOID(check_control(s, t));
          continue;
        }
        const bool of_node = t.names_node();
        if (t.index < (of_node ? graph_.node_count() : schedule_.event_count)) continue;
        return Error{ErrorCode::plan_mismatch, fmt::format("stream {} names {} {}, which does not exist", s,
                                                           of_node ? "node" : "event", t.index)};
      }
    }
    return {};
  }

  Result<void> check_control(std::uint32_t s, const Task& t) const {
    const bool starts = t.kind == Task::Kind::activate || t.kind == Task::Kind::stream_switch;
    const std::size_t count = starts ? schedule_.streams.size() : schedule_.label_count;
    if (t.index >= schedule_.controls.size()) {
      return Error{ErrorCode::plan_mismatch, fmt::format("stream {} names control task {}, which does not exist", s, t.index)};
    }
    const ControlTask& control = schedule_.controls[t.index];
    if (control.node.index >= graph_.node_count()) {
      return Error{ErrorCode::plan_mismatch, fmt::format("stream {} names node {}, which does not exist", s, control.node.index)};
    }
    for (const std::uint32_t target : control.targets) {
      if (target < count) continue;
      return Error{ErrorCode::plan_mismatch, fmt::format("\"{}\" on stream {} names {} {}, which does not exist", graph_.name(control.node), s,
                                                         starts ? "stream" : "label", target)};
    }
    if (!control.targets.empty()) return {};
    return Error{ErrorCode::plan_mismatch, fmt::format("\"{}\" on stream {} names no {}", graph_.name(control.node), s, starts ? "stream" : "label")};
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
    running_ = heads(schedule_);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t s = 0; s < at_.size(); ++s) {
        while (running_[s] && at_[s] < tasks(s).size()) {
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
          } else if (t.kind == Task::Kind::activate || t.kind == Task::Kind::stream_switch) {
            for (const std::uint32_t target : schedule_.controls[t.index].targets) running_[target] = true;
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

  std::string last_node(std::uint32_t s) const {
    for (std::uint32_t i = at_[s]; i-- > 0;) {
      if (tasks(s)[i].kind == Task::Kind::launch) return fmt::format("node \"{}\"", graph_.name(tasks(s)[i].node()));
    }
    return "nothing";
  }

  // The stream whose record the open wait of `s` needs: whoever still records the id.
  std::optional<std::uint32_t> needs(std::uint32_t s) const {
    const std::uint32_t event = tasks(s)[at_[s]].index;
    for (std::uint32_t t = 0; t < at_.size(); ++t) {
      for (std::uint32_t i = at_[t]; i < tasks(t).size(); ++i) {
        if (tasks(t)[i] == Task::record(EventId(event))) return t;
      }
    }
    return std::nullopt;
  }

  Result<void> all_finished() const {
    std::vector<std::uint32_t> stuck;
    for (std::uint32_t s = 0; s < at_.size(); ++s) {
      if (running_[s] && at_[s] != tasks(s).size()) stuck.push_back(s);
    }
    if (stuck.empty()) return {};
    std::optional<Error> error;
    std::vector<std::optional<std::uint32_t>> next(at_.size());
    for (const std::uint32_t s : stuck) {
      next[s] = needs(s);
      const std::string line = fmt::format("stream {} waits for event {} after {}, {}", s, tasks(s)[at_[s]].index, last_node(s),
                                           next[s] ? fmt::format("which stream {} records", *next[s])
                                                   : std::string("which no stream records any more"));
      if (!error) {
        error = Error{ErrorCode::deadlock, "the schedule cannot finish: " + line};
      } else {
        error->note(line);
      }
    }
    if (const std::string cycle = find_cycle(stuck, next); !cycle.empty()) error->note("the cycle: " + cycle);
    return std::move(error->help("`millstream check` shows which wait or record is wrong"));
  }

  static std::string find_cycle(const std::vector<std::uint32_t>& stuck, const std::vector<std::optional<std::uint32_t>>& next) {
    for (const std::uint32_t start : stuck) {
      std::vector<std::uint32_t> path;
      for (std::optional<std::uint32_t> at = start; at; at = next[*at]) {
        const auto seen = std::find(path.begin(), path.end(), *at);
        if (seen == path.end()) {
          path.push_back(*at);
          continue;
        }
        std::string text;
        for (auto it = seen; it != path.end(); ++it) text += fmt::format("stream {} waits for ", *it);
        return text + fmt::format("stream {}", *at);
      }
    }
    return "";
  }

  const Graph& graph_;
  const Schedule& schedule_;
  EventPairs pairs_;
  std::vector<Event> events_;
  std::vector<std::uint32_t> at_;   // by stream: the task it is at
  std::vector<bool> running_;       // by stream: whether it has been started
};

}  // namespace

std::vector<bool> heads(const Schedule& schedule) {
  std::vector<bool> out(schedule.streams.size(), true);
  for (const PhysicalStream& s : schedule.streams) {
    for (const Task& t : s.tasks) {
      if (t.kind != Task::Kind::activate && t.kind != Task::Kind::stream_switch) continue;
      for (const std::uint32_t target : schedule.controls[t.index].targets) out[target] = false;
    }
  }
  return out;
}

Result<EventPairs> pair_events(const Graph& graph, const Schedule& schedule) {
  return Pairing(graph, schedule).run();
}

}  // namespace millstream
