// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/mover.h"

#include <system_error>
#include <utility>

namespace millstream::rt {
namespace {

constexpr int kSteps = 64;
thread_local bool is_mover = false;

}  // namespace

bool move_devices(const std::vector<std::shared_ptr<DeviceState>>& devices, Machine& here, const std::function<bool()>& done) {
  bool moved = false;
  const std::uint64_t before = here.activity();
  for (const auto& device : devices) {
    for (int steps = 0; steps < kSteps && here.activity() == before && !done() && device->machine->poll(); ++steps) moved = true;
  }
  return moved;
}

void Mover::request(std::weak_ptr<DeviceState> other) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& known : others_) {
      if (!known.owner_before(other) && !other.owner_before(known)) return;
    }
    others_.push_back(std::move(other));
    if (!closed_ && !thread_.joinable()) {
      try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        others_.clear();  // whoever asks next tries again
      }
    }
  }
  changed_.notify_one();
}

// It holds the other device only between steps: a kernel may end it.
bool Mover::move_for(const std::weak_ptr<DeviceState>& other) {
  const auto activity = [&]() -> std::optional<std::uint64_t> {
    const std::shared_ptr<DeviceState> device = other.lock();
    return device ? std::optional(device->machine->activity()) : std::nullopt;
  };
  bool moved = false;
  const std::optional<std::uint64_t> before = activity();
  for (int steps = 0; steps < kSteps && before && activity() == before && moved_.poll(); ++steps) moved = true;
  return moved;
}

bool Mover::runs_here() { return is_mover; }

void Mover::run() {
  is_mover = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !others_.empty() || closed_; });
    if (closed_) return;
    const std::vector<std::weak_ptr<DeviceState>> others = std::exchange(others_, {});
    lock.unlock();
    for (const auto& other : others) {
      if (!move_for(other)) continue;
      if (const std::shared_ptr<DeviceState> device = other.lock()) device->machine->look_again();
    }
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
