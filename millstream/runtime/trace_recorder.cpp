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
    case TaskKind::outside_wait:
      return task.outside.seen == nullptr ? 0 : task.outside.seen->serial;
    case TaskKind::execute:
      return task.execute.completion->serial;
    case TaskKind::activate:
      return task.target->stream.serial;
    default:
      return 0;
  }
}

void name_event(TraceEvent& e, const Task& task) {
  switch (task.kind) {
    case TaskKind::record:
    case TaskKind::wait:
    case TaskKind::latch_reset:
      e.event = task.sync.completion->number();
      e.latch = task.sync.completion->what() == Completion::What::latch;
      return;
    case TaskKind::site_record:
    case TaskKind::site_wait:
      e.event = task.site.site->event();
      return;
    case TaskKind::outside_wait:
      e.event = task.outside.event->number;
      e.latch = task.outside.event->kind == Event::Kind::latch;
      return;
    default:
      return;
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
    case TraceEvent::Kind::bound: return "bound";
    case TraceEvent::Kind::recorded: return "recorded";
    case TraceEvent::Kind::activates: return "activates";
    case TraceEvent::Kind::parked: return "parked";
    case TraceEvent::Kind::execution_asked: return "execution_asked";
    case TraceEvent::Kind::execution_refused: return "execution_refused";
    case TraceEvent::Kind::execution_begin: return "execution_begin";
    case TraceEvent::Kind::execution_end: return "execution_end";
    case TraceEvent::Kind::execution_dropping: return "execution_dropping";
    case TraceEvent::Kind::execution_drop_in_force: return "execution_drop_in_force";
    case TraceEvent::Kind::execution_done: return "execution_done";
  }
  return "";
}

// The stamp and what is the same for all.
void TraceRecorder::add(TraceEvent& e, const ContextState& context, bool by_host) {
  e.context = context.number;
  e.context_serial = context.serial;
  const std::lock_guard lock(mutex_);
  if (events_.size() >= most_) return;
  if (by_host) {
    const auto known = std::find(hosts_.begin(), hosts_.end(), std::this_thread::get_id());
    e.thread = static_cast<std::uint32_t>(known - hosts_.begin()) + 1;
    if (known == hosts_.end()) hosts_.push_back(std::this_thread::get_id());
  }
  e.time_ns = context.device.machine->now_ns();
  e.stamp = events_.size() + 1;
  events_.push_back(e);
}

void TraceRecorder::bound(const Lane& lane, bool head) {
  TraceEvent e;
  e.kind = TraceEvent::Kind::bound;
  e.task = TaskKind::marker;
  e.stream = lane.stream.number;
  e.stream_serial = lane.stream.serial;
  e.event = head ? 1 : 0;
  e.model = lane.binding->model->number;
  e.model_serial = lane.binding->model->serial;
  add(e, lane.context, true);
}

TraceEvent TraceRecorder::of(TraceEvent::Kind kind, const Lane& lane, const Task& task) {
  TraceEvent e;
  e.kind = kind;
  e.task = task.kind;
  e.stream = lane.stream.number;
  e.stream_serial = lane.stream.serial;
  e.sequence = task.sequence;
  e.object = object_of(task);
  e.name = task.name();
  name_event(e, task);
  const ModelState* model = task.kind == TaskKind::execute ? task.execute.model : nullptr;
  if (lane.binding != nullptr) {
    model = lane.binding->model;
    e.execution = kind == TraceEvent::Kind::recorded ? 0 : model->executions;
  }
  if (model != nullptr) {
    e.model = model->number;
    e.model_serial = model->serial;
  }
  return e;
}

void TraceRecorder::add(TraceEvent::Kind kind, const Lane& lane, const Task& task, std::uint32_t worker) {
  TraceEvent e = of(kind, lane, task);
  e.worker = worker;
  add(e, lane.context, kind == TraceEvent::Kind::submitted || kind == TraceEvent::Kind::recorded);
}

void TraceRecorder::submitted(const Lane& lane, const Task& task) { add(TraceEvent::Kind::submitted, lane, task, 0); }
void TraceRecorder::began(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::began, lane, task, worker); }
void TraceRecorder::ended(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::ended, lane, task, worker); }
void TraceRecorder::dropped(const Lane& lane, const Task& task, std::uint32_t worker) { add(TraceEvent::Kind::dropped, lane, task, worker); }
void TraceRecorder::recorded(const Lane& lane, const Task& task) { add(TraceEvent::Kind::recorded, lane, task, 0); }
void TraceRecorder::parked(const Lane& lane, const Task& task) { add(TraceEvent::Kind::parked, lane, task, 0); }

void TraceRecorder::failed(const Lane& lane, const Task& task, bool stops) {
  TraceEvent e = of(TraceEvent::Kind::failed, lane, task);
  e.stops = stops;
  add(e, lane.context, false);
}

void TraceRecorder::activates(const Lane& lane, const Task& task, const Lane& target, std::uint32_t place) {
  TraceEvent e = of(TraceEvent::Kind::activates, lane, task);
  e.object = target.stream.serial;
  e.event = place;
  add(e, lane.context, false);
}

void TraceRecorder::execution(TraceEvent::Kind kind, const ModelState& model, std::uint64_t object) {
  TraceEvent e;
  e.kind = kind;
  e.task = TaskKind::execute;
  e.object = object;
  e.model = model.number;
  e.model_serial = model.serial;
  const bool runs = kind != TraceEvent::Kind::execution_asked && kind != TraceEvent::Kind::execution_refused;
  e.execution = runs ? model.executions : 0;
  add(e, *model.context, false);
}

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
