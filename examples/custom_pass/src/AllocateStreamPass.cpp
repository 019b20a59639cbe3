// SPDX-License-Identifier: Apache-2.0
// Puts one node, by its name, on a stream of its own.
#include <iostream>

#include "register_custom_pass.h"

using namespace ge;

graphStatus AllocateStreamPass(const ConstGraphPtr &graph, StreamPassContext &context) {
  // The nodes of this graph, without those of its subgraphs: only they may move.
  for (const auto &node : graph->GetDirectNode()) {
    AscendString node_name;
    node.GetName(node_name);
    if (std::string(node_name.GetString()) == "Abs_1/unary_ops_composition_0_SquareAbs_1/unary_ops_composition_1_Abs") {
      context.SetStreamId(node, context.AllocateNextStreamId());
    }
  }
  return GRAPH_SUCCESS;
}

REGISTER_CUSTOM_PASS("AllocateStreamPass").CustomAllocateStreamPassFn(AllocateStreamPass);
