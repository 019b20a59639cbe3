// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/host_waiter.h"

#include "millstream/runtime/step.h"

namespace millstream::rt {

bool HostWaiter::wait(Completion& completion, HostTimeout timeout) {
  if (!completion.signal.park(*this)) return true;
  std::unique_lock lock(mutex_);
  const auto notified = [&] { return notified_; };
  if (!timeout) {
    changed_.wait(lock, notified);
    return true;
  }
  // wait_until on the system clock: what ThreadSanitizer of gcc 12 understands.
  if (changed_.wait_until(lock, std::chrono::system_clock::now() + *timeout, notified)) return true;
  lock.unlock();
  const Signal::Removal out = completion.remove(*this);
  wake_all(out.to_wake);
  if (out.found) return false;
  // Published in the meantime: who did it will call notify.
  lock.lock();
  changed_.wait(lock, notified);
  return true;
}

}  // namespace millstream::rt
