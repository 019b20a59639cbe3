// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/stream.h"

#include <cstring>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "millstream/runtime/event.h"
#include "millstream/runtime/model_state.h"
#include "millstream/runtime/step.h"
#include "millstream/runtime/submit.h"

namespace millstream {
namespace {

using namespace rt;

// A deadline of a task's wait: something, in nanoseconds; 0 stands for never.
Result<std::uint64_t> wait_ns(const char* call, Deadline deadline) {
  if (!deadline) return std::uint64_t{0};
  if (deadline->count() <= 0) return Error{ErrorCode::bad_value, fmt::format("{}: a wait of {} ns", call, deadline->count())}.help("wait longer, or for ever");
  return static_cast<std::uint64_t>(deadline->count());
}

Result<void> launch_kernel(const char* call, StreamState& stream, const KernelFunction& kernel, Grid grid, ArgSpan arguments, bool block) {
  MST_TRY_VOID(enter(call));
  if (kernel.name.empty()) return null_argument(call, "the kernel's name");
  if (arguments.data() == nullptr && !arguments.empty()) return null_argument(call, "the argument block");
  constexpr std::size_t kMost = std::numeric_limits<decltype(Task::Launch::bytes)>::max();
  if (arguments.size() > kMost) {
    return Error{ErrorCode::bad_value, fmt::format("{}: kernel \"{}\" with {} bytes of arguments, at most {}", call, kernel.name, arguments.size(), kMost)}.help(
        "hand over a pointer to them");
  }
  if (grid.blocks == 0) return Error{ErrorCode::bad_value, fmt::format("{}: kernel \"{}\" with no blocks", call, kernel.name)};
  if (!(kernel.virtual_us >= 0 && kernel.virtual_us <= 1e12)) {
    return Error{ErrorCode::bad_value, fmt::format("{}: kernel \"{}\" that takes {} us", call, kernel.name, kernel.virtual_us)};
  }
  Task task;
  task.kind = TaskKind::kernel;
  task.launch.kernel = &kernel;
  task.launch.blocks = grid.blocks;
  task.launch.bytes = static_cast<std::uint32_t>(arguments.size());
  std::byte* to = task.launch.bytes_here;
  if (arguments.size() > Task::kInline) {
    to = new (std::nothrow) std::byte[arguments.size()];
    if (to == nullptr) return Error{ErrorCode::no_memory, fmt::format("{}: no memory for {} bytes of arguments", call, arguments.size())};
    task.launch.elsewhere = to;
  }
  if (!arguments.empty()) std::memcpy(to, arguments.data(), arguments.size());
  return submit(call, stream, task, block);
}

Error foreign(const char* call, const StreamState& stream, const std::string& what, const ContextState& of) {
  return Error{ErrorCode::wrong_context, fmt::format("{}: {} belongs to context {}, {} to context {}", call, what, of.number, stream.name(),
                                                     stream.context->number)};
}

}  // namespace

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    Stream old(std::move(*this));
    state_ = std::move(other.state_);
    owns_ = other.owns_;
  }
  return *this;
}

Stream::~Stream() {
  if (!state_ || !owns_) return;
  if (in_callback() || !state_->context->device.machine->may_wait()) {  // it cannot wait here
    let_go(*state_);
    return;
  }
  Result<void> closed = end_stream("Stream::~Stream", *state_, Close::drain);
  if (closed.ok() || closed.error().code == ErrorCode::bad_handle) return;
  const std::lock_guard lock(state_->context->errors_mutex);
  state_->context->errors.push_back({std::move(closed).error(), state_->number, state_->serial, 0, "unreported at its end",
                                     state_->context->device.error_order.fetch_add(1, std::memory_order_relaxed)});
}

std::uint32_t Stream::number() const { return state_->number; }

Result<void> Stream::launch(const KernelFunction& kernel, Grid grid, ArgSpan arguments) {
  return launch_kernel("Stream::launch", *state_, kernel, grid, arguments, true);
}

