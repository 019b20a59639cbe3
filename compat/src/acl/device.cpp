// SPDX-License-Identifier: Apache-2.0
// Devices and contexts of acl/acl_rt.h, and aclInit.
#include <atomic>
#include <optional>

#include <fmt/format.h>

#include "compat/src/acl/call.h"

namespace millstream::acl {
namespace {

std::atomic<bool> initialised{false};

Error not_open(std::int32_t device) {
  return Error{ErrorCode::no_context, fmt::format("device {} is not open", device)}.help("aclrtSetDevice first");
}

// Handles of a context that the runtime has ended.
void unpublish_context(void* handle) {
  HandleTable::Pin pin = handles().find(HandleType::context, handle);
  if (!pin) return;
  auto& context = *static_cast<ContextObject*>(pin.object());
  std::set<void*> children;
  {
    const std::lock_guard lock(context.mutex);
    children.swap(context.children);
  }
  for (void* const child : children) {
    for (const HandleType type : {HandleType::stream, HandleType::event, HandleType::notify, HandleType::model}) {
      if (HandleTable::Pin p = handles().find(type, child)) handles().remove(std::move(p));
    }
  }
  handles().remove(std::move(pin));
}

Result<void> check_ordinal(std::int32_t device) {
  MST_TRY(const Settings s, settings());
  if (device >= 0 && static_cast<std::uint32_t>(device) < s.profile.devices) return {};
  return Error{ErrorCode::bad_device, fmt::format("there is no device {}", device)}.help(
      s.profile.devices == 1 ? "the only device is 0" : fmt::format("devices are 0 to {}", s.profile.devices - 1));
}

Result<void> open_device(Devices& all, std::int32_t number) {
  MST_TRY_VOID(check_ordinal(number));
  MST_TRY(const Settings s, settings());
  MST_TRY(Device native, Device::open(s.backend, number, s.profile));
  MST_TRY(void* const primary, handles().insert(HandleType::context, std::make_unique<ContextObject>(native.primary())));
  all.open.emplace(number, OpenDevice{std::move(native), 0, primary, {}});
  return {};
}

// Contexts that were created and live.
std::size_t created_contexts(const OpenDevice& device) { return device.native.state()->live_contexts().size() - 1; }

// A device that is no longer open cannot be opened again while this lives.
class Closing {
 public:
  explicit Closing(std::int32_t number) : number_(number) { devices().closing.insert(number); }
  ~Closing() {
    Devices& all = devices();
    {
      const std::lock_guard lock(all.mutex);
      all.closing.erase(number_);
    }
    all.closed.notify_all();
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  const std::int32_t number_;
};

Result<void> reset(std::int32_t number, ResetMode mode) {
  Devices& all = devices();
  std::optional<Closing> closes;
  std::map<std::int32_t, OpenDevice>::node_type closing;
  std::shared_ptr<rt::DeviceState> state;
  std::optional<Result<void>> done;
  {
    const std::lock_guard lock(all.mutex);
    const auto it = all.open.find(number);
    if (it == all.open.end()) return not_open(number);
    OpenDevice& device = it->second;
    state = device.native.state();
    if (mode == ResetMode::counted && device.count > 1) {
      --device.count;
      return {};
    }
    if (mode == ResetMode::counted && created_contexts(device) != 0) {
      // Refused by the runtime, with the list and nothing changed, unless the last of them has just ended.
      done = device.native.reset(ResetMode::counted);
      if (!done->ok() && done->error().code == ErrorCode::still_in_use) return *done;
    }
    closes.emplace(number);
    closing = all.open.extract(it);
  }
  OpenDevice& device = closing.mapped();
  if (!done) done = device.native.reset(ResetMode::force);
  for (void* const context : device.contexts) unpublish_context(context);
  unpublish_context(device.primary);
  free_memory_of(state.get());
  return *done;
}

}  // namespace
}  // namespace millstream::acl

using namespace millstream;
using namespace millstream::acl;

aclError aclInit(const char* configPath) {
  return run("aclInit", [&]() -> Result<void> {
    if (configPath != nullptr && *configPath != '\0') {
      return Error{ErrorCode::unsupported, fmt::format("the configuration file \"{}\" would not be read", configPath)}.help(
          "pass null; MILLSTREAM_DEVICE and MILLSTREAM_PROFILE choose the device");
    }
    if (initialised.exchange(true)) return Error{ErrorCode::bad_state, "it was called before"}.help("once a process, or after aclFinalize");
    return {};
  });
}

aclError aclFinalize(void) {
  return run("aclFinalize", []() -> Result<void> {
    if (!initialised.exchange(false)) return Error{ErrorCode::bad_state, "aclInit was not called"};
    return {};
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return run("aclrtGetDeviceCount", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{count, "count"}}));
    MST_TRY(const Settings s, settings());
    *count = s.profile.devices;
    return {};
  });
}

