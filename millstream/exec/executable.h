// SPDX-License-Identifier: Apache-2.0
// A schedule with memory and kernels on one back-end, ready to run many times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "millstream/backend/backend.h"
#include "millstream/kernels/kernel.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/trace/trace.h"

namespace millstream {

/// Move-only; every node has a kernel. Holds references to graph, schedule and back-end: they outlive it.
class Executable {
 public:
  struct State;
  explicit Executable(std::unique_ptr<State> state);
  ~Executable();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

struct InstantiateOptions {
  int threads_per_op = 1;
  /// Bytes; a larger tensor made during a run (shapes that only inputs decide) is refused naming its node (E34).
  std::optional<std::uint64_t> max_bytes;
};

/// Errors: unsupported_operator listing every node without a kernel (type, opset, reason).
Result<Executable> instantiate(const Graph& graph, const Schedule& schedule, const MemoryPlan& memory,
                               const KernelTable& kernels, Backend& backend,
                               const InstantiateOptions& options);

struct RunResult {
  std::vector<Tensor> outputs;  ///< in graph output order
  Trace trace;
};

/// One run. `inputs` in graph input order; types and static dims are checked (usage error naming the
/// input, have and want). A kernel error names its node.
Result<RunResult> run(Executable& executable, std::span<const Tensor> inputs,
                      const ExecuteOptions& options);

/// cpu_kernels() plus the host-driven control flow (If, Loop, Scan).
KernelTable all_kernels();

}  // namespace millstream
