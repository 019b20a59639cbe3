// SPDX-License-Identifier: Apache-2.0
#include "millstream/compile/compile.h"

#include <chrono>

#include <fmt/format.h>

namespace millstream {

double Compiled::total_ms() const {
  double sum = 0;
  for (const auto& [name, ms] : stage_ms) sum += ms;
  return sum;
}

Result<Compiled> compile(const Graph& graph, const Target& target, const CompileOptions& options) {
  Compiled out;
  auto last = std::chrono::steady_clock::now();
  const auto stage_done = [&](std::string name) {
    const auto now = std::chrono::steady_clock::now();
    out.stage_ms.push_back({std::move(name), std::chrono::duration<double, std::milli>(now - last).count()});
    last = now;
  };

  MST_TRY(out.assignment, assign_streams(graph, target, options.assign));
  stage_done("assign");
  MST_TRY(out.sync, plan_sync(graph, out.assignment, options.sync));
  stage_done("sync");
  MST_TRY(out.schedule, lower(graph, out.assignment, out.sync, target, options.lower));
  stage_done("lower");
  MST_TRY(out.memory, plan_memory(graph, out.schedule, options.memory));
  stage_done("memory");
  if (options.verify) {
    const CheckReport report = check(graph, out.schedule, &target, out.memory.reuse, false);
    if (!report.ok()) {
      return Error{ErrorCode::internal, "the verifier rejects our own plan: " + report.violations.front().message}
          .help("this is a defect of millstream; please report the model and the command");
    }
    stage_done("verify");
  }
  return out;
}

}  // namespace millstream
