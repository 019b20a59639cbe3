// SPDX-License-Identifier: Apache-2.0
// check and the event ids against an interpreter that tries every run of a small schedule, and against the
// oracle. MST_PROPERTY_COUNT sets how many schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "millstream/graph/dependencies.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

std::set<Edge> dependencies(const Graph& graph) {
  const Dependencies direct(graph);
  std::set<Edge> out;
  for (const NodeId v : graph.nodes()) {
    for (const NodeId u : direct.predecessors(v)) out.insert({u.index, v.index});
  }
  return out;
}

std::vector<Task>& lane(Schedule& s, std::size_t i) { return s.streams[PhysicalStreamId(i)].tasks; }
const std::vector<Task>& lane(const Schedule& s, std::size_t i) { return s.streams[PhysicalStreamId(i)].tasks; }

// Every run of a schedule whose waits consume: any stream that can step may step next.
class EveryRun {
 public:
  EveryRun(const Graph& graph, const Schedule& schedule) : schedule_(schedule), edges_(dependencies(graph)) {
    State start;
    start.at.resize(schedule.streams.size(), 0);
    start.set.resize(schedule.event_count, false);
    todo_.push_back(start);
    seen_.insert(start);
    while (!todo_.empty()) {
      const State s = todo_.back();
      todo_.pop_back();
      explore(s);
    }
  }
  bool ok() const { return !hangs && !overwrites && lost.empty(); }
  bool hangs = false;       // some run stops early
  bool overwrites = false;  // some run records a set event
  std::set<Edge> lost;      // some run starts the later node first

 private:
  struct State {
    std::vector<std::size_t> at;
    std::vector<bool> set;
    auto operator<=>(const State&) const = default;
  };
  void explore(const State& s) {
    bool moved = false, finished = true;
    std::set<std::uint32_t> ran;
    for (std::size_t i = 0; i < s.at.size(); ++i) {
      for (std::size_t k = 0; k < s.at[i]; ++k) {
        if (lane(schedule_, i)[k].kind == Task::Kind::launch) ran.insert(lane(schedule_, i)[k].index);
      }
    }
    for (std::size_t i = 0; i < s.at.size(); ++i) {
      if (s.at[i] == lane(schedule_, i).size()) continue;
      finished = false;
      const Task t = lane(schedule_, i)[s.at[i]];
      State next = s;
      ++next.at[i];
      if (t.kind == Task::Kind::wait) {
        if (!s.set[t.index]) continue;
        next.set[t.index] = false;
      } else if (t.kind == Task::Kind::record) {
        overwrites = overwrites || s.set[t.index];
        next.set[t.index] = true;
      } else {
        for (const Edge& e : edges_) {
          if (e.second == t.index && ran.count(e.first) == 0) lost.insert(e);
        }
      }
      moved = true;
      if (seen_.insert(next).second) todo_.push_back(next);
    }
    hangs = hangs || (!moved && !finished);
  }

  const Schedule& schedule_;
  std::set<Edge> edges_;
  std::vector<State> todo_;
  std::set<State> seen_;
};

Placed random_case(Random& random, std::size_t most = 9) {
  return random_placed(random, 3 + random.below(most - 2), 1 + random.below(4), 0.1 + 0.4 * static_cast<double>(random.below(100)) / 100);
}

// Deletes, adds or moves a task, or gives an event another id.
void mutate(Random& random, Schedule& s) {
  const std::size_t from = random.below(s.streams.size()), to = random.below(s.streams.size());
  const auto place = [&](std::size_t i) { return lane(s, i).begin() + static_cast<std::ptrdiff_t>(random.below(lane(s, i).size() + 1)); };
  std::vector<std::size_t> syncs;
  for (std::size_t i = 0; i < lane(s, from).size(); ++i) {
    if (lane(s, from)[i].kind != Task::Kind::launch) syncs.push_back(i);
  }
  const std::uint64_t what = random.below(5);
  if (what == 0) {  // a pair more
    const EventId e(s.event_count++);
    lane(s, from).insert(place(from), Task::record(e));
    lane(s, to).insert(place(to), Task::wait(e));
    return;
  }
  if (syncs.empty()) return;
  const std::size_t i = syncs[random.below(syncs.size())];
  const Task t = lane(s, from)[i];
  if (what == 4) {
    lane(s, from)[i].index = static_cast<std::uint32_t>(random.below(s.event_count));
    return;
  }
  lane(s, from).erase(lane(s, from).begin() + static_cast<std::ptrdiff_t>(i));
  if (what == 1) return;
  const std::size_t target = what == 2 ? from : to;
  lane(s, target).insert(place(target), t);
}

