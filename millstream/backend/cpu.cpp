// SPDX-License-Identifier: Apache-2.0
// Runs schedules on the runtime's cpu device: a schedule is recorded once as a model instance, a tape for each
// physical stream, and executed as often as it is asked for.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include <omp.h>

#include <fmt/format.h>

#include "millstream/backend/backend.h"
#include "millstream/backend/event_pairs.h"
#include "millstream/backend/untimed.h"
#include "millstream/runtime/delays.h"
#include "millstream/runtime/device.h"
#include "millstream/runtime/trace_recorder.h"

namespace millstream {
namespace {

// One run of the schedule: what its launches need and what they leave.
struct CpuRun {
  Launcher* launcher = nullptr;
  std::atomic<bool> stop{false};
  std::vector<std::optional<Error>> errors;  // by physical stream
  std::vector<rt::Delays> delays;            // by physical stream
};

// The argument block of a launch.
struct LaunchOf {
  CpuRun* const* run;  // where the program keeps the run that is under way
  std::uint32_t node;
  std::uint32_t stream;
};

void sleep(rt::Delays& delays) {
  if (const std::uint64_t us = delays.next_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

Result<void> launch_node(const KernelCall& call) {
  LaunchOf of;
  std::memcpy(&of, call.arguments.data(), sizeof of);
  CpuRun& run = **of.run;
  if (run.stop.load(std::memory_order_relaxed)) return {};
  // Before the node starts, and before what it made is made known.
  sleep(run.delays[of.stream]);
  Result<void> launched = run.launcher->launch(NodeId(of.node), PhysicalStreamId(of.stream));
  sleep(run.delays[of.stream]);
  if (launched.ok()) return {};
  run.errors[of.stream] = std::move(launched).error();
  run.stop.store(true, std::memory_order_relaxed);
  return {};
}

constexpr KernelFunction kLaunchNode{"node", launch_node, 0, 0};
// Stands for tasks that do nothing here: parts on attached streams, records that nobody waits for.
constexpr KernelFunction kNothing{"nothing", nullptr, 0, 0};

// A schedule as a model instance. Its tapes have a task for each of the schedule's, at the same place.
class Program {
 public:
  static Result<std::unique_ptr<Program>> record(Context& context, const Schedule& schedule, const EventPairs& pairs) {
    std::unique_ptr<Program> program(new Program);
    MST_TRY(Model model, context.begin_model());
    program->model_.emplace(std::move(model));
    for (std::uint32_t s = 0; s < schedule.streams.size(); ++s) {
      MST_TRY(Stream stream, context.create_stream(StreamOptions{.persistent = true, .huge = true}));
      MST_TRY_VOID(program->model_->bind(stream, StreamRole::head));
      program->streams_.push_back(std::move(stream));
    }
    for (std::uint32_t e = 0; e < pairs.count; ++e) {
      MST_TRY(Event event, context.create_event(Event::Kind::snapshot));
      program->events_.push_back(std::move(event));
    }
    for (std::uint32_t s = 0; s < schedule.streams.size(); ++s) {
      MST_TRY_VOID(program->record_stream(s, schedule, pairs));
      MST_TRY_VOID(program->model_->end_tasks(program->streams_[s]));
    }
    MST_TRY_VOID(program->model_->finish());
    return program;
  }

  Result<void> execute(CpuRun& run) {
    run_ = &run;
    return model_->execute();
  }
  /// The physical stream of a stream's number on the device.
  std::optional<std::uint32_t> stream_of(std::uint32_t number) const {
    for (std::uint32_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].number() == number) return s;
    }
    return std::nullopt;
  }

 private:
  Program() = default;

  Result<void> record_stream(std::uint32_t s, const Schedule& schedule, const EventPairs& pairs) {
    const std::vector<Task>& tasks = schedule.streams[PhysicalStreamId(s)].tasks;
    Stream& stream = streams_[s];
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      const auto slot = pairs.slot[s][i];
      switch (tasks[i].kind) {
        case Task::Kind::launch: {
          const LaunchOf of{&run_, tasks[i].index, s};
          MST_TRY_VOID(stream.launch(kLaunchNode, {}, std::as_bytes(std::span(&of, 1))));
          break;
        }
        case Task::Kind::record:
          if (slot) {
            MST_TRY_VOID(stream.record(events_[*slot]));
            break;
          }
          [[fallthrough]];
        case Task::Kind::self_attached:
        case Task::Kind::attached:  // the node's kernel fills it
          MST_TRY_VOID(stream.launch(kNothing, {}, {}));
          break;
        case Task::Kind::wait:
          MST_TRY_VOID(stream.wait(events_[*slot]));  // can_finish has seen that it has one
          break;
        case Task::Kind::activate:
        case Task::Kind::label:
        case Task::Kind::jump:
        case Task::Kind::branch:
        case Task::Kind::stream_switch:
          MST_CHECK(false, "instantiate refuses control flow tasks");
      }
    }
    return {};
  }