Result<void> Stream::try_launch(const KernelFunction& kernel, Grid grid, ArgSpan arguments) {
  return launch_kernel("Stream::try_launch", *state_, kernel, grid, arguments, false);
}

Result<void> Stream::copy(void* to, std::size_t capacity, const void* from, std::size_t bytes, CopyKind) {
  MST_TRY_VOID(enter("Stream::copy"));
  if (to == nullptr) return null_argument("Stream::copy", "the destination");
  if (from == nullptr) return null_argument("Stream::copy", "the source");
  if (bytes > capacity) {
    return Error{ErrorCode::bad_value, fmt::format("Stream::copy: {} bytes into a destination of {}", bytes, capacity)};
  }
  Task task;
  task.kind = TaskKind::copy;
  task.copy = {to, from, bytes};
  return submit("Stream::copy", *state_, task);
}

Result<void> Stream::fill(void* to, std::size_t capacity, std::int32_t value, std::size_t bytes) {
  MST_TRY_VOID(enter("Stream::fill"));
  if (to == nullptr) return null_argument("Stream::fill", "the destination");
  if (bytes > capacity) {
    return Error{ErrorCode::bad_value, fmt::format("Stream::fill: {} bytes into a destination of {}", bytes, capacity)};
  }
  Task task;
  task.kind = TaskKind::fill;
  task.fill = {to, bytes, value};
  return submit("Stream::fill", *state_, task);
}

Result<void> Stream::host_func(void (*function)(void*), void* argument) {
  MST_TRY_VOID(enter("Stream::host_func"));
  if (function == nullptr) return null_argument("Stream::host_func", "the function");
  if (state_->context->device.profile.callback_threads == 0) {
    return Error{ErrorCode::unsupported, "Stream::host_func: the device has no callback threads"}.help("open it with a profile that has some");
  }
  Task task;
  task.kind = TaskKind::host_func;
  task.host_func = {function, argument};
  return submit("Stream::host_func", *state_, task);
}

Result<void> Stream::record(Event& event) {
  constexpr const char* kCall = "Stream::record";
  MST_TRY_VOID(enter(kCall));
  EventState& e = *event.state();
  if (e.closed.load(std::memory_order_acquire)) return closed_handle(kCall, fmt::format("event {}", e.number));
  if (e.context != state_->context) return foreign(kCall, *state_, fmt::format("event {}", e.number), *e.context);
  if (state_->persistent) return append_record(kCall, *state_, event.state());
  DeviceState& device = state_->context->device;
  Task task;
  task.kind = TaskKind::record;
  if (e.kind == Event::Kind::latch) {
    const Ref<Completion> latch = e.last_record();
    task.sync = {Ref<Completion>(latch).release(), 0, e.timed, false};
    latch->expect();
    Result<void> done = submit(kCall, *state_, task);
    if (!done.ok()) latch->expect_no_more();
    return done;
  }
  if (!device.event_ids.take() && !device.take_event_id_later()) {
    return Error{ErrorCode::no_event, fmt::format("{}: device {} has {} event ids, and all are in use", kCall, device.number, device.event_ids.most())}
        .help("synchronise, or destroy latches: an event holds its id from its record to its completion, a latch while it lives");
  }
  auto* const made = new (std::nothrow) Completion(Completion::What::event, e.number);
  if (made == nullptr) {
    device.event_ids.give_back();
    return Error{ErrorCode::no_memory, fmt::format("{}: no memory for a record of event {}", kCall, e.number)};
  }
  auto completion = Ref<Completion>::adopt(made);
  completion->device = device.id;
  if (device.trace.on()) completion->serial = device.trace.new_object();
  task.sync = {Ref<Completion>(completion).release(), 0, e.timed, true};
  Result<void> done = submit(kCall, *state_, task);
  if (!done.ok()) {
    device.event_ids.give_back();
    return done;
  }
  const std::lock_guard lock(e.lock);
  std::swap(e.last, completion);
  return {};
}

