// SPDX-License-Identifier: Apache-2.0
// node-stream: from clusters to nodes. Pinned nodes keep their stream, labels and activations of control flow stand
// on the caller's, nodes of a skip engine without any input need none.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {

Result<void> node_stream(ChainState& s) {
  for (const Cluster& c : s.clusters) {
    if (c.stream != kNoStream || s.engine(c).skip || !s.predicted.empty()) continue;
    return Error{ErrorCode::no_stream, fmt::format("{} of engine {} in graph {} got no stream", s.words(c), s.engine(c).name,
                                                   s.scope.index == 0 ? s.graph.name() : s.graph.scope(s.scope).name)}
        .help("run a rule that places clusters before node-stream");
  }
  for (const NodeId n : s.nodes) {
    if (s.is_pinned(n)) continue;
    s.stream[n] = kNoStream;
    const auto id = s.cluster(n);
    if (!id) continue;
    const Cluster& c = s.clusters[*id];
    if (s.is_rts(n) && s.default_stream != kNoStream) {
      s.stream[n] = s.default_stream;
      s.say(n, [&] {
        return fmt::format("node-stream: labels and activations of control flow stand on the caller's {}", s.stream_word(s.default_stream));
      });
      continue;
    }
    const std::uint32_t i = s.position[n];
    if (s.engine(n).skip && s.graph.inputs(n).empty() && s.edges.pred_begin[i] == s.edges.pred_begin[i + 1]) {
      s.say(n, [&] { return fmt::format("node-stream: engine {} needs no stream for a node without inputs", s.engine(n).name); });
      continue;
    }
    s.stream[n] = c.stream != kNoStream || s.predicted.empty() ? c.stream : s.predicted[n];
  }
  return {};
}

}  // namespace millstream::chain
