// SPDX-License-Identifier: Apache-2.0
// A nested graph made ready to run, node after node, inside the kernel of If, Loop or Scan.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "millstream/exec/node_call.h"

namespace millstream {

/// Kernels that bodies use: cpu_kernels() and control flow, so that bodies nest.
const KernelTable& body_kernels();

/// Sequential; tensors live on the heap and go after their last reader. One caller at a time. Holds a reference
/// to the graph.
class BodyProgram {
 public:
  /// The body that `attribute` names. A body whose shapes could not be inferred and that no kernel takes is kept
  /// as its error: the branch may never be taken. Errors: control_flow when there is none,
  /// unsupported_operator.
  static Result<std::unique_ptr<BodyProgram>> make(const KernelSpec& spec, std::string_view attribute);

  const Graph& graph() const { return graph_; }
  /// `args` are the arguments of the owner's kernel: outer values are its last ones. Outputs in body order.
  Result<std::vector<Tensor>> run(std::vector<Tensor> inputs, KernelArgs& args);

 private:
  explicit BodyProgram(const Graph& graph) : graph_(graph), table_(graph.value_count()) {}
  Result<void> prepare(const KernelSpec& spec);
  void plan_drops();

  const Graph& graph_;
  TensorTable table_;
  std::vector<NodeCall> calls_;
  std::vector<std::pair<ValueId, std::size_t>> outer_;  ///< value here, index among the owner's captures
  std::size_t owner_inputs_ = 0;
  std::vector<std::uint32_t> drop_begin_;               ///< by call, into drops_
  std::vector<ValueId> drops_;
  std::optional<Error> broken_;
};

}  // namespace millstream
