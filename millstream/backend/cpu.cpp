// SPDX-License-Identifier: Apache-2.0
// Runs schedules on a fixed pool of workers. A worker follows one stream until it ends or has to wait; then the
// stream is parked at its event, and the record puts it back among the streams that are ready.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "millstream/backend/backend.h"
#include "millstream/backend/cpu_pool.h"
#include "millstream/backend/event_pairs.h"

namespace millstream {
namespace {

using Clock = std::chrono::steady_clock;

// Seeded sleeps of one stream: mostly 0 to 200 us, now and then some milliseconds. A stress aid: the draws
// are repeatable, what they lead to is not.
class StreamDelays {
 public:
  StreamDelays(std::optional<std::uint64_t> seed, std::uint32_t stream)
      : on_(seed.has_value()), state_(seed.value_or(0) * 0x9e3779b97f4a7c15ull + stream + 1) {}
  void sleep() {
    if (!on_) return;
    const std::uint64_t z = next();
    const std::uint64_t kind = z % 64, amount = z >> 8;
    if (kind < 24) return;
    const std::uint64_t us = kind == 63 ? 1000 + amount % 3000 : amount % 200;
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }

 private:
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  bool on_;
  std::uint64_t state_;
};

class CpuRun {
 public:
  CpuRun(const Graph& graph, const Schedule& schedule, const EventPairs& pairs, Launcher& launcher,
         const ExecuteOptions& options, ReadyStreams& ready)
      : graph_(graph), schedule_(schedule), pairs_(pairs), launcher_(launcher), trace_(options.trace), ready_(ready),
        signals_(pairs.count) {
    for (std::uint32_t s = 0; s < schedule.streams.size(); ++s) {
      lanes_.push_back(Lane{0, StreamDelays(options.delay_seed, s), {}, 0, {}});
      if (trace_) lanes_.back().spans.reserve(tasks(s).size());
    }
  }

  void work(std::uint32_t worker) {
    for (auto s = ready_.take(); s; s = ready_.swap()) follow(*s, worker);
  }

  Result<Trace> finish() {
    for (Lane& lane : lanes_) {
      if (lane.error) return std::move(*lane.error);
    }
    MST_TRY_VOID(all_finished());
    Trace trace;
    trace.total_ns = now();
    for (Lane& lane : lanes_) trace.spans.insert(trace.spans.end(), lane.spans.begin(), lane.spans.end());
    return trace;
  }

 private:
  // Owned by whoever holds the stream; handed over through the event it waits for and the ready queue.
  struct Lane {
    std::uint32_t next = 0;
    StreamDelays delays;
    std::vector<Span> spans;
    std::uint64_t waiting_since = 0;
    std::optional<Error> error;
  };

  // 0: nothing yet; kRecorded; else 2 + the stream that is parked.
  static constexpr std::uint32_t kRecorded = 1;
  struct Signal {
    std::atomic<std::uint32_t> state{0};
  };

  const std::vector<Task>& tasks(std::uint32_t s) const { return schedule_.streams[PhysicalStreamId(s)].tasks; }
  std::uint64_t now() const {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count());
  }

  void follow(std::uint32_t s, std::uint32_t worker) {
    Lane& lane = lanes_[s];
    const std::vector<Task>& list = tasks(s);
    const auto& slots = pairs_.slot[s];
    while (lane.next < list.size() && !stop_.load(std::memory_order_relaxed)) {
      const Task& task = list[lane.next];
      std::uint64_t begin = 0;
      switch (task.kind) {
        case Task::Kind::launch: {
          lane.delays.sleep();
          if (trace_) begin = now();
          Result<void> launched = launcher_.launch(task.node(), PhysicalStreamId(s));
          if (!launched.ok()) {
            lane.error = std::move(launched).error();
            stop_.store(true, std::memory_order_relaxed);
            return;
          }
          break;
        }
        case Task::Kind::record: {
          // What runs before is done and written; that it is done is made known late here.
          lane.delays.sleep();
          if (trace_) begin = now();
          if (const auto slot = slots[lane.next]) {
            const std::uint32_t before = signals_[*slot].state.exchange(kRecorded, std::memory_order_acq_rel);
            if (before > kRecorded) ready_.push(before - 2);
          }
          break;
        }
        case Task::Kind::wait: {
          const auto slot = slots[lane.next];
          if (!slot) return;  // nobody records for it: all_finished tells
          std::atomic<std::uint32_t>& state = signals_[*slot].state;
          if (state.load(std::memory_order_acquire) != kRecorded) {
            if (trace_) lane.waiting_since = now();
            std::uint32_t expected = 0;
            // After the exchange another worker may already hold the lane.
            if (state.compare_exchange_strong(expected, s + 2, std::memory_order_acq_rel, std::memory_order_acquire)) return;
          }
          if (trace_) {
            begin = lane.waiting_since != 0 ? lane.waiting_since : now();
            lane.waiting_since = 0;
          }
          break;
        }
        case Task::Kind::attached:  // the node's kernel fills it
          if (trace_) begin = now();
          break;
        case Task::Kind::activate:
        case Task::Kind::label:
        case Task::Kind::jump:
        case Task::Kind::branch:
        case Task::Kind::stream_switch:
          MST_CHECK(false, "instantiate refuses control flow tasks");
      }
      if (trace_) lane.spans.push_back({TaskRef{PhysicalStreamId(s), lane.next}, task, begin, now(), worker});
      ++lane.next;
    }
  }

