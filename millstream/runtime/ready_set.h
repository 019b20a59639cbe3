// SPDX-License-Identifier: Apache-2.0
// Lanes that can go on, by priority and then in order of arrival, each taken by one worker. One set a device, so that
// priority holds over all its contexts.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "millstream/runtime/lane.h"
#include "millstream/target/profile.h"

namespace millstream::rt {

class ReadySet {
 public:
  static constexpr std::uint32_t kLevels = Profile::kPriorities;

  /// `age`: a level's first lane goes before higher levels once they have passed it over so often; 0: never.
  ReadySet(std::uint32_t workers, std::uint32_t age) : workers_(workers), age_(age) {}

  void push(Lane& lane);
  /// The next lane; sleeps while there is none. Null: closed. `on_idle` is called, without the lock, when the last
  /// worker is about to sleep.
  template <class OnIdle>
  Lane* take(OnIdle on_idle);
  /// For a host that works while it waits: null when `ended`, which `end_host` sets.
  template <class OnIdle>
  Lane* take_as_host(const std::atomic<bool>& ended, OnIdle on_idle);
  void worker_begins();  ///< one more than at first
  void host_begins();
  void host_ends();
  void end_host(std::atomic<bool>& ended);
  /// Whether a lane of a higher level waits.
  bool higher_than(std::uint8_t level) const {
    return (levels_.load(std::memory_order_relaxed) & ((1u << level) - 1)) != 0;
  }
  bool any() const { return levels_.load(std::memory_order_relaxed) != 0; }
  /// Nothing is ready and every worker sleeps.
  bool idle() const;
  std::uint64_t pushes() const { return pushes_.load(std::memory_order_seq_cst); }
  void close();

 private:
  Lane* pop();
  template <class Ended, class OnIdle>
  Lane* take_unless(Ended ended, OnIdle on_idle);

  std::uint32_t workers_;
  const std::uint32_t age_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  struct Fifo {
    Lane* first = nullptr;
    Lane* last = nullptr;
  };
  std::array<Fifo, kLevels> lanes_;
  std::atomic<std::uint32_t> levels_{0};  // bit l: level l is not empty
  std::atomic<std::uint64_t> pushes_{0};
  std::uint32_t sleepers_ = 0;
  std::uint32_t hosts_ = 0;  // that work while they wait
  bool closed_ = false;
};

template <class OnIdle>
Lane* ReadySet::take(OnIdle on_idle) {
  return take_unless([] { return false; }, on_idle);
}

template <class OnIdle>
Lane* ReadySet::take_as_host(const std::atomic<bool>& ended, OnIdle on_idle) {
  return take_unless([&] { return ended.load(std::memory_order_acquire); }, on_idle);
}

template <class Ended, class OnIdle>
Lane* ReadySet::take_unless(Ended ended, OnIdle on_idle) {
  const auto changed = [&] { return levels_.load(std::memory_order_relaxed) != 0 || ended(); };
  // A lane often comes right behind: look a little before sleeping.
  for (unsigned round = 0; round < 1000 && !changed(); ++round) RealAtomics::relax(round % 64);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ended()) return nullptr;
    if (Lane* lane = pop()) return lane;
    if (closed_) return nullptr;
    if (++sleepers_ == workers_ + hosts_) {
      lock.unlock();
      on_idle();
      lock.lock();
    }
    changed_.wait(lock, [&] { return changed() || closed_; });
    --sleepers_;
  }
}

}  // namespace millstream::rt
