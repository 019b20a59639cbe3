// SPDX-License-Identifier: Apache-2.0
// A count of arrivals that goes on over all epochs, so that nothing is reset between them. Over a policy of atomics, so
// that tests run every interleaving of it (tests/interleave/).
#pragma once

#include <cstdint>

#include "millstream/runtime/atomics.h"

namespace millstream::rt {

/// Each epoch, counted from 1, has the same number of arrivals, and none of the next comes before all of this one have.
/// The count and the epochs wrap together: they are compared modulo the number's range, which must be larger than an epoch.
template <class P, class Number = std::uint64_t>
class BasicArrivals {
 public:
  BasicArrivals() = default;
  /// As after so many arrivals.
  explicit BasicArrivals(Number made) : made_(made) {}
  /// True for the last arrival of the epoch: everything before the others is visible.
  bool arrive(Number epoch, Number each) {
    return static_cast<Number>(made_.fetch_add(1, std::memory_order_acq_rel) + 1) == static_cast<Number>(epoch * each);
  }
  /// Arrives only if it is the last arrival of the epoch. No arrival of the next comes before the caller makes way for it,
  /// so the count is the caller's alone.
  bool arrive_if_last(Number epoch, Number each) {
    const auto all = static_cast<Number>(epoch * each);
    if (static_cast<Number>(made_.load(std::memory_order_acquire) + 1) != all) return false;
    made_.store(all, std::memory_order_relaxed);
    return true;
  }

 private:
  typename P::template Atomic<Number> made_{0};
};

}  // namespace millstream::rt
