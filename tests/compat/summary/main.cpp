// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <ge/ge_graph_compile_summary.h>

int main(int, char** argv) {
  const auto compiled = ge::CompiledGraphSummary::FromPlan(argv[1]);
  std::shared_ptr<ge::StreamAllocationSummary> streams;
  if (compiled->GetStreamAllocationSummary(streams) != ge::SUCCESS) return std::puts(compiled->GetErrorMessage().GetString()), 1;
  for (const auto& [graph, infos] : streams->GetAllLogicalStreamInfos())
    for (const auto& info : infos) std::printf("%s: %s\n", graph.GetString(), info.ToStringInfo().GetString());
}