TEST(ScheduleProperty, CheckAgreesWithEveryRun) {
  std::uint64_t accepted = 0, raced = 0, hung = 0, reused = 0;
  for (std::uint64_t seed = 0; seed < property_count(3000); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Placed p = random_case(random);
    Schedule s = schedule_of(p, plan_of(p, random.chance(0.3) ? SyncMode::none : SyncMode::exact),
                             random.chance(0.5) ? EventIds::minimal : EventIds::sequential);
    for (std::uint64_t n = random.below(3); n > 0; --n) mutate(random, s);
    SCOPED_TRACE(print(p.graph, s));
    const EveryRun truth(p.graph, s);
    const CheckReport report = check(p.graph, s, nullptr);
    std::set<Edge> races;
    bool stuck = false, reuse = false;
    for (const Violation& v : report.violations) {
      stuck = stuck || v.kind == Violation::Kind::deadlock || v.kind == Violation::Kind::unmatched_wait;
      reuse = reuse || v.kind == Violation::Kind::event_reuse;
      if (v.kind == Violation::Kind::race) races.insert({v.first->index, v.second->index});
    }
    if (report.ok()) {
      ASSERT_TRUE(truth.ok());
    }
    if (stuck) {
      ASSERT_TRUE(truth.hangs);  // what check ran is a run
    }
    if (!reuse) {
      ASSERT_EQ(report.ok(), truth.ok());
      ASSERT_EQ(stuck, truth.hangs);
      if (!stuck) {  // every run pairs alike
        ASSERT_FALSE(truth.overwrites);
        ASSERT_EQ(races, truth.lost);
        const HappensBefore order(p.graph, s);
        for (const Edge& e : dependencies(p.graph)) {
          ASSERT_EQ(order.before(NodeId(e.first), NodeId(e.second)), races.count(e) == 0);
        }
      }
    }
    accepted += report.ok();
    raced += !races.empty();
    hung += stuck;
    reused += reuse;
  }
  if (property_count(3000) >= 1000) {
    EXPECT_GT(accepted, 300u);
    EXPECT_GT(raced, 300u);
    EXPECT_GT(hung, 100u);
    EXPECT_GT(reused, 20u);
  }
}

// "The deleted pair or one that it implied": the missing wait starts at or before the record and ends at or
// behind the wait that were separated.
TEST(ScheduleProperty, DeletingAnyWaitIsSeenAndNamed) {
  std::uint64_t deletions = 0;
  for (std::uint64_t seed = 0; seed < property_count(1500); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed + 1'000'000);
    const Placed p = random_placed(random, 4 + random.below(20), 2 + random.below(5), 0.2);
    const SyncPlan plan = plan_of(p);
    for (const EventIds how : {EventIds::minimal, EventIds::sequential}) {
      const Schedule whole = schedule_of(p, plan, how);
      const CheckReport clean = check(p.graph, whole, nullptr);
      ASSERT_TRUE(clean.ok()) << clean.violations[0].message;
      ASSERT_TRUE(clean.redundant.empty());
      const HappensBefore order(p.graph, whole);
      const auto upto = [&](NodeId a, NodeId b) { return a == b || order.before(a, b); };
      // Waits stand before their node in kept order, so the i-th wait of a node is its i-th kept pair.
      for (const SyncPair& pair : plan.kept) {
        std::size_t nth = 0;
        for (const SyncPair& other : plan.kept) nth += other.to == pair.to && other.from < pair.from;
        Schedule s = whole;
        std::vector<Task>& tasks = lane(s, p.on.placement[pair.to]->stream.index);
        std::size_t at = 0;
        while (tasks[at] != Task::launch(pair.to)) ++at;
        while (at > 0 && tasks[at - 1].kind == Task::Kind::wait) --at;
        ASSERT_EQ(tasks[at + nth].kind, Task::Kind::wait);
        tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(at + nth));
        const CheckReport report = check(p.graph, s, nullptr);
        ASSERT_FALSE(report.ok());
        const auto race = std::find_if(report.violations.begin(), report.violations.end(),
                                       [](const Violation& v) { return v.kind == Violation::Kind::race; });
        ASSERT_NE(race, report.violations.end()) << print(p.graph, s) << report.violations[0].message;
        ASSERT_EQ(race, report.violations.begin());
        ASSERT_TRUE(race->missing_from && race->missing_to);
        ASSERT_TRUE(upto(*race->missing_from, pair.from) && upto(pair.to, *race->missing_to))
            << print(p.graph, s) << "deleted " << p.graph.name(pair.from) << " -> " << p.graph.name(pair.to) << ", got " << race->message;
        ++deletions;
      }
    }
  }
  EXPECT_GT(deletions, 0u);
}

