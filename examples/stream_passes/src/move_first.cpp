// SPDX-License-Identifier: Apache-2.0
// Puts the first node on a stream of its own. Everything else needs its result, so nothing can run beside it.
#include <register/register_custom_pass.h>

namespace {

ge::Status MoveFirst(const ge::ConstGraphPtr& graph, ge::StreamPassContext& context) {
  const std::vector<ge::GNode> nodes = graph->GetDirectNode();
  if (nodes.empty()) return ge::SUCCESS;
  return context.SetStreamId(nodes.front(), context.AllocateNextStreamId());
}

}  // namespace

REGISTER_CUSTOM_PASS("move_first").CustomAllocateStreamPassFn(MoveFirst);
