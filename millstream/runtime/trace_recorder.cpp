// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/trace_recorder.h"

#include "millstream/runtime/objects.h"

namespace millstream::rt {
namespace {

std::uint64_t object_of(const Task& task) {
  switch (task.kind) {
    case TaskKind::record:
    case TaskKind::wait:
    case TaskKind::marker:
    case TaskKind::latch_reset:
      return task.sync.completion->serial;
    case TaskKind::notify_record:
    case TaskKind::notify_wait:
      return task.notify.notify->number;
    default:
      return 0;
  }
}

}  // namespace

std::string_view to_string(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::submitted: return "submitted";
    case TraceEvent::Kind::began: return "began";
    case TraceEvent::Kind::ended: return "ended";
    case TraceEvent::Kind::dropped: return "dropped";
    case TraceEvent::Kind::sync_begin: return "sync_begin";
    case TraceEvent::Kind::sync_end: return "sync_end";
    case TraceEvent::Kind::query_done: return "query_done";
    case TraceEvent::Kind::failed: return "failed";
  }
  return "";
}

void TraceRecorder::add(TraceEvent::Kind kind, const Lane& lane, const Task& task, std::uint32_t worker) {
  TraceEvent e{0, kind, task.kind, lane.stream.number, lane.context.number, task.sequence, object_of(task), worker, 0, task.name()};
  const std::lock_guard lock(mutex_);
  e.time_ns = lane.context.device.machine->now_ns();
  e.stamp = events_.size() + 1;
  events_.push_back(e);
}

void TraceRecorder::submitted(const Lane& lane, const Task& task) { add(TraceEvent::Kind::submitted, lane, task, 0); }
void TraceRecorder::began(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::began, lane, task, worker); }
void TraceRecorder::ended(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::ended, lane, task, worker); }
void TraceRecorder::dropped(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::dropped, lane, task, worker); }
void TraceRecorder::failed(const Lane& lane, const Task& task) { add(TraceEvent::Kind::failed, lane, task, 0); }

void TraceRecorder::host(TraceEvent::Kind kind, const Lane* lane, std::uint64_t object) {
  TraceEvent e;
  e.kind = kind;
  e.task = TaskKind::marker;
  e.object = object;
  if (lane != nullptr) {
    e.stream = lane->stream.number;
    e.context = lane->context.number;
  }
  const std::lock_guard lock(mutex_);
  if (lane != nullptr) e.time_ns = lane->context.device.machine->now_ns();
  e.stamp = events_.size() + 1;
  events_.push_back(e);
}

std::vector<TraceEvent> TraceRecorder::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

}  // namespace millstream::rt
