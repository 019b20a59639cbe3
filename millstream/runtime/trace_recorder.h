// SPDX-License-Identifier: Apache-2.0
// What a device did, in one total order that agrees with what really came before what.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
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
    sync_begin,  ///< a host starts to wait for `object` (a marker or an event's record)
    sync_end,    ///< and has been told that it is done
    query_done,  ///< a query said complete
    failed       ///< the task
  };
  std::uint64_t stamp = 0;
  Kind kind = Kind::submitted;
  TaskKind task = TaskKind::kernel;
  std::uint32_t stream = 0;
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;  ///< of the task in its stream
  std::uint64_t object = 0;    ///< record, wait, marker: which record; notify: its number; else 0
  std::uint32_t worker = 0;    ///< workers first, then callback threads
  std::uint64_t time_ns = 0;   ///< of the back-end's clock
  std::string_view name;       ///< a kernel's, else the kind's
};

std::string_view to_string(TraceEvent::Kind kind);

struct Lane;
class Machine;

/// Thread-safe; one lock for all, so that the order is total.
class TraceRecorder {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void start() { on_.store(true, std::memory_order_relaxed); }
  void stop() { on_.store(false, std::memory_order_relaxed); }
  void submitted(const Lane& lane, const Task& task);
  void began(const Lane& lane, const Task& task, std::uint32_t worker);
  void ended(const Lane& lane, const Task& task, std::uint32_t worker);
  void dropped(const Lane& lane, const Task& task, std::uint32_t worker);
  void failed(const Lane& lane, const Task& task);
  void host(TraceEvent::Kind kind, const Lane* lane, std::uint64_t object);
  std::uint64_t new_object() { return objects_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::vector<TraceEvent> take();

 private:
  void add(TraceEvent::Kind kind, const Lane& lane, const Task& task, std::uint32_t worker);
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::atomic<std::uint64_t> objects_{0};
};

}  // namespace millstream::rt
