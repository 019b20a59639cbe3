// SPDX-License-Identifier: Apache-2.0
// A context: streams and events that fail together, and one default stream.
#pragma once

#include <memory>
#include <vector>

#include "millstream/runtime/event.h"
#include "millstream/runtime/model.h"
#include "millstream/runtime/stream.h"
#include "millstream/runtime/task_error.h"

namespace millstream {

namespace rt {
class ContextState;
}

/// Move-only. The destructor of a context that was created drains and destroys what it still has; the primary context
/// ends with its device.
class Context {
 public:
  Context(Context&&) noexcept = default;
  Context& operator=(Context&&) noexcept;
  ~Context();

  /// Shared by every thread that uses this context; orders nothing with other streams.
  Stream default_stream() const;
  /// Errors: bad_value for a priority outside the device's range; no_more_streams; no_memory.
  Result<Stream> create_stream(const StreamOptions& options = {});
  /// Errors: no_event for a latch when all ids are taken (a snapshot takes one at its record).
  Result<Event> create_event(Event::Kind kind, EventFlags flags = {});
  /// Errors: no_notify.
  Result<Notify> create_notify();
  /// A model in its building phase. Errors: no_model.
  Result<Model> begin_model();
  /// Errors: over_limit when the device has as many labels as it may.
  Result<Label> create_label();
  /// Every stream of this context, as Stream::synchronize. Returns the error that happened first, and counts all as
  /// reported.
  Result<void> synchronize(Deadline deadline = never);
  /// After a stop: waits for what still runs, forgets the error, makes events never recorded. Streams stay.
  Result<void> recover();
  /// What failed and was not reported yet, in the order of completion.
  std::vector<TaskError> take_errors();
  /// Errors: bad_state for the primary context; bad_handle when it is closed.
  Result<void> close();

  std::uint32_t number() const;
  const std::shared_ptr<rt::ContextState>& state() const { return state_; }
  Context(std::shared_ptr<rt::ContextState> state, bool owns) : state_(std::move(state)), owns_(owns) {}

 private:
  std::shared_ptr<rt::ContextState> state_;
  bool owns_ = false;
};

}  // namespace millstream
