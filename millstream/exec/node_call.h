// SPDX-License-Identifier: Apache-2.0
// One node made ready to run over a table of tensors: what the executable and the bodies of If, Loop and Scan
// have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "millstream/kernels/kernel.h"

namespace millstream {

/// Tensors by value. Its size never changes, so that prepared calls may point into it.
using TensorTable = IdVec<ValueId, Tensor>;

/// How an output gets its tensor.
enum class OutputKind : std::uint8_t {
  bound,     ///< stands in the table before the run (arena)
  sized,     ///< allocated by its static desc
  inferred,  ///< allocated by the shapes of the actual inputs
  assigned,  ///< set by the kernel
};

struct NodeCall {
  NodeId node;
  std::unique_ptr<Kernel> kernel;       ///< null: a view of its first input
  std::vector<const Tensor*> inputs;    ///< into the table, captures behind the inputs; null = left out
  std::vector<OutputKind> outputs;
  std::size_t own_inputs = 0;           ///< how many of `inputs` are not captures
  std::uint64_t max_bytes = 0;          ///< what one output that is not `bound` may take
};

/// Finds the kernel and points into `table`. Outputs that are not `bound` get their kind from desc and
/// schema. Errors: those of the factory; unsupported_operator when there is none.
Result<NodeCall> prepare_call(const KernelSpec& spec, const KernelTable& kernels, TensorTable& table,
                              const std::vector<bool>& bound);

/// Runs the node: outputs made, kernel called, what came out compared with what the graph declares of values
/// that others read. Errors: kernel naming the node, shape, memory_limit (before the tensor is made, except where
/// only the kernel knows its size).
Result<void> run_call(const Graph& graph, NodeCall& call, TensorTable& table, StreamScratch& scratch);

/// Whether a tensor is of the desc's type and known dimensions.
bool fits(const TensorDesc& desc, const Tensor& tensor);
/// The tensor itself, or a copy when its bytes are not aligned to 64.
Tensor aligned_tensor(const Tensor& tensor);
Tensor copy_of(const Tensor& tensor);

/// Collects refusals of factories by operator and reason, so that one error tells all.
class MissingKernels {
 public:
  void add(const Graph& graph, NodeId node, const Error& error);
  bool empty() const { return rows_.empty(); }
  Error error() const;

 private:
  struct Row {
    std::string type;
    int opset = 0;
    std::string reason;
    std::string first;
    std::size_t nodes = 0;
  };
  std::vector<Row> rows_;
};

}  // namespace millstream
