// SPDX-License-Identifier: Apache-2.0
// Offsets of every buffer in one arena, reused only where happens-before allows it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

struct Buffer {
  std::uint64_t offset = 0;  ///< bytes from the arena's start, multiple of 64
  std::uint64_t size = 0;    ///< bytes
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct MemoryPlan {
  /// By value. nullopt: not in the arena (graph input, constant, or a shape known only at run time).
  /// A view shares its source's buffer.
  IdVec<ValueId, std::optional<Buffer>> buffers;
  std::uint64_t peak_bytes = 0;           ///< arena size
  std::uint64_t single_stream_bytes = 0;  ///< arena size of the one-stream plan by the same planner
  std::uint64_t lower_bound_bytes = 0;    ///< most bytes alive at one node of the execution order: no plan that allows it needs less
  /// The orders that buffer reuse relies on: `first` uses a buffer before `second` writes. Without those within one stream.
  std::vector<Requirement> reuse;
};

struct MemoryOptions {
  std::optional<std::uint64_t> max_bytes;  ///< E34 naming the largest buffers when the arena exceeds it
  bool reuse = true;
};

/// A schedule with control flow gets no buffers: each launch makes its outputs.
Result<MemoryPlan> plan_memory(const Graph& graph, const Schedule& schedule,
                               const MemoryOptions& options);

/// Pairwise check that overlapping buffers are ordered, by code that does not share the planner.
std::vector<Violation> verify(const Graph& graph, const Schedule& schedule, const MemoryPlan& plan);

/// Compiled plan on disk: version, graph hash, schedule, memory plan, certificates. See docs/plan-file.md.
struct Plan {
  std::uint64_t graph_hash = 0;
  std::string model_path;  ///< relative to the plan's folder
  std::vector<std::pair<std::string, std::int64_t>> dims;  ///< --dim bindings the model was read with
  StreamAssignment assignment;
  SyncPlan sync;
  Schedule schedule;
  MemoryPlan memory;
};
/// Writes atomically (temporary file, rename).
Result<void> write_plan(const std::string& path, const Plan& plan);
/// Bounds-checked read; does not trust anything in the file. Errors: io, bad_model (truncated, version).
Result<Plan> read_plan(const std::string& path);
/// Refuses a plan that is not this graph's (E35), then re-checks every certificate, the schedule and the
/// memory plan. Shares no code with the reducer and planner.
Result<void> verify_plan(const Graph& graph, const Plan& plan, const Target* target);

}  // namespace millstream
