// SPDX-License-Identifier: Apache-2.0
// What a trace says of itself: overlap, and which record a wait consumed.
#include <algorithm>
#include <map>

#include "millstream/trace/overlap.h"
#include "millstream/trace/pairing.h"

namespace millstream {

double overlap(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& runs) {
  std::vector<std::pair<std::uint64_t, int>> edges;
  for (const auto& [begin, end] : runs) {
    if (end <= begin) continue;
    edges.push_back({begin, +1});
    edges.push_back({end, -1});
  }
  std::sort(edges.begin(), edges.end());
  std::uint64_t busy = 0, shared = 0, last = 0;
  int running = 0;
  for (const auto& [at, step] : edges) {
    if (running > 0) busy += at - last;
    if (running > 1) shared += at - last;
    running += step;
    last = at;
  }
  return busy == 0 ? 0 : static_cast<double>(shared) / static_cast<double>(busy);
}

// A stream runs one launch at a time, so a launch is a busy stream.
double overlap(const Schedule&, const Trace& trace) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const Span& s : trace.spans) {
    if (s.what.kind == Task::Kind::launch) runs.emplace_back(s.begin_ns, s.end_ns);
  }
  return overlap(runs);
}

std::vector<ConsumedRecord> pair_records(const Trace& trace) {
  struct Uses {
    std::vector<std::size_t> records, waits;
  };
  std::map<std::uint32_t, Uses> events;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Task& task = trace.spans[i].what;
    if (task.kind == Task::Kind::record) events[task.index].records.push_back(i);
    if (task.kind == Task::Kind::wait) events[task.index].waits.push_back(i);
  }
  std::vector<ConsumedRecord> out;
  for (auto& [event, uses] : events) {
    std::stable_sort(uses.records.begin(), uses.records.end(), [&](std::size_t a, std::size_t b) {
      return trace.spans[a].begin_ns < trace.spans[b].begin_ns;
    });
    std::stable_sort(uses.waits.begin(), uses.waits.end(), [&](std::size_t a, std::size_t b) {
      return trace.spans[a].end_ns < trace.spans[b].end_ns;
    });
    for (std::size_t k = 0; k < uses.waits.size(); ++k) {
      ConsumedRecord c;
      c.wait = uses.waits[k];
      if (k < uses.records.size()) c.record = uses.records[k];
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace millstream