aclError aclrtSetDevice(int32_t deviceId) {
  return run("aclrtSetDevice", [&]() -> Result<void> {
    Devices& all = devices();
    std::unique_lock lock(all.mutex);
    all.closed.wait(lock, [&] { return all.closing.count(deviceId) == 0; });
    if (all.open.count(deviceId) == 0) MST_TRY_VOID(open_device(all, deviceId));
    OpenDevice& device = all.open.at(deviceId);
    ++device.count;
    make_current(device.primary);
    return {};
  });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return run("aclrtGetDevice", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{deviceId, "deviceId"}}));
    MST_TRY(const auto context, current());
    *deviceId = static_cast<std::int32_t>(context->native.state()->device.number);
    return {};
  });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return run("aclrtResetDevice", [&] { return reset(deviceId, ResetMode::counted); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return run("aclrtResetDeviceForce", [&] { return reset(deviceId, ResetMode::force); });
}

aclError aclrtSynchronizeDevice(void) {
  return run("aclrtSynchronizeDevice", []() -> Result<void> {
    MST_TRY(const auto context, current());
    return context->native.synchronize();
  });
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  return run("aclrtDeviceGetStreamPriorityRange", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{leastPriority, "leastPriority"}, {greatestPriority, "greatestPriority"}}));
    MST_TRY(const auto context, current());
    const Profile& profile = context->native.state()->device.profile;
    *leastPriority = profile.least_priority;
    *greatestPriority = profile.greatest_priority;
    return {};
  });
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return run("aclrtCreateContext", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{context, "context"}}));
    Devices& all = devices();
    const std::lock_guard lock(all.mutex);
    const auto it = all.open.find(deviceId);
    if (it == all.open.end()) {
      MST_TRY_VOID(check_ordinal(deviceId));
      return not_open(deviceId);
    }
    OpenDevice& device = it->second;
    MST_TRY(Context native, device.native.create_context());
    MST_TRY(void* const handle, handles().insert(HandleType::context, std::make_unique<ContextObject>(std::move(native))));
    device.contexts.insert(handle);
    make_current(handle);
    *context = handle;
    return {};
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return run("aclrtDestroyContext", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{context, "context"}}));
    std::int32_t number = 0;
    bool stopped = false;
    Result<void> done;
    {
      MST_TRY(const auto object, find<ContextObject>(context));
      MST_TRY_VOID(current());
      done = object->native.close();
      if (!object->native.state()->closed.load(std::memory_order_acquire)) return done;
      if (!done.ok() && done.error().code == ErrorCode::bad_handle) return done;  // another thread destroys it
      number = static_cast<std::int32_t>(object->native.state()->device.number);
      stopped = object->native.state()->stopped.load(std::memory_order_acquire);
    }
    unpublish_context(context);
    Devices& all = devices();
    const std::lock_guard lock(all.mutex);
    const auto it = all.open.find(number);
    if (it != all.open.end()) it->second.contexts.erase(context);
    if (done.ok()) return {};
    Error error = done.error();
    if (stopped && !error.notes.empty() && error.notes.back().kind == Note::Kind::help) error.notes.pop_back();  // how to go on with it
    return std::move(error).note("the context was destroyed");
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return run("aclrtSetCurrentContext", [&]() -> Result<void> {
    if (context != nullptr) MST_TRY_VOID(find<ContextObject>(context));
    make_current(context);
    return {};
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return run("aclrtGetCurrentContext", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{context, "context"}}));
    MST_TRY(const auto object, current());
    *context = object.handle();
    return {};
  });
}
