// SPDX-License-Identifier: Apache-2.0
// Whether a worker's part in a replay runs. Who pushes work for it looks at the flag afterwards; a worker that goes clears
// the flag first and looks for work afterwards. One of the two sees the other. Over any atomics, so that tests run every
// interleaving of it (tests/interleave/).
#pragma once

#include <atomic>

namespace millstream::rt {

template <class P>
class BasicAwake {
 public:
  bool load(std::memory_order order) const { return flag_.load(order); }
  /// By who has pushed. True: the part slept, and the caller makes it ready.
  bool wake() { return !flag_.exchange(true, std::memory_order_seq_cst); }
  /// By the worker that found nothing: what `find` finds after all. If that is something, `owns` says whether the part is
  /// still the worker's: else it was made ready elsewhere meanwhile, and the worker goes when it has run what it found.
  template <class Find>
  auto sleep_unless(Find find, bool& owns) {
    flag_.store(false, std::memory_order_seq_cst);
    const auto found = find();
    owns = found && wake();
    return found;
  }

 private:
  typename P::template Atomic<bool> flag_{false};
};

}  // namespace millstream::rt
