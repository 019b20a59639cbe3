// SPDX-License-Identifier: Apache-2.0
#include "millstream/compile/compile.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "millstream/assign/rules.h"
#include "millstream/compile/warned.h"
#include "millstream/graph/flatten.h"
#include "millstream/graph/group_chain.h"

namespace millstream {

double Compiled::total_ms() const {
  double sum = 0;
  for (const auto& [name, ms] : stage_ms) sum += ms;
  return sum;
}

namespace {

class StageClock {
 public:
  explicit StageClock(Compiled& out) : out_(out) {}
  void done(std::string name) {
    const auto now = std::chrono::steady_clock::now();
    out_.stage_ms.push_back({std::move(name), std::chrono::duration<double, std::milli>(now - last_).count()});
    last_ = now;
  }

 private:
  Compiled& out_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// `flatten` makes its own, which stand in no file.
bool jumps_by_hand(const Graph& graph, const Schedule& schedule) {
  return std::any_of(schedule.controls.begin(), schedule.controls.end(), [&](const ControlTask& c) { return graph.where(c.node).has_value(); });
}

// Everything behind assign_streams, which has filled out.assignment.
Result<void> plan_rest(const Graph& graph, const Target& target, const CompileOptions& options, Compiled& out, StageClock& clock) {
  SyncOptions sync = options.sync;
  // Users of the rule chain compare the pairs kept with what Graph Engine would keep.
  if (out.assignment.clusters != 0 && sync.mode == SyncMode::exact) sync.count_compat = true;
  const std::uint32_t cap = sync.kind == EventKind::notify ? target.limits.notifies : target.limits.events;
  MST_TRY(out.sync, plan_sync(graph, out.assignment, sync));
  clock.done("sync");
  Result<Schedule> lowered = lower(graph, out.assignment, out.sync, target, options.lower);
  const bool too_many = !lowered.ok() && (lowered.error().code == ErrorCode::allocation_limit || lowered.error().code == ErrorCode::notify_limit);
  if (sync.mode == SyncMode::fewest && too_many) {
    // Pairs share ids, so only the ids say whether they must be fewer.
    sync.max_pairs = std::min(sync.max_pairs, cap);
    MST_TRY(out.sync, plan_sync(graph, out.assignment, sync));
    lowered = lower(graph, out.assignment, out.sync, target, options.lower);
  }
  MST_TRY(out.schedule, std::move(lowered));
  clock.done("lower");
  MST_TRY(out.memory, plan_memory(graph, out.schedule, options.memory));
  clock.done("memory");
  if (!options.verify) return {};
  const CheckReport report = check(graph, out.schedule, &target, out.memory.reuse, false);
  const auto say = [](const std::vector<Error>& warnings, ErrorCode code) {
    return std::any_of(warnings.begin(), warnings.end(), [&](const Error& w) { return w.code == code; });
  };
  const bool over = say(out.schedule.warnings, ErrorCode::task_limit);
  for (const Violation& v : report.violations) {
    if ((over && v.kind == Violation::Kind::limit) || warned_of(graph, out, v)) continue;
    if (v.kind == Violation::Kind::region && jumps_by_hand(graph, out.schedule)) {
      return Error{ErrorCode::control_flow, "labels and jumps that do not fit the graph: " + v.message}
          .help("what jumps past or repeats stands in a scope of its own, on one stream; a While, Loop or If makes both by itself");
    }
    return Error{ErrorCode::internal, "the verifier rejects our own plan: " + v.message}
        .help("this is a defect of millstream; please report the model and the command");
  }
  clock.done("verify");
  return {};
}

// "pass A: 2 nodes, pass B: 1 node"; empty where none moved any.
std::string moved_by_passes(const StreamAssignment& on) {
  std::string out;
  for (const RuleReport& r : on.reports) {
    const std::uint32_t nodes = r.nodes_placed + r.nodes_moved;
    if (nodes != 0 && r.rule.rfind("pass ", 0) == 0) {
      out += fmt::format("{}{}: {} node{}", out.empty() ? "" : ", ", r.rule, nodes, nodes == 1 ? "" : "s");
    }
  }
  return out;
}

}  // namespace

Result<Graph> lower_for_chain(Graph graph) {
  if (graph.body_count() != 0) {
    MST_TRY(graph, flatten(graph));
  }
  if (!graph.annotations().parallel_group.empty()) {
    for (const ControlEdge& e : group_chain(graph)) graph.add_control_edge(e.from, e.to);
  }
  return graph;
}

Result<Graph> graph_of_plan(Graph graph, std::uint64_t plan_hash) {
  if (hash_of(graph) == plan_hash) return graph;
  MST_TRY(Graph lowered, lower_for_chain(graph));
  return hash_of(lowered) == plan_hash ? std::move(lowered) : std::move(graph);
}

Result<Graph> prepare(Graph graph, const Target& target, const CompileOptions& options) {
  const Strategy strategy = chosen_strategy(graph, target, options.assign);
  // A device whose engines the input names jumps by itself, on one stream as on many. The host CPU drives bodies.
  const bool on_device = strategy == Strategy::ge || (strategy == Strategy::single && target.engines_in_input);
  if (!on_device) return graph;
  return lower_for_chain(std::move(graph));
}

Result<StreamAssignment> decide_streams(const Graph& graph, const Target& target, const CompileOptions& options) {
  MST_TRY(StreamAssignment on, assign_streams(graph, target, options.assign));
  on.warnings.insert(on.warnings.begin(), options.warnings.begin(), options.warnings.end());
  if (options.passes.passes.empty()) return on;
  if (chosen_strategy(graph, target, options.assign) == Strategy::single) {
    on.warnings.push_back(Error{ErrorCode::no_effect, "stream passes do not run: everything is on one stream"}.help(
        "leave strategy single and single_stream to run them"));
    return on;
  }
  return run_passes(graph, target, std::move(on), options.passes);
}

Result<Compiled> compile(const Graph& graph, const Target& target, const CompileOptions& options) {
  Compiled out;
  StageClock clock(out);
  MST_TRY(out.assignment, decide_streams(graph, target, options));
  clock.done("assign");
  auto planned = plan_rest(graph, target, options, out, clock);
  const std::string moved = planned.ok() ? "" : moved_by_passes(out.assignment);
  if (moved.empty()) {
    MST_TRY_VOID(std::move(planned));
    return out;
  }
  Error error{ErrorCode::stream_pass, fmt::format("the streams that stream passes decided give no plan ({})", moved)};
  error.note(to_string(planned.error()));
  if (options.passes.policy != PassPolicy::rollback) {
    return std::move(error.help("mend the pass, leave its library out, or go on without it: --pass-policy rollback"));
  }
  error.message += "; what they did is undone";
  CompileOptions without = options;
  without.passes.passes.clear();
  without.warnings.push_back(std::move(error));
  return compile(graph, target, without);
}

Result<Compiled> compile_assignment(const Graph& graph, const Target& target, StreamAssignment assignment,
                                    const CompileOptions& options) {
  Compiled out;
  StageClock clock(out);
  std::vector<Error> errors = verify(graph, assignment);
  if (!errors.empty()) return std::move(errors.front());
  out.assignment = std::move(assignment);
  MST_TRY_VOID(plan_rest(graph, target, options, out, clock));
  return out;
}

}  // namespace millstream
