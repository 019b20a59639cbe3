// SPDX-License-Identifier: Apache-2.0
// independent: an engine that works beside the others gets a stream for each of its labels, the empty one included,
// whatever by-label said.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {

Result<void> independent(ChainState& s) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> stream_of;
  for (const ClusterId id : ids<ClusterId>(s.clusters.size())) {
    Cluster& c = s.clusters[id];
    if (!s.engine(c).independent || c.pinned) continue;
    const auto [at, fresh] = stream_of.try_emplace({c.engine.index, c.label}, kNoStream);
    if (fresh) {
      StreamInfo info;
      info.engine = c.engine;
      if (c.label != 0) {
        info.label = s.labels[c.label].text;
        info.user = s.labels[c.label].user;
        if (c.stream != kNoStream) info.priority = s.infos[static_cast<std::size_t>(c.stream)].priority;
      }
      at->second = s.new_stream(std::move(info));
    }
    c.stream = at->second;
    s.say(id, [&] {
      return fmt::format("independent: engine {} works beside the others{}, so its nodes{} run on {}", s.engine(c).name,
                         c.label != 0 ? ", also within a label" : "",
                         c.label != 0 ? " with " + s.words_label(c.label) : std::string(), s.stream_word(c.stream));
    });
  }
  return {};
}

}  // namespace millstream::chain
