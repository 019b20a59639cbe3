// SPDX-License-Identifier: Apache-2.0
// What a back-end supplies: who runs ready lanes, what time it is, how a host thread waits. Everything that is
// policy (order, failure, phases, limits, deadlocks) is in step.h and the objects, once for all back-ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "millstream/core/result.h"
#include "millstream/runtime/awaited.h"
#include "millstream/target/profile.h"

namespace millstream::rt {

struct Lane;
class DeviceState;

using Nanoseconds = std::chrono::nanoseconds;

/// A host's wait: for ever, or so long (of the back-end's time).
using HostTimeout = std::optional<Nanoseconds>;
/// How it waits: asleep; looking for a while before, since it asked for that; or so that it comes back when for
/// Profile::orphan_wait_ms of real time nothing has happened on the device.
enum class HostMode : std::uint8_t { sleep, spin, patient };

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string_view name() const = 0;
  /// The lane has tasks and nobody holds it: somebody will. From any thread.
  virtual void make_ready(Lane& lane) = 0;
  /// Steady on cpu, virtual on sim.
  virtual std::uint64_t now_ns() = 0;
  /// False: the calling thread is what moves time, in a kernel; nothing would come while it waits.
  virtual bool may_wait() const = 0;
  /// Blocks the calling thread until the completion is done. False: the time was over first, or so much has passed without
  /// it that a host function may be what stands in the way (Profile::callback_stall_ms), or the `patient` host is to look;
  /// then the caller does, and goes on.
  virtual bool host_wait(Completion& completion, HostTimeout timeout, HostMode mode) = 0;
  /// Runs the host function that stands first in the lane, elsewhere; then the lane goes on.
  virtual void run_callback(Lane& lane) = 0;
  /// Wakes the lane (Wake::timed_out) unless this park of it has ended before then.
  virtual void arm_timer(Lane& lane, std::uint64_t parks, std::uint64_t after_ns) = 0;
  /// Blocks until room may have been made in a full queue; returns at once if `has_room`.
  virtual void wait_for_room(const std::function<bool()>& has_room) = 0;
  virtual void room_made() = 0;
  /// Something has changed that no task of the device's did: a host has published something itself, another device has
  /// moved. Who waits looks again.
  virtual void look_again() = 0;
  /// A lane has begun to wait for another device: who waits here has that one moved, however busy this one is.
  virtual void waits_abroad() = 0;
  /// `other`, whose lanes wait for this device, is waited for by a host. In virtual time: moves, on a thread of its own, until
  /// something comes of it there.
  virtual void move_for(std::weak_ptr<DeviceState> other) = 0;
  /// A host has asked whether something is done: virtual time moves only while a host looks. Never blocks. False: nothing
  /// has happened by it.
  virtual bool poll() = 0;
  /// Has nothing running, ready or armed, so only a host could change anything.
  virtual bool quiescent() = 0;
  /// Counts lanes made ready: equal before and after means that nothing has begun in between.
  virtual std::uint64_t activity() = 0;
  /// How many workers may run one model without control flow by segments (replay.h); 0: the lanes of its tapes do.
  virtual std::uint32_t replay_workers() const = 0;
  /// Ends all threads. Every lane is drained.
  virtual void shut_down() = 0;
};

/// Errors: no_memory, its threads cannot be started.
Result<std::unique_ptr<Machine>> make_cpu_machine(DeviceState& device, std::uint32_t workers);
std::unique_ptr<Machine> make_sim_machine(DeviceState& device);

}  // namespace millstream::rt
