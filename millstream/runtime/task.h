// SPDX-License-Identifier: Apache-2.0
// One task of a stream: 64 bytes, plain data. What it refers to is owned by it and given back by `release`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "millstream/runtime/awaited.h"
#include "millstream/runtime/kernel_function.h"

namespace millstream::rt {

struct Lane;
class NotifyState;

enum class TaskKind : std::uint8_t {
  kernel,
  copy,
  fill,
  record,         // publishes a Completion
  wait,           // for a Completion
  latch_reset,
  notify_record,
  notify_wait,
  host_func,
  marker,         // a host's synchronise: publishes, is never dropped silently, does not count as a task
};

std::string_view to_string(TaskKind kind);

struct Task {
  struct Launch {
    const KernelFunction* kernel;
    std::uint32_t blocks;
    std::uint32_t bytes;
    // Up to kInline bytes lie here, more on the heap.
    union {
      alignas(8) std::byte bytes_here[24];
      std::byte* elsewhere;
    };
  };
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  struct Fill {
    void* to;
    std::size_t bytes;
    std::int32_t value;
  };
  struct Sync {
    Completion* completion;     // owned reference
    std::uint64_t timeout_ns;   // of a wait; 0: never
    bool timed;                 // a record keeps its time
    bool counted;               // a record gives its event id back
  };
  struct HostFunc {
    void (*function)(void*);
    void* argument;
  };
  struct NotifyUse {
    NotifyState* notify;        // owned reference
    std::uint64_t timeout_ns;
  };

  static constexpr std::uint32_t kInline = sizeof(Launch::bytes_here);

  TaskKind kind;
  std::uint64_t sequence;       // from 0 in each stream
  union {
    Launch launch;
    Copy copy;
    Fill fill;
    Sync sync;
    HostFunc host_func;
    NotifyUse notify;
  };

  std::span<const std::byte> arguments() const {
    return {launch.bytes <= kInline ? launch.bytes_here : launch.elsewhere, launch.bytes};
  }
  /// What it is called in messages: a kernel's name, else the kind.
  std::string_view name() const { return kind == TaskKind::kernel ? launch.kernel->name : to_string(kind); }
};
static_assert(std::is_trivially_copyable_v<Task> && sizeof(Task) <= 64);

/// Gives back what the task owns. After it the task may be overwritten.
void release(Task& task);

}  // namespace millstream::rt
