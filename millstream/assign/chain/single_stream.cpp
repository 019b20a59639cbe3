// SPDX-License-Identifier: Apache-2.0
// single-stream: one stream for everything, the caller's where there is one. Labels ask for the opposite.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"
#include "millstream/assign/rules.h"

namespace millstream::chain {

Result<void> single_stream(ChainState& s) {
  const std::int32_t stream = s.default_stream != kNoStream ? s.default_stream : s.new_stream();
  for (const ClusterId id : ids<ClusterId>(s.clusters.size())) {
    Cluster& c = s.clusters[id];
    if (c.label != 0) {
      const NodeId n = s.members[c.begin];
      return label_on_one_stream(s.graph, n, s.labels[c.label].user, s.labels[c.label].text, s.options);
    }
    if (c.stream == kNoStream) c.stream = stream;
    s.say(id, [&] { return fmt::format("single-stream: everything runs on {}", s.stream_word(stream)); });
  }
  return {};
}

}  // namespace millstream::chain
