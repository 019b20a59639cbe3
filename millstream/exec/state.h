// SPDX-License-Identifier: Apache-2.0
// What an Executable holds between runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "millstream/exec/executable.h"
#include "millstream/exec/node_call.h"

namespace millstream {

/// Writes to `tensors` during a run: a value's slot by its producer, and by its last reader when it is
/// dropped; both ordered by the schedule and the counters. Nothing else is shared between streams.
struct Executable::State {
  const Graph& graph;
  const Schedule& schedule;
  Backend& backend;

  std::shared_ptr<std::byte> arena;
  std::uint64_t arena_bytes = 0;
  TensorTable tensors;
  std::vector<NodeCall> calls;
  IdVec<NodeId, std::uint32_t> call_of;  ///< kNoCall: not launched, or nothing to run
  static constexpr std::uint32_t kNoCall = 0xffffffffu;
  std::vector<StreamScratch> scratch;    ///< by physical stream

  /// Values whose bytes lie outside the arena and go after their last reader: slot in `readers`, by value.
  IdVec<ValueId, std::uint32_t> counter_of;
  static constexpr std::uint32_t kNoCounter = 0xffffffffu;
  std::vector<std::uint32_t> reader_count;                 ///< by counter
  std::unique_ptr<std::atomic<std::uint32_t>[]> readers;   ///< left in this run
  std::vector<ValueId> counted;                            ///< by counter
  std::vector<std::uint32_t> drop_begin;                   ///< by call, into drops; one more at the end
  std::vector<std::uint32_t> drops;                        ///< counters that a call takes one from

  std::mutex one_run;
};

}  // namespace millstream