  std::string last_node(std::uint32_t s) const {
    for (std::uint32_t i = lanes_[s].next; i-- > 0;) {
      if (tasks(s)[i].kind == Task::Kind::launch) return fmt::format("node \"{}\"", graph_.name(tasks(s)[i].node()));
    }
    return "nothing";
  }

  // Which stream has the record of each slot.
  std::vector<std::uint32_t> recorders() const {
    std::vector<std::uint32_t> out(pairs_.count, 0);
    for (std::uint32_t s = 0; s < lanes_.size(); ++s) {
      for (std::size_t i = 0; i < tasks(s).size(); ++i) {
        if (tasks(s)[i].kind == Task::Kind::record && pairs_.slot[s][i]) out[*pairs_.slot[s][i]] = s;
      }
    }
    return out;
  }

  // The stream whose record the first open wait of `s` needs: by its slot, else whoever still records the id.
  std::optional<std::uint32_t> needs(std::uint32_t s, const std::vector<std::uint32_t>& recorder) const {
    if (const auto slot = pairs_.slot[s][lanes_[s].next]) return recorder[*slot];
    const std::uint32_t event = tasks(s)[lanes_[s].next].index;
    for (std::uint32_t t = 0; t < lanes_.size(); ++t) {
      for (std::uint32_t i = lanes_[t].next; i < tasks(t).size(); ++i) {
        if (tasks(t)[i] == Task::record(EventId(event)) && !pairs_.slot[t][i]) return t;
      }
    }
    return std::nullopt;
  }

  Result<void> all_finished() const {
    std::vector<std::uint32_t> stuck;
    for (std::uint32_t s = 0; s < lanes_.size(); ++s) {
      if (lanes_[s].next != tasks(s).size()) stuck.push_back(s);
    }
    if (stuck.empty()) return {};
    std::optional<Error> error;
    const std::vector<std::uint32_t> recorder = recorders();
    std::vector<std::optional<std::uint32_t>> next(lanes_.size());
    for (const std::uint32_t s : stuck) {
      const std::uint32_t event = tasks(s)[lanes_[s].next].index;
      next[s] = needs(s, recorder);
      const std::string line = fmt::format("stream {} waits for event {} after {}, {}", s, event, last_node(s),
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
  Launcher& launcher_;
  const bool trace_;
  ReadyStreams& ready_;
  std::vector<Signal> signals_;  // by slot
  std::vector<Lane> lanes_;      // by physical stream
  std::atomic<bool> stop_{false};
  const Clock::time_point start_ = Clock::now();
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::uint32_t workers, std::uint32_t threads_per_op) : pool_(workers, threads_per_op) {}

  std::string_view name() const override { return "cpu"; }

  Result<Trace> execute(const Graph& graph, const Schedule& schedule, Launcher& launcher,
                        const ExecuteOptions& options) override {
    const std::lock_guard one(one_run_);
    MST_TRY_VOID(pair_up(graph, schedule));
    CpuRun run(graph, schedule, *pairs_, launcher, options, ready_);
    ready_.start(static_cast<std::uint32_t>(schedule.streams.size()));
    if (schedule.streams.size() == 1) {
      pool_.run_alone([&](std::uint32_t worker) { run.work(worker); });
    } else {
      pool_.run([&](std::uint32_t worker) { run.work(worker); });
    }
    return run.finish();
  }

 private:
  // A schedule is run many times: its pairs are kept while it (and what they depend on) stays equal.
  Result<void> pair_up(const Graph& graph, const Schedule& schedule) {
    if (pairs_ && nodes_ == graph.node_count() && order_ == graph.order() && schedule_ == schedule) return {};
    pairs_.reset();
    MST_TRY(pairs_, pair_events(graph, schedule));
    nodes_ = graph.node_count();
    order_ = graph.order();
    schedule_ = schedule;
    return {};
  }

  std::mutex one_run_;
  WorkerPool pool_;
  ReadyStreams ready_;
  std::optional<EventPairs> pairs_;
  std::size_t nodes_ = 0;
  std::vector<NodeId> order_;
  Schedule schedule_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(std::uint32_t workers, std::uint32_t threads_per_op) {
  return std::make_unique<CpuBackend>(workers, threads_per_op);
}

}  // namespace millstream
