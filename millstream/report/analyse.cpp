// SPDX-License-Identifier: Apache-2.0
// Where the time of a view goes: by lane, and along the chain of spans that decided its length.
#include <algorithm>
#include <optional>

#include "millstream/report/report_data.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = ~0u;

bool is_node(const ReportSpan& s) { return s.kind != Task::Kind::record && s.kind != Task::Kind::wait; }

class Analysis {
 public:
  Analysis(ReportView& view, const std::vector<ReportNode>& nodes) : view_(view), nodes_(nodes), source_(view.spans.size(), kNone), before_(view.spans.size(), kNone) {
    // Of what a span waits for, the last to end decides.
    for (const auto& [from, to] : view.arrows) {
      if (source_[to] == kNone || view.spans[source_[to]].end_ns < view.spans[from].end_ns) source_[to] = from;
    }
    for (std::uint32_t i = 1; i < view.spans.size(); ++i) {
      if (view.spans[i].lane == view.spans[i - 1].lane) before_[i] = i - 1;
    }
    for (std::uint32_t i = 0; i < view.spans.size(); ++i) {
      if (is_node(view.spans[i])) by_end_.push_back(i);
    }
    std::sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(view.spans[a].end_ns, a) < std::pair(view.spans[b].end_ns, b);
    });
  }

  void lanes(bool starts_late) {
    view_.use.assign(view_.lanes.size(), {});
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> awaited;
    std::vector<std::uint64_t> reached(view_.lanes.size(), 0);
    for (std::uint32_t i = 0; i < view_.spans.size(); ++i) {
      const ReportSpan& s = view_.spans[i];
      LaneUse& use = view_.use[s.lane];
      std::uint64_t& at = reached[s.lane];
      // What a wait or a late start waits for ends at `made`.
      const std::uint64_t made = source_[i] == kNone ? 0 : view_.spans[source_[i]].end_ns;
      const auto wait_until = [&](std::uint64_t until) {
        const std::uint64_t ns = std::min(until, made) - at;
        use.wait += ns;
        awaited[{s.lane, view_.spans[source_[i]].lane}] += ns;
        at += ns;
      };
      if (s.begin_ns > at) {
        if (made > at) wait_until(s.begin_ns);
        (before_[i] == kNone && starts_late ? use.before : use.busy) += s.begin_ns - at;
        at = s.begin_ns;
      }
      if (s.end_ns <= at) continue;
      if (s.kind == Task::Kind::wait && made > at) {
        wait_until(s.end_ns);
        use.hand_off += s.end_ns - at;
      } else {
        (is_node(s) ? use.run : use.sync) += s.end_ns - at;
      }
      at = s.end_ns;
    }
    for (std::size_t lane = 0; lane < reached.size(); ++lane) view_.use[lane].after = view_.total_ns - std::min(view_.total_ns, reached[lane]);
    for (const auto& [pair, ns] : awaited) view_.awaited.push_back({pair.first, pair.second, ns});
  }

  void engines(std::size_t count) {
    view_.engine_ns.assign(count, 0);
    for (const ReportSpan& s : view_.spans) {
      if (s.kind != Task::Kind::launch) continue;
      if (const auto engine = nodes_[s.index].engine) view_.engine_ns[engine->index] += s.end_ns - s.begin_ns;
    }
  }

  // Backwards from the last end: to the record a wait was blocked on, else to what ran before on the lane, else to the node
  // whose end let this one begin.
  void path() {
    std::vector<bool> seen(view_.spans.size(), false);
    std::uint32_t at = kNone;
    for (std::uint32_t i = 0; i < view_.spans.size(); ++i) {
      if (at == kNone || view_.spans[i].end_ns > view_.spans[at].end_ns) at = i;
    }
    std::uint64_t upper = view_.total_ns;
    while (at != kNone && !seen[at]) {
      seen[at] = true;
      const ReportSpan& s = view_.spans[at];
      add(PathCause::gap, upper - std::min(upper, s.end_ns));
      upper = std::min(upper, s.end_ns);
      const std::uint32_t next = cause_of(at);
      const std::uint64_t lower = next == kNone ? 0 : view_.spans[next].end_ns;
      const bool blocked = s.kind == Task::Kind::wait && next != kNone && next == source_[at];
      const std::uint64_t from = blocked ? std::min(lower, upper) : std::min(s.begin_ns, upper);
      add(blocked ? PathCause::hand_off : is_node(s) ? PathCause::nodes : PathCause::sync, upper - from);
      upper = from;
      view_.critical.push_back(at);
      at = next;
    }
    add(PathCause::gap, upper);
    std::reverse(view_.critical.begin(), view_.critical.end());
  }

 private:
  void add(PathCause cause, std::uint64_t ns) { view_.path_ns[static_cast<std::size_t>(cause)] += ns; }

  std::uint32_t cause_of(std::uint32_t i) const {
    const ReportSpan& s = view_.spans[i];
    const std::uint32_t lane = before_[i], source = source_[i];
    const std::uint64_t lane_end = lane == kNone ? 0 : view_.spans[lane].end_ns;
    if (source != kNone && view_.spans[source].end_ns <= s.end_ns && view_.spans[source].end_ns > lane_end) return source;
    if (s.kind == Task::Kind::wait || lane_end >= s.begin_ns) return lane;
    auto after = std::upper_bound(by_end_.begin(), by_end_.end(), s.begin_ns,
                                  [&](std::uint64_t t, std::uint32_t j) { return t < view_.spans[j].end_ns; });
    while (after != by_end_.begin() && *--after == i) {
    }
    if (after == by_end_.end() || *after == i || view_.spans[*after].end_ns > s.begin_ns || view_.spans[*after].end_ns <= lane_end) return lane;
    return *after;
  }

  ReportView& view_;
  const std::vector<ReportNode>& nodes_;
  std::vector<std::uint32_t> source_;  // by span: the arrow into it that ends last
  std::vector<std::uint32_t> before_;  // by span: the one before on its lane
  std::vector<std::uint32_t> by_end_;  // nodes
};

}  // namespace

std::string_view to_string(PathCause cause) {
  switch (cause) {
    case PathCause::nodes: return "nodes";
    case PathCause::sync: return "records and waits";
    case PathCause::hand_off: return "hand-off from record to wait";
    case PathCause::gap: return "gaps";
  }
  return "?";
}

ReportView analyse(ReportView view, const std::vector<ReportNode>& nodes, std::size_t engines, bool starts_late) {
  Analysis analysis(view, nodes);
  analysis.lanes(starts_late);
  analysis.engines(engines);
  analysis.path();
  return view;
}

}  // namespace millstream
