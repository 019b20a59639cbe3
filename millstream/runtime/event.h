// SPDX-License-Identifier: Apache-2.0
// Events and notifies: how one stream waits for another.
#pragma once

#include <cstdint>
#include <memory>

#include "millstream/core/result.h"
#include "millstream/runtime/stream.h"

namespace millstream {

namespace rt {
class EventState;
class NotifyState;
}  // namespace rt

struct EventFlags {
  bool sync = true;     ///< streams may wait for it
  bool timing = false;  ///< keeps the time of its record
};

/// Move-only. Destroying it leaves waits that were submitted as they are.
class Event {
 public:
  /// snapshot: each record replaces the last; a wait is for the record that was last when it was submitted.
  /// latch: one bit; a wait blocks until it is set, a reset clears it.
  enum class Kind : std::uint8_t { snapshot, latch };

  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;

  /// A snapshot that was never recorded is complete, a latch is not.
  Result<bool> query() const;
  /// Errors: event_sync_timeout; why the record was dropped; deadlock when nothing on the device can record it.
  Result<void> synchronize(Deadline deadline = never);
  /// From the start's record to the end's. Errors: no_timestamp (without timing, or never recorded), not_complete,
  /// why a record was dropped, reversed_time, bad_value for events of two devices.
  static Result<std::chrono::nanoseconds> elapsed(const Event& start, const Event& end);
  /// Errors: bad_handle the second time.
  Result<void> close();

  const std::shared_ptr<rt::EventState>& state() const { return state_; }
  explicit Event(std::shared_ptr<rt::EventState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<rt::EventState> state_;
};

/// Move-only. Binary: a record sets it, exactly one wait passes and clears it, in the order in which they came.
class Notify {
 public:
  Notify(Notify&&) noexcept;
  Notify& operator=(Notify&&) noexcept;
  ~Notify();

  /// Records that found it set, and changed nothing.
  std::uint64_t ignored_records() const;
  Result<void> close();

  rt::NotifyState& state() const { return *state_; }
  explicit Notify(rt::NotifyState* adopted) : state_(adopted) {}

 private:
  rt::NotifyState* state_ = nullptr;  // one reference
};

}  // namespace millstream