// A wait is redundant iff the oracle still has every dependency without it.
TEST(ScheduleProperty, RedundantWaitsAreExact) {
  std::uint64_t redundant = 0, needed = 0;
  for (std::uint64_t seed = 0; seed < property_count(1000); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed + 2'000'000);
    const Placed p = random_case(random, 12);
    Schedule s = schedule_of(p, plan_of(p, random.chance(0.5) ? SyncMode::none : SyncMode::exact), EventIds::sequential);
    for (std::uint64_t n = random.below(4); n > 0; --n) {  // more pairs, forwards
      const std::size_t from = random.below(s.streams.size()), to = random.below(s.streams.size());
      const EventId e(s.event_count++);
      lane(s, from).insert(lane(s, from).begin() + static_cast<std::ptrdiff_t>(random.below(lane(s, from).size() + 1)), Task::record(e));
      lane(s, to).insert(lane(s, to).begin() + static_cast<std::ptrdiff_t>(random.below(lane(s, to).size() + 1)), Task::wait(e));
    }
    const CheckReport report = check(p.graph, s, nullptr);
    if (!report.ok()) continue;  // the added pairs closed a circle
    std::set<TaskRef> listed;
    for (const auto& r : report.redundant) {
      listed.insert(r.wait);
      ASSERT_EQ(lane(s, r.wait.stream.index)[r.wait.index], Task::wait(r.event));
    }
    for (std::size_t i = 0; i < s.streams.size(); ++i) {
      for (std::size_t k = 0; k < lane(s, i).size(); ++k) {
        if (lane(s, i)[k].kind != Task::Kind::wait) continue;
        Schedule without = s;
        lane(without, i).erase(lane(without, i).begin() + static_cast<std::ptrdiff_t>(k));
        const HappensBefore order(p.graph, without);
        bool all = true;
        for (const Edge& e : dependencies(p.graph)) all = all && order.before(NodeId(e.first), NodeId(e.second));
        ASSERT_EQ(all, listed.count({PhysicalStreamId(i), static_cast<std::uint32_t>(k)}) == 1)
            << print(p.graph, s) << "stream " << i << " task " << k;
        ++(all ? redundant : needed);
      }
    }
  }
  if (property_count(1000) >= 500) {
    EXPECT_GT(redundant, 100u);
    EXPECT_GT(needed, 100u);
  }
}

// p may hand its id to q iff p's wait comes before q's record, and before q's wait without q: by brute force
// over the tasks of a schedule that gives each pair its own id.
std::vector<std::vector<bool>> may_hand_over(const Schedule& s) {
  std::vector<Task> tasks;
  std::vector<std::size_t> record(s.event_count), wait(s.event_count);
  std::vector<std::pair<std::size_t, std::size_t>> along;
  for (std::size_t i = 0; i < s.streams.size(); ++i) {
    for (std::size_t k = 0; k < lane(s, i).size(); ++k) {
      if (k > 0) along.push_back({tasks.size() - 1, tasks.size()});
      const Task t = lane(s, i)[k];
      if (t.kind == Task::Kind::record) record[t.index] = tasks.size();
      if (t.kind == Task::Kind::wait) wait[t.index] = tasks.size();
      tasks.push_back(t);
    }
  }
  const auto closure = [&](std::size_t without) {
    const std::size_t n = tasks.size();
    std::vector<std::vector<bool>> r(n, std::vector<bool>(n, false));
    for (const auto& [a, b] : along) r[a][b] = true;
    for (std::size_t e = 0; e < s.event_count; ++e) {
      if (e != without) r[record[e]][wait[e]] = true;
    }
    for (std::size_t w = 0; w < n; ++w) {
      for (std::size_t u = 0; u < n; ++u) {
        for (std::size_t v = 0; r[u][w] && v < n; ++v) {
          if (r[w][v]) r[u][v] = true;
        }
      }
    }
    return r;
  };
  const auto all = closure(s.event_count);
  std::vector<std::vector<bool>> out(s.event_count, std::vector<bool>(s.event_count, false));
  for (std::size_t q = 0; q < s.event_count; ++q) {
    const auto rest = closure(q);
    for (std::size_t p = 0; p < s.event_count; ++p) out[p][q] = all[wait[p]][record[q]] && rest[wait[p]][wait[q]];
  }
  return out;
}

