// SPDX-License-Identifier: Apache-2.0
// What the input says about a node beside its operator: kept and copied as a whole.
#pragma once
#include "millstream/graph/graph.h"

namespace millstream {

/// Whether any annotation is set on the node.
bool has_notes(const Graph& graph, NodeId n);

/// Sets every annotation of `a` on `b`; texts move to the pool of their new graph.
void copy_notes(const Graph& from, NodeId a, Graph& to, NodeId b);

}  // namespace millstream
