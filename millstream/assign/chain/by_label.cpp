// SPDX-License-Identifier: Apache-2.0
// by-label: clusters of one label share one stream. A stream label reaches as far as its scope; a user label over
// the root and all call bodies, while each body of If, Case and While has a stream of its own for it.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

// The smallest priority of a user label counts; a warning names the nodes that disagree.
void read_priority(ChainState& s, NodeId n, std::int32_t stream) {
  const auto& priority = s.graph.annotations().priority.get(n);
  if (!priority) return;
  StreamInfo& info = s.infos[static_cast<std::size_t>(stream)];
  const auto [before, fresh] = s.priority_from.try_emplace(stream, n);
  if (!fresh && info.priority != *priority) {
    s.warnings.push_back(
        Error{ErrorCode::conflict,
              fmt::format("{} has two priorities: {} on {} and {} on {}; {}, the more urgent, counts",
                          s.words_label(s.label_of(n)), info.priority, s.graph.name(before->second), *priority,
                          s.graph.name(n), std::min(info.priority, *priority))}
            .help("give every node of a label the same priority"));
  }
  if (fresh || *priority < info.priority) {
    info.priority = *priority;
    before->second = n;
  }
}

}  // namespace

Result<void> by_label(ChainState& s) {
  if (s.label.empty()) return {};
  const Annotations& notes = s.graph.annotations();
  std::vector<std::int32_t> stream_of(s.labels.size(), kNoStream);
  const std::uint32_t region = s.region();
  for (const ClusterId id : ids<ClusterId>(s.clusters.size())) {
    Cluster& c = s.clusters[id];
    if (c.label == 0 || c.pinned) continue;
    const Label& label = s.labels[c.label];
    std::int32_t& local = stream_of[c.label];
    bool elsewhere = false;
    if (local == kNoStream && label.user) {
      const auto found = s.user_streams.find({region, c.label});
      if (found != s.user_streams.end()) {
        local = found->second;
        elsewhere = true;
      }
    }
    const bool fresh = local == kNoStream;
    if (fresh) {
      StreamInfo info;
      info.label = label.text;
      info.user = label.user;
      local = s.new_stream(std::move(info));
      if (label.user) s.user_streams[{region, c.label}] = local;
    }
    c.stream = local;
    if (label.user) {
      bool inner = true;
      for (std::uint32_t i = c.begin; i < c.end; ++i) {
        const NodeId n = s.members[i];
        if (!notes.priority.empty()) read_priority(s, n, local);
        const auto& note = notes.inner_parallel.get(n);
        inner = inner && !(note && !*note);
      }
      if (!inner) {
        c.pinned = true;
        for (std::uint32_t i = c.begin; i < c.end; ++i) {
          if (s.is_pinned(s.members[i])) continue;
          s.pin(s.members[i]);
          s.stream[s.members[i]] = local;
        }
      }
    }
    s.say(id, [&] {
      std::string text = fmt::format("by-label: {} {} {}", s.words_label(c.label), fresh ? "opens" : "has", s.stream_word(local));
      if (elsewhere) text += ", shared with the graphs that call this one";
      if (label.user && region != 0) text += "; each body of control flow has its own, since a stream cannot run and be started at once";
      if (c.pinned) text += "; inner_parallel=false keeps every engine of the label there";
      return text;
    });
  }
  return {};
}

}  // namespace millstream::chain
