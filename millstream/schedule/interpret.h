// SPDX-License-Identifier: Apache-2.0
// The oracle for schedules with control flow: runs every execution of a small one. Shares no code with the
// reducer and the verifier; quadratic in the tasks that run, exponential in the decisions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

struct InterpretOptions {
  std::uint32_t iterations = 3;      ///< a loop runs 0, 1, ... this many times, every number tried
  std::uint64_t executions = 20000;  ///< gives up behind these
};

struct Interpretation {
  struct Finding {
    enum class Kind : std::uint8_t {
      lost_order,   ///< both ends of a dependency run and nothing orders them
      deadlock,     ///< streams that run and cannot move
      lost_start,   ///< a stream may still run when it is started again
      stale_event,  ///< a wait may take a record that is not its own
      wrong_count,  ///< a node runs more or less often than the graph says
      malformed,    ///< a jump or start that names nothing
    };
    Kind kind = Kind::lost_order;
    std::string message;
    std::optional<NodeId> first;
    std::optional<NodeId> second;
    std::vector<std::uint32_t> decisions;  ///< of the execution, in the order they were asked for
  };
  std::vector<Finding> findings;  ///< each message once, by the first execution that shows it
  std::uint64_t executions = 0;
  bool complete = true;  ///< every execution within the bounds was run
  bool ok() const { return findings.empty(); }
};

/// Tries every outcome of every branch and switch (the two sides of one predicate together) and every number
/// of iterations up to the bound. What must be ordered in an execution: each run of a node after the latest
/// run of what it depends on, as if the nodes ran one by one in execution order; with stream switches, runs
/// of one iteration. The order is that of the execution's own partial order (streams, record -> wait,
/// starts), not of one interleaving. StreamSwitch and labels that loop may not be mixed.
Interpretation interpret(const Graph& graph, const Schedule& schedule, const InterpretOptions& options = {});

}  // namespace millstream
