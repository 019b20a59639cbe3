// SPDX-License-Identifier: Apache-2.0
// What tests of waiting hosts and devices share.
#pragma once

#include <chrono>
#include <ctime>
#include <future>

#include "tests/conformance/runtime_recording.h"

namespace millstream {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline const KernelFunction kNothing{"nothing", [](const KernelCall&) -> Result<void> { return {}; }};

// Fails the test instead of hanging it; what hangs is left behind.
template <class F>
void within(seconds limit, F call, const std::string& what = "it") {
  auto task = std::make_shared<std::packaged_task<void()>>(std::move(call));
  std::future<void> done = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (done.wait_for(limit) == std::future_status::ready) return done.get();
  std::fprintf(stderr, "%s hangs\n", what.c_str());
  std::abort();
}

inline ErrorCode code(const Result<void>& answer) { return answer.ok() ? ErrorCode{} : answer.error().code; }

// What all threads of the process take on the cores while it is called.
template <class F>
std::clock_t cpu_time_of(F call) {
  const std::clock_t begin = std::clock();
  call();
  return std::clock() - begin;
}

}  // namespace millstream
