// SPDX-License-Identifier: Apache-2.0
// Runs a few threads in every order of their accesses to atomics, one access at a time (so: sequentially consistent).
// What is explored is the runtime's own code, written over a policy of atomics (millstream/runtime/atomics.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millstream::interleave {

/// Built anew for each order. What the functions share lives in what they capture.
struct Program {
  std::vector<std::function<void()>> threads;
  /// After all have ended: what is wrong, if something is.
  std::function<std::optional<std::string>()> wrong;
};

struct Explored {
  std::uint64_t orders = 0;  ///< that differ
  std::uint64_t states = 0;
  /// The first that goes wrong: what, and the threads in the order of their accesses.
  std::optional<std::string> wrong;
};

/// Every order, but for those that differ only in accesses that do not touch each other (sleep sets: Godefroid 1996).
/// A thread that waits in `relax` goes on after another thread has written; when all wait so, that is wrong.
Explored explore(const std::function<Program()>& make);

/// By a thread of a program: this must hold.
void require(bool holds, const char* what);

/// The current thread is about to touch `where`. Outside of an exploration: nothing.
void access(const void* where, bool writes);
/// It waits for another thread's write.
void wait_for_write();

/// `Broken`: read-modify-writes are a load and a store, and a compare-exchange compares nothing.
template <bool Broken>
struct SteppedAtomics {
  template <class T>
  class Atomic {
   public:
    Atomic() = default;
    Atomic(T value) : value_(value) {}  // NOLINT: as std::atomic
    T load(std::memory_order = std::memory_order_seq_cst) const {
      access(this, false);
      return value_;
    }
    void store(T value, std::memory_order = std::memory_order_seq_cst) {
      access(this, true);
      value_ = value;
    }
    T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
      const T old = modify();
      value_ = value;
      return old;
    }
    T fetch_add(T by, std::memory_order = std::memory_order_seq_cst) {
      const T old = modify();
      value_ = old + by;
      return old;
    }
    T fetch_sub(T by, std::memory_order = std::memory_order_seq_cst) {
      const T old = modify();
      value_ = old - by;
      return old;
    }
    bool compare_exchange_strong(T& expected, T wanted, std::memory_order = std::memory_order_seq_cst,
                                 std::memory_order = std::memory_order_seq_cst) {
      access(this, true);
      if (!Broken && value_ != expected) {
        expected = value_;
        return false;
      }
      value_ = wanted;
      return true;
    }
    bool compare_exchange_weak(T& expected, T wanted, std::memory_order a = std::memory_order_seq_cst,
                               std::memory_order b = std::memory_order_seq_cst) {
      return compare_exchange_strong(expected, wanted, a, b);
    }

   private:
    T modify() {
      if (!Broken) {
        access(this, true);
        return value_;
      }
      access(this, false);
      const T old = value_;
      access(this, true);
      return old;
    }
    T value_{};
  };
  static void relax(unsigned) { wait_for_write(); }
};

}  // namespace millstream::interleave
