// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/task.h"

#include <fmt/format.h>

#include "millstream/runtime/objects.h"

namespace millstream::rt {

std::string_view to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::kernel: return "kernel";
    case TaskKind::copy: return "copy";
    case TaskKind::fill: return "fill";
    case TaskKind::record: return "record";
    case TaskKind::wait: return "wait";
    case TaskKind::latch_reset: return "reset";
    case TaskKind::notify_record: return "notify record";
    case TaskKind::notify_wait: return "notify wait";
    case TaskKind::host_func: return "host function";
    case TaskKind::marker: return "synchronise";
  }
  return "";
}

void release(Task& task) {
  switch (task.kind) {
    case TaskKind::kernel:
      if (task.launch.bytes > Task::kInline) delete[] task.launch.elsewhere;
      return;
    case TaskKind::record:
    case TaskKind::wait:
    case TaskKind::latch_reset:
    case TaskKind::marker:
      task.sync.completion->drop();
      return;
    case TaskKind::notify_record:
    case TaskKind::notify_wait:
      task.notify.notify->drop();
      return;
    case TaskKind::copy:
    case TaskKind::fill:
    case TaskKind::host_func:
      return;
  }
}

Waiter* Completion::publish(std::uint64_t at_ns, std::unique_ptr<Error> why, std::uint32_t of_context) {
  std::unique_lock lock(lock_, std::defer_lock);
  if (what_ == What::latch) {
    lock.lock();
    if (signal.done()) {
      if (!why) error.reset();
      return nullptr;
    }
  }
  time_ns = at_ns;
  error = std::move(why);
  context = of_context;
  return signal.publish();
}

void Completion::reset() {
  const std::lock_guard lock(lock_);
  error.reset();
  signal.reset();
}

std::optional<Completion::Failure> Completion::failure() {
  std::unique_lock lock(lock_, std::defer_lock);
  if (what_ == What::latch) lock.lock();
  if (!error) return std::nullopt;
  return Failure{*error, context};
}

std::uint64_t Completion::time() {
  const std::lock_guard lock(lock_);
  return time_ns;
}

std::string Completion::describe() const {
  switch (what_) {
    case What::event: return fmt::format("a record of event {}", number_);
    case What::latch: return fmt::format("event {}", number_);
    case What::sync: return "a host's synchronise";
    case What::execution: return fmt::format("an execution of model {}", number_);
    case What::callback: return "a host function";
  }
  return "";
}

}  // namespace millstream::rt
