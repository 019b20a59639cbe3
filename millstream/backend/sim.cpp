// SPDX-License-Identifier: Apache-2.0
// The back-end of virtual time: a deterministic discrete-event loop over streams, events and cores.
#include <algorithm>
#include <cmath>
#include <queue>

#include <fmt/format.h>

#include "millstream/backend/backend.h"
#include "millstream/backend/event_pairs.h"

namespace millstream {
namespace {

constexpr double kNsPerUs = 1000;

// splitmix64: a seed means the same delays on every machine.
class Delays {
 public:
  explicit Delays(const std::optional<std::uint64_t>& seed) : on_(seed.has_value()), state_(seed.value_or(0)) {}
  /// Mostly none or short, now and then a few milliseconds. Microseconds.
  double next_us() {
    if (!on_) return 0;
    const std::uint64_t r = next();
    if (r % 64 == 0) return 1000 + static_cast<double>(next() % 3000);
    return r % 3 == 0 ? static_cast<double>(next() % 200) : 0;
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  bool on_;
  std::uint64_t state_;
};

struct Signal {
  bool recorded = false;
  std::optional<PhysicalStreamId> waiter;
};

struct Lane {
  std::uint32_t next = 0;     // index of the task it is at
  double arrived = 0;         // when it came to that task
  std::uint32_t worker = 0;   // core of its running launch
  bool in_task = false;       // the task at `next` has begun; its end is in the queue
};

struct Moment {
  double at;
  PhysicalStreamId stream;
  bool operator>(const Moment& other) const {
    return at != other.at ? at > other.at : stream > other.stream;
  }
};

class Loop {
 public:
  Loop(const Graph& graph, const Schedule& schedule, const Target& target, const IdVec<NodeId, double>& durations,
       const EventPairs& pairs, Launcher* launcher, const ExecuteOptions& options)
      : graph_(graph),
        schedule_(schedule),
        costs_(target.costs),
        durations_(durations),
        pairs_(pairs),
        launcher_(launcher),
        delays_(options.delay_seed),
        lanes_(schedule.streams.size()),
        signals_(pairs.count),
        cores_(std::max(1u, target.cores)) {
    spans_.resize(schedule.streams.size());
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
      spans_[s.index].reserve(schedule.streams[s].tasks.size());
    }
  }

  Result<Trace> run() {
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(lanes_.size())) queue_.push({0, s});
    while (!queue_.empty()) {
      now_ = queue_.top().at;
      // Everything that happens at this moment comes before cores are given out: ties go by stream.
      while (!queue_.empty() && queue_.top().at == now_) {
        const PhysicalStreamId s = queue_.top().stream;
        queue_.pop();
        step(s);
      }
      MST_TRY_VOID(start_launches());
    }
    MST_TRY_VOID(all_finished());
    Trace trace;
    trace.virtual_time = true;
    trace.total_ns = ns(now_);
    for (std::vector<Span>& list : spans_) {
      trace.spans.insert(trace.spans.end(), list.begin(), list.end());
    }
    return trace;
  }

 private:
  static std::uint64_t ns(double us) { return static_cast<std::uint64_t>(std::llround(us * kNsPerUs)); }

  const std::vector<Task>& tasks(PhysicalStreamId s) const { return schedule_.streams[s].tasks; }

  // The stream's clock stands at now_: its running task ends, or it comes to its next one.
  void step(PhysicalStreamId s) {
    Lane& lane = lanes_[s];
    if (lane.in_task) {
      const Task& task = tasks(s)[lane.next];
      lane.in_task = false;
      ++lane.next;
      lane.arrived = now_;
      if (task.kind == Task::Kind::launch) free_cores_.push(lane.worker);
      if (task.kind == Task::Kind::record) publish(pairs_.slot[s.index][lane.next - 1]);
    }
    if (lane.next == tasks(s).size()) return;
    const Task& task = tasks(s)[lane.next];
    switch (task.kind) {
      case Task::Kind::launch:
        core_queue_.push({lane.arrived, s});
        return;
      case Task::Kind::record:
        begin(s, now_, costs_.record_us + delays_.next_us());
        return;
      case Task::Kind::wait: {
        const auto slot = pairs_.slot[s.index][lane.next];
        if (!slot) return;  // nobody records for it: all_finished reports the stream
        if (signals_[*slot].recorded) {
          begin(s, now_, costs_.wait_us);
        } else {
          signals_[*slot].waiter = s;
        }
        return;
      }
      case Task::Kind::self_attached:
      case Task::Kind::attached:  // the node's kernel fills it
        begin(s, now_, 0);
        return;
      case Task::Kind::activate:
      case Task::Kind::label:
      case Task::Kind::jump:
      case Task::Kind::branch:
      case Task::Kind::stream_switch:
        MST_CHECK(false, "control flow tasks are refused before a run");
    }
  }

