// SPDX-License-Identifier: Apache-2.0
// A stream: tasks that run one after the other, in the order in which they were given to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "millstream/core/result.h"
#include "millstream/runtime/kernel_function.h"

namespace millstream {

class Event;
class Notify;

namespace rt {
class StreamState;
}

/// How long a call or a task may wait. Real time on cpu, virtual on sim.
using Deadline = std::optional<std::chrono::nanoseconds>;
inline constexpr Deadline never = std::nullopt;

enum class CopyKind : std::uint8_t { host_to_host, host_to_device, device_to_host, device_to_device };
enum class FailureMode : std::uint8_t { proceed = 0, stop = 1 };
/// What `close` does with queued tasks: run them, or drop them without waiting for the one that runs.
enum class Close : std::uint8_t { drain, drop };

struct StreamOptions {
  std::optional<std::int32_t> priority = std::nullopt;  ///< the device's greatest if not given
  bool fast_launch = false;              ///< the queue's first block is made now
  bool fast_sync = false;                ///< synchronize spins
  bool persistent = false;               ///< tasks are recorded for a model
  bool huge = false;                     ///< room for more tasks
  bool shared = false;                   ///< persistent: several models may be bound, one execution at a time
};

/// Move-only. The destructor drains the stream and leaves its errors to Context::take_errors; inside a host
/// function it cannot, and the stream ends when its tasks have and no model is bound to it. Every call from a host
/// function fails with in_callback. Calls that submit: context_stopped after a failure in a context that stops; no_memory; a full queue
/// blocks the caller until there is room (never in `try_launch`: stream_full).
class Stream {
 public:
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Errors: null_argument (no body and no cost is not an error: the kernel's name must be set), bad_value (no blocks,
  /// 4 GiB of arguments or more, a virtual_us that is none).
  Result<void> launch(const KernelFunction& kernel, Grid grid, ArgSpan arguments);
  Result<void> try_launch(const KernelFunction& kernel, Grid grid, ArgSpan arguments);
  /// A kernel outlives its launches: one that ends with the call is refused when compiling.
  Result<void> launch(const KernelFunction&& kernel, Grid grid, ArgSpan arguments) = delete;
  Result<void> try_launch(const KernelFunction&& kernel, Grid grid, ArgSpan arguments) = delete;
  /// Errors: null_argument, bad_value when bytes > capacity.
  Result<void> copy(void* to, std::size_t capacity, const void* from, std::size_t bytes, CopyKind kind);
  /// Errors: null_argument, bad_value when bytes > capacity.
  Result<void> fill(void* to, std::size_t capacity, std::int32_t value, std::size_t bytes);
  /// Runs on the device's callback pool, after all earlier and before all later tasks of this stream.
  Result<void> host_func(void (*function)(void*), void* argument);

  /// Errors: wrong_context for an event of another context; no_event.
  Result<void> record(Event& event);
  /// Foreign events are allowed. A snapshot that was never recorded: nothing to wait for. Errors: bad_state for an
  /// event without `sync`; bad_value for a deadline of nothing; unsupported for one on a persistent stream.
  Result<void> wait(const Event& event, Deadline deadline = never);
  /// Clears a latch's bit. Errors: bad_state for a snapshot; wrong_context.
  Result<void> reset(Event& event);
  /// Errors: wrong_context.
  Result<void> record(Notify& notify);
  Result<void> wait(Notify& notify, Deadline deadline = never);

  /// Whether everything submitted has completed. Reports no task's error; context_stopped in a stopped context.
  Result<bool> query() const;
  /// Until everything submitted before has completed. Errors: the first error of this stream that was not reported,
  /// with the number of others in a note; context_stopped; deadlock; sync_timeout with what the stream waits for. A
  /// persistent stream: nothing to wait for.
  Result<void> synchronize(Deadline deadline = never);
  /// Once a stream. Errors: bad_state the second time, of a bound stream, or `proceed` in a context that stops; null_argument for the
  /// default stream unless the profile allows it.
  Result<void> set_failure_mode(FailureMode mode);
  /// Drops what is queued; the task that runs ends. Later submits are accepted after the return.
  Result<void> abort();
  /// Errors: bad_handle when it is closed; bad_state for a default stream; errors of its tasks that nobody has been
  /// told of yet, after it was closed.
  Result<void> close(Close how = Close::drain);

  /// Of a persistent stream: frees the tapes of models that have let it go, which otherwise live as long as the stream.
  void drop_tapes();
  /// Its number on the device.
  std::uint32_t number() const;
  const std::shared_ptr<rt::StreamState>& state() const { return state_; }
  Stream(std::shared_ptr<rt::StreamState> state, bool owns) : state_(std::move(state)), owns_(owns) {}

 private:
  std::shared_ptr<rt::StreamState> state_;
  bool owns_ = false;
};

}  // namespace millstream
