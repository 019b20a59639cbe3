// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/cpu_pool.h"

#include <omp.h>

#include "millstream/core/check.h"

namespace millstream {

void ReadyStreams::start(std::uint32_t streams) {
  const std::lock_guard lock(mutex_);
  ring_.resize(streams);
  for (std::uint32_t s = 0; s < streams; ++s) ring_[s] = s;
  head_ = 0;
  held_ = 0;
  size_.store(streams, std::memory_order_relaxed);
  ended_.store(streams == 0, std::memory_order_relaxed);
}

std::optional<std::uint32_t> ReadyStreams::take() { return next(std::unique_lock(mutex_)); }

std::optional<std::uint32_t> ReadyStreams::swap() {
  std::unique_lock lock(mutex_);
  --held_;
  // A record that readies a stream is made by a worker that holds one, so nothing can come any more.
  if (held_ == 0 && size_.load(std::memory_order_relaxed) == 0) {
    ended_.store(true, std::memory_order_release);
    const bool wake = sleepers_ != 0;
    lock.unlock();
    if (wake) changed_.notify_all();
    return std::nullopt;
  }
  return next(std::move(lock));
}

void ReadyStreams::push(std::uint32_t stream) {
  std::unique_lock lock(mutex_);
  const std::uint32_t size = size_.load(std::memory_order_relaxed);
  MST_CHECK(size < ring_.size(), "a stream is ready at most once");
  ring_[(head_ + size) % ring_.size()] = stream;
  size_.store(size + 1, std::memory_order_release);
  const bool wake = sleepers_ != 0;
  lock.unlock();
  if (wake) changed_.notify_one();
}

std::optional<std::uint32_t> ReadyStreams::next(std::unique_lock<std::mutex> lock) {
  const auto something = [this] {
    return ended_.load(std::memory_order_acquire) || size_.load(std::memory_order_acquire) != 0;
  };
  for (;;) {
    if (size_.load(std::memory_order_relaxed) != 0) {
      const std::uint32_t stream = ring_[head_];
      head_ = (head_ + 1) % static_cast<std::uint32_t>(ring_.size());
      size_.fetch_sub(1, std::memory_order_relaxed);
      ++held_;
      return stream;
    }
    if (ended_.load(std::memory_order_relaxed)) return std::nullopt;
    lock.unlock();
    const bool seen = spin_until(something);
    lock.lock();
    if (seen) continue;
    ++sleepers_;
    changed_.wait(lock, something);
    --sleepers_;
  }
}

WorkerPool::WorkerPool(std::uint32_t workers, std::uint32_t threads_per_op)
    : workers_(workers == 0 ? 1 : workers), threads_per_op_(threads_per_op == 0 ? 1 : static_cast<int>(threads_per_op)) {
  for (std::uint32_t w = 1; w < workers_; ++w) {
    threads_.emplace_back([this, w] { serve(w); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    runs_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void WorkerPool::run(const std::function<void(std::uint32_t)>& job) {
  const std::lock_guard one(one_run_);
  if (workers_ > 1) {
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      busy_.store(workers_ - 1, std::memory_order_relaxed);
      runs_.fetch_add(1, std::memory_order_release);
    }
    changed_.notify_all();
  }
  as_worker_zero(job);
  const auto all_back = [this] { return busy_.load(std::memory_order_acquire) == 0; };
  if (workers_ == 1 || spin_until(all_back)) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, all_back);
}

void WorkerPool::run_alone(const std::function<void(std::uint32_t)>& job) {
  const std::lock_guard one(one_run_);
  as_worker_zero(job);
}

void WorkerPool::as_worker_zero(const std::function<void(std::uint32_t)>& job) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads_per_op_);
  job(0);
  omp_set_num_threads(before);
}

void WorkerPool::serve(std::uint32_t worker) {
  omp_set_num_threads(threads_per_op_);
  for (std::uint64_t seen = 0;;) {
    const auto called = [&] { return runs_.load(std::memory_order_acquire) != seen; };
    const std::function<void(std::uint32_t)>* job = nullptr;
    spin_until(called);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, called);
      seen = runs_.load(std::memory_order_relaxed);
      if (stop_) return;
      job = job_;
    }
    (*job)(worker);
    // The last one back wakes the caller; under the lock, so that the caller cannot miss it.
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    }
  }
}

}  // namespace millstream
