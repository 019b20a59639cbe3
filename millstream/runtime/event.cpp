// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/event.h"

#include <fmt/format.h>

#include "millstream/runtime/deadlock.h"
#include "millstream/runtime/submit.h"

namespace millstream {

using namespace rt;

namespace {

std::string name(const EventState& e) { return fmt::format("event {}", e.number); }

void told(const EventState& e, const Completion& record) {
  TraceRecorder& trace = e.context->device.trace;
  if (trace.on()) trace.host(TraceEvent::Kind::event_done, *e.context, record.serial);
}

}  // namespace

Result<bool> Event::query() const {
  MST_TRY_VOID(enter("Event::query"));
  if (state_->closed.load(std::memory_order_acquire)) return closed_handle("Event::query", name(*state_));
  state_->context->device.machine->poll();
  const Ref<Completion> last = state_->last_record();
  const bool done = !last || last->signal.done();
  if (done && last) told(*state_, *last);
  return done;
}

Result<void> Event::synchronize(Deadline deadline) {
  constexpr const char* kCall = "Event::synchronize";
  MST_TRY_VOID(enter(kCall));
  if (state_->closed.load(std::memory_order_acquire)) return closed_handle(kCall, name(*state_));
  if (deadline && deadline->count() <= 0) return Error{ErrorCode::bad_value, fmt::format("{}: a wait of {} ns", kCall, deadline->count())};
  const Ref<Completion> last = state_->last_record();
  if (!last) return {};
  DeviceState& device = state_->context->device;
  MST_TRY_VOID(may_wait(kCall, device));
  // A host that waits for ever is told when nothing on the device can record the event.
  const Nanoseconds patience = std::chrono::milliseconds(std::max(1u, device.profile.orphan_wait_ms));
  const std::uint64_t begin = device.machine->now_ns();
  const BlockedHost blocked(device);                 // all the time, not a slice at a time
  auto looked = std::chrono::steady_clock::now();  // real time, in which another host could record it
  for (Deadline left = deadline;;) {
    if (device.machine->host_wait(*last, left, HostMode::patient)) break;
    if (deadline) left = *deadline - Nanoseconds(device.machine->now_ns() - begin);
    if (left && left->count() <= 0) {
      return Error{ErrorCode::event_sync_timeout, fmt::format("{}: {} was not recorded within {} ms", kCall, name(*state_),
                                                              std::chrono::duration_cast<std::chrono::milliseconds>(*deadline).count())};
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - looked < patience) continue;
    looked = now;
    if (nobody_records(device, *last) && !last->signal.done()) {
      return Error{ErrorCode::deadlock, fmt::format("DEADLOCK (suspected): {}: nothing on device {} records {}", kCall, device.number, name(*state_))}
          .help("record it before the host waits, or wait with a deadline (acl has none)");
    }
  }
  if (auto failure = last->failure()) return std::move(failure->error);
  told(*state_, *last);
  return {};
}

Result<std::chrono::nanoseconds> Event::elapsed(const Event& start, const Event& end) {
  constexpr const char* kCall = "Event::elapsed";
  MST_TRY_VOID(enter(kCall));
  const auto& a = start.state_;
  const auto& b = end.state_;
  for (const auto& e : {a, b}) {
    if (e->closed.load(std::memory_order_acquire)) return closed_handle(kCall, name(*e));
  }
  if (&a->context->device != &b->context->device) {
    return Error{ErrorCode::bad_value, fmt::format("{}: {} and {} belong to two devices, whose clocks differ", kCall, name(*a), name(*b))};
  }
  Ref<Completion> record[2];
  for (const int i : {0, 1}) {
    EventState& e = i == 0 ? *a : *b;
    record[i] = e.last_record();
    // In this order: a record that runs meanwhile is done, or still expected.
    const bool unrecorded = !record[i] || (e.kind == Event::Kind::latch && !record[i]->expected() && !record[i]->signal.done());
    if (!e.timed || unrecorded) {
      return Error{ErrorCode::no_timestamp, fmt::format("{}: {} {}", kCall, name(e), e.timed ? "was never recorded" : "keeps no time")}.help(
          "create both with `timing`, in acl with the flag ACL_EVENT_TIME_LINE, and record them");
    }
  }
  for (const int i : {0, 1}) {
    if (!record[i]->signal.done()) {
      return Error{ErrorCode::not_complete, fmt::format("{}: {} has not happened yet", kCall, name(i == 0 ? *a : *b))}.help("synchronise it first");
    }
  }
  for (const auto& r : record) {
    if (auto failure = r->failure()) return std::move(failure->error);
  }
  const std::uint64_t from = record[0]->time(), to = record[1]->time();
  if (to < from) {
    return Error{ErrorCode::reversed_time, fmt::format("{}: {} was recorded before {}", kCall, name(*b), name(*a))};
  }
  return Nanoseconds(to - from);
}

Result<void> Event::close() {
  MST_TRY_VOID(enter("Event::close"));
  if (state_->closed.exchange(true, std::memory_order_acq_rel)) return closed_handle("Event::close", name(*state_));
  return {};
}

Notify::Notify(Notify&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
Notify& Notify::operator=(Notify&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Notify::~Notify() {
  if (state_ != nullptr) state_->drop();
}

std::uint64_t Notify::ignored_records() const { return state_->ignored(); }

Result<void> Notify::close() {
  MST_TRY_VOID(enter("Notify::close"));
  if (state_->closed.exchange(true, std::memory_order_acq_rel)) return closed_handle("Notify::close", state_->describe());
  return {};
}

}  // namespace millstream
