// SPDX-License-Identifier: Apache-2.0
// What a device did, in one total order that agrees with what really came before what.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "millstream/runtime/task.h"

namespace millstream::rt {

/// One moment. Stamps count from 1; an event that happened before another has the smaller one.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    submitted,   ///< the call has put the task into its stream
    began,
    ended,       ///< a record: is about to be made known
    dropped,
    sync_begin,  ///< a host is about to put `object`, a marker, into the stream
    sync_end,    ///< and has been told that it is done
    query_begin,  ///< a host asks whether the stream has completed
    query_done,   ///< and is told so
    event_done,   ///< a host is told that `object`, an event's record, is done
    context_sync_begin,
    context_sync_end,
    failed,         ///< the task; `stops`: and with it the context
    dropping,       ///< tasks of the stream with a smaller sequence are about to be dropped
    drop_in_force,  ///< and no other is let run
    stop_mode,      ///< the context stops when a task fails
    recover_begin,  ///< the stopped context is about to go on
    recover_end,    ///< and does
    bound,          ///< the stream has a tape in the model; `event` 1: as a head
    recorded,       ///< the call has put the task onto a model's tape
    activates,      ///< the task is about to start the stream `object` at its task `event`; its own stream: goes on there
    parked,         ///< a notify's wait stands in the notify's queue now
    execution_asked,     ///< `object`, an execution of the model, stands in the context's queue now
    execution_refused,   ///< the model was unbound or closed before
    execution_begin,
    execution_end,
    execution_dropping,  ///< what the execution has not begun is about to be dropped
    execution_drop_in_force,
    execution_done       ///< a host is told that the execution `object` is over
  };
  static constexpr std::uint32_t kNoModel = 0xffffffffu;
  std::uint64_t stamp = 0;
  Kind kind = Kind::submitted;
  TaskKind task = TaskKind::kernel;
  std::uint32_t stream = 0;
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;  ///< of the task in its stream
  /// Serial. Record, wait, marker: of the record (of the latch, of the record's place on a tape); notify: its own;
  /// execute: of the execution; activate: of the stream; else 0.
  std::uint64_t object = 0;
  std::uint32_t worker = 0;    ///< workers first, then callback threads
  std::uint32_t thread = 0;    ///< host thread of a call, from 1 in order of appearance; 0: no call
  std::uint32_t event = 0;     ///< record, wait, reset: the event's number; `activates`: a place on a tape; `bound`: 1 of a head
  bool latch = false;          ///< and whether it is one
  bool stops = false;
  std::uint64_t stream_serial = 0;   ///< numbers are used again, serials never
  std::uint64_t context_serial = 0;
  std::uint32_t model = kNoModel;    ///< whose tape the task is on; execute: that is executed
  std::uint64_t model_serial = 0;
  std::uint64_t execution = 0;       ///< of its model, from 1; 0: not of an execution
  std::uint64_t time_ns = 0;   ///< of the back-end's clock
  std::string_view name;       ///< a kernel's, which must outlive the trace, else the kind's
};

std::string_view to_string(TraceEvent::Kind kind);

class ContextState;
class ModelState;
struct Lane;

/// Thread-safe; one lock for all, so that the order is total.
class TraceRecorder {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  /// Keeps the first `most` moments.
  void start(std::size_t most) {
    const std::lock_guard lock(mutex_);  // a worker may still be adding the last moment of an earlier trace
    most_ = most;
    on_.store(true, std::memory_order_relaxed);
  }
  void stop() { on_.store(false, std::memory_order_relaxed); }
  void submitted(const Lane& lane, const Task& task);
  void began(const Lane& lane, const Task& task, std::uint32_t worker);
  void ended(const Lane& lane, const Task& task, std::uint32_t worker);
  void dropped(const Lane& lane, const Task& task, std::uint32_t worker);
  void failed(const Lane& lane, const Task& task, bool stops);
  void dropping(const Lane& lane, std::uint64_t until, bool in_force);
  void bound(const Lane& lane, bool head);
  void recorded(const Lane& lane, const Task& task);
  void activates(const Lane& lane, const Task& task, const Lane& target, std::uint32_t place);
  void parked(const Lane& lane, const Task& task);
  void execution(TraceEvent::Kind kind, const ModelState& model, std::uint64_t object);
  void host(TraceEvent::Kind kind, const Lane& lane, std::uint64_t object);
  void host(TraceEvent::Kind kind, const ContextState& context, std::uint64_t object = 0);
  std::uint64_t new_object() { return objects_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::vector<TraceEvent> take();

 private:
  void add(TraceEvent& event, const ContextState& context, bool by_host);
  static TraceEvent of(TraceEvent::Kind kind, const Lane& lane, const Task& task);
  void add(TraceEvent::Kind kind, const Lane& lane, const Task& task, std::uint32_t worker);
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::size_t most_ = 0;
  std::vector<TraceEvent> events_;
  std::vector<std::thread::id> hosts_;
  std::atomic<std::uint64_t> objects_{0};
};

}  // namespace millstream::rt
