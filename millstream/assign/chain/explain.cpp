// SPDX-License-Identifier: Apache-2.0
// Why a node stands where it stands: the rules run again and speak about that node alone.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"
#include "millstream/assign/rules.h"

namespace millstream {

Result<std::vector<std::string>> explain_placement(const Graph& graph, const Target& target, const AssignOptions& options, NodeId node) {
  MST_CHECK(node.index < graph.node_count(), "a node of the graph");
  MST_TRY(const auto engines, resolve_engines(graph, target, options.excluded_engine));
  const Strategy strategy = chosen_strategy(graph, target, options);
  if (!uses_chain(graph, target, options)) {
    MST_TRY(const StreamAssignment on, assign_streams(graph, target, options));
    const auto& p = on.placement[node];
    if (!p) return std::vector<std::string>{"no stream: the operator emits no task"};
    return std::vector<std::string>{fmt::format("{}: stream {}: {}", on.rules[p->decided_by.index], p->stream.index, on.reasons[p->decided_by.index])};
  }
  MST_TRY(chain::ChainResult result, graph.dynamic() && strategy != Strategy::single
                                         ? chain::run_dynamic(graph, target, options, engines, node)
                                         : chain::run_chain(graph, target, options, engines, strategy, node));
  MST_TRY(const StreamAssignment on, assign_attached(graph, target, options, std::move(result.on)));
  if (const auto& list = on.attached.get(node)) {
    std::string ids;
    for (const StreamId s : *list) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", s.index);
    result.said.push_back(fmt::format("attached: also works on stream{} {}, behind all main streams", list->size() == 1 ? "" : "s", ids));
  }
  if (result.said.empty()) result.said.push_back("no stream: inputs and constants are there before the run");
  return std::move(result.said);
}

}  // namespace millstream
