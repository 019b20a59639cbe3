// SPDX-License-Identifier: Apache-2.0
// Operator schemas: arity, shapes, cost, what is a view. Kernels are elsewhere (kernels/).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

/// What a shape function may look at. Inputs that are absent have a null desc.
struct ShapeContext {
  std::string_view node;  ///< name, for messages
  std::string_view type;
  const Attrs& attrs;
  int opset;
  std::span<const TensorDesc* const> inputs;
  /// Values of inputs where known (constants and folded shape arithmetic at compile time, every input
  /// at run time); null otherwise. As long as `inputs`.
  std::span<const Tensor* const> values;
  std::size_t output_count;
};

/// Output descs, one per output. A dimension or shape that the inputs do not determine yet stays
/// unknown; inputs that contradict the operator are an error (ErrorCode::shape) naming the node.
using ShapeFn = Result<std::vector<TensorDesc>> (*)(const ShapeContext&);

struct OpCost {
  double flops = 0;
  double bytes = 0;  ///< read + written
};
/// Static descs only.
using CostFn = OpCost (*)(const Attrs&, std::span<const TensorDesc* const> inputs,
                          std::span<const TensorDesc* const> outputs);

struct OpSchema {
  std::string_view type;
  std::string_view domain;  ///< "" = ONNX, "millstream", "com.microsoft", ...
  int first_opset;          ///< first version of the operator set we follow (6 where 6 means the same as 7)
  int last_opset;           ///< last version whose semantics we know (23 today; larger only when checked)
  int min_inputs;
  int max_inputs;  ///< kVariadic = any number
  ShapeFn shape;
  CostFn cost;
  bool view = false;            ///< output 0 holds input 0's bytes in the same order
  bool no_task = false;         ///< emits no task (Data, Const, NetOutput of dumps)
  bool data_dependent = false;  ///< output shapes depend on computed values: known only after the kernel
  static constexpr int kVariadic = 0x7fffffff;
};

/// The schema, or null. Type names of domain "" and "millstream" do not collide; other domains are
/// looked up as "domain::Type", which is also how graphs spell them.
const OpSchema* find_op(std::string_view type);
/// All schemas, ascending by type name.
std::span<const OpSchema> all_ops();

struct InferOptions {
  /// A value larger than this many bytes is refused by node name (E34) as soon as its desc is known.
  std::optional<std::uint64_t> max_tensor_bytes;
  /// Whether a shape declared for a node's output must agree with the inferred one. Text is written by hand; ONNX
  /// files often carry shapes of another batch. Element types must agree always.
  bool shapes_must_agree = false;
};
/// Returns the graph with a desc for every value that the inputs determine, bodies included. Small
/// integer arithmetic on shapes is evaluated on the way. Errors: shape, memory_limit,
/// unsupported_operator (all missing operators at once: type, opset, reason).
Result<Graph> infer_shapes(Graph graph, const InferOptions& options);

/// Removes nodes whose outputs are known, small (<= 4096 bytes) and need no run: each becomes a
/// constant; nodes that no output needs any more go too. Outputs stay bitwise the same.
Result<Graph> fold_constants(Graph graph);

/// flops and bytes of a node whose descs are static; nullopt when they are not.
std::optional<OpCost> cost_of(const Graph& graph, NodeId node);

/// Output descs of one node from actual input tensors (all values known): what a run uses for nodes
/// whose shapes were not static.
Result<std::vector<TensorDesc>> infer_node(const Graph& graph, NodeId node,
                                           std::span<const Tensor* const> inputs);

}  // namespace millstream
