// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/task.h"

#include <fmt/format.h>

#include "millstream/runtime/model_state.h"
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
    case TaskKind::execute: return "execution";
    case TaskKind::site_record: return "record";
    case TaskKind::site_wait: return "wait";
    case TaskKind::outside_wait: return "wait";
    case TaskKind::activate: return "activate";
    case TaskKind::switch_to: return "switch";
    case TaskKind::switch_n: return "switch n";
    case TaskKind::label: return "label";
    case TaskKind::jump: return "jump";
    case TaskKind::jump_by_index: return "jump by index";
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
    case TaskKind::execute:
      task.execute.completion->drop();
      delete task.execute.keep;
      return;
    case TaskKind::outside_wait:
      if (task.outside.seen != nullptr) task.outside.seen->drop();
      return;
    // What a tape's tasks refer to is the model's.
    case TaskKind::site_record:
    case TaskKind::site_wait:
    case TaskKind::activate:
    case TaskKind::switch_to:
    case TaskKind::switch_n:
    case TaskKind::label:
    case TaskKind::jump:
    case TaskKind::jump_by_index:
    case TaskKind::copy:
    case TaskKind::fill:
    case TaskKind::host_func:
      return;
  }
}

Waiter* Completion::publish(std::uint64_t at_ns, std::unique_ptr<Error> why, std::uint64_t of_context) {
  const std::lock_guard lock(lock_);
  if (what_ == What::latch) --queued_;
  if (signal.done()) {  // a latch
    if (!why && error) {
      error.reset();
      time_ns = at_ns;
    }
    return nullptr;
  }
  time_ns = at_ns;
  error = std::move(why);
  context = of_context;
  return signal.publish();
}

void Completion::reset() {
  const std::lock_guard lock(lock_);
  signal.reset();
}

void Completion::expect() {
  const std::lock_guard lock(lock_);
  ++queued_;
}

void Completion::expect_no_more() {
  const std::lock_guard lock(lock_);
  --queued_;
}

bool Completion::expected() {
  const std::lock_guard lock(lock_);
  return queued_ != 0;
}

std::optional<Completion::Failure> Completion::failure() {
  const std::lock_guard lock(lock_);
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
  }
  return "";
}

}  // namespace millstream::rt
