// SPDX-License-Identifier: Apache-2.0
// A graph through every stage, on one stream without buffer reuse: what a conformance case runs.
#pragma once

#include <span>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream::conformance {

/// Outputs in graph output order. The error says which stage refused: unsupported_operator for want of a
/// kernel, kernel for a failure at run time.
Result<std::vector<Tensor>> run_graph(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace millstream::conformance
