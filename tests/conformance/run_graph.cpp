// SPDX-License-Identifier: Apache-2.0
#include "run_graph.h"

#include <fmt/format.h>

#include "millstream/compile/compile.h"
#include "millstream/exec/executable.h"

namespace millstream::conformance {

namespace {

Result<std::vector<Tensor>> run_as(Strategy strategy, const char* target_name, const Graph& source, std::span<const Tensor> inputs) {
  static const KernelTable kernels = all_kernels();
  static const std::unique_ptr<Backend> backend = make_cpu_backend(1, 1);
  MST_TRY(const Target target, load_target(target_name));
  CompileOptions options;
  options.assign.strategy = strategy;
  options.memory.reuse = false;
  MST_TRY(const Graph graph, prepare(source, target, options));
  MST_TRY(const Compiled plan, compile(graph, target, options));
  MST_TRY(Executable executable, instantiate(graph, plan.schedule, plan.memory, kernels, *backend, InstantiateOptions{1}));
  MST_TRY(RunResult result, run(executable, inputs, ExecuteOptions{}));
  return std::move(result.outputs);
}

}  // namespace

Result<std::vector<Tensor>> run_graph(const Graph& graph, std::span<const Tensor> inputs) {
  MST_TRY(std::vector<Tensor> outputs, run_as(Strategy::single, "cpu", graph, inputs));
  if (graph.body_count() == 0) return outputs;
  MST_TRY(const std::vector<Tensor> on_device, run_as(Strategy::ge, "npu", graph, inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == on_device[i]) continue;
    return Error{ErrorCode::kernel, fmt::format("output {} differs when the device decides: {}, by the host {}", i, to_string(on_device[i].desc()),
                                                to_string(outputs[i].desc()))};
  }
  return outputs;
}

}  // namespace millstream::conformance
