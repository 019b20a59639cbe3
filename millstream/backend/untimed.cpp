// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/untimed.h"

#include <algorithm>

#include <fmt/format.h>

namespace millstream {
namespace {

class Untimed {
 public:
  Untimed(const Graph& graph, const Schedule& schedule, const EventPairs& pairs)
      : graph_(graph), schedule_(schedule), pairs_(pairs), at_(schedule.streams.size(), 0) {}

  Result<void> run() {
    std::vector<bool> recorded(pairs_.count, false);
    std::vector<std::optional<std::uint32_t>> waiter(pairs_.count);
    std::vector<std::uint32_t> ready;
    for (std::uint32_t s = 0; s < at_.size(); ++s) ready.push_back(s);
    while (!ready.empty()) {
      const std::uint32_t s = ready.back();
      ready.pop_back();
      for (; at_[s] < tasks(s).size(); ++at_[s]) {
        const Task& task = tasks(s)[at_[s]];
        const auto slot = pairs_.slot[s][at_[s]];
        if (task.kind == Task::Kind::record && slot) {
          recorded[*slot] = true;
          if (waiter[*slot]) ready.push_back(*waiter[*slot]);
        } else if (task.kind == Task::Kind::wait && (!slot || !recorded[*slot])) {
          if (slot) waiter[*slot] = s;
          break;
        }
      }
    }
    return all_finished();
  }

 private:
  const std::vector<Task>& tasks(std::uint32_t s) const { return schedule_.streams[PhysicalStreamId(s)].tasks; }

  std::string last_node(std::uint32_t s) const {
    for (std::uint32_t i = at_[s]; i-- > 0;) {
      if (tasks(s)[i].kind == Task::Kind::launch) return fmt::format("node \"{}\"", graph_.name(tasks(s)[i].node()));
    }
    return "nothing";
  }

  // Which stream has the record of each slot.
  std::vector<std::uint32_t> recorders() const {
    std::vector<std::uint32_t> out(pairs_.count, 0);
    for (std::uint32_t s = 0; s < at_.size(); ++s) {
      for (std::size_t i = 0; i < tasks(s).size(); ++i) {
        if (tasks(s)[i].kind == Task::Kind::record && pairs_.slot[s][i]) out[*pairs_.slot[s][i]] = s;
      }
    }
    return out;
  }

  // The stream whose record the first open wait of `s` needs: by its slot, else whoever still records the id.
  std::optional<std::uint32_t> needs(std::uint32_t s, const std::vector<std::uint32_t>& recorder) const {
    if (const auto slot = pairs_.slot[s][at_[s]]) return recorder[*slot];
    const std::uint32_t event = tasks(s)[at_[s]].index;
    for (std::uint32_t t = 0; t < at_.size(); ++t) {
      for (std::uint32_t i = at_[t]; i < tasks(t).size(); ++i) {
        if (tasks(t)[i] == Task::record(EventId(event)) && !pairs_.slot[t][i]) return t;
      }
    }
    return std::nullopt;
  }

  Result<void> all_finished() const {
    std::vector<std::uint32_t> stuck;
    for (std::uint32_t s = 0; s < at_.size(); ++s) {
      if (at_[s] != tasks(s).size()) stuck.push_back(s);
    }
    if (stuck.empty()) return {};
    std::optional<Error> error;
    const std::vector<std::uint32_t> recorder = recorders();
    std::vector<std::optional<std::uint32_t>> next(at_.size());
    for (const std::uint32_t s : stuck) {
      next[s] = needs(s, recorder);
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
  const EventPairs& pairs_;
  std::vector<std::uint32_t> at_;  // by stream: the task it is at
};

}  // namespace

Result<void> can_finish(const Graph& graph, const Schedule& schedule, const EventPairs& pairs) {
  return Untimed(graph, schedule, pairs).run();
}

}  // namespace millstream
