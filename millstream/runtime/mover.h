// SPDX-License-Identifier: Apache-2.0
// Virtual time moves only while a host looks: a host that waits for one device looks at those that this one waits for.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "millstream/runtime/objects.h"

namespace millstream::rt {

/// Moves the devices until something comes of it on `here`, or `done`, or some steps are made. False: nothing happened there
/// by it. Kernels and host functions of theirs run in the calling thread.
bool move_devices(const std::vector<std::shared_ptr<DeviceState>>& devices, Machine& here, const std::function<bool()>& done);

/// The thread of a device of virtual time that moves it for devices of real threads, whose own threads must not stand in its
/// kernels. It begins with the first request.
class Mover {
 public:
  explicit Mover(Machine& moved) : moved_(moved) {}
  ~Mover() { join(); }

  /// Moves until something comes of it on `other`, or nothing happens, or some steps are made; then has `other` look again if
  /// something has happened. Returns at once.
  void request(std::weak_ptr<DeviceState> other);
  void join();
  /// Whether the calling thread is one of these: it runs no kernels but those of its own device, which may close others.
  static bool runs_here();

 private:
  void run();
  bool move_for(const std::weak_ptr<DeviceState>& other);

  Machine& moved_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<DeviceState>> others_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace millstream::rt
