// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/trace_recorder.h"

#include <algorithm>

#include "millstream/runtime/model_state.h"
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
      return task.notify.notify->serial;
    case TaskKind::site_record:
    case TaskKind::site_wait:
      return task.site.site->serial();
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
    case TraceEvent::Kind::query_begin: return "query_begin";
    case TraceEvent::Kind::query_done: return "query_done";
    case TraceEvent::Kind::event_done: return "event_done";
    case TraceEvent::Kind::context_sync_begin: return "context_sync_begin";
    case TraceEvent::Kind::context_sync_end: return "context_sync_end";
    case TraceEvent::Kind::failed: return "failed";
    case TraceEvent::Kind::dropping: return "dropping";
    case TraceEvent::Kind::drop_in_force: return "drop_in_force";
    case TraceEvent::Kind::stop_mode: return "stop_mode";
    case TraceEvent::Kind::recover_begin: return "recover_begin";
    case TraceEvent::Kind::recover_end: return "recover_end";
  }
  return "";
}

// The stamp and what is the same for all.
void TraceRecorder::add(TraceEvent& e, const ContextState& context, bool by_host) {
  e.context = context.number;
  e.context_serial = context.serial;
  const std::lock_guard lock(mutex_);
  if (by_host) {
    const auto known = std::find(hosts_.begin(), hosts_.end(), std::this_thread::get_id());
    e.thread = static_cast<std::uint32_t>(known - hosts_.begin()) + 1;
    if (known == hosts_.end()) hosts_.push_back(std::this_thread::get_id());
  }
  e.time_ns = context.device.machine->now_ns();
  e.stamp = events_.size() + 1;
  events_.push_back(e);
}

void TraceRecorder::add(TraceEvent::Kind kind, const Lane& lane, const Task& task, std::uint32_t worker, bool stops) {
  TraceEvent e;
  e.kind = kind;
  e.task = task.kind;
  e.stream = lane.stream.number;
  e.stream_serial = lane.stream.serial;
  e.sequence = task.sequence;
  e.object = object_of(task);
  e.worker = worker;
  e.stops = stops;
  e.name = task.name();
  if (task.kind == TaskKind::record || task.kind == TaskKind::wait || task.kind == TaskKind::latch_reset) {
    e.event = task.sync.completion->number();
    e.latch = task.sync.completion->what() == Completion::What::latch;
  }
  add(e, lane.context, kind == TraceEvent::Kind::submitted);
}

void TraceRecorder::submitted(const Lane& lane, const Task& task) { add(TraceEvent::Kind::submitted, lane, task, 0); }
void TraceRecorder::began(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::began, lane, task, worker); }
void TraceRecorder::ended(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::ended, lane, task, worker); }
void TraceRecorder::dropped(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::dropped, lane, task, worker); }
void TraceRecorder::failed(const Lane& lane, const Task& task, bool stops) { add(TraceEvent::Kind::failed, lane, task, 0, stops); }

void TraceRecorder::dropping(const Lane& lane, std::uint64_t until, bool in_force) {
  TraceEvent e;
  e.kind = in_force ? TraceEvent::Kind::drop_in_force : TraceEvent::Kind::dropping;
  e.task = TaskKind::marker;
  e.stream = lane.stream.number;
  e.stream_serial = lane.stream.serial;
  e.sequence = until;
  add(e, lane.context, false);
}

void TraceRecorder::host(TraceEvent::Kind kind, const Lane& lane, std::uint64_t object) {
  TraceEvent e;
  e.kind = kind;
  e.task = TaskKind::marker;
  e.object = object;
  e.stream = lane.stream.number;
  e.stream_serial = lane.stream.serial;
  add(e, lane.context, true);
}

void TraceRecorder::host(TraceEvent::Kind kind, const ContextState& context, std::uint64_t object) {
  TraceEvent e;
  e.kind = kind;
  e.task = TaskKind::marker;
  e.object = object;
  add(e, context, true);
}

std::vector<TraceEvent> TraceRecorder::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

}  // namespace millstream::rt
