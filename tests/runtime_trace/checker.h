// SPDX-License-Identifier: Apache-2.0
// Whether a trace of the runtime is one that its rules allow. Knows the rules and the trace, and nothing of how the
// runtime works.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "millstream/runtime/trace_recorder.h"

namespace millstream::rt {

struct TraceAssumptions {
  /// One thread submits and runs everything (sim with one host): nothing happens between a decision and its stamp.
  bool one_thread = false;
  /// Host functions have workers of their own (cpu).
  bool callback_pool = false;
  /// Every task has been waited for: none may be left.
  bool complete = true;
};

/// nullopt: allowed. Else the rule, and the tasks that break it:
///   stamps, once (run or dropped exactly once), O1 order, O3 submit, O4 sync and query, O5 record and wait, O6 callback,
///   O7 what a sync covers, O8 context sync, O9 failed tasks are over, O10 executions one after the other and in the order
///   asked for, activation (what starts a stream of a model), label, latch, notify, drop (only for a cause), stop (what must
///   be dropped), mode (which failures stop).
std::optional<std::string> check_trace(std::span<const TraceEvent> trace, TraceAssumptions assume = {});

}  // namespace millstream::rt
