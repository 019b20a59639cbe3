// SPDX-License-Identifier: Apache-2.0
// Positions count tasks, from 1, on physical streams: now(s)[t] = tasks of t known complete when s is where it is.
//
// Why the three conditions on an event make every run pair as this one: let w be the first wait of some
// other run to take a record that is not its own. All before it was paired as here, so what this run knows
// to precede w has completed, among it the wait before w on that event and with it all earlier ones. A later
// record of the event comes behind w itself. So only w's own record can be there.
#include "millstream/schedule/replay.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

class Replay {
 public:
  Replay(const Graph& graph, const Schedule& schedule, const RequirementList& required, const ReplayOptions& options)
      : schedule_(schedule),
        required_(required),
        options_(options),
        width_(static_cast<std::uint32_t>(schedule.streams.size())),
        rank_(graph.node_count(), 0),
        launched_at_(graph.node_count()),
        events_(schedule.event_count),
        lanes_(width_),
        now_(std::size_t{width_} * width_, 0) {
    for (std::size_t i = 0; i < graph.order().size(); ++i) rank_[graph.order()[i]] = static_cast<std::uint32_t>(i);
  }

  ReplayOutcome run() {
    for (std::uint32_t s = 0; s < width_; ++s) enqueue(s);
    while (!ready_.empty() && !stopped_) {
      const std::uint32_t s = ready_.top().second;
      ready_.pop();
      advance(s);
    }
    for (std::uint32_t s = 0; s < width_; ++s) {
      flush(s, nullptr);
      const std::uint32_t at = lanes_[s].at;
      out_.done.push_back(at);
      if (at == tasks(s).size() || stopped_) continue;
      const EventId e = tasks(s)[at].event();
      ReplayOutcome::Stuck stuck{ref(s, at), e, std::nullopt};
      if (events_[e].waited) stuck.taken_by = events_[e].last_wait;
      out_.stuck.push_back(stuck);
    }
    return std::move(out_);
  }

 private:
  struct Event {
    bool open = false;    // recorded and not yet waited for
    bool waited = false;  // last_wait is set
    bool reported = false;
    std::uint32_t row = kNone;
    std::uint32_t parked = kNone;  // first stream that stands at a wait for it
    TaskRef record, last_wait;
  };
  struct Lane {
    std::uint32_t at = 0;
    std::uint32_t next_launch = 0;  // index of the first launch at or behind `at`
    std::uint32_t next_parked = kNone;
    // Waits since the last other task, when classifying.
    std::vector<std::uint32_t> group;  // into out_.waits
    std::vector<std::pair<TaskRef, std::uint32_t>> sources;  // record, its row
    std::vector<std::uint32_t> base;   // now, before the group
  };
  struct Place {
    std::uint32_t stream = kNone;
    std::uint32_t position = 0;
  };
  // Of one column: the highest position the group brings, who brings it, and the next highest.
  struct Best {
    std::uint32_t value = 0;
    std::uint32_t who = kNone;
    std::uint32_t second = 0;
  };

  static TaskRef ref(std::uint32_t s, std::uint32_t i) { return {PhysicalStreamId(s), i}; }
  const std::vector<Task>& tasks(std::uint32_t s) const { return schedule_.streams[PhysicalStreamId(s)].tasks; }
  std::uint32_t* now(std::uint32_t s) { return now_.data() + std::size_t{s} * width_; }
  bool knows(std::uint32_t s, TaskRef t) { return now(s)[t.stream.index] > t.index; }

  std::uint32_t key(std::uint32_t s) {
    Lane& lane = lanes_[s];
    const std::vector<Task>& list = tasks(s);
    if (lane.at < list.size() && list[lane.at].kind == Task::Kind::record) return 0;  // directly behind its node
    lane.next_launch = std::max(lane.next_launch, lane.at);
    while (lane.next_launch < list.size() && list[lane.next_launch].kind != Task::Kind::launch) ++lane.next_launch;
    return lane.next_launch == list.size() ? kNone : rank_[list[lane.next_launch].node()];
  }

  void enqueue(std::uint32_t s) { ready_.push({key(s), s}); }

  // Runs stream s until another one is due.
  void advance(std::uint32_t s) {
    Lane& lane = lanes_[s];
    while (lane.at < tasks(s).size() && !stopped_) {
      const Task task = tasks(s)[lane.at];
      if (task.kind == Task::Kind::wait) {
        Event& event = events_[task.event()];
        if (!event.open) {
          lane.next_parked = event.parked;
          event.parked = s;
          return;
        }
        wait(s, task.event(), event);
      } else if (task.kind == Task::Kind::record) {
        record(s, task.event());
      } else if (task.kind == Task::Kind::launch) {
        launch(s, task.node());
      }
      ++lane.at;
      now(s)[s] = lane.at;
      if (lane.at < tasks(s).size() && !ready_.empty() && ready_.top() < std::pair(key(s), s)) {
        enqueue(s);
        return;
      }
    }
  }

  void report_reuse(EventId e, ReplayOutcome::Reuse::Kind kind, TaskRef earlier, TaskRef later) {
    if (events_[e].reported) return;
    events_[e].reported = true;
    out_.reuses.push_back({e, kind, earlier, later});
  }

