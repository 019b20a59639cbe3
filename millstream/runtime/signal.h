// SPDX-License-Identifier: Apache-2.0
// A point in the past or the future that can be waited for: open until published, then done.
#pragma once

#include <cstdint>

#include "millstream/runtime/atomics.h"

namespace millstream::rt {

/// Who waits: a stream's lane or a host thread. Intrusive: in one signal's list at a time.
struct Waiter {
  enum class Kind : std::uint8_t { lane, host };
  explicit Waiter(Kind k) : kind(k) {}
  Waiter* next = nullptr;
  const Kind kind;
};

/// One word: 0 open and nobody waits; 1 done; else the waiter that came last, linked to those before it. After a
/// waiter is parked it belongs to whoever publishes: a worker that parked a lane must not touch it again.
template <class P>
class BasicSignal {
 public:
  bool done() const { return word_.load(std::memory_order_acquire) == kDone; }

  /// True: parked. False: the signal is done, and everything before its publication is visible.
  bool park(Waiter& waiter) {
    std::uintptr_t head = word_.load(std::memory_order_acquire);
    for (;;) {
      if (head == kDone) return false;
      waiter.next = reinterpret_cast<Waiter*>(head);
      // seq_cst: what stops a context looks for parked lanes after it has set its flag, and a lane looks at the flag
      // after it has parked. One of them sees the other.
      if (word_.compare_exchange_weak(head, reinterpret_cast<std::uintptr_t>(&waiter), std::memory_order_seq_cst,
                                      std::memory_order_acquire)) {
        return true;
      }
    }
  }

  /// The signal is done. Returns who waited, in order of arrival; each is the caller's to wake.
  Waiter* publish() {
    const std::uintptr_t head = word_.exchange(kDone, std::memory_order_acq_rel);
    return head == kDone ? nullptr : reversed(reinterpret_cast<Waiter*>(head));
  }

  struct Removal {
    bool found = false;
    Waiter* to_wake = nullptr;  ///< published while they were out of the list: the caller wakes them, in this order
  };
  /// Takes one waiter out. Not found: somebody is about to wake it, or has. One removal at a time a signal.
  Removal remove(const Waiter& waiter) {
    std::uintptr_t head = word_.load(std::memory_order_seq_cst);
    do {
      if (head == kDone || head == 0) return {};
    } while (!word_.compare_exchange_weak(head, 0, std::memory_order_seq_cst, std::memory_order_seq_cst));
    Removal out;
    Waiter** end = &out.to_wake;
    for (Waiter* w = reversed(reinterpret_cast<Waiter*>(head)); w != nullptr;) {
      Waiter* const after = w->next;
      if (w == &waiter) {
        out.found = true;
      } else if (!park(*w)) {
        w->next = nullptr;
        *end = w;
        end = &w->next;
      }
      w = after;
    }
    return out;
  }

  /// Done becomes open again (a latch's reset). Open stays open.
  void reset() {
    std::uintptr_t done = kDone;
    word_.compare_exchange_strong(done, 0, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t kDone = 1;
  static Waiter* reversed(Waiter* list) {
    Waiter* out = nullptr;
    while (list != nullptr) {
      Waiter* const after = list->next;
      list->next = out;
      out = list;
      list = after;
    }
    return out;
  }

  typename P::template Atomic<std::uintptr_t> word_{0};
};

}  // namespace millstream::rt
