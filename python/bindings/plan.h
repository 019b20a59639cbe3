// SPDX-License-Identifier: Apache-2.0
// A compiled plan with all that its questions need.
#pragma once

#include "python/bindings/bindings.h"

namespace millstream::python {

/// Never changed after it is made. `graph` is the prepared one, whose ids the plan's parts use; Python knows nodes by the
/// ids of the graph it made.
struct Plan {
  Graph graph;
  Target target;
  CompileOptions options;
  Compiled compiled;
  IdVec<NodeId, std::optional<std::uint32_t>> given;       ///< Python's id of a prepared node
  std::vector<NodeId> prepared;                            ///< the prepared node of Python's id
  IdVec<NodeId, std::optional<PhysicalStreamId>> stream;   ///< where a prepared node is launched
};

/// Processors this process may use. Needs the GIL.
std::uint32_t machine_cores();

}  // namespace millstream::python
