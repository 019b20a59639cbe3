// SPDX-License-Identifier: Apache-2.0
// The state behind Device, Context, Stream, Event and Notify. Handles share it; a device's lists keep what still
// has work.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "millstream/runtime/lane.h"
#include "millstream/runtime/machine.h"
#include "millstream/runtime/event.h"
#include "millstream/runtime/task_error.h"
#include "millstream/runtime/trace_recorder.h"

namespace millstream::rt {

class EventState;
class ModelState;
struct BindingState;

/// Numbers of live objects of one kind: the lowest free one next. Thread-safe. Only `take` allocates.
class Numbers {
 public:
  explicit Numbers(std::uint32_t most) : most_(most) {}
  /// nullopt: all are in use.
  std::optional<std::uint32_t> take();
  void give_back(std::uint32_t number);
  std::uint32_t in_use() const;
  std::uint32_t most() const { return most_; }

 private:
  const std::uint32_t most_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> taken_;  // a bit a number
  std::size_t first_ = 0;             // no word before it has a free one
  std::uint32_t in_use_ = 0;
};

/// A number that goes back unless what it is for comes into being.
class TakenNumber {
 public:
  explicit TakenNumber(Numbers& numbers) : numbers_(numbers), number_(numbers.take()) {}
  ~TakenNumber() {
    if (number_) numbers_.give_back(*number_);
  }
  TakenNumber(const TakenNumber&) = delete;
  TakenNumber& operator=(const TakenNumber&) = delete;
  explicit operator bool() const { return number_.has_value(); }
  std::uint32_t operator*() const { return *number_; }
  bool again() { return (number_ = numbers_.take()).has_value(); }
  void keep() { number_.reset(); }

 private:
  Numbers& numbers_;
  std::optional<std::uint32_t> number_;
};

/// A budget without numbers, for what is taken at submit and given back by workers: one atomic.
class Budget {
 public:
  explicit Budget(std::uint32_t most) : most_(most) {}
  bool take();
  void give_back() { used_.fetch_sub(1, std::memory_order_release); }
  std::uint32_t in_use() const { return used_.load(std::memory_order_relaxed); }
  std::uint32_t most() const { return most_; }

 private:
  const std::uint32_t most_;
  std::atomic<std::uint32_t> used_{0};
};


class StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  StreamState(const std::shared_ptr<ContextState>& c, std::uint32_t n, std::uint8_t level);
  const std::shared_ptr<ContextState> context;  ///< a cycle with the context's list, which `end_stream` cuts
  Lane lane;
  const std::uint32_t number;     ///< on its device
  const std::uint64_t serial;     ///< in traces
  bool is_default = false;
  bool persistent = false;
  bool shared = false;            ///< several models may be bound to it, and then exclude each other
  bool spins = false;             ///< FAST_SYNC
  std::uint32_t capacity = 0;     ///< tasks queued at once
  std::atomic<bool> closed{false};     ///< takes no calls any more
  bool let_go = false;                 ///< ends with its last task and its last model; under the context's streams_mutex
  std::mutex mode_mutex;
  std::optional<FailureMode> mode;     ///< once set
  std::string name() const;

  /// Of a persistent stream: what it is bound to (more than one only if it is shared), and tapes of models that let it
  /// go, which live as long as the stream.
  std::mutex tapes_mutex;
  std::vector<std::shared_ptr<BindingState>> bindings;
  std::vector<std::shared_ptr<BindingState>> retired;
};

class ContextState : public std::enable_shared_from_this<ContextState> {
 public:
  ContextState(const std::shared_ptr<DeviceState>& d, std::uint32_t n);
  const std::shared_ptr<DeviceState> device_keeper;  ///< a cycle with the device's list, which `end_context` cuts
  DeviceState& device;
  const std::uint32_t number;
  const std::uint64_t serial;  ///< in traces
  const std::uint64_t id;      ///< of the process: no other context of any device has it
  bool primary = false;
  std::atomic<bool> closed{false};

  std::mutex streams_mutex;
  std::vector<std::shared_ptr<StreamState>> streams;  ///< the live ones, default first
  std::shared_ptr<StreamState> default_stream;        ///< until the context has ended
  std::shared_ptr<StreamState> live_default_stream() {
    const std::lock_guard lock(streams_mutex);
    return default_stream;
  }

  std::atomic<bool> stops{false};    ///< set by the first stream whose mode is stop
  std::atomic<bool> stopped{false};  ///< a task failed since
  std::mutex errors_mutex;
  std::vector<TaskError> errors;     ///< not reported yet, in the order of completion
  std::optional<TaskError> cause;    ///< what stopped the context

