// SPDX-License-Identifier: Apache-2.0
#include "millstream/compile/compile.h"

#include <chrono>

#include <fmt/format.h>

#include "millstream/graph/flatten.h"

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

// Everything behind assign_streams, which has filled out.assignment.
Result<void> plan_rest(const Graph& graph, const Target& target, const CompileOptions& options, Compiled& out, StageClock& clock) {
  MST_TRY(out.sync, plan_sync(graph, out.assignment, options.sync));
  clock.done("sync");
  MST_TRY(out.schedule, lower(graph, out.assignment, out.sync, target, options.lower));
  clock.done("lower");
  if (out.schedule.has_control()) {
    // Buffers of branches that exclude each other and of iterations need rules of their own.
    out.memory.buffers = IdVec<ValueId, std::optional<Buffer>>(graph.value_count());
  } else {
    MST_TRY(out.memory, plan_memory(graph, out.schedule, options.memory));
    clock.done("memory");
  }
  if (!options.verify) return {};
  const CheckReport report = check(graph, out.schedule, &target, out.memory.reuse, false);
  if (!report.ok()) {
    return Error{ErrorCode::internal, "the verifier rejects our own plan: " + report.violations.front().message}
        .help("this is a defect of millstream; please report the model and the command");
  }
  clock.done("verify");
  return {};
}

}  // namespace

bool uses_rule_chain(const Graph& graph, const Target& target, const AssignOptions& options) {
  if (options.single_stream) return false;
  if (options.strategy) return *options.strategy == Strategy::ge;
  return target.engines_in_input && !graph.annotations().engine.empty();
}

Result<Graph> prepare(Graph graph, const Target& target, const CompileOptions& options) {
  if (graph.body_count() == 0 || !uses_rule_chain(graph, target, options.assign)) return graph;
  return flatten(graph);
}

Result<Compiled> compile(const Graph& graph, const Target& target, const CompileOptions& options) {
  Compiled out;
  StageClock clock(out);
  MST_TRY(out.assignment, assign_streams(graph, target, options.assign));
  clock.done("assign");
  MST_TRY_VOID(plan_rest(graph, target, options, out, clock));
  return out;
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
