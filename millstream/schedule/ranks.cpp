// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/ranks.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream {
namespace {

bool is_collective(std::string_view type) { return type.substr(0, 4) == "Hcom" || type.substr(0, 7) == "Horovod"; }

using Key = std::pair<std::string, std::string>;  // group, name

struct Collective {
  std::uint32_t stream = 0;
  std::uint32_t position = 0;         // task, from 1
  std::vector<std::uint32_t> before;  // by stream: tasks that precede it
};

struct Rank {
  std::map<Key, Collective> collectives;
  std::vector<Key> order;  // as they stand in the graph
  std::set<std::string> groups;
};

bool precedes(const Collective& a, const Collective& b) { return b.before[a.stream] >= a.position; }

Result<Rank> read_rank(const RankPlan& plan) {
  const Schedule& schedule = *plan.schedule;
  if (schedule.has_control()) {
    return Error{ErrorCode::control_flow, fmt::format("the plan of {} has control flow; collectives are compared only over straight plans", plan.name)};
  }
  Rank out;
  const std::size_t width = schedule.streams.size();
  std::vector<std::size_t> at(width, 0);
  std::vector<std::vector<std::uint32_t>> now(width, std::vector<std::uint32_t>(width, 0));
  std::map<std::uint32_t, std::vector<std::uint32_t>> recorded;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < width; ++s) {
      const auto& tasks = schedule.streams[PhysicalStreamId(s)].tasks;
      for (; at[s] < tasks.size(); ++at[s], moved = true) {
        const Task& t = tasks[at[s]];
        if (t.kind == Task::Kind::wait) {
          const auto r = recorded.find(t.index);
          if (r == recorded.end()) break;
          for (std::size_t k = 0; k < width; ++k) now[s][k] = std::max(now[s][k], r->second[k]);
          recorded.erase(r);
        }
        if (t.kind == Task::Kind::launch && is_collective(plan.graph->type(t.node()))) {
          const Key key{plan.graph->attrs(t.node()).get_string("group", ""), std::string(plan.graph->name(t.node()))};
          out.groups.insert(key.first);
          out.collectives[key] = {static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(at[s] + 1), now[s]};
        }
        now[s][s] = static_cast<std::uint32_t>(at[s] + 1);
        if (t.kind == Task::Kind::record) recorded[t.index] = now[s];
      }
    }
  }
  for (std::size_t s = 0; s < width; ++s) {
    if (at[s] == schedule.streams[PhysicalStreamId(s)].tasks.size()) continue;
    return Error{ErrorCode::deadlock, fmt::format("the plan of {} does not run to its end: stream {} stops at task {}", plan.name, s, at[s])}
        .help("check that plan alone first");
  }
  for (const NodeId n : plan.graph->order()) {
    const Key key{plan.graph->attrs(n).get_string("group", ""), std::string(plan.graph->name(n))};
    if (is_collective(plan.graph->type(n)) && out.collectives.count(key) != 0) out.order.push_back(key);
  }
  return out;
}

}  // namespace

Result<std::vector<RankConflict>> check_ranks(std::span<const RankPlan> plans) {
  std::vector<Rank> ranks;
  for (const RankPlan& p : plans) {
    MST_TRY(Rank r, read_rank(p));
    ranks.push_back(std::move(r));
  }
  std::vector<Key> all;
  std::set<Key> seen;
  for (const Rank& r : ranks) {
    for (const Key& k : r.order) {
      if (seen.insert(k).second) all.push_back(k);
    }
  }
  std::vector<RankConflict> out;
  const auto group_text = [](const Key& k) { return k.first.empty() ? std::string() : fmt::format(" of group {}", quote_name(k.first)); };
  for (const Key& k : all) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      // Of a named group are the ranks that use it; the group without a name is all ranks.
      if (ranks[r].collectives.count(k) != 0 || (!k.first.empty() && ranks[r].groups.count(k.first) == 0)) continue;
      const auto with = std::find_if(ranks.begin(), ranks.end(), [&](const Rank& x) { return x.collectives.count(k) != 0; });
      const auto other = static_cast<std::size_t>(with - ranks.begin());
      out.push_back({RankConflict::Kind::missing, k.second, "", {other, r},
                     fmt::format("{} runs collective {}{}, {} never does: it waits for ever", plans[other].name, quote_name(k.second), group_text(k),
                                 plans[r].name)});
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      std::optional<std::size_t> forward, backward, neither, shared;
      std::size_t common = 0;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const auto a = ranks[r].collectives.find(all[i]), b = ranks[r].collectives.find(all[j]);
        if (a == ranks[r].collectives.end() || b == ranks[r].collectives.end()) continue;
        ++common;
        auto& which = precedes(a->second, b->second) ? forward : precedes(b->second, a->second) ? backward : neither;
        if (!which) which = r;
        if (!shared) shared = r;
      }
      if (common < 2) continue;
      const std::string a = quote_name(all[i].second), b = quote_name(all[j].second);
      if (forward && backward) {
        out.push_back({RankConflict::Kind::order, all[i].second, all[j].second, {*forward, *backward},
                       fmt::format("{} runs {} before {}, {} runs {} before {}: each waits for the other", plans[*forward].name, a, b,
                                   plans[*backward].name, b, a)});
      } else if (neither) {
        const std::size_t other = *shared != *neither ? *shared : forward ? *forward : backward ? *backward : *neither;
        out.push_back({RankConflict::Kind::unordered, all[i].second, all[j].second, {*neither, other},
                       fmt::format("nothing orders {} and {} on {}, which shares both with other ranks and may start them either way", a, b,
                                   plans[*neither].name)});
      }
    }
  }
  return out;
}

}  // namespace millstream
