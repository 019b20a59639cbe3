// SPDX-License-Identifier: Apache-2.0
// parallel-group: the nodes of a group move to one new stream. A communication node of group "-1" with one input
// runs where that input runs.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

bool is_communication(std::string_view type) { return type.substr(0, 4) == "Hcom" || type.substr(0, 7) == "Horovod"; }

}  // namespace

Result<void> parallel_group(ChainState& s) {
  const auto& groups = s.graph.annotations().parallel_group;
  if (groups.empty()) return {};
  struct Member {
    NodeId node;
    std::int32_t old;
    StringId group;
  };
  std::vector<Member> list;
  const auto add = [&](NodeId n) {
    const auto& group = groups.get(n);
    if (group && s.is_free(n)) list.push_back({n, s.stream[n], *group});
  };
  for (const NodeId n : s.members) add(n);
  const bool by_stream = s.options.parallel_group_scope == GroupScope::stream;
  if (by_stream) {
    std::stable_sort(list.begin(), list.end(), [](const Member& a, const Member& b) { return a.old < b.old; });
  }
  std::map<std::pair<std::int32_t, std::uint32_t>, std::int32_t> stream_of;
  for (const Member& m : list) {
    const std::string_view group = s.graph.text(m.group);
    const std::uint32_t i = s.position[m.node];
    if (group == "-1" && is_communication(s.graph.type(m.node)) && s.edges.pred_begin[i + 1] - s.edges.pred_begin[i] == 1) {
      const NodeId input = s.nodes[s.edges.pred[s.edges.pred_begin[i]]];
      if (s.stream[input] != kNoStream) {
        s.stream[m.node] = s.stream[input];
        s.say(m.node, [&] {
          return fmt::format("parallel-group: group \"-1\" with the one input {}: runs where that runs, {}", s.graph.name(input),
                             s.stream_word(s.stream[input]));
        });
        continue;
      }
    }
    const auto [at, fresh] = stream_of.try_emplace({by_stream ? m.old : 0, m.group.index}, kNoStream);
    if (fresh) at->second = s.new_stream();
    s.stream[m.node] = at->second;
    s.say(m.node, [&] {
      return fmt::format("parallel-group: group \"{}\" has a stream of its own, {}, instead of {}", group, s.stream_word(s.stream[m.node]),
                         s.stream_word(m.old));
    });
  }
  return {};
}

}  // namespace millstream::chain
