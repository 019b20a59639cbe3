// SPDX-License-Identifier: Apache-2.0
// What a task does, for every back-end: whether it may run now, its effect, its end. The caller holds the lane.
#pragma once

#include "millstream/runtime/objects.h"

namespace millstream::rt {

enum class Admission : std::uint8_t {
  run,       ///< perform, then retire
  drop,      ///< discard, then retire
  parked,    ///< the lane is somebody else's now
  elsewhere  ///< a host function: Machine::run_callback
};

/// Looks at the lane's first task. Waits park here; a lane that was woken comes here again with the same task, and so does
/// one whose launch has waited for its engine.
Admission admit(Lane& lane, Task& task);
/// The task's effect; failures are recorded in the context and may stop it.
void perform(Lane& lane, Task& task);
/// Instead of its effect: what waits for it is told.
void discard(Lane& lane, Task& task);
/// The task is over; it is freed and leaves the queue. The token is not touched.
void retire(Lane& lane, Task& task);

/// Whether the task is to be dropped: its stream was aborted behind it, its execution is given up, its context has stopped.
bool dropped(const Lane& lane, const Task& task);
/// Parks the lane by `park(lane)`, which says whether it is parked now or need not.
template <class Park>
Admission wait_for(Lane& lane, Task& task, Awaited& on, std::uint64_t timeout_ns, Park park) {
  DeviceState& device = lane.context.device;
  lane.park_timed = timeout_ns != 0;
  lane.park_abroad = on.home() != 0 && on.home() != device.id;
  if (!prepare_to_park(lane, on, [&] { return dropped(lane, task); })) return Admission::drop;
  if (timeout_ns != 0) device.machine->arm_timer(lane, lane.parks, timeout_ns);
  device.lanes_parked.fetch_add(1, std::memory_order_seq_cst);
  if (lane.park_abroad) {
    device.lanes_abroad.fetch_add(1, std::memory_order_seq_cst);
    device.machine->waits_abroad();
  }
  if (park(lane)) return Admission::parked;  // it is somebody else's
  device.lanes_parked.fetch_sub(1, std::memory_order_seq_cst);
  if (lane.park_abroad) device.lanes_abroad.fetch_sub(1, std::memory_order_seq_cst);
  no_longer_parked(lane);
  return Admission::run;
}

/// The lane with what it refers to: its stream, and the tape that it is of, which may outlive the stream.
std::shared_ptr<Lane> keep(Lane& lane);
/// Wakes a list of waiters, lanes and hosts, in order.
void wake_all(Waiter* list);
/// Lets a lane that was taken out of what it waits for go on.
void resume(Lane& lane);
/// Takes a parked lane out of what it waits for and lets it go on. False: it is not parked, or no longer in the park
/// with that number. `error` is what the wait fails with when it timed out or is part of a deadlock.
bool unpark(Lane& lane, Wake why, std::optional<std::uint64_t> park = std::nullopt, std::unique_ptr<Error> error = nullptr);
/// Drops what the lane has been given so far; the task that runs goes on to its end.
void drop_queued(Lane& lane, Error cause);
/// Records a failure; in a context that stops on failure, stops it.
void fail(Lane& lane, const Task& task, Error error);
/// A failed kernel's failure.
void kernel_failed(Lane& lane, const Task& task, const Error& error);
/// Of the exception that is being handled.
Error kernel_threw();
/// Calls of kernels: what they throw is an error.
template <class F>
Result<void> call_kernels(F calls) {
  try {
    return calls();
  } catch (...) {
    return kernel_threw();
  }
}
/// Runs a host function. Its thread is marked meanwhile, and the lane says so.
void call_host_func(Lane& lane, Task& task);
/// Whether the calling thread runs a host function.
bool in_callback();

}  // namespace millstream::rt
