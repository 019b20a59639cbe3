// SPDX-License-Identifier: Apache-2.0
// Runs a plan's nodes as Python callables on the runtime's cpu device.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <mutex>

#include "millstream/backend/backend.h"
#include "python/bindings/plan.h"

namespace millstream::python {

/// Of any thread. A run that begins while another one is under way, on another thread or inside a callable, has a device of
/// its own, so runs never wait for each other.
class Runner {
 public:
  Runner(std::shared_ptr<const Plan> plan, std::uint32_t workers);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run(const nb::sequence& calls);
  /// (node, stream, worker, start, end) of the run that ended last, by stream, then as they ran; microseconds from its begin.
  using Called = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, double, double>;
  std::vector<Called> last_trace() const;
  std::uint32_t workers() const { return workers_; }

 private:
  struct Moment;
  struct Moments;
  class Calls;

  std::unique_ptr<Backend> take_device();
  void give_back(std::unique_ptr<Backend> device, std::unique_ptr<Moments> moments);
  void abandon_devices();
  void become_process();

  const std::shared_ptr<const Plan> plan_;
  const std::uint32_t workers_;
  pid_t process_ = ::getpid();
  std::vector<std::uint32_t> without_task_;  // Python's ids
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Backend>> free_;
  std::unique_ptr<Moments> last_;
};

}  // namespace millstream::python
