// SPDX-License-Identifier: Apache-2.0
// How a lane parks while others may want it to go on for another reason. Who stops a lane sets its mark first and then
// looks, under the lock, whether it is parked; the lane says that it parks first and then looks for the mark. One of
// them sees the other. Over any lane, so that tests run every interleaving of it (tests/interleave/).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "millstream/core/error.h"
#include "millstream/runtime/signal.h"

namespace millstream::rt {

/// Why a parked lane goes on other than by what it waited for.
enum class Wake : std::uint8_t { published, stopped, aborted, timed_out, deadlocked };

/// Marks the lane as parked on `on`. False: `dropped`, the lane was told to stop meanwhile.
template <class L, class On, class Dropped>
bool prepare_to_park(L& lane, On& on, Dropped dropped) {
  const std::lock_guard lock(lane.park_lock);
  lane.parked_on = &on;
  ++lane.parks;
  if (!dropped()) return true;
  lane.parked_on = nullptr;
  return false;
}

template <class L>
void no_longer_parked(L& lane) {
  const std::lock_guard lock(lane.park_lock);
  lane.parked_on = nullptr;
}

/// Takes a waiter out of what it waits for. False: somebody is about to wake it, or has. `wake_all` wakes those that were
/// published while they were out of the list.
template <class W, class On, class WakeAll>
bool give_up(W& waiter, On& on, WakeAll wake_all) {
  const auto out = on.remove(waiter);
  wake_all(out.to_wake);
  return out.found;
}

/// Takes a parked lane out of what it waits for; the caller makes it ready. False: it is not parked, or no longer in the
/// park with that number. `wake_all` wakes those that were published while they were out of the list.
template <class P, class L, class WakeAll>
bool take_out(L& lane, Wake why, std::optional<std::uint64_t> park, std::unique_ptr<Error>& error, WakeAll wake_all) {
  for (unsigned round = 0;; ++round) {
    bool found = false;
    Waiter* to_wake = nullptr;
    {
      const std::lock_guard lock(lane.park_lock);
      // While this is set, what it points at is held by the task that waits.
      if (lane.parked_on == nullptr || (park && lane.parks != *park)) return false;
      const auto out = lane.parked_on->remove(lane);
      found = out.found;
      to_wake = out.to_wake;
      if (found) {
        lane.parked_on = nullptr;
        lane.wake = why;
        lane.wake_error = std::move(error);
      }
    }
    wake_all(to_wake);
    if (found) return true;
    // It is on its way into the list, or out of it: a few instructions.
    P::relax(round);
  }
}

}  // namespace millstream::rt
