// SPDX-License-Identifier: Apache-2.0
// What the checker's rules share: a task's life in a trace, and how a rule refuses it.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "millstream/runtime/trace_recorder.h"

namespace millstream::rt {

using Kind = TraceEvent::Kind;
using Stamp = std::uint64_t;
constexpr Stamp kNever = std::numeric_limits<Stamp>::max();

struct Broken {
  std::string text;
};
template <class... Args>
[[noreturn]] void refuse(std::string_view rule, fmt::format_string<Args...> text, Args&&... args) {
  throw Broken{std::string(rule) + ": " + fmt::format(text, std::forward<Args>(args)...)};
}

/// One run of a task: a stream's have one each, a tape's one each time that they are come to.
struct Life {
  const TraceEvent* submitted = nullptr;  ///< of a tape's: its first event
  const TraceEvent* began = nullptr;
  const TraceEvent* ended = nullptr;
  const TraceEvent* dropped = nullptr;
  const TraceEvent* failed = nullptr;
  const TraceEvent* parked = nullptr;  ///< the last time

  Stamp begin() const { return began != nullptr ? began->stamp : dropped != nullptr ? dropped->stamp : kNever; }
  Stamp over() const { return ended != nullptr ? ended->stamp : dropped != nullptr ? dropped->stamp : kNever; }
};

/// With what the world around it says: not before `arrives` its stream came to it, and by `known` its effect is there for
/// all, for its stream has come to something else.
struct Run {
  Life life;
  Stamp arrives = 0;
  Stamp known = kNever;
};

inline std::string name(const TraceEvent& e) {
  std::string text = fmt::format("task {} ({}) of stream {}", e.sequence, e.name.empty() ? to_string(e.task) : e.name, e.stream);
  if (e.execution != 0) text += fmt::format(" in execution {} of model {}", e.execution, e.model);
  return text;
}

}  // namespace millstream::rt
