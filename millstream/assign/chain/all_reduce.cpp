// SPDX-License-Identifier: Apache-2.0
// all-reduce: what consumes a reduced gradient moves to streams of its own, so that it runs beside the rest of the
// backward pass.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

constexpr std::uint32_t kNobody = 0xffffffffu;

bool is_all_reduce(std::string_view type) { return type == "HcomAllReduce" || type == "HorovodAllreduce"; }

}  // namespace

Result<void> all_reduce(ChainState& s) {
  if (!s.hcom_parallel) return {};
  std::vector<NodeId> roots;
  for (const NodeId n : s.nodes) {
    if (!is_all_reduce(s.graph.type(n))) continue;
    std::size_t inputs = 0;
    for (const InputRef in : s.graph.inputs(n)) inputs += in.absent() ? 0 : 1;
    if (inputs > 1) roots.push_back(n);
  }
  if (roots.empty()) return {};
  // Consumers over data edges only, by position.
  std::vector<std::vector<std::uint32_t>> consumers(s.size());
  for (std::uint32_t i = 0; i < s.size(); ++i) {
    for (const InputRef in : s.graph.inputs(s.nodes[i])) {
      const auto value = in.get();
      const auto p = value ? s.graph.producer(*value) : std::nullopt;
      if (p && s.graph.scope_of(*p) == s.scope && s.position[*p] < i) consumers[s.position[*p]].push_back(i);
    }
  }
  // Roots of one label reach the same kind of consumers: a node is expanded once for each label.
  std::stable_sort(roots.begin(), roots.end(), [&](NodeId a, NodeId b) { return s.label_of(a) < s.label_of(b); });
  std::vector<std::uint32_t> joined(s.size(), kNobody);  // by position: the root that reached it
  std::vector<std::uint32_t> seen(s.size(), kNobody);    // by position: the last label that expanded it
  std::vector<std::uint32_t> todo;
  for (std::uint32_t r = 0; r < roots.size(); ++r) {
    const std::uint32_t label = s.label_of(roots[r]);
    todo.assign(1, s.position[roots[r]]);
    while (!todo.empty()) {
      const std::uint32_t at = todo.back();
      todo.pop_back();
      for (const std::uint32_t c : consumers[at]) {
        const std::uint32_t other = s.label_of(s.nodes[c]);
        if (seen[c] == label || (other != label && !(label != 0 && other == 0))) continue;
        seen[c] = label;
        if (joined[c] == kNobody) joined[c] = r;
        todo.push_back(c);
      }
    }
  }
  std::map<std::int32_t, std::int32_t> to;
  for (std::uint32_t i = 0; i < s.size(); ++i) {
    const NodeId n = s.nodes[i];
    if (joined[i] == kNobody || !s.is_free(n) || is_all_reduce(s.graph.type(n))) continue;
    const auto [at, fresh] = to.try_emplace(s.stream[n], kNoStream);
    if (fresh) {
      StreamInfo info = s.infos[static_cast<std::size_t>(s.stream[n])];
      at->second = s.new_stream(std::move(info));
    }
    s.say(n, [&, moved_to = at->second] {
      return fmt::format("all-reduce: what follows {} leaves {} for {} and runs beside what does not need it",
                         s.graph.name(roots[joined[i]]), s.stream_word(s.stream[n]), s.stream_word(moved_to));
    });
    s.stream[n] = at->second;
  }
  return {};
}

}  // namespace millstream::chain