  void wait(std::uint32_t s, EventId e, Event& event) {
    const TaskRef here = ref(s, lanes_[s].at);
    if (event.waited && !knows(s, event.last_wait)) {
      report_reuse(e, ReplayOutcome::Reuse::Kind::waits_unordered, event.last_wait, here);
    }
    Lane& lane = lanes_[s];
    if (options_.classify_waits) {
      if (lane.group.empty()) lane.base.assign(now(s), now(s) + width_);
      lane.group.push_back(static_cast<std::uint32_t>(out_.waits.size()));
      lane.sources.push_back({event.record, event.row});
      out_.waits.push_back({here, e, ReplayOutcome::Need::open});
    }
    if (options_.ignore != here) {
      const std::uint32_t* source = row(event.row);
      std::uint32_t* clock = now(s);
      for (std::uint32_t t = 0; t < width_; ++t) clock[t] = std::max(clock[t], source[t]);
    }
    if (!options_.classify_waits) free_rows_.push_back(event.row);
    event.open = false;
    event.row = kNone;
    event.waited = true;
    event.last_wait = here;
  }

  void record(std::uint32_t s, EventId e) {
    flush(s, nullptr);
    Event& event = events_[e];
    const TaskRef here = ref(s, lanes_[s].at);
    if (event.open) {
      report_reuse(e, ReplayOutcome::Reuse::Kind::record_unread, event.record, here);
      free_rows_.push_back(event.row);
    } else if (event.waited && !knows(s, event.last_wait)) {
      report_reuse(e, ReplayOutcome::Reuse::Kind::record_early, event.last_wait, here);
    }
    event.open = true;
    event.record = here;
    event.row = take_row();
    std::copy_n(now(s), width_, row(event.row));
    row(event.row)[s] = here.index + 1;
    while (event.parked != kNone) {
      const std::uint32_t waiter = event.parked;
      event.parked = lanes_[waiter].next_parked;
      enqueue(waiter);
    }
  }

  void launch(std::uint32_t s, NodeId n) {
    flush(s, &n);
    const std::uint32_t* clock = now(s);
    const TaskRef here = ref(s, lanes_[s].at);
    for (std::uint32_t i = required_.begin[n.index]; i < required_.begin[n.index + 1]; ++i) {
      const Place& first = launched_at_[required_.items[i].first];
      if (first.stream != kNone && clock[first.stream] >= first.position) continue;
      out_.races.push_back({i, here, false});
      if (first.stream == kNone) unseen_.emplace(required_.items[i].first.index, out_.races.size() - 1);
      stopped_ = options_.stop_at_first_race;
    }
    if (!unseen_.empty()) {
      const auto [begin, end] = unseen_.equal_range(n.index);
      for (auto it = begin; it != end; ++it) {
        ReplayOutcome::Race& race = out_.races[it->second];
        race.reversed = race.second.stream.index == s || knows(s, race.second);
      }
      unseen_.erase(n.index);
    }
    launched_at_[n] = {s, here.index + 1};
  }

  // Judges the waits directly before a task of stream s, `next` if that is a launch.
  void flush(std::uint32_t s, const NodeId* next) {
    Lane& lane = lanes_[s];
    if (lane.group.empty()) return;
    best_.assign(width_, Best{});
    for (std::uint32_t i = 0; i < lane.sources.size(); ++i) {
      const std::uint32_t* source = row(lane.sources[i].second);
      for (std::uint32_t t = 0; t < width_; ++t) {
        Best& b = best_[t];
        if (b.who == kNone || source[t] > b.value) {
          b = {source[t], i, b.value};
        } else {
          b.second = std::max(b.second, source[t]);
        }
      }
    }
    for (std::uint32_t i = 0; i < lane.group.size(); ++i) {
      const TaskRef& record = lane.sources[i].first;
      const Best& b = best_[record.stream.index];
      const std::uint32_t others = std::max(lane.base[record.stream.index], b.who == i ? b.second : b.value);
      if (others > record.index) out_.waits[lane.group[i]].need = ReplayOutcome::Need::implied;
    }
    if (next != nullptr) {
      for (const Requirement& r : required_.of(*next)) {
        const Place& first = launched_at_[r.first];
        if (first.stream == kNone || lane.base[first.stream] >= first.position) continue;
        const Best& b = best_[first.stream];
        if (b.value >= first.position && b.second < first.position) {
          out_.waits[lane.group[b.who]].need = ReplayOutcome::Need::needed;
        }
      }
    }
    for (const auto& [record, row_id] : lane.sources) free_rows_.push_back(row_id);
    lane.group.clear();
    lane.sources.clear();
  }

  std::uint32_t take_row() {
    if (!free_rows_.empty()) {
      const std::uint32_t id = free_rows_.back();
      free_rows_.pop_back();
      return id;
    }
    rows_.resize(rows_.size() + width_);
    return static_cast<std::uint32_t>(rows_.size() / width_ - 1);
  }
  std::uint32_t* row(std::uint32_t id) { return rows_.data() + std::size_t{id} * width_; }

  const Schedule& schedule_;
  const RequirementList& required_;
  const ReplayOptions& options_;
  const std::uint32_t width_;
  IdVec<NodeId, std::uint32_t> rank_;
  IdVec<NodeId, Place> launched_at_;
  IdVec<EventId, Event> events_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> now_;
  std::vector<std::uint32_t> rows_;  // clocks of open records
  std::vector<std::uint32_t> free_rows_;
  std::priority_queue<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<std::uint32_t, std::uint32_t>>,
                      std::greater<>>
      ready_;
  std::unordered_multimap<std::uint32_t, std::size_t> unseen_;  // races whose first access has not come yet
  std::vector<Best> best_;
  bool stopped_ = false;
  ReplayOutcome out_;
};

}  // namespace

ReplayOutcome replay(const Graph& graph, const Schedule& schedule, const RequirementList& required,
                     const ReplayOptions& options) {
  return Replay(graph, schedule, required, options).run();
}

}  // namespace millstream
