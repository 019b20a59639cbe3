// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/program.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "millstream/backend/untimed.h"

namespace millstream {
namespace {

// The argument block of a launch.
struct LaunchOf {
  ProgramRun* const* run;  // where the program keeps the run that is under way
  std::uint32_t node;
  std::uint32_t stream;
};

void sleep(rt::Delays& delays) {
  if (const std::uint64_t us = delays.next_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

Result<void> launch_node(const KernelCall& call) {
  LaunchOf of;
  std::memcpy(&of, call.arguments.data(), sizeof of);
  ProgramRun& run = **of.run;
  if (run.launcher == nullptr || run.stop.load(std::memory_order_relaxed)) return {};
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

}  // namespace

Result<std::unique_ptr<Program>> Program::record(Context& context, std::vector<Stream*> streams, const Graph& graph,
                                                 const Schedule& schedule, const IdVec<NodeId, double>* durations_us) {
  MST_TRY(const EventPairs pairs, pair_events(graph, schedule));
  MST_TRY_VOID(can_finish(graph, schedule, pairs));
  std::unique_ptr<Program> program(new Program);
  if (schedule.streams.size() == 0) return program;
  if (durations_us != nullptr) {
    for (const double us : *durations_us) program->timed_.push_back({"node", launch_node, us, 0});
  }
  MST_TRY(Model model, context.begin_model());
  program->model_.emplace(std::move(model));
  program->streams_ = std::move(streams);
  for (Stream* stream : program->streams_) MST_TRY_VOID(program->model_->bind(*stream, StreamRole::head));
  for (std::uint32_t e = 0; e < pairs.count; ++e) {
    MST_TRY(Event event, context.create_event(Event::Kind::snapshot));
    program->events_.push_back(std::move(event));
  }
  for (std::uint32_t s = 0; s < schedule.streams.size(); ++s) {
    MST_TRY_VOID(program->record_stream(s, schedule, pairs));
    MST_TRY_VOID(program->model_->end_tasks(*program->streams_[s]));
  }
  MST_TRY_VOID(program->model_->finish());
  return program;
}

Program::~Program() {
  model_.reset();
  events_.clear();
  for (Stream* stream : streams_) stream->drop_tapes();
}

Result<void> Program::record_stream(std::uint32_t s, const Schedule& schedule, const EventPairs& pairs) {
  const std::vector<Task>& tasks = schedule.streams[PhysicalStreamId(s)].tasks;
  Stream& stream = *streams_[s];
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    const auto slot = pairs.slot[s][i];
    switch (tasks[i].kind) {
      case Task::Kind::launch: {
        const LaunchOf of{&run_, tasks[i].index, s};
        const KernelFunction& kernel = timed_.empty() ? kLaunchNode : timed_[tasks[i].index];
        MST_TRY_VOID(stream.launch(kernel, {}, std::as_bytes(std::span(&of, 1))));
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
        MST_CHECK(false, "pair_events refuses control flow tasks");
    }
  }
  return {};
}

Result<void> Program::execute(ProgramRun& run) {
  if (!model_) return {};
  run.errors.resize(streams_.size());
  run_ = &run;
  Result<void> done = model_->execute();
  for (std::optional<Error>& error : run.errors) {
    if (error) return std::move(*error);
  }
  return done;
}

std::vector<Span> Program::spans(const Schedule& schedule, const std::vector<rt::TraceEvent>& events) const {
  std::vector<std::uint32_t> stream_of;  // by number on the device
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    const std::uint32_t number = streams_[s]->number();
    if (stream_of.size() <= number) stream_of.resize(number + 1, static_cast<std::uint32_t>(streams_.size()));
    stream_of[number] = s;
  }
  std::uint64_t zero = ~std::uint64_t{0};
  std::vector<std::vector<Span>> spans(streams_.size());
  for (std::uint32_t s = 0; s < spans.size(); ++s) spans[s].resize(schedule.streams[PhysicalStreamId(s)].tasks.size());
  for (const rt::TraceEvent& e : events) {
    if (e.kind != rt::TraceEvent::Kind::began && e.kind != rt::TraceEvent::Kind::ended) continue;
    if (e.stream >= stream_of.size() || stream_of[e.stream] == streams_.size()) continue;  // the default stream's part
    zero = std::min(zero, e.time_ns);
    Span& span = spans[stream_of[e.stream]][e.sequence];
    (e.kind == rt::TraceEvent::Kind::began ? span.begin_ns : span.end_ns) = e.time_ns;
    span.worker = e.worker;
  }
  std::vector<Span> out;
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
      out.push_back(span);
    }
  }
  return out;
}

}  // namespace millstream
