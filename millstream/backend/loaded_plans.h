// SPDX-License-Identifier: Apache-2.0
// The plans that are loaded on one device: each recorded once, their streams shared.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "millstream/backend/plan_streams.h"
#include "millstream/backend/program.h"

namespace millstream {

/// Not thread-safe. Ends before its context.
class LoadedPlans {
 public:
  /// Used in turns, so many plans stay loaded; one more, and the one that was not used for longest is unloaded.
  static constexpr std::size_t kMost = 16;

  explicit LoadedPlans(Context& context) : context_(context), streams_(context, PlanStreams::Plans::several) {}

  /// The program of this schedule, recorded now if it is not loaded; valid until the next call. A schedule is the same
  /// while it, and what its recording depends on of the graph, is equal. Errors: those of Program::record. O(tasks).
  Result<Program*> load(const Graph& graph, const Schedule& schedule);

  std::size_t recordings() const { return next_model_; }
  std::size_t streams_made() const { return streams_.made(); }

 private:
  struct Plan {
    std::uint32_t model = 0;
    std::size_t nodes = 0;
    std::vector<NodeId> order;
    std::vector<std::string> control_types;  // by entry of Schedule::controls
    Schedule schedule;
    std::unique_ptr<Program> program;
  };
  void unload_last();

  Context& context_;
  PlanStreams streams_;
  std::list<Plan> plans_;  // those used last first; ends before its streams
  std::uint32_t next_model_ = 0;
};

}  // namespace millstream
