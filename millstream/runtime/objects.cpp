// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/objects.h"

#include <algorithm>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "millstream/runtime/model_state.h"
#include "millstream/runtime/step.h"

namespace millstream::rt {

std::optional<std::uint32_t> Numbers::take() {
  const std::lock_guard lock(mutex_);
  while (first_ < taken_.size() && ~taken_[first_] == 0) ++first_;
  if (first_ == taken_.size()) taken_.push_back(0);
  const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(~taken_[first_]));
  const std::uint64_t number = first_ * 64 + bit;
  if (number >= most_) return std::nullopt;
  taken_[first_] |= std::uint64_t{1} << bit;
  ++in_use_;
  return static_cast<std::uint32_t>(number);
}

void Numbers::give_back(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  taken_[number / 64] &= ~(std::uint64_t{1} << number % 64);
  first_ = std::min<std::size_t>(first_, number / 64);
  --in_use_;
}

std::uint32_t Numbers::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

bool Budget::take() {
  std::uint32_t used = used_.load(std::memory_order_relaxed);
  while (used < most_ && !used_.compare_exchange_weak(used, used + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
  }
  return used < most_;
}

StreamState::StreamState(const std::shared_ptr<ContextState>& c, std::uint32_t n, std::uint8_t level)
    : context(c), lane(*this, *c, level), number(n), serial(c->device.trace.new_object()) {}

std::string StreamState::name() const { return is_default ? fmt::format("the default stream {}", number) : fmt::format("stream {}", number); }

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Devices of the process, by id. Never destroyed, as devices may outlive what is.
struct Announced {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<DeviceState>> devices;
};
Announced& announced() {
  static auto* const all = new Announced;
  return *all;
}

}  // namespace

ContextState::ContextState(const std::shared_ptr<DeviceState>& d, std::uint32_t n)
    : device_keeper(d), device(*d), number(n), serial(d->trace.new_object()), id(next_id()) {}

std::vector<std::shared_ptr<StreamState>> ContextState::live_streams() {
  const std::lock_guard lock(streams_mutex);
  return streams;
}

std::vector<std::shared_ptr<Lane>> ContextState::lanes() {
  std::vector<std::shared_ptr<Lane>> out;
  for (const auto& stream : live_streams()) {
    out.push_back(keep(stream->lane));
    const std::lock_guard lock(stream->tapes_mutex);
    for (const auto& binding : stream->bindings) out.push_back(keep(binding->lane));
  }
  return out;
}

DeviceState::DeviceState(std::uint32_t n, Profile p)
    : number(n),
      id(next_id()),
      profile(std::move(p)),
      stream_numbers(profile.max_streams),
      context_numbers(Profile::kUnlimited),
      notify_numbers(profile.max_notifies),
      event_numbers(Profile::kUnlimited),
      model_numbers(profile.max_models),
      label_numbers(profile.max_labels),
      event_ids(profile.max_events) {}

void DeviceState::announce() {
  Announced& all = announced();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.devices, [](const auto& entry) { return entry.second.expired(); });
  all.devices.emplace(id, weak_from_this());
}

std::shared_ptr<DeviceState> device_of(std::uint64_t id) {
  Announced& all = announced();
  const std::lock_guard lock(all.mutex);
  const auto found = all.devices.find(id);
  return found == all.devices.end() ? nullptr : found->second.lock();
}

bool DeviceState::take_event_id_later() {
  const std::uint64_t end = machine->now_ns() + profile.event_wait_ms * std::uint64_t{1'000'000};
  for (std::uint32_t waited = 0; waited < profile.event_wait_ms && machine->now_ns() < end;) {
    if (!machine->poll()) {  // nothing that this thread could do for it
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++waited;
    }
    if (event_ids.take()) return true;
  }
  return false;
}

std::vector<std::shared_ptr<ContextState>> DeviceState::live_contexts() {
  const std::lock_guard lock(contexts_mutex);
  return contexts;
}

EventState::EventState(std::shared_ptr<ContextState> c, Event::Kind k, std::uint32_t n, bool t, bool s)
    : context(std::move(c)), kind(k), number(n), timed(t), waitable(s) {
  if (kind == Event::Kind::latch) last = new_latch();
  const std::lock_guard alive(context->events_mutex);
  context->events.push_back(this);
}

EventState::~EventState() {
  {
    const std::lock_guard alive(context->events_mutex);
    std::erase(context->events, this);
  }
  DeviceState& device = context->device;
  if (kind == Event::Kind::latch) device.event_ids.give_back();
  device.event_numbers.give_back(number);
}

Ref<Completion> EventState::new_latch() const {
  auto latch = Ref<Completion>::adopt(new Completion(Completion::What::latch, number));
  latch->serial = context->device.trace.new_object();
  latch->device = context->device.id;
  return latch;
}

Ref<Completion> EventState::last_record() {
  const std::lock_guard one(lock);
  return last;
}

NotifyState::NotifyState(std::shared_ptr<ContextState> c, std::uint32_t n)
    : context(std::move(c)), number(n), serial(context->device.trace.new_object()) {}
NotifyState::~NotifyState() { context->device.notify_numbers.give_back(number); }

Waiter* NotifyState::record() {
  const std::lock_guard lock(lock_);
  if (Waiter* const waiter = first_) {
    first_ = waiter->next;
    waiter->next = nullptr;
    return waiter;
  }
  if (set_) ++ignored_;
  set_ = true;
  return nullptr;
}

bool NotifyState::park(Waiter& waiter) {
  const std::lock_guard lock(lock_);
  if (set_) {
    set_ = false;
    return false;
  }
  waiter.next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = &waiter;
  last_ = &waiter;
  if (context->device.trace.on()) {
    Lane& lane = static_cast<Lane&>(waiter);  // hosts do not wait for a notify
    context->device.trace.parked(lane, *first_task(lane));
  }
  return true;
}

Signal::Removal NotifyState::remove(Waiter& waiter) {
  const std::lock_guard lock(lock_);
  Waiter* before = nullptr;
  for (Waiter* w = first_; w != nullptr; before = w, w = w->next) {
    if (w != &waiter) continue;
    (before == nullptr ? first_ : before->next) = w->next;
    if (last_ == w) last_ = before;
    return {true, nullptr};
  }
  return {};
}

std::string NotifyState::describe() const { return fmt::format("notify {}", number); }

std::uint64_t NotifyState::ignored() const {
  const std::lock_guard lock(lock_);
  return ignored_;
}

}  // namespace millstream::rt
