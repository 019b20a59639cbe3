// SPDX-License-Identifier: Apache-2.0
// parallel-group: the nodes of a group move to one new stream. A communication node of group "-1" with one input
// runs where that input runs.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

bool is_communication(std::string_view type) { return type.substr(0, 4) == "Hcom" || type.substr(0, 7) == "Horovod"; }

// The producer of the node's one data input, if it stands in the scope at hand. What only orders the node is no
// input: the members of a group follow one another by control edges.
std::optional<NodeId> only_input(const ChainState& s, NodeId n) {
  std::optional<ValueId> only;
  for (const InputRef in : s.graph.inputs(n)) {
    const auto value = in.get();
    if (!value) continue;
    if (only) return std::nullopt;
    only = value;
  }
  const auto from = only ? s.graph.producer(*only) : std::nullopt;
  return from && s.graph.scope_of(*from) == s.scope ? from : std::nullopt;
}

}  // namespace

Result<void> parallel_group(ChainState& s) {
  if (s.graph.annotations().parallel_group.empty()) return {};
  struct Member {
    NodeId node;
    std::int32_t old;
    StringId group;
  };
  std::vector<Member> list;
  const auto add = [&](NodeId n) {
    const auto group = s.group_of(n);
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
    if (group == "-1" && is_communication(s.graph.type(m.node))) {
      const auto input = only_input(s, m.node);
      if (input && s.stream[*input] != kNoStream) {
        s.stream[m.node] = s.stream[*input];
        s.say(m.node, [&] {
          return fmt::format("parallel-group: group \"-1\" with the one input {}: runs where that runs, {}", s.graph.name(*input),
                             s.stream_word(s.stream[*input]));
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
