// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

std::string print(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan) {
  const auto arrow = [&](const SyncPair& p) {
    return fmt::format("{} -> {}", quote_name(graph.name(p.from)), quote_name(graph.name(p.to)));
  };
  const auto streams = [&](const SyncPair& p) {
    const auto from = on.stream_of(p.from), to = on.stream_of(p.to);
    return fmt::format("{} -> {}", from ? fmt::format("{}", from->index) : "-", to ? fmt::format("{}", to->index) : "-");
  };
  std::string out;
  for (const SyncPair& p : plan.kept) {
    out += fmt::format("kept    {}  ({}, stream {})\n", arrow(p), to_string(p.reason), streams(p));
  }
  for (const DroppedPair& d : plan.dropped) {
    out += fmt::format("dropped {}  ({}, stream {}): implied by ", arrow(d.pair), to_string(d.pair.reason), streams(d.pair));
    NodeId at = d.pair.from;
    out += quote_name(graph.name(at));
    // Two dots for the order of a stream, an arrow for a kept pair.
    const auto along_stream = [&](NodeId next) {
      if (next != at) out += " .. " + quote_name(graph.name(next));
    };
    for (const PairId id : plan.path(d)) {
      const SyncPair& p = plan.kept[id.index];
      along_stream(p.from);
      out += " -> " + quote_name(graph.name(p.to));
      at = p.to;
    }
    along_stream(d.pair.to);
    out += '\n';
  }
  out += fmt::format("{} pairs inserted, {} kept, {} dropped\n", plan.inserted, plan.kept.size(), plan.dropped.size());
  return out;
}

}  // namespace millstream
