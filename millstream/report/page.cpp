// SPDX-License-Identifier: Apache-2.0
// The data as JSON, and the page around it.
#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "millstream/report/page.h"
#include "millstream/report/report_data.h"

namespace millstream {
namespace {

using Json = nlohmann::ordered_json;

// Of a proof that is longer the page says how many steps follow; with all of them a wide graph's page would be mostly proofs.
constexpr std::size_t kShownSteps = 6;

// An infinite prediction is none.
Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

template <class IdT>
std::int64_t index_of(const std::optional<IdT>& id) {
  return id ? std::int64_t{id->index} : -1;
}

Json nodes_json(const ReportPlan& plan, Json& types) {
  std::map<std::string, std::size_t> type_of;
  Json out = {{"name", Json::array()}, {"type", Json::array()}, {"stream", Json::array()}, {"rule", Json::array()}, {"engine", Json::array()}};
  for (const ReportNode& n : plan.nodes) {
    const auto [at, fresh] = type_of.emplace(n.type, types.size());
    if (fresh) types.push_back(n.type);
    out["name"].push_back(n.name);
    out["type"].push_back(at->second);
    out["stream"].push_back(n.lane ? std::int64_t{*n.lane} : -1);
    out["rule"].push_back(index_of(n.rule));
    out["engine"].push_back(index_of(n.engine));
  }
  return out;
}

Json view_json(const ReportPlan& plan, const ReportView& view) {
  Json out = {{"what", view.what}, {"total_ns", view.total_ns}, {"overlap", number(view.overlap)}};
  out["lanes"] = view.lanes;
  // By lane how many spans; a begin counts from the end before it on the lane: most are 0, which keeps large pages small.
  std::vector<std::uint32_t> counts(view.lanes.size(), 0);
  Json kind = Json::array(), index = Json::array(), gap = Json::array(), length = Json::array(), arrows = Json::array();
  for (std::size_t i = 0; i < view.spans.size(); ++i) {
    const ReportSpan& s = view.spans[i];
    const bool follows = i != 0 && view.spans[i - 1].lane == s.lane;
    ++counts[s.lane];
    kind.push_back(static_cast<int>(s.kind));
    index.push_back(s.index);
    gap.push_back(static_cast<std::int64_t>(s.begin_ns) - static_cast<std::int64_t>(follows ? view.spans[i - 1].end_ns : 0));
    length.push_back(s.end_ns - s.begin_ns);
  }
  out["spans"] = {{"counts", counts}, {"k", std::move(kind)}, {"n", std::move(index)}, {"gap", std::move(gap)}, {"d", std::move(length)}};
  for (const auto& [from, to] : view.arrows) {
    arrows.push_back(from);
    arrows.push_back(to);
  }
  out["arrows"] = std::move(arrows);
  out["critical"] = view.critical;
  out["path"] = Json::array();
  for (std::size_t i = 0; i < view.path_ns.size(); ++i) out["path"].push_back({to_string(static_cast<PathCause>(i)), view.path_ns[i]});
  out["use"] = Json::array();
  for (const LaneUse& u : view.use) {
    Json row;
    for (const LaneCause& cause : lane_causes()) row[std::string(cause.key)] = u.*cause.ns;
    out["use"].push_back(std::move(row));
  }
  out["awaited"] = Json::array();
  for (const LaneWait& w : view.awaited) out["awaited"].push_back({w.lane, w.other, w.ns});
  // A device may have many engines of which a model uses few.
  std::vector<bool> used(plan.engines.size(), false);
  for (const ReportNode& n : plan.nodes) {
    if (n.engine) used[n.engine->index] = true;
  }
  out["engines"] = Json::array();
  for (std::size_t e = 0; e < view.engine_ns.size(); ++e) {
    if (used[e]) out["engines"].push_back({{"engine", e}, {"units", plan.engine_units[e]}, {"busy_ns", view.engine_ns[e]}});
  }
  return out;
}

Json plan_json(const ReportPlan& plan) {
  const SyncPlan& sync = plan.sync;
  Json out = {{"title", plan.title}, {"file", plan.file}, {"target", plan.target}, {"threads", plan.threads}};
  out["counts"] = {{"streams", plan.streams}, {"pairs_inserted", plan.pairs_inserted}, {"pairs_kept", sync.kept.size()},
                   {"pairs_compat", sync.compat ? Json(sync.compat->kept()) : Json(nullptr)},
                   {"records", plan.records}, {"waits", plan.waits}, {"events", plan.events}};
  out["bounds"] = nullptr;
  if (plan.estimate && plan.bound) {
    out["bounds"] = {{"span_us", number(plan.estimate->span_us)}, {"single_stream_us", number(plan.estimate->single_stream_us)},
                     {"lower_bound_us", number(plan.estimate->lower_bound_us)}, {"limited_by", plan.estimate->limited_by},
                     {"critical_path_us", number(plan.bound->critical_path_us)}, {"cores_us", number(plan.bound->cores_us)},
                     {"bandwidth_us", number(plan.bound->bandwidth_us)}};
  }
  out["engines"] = plan.engines;
  out["rules"] = Json::array();
  for (const auto& [name, reason] : plan.rules) out["rules"].push_back({{"name", name}, {"reason", reason}});
  Json types = Json::array();
  out["nodes"] = nodes_json(plan, types);
  out["types"] = std::move(types);
  out["splits"] = Json::object();
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    if (!plan.nodes[n].split.empty()) out["splits"][std::to_string(n)] = plan.nodes[n].split;
  }
  out["reasons"] = Json::array();
  for (int r = 0; r <= static_cast<int>(PairReason::merged); ++r) out["reasons"].push_back(to_string(static_cast<PairReason>(r)));
  out["pairs"] = Json::array();
  for (const SyncPair& p : sync.kept) {
    for (const std::uint32_t x : {p.from.index, p.to.index, static_cast<std::uint32_t>(p.reason)}) out["pairs"].push_back(x);
  }
  out["starts"] = Json::array();
  for (const StartFact& f : sync.starts) out["starts"].push_back({f.source.index, f.start.index});
  out["dropped"] = Json::array();
  for (const DroppedPair& d : sync.dropped) {
    const auto path = sync.path(d);
    const std::size_t shown = std::min(path.size(), kShownSteps);
    Json row = {d.pair.from.index, d.pair.to.index, path.size() - shown};
    for (const PairId step : path.first(shown)) {
      const std::int64_t i = step.index & ~kStartStep;
      row.push_back((step.index & kStartStep) != 0 ? -i - 1 : i);
    }
    out["dropped"].push_back(std::move(row));
  }
  out["notes"] = plan.notes;
  out["runs"] = Json::array();
  for (const ReportView& view : plan.views) out["runs"].push_back(view_json(plan, view));
  return out;
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  MST_CHECK(at != std::string::npos, "the page has a place for each of its parts");
  text.replace(at, mark.size(), by);
}

}  // namespace

std::string to_json(const std::vector<ReportPlan>& plans) {
  Json out = {{"version", 1}, {"tool", "millstream 0.1.0"}, {"plans", Json::array()}};
  for (const ReportPlan& plan : plans) out["plans"].push_back(plan_json(plan));
  const std::string text = out.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') safe += "\\u003c";  // no name closes the page's script element
    else safe += c;
  }
  return safe;
}

std::string to_html(const std::vector<ReportPlan>& plans) {
  std::string page(report_page::html());
  replace(page, "@MST_REPORT_STYLE@", report_page::style());
  replace(page, "@MST_REPORT_SCRIPT@", report_page::script());
  replace(page, "@MST_REPORT_DATA@", to_json(plans));  // last: what it holds is not looked at again
  return page;
}

}  // namespace millstream
