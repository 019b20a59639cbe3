// SPDX-License-Identifier: Apache-2.0
// Who may run a lane's tasks: the one holder of its token. There is no flag: the token exists while tasks are
// pending, is made by whoever adds the first and ends with whoever takes the last away.
#pragma once

#include <cstdint>

#include "millstream/runtime/atomics.h"

namespace millstream::rt {

template <class P>
class BasicRunToken {
 public:
  /// After the tasks can be read. True: nothing was pending; the caller has the token and must make the lane ready.
  bool add(std::uint64_t tasks = 1) { return pending_.fetch_add(tasks, std::memory_order_seq_cst) == 0; }
  enum class Added : std::uint8_t { no, yes, first };
  /// One more, unless there are `most` already.
  Added add_below(std::uint64_t most) {
    std::uint64_t pending = pending_.load(std::memory_order_seq_cst);
    do {
      if (pending >= most) return Added::no;
    } while (!pending_.compare_exchange_weak(pending, pending + 1, std::memory_order_seq_cst, std::memory_order_seq_cst));
    return pending == 0 ? Added::first : Added::yes;
  }
  /// By the holder, for tasks that have been run. True: none are left and the token is gone.
  bool remove(std::uint64_t tasks) { return pending_.fetch_sub(tasks, std::memory_order_seq_cst) == tasks; }
  /// For the holder a lower bound; 0 for others: everything added before has run, and its effects are visible.
  std::uint64_t pending() const { return pending_.load(std::memory_order_seq_cst); }

 private:
  typename P::template Atomic<std::uint64_t> pending_{0};
};

}  // namespace millstream::rt
