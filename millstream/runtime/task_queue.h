// SPDX-License-Identifier: Apache-2.0
// The tasks of one stream, first in first out, in blocks of 4 KiB: any number of producers under the queue's lock,
// one consumer, who holds the lane's run token. The token tells the consumer how many there are.
#pragma once

#include <cstdint>
#include <memory>

#include "millstream/runtime/task.h"

namespace millstream::rt {

class TaskQueue {
 public:
  TaskQueue() = default;
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// Producers, with the lock held: where the task lies now. Null: the system gives no memory; nothing changed.
  Task* push(const Task& task);
  /// Makes the first block, so that the first push allocates nothing.
  bool reserve();
  /// Consumer: the first task. There is one.
  Task& front();
  /// Consumer: the first task is over.
  void pop();

  /// Every task from the first on, while nobody consumes (the lane is parked), with the lock held.
  template <class Visit>
  void for_each(Visit visit) const {
    const Block* block = head_ != nullptr ? head_ : first_;
    for (std::uint32_t i = head_ != nullptr ? head_index_ : 0; block != nullptr;) {
      if (block == tail_ && i == tail_index_) return;
      if (i == kTasks) {
        block = block->next;
        i = 0;
        continue;
      }
      visit(block->tasks[i++]);
    }
  }

  SpinLock lock;

 private:
  static constexpr std::uint32_t kTasks = 63;
  struct Block {
    Task tasks[kTasks];
    Block* next;
  };
  static Block* new_block();

  // Producers'.
  Block* first_ = nullptr;
  Block* tail_ = nullptr;
  std::uint32_t tail_index_ = 0;
  // The consumer's.
  Block* head_ = nullptr;
  std::uint32_t head_index_ = 0;
  // An emptied block that goes back to the producers.
  std::atomic<Block*> spare_{nullptr};
};

}  // namespace millstream::rt
