// SPDX-License-Identifier: Apache-2.0
// A lane is what workers schedule: the tasks of one stream, run one after the other by whoever holds its token.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "millstream/core/error.h"
#include "millstream/runtime/parking.h"
#include "millstream/runtime/run_token.h"
#include "millstream/runtime/task_queue.h"

namespace millstream::rt {

class ContextState;
class StreamState;
struct BindingState;
class Replay;

using RunToken = BasicRunToken<RealAtomics>;

struct Lane : Waiter {
  Lane(StreamState& s, ContextState& c, std::uint8_t l) : Waiter(Kind::lane), stream(s), context(c), level(l) {}

  StreamState& stream;
  ContextState& context;
  const std::uint8_t level;  ///< of priority, 0 goes first

  /// Set for a lane that runs a tape, over and over; else tasks come from the queue and leave it.
  BindingState* binding = nullptr;
  /// Set for a lane that is a worker's part in a replay; it has no tasks of its own.
  Replay* replay = nullptr;
  std::uint32_t place = 0;                ///< on the tape: the next task. The holder's. Of a replay: which part

  RunToken token;
  TaskQueue queue;
  /// Tasks submitted so far, under queue.lock; read by others for reports and drops.
  std::atomic<std::uint64_t> submitted{0};
  /// Tasks with a smaller sequence are over, as a host's wait was told; the holder may still count the last of them.
  std::atomic<std::uint64_t> synced{0};
  /// The host function that runs: its task's sequence + 1; else 0.
  std::atomic<std::uint64_t> host_function{0};
  /// Tasks with a smaller sequence are dropped.
  std::atomic<std::uint64_t> drop_until{0};

  // The token holder's.
  TaskKind last_kind = TaskKind::marker;  ///< of the last one that ran, for reports
  std::array<char, 40> last_name{};       ///< its beginning; the kernel may be gone
  std::uint32_t last_name_size = 0;
  std::uint64_t last_sequence = 0;
  std::uint64_t arrived_ns = 0;           ///< virtual: when it came to its first task
  std::uint32_t slot = 0;                 ///< virtual: of the engine that its launch takes
  bool woken = false;                     ///< what it waited for came while it was parked
  bool counted = false;                   ///< of a tape: its task is among those that the execution has run

  /// What the lane is parked on: set before it parks, cleared by whoever takes it out again, both under the lock.
  SpinLock park_lock;
  Awaited* parked_on = nullptr;
  std::uint64_t parks = 0;                ///< counts, so that a late timer can tell an old park from this one
  bool park_timed = false;                ///< this park ends by itself; read only while it lasts
  bool park_abroad = false;               ///< it is for what another device records; the same
  /// Why it was taken out, for the next holder.
  Wake wake = Wake::published;
  std::unique_ptr<Error> wake_error;
  /// Why tasks below drop_until are dropped; under park_lock.
  std::unique_ptr<Error> drop_cause;

  Lane* next_ready = nullptr;             ///< the ready set's
  std::uint32_t passed_over = 0;          ///< the ready set's: times that others went first
};

}  // namespace millstream::rt
