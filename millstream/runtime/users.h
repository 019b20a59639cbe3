// SPDX-License-Identifier: Apache-2.0
// Who is inside something that its owner is about to destroy. Over any atomics, so that tests run every interleaving of it
// (tests/interleave/).
#pragma once

#include <cstdint>

#include "millstream/runtime/atomics.h"

namespace millstream::rt {

/// Nobody becomes a user but through one that is one already, or through the owner. So once there is none, none comes.
template <class P>
class BasicUsers {
 public:
  void enter() { users_.fetch_add(1, std::memory_order_relaxed); }
  void leave() { users_.fetch_sub(1, std::memory_order_release); }
  /// If so, everything that users did is visible.
  bool none() const { return users_.load(std::memory_order_acquire) == 0; }

 private:
  typename P::template Atomic<std::uint32_t> users_{0};
};

}  // namespace millstream::rt