// Fewest classes of pairwise comparable pairs, by trying.
std::size_t fewest(const std::vector<std::vector<bool>>& before, std::vector<std::vector<std::size_t>>& classes, std::size_t next, std::size_t best) {
  if (classes.size() >= best) return best;
  if (next == before.size()) return classes.size();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const bool fits = std::all_of(classes[c].begin(), classes[c].end(), [&](std::size_t p) { return before[p][next] || before[next][p]; });
    if (!fits) continue;
    classes[c].push_back(next);
    best = fewest(before, classes, next + 1, best);
    classes[c].pop_back();
  }
  classes.push_back({next});
  best = fewest(before, classes, next + 1, best);
  classes.pop_back();
  return best;
}

TEST(ScheduleProperty, EventIdsAreSafeAndFewest) {
  std::uint64_t pairs = 0, ids = 0;
  for (std::uint64_t seed = 0; seed < property_count(1000); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed + 3'000'000);
    const Placed p = random_placed(random, 4 + random.below(12), 2 + random.below(2), 0.25);
    const SyncPlan plan = plan_of(p);
    const Schedule s = schedule_of(p, plan);
    ASSERT_TRUE(check(p.graph, s, nullptr).ok()) << print(p.graph, s);
    if (plan.kept.size() <= 9) {
      ASSERT_TRUE(EveryRun(p.graph, s).ok()) << print(p.graph, s);
      std::vector<std::vector<std::size_t>> classes;
      ASSERT_EQ(s.event_count, fewest(may_hand_over(schedule_of(p, plan, EventIds::sequential)), classes, 0, plan.kept.size() + 1))
          << print(p.graph, s);
    }
    std::set<std::uint32_t> used;  // dense, in order of first record along the execution order
    for (std::size_t i = 0; i < s.streams.size(); ++i) {
      for (const Task& t : lane(s, i)) {
        if (t.kind == Task::Kind::record) used.insert(t.index);
      }
    }
    ASSERT_EQ(used.size(), s.event_count);
    pairs += plan.kept.size();
    ids += s.event_count;
  }
  EXPECT_LT(ids, pairs);
}

TEST(ScheduleProperty, ManyPairsAreColouredGreedilyAndSafely) {
  Random random(5);
  const Placed p = random_placed(random, 20'000, 6, 0.06);
  const SyncPlan plan = plan_of(p);
  const Schedule s = schedule_of(p, plan);
  EXPECT_GT(plan.kept.size(), 4096u);
  EXPECT_LT(s.event_count, plan.kept.size() / 4);
  EXPECT_TRUE(check(p.graph, s, nullptr).ok());
}

TEST(ScheduleProperty, ParseOfPrintIsTheSame) {
  for (std::uint64_t seed = 0; seed < property_count(1000); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed + 4'000'000);
    const Placed p = random_case(random, 20);
    Schedule s = schedule_of(p, plan_of(p), random.chance(0.5) ? EventIds::minimal : EventIds::sequential);
    if (random.chance(0.5) && s.streams.size() > 1) {  // the last stream is a piece of another
      PhysicalStream& last = s.streams[PhysicalStreamId(s.streams.size() - 1)];
      last.logical = StreamId(random.below(s.streams.size() - 1));
      --s.logical_streams;
    }
    const auto again = parse_schedule(print(p.graph, s), p.graph, "printed");
    ASSERT_TRUE(again.ok()) << to_string(again.error());
    ASSERT_EQ(*again, s);
  }
}

}  // namespace
}  // namespace millstream::testing
