// SPDX-License-Identifier: Apache-2.0
// A host thread that sleeps until a completion is published.
#pragma once

#include <condition_variable>
#include <mutex>

#include "millstream/runtime/machine.h"

namespace millstream::rt {

class HostWaiter : public Waiter {
 public:
  HostWaiter() : Waiter(Kind::host) {}
  virtual ~HostWaiter() = default;
  /// By whoever published. The waiter may be gone when it returns.
  virtual void notify() {
    const std::lock_guard lock(mutex_);
    notified_ = true;
    changed_.notify_one();
  }
  /// Parks on the completion and sleeps. False: the time was over first. The system clock: what ThreadSanitizer of gcc 12
  /// understands.
  bool wait(Completion& completion, std::optional<std::chrono::system_clock::time_point> until);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;
};

}  // namespace millstream::rt
