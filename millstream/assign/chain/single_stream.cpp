// SPDX-License-Identifier: Apache-2.0
// single-stream: one stream for everything, the caller's where there is one. Labels ask for the opposite.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {

Result<void> single_stream(ChainState& s) {
  const std::int32_t stream = s.default_stream != kNoStream ? s.default_stream : s.new_stream();
  for (const ClusterId id : ids<ClusterId>(s.clusters.size())) {
    Cluster& c = s.clusters[id];
    if (c.label != 0) {
      const NodeId n = s.members[c.begin];
      Error error{ErrorCode::conflict,
                  fmt::format("{} label \"{}\" on {} conflicts with single-stream mode",
                              s.labels[c.label].user ? "user stream" : "stream", s.labels[c.label].text, s.graph.name(n))};
      if (const auto where = s.graph.where(n)) {
        error.at(*where);
      } else {
        error.note(fmt::format("{} of type {} carries the label", s.graph.name(n), s.graph.type(n)));
      }
      return std::move(error)
          .note(s.options.single_stream ? "single-stream mode was set by single_stream=true"
                                        : "single-stream mode was set by strategy single")
          .help("drop the label, or set single_stream=false");
    }
    if (c.stream == kNoStream) c.stream = stream;
    s.say(id, [&] { return fmt::format("single-stream: everything runs on {}", s.stream_word(stream)); });
  }
  return {};
}

}  // namespace millstream::chain