  CpuRun* run_ = nullptr;
  std::vector<Stream> streams_;
  std::vector<Event> events_;  // by slot
  std::optional<Model> model_;  // ends before its streams
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::uint32_t workers, std::uint32_t threads_per_op) {
    Profile profile;
    profile.workers = workers;
    profile.callback_threads = 0;
    profile.max_streams = profile.max_events = Profile::kUnlimited;
    profile.tasks_per_huge_stream = Profile::kUnlimited;
    Result<Device> device = Device::open_private(BackendId::cpu, profile, [threads_per_op] { omp_set_num_threads(static_cast<int>(threads_per_op)); });
    MST_CHECK(device.ok(), "a device without limits opens");
    device_.emplace(std::move(*device));
    context_.emplace(device_->primary());
  }

  std::string_view name() const override { return "cpu"; }

  Result<Trace> execute(const Graph& graph, const Schedule& schedule, Launcher& launcher, const ExecuteOptions& options) override {
    const std::lock_guard one(one_run_);
    MST_TRY_VOID(prepare(graph, schedule));
    CpuRun run;
    run.launcher = &launcher;
    run.errors.resize(schedule.streams.size());
    for (std::uint32_t s = 0; s < schedule.streams.size(); ++s) run.delays.emplace_back(options.delay_seed, s + 1);
    Trace trace;
    if (schedule.streams.size() == 0) return trace;
    if (options.trace) device_->start_trace();
    const auto begin = std::chrono::steady_clock::now();
    Result<void> done = program_->execute(run);
    trace.total_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
    if (options.trace) {
      device_->stop_trace();
      fill(trace, schedule, device_->take_trace());
    }
    for (std::optional<Error>& error : run.errors) {
      if (error) return std::move(*error);
    }
    if (!done.ok()) return std::move(done).error();
    return trace;
  }

 private:
  // A schedule is run many times: it is recorded once, and kept while it (and what its pairs depend on) stays equal.
  Result<void> prepare(const Graph& graph, const Schedule& schedule) {
    if (program_ && nodes_ == graph.node_count() && order_ == graph.order() && schedule_ == schedule) return {};
    program_.reset();
    MST_TRY(const EventPairs pairs, pair_events(graph, schedule));
    MST_TRY_VOID(can_finish(graph, schedule, pairs));
    if (schedule.streams.size() != 0) {
      MST_TRY(program_, Program::record(*context_, schedule, pairs));
    }
    nodes_ = graph.node_count();
    order_ = graph.order();
    schedule_ = schedule;
    return {};
  }

  // Spans by stream, then place. A wait begins when its stream comes to it.
  void fill(Trace& trace, const Schedule& schedule, const std::vector<rt::TraceEvent>& events) const {
    std::uint64_t zero = ~std::uint64_t{0};
    std::vector<std::vector<Span>> spans(schedule.streams.size());
    for (std::uint32_t s = 0; s < spans.size(); ++s) spans[s].resize(schedule.streams[PhysicalStreamId(s)].tasks.size());
    for (const rt::TraceEvent& e : events) {
      if (e.kind != rt::TraceEvent::Kind::began && e.kind != rt::TraceEvent::Kind::ended) continue;
      const auto s = program_->stream_of(e.stream);
      if (!s || e.sequence >= spans[*s].size()) continue;  // the default stream's part
      zero = std::min(zero, e.time_ns);
      Span& span = spans[*s][e.sequence];
      (e.kind == rt::TraceEvent::Kind::began ? span.begin_ns : span.end_ns) = e.time_ns;
      span.worker = e.worker;
    }
    for (std::uint32_t s = 0; s < spans.size(); ++s) {
      const std::vector<Task>& tasks = schedule.streams[PhysicalStreamId(s)].tasks;
      std::uint64_t before = 0;
      for (std::uint32_t i = 0; i < tasks.size(); ++i) {
        Span& span = spans[s][i];
        span.task = {PhysicalStreamId(s), i};
        span.what = tasks[i];
        span.begin_ns -= zero;
        span.end_ns -= zero;
        if (tasks[i].kind == Task::Kind::wait) span.begin_ns = before;
        before = span.end_ns;
        trace.spans.push_back(span);
      }
    }
  }

  std::mutex one_run_;
  std::optional<Device> device_;
  std::optional<Context> context_;
  std::unique_ptr<Program> program_;
  std::size_t nodes_ = 0;
  std::vector<NodeId> order_;
  Schedule schedule_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(std::uint32_t workers, std::uint32_t threads_per_op) {
  return std::make_unique<CpuBackend>(workers, threads_per_op);
}

}  // namespace millstream
