// SPDX-License-Identifier: Apache-2.0
// A back-end runs the tasks of a Schedule in an order that stream order and events allow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "millstream/core/result.h"
#include "millstream/schedule/schedule.h"
#include "millstream/target/target.h"
#include "millstream/trace/trace.h"

namespace millstream {

/// What a back-end calls for each launch. Called from worker threads, at most once at a time a stream;
/// an error stops the run.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual Result<void> launch(NodeId node, PhysicalStreamId stream) = 0;
  /// Called before each task of control flow but activations, `node` being what it stands for: what the node does with
  /// values, and what decides its way. A branch: the place in its list of labels, the last one where it is larger. A
  /// StreamSwitch: 1 where it starts its target, else 0; a StreamSwitchN: the place in its list of streams.
  virtual Result<std::uint32_t> steer(NodeId node);
};

struct ExecuteOptions {
  bool trace = false;
  /// Seeded random delays before tasks and between a record's effects and its publication (stress).
  std::optional<std::uint64_t> delay_seed;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Runs every task; returns when all are done or one failed (then the first error by stream order,
  /// after running launches finished). Never hangs on a schedule that `check` accepts, with any number of
  /// workers >= 1; a schedule that deadlocks is reported (E38) with stream, last task and awaited event. Control flow is
  /// decided on the device's streams; a loop that never ends runs until a launch fails.
  virtual Result<Trace> execute(const Graph& graph, const Schedule& schedule, Launcher& launcher,
                                const ExecuteOptions& options) = 0;
};

/// A fixed pool of `workers` threads, made once; streams are queues, never threads. Each worker's OpenMP
/// team has `threads_per_op` threads; 0: as the program left it.
std::unique_ptr<Backend> make_cpu_backend(std::uint32_t workers, std::uint32_t threads_per_op);

/// Virtual time: node durations from `durations_us` (see tune or @cost), record/wait/hand-off latencies and engine slots
/// of the target's device (by default its costs and cores). Calls the launcher too when `functional`.
std::unique_ptr<Backend> make_sim_backend(const Target& target, IdVec<NodeId, double> durations_us,
                                          bool functional);

}  // namespace millstream
