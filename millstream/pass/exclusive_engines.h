// SPDX-License-Identifier: Apache-2.0
// Engines that work beside the others have streams of their own; a pass may put other nodes there.
#pragma once

#include <optional>

#include "millstream/assign/assignment.h"
#include "millstream/target/target.h"

namespace millstream {

class ExclusiveEngines {
 public:
  /// Where the target refuses the graph's engines, none is exclusive.
  ExclusiveEngines(const Graph& graph, const Target& target);

  /// A warning about the first stream that an engine had to itself on every stream before, and shares now: the plan is right
  /// all the same. O(nodes).
  std::optional<Error> newly_shared(const StreamAssignment& before, const StreamAssignment& after) const;

 private:
  struct Shared {
    EngineId engine;
    StreamId stream;
    NodeId own, other;
  };
  /// By engine, the first stream that it shares.
  std::vector<std::optional<Shared>> shared(const StreamAssignment& on) const;

  const Graph& graph_;
  const Target& target_;
  IdVec<NodeId, EngineId> engine_;  // empty: no engine of the target works beside the others
};

}  // namespace millstream
