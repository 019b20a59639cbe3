// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/plan_difference.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream::cli {
namespace {

// Which stream of b is which of a: the two that share most nodes first, ties by number.
std::map<std::uint32_t, std::uint32_t> matched_streams(const PlanSide& a, const PlanSide& b) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> shared;
  for (const auto& [name, stream] : a.stream) {
    if (const auto it = b.stream.find(name); it != b.stream.end()) ++shared[{stream, it->second}];
  }
  std::vector<std::pair<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>>> order;
  for (const auto& [pair, count] : shared) order.push_back({count, pair});
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::map<std::uint32_t, std::uint32_t> to;
  std::set<std::uint32_t> taken;
  for (const auto& [count, pair] : order) {
    if (to.count(pair.first) == 0 && taken.insert(pair.second).second) to.emplace(pair.first, pair.second);
  }
  return to;
}

}  // namespace

Result<PlanSide> plan_side(const Graph& graph, const Schedule& schedule, bool has_waits) {
  PlanSide side;
  side.has_waits = has_waits;
  for (const PhysicalStream& s : schedule.streams) {
    for (const Task& t : s.tasks) {
      if (t.kind == Task::Kind::launch) side.stream[std::string(graph.name(t.node()))] = s.logical.index;
    }
  }
  if (!has_waits) return side;
  MST_TRY(const std::vector<SyncPair> pairs, pairs_of(graph, schedule));
  for (const SyncPair& p : pairs) side.waits.insert({std::string(graph.name(p.from)), std::string(graph.name(p.to))});
  return side;
}

PlanDifference plan_difference(const PlanSide& a, const PlanSide& b) {
  PlanDifference out;
  const auto match = matched_streams(a, b);
  const auto same = [&](std::uint32_t x, std::uint32_t y) {
    const auto it = match.find(x);
    return it != match.end() && it->second == y;
  };
  for (const auto& [x, y] : match) {
    if (x != y) out.renumbered.push_back({{"from", x}, {"to", y}});
  }
  for (const auto& [name, stream] : a.stream) {
    auto it = b.stream.find(name);
    if (it == b.stream.end()) {
      out.moved.push_back({{"node", name}, {"from", stream}, {"to", nullptr}});
    } else if (!same(stream, it->second)) {
      out.moved.push_back({{"node", name}, {"from", stream}, {"to", it->second}});
    }
  }
  for (const auto& [name, stream] : b.stream) {
    if (a.stream.count(name) == 0) out.moved.push_back({{"node", name}, {"from", nullptr}, {"to", stream}});
  }
  if (!a.has_waits || !b.has_waits) return out;
  for (const auto& w : b.waits) {
    if (a.waits.count(w) == 0) out.added_waits.push_back({{"from", w.first}, {"to", w.second}});
  }
  for (const auto& w : a.waits) {
    if (b.waits.count(w) == 0) out.removed_waits.push_back({{"from", w.first}, {"to", w.second}});
  }
  return out;
}

void print_difference(const PlanDifference& d, std::string_view a, std::string_view b) {
  const auto stream = [](const Json& s) { return s.is_null() ? std::string("absent") : fmt::format("stream {}", s.get<std::uint32_t>()); };
  for (const Json& r : d.renumbered) fmt::print("same     stream {} of {} is stream {} of {}\n", r["from"].get<std::uint32_t>(), a, r["to"].get<std::uint32_t>(), b);
  for (const Json& m : d.moved) fmt::print("moved    {}: {} of {} -> {} of {}\n", quote_name(m["node"].get<std::string>()), stream(m["from"]), a, stream(m["to"]), b);
  for (const Json& w : d.added_waits) fmt::print("added    wait of {} for {}\n", quote_name(w["to"].get<std::string>()), quote_name(w["from"].get<std::string>()));
  for (const Json& w : d.removed_waits) fmt::print("removed  wait of {} for {}\n", quote_name(w["to"].get<std::string>()), quote_name(w["from"].get<std::string>()));
}

void print_totals(const PlanDifference& d) {
  fmt::print("{} moved, {} added, {} removed\n", counted(d.moved.size(), "node"), counted(d.added_waits.size(), "wait"), d.removed_waits.size());
}

}  // namespace millstream::cli
