// SPDX-License-Identifier: Apache-2.0
// Descs of the outputs of If, Loop and Scan, from their bodies.
#pragma once

#include <functional>
#include <vector>

#include "millstream/ops/op.h"

namespace millstream {

/// What inference finds, completed by a hint where it leaves something unknown. Where both are known and
/// differ, inference is believed: declared shapes in models are often stale.
TensorDesc refine(const TensorDesc& found, const TensorDesc& hint);
/// What holds for both: dimensions that differ become unknown, as does the shape when ranks differ.
TensorDesc join(const TensorDesc& a, const TensorDesc& b);

/// Sets the descs of the bodies' inputs, infers the bodies through `infer_body`, and gives the node's
/// output descs. A loop-carried value whose shape changes between turns gets unknown dimensions.
/// Errors: shape (the body's inputs or outputs do not fit the node), and those of infer_body.
Result<std::vector<TensorDesc>> infer_control(Graph& graph, NodeId node, const ShapeContext& context,
                                              const std::function<Result<void>(Graph&)>& infer_body);

}  // namespace millstream
