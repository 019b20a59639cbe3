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

using Devices = std::vector<std::shared_ptr<DeviceState>>;

/// Moves the devices until something comes of it on `here`, or `done`, or some steps are made. False: nothing happened there
/// by it. Kernels and host functions of theirs run in the calling thread.
bool move_devices(const Devices& devices, Machine& here, const std::function<bool()>& done);

/// Moves them for a device of real threads, whose hosts sleep and whose watch must not stand in a kernel: on a thread of its
/// own, which begins with the first request.
class Mover {
 public:
  /// `look`: called behind each request, from its thread; who calls it asks again while there is something to move.
  Mover(Machine& here, std::function<void()> look) : here_(here), look_(std::move(look)) {}
  ~Mover() { join(); }

  /// Moves these once. Where nothing moves, perhaps since others do it, or there are none, it waits some ms before it calls
  /// `look`: 1 ms at first, then twice as long each time, to 16 ms.
  void request(Devices devices);
  void join();

 private:
  void run();

  Machine& here_;
  const std::function<void()> look_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Devices devices_;
  bool wanted_ = false;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace millstream::rt
