// SPDX-License-Identifier: Apache-2.0
// What the handles of the acl interface stand for, and the devices of the process.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "compat/src/acl/handle_table.h"
#include "millstream/runtime/device.h"
#include "millstream/runtime/model_state.h"
#include "millstream/runtime/objects.h"

namespace millstream::acl {

struct ContextObject final : Object {
  static constexpr HandleType kType = HandleType::context;
  explicit ContextObject(Context c) : native(std::move(c)), default_stream(native.default_stream()) {}
  Context native;
  Stream default_stream;
  std::mutex mutex;
  std::set<void*> children;  ///< handles of what was made in it and lives
};

struct StreamObject final : Object {
  static constexpr HandleType kType = HandleType::stream;
  explicit StreamObject(Stream s) : native(std::move(s)) {}
  const rt::ContextState* context() const { return native.state()->context.get(); }
  Stream native;
};

struct EventObject final : Object {
  static constexpr HandleType kType = HandleType::event;
  explicit EventObject(Event e) : native(std::move(e)) {}
  const rt::ContextState* context() const { return native.state()->context.get(); }
  Event native;
};

struct NotifyObject final : Object {
  static constexpr HandleType kType = HandleType::notify;
  explicit NotifyObject(Notify n) : native(std::move(n)) {}
  const rt::ContextState* context() const { return native.state().context.get(); }
  Notify native;
};

struct ModelObject final : Object {
  static constexpr HandleType kType = HandleType::model;
  explicit ModelObject(Model m) : native(std::move(m)) {}
  const rt::ContextState* context() const { return native.state()->context.get(); }
  Model native;
};

/// A device while aclrtSetDevice has been called more often than aclrtResetDevice.
struct OpenDevice {
  Device native;
  std::uint32_t count = 0;
  void* primary = nullptr;
  std::set<void*> contexts;  ///< that were created; some may be destroyed
};

struct Devices {
  std::mutex mutex;
  std::map<std::int32_t, OpenDevice> open;
  std::set<std::int32_t> closing;  ///< no longer open, and what they run is drained
  std::condition_variable closed;  ///< one of them is gone
};

/// Of the process; never destroyed, because threads of open devices may run until it ends.
HandleTable& handles();
Devices& devices();

/// Back-end and profile of the devices that are opened next, from MILLSTREAM_DEVICE and MILLSTREAM_PROFILE.
struct Settings {
  BackendId backend = BackendId::cpu;
  Profile profile;
};
/// Errors: bad_value for a name that does not exist.
Result<Settings> settings();

/// Memory of aclrtMalloc goes with its device.
void free_memory_of(const rt::DeviceState* device);
/// Blocks that were not freed.
std::size_t live_blocks();

}  // namespace millstream::acl
