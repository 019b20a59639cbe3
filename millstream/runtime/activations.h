// SPDX-License-Identifier: Apache-2.0
// How an execution of a model knows that it is over: every start of a tape counts as live from before it is given until
// the tape's end. Over a policy of atomics, so that tests run every interleaving of it (tests/interleave/).
#pragma once

#include "millstream/runtime/run_token.h"

namespace millstream::rt {

template <class P>
class BasicActivations {
 public:
  using Token = BasicRunToken<P>;

  /// Before the heads get their tokens: all of them are live before the first may run.
  void begin(std::uint64_t heads) { live_.store(heads, std::memory_order_seq_cst); }
  /// By a tape that is live. One more start, unless the token holds `most`. `first`: the caller makes the tape's lane ready.
  typename Token::Added start(Token& token, std::uint64_t most) {
    live_.fetch_add(1, std::memory_order_seq_cst);
    const typename Token::Added added = token.add_below(most);
    if (added == Token::Added::no) live_.fetch_sub(1, std::memory_order_seq_cst);  // whoever starts is live too
    return added;
  }
  struct End {
    bool idle;  ///< the lane is no longer held; else it starts again
    bool over;  ///< nothing is live: the caller ends the execution
  };
  /// By the holder, at the tape's end. The lane may run in the next execution from here on.
  End end(Token& token) {
    const bool idle = token.remove(1);
    return {idle, live_.fetch_sub(1, std::memory_order_seq_cst) == 1};
  }

 private:
  typename P::template Atomic<std::uint64_t> live_{0};
};

}  // namespace millstream::rt
