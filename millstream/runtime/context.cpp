// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/context.h"

#include <fmt/format.h>

#include "millstream/runtime/model_state.h"
#include "millstream/runtime/step.h"
#include "millstream/runtime/submit.h"

namespace millstream {

using namespace rt;

Context& Context::operator=(Context&& other) noexcept {
  if (this != &other) {
    Context old(std::move(*this));
    state_ = std::move(other.state_);
    owns_ = other.owns_;
  }
  return *this;
}

Context::~Context() {
  // In a host function it cannot drain; the device ends it.
  if (!state_ || !owns_ || in_callback() || state_->closed.load(std::memory_order_acquire)) return;
  Result<void> ended = end_context("Context::~Context", *state_);
  (void)ended;  // nobody is left to be told
}

std::uint32_t Context::number() const { return state_->number; }

namespace {

Result<void> alive(const char* call, const ContextState& context) {
  MST_TRY_VOID(enter(call));
  if (context.closed.load(std::memory_order_acquire)) return closed_handle(call, fmt::format("context {}", context.number));
  return {};
}

}  // namespace

Stream Context::default_stream() const {
  std::shared_ptr<StreamState> stream = state_->live_default_stream();
  if (!stream) {  // the context has ended: a stream that refuses every call
    stream = std::make_shared<StreamState>(state_, 0, 0);
    stream->is_default = true;
    stream->closed.store(true, std::memory_order_release);
  }
  return Stream(std::move(stream), false);
}

Result<Stream> Context::create_stream(const StreamOptions& options) {
  constexpr const char* kCall = "Context::create_stream";
  MST_TRY_VOID(alive(kCall, *state_));
  MST_TRY(auto stream, with_memory(kCall, [&] { return new_stream(kCall, state_, options); }));
  return Stream(std::move(stream), true);
}

Result<Event> Context::create_event(Event::Kind kind, EventFlags flags) {
  constexpr const char* kCall = "Context::create_event";
  MST_TRY_VOID(alive(kCall, *state_));
  DeviceState& device = state_->device;
  if (kind == Event::Kind::latch && !device.event_ids.take()) {
    return Error{ErrorCode::no_event, fmt::format("{}: device {} has {} event ids, and all are in use", kCall, device.number, device.event_ids.most())}
        .help("destroy events that are no longer needed");
  }
  Result<Event> made = with_memory(kCall, [&]() -> Result<Event> {
    TakenNumber number(device.event_numbers);
    auto state = std::make_shared<EventState>(state_, kind, *number, flags.timing, flags.sync);
    number.keep();
    return Event(std::move(state));
  });
  if (!made.ok() && kind == Event::Kind::latch) device.event_ids.give_back();
  return made;
}

Result<Notify> Context::create_notify() {
  constexpr const char* kCall = "Context::create_notify";
  MST_TRY_VOID(alive(kCall, *state_));
  DeviceState& device = state_->device;
  return with_memory(kCall, [&]() -> Result<Notify> {
    TakenNumber number(device.notify_numbers);
    if (!number) {
      return Error{ErrorCode::no_notify, fmt::format("{}: device {} has {} notifies, and all are in use", kCall, device.number, device.notify_numbers.most())}
          .help("destroy notifies that are no longer needed");
    }
    Notify made(new NotifyState(state_, *number));
    number.keep();
    return made;
  });
}

Result<void> Context::synchronize(Deadline deadline) {
  constexpr const char* kCall = "Context::synchronize";
  MST_TRY_VOID(alive(kCall, *state_));
  MST_TRY_VOID(may_wait(kCall, state_->device));
  TraceRecorder& trace = state_->device.trace;
  const std::uint64_t serial = trace.on() ? trace.new_object() : 0;
  if (trace.on()) trace.host(TraceEvent::Kind::context_sync_begin, *state_, serial);
  if (deadline && deadline->count() <= 0) return Error{ErrorCode::bad_value, fmt::format("{}: a wait of {} ns", kCall, deadline->count())};
  std::vector<std::pair<std::shared_ptr<StreamState>, Ref<Completion>>> markers;  // null: it takes no more, and ends
  for (const auto& stream : state_->live_streams()) {
    if (stream->persistent) continue;
    Result<Ref<Completion>> marker = submit_marker(kCall, *stream);
    if (!marker.ok() && marker.error().code != ErrorCode::bad_handle) return std::move(marker).error();
    markers.emplace_back(stream, marker.ok() ? std::move(marker).value() : Ref<Completion>());
  }
  const std::uint64_t begin = state_->device.machine->now_ns();
  bool all = true;
  std::optional<Error> dropped;  // the first wait that was: so was what stood before it
  for (auto& [stream, marker] : markers) {
    Deadline left = deadline;
    if (left) left = std::max(Nanoseconds(1), *left - Nanoseconds(state_->device.machine->now_ns() - begin));
    if (marker) {
      MST_TRY_VOID(wait_host(kCall, *stream, *marker, left));
      if (auto failure = marker->failure(); failure && !dropped) dropped = std::move(failure->error);
    } else if (!left) {
      wait_for_end(*stream);
    } else {
      all = false;
    }
  }
  if (trace.on() && all) trace.host(TraceEvent::Kind::context_sync_end, *state_, serial);
  MST_TRY_VOID(take_error(*state_, nullptr));
  if (dropped) return std::move(*dropped);
  return {};
}

Result<void> Context::recover() {
  constexpr const char* kCall = "Context::recover";
  MST_TRY_VOID(alive(kCall, *state_));
  MST_TRY_VOID(may_wait(kCall, state_->device));
  for (const auto& stream : state_->live_streams()) {
    if (stream->persistent) continue;
    const Result<Ref<Completion>> marker = submit_marker(kCall, *stream);
    if (marker.ok()) {
      MST_TRY_VOID(wait_host(kCall, *stream, **marker, never));
    } else if (marker.error().code == ErrorCode::bad_handle) {  // let go: its last task may still run
      wait_for_end(*stream);
    } else {
      return marker.error();
    }
  }
  // Executions that have begun, or will, drop their tasks while the context is stopped.
  std::vector<Ref<Completion>> executions;
  {
    const std::lock_guard lock(state_->executions_mutex);
    for (const auto& model : state_->running) executions.push_back(model->current);
    for (const auto& asked : state_->executions) executions.push_back(asked.completion);
  }
  for (const auto& execution : executions) wait_until_done(state_->device, *execution);
  std::vector<Ref<Completion>> latches;  // others may still wait for them
  {
    const std::lock_guard lock(state_->events_mutex);
    for (EventState* e : state_->events) {
      const std::lock_guard one(e->lock);
      const bool latch = e->kind == Event::Kind::latch;
      if (latch) latches.push_back(e->last);
      e->last = latch ? e->new_latch() : Ref<Completion>();
    }
  }
  for (const auto& latch : latches) {
    auto why = std::make_unique<Error>(Error{ErrorCode::context_stopped, fmt::format("context {} recovered, and forgot its events", state_->number)});
    latch->expect();
    wake_all(latch->publish(state_->device.machine->now_ns(), std::move(why), state_->id));
  }
  state_->device.machine->look_again();
  const std::lock_guard lock(state_->errors_mutex);
  state_->errors.clear();
  state_->cause.reset();
  TraceRecorder& trace = state_->device.trace;
  if (trace.on()) trace.host(TraceEvent::Kind::recover_begin, *state_);
  state_->stopped.store(false, std::memory_order_seq_cst);
  if (trace.on()) trace.host(TraceEvent::Kind::recover_end, *state_);
  return {};
}

std::vector<TaskError> Context::take_errors() {
  const std::lock_guard lock(state_->errors_mutex);
  return std::exchange(state_->errors, {});
}

Result<void> Context::close() {
  constexpr const char* kCall = "Context::close";
  MST_TRY_VOID(alive(kCall, *state_));
  if (state_->primary) {
    return Error{ErrorCode::bad_state, fmt::format("{}: context {} is the primary one of its device", kCall, state_->number)}.help(
        "it ends with the device");
  }
  return end_context(kCall, *state_);
}

}  // namespace millstream
