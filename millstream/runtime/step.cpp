// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/step.h"

#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "millstream/runtime/host_waiter.h"
#include "millstream/runtime/model_state.h"

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

// A wait whose record was dropped. In the same context what waits goes too; elsewhere the wait alone fails.
Admission after_failed_record(Lane& lane, const Task& task, const Completion& completion, const Completion::Failure& failure) {
  Error error{ErrorCode::context_stopped, fmt::format("{} was never recorded: {}", completion.describe(), failure.error.message)};
  const bool here = failure.context == lane.context.id;
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

// A loop that never ends. Counted where a lane first comes to a task: to one that has waited it comes again.
bool runs_away(Lane& lane, const Task& task) {
  const std::uint64_t most = lane.context.device.profile.max_tasks_per_execution;
  if (most == 0 || std::exchange(lane.counted, true)) return false;
  ModelState& model = *lane.binding->model;
  if (model.tasks_run.fetch_add(1, std::memory_order_relaxed) < most) return false;
  Error error{ErrorCode::task_timeout, fmt::format("model {} has run {} tasks in one execution, as many as the profile allows", model.number, most)};
  error.help("does a loop never end? else raise max_tasks_per_execution");
  drop_execution(model, error);
  fail(lane, task, error);
  return true;
}

// Asks for the execution once, then waits for it.
Admission admit_execution(Lane& lane, Task& task) {
  Completion& completion = *task.execute.completion;
  lane.woken = false;
  if (!task.execute.asked) {
    task.execute.asked = true;
    ask(*task.execute.keep, Ref<Completion>::share(&completion));
  }
  if (!completion.signal.done()) {
    const Admission a = wait_for(lane, task, completion, 0, [&](Lane& l) { return completion.signal.park(l); });
    if (a != Admission::run) return a;
  }
  if (completion.error && task.execute.reports) fail(lane, task, *completion.error);
  return Admission::run;
}

void publish(Lane& lane, Task& task, std::unique_ptr<Error> error) {
  DeviceState& device = lane.context.device;
  if (task.sync.counted) device.event_ids.give_back();
  if (task.kind == TaskKind::marker) lane.synced.store(task.sequence + 1, std::memory_order_release);
  wake_all(task.sync.completion->publish(task.sync.timed ? device.machine->now_ns() : 0, std::move(error), lane.context.id));
}

Result<void> run_kernel(const Task& task) {
  return call_kernels([&]() -> Result<void> {
    KernelCall call{0, task.launch.blocks, task.arguments()};
    for (; call.block < call.blocks; ++call.block) MST_TRY_VOID(task.launch.kernel->body(call));
    return {};
  });
}

Error waited_in_vain(const Task& task) {
  const bool notify = task.kind == TaskKind::notify_wait;
  const Awaited& awaited = notify ? static_cast<const Awaited&>(*task.notify.notify) : *task.sync.completion;
  const std::uint64_t ns = notify ? task.notify.timeout_ns : task.sync.timeout_ns;
  return Error{ErrorCode::wait_timeout, fmt::format("waited {} us for {} in vain", static_cast<double>(ns) / 1000.0, awaited.describe())};
}

}  // namespace

bool in_callback() { return running_callback; }

bool dropped(const Lane& lane, const Task& task) {
  if (lane.binding != nullptr) {
    return lane.binding->model->dropping.load(std::memory_order_seq_cst) || lane.context.stopped.load(std::memory_order_seq_cst);
  }
  return task.sequence < lane.drop_until.load(std::memory_order_seq_cst) || lane.context.stopped.load(std::memory_order_seq_cst);
}

std::shared_ptr<Lane> keep(Lane& lane) {
  const std::shared_ptr<StreamState> stream = lane.stream.shared_from_this();
  if (lane.binding == nullptr) return {stream, &lane};
  return {std::make_shared<std::pair<std::shared_ptr<StreamState>, std::shared_ptr<BindingState>>>(stream, lane.binding->shared_from_this()), &lane};
}

void wake_all(Waiter* list) {
  while (list != nullptr) {
    Waiter* const waiter = list;
    list = list->next;
    if (waiter->kind == Waiter::Kind::host) {
      static_cast<HostWaiter*>(waiter)->notify();
      continue;
    }
    Lane& lane = *static_cast<Lane*>(waiter);
    // Of another device perhaps, which may end as soon as its lane has gone on.
    const std::shared_ptr<DeviceState> device = lane.context.device.shared_from_this();
    lane.woken = true;
    no_longer_parked(lane);
    resume(lane);
  }
}

void resume(Lane& lane) {
  DeviceState& device = lane.context.device;
  device.lanes_parked.fetch_sub(1, std::memory_order_seq_cst);
  if (!lane.park_abroad) return device.machine->make_ready(lane);
  // Counted until its machine knows of it, and the device may end meanwhile.
  const std::shared_ptr<DeviceState> keeps = device.shared_from_this();
  device.machine->make_ready(lane);
  device.lanes_abroad.fetch_sub(1, std::memory_order_seq_cst);
}

bool unpark(Lane& lane, Wake why, std::optional<std::uint64_t> park, std::unique_ptr<Error> error) {
  if (!take_out<RealAtomics>(lane, why, park, error, wake_all)) return false;
  resume(lane);
  return true;
}

void drop_queued(Lane& lane, Error cause) {
  give_up_queued(lane, cause);
  unpark(lane, Wake::aborted);
}

