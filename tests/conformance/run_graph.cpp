// SPDX-License-Identifier: Apache-2.0
#include "run_graph.h"

#include "millstream/compile/compile.h"
#include "millstream/exec/executable.h"

namespace millstream::conformance {

Result<std::vector<Tensor>> run_graph(const Graph& graph, std::span<const Tensor> inputs) {
  static const KernelTable kernels = all_kernels();
  static const std::unique_ptr<Backend> backend = make_cpu_backend(1, 1);
  MST_TRY(const Target target, load_target("cpu"));
  CompileOptions options;
  options.assign.strategy = Strategy::single;
  options.memory.reuse = false;
  MST_TRY(const Compiled plan, compile(graph, target, options));
  MST_TRY(Executable executable, instantiate(graph, plan.schedule, plan.memory, kernels, *backend, InstantiateOptions{1}));
  MST_TRY(RunResult result, run(executable, inputs, ExecuteOptions{}));
  return std::move(result.outputs);
}

}  // namespace millstream::conformance
