// SPDX-License-Identifier: Apache-2.0
// Events and notifies of acl/acl_rt.h.
#include <fmt/format.h>

#include "compat/src/acl/call.h"

namespace millstream::acl {
namespace {

constexpr std::uint32_t kKnownFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

Result<void> create(aclrtEvent* event, Event::Kind kind, std::uint32_t flags) {
  MST_TRY_VOID(not_null({{event, "event"}}));
  MST_TRY(auto context, current());
  if ((flags & ~kKnownFlags) != 0) {
    return Error{ErrorCode::bad_value, fmt::format("flag {:#x} has unknown bits {:#x}", flags, flags & ~kKnownFlags)}.help(
        fmt::format("ACL_EVENT_... bits are {:#x}", kKnownFlags));
  }
  MST_TRY(Event native, context->native.create_event(kind, {(flags & ACL_EVENT_SYNC) != 0, (flags & ACL_EVENT_TIME_LINE) != 0}));
  MST_TRY(*event, publish<EventObject>(context, std::move(native)));
  return {};
}

// The event, of the current context.
Result<Use<EventObject>> event_here(const void* handle) {
  MST_TRY(auto object, find<EventObject>(handle));
  MST_TRY(const auto context, current());
  MST_TRY_VOID(belongs("the event", object, context));
  return object;
}

Result<bool> query(const void* event, const void* status) {
  MST_TRY_VOID(not_null({{event, "event"}, {status, "status"}}));
  MST_TRY(const auto e, event_here(event));
  return e->native.query();
}

template <class T>
Result<void> destroy(const void* handle, const char* name) {
  MST_TRY_VOID(not_null({{handle, name}}));
  MST_TRY(auto object, find<T>(handle));
  MST_TRY(auto context, current());
  MST_TRY_VOID(belongs(name, object, context));
  MST_TRY_VOID(object->native.close());
  unpublish(std::move(object), context);
  return {};
}

}  // namespace
}  // namespace millstream::acl

using namespace millstream;
using namespace millstream::acl;

aclError aclrtCreateEvent(aclrtEvent* event) {
  return run("aclrtCreateEvent", [&] { return create(event, Event::Kind::latch, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE); });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return run("aclrtCreateEventWithFlag", [&] { return create(event, Event::Kind::latch, flag); });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return run("aclrtCreateEventExWithFlag", [&] { return create(event, Event::Kind::snapshot, flag); });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return run("aclrtDestroyEvent", [&] { return destroy<EventObject>(event, "the event"); });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return run("aclrtRecordEvent", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{event, "event"}}));
    MST_TRY(const auto e, find<EventObject>(event));
    MST_TRY(const auto s, stream_here(stream));
    return s->record(e->native);
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return run("aclrtResetEvent", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{event, "event"}}));
    MST_TRY(const auto e, find<EventObject>(event));
    MST_TRY(const auto s, stream_here(stream));
    return s->reset(e->native);
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return run("aclrtStreamWaitEvent", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{event, "event"}}));
    MST_TRY(const auto e, find<EventObject>(event));
    MST_TRY(const auto s, stream_here(stream));
    return s->wait(e->native);
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return run("aclrtQueryEvent", [&]() -> Result<void> {
    MST_TRY(const bool complete, query(event, status));
    *status = complete ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return run("aclrtQueryEventStatus", [&]() -> Result<void> {
    MST_TRY(const bool complete, query(event, status));
    *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return run("aclrtSynchronizeEvent", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{event, "event"}}));
    MST_TRY(const auto e, event_here(event));
    return e->native.synchronize();
  });
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return run("aclrtEventElapsedTime", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{ms, "ms"}, {startEvent, "startEvent"}, {endEvent, "endEvent"}}));
    MST_TRY(const auto start, find<EventObject>(startEvent));
    MST_TRY(const auto end, find<EventObject>(endEvent));
    MST_TRY(const auto context, current());
    MST_TRY_VOID(belongs("the start event", start, context));
    MST_TRY_VOID(belongs("the end event", end, context));
    MST_TRY(const std::chrono::nanoseconds took, Event::elapsed(start->native, end->native));
    *ms = std::chrono::duration<float, std::milli>(took).count();
    return {};
  });
}

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  return run("aclrtCreateNotify", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{notify, "notify"}}));
    MST_TRY(auto context, current());
    if (flag != 0) return Error{ErrorCode::bad_value, fmt::format("flag {:#x}", flag)}.help("0");
    MST_TRY(Notify native, context->native.create_notify());
    MST_TRY(*notify, publish<NotifyObject>(context, std::move(native)));
    return {};
  });
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
  return run("aclrtDestroyNotify", [&] { return destroy<NotifyObject>(notify, "the notify"); });
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  return run("aclrtRecordNotify", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{notify, "notify"}}));
    MST_TRY(const auto n, find<NotifyObject>(notify));
    MST_TRY(const auto s, stream_here(stream));
    return s->record(n->native);
  });
}
