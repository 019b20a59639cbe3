// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/step.h"

#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "millstream/runtime/host_waiter.h"

namespace millstream::rt {
namespace {

thread_local bool running_callback = false;

// Everything queued so far goes with the wait that failed: its producer never came.
void give_up_queued(Lane& lane, const Error& cause) {
  const std::lock_guard lock(lane.park_lock);
  TraceRecorder& trace = lane.context.device.trace;
  const std::uint64_t until = lane.submitted.load(std::memory_order_acquire);
  if (trace.on()) trace.dropping(lane, until, false);
  lane.drop_cause = std::make_unique<Error>(cause);
  lane.drop_until.store(until, std::memory_order_seq_cst);
  if (trace.on()) trace.dropping(lane, until, true);
}

bool dropped(const Lane& lane, const Task& task) {
  return task.sequence < lane.drop_until.load(std::memory_order_seq_cst) || lane.context.stopped.load(std::memory_order_seq_cst);
}

Error cause_of_drop(Lane& lane, const Task& task) {
  if (task.sequence < lane.drop_until.load(std::memory_order_seq_cst)) {
    const std::lock_guard lock(lane.park_lock);
    if (lane.drop_cause) return *lane.drop_cause;
  }
  const std::lock_guard lock(lane.context.errors_mutex);
  Error error{ErrorCode::context_stopped, fmt::format("context {} has stopped", lane.context.number)};
  if (lane.context.cause) {
    const TaskError& cause = *lane.context.cause;
    error.note(fmt::format("task {} ({}) of stream {} failed: {}", cause.sequence, cause.task, cause.stream, cause.error.message));
  }
  return std::move(error).help("Context::recover, or destroy the context");
}

template <class Park>
Admission wait_for(Lane& lane, Task& task, Awaited& on, std::uint64_t timeout_ns, Park park) {
  DeviceState& device = lane.context.device;
  if (!prepare_to_park(lane, on, [&] { return dropped(lane, task); })) return Admission::drop;
  if (timeout_ns != 0) device.machine->arm_timer(lane, lane.parks, timeout_ns);
  device.lanes_parked.fetch_add(1, std::memory_order_seq_cst);
  if (park(lane)) return Admission::parked;
  device.lanes_parked.fetch_sub(1, std::memory_order_seq_cst);
  no_longer_parked(lane);
  return Admission::run;
}

// A wait whose record was dropped. In the same context what waits goes too; elsewhere the wait alone fails.
Admission after_failed_record(Lane& lane, const Task& task, const Completion& completion, const Completion::Failure& failure) {
  Error error{ErrorCode::context_stopped, fmt::format("{} was never recorded: {}", completion.describe(), failure.error.message)};
  const bool here = failure.context == lane.context.number;
  if (here) error.code = failure.error.code;
  if (here) give_up_queued(lane, error);
  fail(lane, task, std::move(error));
  return Admission::drop;
}

Admission admit_wait(Lane& lane, Task& task) {
  if (task.kind == TaskKind::notify_wait) {
    NotifyState& notify = *task.notify.notify;
    if (lane.woken) {
      lane.woken = false;  // the record passed its mark straight to this lane
      return Admission::run;
    }
    return wait_for(lane, task, notify, task.notify.timeout_ns, [&](Lane& l) { return notify.park(l); });
  }
  Completion& completion = *task.sync.completion;
  lane.woken = false;
  if (!completion.signal.done()) {
    const Admission a = wait_for(lane, task, completion, task.sync.timeout_ns, [&](Lane& l) { return completion.signal.park(l); });
    if (a != Admission::run) return a;
  }
  const auto failure = completion.failure();
  return failure ? after_failed_record(lane, task, completion, *failure) : Admission::run;
}

void publish(Lane& lane, Task& task, std::unique_ptr<Error> error) {
  DeviceState& device = lane.context.device;
  if (task.sync.counted) device.event_ids.give_back();
  wake_all(task.sync.completion->publish(task.sync.timed ? device.machine->now_ns() : 0, std::move(error), lane.context.number));
}

void stop(ContextState& context) {
  context.stopped.store(true, std::memory_order_seq_cst);
  for (const auto& stream : context.live_streams()) unpark(stream->lane, Wake::stopped);
}

Result<void> run_kernel(const Task& task) {
  KernelCall call{0, task.launch.blocks, task.arguments()};
  try {
    for (; call.block < call.blocks; ++call.block) MST_TRY_VOID(task.launch.kernel->body(call));
  } catch (const std::exception& e) {
    return Error{ErrorCode::kernel_failed, fmt::format("it threw: {}", e.what())};
  } catch (...) {
    return Error{ErrorCode::kernel_failed, "it threw something that is no std::exception"};
  }
  return {};
}

}  // namespace

bool in_callback() { return running_callback; }

void wake_all(Waiter* list) {
  while (list != nullptr) {
    Waiter* const waiter = list;
    list = list->next;
    if (waiter->kind == Waiter::Kind::host) {
      static_cast<HostWaiter*>(waiter)->notify();
      continue;
    }
    Lane& lane = *static_cast<Lane*>(waiter);
    DeviceState& device = lane.context.device;
    lane.woken = true;
    no_longer_parked(lane);
    device.lanes_parked.fetch_sub(1, std::memory_order_seq_cst);
    device.machine->make_ready(lane);
  }
}

bool unpark(Lane& lane, Wake why, std::optional<std::uint64_t> park, std::unique_ptr<Error> error) {
  if (!take_out<RealAtomics>(lane, why, park, error, wake_all)) return false;
  DeviceState& device = lane.context.device;
  device.lanes_parked.fetch_sub(1, std::memory_order_seq_cst);
  device.machine->make_ready(lane);
  return true;
}

void drop_queued(Lane& lane, Error cause) {
  give_up_queued(lane, cause);
  unpark(lane, Wake::aborted);
}

void fail(Lane& lane, const Task& task, Error error) {
  ContextState& context = lane.context;
  TaskError e{std::move(error), lane.stream.number, task.sequence, std::string(task.name()),
              context.device.error_order.fetch_add(1, std::memory_order_relaxed)};
  bool stops = false;
  {
    const std::lock_guard lock(context.errors_mutex);
    stops = context.stops.load(std::memory_order_seq_cst) && !context.cause;
    if (stops) context.cause = e;
    if (context.device.trace.on()) context.device.trace.failed(lane, task, stops);
    context.errors.push_back(std::move(e));
  }
  if (stops) stop(context);
}

Admission admit(Lane& lane, Task& task) {
  if (lane.wake != Wake::published) {
    const Wake why = std::exchange(lane.wake, Wake::published);
    if (why == Wake::timed_out || why == Wake::deadlocked) {
      const Error error = lane.wake_error ? *lane.wake_error : Error{ErrorCode::wait_timeout, "the wait's time was over"};
      give_up_queued(lane, error);
      fail(lane, task, error);
      return Admission::drop;
    }
  }
  // A lane that a notify's record let pass has used that record up.
  if (dropped(lane, task)) {
    lane.woken = false;
    return Admission::drop;
  }
  switch (task.kind) {
    case TaskKind::wait:
    case TaskKind::notify_wait:
      return admit_wait(lane, task);
    case TaskKind::host_func:
      return Admission::elsewhere;
    default:
      return Admission::run;
  }
}

void perform(Lane& lane, Task& task) {
  switch (task.kind) {
    case TaskKind::kernel: {
      if (task.launch.kernel->body == nullptr) return;
      Result<void> done = run_kernel(task);
      if (done.ok()) return;
      Error error{ErrorCode::kernel_failed, fmt::format("kernel \"{}\" failed: {}", task.launch.kernel->name, done.error().message)};
      error.notes = done.error().notes;
      return fail(lane, task, std::move(error));
    }
    case TaskKind::copy:
      std::memmove(task.copy.to, task.copy.from, task.copy.bytes);
      return;
    case TaskKind::fill:
      std::memset(task.fill.to, task.fill.value, task.fill.bytes);
      return;
    case TaskKind::record:
    case TaskKind::marker:
      return publish(lane, task, nullptr);
    case TaskKind::latch_reset:
      task.sync.completion->reset();
      return;
    case TaskKind::notify_record:
      wake_all(task.notify.notify->record());
      return;
    case TaskKind::wait:
    case TaskKind::notify_wait:
      return;
    case TaskKind::host_func:
      MST_CHECK(false, "host functions run on the callback pool");
  }
}

void discard(Lane& lane, Task& task) {
  if (task.kind != TaskKind::record && task.kind != TaskKind::marker) return;
  publish(lane, task, std::make_unique<Error>(cause_of_drop(lane, task)));
}

void retire(Lane& lane, Task& task) {
  if (task.kind != TaskKind::marker) {
    lane.last_kind = task.kind;
    lane.last_name = task.name();
    lane.last_sequence = task.sequence;
  }
  release(task);
  lane.queue.pop();
}

void call_host_func(Lane& lane, Task& task) {
  running_callback = true;
  try {
    task.host_func.function(task.host_func.argument);
    running_callback = false;
  } catch (const std::exception& e) {
    running_callback = false;
    fail(lane, task, Error{ErrorCode::host_func_failed, fmt::format("a host function threw: {}", e.what())});
  } catch (...) {
    running_callback = false;
    fail(lane, task, Error{ErrorCode::host_func_failed, "a host function threw something that is no std::exception"});
  }
}

}  // namespace millstream::rt
