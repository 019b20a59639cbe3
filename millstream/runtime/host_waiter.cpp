// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/host_waiter.h"

#include "millstream/runtime/parking.h"
#include "millstream/runtime/step.h"

namespace millstream::rt {

bool HostWaiter::wait(Completion& completion, std::optional<std::chrono::system_clock::time_point> until) {
  if (!completion.signal.park(*this)) return true;
  std::unique_lock lock(mutex_);
  const auto notified = [&] { return notified_; };
  if (!until) {
    changed_.wait(lock, notified);
    return true;
  }
  if (changed_.wait_until(lock, *until, notified)) return true;
  lock.unlock();
  if (give_up(*this, completion, wake_all)) return false;
  // Published in the meantime: who did it will call notify.
  lock.lock();
  changed_.wait(lock, notified);
  return true;
}

}  // namespace millstream::rt
