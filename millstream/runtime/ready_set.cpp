// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/ready_set.h"

namespace millstream::rt {

void ReadySet::push(Lane& lane) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    pushes_.fetch_add(1, std::memory_order_seq_cst);
    lane.next_ready = nullptr;
    lane.passed_over = 0;
    Fifo& fifo = lanes_[lane.level];
    (fifo.last == nullptr ? fifo.first : fifo.last->next_ready) = &lane;
    fifo.last = &lane;
    levels_.store(levels_.load(std::memory_order_relaxed) | (1u << lane.level), std::memory_order_relaxed);
    wake = sleepers_ != 0;
  }
  if (wake) changed_.notify_one();
}

Lane* ReadySet::pop() {
  const std::uint32_t levels = levels_.load(std::memory_order_relaxed);
  if (levels == 0) return nullptr;
  std::uint32_t level = static_cast<std::uint32_t>(__builtin_ctz(levels));
  if (age_ != 0) {
    // The lowest level whose turn has come; what stays behind ages.
    for (std::uint32_t l = level + 1; l < kLevels; ++l) {
      if (lanes_[l].first != nullptr && lanes_[l].first->passed_over >= age_) level = l;
    }
    for (std::uint32_t l = level + 1; l < kLevels; ++l) {
      if (lanes_[l].first != nullptr) ++lanes_[l].first->passed_over;
    }
  }
  Fifo& fifo = lanes_[level];
  Lane* const lane = fifo.first;
  fifo.first = lane->next_ready;
  if (fifo.first == nullptr) {
    fifo.last = nullptr;
    levels_.store(levels & ~(1u << level), std::memory_order_relaxed);
  }
  return lane;
}

bool ReadySet::idle() const {
  const std::lock_guard lock(mutex_);
  return levels_.load(std::memory_order_relaxed) == 0 && sleepers_ == workers_ + hosts_;
}

void ReadySet::worker_begins() {
  const std::lock_guard lock(mutex_);
  ++workers_;
}

void ReadySet::host_begins() {
  const std::lock_guard lock(mutex_);
  ++hosts_;
}

void ReadySet::host_ends() {
  const std::lock_guard lock(mutex_);
  --hosts_;
}

void ReadySet::end_host(std::atomic<bool>& ended) {
  const std::lock_guard lock(mutex_);
  ended.store(true, std::memory_order_release);
  // All: the host may have been woken for a lane that it leaves to another now.
  changed_.notify_all();
}

void ReadySet::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace millstream::rt
