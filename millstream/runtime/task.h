// SPDX-License-Identifier: Apache-2.0
// One task of a stream: 64 bytes, plain data. What it refers to is owned by it and given back by `release`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "millstream/runtime/awaited.h"
#include "millstream/runtime/kernel_function.h"

namespace millstream::rt {

struct Lane;
class NotifyState;
class ModelState;
class EventState;
class LabelState;
class RecordSite;
struct BindingState;
struct SwitchN;

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
  execute,        // an execution of a model
  // Only on tapes.
  site_record,
  site_wait,
  outside_wait,   // for an event that the model does not record
  activate,
  switch_to,
  switch_n,
  label,
  jump,
  jump_by_index,
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
  struct Execute {
    ModelState* model;          // kept alive by `keep`
    std::shared_ptr<ModelState>* keep;  // owned
    Completion* completion;     // owned reference
    bool asked;
    bool reports;               // a failed execution is a failure of this stream
  };
  struct Site {
    RecordSite* site;           // the model's
    std::uint64_t used;         // of a wait: records it has passed
    std::uint64_t execution;    // in this one
  };
  struct Outside {
    EventState* event;          // the model's
    Completion* seen;           // what it waits for now; owned reference
  };
  struct Switch {
    const void* left;
    const void* right;
    BindingState* on_true;
    BindingState* on_false;     // null: goes on
    std::uint8_t condition;     // Comparison
    std::uint8_t type;          // IntType
  };
  struct SwitchMany {
    const void* index;
    const SwitchN* cases;
    std::uint8_t type;
  };
  struct Jump {
    LabelState* label;
    const std::uint32_t* index;                    // by index: read at execution
    const std::vector<LabelState*>* labels;
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
    Execute execute;
    Site site;
    Outside outside;
    BindingState* target;       // of activate
    Switch choice;
    SwitchMany choices;
    Jump jump;
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
