// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/submit.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/runtime/deadlock.h"
#include "millstream/runtime/model_state.h"
#include "millstream/runtime/step.h"

namespace millstream::rt {

Result<void> enter(const char* call) {
  if (!in_callback()) return {};
  return Error{ErrorCode::in_callback, fmt::format("{}: called from a host function", call)}.help(
      "a host function must not call the runtime; do it from a thread of your own after it has returned");
}

Error null_argument(const char* call, const char* what) {
  return Error{ErrorCode::null_argument, fmt::format("{}: {} is null", call, what)};
}

Error closed_handle(const char* call, const std::string& what) {
  return Error{ErrorCode::bad_handle, fmt::format("{}: {} was destroyed", call, what)}.help("use a live one");
}

namespace {
constexpr const char* kHowToGoOn = "Context::recover (acl has none: reset the device), or destroy the context";
constexpr std::size_t kNamed = 3;  // failures behind the first that a report words
}  // namespace

Result<void> may_wait(const char* call, DeviceState& device) {
  if (device.machine->may_wait()) return {};
  return Error{ErrorCode::in_callback, fmt::format("{}: a kernel that runs in virtual time waits for device {}", call, device.number)}.help(
      "no time passes while a kernel runs; let the host wait behind it");
}

Error stopped(const char* call, ContextState& context) {
  const std::lock_guard lock(context.errors_mutex);
  Error error{ErrorCode::context_stopped, fmt::format("{}: context {} has stopped", call, context.number)};
  if (context.cause) {
    const TaskError& cause = *context.cause;
    error.note(fmt::format("task {} ({}) of stream {} failed: {}", cause.sequence, cause.task, cause.stream,
                           to_string(Error{cause.error.code, cause.error.message}).substr(7)));
  }
  return std::move(error).help(kHowToGoOn);
}

Result<void> takes_tasks(const char* call, const StreamState& stream) {
  if (stream.closed.load(std::memory_order_acquire)) return closed_handle(call, stream.name());
  if (stream.context->stopped.load(std::memory_order_acquire)) return stopped(call, *stream.context);
  return {};
}

namespace {

Result<void> push(const char* call, StreamState& stream, const Task& task, bool last) {
  Lane& lane = stream.lane;
  bool first = false;
  {
    const std::lock_guard lock(lane.queue.lock);
    if (stream.closed.load(std::memory_order_relaxed)) return closed_handle(call, stream.name());
    Task* const queued = lane.queue.push(task);
    if (queued == nullptr) return Error{ErrorCode::no_memory, fmt::format("{}: no memory for the queue of {}", call, stream.name())};
    const std::uint64_t sequence = lane.submitted.load(std::memory_order_relaxed);
    queued->sequence = sequence;
    lane.submitted.store(sequence + 1, std::memory_order_release);
    if (last) stream.closed.store(true, std::memory_order_seq_cst);
    if (lane.context.device.trace.on()) lane.context.device.trace.submitted(lane, *queued);
    first = lane.token.add();
  }
  if (first) lane.context.device.machine->make_ready(lane);
  return {};
}

Result<void> try_submit(const char* call, StreamState& stream, Task& task, bool block) {
  Lane& lane = stream.lane;
  ContextState& context = lane.context;
  if (stream.persistent) return append(call, stream, task);
  for (;;) {
    MST_TRY_VOID(takes_tasks(call, stream));
    if (lane.token.pending() < stream.capacity) return push(call, stream, task, false);
    if (!block) {
      return Error{ErrorCode::stream_full, fmt::format("{}: {} holds {} tasks, as many as it takes", call, stream.name(), stream.capacity)};
    }
    MST_TRY_VOID(may_wait(call, context.device));
    context.device.machine->wait_for_room([&] {
      return lane.token.pending() < stream.capacity || context.stopped.load(std::memory_order_acquire);
    });
  }
}

}  // namespace

Result<void> submit(const char* call, StreamState& stream, Task& task, bool block) {
  Result<void> done = try_submit(call, stream, task, block);
  if (!done.ok()) release(task);
  return done;
}

Result<Ref<Completion>> submit_marker(const char* call, StreamState& stream, bool last) {
  auto* const made = new (std::nothrow) Completion(Completion::What::sync, stream.number);
  if (made == nullptr) return Error{ErrorCode::no_memory, fmt::format("{}: no memory to wait for {}", call, stream.name())};
  auto completion = Ref<Completion>::adopt(made);
  TraceRecorder& trace = stream.lane.context.device.trace;
  if (trace.on()) completion->serial = trace.new_object();
  Task task;
  task.kind = TaskKind::marker;
  task.sync = {Ref<Completion>(completion).release(), 0, false, false};
  if (trace.on()) trace.host(TraceEvent::Kind::sync_begin, stream.lane, completion->serial);
  Result<void> done = push(call, stream, task, last);
  if (!done.ok()) {
    release(task);
    return std::move(done).error();
  }
  return completion;
}

Result<void> wait_host(const char* call, StreamState& stream, Completion& completion, Deadline deadline) {
  DeviceState& device = stream.lane.context.device;
  Machine& machine = *device.machine;
  MST_TRY_VOID(may_wait(call, device));
  const std::uint32_t stall_ms = device.profile.callback_stall_ms;
  const std::uint64_t begin = machine.now_ns();
  std::optional<BlockedHost> blocked;  // all the time, not a slice at a time
  if (stall_ms != 0) blocked.emplace(device);
  HostMode mode = stream.spins ? HostMode::spin : HostMode::sleep;
  for (Deadline left = deadline;;) {
    const std::uint64_t function = stream.lane.host_function.load(std::memory_order_seq_cst);
    if (machine.host_wait(completion, left, std::exchange(mode, HostMode::sleep))) {
      const bool execution = completion.what() == Completion::What::execution;
      if (device.trace.on()) device.trace.host(execution ? TraceEvent::Kind::execution_done : TraceEvent::Kind::sync_end, stream.lane, completion.serial);
      return {};
    }
    if (deadline) left = *deadline - Nanoseconds(machine.now_ns() - begin);
    if (deadline && (stall_ms == 0 || left->count() <= 0)) break;
    if (function == 0 || stream.lane.host_function.load(std::memory_order_seq_cst) != function) continue;
    return Error{ErrorCode::deadlock, fmt::format("DEADLOCK (suspected): {}: {} waits for its host function, task {}, which has not ended in {} ms "
                                                  "(`callback_stall_ms`)", call, stream.name(), function - 1, stall_ms)}
        .help("a host function must not wait for its own stream, nor for a thread that does");
  }
  Error error{ErrorCode::sync_timeout, fmt::format("{}: {} has not finished after {} ms", call, stream.name(),
                                                   std::chrono::duration_cast<std::chrono::milliseconds>(*deadline).count())};
  for (std::string& line : blocking_chain(device, stream)) error.note(std::move(line));
  return std::move(error).help("its work goes on; synchronise again");
}

void wait_until_done(DeviceState& device, Completion& completion) {
  const BlockedHost blocked(device);
  while (!device.machine->host_wait(completion, never, HostMode::sleep)) {
  }
}

void wait_for_end(StreamState& stream) {
  stream.lane.context.device.machine->wait_for_room([&] { return stream.lane.token.pending() == 0; });
}

Result<void> take_error(ContextState& context, const StreamState* stream) {
  const std::lock_guard lock(context.errors_mutex);
  if (context.cause && (stream == nullptr || context.cause->stream_serial == stream->serial)) {
    std::erase_if(context.errors, [&](const TaskError& e) { return stream == nullptr || e.stream_serial == stream->serial; });
    const TaskError& cause = *context.cause;  // stays until recover()
    return Error(cause.error)
        .note(fmt::format("task {} ({}) of stream {}", cause.sequence, cause.task, cause.stream))
        .note(fmt::format("context {} has stopped: it dropped what was queued, and takes nothing", context.number))
        .help(kHowToGoOn);
  }
  std::optional<Error> first;
  std::size_t more = 0;
  for (auto it = context.errors.begin(); it != context.errors.end();) {
    if (stream != nullptr && it->stream_serial != stream->serial) {
      ++it;
      continue;
    }
    if (!first) {
      first = it->error;
      first->note(fmt::format("task {} ({}) of stream {}", it->sequence, it->task, it->stream));
    } else if (++more <= kNamed) {
      first->note(fmt::format("and task {} ({}) of stream {}: {}", it->sequence, it->task, it->stream, it->error.message));
    }
    it = context.errors.erase(it);
  }
  if (!first) return {};
  if (more > kNamed) first->note(fmt::format("and {} more failed", more - kNamed));
  return std::move(*first);
}

namespace {

// False: somebody else has. Nothing is pushed afterwards; nothing is bound either if the caller has its tapes_mutex.
bool close_to_callers(StreamState& stream) {
  const std::lock_guard lock(stream.lane.queue.lock);
  return !stream.closed.exchange(true, std::memory_order_seq_cst);
}

bool has_ended(StreamState& stream) {
  if (stream.lane.token.pending() != 0) return false;
  const std::lock_guard tapes(stream.tapes_mutex);
  return stream.bindings.empty();
}

}  // namespace

void let_go(StreamState& stream) {
  {
    const std::lock_guard tapes(stream.tapes_mutex);
    if (!close_to_callers(stream)) return;
  }
  const std::lock_guard lock(stream.context->streams_mutex);
  stream.let_go = true;
}

void sweep(ContextState& context) {
  std::vector<std::shared_ptr<StreamState>> ended;
  {
    const std::lock_guard lock(context.streams_mutex);
    for (auto it = context.streams.begin(); it != context.streams.end();) {
      if ((*it)->let_go && has_ended(**it)) {
        ended.push_back(*it);
        it = context.streams.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& s : ended) context.device.stream_numbers.give_back(s->number);
}

namespace {

// A persistent stream runs no tasks of its own: it ends at once, unless it is bound. Nothing binds it afterwards.
Result<void> close_persistent(const char* call, StreamState& stream) {
  const std::lock_guard lock(stream.tapes_mutex);
  if (!stream.bindings.empty()) {
    return Error{ErrorCode::bad_state, fmt::format("{}: {} is bound to model {}", call, stream.name(), stream.bindings.front()->model->number)}.help(
        "unbind it, or destroy the model, first");
  }
  if (!close_to_callers(stream)) return closed_handle(call, stream.name());
  return {};
}

// Its number goes back with it, once: the context may be ended at the same time.
void take_out(ContextState& context, const std::shared_ptr<StreamState>& stream) {
  {
    const std::lock_guard lock(context.streams_mutex);
    if (std::erase(context.streams, stream) == 0) return;
  }
  context.device.stream_numbers.give_back(stream->number);
}

}  // namespace

Result<void> end_stream(const char* call, StreamState& stream, Close how) {
  ContextState& context = stream.lane.context;
  const std::shared_ptr<StreamState> keep = stream.shared_from_this();
  if (stream.persistent) {
    MST_TRY_VOID(close_persistent(call, stream));
  } else if (how == Close::drop) {
    if (!close_to_callers(stream)) return closed_handle(call, stream.name());
    drop_queued(stream.lane, Error{ErrorCode::stream_aborted, fmt::format("{} was destroyed at once", stream.name())});
    const Result<void> error = take_error(context, &stream);
    {
      const std::lock_guard lock(context.streams_mutex);
      stream.let_go = true;
    }
    sweep(context);
    return error;
  } else {
    MST_TRY(const Ref<Completion> drained, submit_marker(call, stream, true));
    if (Result<void> waited = wait_host(call, stream, *drained, never); !waited.ok()) {
      const std::lock_guard lock(context.streams_mutex);
      stream.let_go = true;  // it ends with its last task
      return waited;
    }
    // Its worker still takes the last tasks off the token.
    for (unsigned round = 0; stream.lane.token.pending() != 0; ++round) RealAtomics::relax(round);
  }
  take_out(context, keep);
  sweep(context);
  return take_error(context, &stream);
}

Result<void> end_context(const char* call, ContextState& context) {
  MST_TRY_VOID(may_wait(call, context.device));
  if (context.closed.exchange(true, std::memory_order_seq_cst)) {
    return closed_handle(call, fmt::format("context {}", context.number));
  }
  const std::shared_ptr<ContextState> keep = context.shared_from_this();
  // All are closed to callers first, and drained together: they may wait for each other.
  std::vector<std::pair<std::shared_ptr<StreamState>, Ref<Completion>>> drains;
  for (const auto& stream : context.live_streams()) {
    Result<Ref<Completion>> marker = submit_marker(call, *stream, true);
    if (marker.ok()) drains.emplace_back(stream, std::move(marker).value());
  }
  for (auto& [stream, marker] : drains) wait_until_done(context.device, *marker);
  // Those that others have closed too. And a worker takes the last task off behind the marker.
  for (const auto& [stream, marker] : drains) wait_for_end(*stream);
  for (const auto& stream : context.live_streams()) wait_for_end(*stream);
  // Behind the streams: executions that they have queued are run, not dropped.
  std::vector<std::shared_ptr<ModelState>> models;
  {
    const std::lock_guard lock(context.models_mutex);
    models = context.models;
  }
  for (const auto& model : models) {
    Result<void> ended = end_model(call, *model);
    (void)ended;  // only that another thread has closed it
  }
  for (const auto& stream : context.live_streams()) take_out(context, stream);
  {
    const std::lock_guard lock(context.errors_mutex);
    // What was dropped, before what merely failed.
    std::stable_partition(context.errors.begin(), context.errors.end(), [](const TaskError& e) { return e.error.code == ErrorCode::deadlock; });
  }
  Result<void> outcome = take_error(context, nullptr);
  {
    const std::lock_guard lock(context.streams_mutex);
    context.default_stream.reset();
  }
  DeviceState& device = context.device;
  {
    const std::lock_guard lock(device.contexts_mutex);
    std::erase(device.contexts, keep);
  }
  device.context_numbers.give_back(context.number);
  return outcome;
}

Result<std::shared_ptr<StreamState>> new_stream(const char* call, const std::shared_ptr<ContextState>& context, const StreamOptions& options) {
  DeviceState& device = context->device;
  const Profile& profile = device.profile;
  const std::int32_t priority = options.priority.value_or(profile.greatest_priority);
  if (priority < profile.greatest_priority || priority > profile.least_priority) {
    return Error{ErrorCode::bad_value, fmt::format("{}: priority {} is outside {} (greatest) to {} (least)", call, priority,
                                                   profile.greatest_priority, profile.least_priority)};
  }
  sweep(*context);
  TakenNumber number(device.stream_numbers);
  // What was destroyed at once ends with its last task; in virtual time while somebody looks.
  const std::uint64_t begin = device.machine->now_ns();
  const std::uint64_t patience = profile.orphan_wait_ms * std::uint64_t{1'000'000};
  for (bool more = true; !number && more;) {
    for (const auto& c : device.live_contexts()) sweep(*c);
    more = !number.again() && device.machine->now_ns() - begin < patience && device.machine->poll();
  }
  if (!number) {
    Error error{ErrorCode::no_more_streams, fmt::format("{}: device {} has {} streams, and all are in use", call, device.number, profile.max_streams)};
    for (const auto& c : device.live_contexts()) error.note(fmt::format("context {} holds {}", c->number, c->live_streams().size()));
    return std::move(error).help("destroy streams, or share them");
  }
  auto stream = std::make_shared<StreamState>(context, *number, static_cast<std::uint8_t>(priority - profile.greatest_priority));
  stream->persistent = options.persistent;
  stream->shared = options.shared;
  stream->spins = options.fast_sync;
  stream->capacity = options.huge ? profile.tasks_per_huge_stream : profile.tasks_per_stream;
  if (options.fast_launch && !stream->lane.queue.reserve()) {
    return Error{ErrorCode::no_memory, fmt::format("{}: no memory for the queue of a stream", call)};
  }
  const std::lock_guard lock(context->streams_mutex);
  if (context->closed.load(std::memory_order_seq_cst)) return closed_handle(call, fmt::format("context {}", context->number));
  context->streams.push_back(stream);
  number.keep();
  return stream;
}

Result<std::shared_ptr<ContextState>> new_context(const char* call, const std::shared_ptr<DeviceState>& device) {
  TakenNumber number(device->context_numbers);
  auto context = std::make_shared<ContextState>(device, *number);
  MST_TRY(auto stream, new_stream(call, context, {}));
  stream->is_default = true;
  context->default_stream = stream;
  try {
    const std::lock_guard lock(device->contexts_mutex);
    if (!device->closed) {
      device->contexts.push_back(context);
      number.keep();
      return context;
    }
  } catch (const std::bad_alloc&) {
    device->stream_numbers.give_back(stream->number);
    context->default_stream.reset();
    context->streams.clear();
    throw;
  }
  take_out(*context, stream);
  context->default_stream.reset();
  return Error{ErrorCode::no_context, fmt::format("{}: device {} was reset", call, device->number)}.help("open it again");
}

}  // namespace millstream::rt
