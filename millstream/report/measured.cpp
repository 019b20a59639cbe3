// SPDX-License-Identifier: Apache-2.0
#include "millstream/report/measured.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "millstream/trace/overlap.h"

namespace millstream {
namespace {

// By name, the record of the last run.
std::map<std::string_view, std::size_t> last_runs(const std::vector<ProfileRecord>& records, const Joined& joined) {
  std::optional<std::int64_t> device;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].device && !joined.nodes_of[i].empty()) device = std::min(device.value_or(*records[i].device), *records[i].device);
  }
  std::map<std::string_view, std::size_t> last;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const ProfileRecord& r = records[i];
    if (!r.start_ns || joined.nodes_of[i].empty() || (r.device && r.device != device)) continue;
    const auto [at, fresh] = last.emplace(r.op_name, i);
    if (!fresh && *records[at->second].start_ns <= *r.start_ns) at->second = i;
  }
  return last;
}

// Whether two nodes share a lane exactly where they share a stream of the plan: then the plan may be what ran.
bool has_streams_of(const ReportView& view, const ReportPlan& plan) {
  std::map<std::uint32_t, std::uint32_t> stream_of, lane_of;
  for (const ReportSpan& s : view.spans) {
    const auto stream = plan.nodes[s.index].lane;
    if (!stream || stream_of.emplace(s.lane, *stream).first->second != *stream || lane_of.emplace(*stream, s.lane).first->second != s.lane) return false;
  }
  return true;
}

}  // namespace

std::optional<ReportView> view_of_records(const ReportInput& in, const ReportPlan& plan, const std::vector<ProfileRecord>& records,
                                          const Joined& joined) {
  const std::map<std::string_view, std::size_t> last = last_runs(records, joined);
  if (last.empty()) return std::nullopt;
  std::map<std::optional<std::int64_t>, std::uint32_t> lane_of;  // none: communication has no stream of its own
  std::int64_t zero = *records[last.begin()->second].start_ns;
  for (const auto& [name, i] : last) {
    lane_of.emplace(records[i].stream, 0);
    zero = std::min(zero, *records[i].start_ns);
  }
  ReportView view;
  view.what = "measured: profile";
  for (auto& [stream, lane] : lane_of) {
    lane = static_cast<std::uint32_t>(view.lanes.size());
    view.lanes.push_back(stream ? fmt::format("device stream {}", *stream) : std::string("no stream"));
  }
  for (const auto& [name, i] : last) {
    const auto begin = static_cast<std::uint64_t>(*records[i].start_ns) - static_cast<std::uint64_t>(zero);
    view.spans.push_back({lane_of.at(records[i].stream), Task::Kind::launch, joined.nodes_of[i].front().index, begin, begin + static_cast<std::uint64_t>(records[i].dur_ns)});
  }
  std::sort(view.spans.begin(), view.spans.end(), [](const ReportSpan& a, const ReportSpan& b) {
    return std::tuple(a.lane, a.begin_ns, a.end_ns, a.index) < std::tuple(b.lane, b.begin_ns, b.end_ns, b.index);
  });
  std::vector<std::optional<std::uint32_t>> span_of(in.graph.node_count());
  for (std::uint32_t s = 0; s < view.spans.size(); ++s) {
    view.total_ns = std::max(view.total_ns, view.spans[s].end_ns);
    span_of[view.spans[s].index] = s;
  }
  const bool may_be_of_plan = has_streams_of(view, plan);
  for (const SyncPair& p : in.sync.kept) {
    if (may_be_of_plan && span_of[p.from.index] && span_of[p.to.index] && p.from != p.to) view.arrows.emplace_back(*span_of[p.from.index], *span_of[p.to.index]);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const ReportSpan& s : view.spans) runs.emplace_back(s.begin_ns, s.end_ns);
  view.overlap = overlap(runs);
  return analyse(std::move(view), plan.nodes, plan.engines.size(), false);
}

}  // namespace millstream
