// SPDX-License-Identifier: Apache-2.0
// The atomics that the runtime's concurrent parts are written over. Tests put in others, which stop at every access
// and so run every interleaving (tests/interleave/).
#pragma once

#include <atomic>
#include <thread>

namespace millstream::rt {

struct RealAtomics {
  template <class T>
  using Atomic = std::atomic<T>;
  /// Called in a loop that waits for another thread.
  static void relax(unsigned round) {
    if (round > 64) {
      std::this_thread::yield();
    } else {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
  }
};

/// A lock for a few instructions. BasicLockable.
template <class P>
class BasicSpinLock {
 public:
  void lock() {
    for (unsigned round = 0; held_.exchange(true, std::memory_order_acquire); ++round) {
      while (held_.load(std::memory_order_relaxed)) P::relax(round++);
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  typename P::template Atomic<bool> held_{false};
};
using SpinLock = BasicSpinLock<RealAtomics>;

}  // namespace millstream::rt
