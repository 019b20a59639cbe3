// SPDX-License-Identifier: Apache-2.0
// What an Executable holds between runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "millstream/exec/control_values.h"
#include "millstream/exec/executable.h"
#include "millstream/exec/node_call.h"

namespace millstream {

/// Writes to `tensors` during a run: a value's slot by its producer, and by its last reader when it is
/// dropped; both ordered by the schedule and the counters. What control flow moves, it moves on the stream that jumps, with
/// all that reads it behind or done. Nothing else is shared between streams.
struct Executable::State {
  const Graph& graph;
  const Schedule& schedule;
  Backend& backend;

  ControlValues control;
  std::shared_ptr<std::byte> arena;
  std::uint64_t arena_bytes = 0;
  TensorTable tensors;                   ///< by slot (control.slot)
  std::vector<NodeCall> calls;
  IdVec<NodeId, std::uint32_t> call_of;  ///< kNoCall: not launched, or nothing to run
  static constexpr std::uint32_t kNoCall = 0xffffffffu;
  std::vector<StreamScratch> scratch;    ///< by physical stream

  /// Values whose bytes lie outside the arena and go after their last reader: slot in `readers`, by value. Only those that
  /// launches of their own scope read, and nothing else: such a reader runs as often as the producer. Others stay until
  /// they are made again, or the run is over.
  IdVec<ValueId, std::uint32_t> counter_of;
  static constexpr std::uint32_t kNoCounter = 0xffffffffu;
  std::vector<std::uint32_t> reader_count;                 ///< by counter
  std::unique_ptr<std::atomic<std::uint32_t>[]> readers;   ///< left since the value was made
  std::vector<ValueId> counted;                            ///< by counter
  std::vector<std::uint32_t> drop_begin;                   ///< by call, into drops; one more at the end
  std::vector<std::uint32_t> drops;                        ///< counters that a call takes one from

  std::mutex one_run;
};

}  // namespace millstream
