// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/device.h"

#include <algorithm>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "millstream/runtime/step.h"
#include "millstream/runtime/submit.h"

namespace millstream {

using namespace rt;

namespace {

// Devices that are open in this process, and how often. Never destroyed: threads of a device that nobody closed run
// until the process ends.
struct Registry {
  struct Open {
    std::shared_ptr<DeviceState> device;
    std::uint32_t count = 0;
  };
  std::mutex mutex;
  std::map<std::pair<BackendId, std::int32_t>, Open> open;
};
Registry& registry() {
  static auto* const r = new Registry;
  return *r;
}

Result<std::unique_ptr<Machine>> make_machine(BackendId backend, DeviceState& device) {
  if (backend == BackendId::sim) return make_sim_machine(device);
  const std::uint32_t workers = device.profile.workers != 0 ? device.profile.workers : std::max(1u, std::thread::hardware_concurrency());
  return make_cpu_machine(device, workers);
}

// What the runtime rests on, of a profile that no target's reader has seen.
Result<void> usable(const Profile& p) {
  const auto wrong = [](std::string what) { return Error{ErrorCode::bad_value, "Device::open: " + std::move(what)}; };
  const std::int64_t levels = std::int64_t{p.least_priority} - p.greatest_priority + 1;
  if (levels < 1 || levels > Profile::kPriorities) {
    return wrong(fmt::format("priorities {} (greatest) to {} (least); 1 to {} of them are wanted", p.greatest_priority, p.least_priority, Profile::kPriorities));
  }
  if (std::find(p.engine_slots.begin(), p.engine_slots.end(), 0u) != p.engine_slots.end()) return wrong("an engine without slots");
  if (p.tasks_per_stream == 0 || p.tasks_per_huge_stream == 0) return wrong("streams that hold no task");
  for (const double us : {p.launch_us, p.record_us, p.wait_us, p.hand_off_us, p.callback_us, p.switch_us}) {
    if (!(us >= 0 && us <= 1e12)) return wrong(fmt::format("a task that takes {} us", us));
  }
  if (!(p.copy_bytes_per_us >= 1e-3)) return wrong(fmt::format("copies of {} bytes a us", p.copy_bytes_per_us));
  return {};
}

Result<std::shared_ptr<DeviceState>> open_new(BackendId backend, std::int32_t ordinal, const Profile& profile, std::function<void()> thread_start = {}) {
  MST_TRY_VOID(usable(profile));
  auto device = std::make_shared<DeviceState>(static_cast<std::uint32_t>(ordinal), profile);
  device->thread_start = std::move(thread_start);
  MST_TRY(device->machine, make_machine(backend, *device));
  Result<std::shared_ptr<ContextState>> primary = new_context("Device::open", device);
  if (!primary.ok()) {
    device->machine->shut_down();
    return std::move(primary).error();
  }
  (*primary)->primary = true;
  device->announce();
  return device;
}

Error not_open(const char* call) {
  return Error{ErrorCode::no_context, fmt::format("{}: the device is not open", call)}.help("open it first");
}

// Out of the registry: every context drained and gone.
Result<void> shut(const char* call, DeviceState& device) {
  std::optional<Error> deadlock;
  {
    const std::lock_guard lock(device.contexts_mutex);
    device.closed = true;  // other owners may have it still
  }
  for (auto contexts = device.live_contexts(); !contexts.empty(); contexts = device.live_contexts()) {
    // Those that were created first; the primary context is the oldest.
    for (auto it = contexts.rbegin(); it != contexts.rend(); ++it) {
      Result<void> ended = end_context(call, **it);
      if (ended.ok()) continue;
      // Another thread is ending it: its streams still need the workers.
      if (ended.error().code == ErrorCode::bad_handle) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (ended.error().code == ErrorCode::deadlock && !deadlock) deadlock = std::move(ended).error();
    }
  }
  device.machine->shut_down();
  if (deadlock) return std::move(*deadlock);
  return {};
}

}  // namespace

Result<Device> Device::open(BackendId backend, std::int32_t ordinal, const std::optional<Profile>& profile) {
  MST_TRY_VOID(enter("Device::open"));
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto known = r.open.find({backend, ordinal});
  const Profile wanted = profile.value_or(known == r.open.end() || known->second.count == 0 ? Profile{} : known->second.device->profile);
  if (ordinal < 0 || static_cast<std::uint32_t>(ordinal) >= wanted.devices) {
    return Error{ErrorCode::bad_device, fmt::format("Device::open: there is no device {}", ordinal)}.help(
        wanted.devices == 1 ? "the only device is 0" : fmt::format("devices are 0 to {}", wanted.devices - 1));
  }
  auto& entry = r.open[{backend, ordinal}];
  if (entry.count == 0) {
    Result<std::shared_ptr<DeviceState>> device = open_new(backend, ordinal, wanted);
    if (!device.ok()) return std::move(device).error();
    entry.device = std::move(device).value();
  } else if (profile && !(*profile == entry.device->profile)) {
    return Error{ErrorCode::bad_state, fmt::format("Device::open: device {} is open with profile \"{}\"; \"{}\" differs from it", ordinal,
                                                   entry.device->profile.name, profile->name)}
        .help("open it with the same profile, or close it first");
  }
  ++entry.count;
  return Device(entry.device);
}

Result<Device> Device::open_private(BackendId backend, const Profile& profile, std::function<void()> thread_start) {
  MST_TRY_VOID(enter("Device::open_private"));
  MST_TRY(auto device, open_new(backend, 0, profile, std::move(thread_start)));
  device->is_private = true;
  return Device(std::move(device));
}

Device& Device::operator=(Device&& other) noexcept {
  if (this != &other) {
    Device old(std::move(*this));
    state_ = std::move(other.state_);
  }
  return *this;
}

Device::~Device() {
  if (!state_ || in_callback() || !state_->machine->may_wait()) return;
  // What lives keeps the device; its last owner has it closed.
  Result<void> closed = reset(ResetMode::counted);
  if (!closed.ok() && closed.error().code == ErrorCode::still_in_use) closed = reset(ResetMode::force);
  (void)closed;  // nobody is left to be told
}

Context Device::primary() const {
  const auto contexts = state_->live_contexts();
  if (!contexts.empty() && contexts.front()->primary) return Context(contexts.front(), false);
  // Another owner has reset the device: a context that refuses every call.
  auto closed = std::make_shared<ContextState>(state_, 0);
  closed->closed.store(true, std::memory_order_release);
  return Context(std::move(closed), false);
}

Result<Context> Device::create_context() {
  constexpr const char* kCall = "Device::create_context";
  MST_TRY_VOID(enter(kCall));
  if (!state_) return not_open(kCall);
  MST_TRY(auto context, with_memory(kCall, [&] { return new_context(kCall, state_); }));
  return Context(std::move(context), true);
}

PriorityRange Device::priority_range() const { return {state_->profile.least_priority, state_->profile.greatest_priority}; }
const Profile& Device::profile() const { return state_->profile; }

Result<void> Device::reset(ResetMode mode) {
  constexpr const char* kCall = "Device::reset";
  MST_TRY_VOID(enter(kCall));
  if (!state_) return not_open(kCall);
  MST_TRY_VOID(may_wait(kCall, *state_));
  Registry& r = registry();
  const auto in_use = [&]() -> std::optional<Error> {
    const auto contexts = state_->live_contexts();
    if (mode != ResetMode::counted || contexts.size() <= 1) return std::nullopt;
    Error error{ErrorCode::still_in_use, fmt::format("{}: device {} has live contexts", kCall, state_->number)};
    for (const auto& c : contexts) {
      if (!c->primary) error.note(fmt::format("context {} with {} streams", c->number, c->live_streams().size()));
    }
    return std::move(error).help("destroy them, or reset by force");
  };
  std::shared_ptr<DeviceState> closing;
  if (state_->is_private) {
    if (auto error = in_use()) return std::move(*error);
    closing = std::move(state_);
    state_.reset();
  } else {
    const std::lock_guard lock(r.mutex);
    const auto entry = std::find_if(r.open.begin(), r.open.end(), [&](const auto& e) { return e.second.device == state_; });
    if (entry == r.open.end()) {  // forced by another owner
      state_.reset();
      return not_open(kCall);
    }
    if (mode == ResetMode::counted && entry->second.count > 1) {
      --entry->second.count;
      state_.reset();
      return {};
    }
    if (auto error = in_use()) return std::move(*error);
    closing = std::move(entry->second.device);
    r.open.erase(entry);
    state_.reset();
  }
  return shut(kCall, *closing);
}

std::uint64_t Device::now_ns() const { return state_->machine->now_ns(); }
void Device::start_trace(std::size_t most) { state_->trace.start(most); }
void Device::stop_trace() { state_->trace.stop(); }
std::vector<TraceEvent> Device::take_trace() { return state_->trace.take(); }

}  // namespace millstream