  std::vector<std::shared_ptr<StreamState>> live_streams();

  /// Executions that were asked for and have not begun, in order.
  struct Asked {
    std::shared_ptr<ModelState> model;
    Ref<Completion> completion;
  };
  std::mutex executions_mutex;
  std::deque<Asked> executions;
  std::vector<std::shared_ptr<ModelState>> running;
  std::mutex models_mutex;
  std::vector<std::shared_ptr<ModelState>> models;
  /// Every lane: of streams, and of the tapes of models. The pointers hold their owners.
  std::vector<std::shared_ptr<Lane>> lanes();

  std::mutex events_mutex;
  std::vector<EventState*> events;   ///< alive; recover() makes them never-recorded
};

class DeviceState : public std::enable_shared_from_this<DeviceState> {
 public:
  DeviceState(std::uint32_t number, Profile profile);
  const std::uint32_t number;
  const std::uint64_t id;             ///< of the process: no other device of any back-end has it
  const Profile profile;
  bool is_private = false;            ///< not in the registry
  std::function<void()> thread_start;  ///< called by each worker thread first
  std::unique_ptr<Machine> machine;   ///< shut down before the device goes: its contexts keep it until they are closed
  TraceRecorder trace;

  Numbers stream_numbers, context_numbers, notify_numbers, event_numbers, model_numbers, label_numbers;
  Budget event_ids;
  /// Waits up to profile.event_wait_ms for an id that a completion gives back.
  bool take_event_id_later();
  /// One at a time: removals of parked lanes, stops, the search for deadlocks.
  std::mutex control;
  /// Host threads inside a blocking call.
  std::atomic<std::uint32_t> hosts_blocked{0};
  /// Lanes that are parked, and those that wait for what another device records, until the machine knows that they go on.
  std::atomic<std::uint32_t> lanes_parked{0}, lanes_abroad{0};
  std::atomic<std::uint64_t> error_order{0};

  std::mutex contexts_mutex;
  std::vector<std::shared_ptr<ContextState>> contexts;
  bool closed = false;  ///< takes no contexts any more
  std::vector<std::shared_ptr<ContextState>> live_contexts();

  /// Found by `device_of` from now on.
  void announce();
};

/// The live device with that id, or null.
std::shared_ptr<DeviceState> device_of(std::uint64_t id);

/// A host thread inside a blocking call, while this lives: what the search for deadlocks asks for.
class BlockedHost {
 public:
  explicit BlockedHost(DeviceState& device) : device_(device) { device_.hosts_blocked.fetch_add(1, std::memory_order_seq_cst); }
  ~BlockedHost() { device_.hosts_blocked.fetch_sub(1, std::memory_order_seq_cst); }
  BlockedHost(const BlockedHost&) = delete;
  BlockedHost& operator=(const BlockedHost&) = delete;

 private:
  DeviceState& device_;
};


class EventState {
 public:
  EventState(std::shared_ptr<ContextState> c, Event::Kind k, std::uint32_t n, bool t, bool s);
  ~EventState();
  const std::shared_ptr<ContextState> context;
  const Event::Kind kind;
  const std::uint32_t number;
  const bool timed;
  const bool waitable;  ///< has SYNC
  std::atomic<bool> closed{false};
  /// Snapshot: the last record, or none. Latch: the same until its context recovers. Under the lock.
  SpinLock lock;
  Ref<Completion> last;
  Ref<Completion> new_latch() const;
  Ref<Completion> last_record();
};

/// Binary and resetting itself: a record sets it, one wait passes and clears it.
class NotifyState final : public Awaited {
 public:
  NotifyState(std::shared_ptr<ContextState> c, std::uint32_t n);
  ~NotifyState() override;
  const std::shared_ptr<ContextState> context;
  const std::uint32_t number;
  const std::uint64_t serial;  ///< in traces
  std::atomic<bool> closed{false};

  /// The lane that may pass now, if one waits.
  Waiter* record();
  /// True: parked. False: passed.
  bool park(Waiter& waiter);
  Signal::Removal remove(Waiter& waiter) override;
  std::string describe() const override;
  std::uint64_t ignored() const;  ///< records while it was set

 private:
  mutable SpinLock lock_;
  bool set_ = false;
  Waiter* first_ = nullptr;  // who waits, in order of arrival
  Waiter* last_ = nullptr;
  std::uint64_t ignored_ = 0;
};

}  // namespace millstream::rt
