// SPDX-License-Identifier: Apache-2.0
// A device: one ordinal of one back-end, open while somebody refers to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "millstream/runtime/context.h"
#include "millstream/target/profile.h"

namespace millstream {

namespace rt {
class DeviceState;
struct TraceEvent;
}  // namespace rt

enum class BackendId : std::uint8_t { cpu, sim };
enum class ResetMode : std::uint8_t { counted, force };

struct PriorityRange {
  std::int32_t least = 0;
  std::int32_t greatest = 0;
};

/// Move-only; one reference to an open device. The last reference, or a forced reset, drains and closes it.
class Device {
 public:
  /// Opens the device, with its primary context and default stream, or adds a reference to it (then `profile` must be
  /// the one it was opened with, or not given). Errors: bad_device; bad_state for another profile; no_more_streams.
  static Result<Device> open(BackendId backend, std::int32_t ordinal, const std::optional<Profile>& profile = std::nullopt);
  /// A device of its own, which no other open finds. `thread_start` is called by each worker thread before its first
  /// task.
  static Result<Device> open_private(BackendId backend, const Profile& profile, std::function<void()> thread_start = {});
  Device(Device&&) noexcept = default;
  Device& operator=(Device&&) noexcept;
  ~Device();

  /// Not after a reset of this Device. When another owner has reset the device by force: a closed context.
  Context primary() const;
  /// Errors: no_more_streams (its default stream).
  Result<Context> create_context();
  PriorityRange priority_range() const;
  const Profile& profile() const;
  /// counted: drops this reference; at the last, drains and closes. Errors: no_context when it is not open;
  /// still_in_use, listing contexts that were created and live (nothing changed); deadlock, when the drain had to fail
  /// waits. force: closes at once, whatever the count, with every context.
  Result<void> reset(ResetMode mode);

  /// The back-end's clock: steady on cpu, virtual on sim; from the opening on.
  std::uint64_t now_ns() const;

  /// Records what the device does from now on, the first `most` moments of it; to be called while it does nothing.
  void start_trace(std::size_t most = static_cast<std::size_t>(-1));
  void stop_trace();
  std::vector<rt::TraceEvent> take_trace();

  const std::shared_ptr<rt::DeviceState>& state() const { return state_; }
  explicit Device(std::shared_ptr<rt::DeviceState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<rt::DeviceState> state_;  // null after a reset
};

}  // namespace millstream
