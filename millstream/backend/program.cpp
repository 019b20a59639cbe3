// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/program.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "millstream/runtime/model.h"

namespace millstream {
namespace {

// The argument block of a launch, and of what asks for a way.
struct LaunchOf {
  Program* program;
  std::uint32_t node;
  std::uint32_t stream;
  std::uint32_t control;
};

LaunchOf block_of(const KernelCall& call) {
  LaunchOf of;
  std::memcpy(&of, call.arguments.data(), sizeof of);
  return of;
}

void sleep(rt::Delays& delays) {
  if (const std::uint64_t us = delays.next_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// Stands for tasks that do nothing here: parts on attached streams, records that nobody waits for.
constexpr KernelFunction kNothing{"nothing", nullptr, 0, 0};

constexpr std::uint32_t kZero = 0;

Error undecided() {
  return Error{ErrorCode::kernel, "this plan has control flow, and which way it goes only values tell"}.help(
      "run it with kernels that compute them");
}

}  // namespace

Result<std::uint32_t> Launcher::steer(NodeId) { return undecided(); }

const KernelFunction Program::kLaunch{"node", launch_node, 0, 0};
const KernelFunction Program::kSteer{"way", steer_node, 0, 0};

// The first of each stream counts. What has not begun does not begin: launches see `stop`, and a loop would go on without
// them.
void Program::fail(std::uint32_t stream, Error error) {
  run_->errors[stream] = std::move(error);
  run_->stop.store(true, std::memory_order_relaxed);
  if (!control_) return;
  const Result<void> aborted = model_->abort();
  MST_CHECK(aborted.ok(), "a model that runs can be aborted");
}

Result<void> Program::launch_node(const KernelCall& call) {
  const LaunchOf of = block_of(call);
  ProgramRun& run = *of.program->run_;
  if (run.launcher == nullptr || run.stop.load(std::memory_order_relaxed)) return {};
  // Before the node starts, and before what it made is made known.
  sleep(run.delays[of.stream]);
  Result<void> launched = run.launcher->launch(NodeId(of.node), PhysicalStreamId(of.stream));
  sleep(run.delays[of.stream]);
  if (!launched.ok()) of.program->fail(of.stream, std::move(launched).error());
  return {};
}

Result<void> Program::steer_node(const KernelCall& call) {
  const LaunchOf of = block_of(call);
  ProgramRun& run = *of.program->run_;
  if (run.stop.load(std::memory_order_relaxed)) return {};
  Result<std::uint32_t> way = run.launcher->steer(NodeId(of.node));
  if (way.ok()) {
    of.program->ways_[of.control] = *way;
  } else {
    of.program->fail(of.stream, std::move(way).error());
  }
  return {};
}

/// Puts one stream's tasks on its tape.
class Program::Recorder {
 public:
  Recorder(Program& program, Context& context, const Graph& graph, const Schedule& schedule, const EventPairs& pairs, std::uint32_t s)
      : program_(program), context_(context), graph_(graph), schedule_(schedule), pairs_(pairs), s_(s), stream_(*program.streams_[s]), tape_(stream_) {}

  Result<void> run() {
    const std::vector<Task>& tasks = schedule_.streams[PhysicalStreamId(s_)].tasks;
    for (at_ = 0; at_ < tasks.size(); ++at_) {
      const Task& task = tasks[at_];
      if (task.is_control()) {
        MST_TRY_VOID(control(task));
        continue;
      }
      stands_for(at_);
      MST_TRY_VOID(plain(task));
    }
    return {};
  }

 private:
  // The next task of the tape is that one of the schedule.
  void stands_for(std::uint32_t task) { program_.tasks_[s_].push_back(task); }

  Result<void> launch(const KernelFunction& kernel, const LaunchOf& of) { return stream_.launch(kernel, {}, std::as_bytes(std::span(&of, 1))); }

  Result<void> plain(const Task& task) {
    const auto slot = pairs_.slot[s_][at_];
    switch (task.kind) {
      case Task::Kind::launch:
        return launch(program_.timed_.empty() ? kLaunch : program_.timed_[task.index], {&program_, task.index, s_, 0});
      case Task::Kind::record:
        return slot ? stream_.record(program_.events_[*slot]) : stream_.launch(kNothing, {}, {});
      case Task::Kind::wait:
        return stream_.wait(program_.events_[*slot]);  // pair_events has seen that it has one
      default:  // an attached part: the node's kernel fills it
        return stream_.launch(kNothing, {}, {});
    }
  }

  Result<void> control(const Task& task) {
    const ControlTask& what = schedule_.controls[task.index];
    if (task.kind != Task::Kind::activate) {
      stands_for(kNoTask);
      MST_TRY_VOID(launch(kSteer, {&program_, what.node.index, s_, task.index}));
    }
    stands_for(at_);
    const std::uint32_t* const way = &program_.ways_[task.index];
    switch (task.kind) {
      case Task::Kind::activate:
        return start(what.targets[0]);
      case Task::Kind::label:
        return tape_.place(program_.labels_[what.targets[0]]);
      case Task::Kind::jump:
        return tape_.jump(program_.labels_[what.targets[0]]);
      case Task::Kind::branch: {
        std::vector<Label*> labels;
        for (const std::uint32_t label : what.targets) labels.push_back(&program_.labels_[label]);
        return tape_.jump_by_index(way, labels);
      }
      default:
        break;
    }
    if (what.targets.size() == 1 && graph_.type(what.node) == "StreamSwitch") {
      return tape_.switch_to(Comparison::not_equal, way, &kZero, IntType::int32, *program_.streams_[what.targets[0]]);
    }
    return start_one(what, way);
  }

  // Starting a stream without tasks does nothing. Nothing waits for its end either, so a loop could start it again too soon.
  Result<void> start(std::uint32_t s) {
    if (schedule_.streams[PhysicalStreamId(s)].tasks.empty()) return stream_.launch(kNothing, {}, {});
    return tape_.activate(*program_.streams_[s]);
  }

  // A StreamSwitchN starts one stream and goes on itself, which no single task of a tape does.
  Result<void> start_one(const ControlTask& what, const std::uint32_t* way) {
    std::vector<Label> ways;
    std::vector<Label*> list;
    for (std::size_t k = 0; k <= what.targets.size(); ++k) {
      MST_TRY(Label label, context_.create_label());
      ways.push_back(std::move(label));
    }
    for (std::size_t k = 0; k < what.targets.size(); ++k) list.push_back(&ways[k]);
    MST_TRY_VOID(tape_.jump_by_index(way, list));
    for (std::size_t k = 0; k < what.targets.size(); ++k) {
      for (int more = 0; more < 3; ++more) stands_for(kNoTask);
      MST_TRY_VOID(tape_.place(ways[k]));
      MST_TRY_VOID(start(what.targets[k]));
      MST_TRY_VOID(tape_.jump(ways.back()));
    }
    stands_for(kNoTask);
    MST_TRY_VOID(tape_.place(ways.back()));
    for (Label& label : ways) program_.labels_.push_back(std::move(label));
    return {};
  }

  Program& program_;
  Context& context_;
  const Graph& graph_;
  const Schedule& schedule_;
  const EventPairs& pairs_;
  const std::uint32_t s_;
  Stream& stream_;
  Tape tape_;
  std::uint32_t at_ = 0;
};

Result<std::unique_ptr<Program>> Program::record(Context& context, std::vector<Stream*> streams, const Graph& graph,
                                                 const Schedule& schedule, const IdVec<NodeId, double>* durations_us) {
  MST_TRY(const EventPairs pairs, pair_events(graph, schedule));
  std::unique_ptr<Program> program(new Program);
  const std::size_t count = schedule.streams.size();
  if (count == 0) return program;
  if (durations_us != nullptr) {
    for (const double us : *durations_us) program->timed_.push_back({"node", launch_node, us, 0});
  }
  program->control_ = schedule.has_control();
  program->ways_.resize(schedule.controls.size());
  program->tasks_.resize(count);
  MST_TRY(Model model, context.begin_model());
  program->model_.emplace(std::move(model));
  program->streams_ = std::move(streams);
  const std::vector<bool> runs_first = heads(schedule);
  for (std::uint32_t s = 0; s < count; ++s) {
    MST_TRY_VOID(program->model_->bind(*program->streams_[s], runs_first[s] ? StreamRole::head : StreamRole::activated));
  }
  for (std::uint32_t e = 0; e < pairs.count; ++e) {
    MST_TRY(Event event, context.create_event(Event::Kind::snapshot));
    program->events_.push_back(std::move(event));
  }
  for (std::uint32_t l = 0; l < schedule.label_count; ++l) {
    MST_TRY(Label label, context.create_label());
    program->labels_.push_back(std::move(label));
  }
  for (std::uint32_t s = 0; s < count; ++s) {
    MST_TRY_VOID(Recorder(*program, context, graph, schedule, pairs, s).run());
    MST_TRY_VOID(program->model_->end_tasks(*program->streams_[s]));
  }
  MST_TRY_VOID(program->model_->finish());
  return program;
}

Program::~Program() {
  model_.reset();
  events_.clear();
  labels_.clear();
  for (Stream* stream : streams_) stream->drop_tapes();
}

Result<void> Program::execute(ProgramRun& run) {
  if (!model_) return {};
  if (control_ && run.launcher == nullptr) return undecided();
  run.errors.resize(streams_.size());
  run_ = &run;
  Result<void> done = model_->execute();
  for (std::optional<Error>& error : run.errors) {
    if (error) return std::move(*error);
  }
  return done;
}

std::size_t Program::most_moments(const Schedule& schedule) {
  if (!schedule.has_control()) return static_cast<std::size_t>(-1);
  std::size_t most = 200000;
  for (const PhysicalStream& s : schedule.streams) most += 4 * s.tasks.size();
  return most;
}

std::vector<Span> Program::spans(const Schedule& schedule, const std::vector<rt::TraceEvent>& events) const {
  const auto none = static_cast<std::uint32_t>(streams_.size());
  std::vector<std::uint32_t> stream_of;  // by number on the device
  for (std::uint32_t s = 0; s < none; ++s) {
    const std::uint32_t number = streams_[s]->number();
    if (stream_of.size() <= number) stream_of.resize(number + 1, none);
    stream_of[number] = s;
  }
  std::uint64_t zero = ~std::uint64_t{0};
  std::vector<std::vector<Span>> spans(none);
  // A stream runs one task at a time: an end is that of the last that began.
  for (const rt::TraceEvent& e : events) {
    if (e.kind != rt::TraceEvent::Kind::began && e.kind != rt::TraceEvent::Kind::ended) continue;
    const std::uint32_t s = e.stream < stream_of.size() ? stream_of[e.stream] : none;
    if (s == none) continue;  // the default stream's part
    zero = std::min(zero, e.time_ns);
    const std::uint32_t i = tasks_[s][e.sequence];
    if (i == kNoTask) continue;
    if (e.kind == rt::TraceEvent::Kind::began) {
      spans[s].push_back({{PhysicalStreamId(s), i}, schedule.streams[PhysicalStreamId(s)].tasks[i], e.time_ns, e.time_ns, e.worker});
    } else {
      spans[s].back().end_ns = e.time_ns;
      spans[s].back().worker = e.worker;
    }
  }
  std::vector<Span> out;
  for (std::vector<Span>& of_stream : spans) {
    std::uint64_t before = 0;
    for (Span& span : of_stream) {
      span.begin_ns -= zero;
      span.end_ns -= zero;
      if (span.what.kind == Task::Kind::wait) span.begin_ns = before;
      before = span.end_ns;
      out.push_back(span);
    }
  }
  return out;
}

}  // namespace millstream
