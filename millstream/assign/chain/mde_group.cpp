// SPDX-License-Identifier: Apache-2.0
// mde-group: nodes with one number share one new stream, before any other rule, and stay there.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {

Result<void> mde_group(ChainState& s) {
  const auto& numbers = s.graph.annotations().new_stream;
  if (numbers.empty()) return {};
  std::map<std::int64_t, std::int32_t> stream_of;
  for (const NodeId n : s.nodes) {
    const auto& k = numbers.get(n);
    if (!k) continue;
    if (*k < 0) {
      return Error{ErrorCode::bad_attribute, fmt::format("@new_stream({}) on {} is not a group number", *k, s.graph.name(n))}
          .help("numbers from 0; nodes with one number share a new stream");
    }
    const auto [at, fresh] = stream_of.try_emplace(*k, kNoStream);
    if (fresh) at->second = s.new_stream();
    s.stream[n] = at->second;
    s.pin(n);
    s.say(n, [&] {
      return fmt::format("mde-group: number {} asks for a stream of its own, {}; no later rule moves the node", *k,
                         s.stream_word(s.stream[n]));
    });
  }
  if (stream_of.empty()) return {};
  // A cluster whose nodes are all pinned needs no other stream.
  for (Cluster& c : s.clusters) {
    bool all = true;
    for (std::uint32_t i = c.begin; i < c.end && all; ++i) all = s.is_pinned(s.members[i]);
    if (!all) continue;
    c.pinned = true;
    c.stream = s.stream[s.members[c.begin]];
  }
  return {};
}

}  // namespace millstream::chain
