// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/task_queue.h"

#include <new>

namespace millstream::rt {

TaskQueue::Block* TaskQueue::new_block() {
  auto* block = new (std::nothrow) Block;
  if (block != nullptr) block->next = nullptr;
  return block;
}

TaskQueue::~TaskQueue() {
  for (Block* block = head_ != nullptr ? head_ : first_; block != nullptr;) {
    Block* const next = block->next;
    delete block;
    block = next;
  }
  delete spare_.load(std::memory_order_relaxed);
}

bool TaskQueue::reserve() {
  if (first_ != nullptr) return true;
  first_ = tail_ = new_block();
  return first_ != nullptr;
}

Task* TaskQueue::push(const Task& task) {
  if (!reserve()) return nullptr;
  if (tail_index_ == kTasks) {
    Block* block = spare_.exchange(nullptr, std::memory_order_acquire);
    if (block == nullptr) block = new_block();
    if (block == nullptr) return nullptr;
    block->next = nullptr;
    tail_->next = block;
    tail_ = block;
    tail_index_ = 0;
  }
  Task* const place = &tail_->tasks[tail_index_++];
  *place = task;
  return place;
}

Task& TaskQueue::front() {
  if (head_ == nullptr) head_ = first_;
  if (head_index_ == kTasks) {
    Block* const emptied = head_;
    head_ = head_->next;
    head_index_ = 0;
    delete spare_.exchange(emptied, std::memory_order_acq_rel);
  }
  return head_->tasks[head_index_];
}

void TaskQueue::pop() { ++head_index_; }

}  // namespace millstream::rt
