// SPDX-License-Identifier: Apache-2.0
// Graph to plan: the stages in order, each timed. The only place that knows their order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/pass/pass.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/sync_plan.h"
#include "millstream/target/target.h"

namespace millstream {

struct CompileOptions {
  AssignOptions assign;
  SyncOptions sync;
  LowerOptions lower;
  MemoryOptions memory;
  /// Stream passes behind the rules. They do not run where strategy single decides.
  PassOptions passes;
  /// Run the independent verifier on what the stages made: E99 if it objects to more than the pairs that compat loses.
  bool verify = true;
  /// For who writes dumps of the stages; 0: no limit.
  std::uint32_t max_dump_files = 0, max_dump_bytes = 0;
  std::vector<Error> warnings;  ///< of set_option; compile hands them on
};

struct Compiled {
  StreamAssignment assignment;
  SyncPlan sync;
  Schedule schedule;
  MemoryPlan memory;
  /// Stage name and milliseconds, in order.
  std::vector<std::pair<std::string, double>> stage_ms;
  double total_ms() const;
};

/// What the rule chain works on: nested graphs become scopes of one graph, with label, jump and activation nodes
/// (flatten), and the nodes of each parallel group follow one another (group_chain). Errors: those of flatten.
Result<Graph> lower_for_chain(Graph graph);

/// The graph that a plan with this hash is of: lower_for_chain of the model's graph when the rule chain made the plan,
/// otherwise the model's graph itself; also where neither has the hash, which verify_plan then says.
Result<Graph> graph_of_plan(Graph graph, std::uint64_t plan_hash);

/// The graph that compile is given: lower_for_chain of it when strategy ge decides (chosen_strategy), or strategy single
/// on a target with engines_in_input; otherwise the graph itself, whose nested graphs the host drives. Ids of a plan are
/// those of the prepared graph.
Result<Graph> prepare(Graph graph, const Target& target, const CompileOptions& options);

/// assign_streams -> run_passes. Errors: those of the two.
Result<StreamAssignment> decide_streams(const Graph& graph, const Target& target, const CompileOptions& options);

/// decide_streams -> plan_sync -> lower -> plan_memory -> check. Errors: those of the stages; stream_pass where
/// no plan can be made of what passes decided. With policy rollback the plan is then made of what the rules decided.
Result<Compiled> compile(const Graph& graph, const Target& target, const CompileOptions& options);

/// The stages behind an assignment that already stands: the one-stream baseline, a user's own.
Result<Compiled> compile_assignment(const Graph& graph, const Target& target, StreamAssignment assignment,
                                    const CompileOptions& options);

/// One row of the option table (docs/options.md is printed from it).
struct OptionRow {
  std::string_view key;        ///< native, --set KEY=VALUE
  std::string_view ecosystem;  ///< "" when there is none
  std::string_view flag;       ///< command line alias, "" when there is none
  std::string_view values;     ///< legal values, for messages
  std::string_view otherwise;  ///< default
  std::string_view what;
  /// Errors: bad_option (E12) naming key, value and legal values.
  Result<void> (*apply)(CompileOptions&, const OptionRow&, std::string_view value);
  std::string_view environment = "";  ///< variable that the command line reads, "" when there is none
  bool any_text = false;  ///< under an ecosystem key, a text that is neither true nor false warns and counts as false
};
const std::vector<OptionRow>& option_table();
/// The row of a native or ecosystem key, or null.
const OptionRow* find_option(std::string_view key);
/// Applies one KEY=VALUE. Errors: bad_option; an unknown key lists those there are.
Result<void> set_option(CompileOptions& options, std::string_view key, std::string_view value);
/// docs/options.md.
std::string options_markdown();

}  // namespace millstream
