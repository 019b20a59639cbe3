// SPDX-License-Identifier: Apache-2.0
// A device's trace as files that other tools open.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "millstream/runtime/trace_recorder.h"

namespace millstream::rt {

/// Chrome trace-event JSON (ui.perfetto.dev, chrome://tracing): a track for each stream; each task from start to end, with
/// the time of its submit; an arrow from each record to each wait for it.
std::string to_chrome_json(std::span<const TraceEvent> events, std::uint32_t device);

/// The columns of the ecosystem's op_summary up to the wait time, one row for each kernel and host function that ran, by
/// start. Times are in microseconds; the wait time is since the task before it on its stream.
std::string to_op_summary_csv(std::span<const TraceEvent> events, std::uint32_t device);

}  // namespace millstream::rt