Result<void> Stream::wait(const Event& event, Deadline deadline) {
  constexpr const char* kCall = "Stream::wait";
  MST_TRY_VOID(enter(kCall));
  EventState& e = *event.state();
  if (e.closed.load(std::memory_order_acquire)) return closed_handle(kCall, fmt::format("event {}", e.number));
  MST_TRY(const std::uint64_t timeout, wait_ns(kCall, deadline));
  if (!e.waitable) {
    return Error{ErrorCode::bad_state, fmt::format("{}: event {} was made without the flag for streams to wait", kCall, e.number)}.help(
        "create it with `sync`, in acl with the flag ACL_EVENT_SYNC");
  }
  if (state_->persistent) {
    if (deadline) return Error{ErrorCode::unsupported, fmt::format("{}: a deadline for a model's wait", kCall)}.help("wait without one; the execution may have one");
    return append_wait(kCall, *state_, event.state());
  }
  Ref<Completion> completion = e.last_record();
  if (!completion) return takes_tasks(kCall, *state_);  // a snapshot without a record: nothing before it
  Task task;
  task.kind = TaskKind::wait;
  task.sync = {completion.release(), timeout, false, false};
  return submit(kCall, *state_, task);
}

Result<void> Stream::reset(Event& event) {
  constexpr const char* kCall = "Stream::reset";
  MST_TRY_VOID(enter(kCall));
  EventState& e = *event.state();
  if (e.closed.load(std::memory_order_acquire)) return closed_handle(kCall, fmt::format("event {}", e.number));
  if (e.context != state_->context) return foreign(kCall, *state_, fmt::format("event {}", e.number), *e.context);
  if (e.kind != Event::Kind::latch) {
    return Error{ErrorCode::bad_state, fmt::format("{}: event {} is a snapshot; a new record replaces the last", kCall, e.number)};
  }
  Task task;
  task.kind = TaskKind::latch_reset;
  task.sync = {e.last_record().release(), 0, false, false};
  return submit(kCall, *state_, task);
}

Result<void> Stream::record(Notify& notify) {
  constexpr const char* kCall = "Stream::record";
  MST_TRY_VOID(enter(kCall));
  NotifyState& n = notify.state();
  if (n.closed.load(std::memory_order_acquire)) return closed_handle(kCall, n.describe());
  if (n.context != state_->context) return foreign(kCall, *state_, n.describe(), *n.context);
  Task task;
  task.kind = TaskKind::notify_record;
  task.notify = {Ref<NotifyState>::share(&n).release(), 0};
  return submit(kCall, *state_, task);
}

Result<void> Stream::wait(Notify& notify, Deadline deadline) {
  constexpr const char* kCall = "Stream::wait";
  MST_TRY_VOID(enter(kCall));
  NotifyState& n = notify.state();
  if (n.closed.load(std::memory_order_acquire)) return closed_handle(kCall, n.describe());
  if (n.context != state_->context) return foreign(kCall, *state_, n.describe(), *n.context);
  MST_TRY(const std::uint64_t timeout, wait_ns(kCall, deadline));
  Task task;
  task.kind = TaskKind::notify_wait;
  task.notify = {Ref<NotifyState>::share(&n).release(), timeout};
  return submit(kCall, *state_, task);
}

Result<bool> Stream::query() const {
  MST_TRY_VOID(enter("Stream::query"));
  if (state_->closed.load(std::memory_order_acquire)) return closed_handle("Stream::query", state_->name());
  if (state_->context->stopped.load(std::memory_order_acquire)) return stopped("Stream::query", *state_->context);
  TraceRecorder& trace = state_->context->device.trace;
  if (trace.on()) trace.host(TraceEvent::Kind::query_begin, state_->lane, 0);
  state_->context->device.machine->poll();
  const Lane& lane = state_->lane;
  const std::uint64_t submitted = lane.submitted.load(std::memory_order_acquire);
  const bool complete = lane.token.pending() == 0 || lane.synced.load(std::memory_order_acquire) >= submitted;
  if (complete && trace.on()) trace.host(TraceEvent::Kind::query_done, state_->lane, 0);
  return complete;
}

