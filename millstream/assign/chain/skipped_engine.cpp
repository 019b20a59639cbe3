// SPDX-License-Identifier: Apache-2.0
// skipped-engine: nodes that run nothing of their own leave their stream, or go where their only neighbours are.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

// The graph's own inputs, constants and outer values are values without a node: such a node computes from them.
bool reads_values(const Graph& graph, NodeId n) {
  for (const InputRef in : graph.inputs(n)) {
    const auto v = in.get();
    if (v && !graph.producer(*v)) return true;
  }
  return false;
}

}  // namespace

Result<void> skipped_engine(ChainState& s) {
  const Annotations& notes = s.graph.annotations();
  std::vector<std::uint8_t> owns;  // by node: runs graphs of its own
  if (s.graph.scope_count() > 1) {
    owns.assign(s.graph.node_count(), 0);
    for (const ScopeId x : s.graph.scopes()) {
      if (x.index != 0) owns[s.graph.scope(x).parent_node->index] = 1;
    }
  }
  for (std::uint32_t i = 0; i < s.size(); ++i) {
    const NodeId n = s.nodes[i];
    if (notes.thread_scope.get(n)) {
      if (s.is_pinned(n)) continue;
      s.stream[n] = kNoStream;
      s.say(n, [&] { return std::string("skipped-engine: another scheduler runs this node, so it has no stream"); });
      continue;
    }
    const auto id = s.cluster(n);
    if (!id || !s.engine(n).skip || s.clusters[*id].label != 0 || !s.is_free(n)) continue;
    bool all_without = true;
    std::int32_t only = kNoStream;
    bool several = false;
    const auto look = [&](std::uint32_t neighbour) {
      const std::int32_t t = s.stream[s.nodes[neighbour]];
      if (t == kNoStream) return;
      several = several || (only != kNoStream && only != t);
      only = t;
    };
    for (std::uint32_t e = s.edges.pred_begin[i]; e < s.edges.pred_begin[i + 1]; ++e) {
      all_without = all_without && s.stream[s.nodes[s.edges.pred[e]]] == kNoStream;
      look(s.edges.pred[e]);
    }
    if (all_without && (owns.empty() || owns[n.index] == 0) && !reads_values(s.graph, n)) {
      s.stream[n] = kNoStream;
      s.say(n, [&] {
        return fmt::format("skipped-engine: engine {} runs nothing here, and no predecessor has a stream: none is needed", s.engine(n).name);
      });
      continue;
    }
    if (s.succ_begin[i] == s.succ_begin[i + 1]) continue;
    for (std::uint32_t e = s.succ_begin[i]; e < s.succ_begin[i + 1]; ++e) look(s.succ[e]);
    if (several || only == kNoStream || only == s.stream[n]) continue;
    s.say(n, [&] {
      return fmt::format("skipped-engine: all neighbours run on {}, so leaving {} for it saves their waits", s.stream_word(only),
                         s.stream_word(s.stream[n]));
    });
    s.stream[n] = only;
  }
  return {};
}

}  // namespace millstream::chain
