// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/mover.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace millstream::rt {

bool move_devices(const Devices& devices, Machine& here, const std::function<bool()>& done) {
  bool moved = false;
  const std::uint64_t before = here.activity();
  for (const auto& device : devices) {
    for (int steps = 0; steps < 64 && here.activity() == before && !done() && device->machine->poll(); ++steps) moved = true;
  }
  return moved;
}

void Mover::request(Devices devices) {
  {
    const std::lock_guard lock(mutex_);
    devices_ = std::move(devices);
    wanted_ = true;
    if (!closed_ && !thread_.joinable()) {
      try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        // Whoever looks next tries again.
      }
    }
  }
  changed_.notify_one();
}

void Mover::run() {
  using std::chrono::milliseconds;
  milliseconds pause(1);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return wanted_ || closed_; });
    if (closed_) return;
    wanted_ = false;
    Devices devices = std::exchange(devices_, {});
    lock.unlock();
    const bool moved = move_devices(devices, here_, [] { return false; });
    devices.clear();
    lock.lock();
    if (!moved) changed_.wait_until(lock, std::chrono::system_clock::now() + pause, [&] { return closed_; });
    pause = moved ? milliseconds(1) : std::min(2 * pause, milliseconds(16));
    lock.unlock();
    look_();
    lock.lock();
  }
}

void Mover::join() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace millstream::rt