  void begin(PhysicalStreamId s, double at, double duration) {
    Lane& lane = lanes_[s];
    lane.in_task = true;
    Span span;
    span.task = {s, lane.next};
    span.what = tasks(s)[lane.next];
    // A wait shows the time its stream stood still.
    span.begin_ns = ns(span.what.kind == Task::Kind::wait ? lane.arrived : at);
    span.end_ns = ns(at + duration);
    span.worker = lane.worker;
    spans_[s.index].push_back(span);
    queue_.push({at + duration, s});
  }

  void publish(std::optional<std::uint32_t> slot) {
    if (!slot) return;
    Signal& signal = signals_[*slot];
    signal.recorded = true;
    if (!signal.waiter) return;
    // Who came at this very moment was not kept waiting.
    const PhysicalStreamId s = *signal.waiter;
    begin(s, lanes_[s].arrived < now_ ? now_ + costs_.hand_off_us : now_, costs_.wait_us);
  }

  Result<void> start_launches() {
    while (!core_queue_.empty() && (!free_cores_.empty() || used_cores_ < cores_)) {
      const PhysicalStreamId s = core_queue_.top().stream;
      core_queue_.pop();
      Lane& lane = lanes_[s];
      if (free_cores_.empty()) {
        lane.worker = used_cores_++;
      } else {
        lane.worker = free_cores_.top();
        free_cores_.pop();
      }
      const NodeId node = tasks(s)[lane.next].node();
      // Virtual starts respect every order of the schedule, so launching here does too.
      if (launcher_ != nullptr) MST_TRY_VOID(launcher_->launch(node, s));
      begin(s, now_, durations_[node] + delays_.next_us());
    }
    return {};
  }

  Result<void> all_finished() const {
    std::optional<Error> error;
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(lanes_.size())) {
      const Lane& lane = lanes_[s];
      if (lane.next == tasks(s).size()) continue;
      const std::uint32_t event = tasks(s)[lane.next].index;
      std::string last = "nothing";
      for (std::uint32_t i = lane.next; i-- > 0;) {
        if (tasks(s)[i].kind == Task::Kind::launch) {
          last = std::string(graph_.name(tasks(s)[i].node()));
          break;
        }
      }
      const std::string line =
          fmt::format("stream {} waits for event {} after {}", s.index, event, last);
      if (!error) {
        error = Error{ErrorCode::deadlock, fmt::format("the schedule cannot finish: {}", line)};
      } else {
        error->note(line);
      }
    }
    if (error) return std::move(error->help("`millstream check` shows the cycle or the missing record"));
    return {};
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Costs& costs_;
  const IdVec<NodeId, double>& durations_;
  const EventPairs& pairs_;
  Launcher* launcher_;
  Delays delays_;
  IdVec<PhysicalStreamId, Lane> lanes_;
  std::vector<Signal> signals_;  // by slot
  const std::uint32_t cores_;
  std::uint32_t used_cores_ = 0;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_cores_;
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> core_queue_;  // by arrival, then stream
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> queue_;
  std::vector<std::vector<Span>> spans_;
  double now_ = 0;
};

class SimBackend final : public Backend {
 public:
  SimBackend(const Target& target, IdVec<NodeId, double> durations, bool functional)
      : target_(target), durations_(std::move(durations)), functional_(functional) {}

  std::string_view name() const override { return "sim"; }

  Result<Trace> execute(const Graph& graph, const Schedule& schedule, Launcher& launcher,
                        const ExecuteOptions& options) override {
    if (durations_.size() != graph.node_count()) {
      return Error{ErrorCode::plan_mismatch, fmt::format("the simulation has durations of {} nodes, graph {} has {}",
                                                         durations_.size(), graph.name(), graph.node_count())};
    }
    MST_TRY(const EventPairs pairs, pair_events(graph, schedule));
    Result<Trace> trace =
        Loop(graph, schedule, target_, durations_, pairs, functional_ ? &launcher : nullptr, options).run();
    if (trace.ok() && !options.trace) trace->spans = {};
    return trace;
  }

 private:
  Target target_;
  IdVec<NodeId, double> durations_;
  bool functional_;
};

}  // namespace

std::unique_ptr<Backend> make_sim_backend(const Target& target, IdVec<NodeId, double> durations_us, bool functional) {
  return std::make_unique<SimBackend>(target, std::move(durations_us), functional);
}

}  // namespace millstream
