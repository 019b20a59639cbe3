// SPDX-License-Identifier: Apache-2.0
// A device description: engines, capacities, limits, costs, the runtime's device. A value read from TOML; built-ins are
// the files in targets/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/core/id.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/target/profile.h"

namespace millstream {

using EngineId = Id<struct EngineTag>;

struct Engine {
  std::string name;
  std::string scheduler = "TS_1";
  bool independent = false;  ///< clusters of it go to streams of their own
  bool attach = false;       ///< may follow a predecessor of another engine
  bool skip = false;         ///< its nodes need no stream of their own
  bool self_synchronising = false;  ///< its kernels order their parts on attached streams themselves
  int preference = 0;        ///< lower is preferred when several engines take an operator
  double units = 1;          ///< operators this engine runs at once (cores); sim and bounds
  /// Patterns of the types it takes: a type, or a beginning and "*"; with "!" in front what it refuses.
  std::vector<std::string> op_types;
};

/// 2^32 - 1 ("none" in TOML) = no limit.
struct Limits {
  std::uint32_t streams = 1024;
  std::uint32_t tasks_per_stream = 1024;
  std::uint32_t events = 65535;
  std::uint32_t notifies = 1024;
  std::uint32_t huge_streams = 0;             ///< 0: the device has no huge streams
  std::uint32_t tasks_per_huge_stream = 0;
};

/// Device tasks of a node, by operator type: a type, or a beginning and "*". The first that matches counts.
struct TaskCount {
  std::string op_type;
  std::uint32_t tasks = 1;
};

/// Default costs; virtual microseconds.
struct Costs {
  double launch_us = 1;       ///< fixed cost of one kernel
  double record_us = 0.1;     ///< stream time of a record task
  double wait_us = 0.1;       ///< stream time of a satisfied wait task
  double hand_off_us = 2;     ///< latency from a record to the start of a task that was waiting
  double flops_per_us = 1e4;  ///< one unit (core); rates may be infinite
  double bytes_per_us = 1e4;  ///< one unit (core)
  double total_bytes_per_us = 2e4;  ///< whole device: what concurrent operators share
  double parallel_us = 2;     ///< extra fixed cost of running one operator on more than one unit
  double parallel_share = 0.9;  ///< share of an operator's work that divides over units (Amdahl)
};

struct Target {
  std::string name;
  IdVec<EngineId, Engine> engines;
  Limits limits;
  std::uint32_t tasks_per_node = 1;     ///< device tasks of a node without a row in task_counts
  std::vector<TaskCount> task_counts;
  Costs costs;
  std::uint32_t cores = 1;  ///< units that operators share; the CLI sets it from the machine for `cpu`
  bool engines_in_input = false;  ///< strategy default `ge`
  Profile device;           ///< read from TOML, its latencies are the costs' where it has none of its own

  /// Device tasks of a node of this type: the first row of task_counts that matches, else tasks_per_node.
  std::uint32_t tasks_of(std::string_view op_type) const;
};

/// A built-in's name, a path to a TOML file or to an engine table (.json; the rest is npu's). Errors: bad_target naming file, line and key; unknown name
/// lists the built-ins.
Result<Target> load_target(std::string_view name_or_path);
Result<Target> parse_target(std::string_view toml, const std::string& file);
std::string to_toml(const Target& target);
/// The target's device as the runtime opens it: without engine slots of its own it runs as many launches as it has cores.
Profile device_of(const Target& target);

/// The engine of each node: the annotation if the target has that engine, else the preferred engine that
/// takes the type. An annotation the target lacks is refused only when the target has engines_in_input.
/// `excluded` takes no operator by its type. Errors: unsupported_operator listing every node no engine takes, with
/// reasons.
Result<IdVec<NodeId, EngineId>> resolve_engines(const Graph& graph, const Target& target, std::string_view excluded = {});

/// The engine table of the ecosystem: schedule_units[] {id, cal_engines[] {id, independent, skip_assign_stream,
/// attach}}; other members are ignored. Flags and schedulers of the target's engines become the file's; engines that
/// only the file has are appended without operator types, for inputs that name them. Errors: bad_target: schedule_units missing or no array; a
/// scheduler without id or twice; cal_engines missing or no array; an engine without id, or in a scheduler twice; an engine
/// of the target (`require_all`) in no scheduler, or in several.
Result<Target> import_engines_json(Target target, std::string_view json, const std::string& file, bool require_all);

}  // namespace millstream