Result<void> Stream::synchronize(Deadline deadline) {
  constexpr const char* kCall = "Stream::synchronize";
  MST_TRY_VOID(enter(kCall));
  if (deadline && deadline->count() <= 0) {
    return Error{ErrorCode::bad_value, fmt::format("{}: a wait of {} ns", kCall, deadline->count())};
  }
  if (state_->persistent) {
    return state_->closed.load(std::memory_order_acquire) ? Result<void>(closed_handle(kCall, state_->name())) : Result<void>();
  }
  MST_TRY_VOID(may_wait(kCall, state_->context->device));
  MST_TRY(const Ref<Completion> marker, submit_marker(kCall, *state_));
  MST_TRY_VOID(wait_host(kCall, *state_, *marker, deadline));
  ContextState& context = *state_->context;
  MST_TRY_VOID(take_error(context, state_.get()));
  if (context.stopped.load(std::memory_order_acquire)) return stopped(kCall, context);
  if (auto failure = marker->failure()) return std::move(failure->error);
  return {};
}

void Stream::drop_tapes() {
  const std::lock_guard lock(state_->tapes_mutex);
  state_->retired.clear();
}

Result<void> Stream::set_failure_mode(FailureMode mode) {
  constexpr const char* kCall = "Stream::set_failure_mode";
  MST_TRY_VOID(enter(kCall));
  StreamState& s = *state_;
  ContextState& context = *s.context;
  if (s.is_default && !context.device.profile.default_stream_failure_mode) return null_argument(kCall, "the stream (the default stream keeps its mode)");
  if (s.closed.load(std::memory_order_acquire)) return closed_handle(kCall, s.name());
  {
    const std::lock_guard tapes(s.tapes_mutex);
    if (!s.bindings.empty()) {
      return Error{ErrorCode::bad_state, fmt::format("{}: {} is bound to model {}", kCall, s.name(), s.bindings.front()->model->number)}.help(
          "set the mode before the stream is bound");
    }
  }
  const std::lock_guard lock(s.mode_mutex);
  if (s.mode) return Error{ErrorCode::bad_state, fmt::format("{}: the mode of {} was set before", kCall, s.name())}.help("it can be set once");
  if (mode == FailureMode::proceed && context.stops.load(std::memory_order_seq_cst)) {
    return Error{ErrorCode::bad_state, fmt::format("{}: another stream made context {} stop on failure", kCall, context.number)}.help(
        "use another context for streams that go on");
  }
  s.mode = mode;
  if (mode != FailureMode::stop) return {};
  if (context.device.trace.on()) context.device.trace.host(TraceEvent::Kind::stop_mode, context);
  context.stops.store(true, std::memory_order_seq_cst);
  return {};
}

Result<void> Stream::abort() {
  constexpr const char* kCall = "Stream::abort";
  MST_TRY_VOID(enter(kCall));
  if (state_->closed.load(std::memory_order_acquire)) return closed_handle(kCall, state_->name());
  if (state_->persistent) {
    return Error{ErrorCode::bad_state, fmt::format("{}: {} is persistent; abort the model", kCall, state_->name())};
  }
  MST_TRY_VOID(may_wait(kCall, state_->context->device));
  drop_queued(state_->lane, Error{ErrorCode::stream_aborted, fmt::format("{} was aborted", state_->name())});
  MST_TRY(const Ref<Completion> marker, submit_marker(kCall, *state_));
  return wait_host(kCall, *state_, *marker, never);
}

Result<void> Stream::close(Close how) {
  constexpr const char* kCall = "Stream::close";
  MST_TRY_VOID(enter(kCall));
  if (state_->closed.load(std::memory_order_acquire)) return closed_handle(kCall, state_->name());
  if (state_->is_default) {
    return Error{ErrorCode::bad_state, fmt::format("{}: {} ends with its context", kCall, state_->name())};
  }
  if (how == Close::drain && !state_->persistent) MST_TRY_VOID(may_wait(kCall, state_->context->device));
  return end_stream(kCall, *state_, how);
}

}  // namespace millstream