void fail(Lane& lane, const Task& task, Error error) {
  ContextState& context = lane.context;
  TaskError e{std::move(error), lane.stream.number, lane.stream.serial, task.sequence, std::string(task.name()),
              context.device.error_order.fetch_add(1, std::memory_order_relaxed)};
  bool stops = false;
  if (lane.binding != nullptr) {
    // The execution reports it, to whoever asked for it.
    const std::lock_guard lock(lane.binding->model->error_mutex);
    auto& first = lane.binding->model->error;
    if (!first) {
      first = std::make_unique<Error>(e.error);
      first->note(fmt::format("task {} ({}) of stream {} in model {}", e.sequence, e.task, e.stream, lane.binding->model->number));
    }
  }
  {
    const std::lock_guard lock(context.errors_mutex);
    stops = context.stops.load(std::memory_order_seq_cst) && !context.cause;
    if (stops) context.cause = e;
    if (context.device.trace.on()) context.device.trace.failed(lane, task, stops);
    // With its cause: a recovery between the two would leave a context that is stopped by nothing.
    if (stops) context.stopped.store(true, std::memory_order_seq_cst);
    if (lane.binding == nullptr) context.errors.push_back(std::move(e));
  }
  if (!stops) return;
  for (const auto& other : context.lanes()) unpark(*other, Wake::stopped);
}

void kernel_failed(Lane& lane, const Task& task, const Error& why) {
  Error error{ErrorCode::kernel_failed, fmt::format("kernel \"{}\" failed: {}", task.launch.kernel->name, why.message)};
  error.notes = why.notes;
  fail(lane, task, std::move(error));
}

Error kernel_threw() {
  try {
    throw;
  } catch (const std::exception& e) {
    return Error{ErrorCode::kernel_failed, fmt::format("it threw: {}", e.what())};
  } catch (...) {
    return Error{ErrorCode::kernel_failed, "it threw something that is no std::exception"};
  }
}

Admission admit(Lane& lane, Task& task) {
  if (lane.wake != Wake::published) {
    const Wake why = std::exchange(lane.wake, Wake::published);
    if (why == Wake::timed_out || why == Wake::deadlocked) {
      const Error error = lane.wake_error ? *lane.wake_error : waited_in_vain(task);
      if (lane.binding != nullptr) {
        drop_execution(*lane.binding->model, error);
      } else {
        give_up_queued(lane, error);
      }
      fail(lane, task, error);
      return Admission::drop;
    }
  }
  // A lane that a notify's record let pass has used that record up.
  if (dropped(lane, task) || (lane.binding != nullptr && runs_away(lane, task))) {
    lane.woken = false;
    return Admission::drop;
  }
  switch (task.kind) {
    case TaskKind::wait:
    case TaskKind::notify_wait:
      return admit_wait(lane, task);
    case TaskKind::site_wait:
    case TaskKind::outside_wait:
      return admit_on_tape(lane, task);
    case TaskKind::execute:
      return admit_execution(lane, task);
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
      const Result<void> done = run_kernel(task);
      return done.ok() ? void() : kernel_failed(lane, task, done.error());
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
    case TaskKind::execute:
      return;
    case TaskKind::site_record:
    case TaskKind::site_wait:
    case TaskKind::outside_wait:
    case TaskKind::activate:
    case TaskKind::switch_to:
    case TaskKind::switch_n:
    case TaskKind::label:
    case TaskKind::jump:
    case TaskKind::jump_by_index:
      return perform_on_tape(lane, task);
    case TaskKind::host_func:
      MST_CHECK(false, "host functions run on the callback pool");
  }
}

void discard(Lane& lane, Task& task) {
  if (lane.binding != nullptr) {
    if (task.kind == TaskKind::outside_wait && task.outside.seen != nullptr) {
      std::exchange(task.outside.seen, nullptr)->drop();  // the next execution looks again
    }
    // The rest of the tape goes with it.
    lane.binding->model->dirty.store(true, std::memory_order_relaxed);
    lane.place = static_cast<std::uint32_t>(lane.binding->tape.size()) - 1;
    return;
  }
  if (task.kind == TaskKind::execute && !task.execute.asked) {
    Completion& completion = *task.execute.completion;
    completion.error = std::make_unique<Error>(cause_of_drop(lane, task));
    wake_all(completion.signal.publish());
    return;
  }
  if (task.kind != TaskKind::record && task.kind != TaskKind::marker) return;
  publish(lane, task, std::make_unique<Error>(cause_of_drop(lane, task)));
}

void retire(Lane& lane, Task& task) {
  if (task.kind != TaskKind::marker) {
    lane.last_kind = task.kind;
    const std::string_view name = task.name().substr(0, lane.last_name.size());
    std::copy(name.begin(), name.end(), lane.last_name.begin());
    lane.last_name_size = static_cast<std::uint32_t>(name.size());
    lane.last_sequence = task.sequence;
  }
  if (lane.binding != nullptr) {
    lane.counted = false;
    ++lane.place;
    return;
  }
  release(task);
  lane.queue.pop();
}

void call_host_func(Lane& lane, Task& task) {
  const auto runs = [&](bool now) {
    running_callback = now;
    lane.host_function.store(now ? task.sequence + 1 : 0, std::memory_order_seq_cst);
  };
  runs(true);
  try {
    task.host_func.function(task.host_func.argument);
    runs(false);
  } catch (const std::exception& e) {
    runs(false);
    fail(lane, task, Error{ErrorCode::host_func_failed, fmt::format("a host function threw: {}", e.what())});
  } catch (...) {
    runs(false);
    fail(lane, task, Error{ErrorCode::host_func_failed, "a host function threw something that is no std::exception"});
  }
}

}  // namespace millstream::rt
