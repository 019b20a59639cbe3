// SPDX-License-Identifier: Apache-2.0
// auto in the place of by-dependency: the nodes of clusters that no rule placed, by predicted cost.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"
#include "millstream/assign/rules.h"
#include "millstream/assign/tasks.h"

namespace millstream::chain {

Result<void> by_prediction(ChainState& s) {
  StreamAssignment on;
  on.rules = {"auto"};
  on.reasons = {""};
  on.placement = IdVec<NodeId, std::optional<Placement>>(s.graph.node_count());
  // Only streams in use count; raw ids get local numbers.
  std::vector<std::int32_t> local(s.next_stream, kNoStream), raw;
  const TaskTypes emits(s.graph);
  const auto number = [&](std::int32_t r) {
    std::int32_t& l = local[static_cast<std::size_t>(r)];
    if (l == kNoStream) {
      l = static_cast<std::int32_t>(on.new_stream(s.infos[static_cast<std::size_t>(r)]).index);
      raw.push_back(r);
    }
    return StreamId(static_cast<std::size_t>(l));
  };
  std::vector<std::uint8_t> open(s.graph.node_count(), 0);  // no rule has decided yet
  bool any = false;
  for (const NodeId n : s.nodes) {
    const auto c = s.cluster(n);
    const std::int32_t at = s.is_pinned(n) ? s.stream[n] : c ? s.clusters[*c].stream : kNoStream;
    if (at != kNoStream && emits(n)) on.placement[n] = Placement{number(at), RuleId()};
    open[n.index] = at == kNoStream;
    any = any || at == kNoStream;
  }
  if (!any) return {};
  MST_TRY(on, assign_auto({s.graph, s.target, s.options, s.engines}, std::move(on)));
  while (raw.size() < on.streams.size()) raw.push_back(s.new_stream());
  s.predicted = IdVec<NodeId, std::int32_t>(s.graph.node_count(), kNoStream);
  for (const NodeId n : s.nodes) {
    if (const auto t = on.stream_of(n)) s.predicted[n] = raw[t->index];
  }
  // A node without a task stands where its first placed predecessor does.
  for (std::uint32_t i = 0; i < s.size(); ++i) {
    const NodeId n = s.nodes[i];
    for (std::uint32_t e = s.edges.pred_begin[i]; e < s.edges.pred_begin[i + 1] && s.predicted[n] == kNoStream; ++e) {
      s.predicted[n] = s.predicted[s.nodes[s.edges.pred[e]]];
    }
    if (open[n.index] == 0) continue;
    s.say(n, [&] {
      return s.predicted[n] == kNoStream ? std::string("auto: no predecessor has a stream, none is needed")
                                         : fmt::format("auto: {}: {}", s.stream_word(s.predicted[n]), on.reasons.back());
    });
  }
  for (Error& warning : on.warnings) s.warnings.push_back(std::move(warning));
  on.warnings.clear();
  s.auto_result = std::move(on);
  return {};
}

}  // namespace millstream::chain
