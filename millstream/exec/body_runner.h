// SPDX-License-Identifier: Apache-2.0
// Runs a nested graph on the host, node after node, on the kernels of the outer graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/kernels/kernel.h"

namespace millstream {

/// Outer values of a body, by name, as the control-flow node received them.
struct Captured {
  std::span<const std::string_view> names;
  std::span<const Tensor* const> values;
  const Tensor* find(std::string_view name) const;
};

/// Kernels of a body, prepared once. Not for concurrent runs: the stream that owns the node runs it.
class BodyRunner {
 public:
  /// Errors: unsupported_operator of the first node without a kernel.
  static Result<BodyRunner> make(const Graph& body, const KernelTable& kernels, int threads);

  /// One pass. `inputs` in the body's input order. Results share no memory with what the next run writes.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const Captured& captured, StreamScratch& scratch);
  const Graph& body() const { return *body_; }

 private:
  explicit BodyRunner(const Graph& body) : body_(&body) {}
  const Graph* body_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by node
};

}  // namespace millstream
