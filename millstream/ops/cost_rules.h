// SPDX-License-Identifier: Apache-2.0
// Cost functions that families share. flops count a multiply-add as two; bytes are inputs +
// outputs.
#pragma once

#include "millstream/ops/op.h"

namespace millstream {

using InputDescs = std::span<const TensorDesc* const>;
using OutputDescs = std::span<const TensorDesc* const>;

/// Elements of a desc as a double; 0 when absent or not static.
double elements_of(const TensorDesc* desc);
/// Bytes of all present inputs and outputs.
double traffic(InputDescs inputs, OutputDescs outputs);

/// `PerElement` flops for each element of output 0.
template <int PerElement>
OpCost elementwise_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  return {PerElement * (outputs.empty() ? 0.0 : elements_of(outputs[0])), traffic(inputs, outputs)};
}
/// `PerElement` flops for each element of input 0 (reductions, norms).
template <int PerElement>
OpCost per_input_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  return {PerElement * (inputs.empty() ? 0.0 : elements_of(inputs[0])), traffic(inputs, outputs)};
}
/// Each present input adds one flop an output element, less one.
OpCost variadic_cost(const Attrs&, InputDescs inputs, OutputDescs outputs);
/// Moves bytes only.
OpCost move_cost(const Attrs&, InputDescs inputs, OutputDescs outputs);
/// Reads and writes what it writes (a gather reads no more of its table than it copies).
OpCost gather_cost(const Attrs&, InputDescs inputs, OutputDescs outputs);
/// A view, or a node without a task: nothing moves.
OpCost no_cost(const Attrs&, InputDescs inputs, OutputDescs outputs);

}  // namespace millstream
