// SPDX-License-Identifier: Apache-2.0
// A fixed set of workers and the queue of streams that can go on. Streams are entries here, never threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace millstream {

/// Streams that are ready, taken first in first out, each by one worker at a time. Ends when no stream is
/// ready and none is held: all have finished, or the rest waits for ever.
class ReadyStreams {
 public:
  /// For a run of `streams` streams, all ready. Not while workers use it.
  void start(std::uint32_t streams);
  /// The next stream for a worker that holds none; nullopt: the run has ended. Spins shortly, then sleeps.
  std::optional<std::uint32_t> take();
  /// Gives the held stream up (it finished or was parked before) and takes the next.
  std::optional<std::uint32_t> swap();
  /// A parked stream can go on. Only by a worker that holds a stream.
  void push(std::uint32_t stream);

 private:
  std::optional<std::uint32_t> next(std::unique_lock<std::mutex> lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint32_t> ring_;  // each stream is in it at most once
  std::uint32_t head_ = 0;
  std::atomic<std::uint32_t> size_{0};
  std::atomic<bool> ended_{true};
  std::uint32_t held_ = 0;
  std::uint32_t sleepers_ = 0;
};

/// `workers` - 1 threads, made once; the thread that calls `run` is worker 0.
class WorkerPool {
 public:
  /// Each worker's OpenMP team has `threads_per_op` threads; the caller's size is set for a run only.
  WorkerPool(std::uint32_t workers, std::uint32_t threads_per_op);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::uint32_t workers() const { return workers_; }
  /// Calls job(worker) on every worker and returns when all have come back. One run at a time.
  void run(const std::function<void(std::uint32_t)>& job);
  /// Calls job(0) on the calling thread only.
  void run_alone(const std::function<void(std::uint32_t)>& job);

 private:
  void as_worker_zero(const std::function<void(std::uint32_t)>& job);
  void serve(std::uint32_t worker);

  const std::uint32_t workers_;
  const int threads_per_op_;
  std::mutex one_run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(std::uint32_t)>* job_ = nullptr;
  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::uint32_t> busy_{0};
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// Waits a little without giving the core away, until `done()`. Returns whether it was.
template <class Done>
bool spin_until(const Done& done) {
  for (int i = 0; i < 2000; ++i) {
    if (done()) return true;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

}  // namespace millstream
