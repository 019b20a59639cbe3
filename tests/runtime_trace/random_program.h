// SPDX-License-Identifier: Apache-2.0
// Programs against the runtime, drawn from a seed: streams of two contexts, priorities, events of both kinds, notifies,
// callbacks, copies, failures, aborts, deadlines, model instances, from one to three host threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millstream/runtime/device.h"
#include "millstream/runtime/trace_recorder.h"

namespace millstream::rt {

struct ProgramPlace {
  BackendId backend = BackendId::cpu;
  std::int32_t ordinal = 0;
  std::uint32_t workers = 0;  ///< 0: 1, 2 or 8, by the seed
  std::uint32_t size = 40;    ///< calls a host thread, about
};

struct ProgramRun {
  std::vector<TraceEvent> trace;
  bool one_host = false;
  /// What went wrong, if something did: a call's answer, a number, the checker's word. Starts with the seed.
  std::optional<std::string> wrong;
};

/// Runs it to its end, closes its device and checks the trace.
ProgramRun run_random_program(std::uint64_t seed, const ProgramPlace& place);

/// As text: equal for equal runs.
std::string to_text(const std::vector<TraceEvent>& trace);

/// Ends the process, with the seed and what every stream had left to do, when a program takes too long.
class Watchdog {
 public:
  explicit Watchdog(std::uint32_t seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

}  // namespace millstream::rt
