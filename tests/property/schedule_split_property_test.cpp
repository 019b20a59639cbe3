// SPDX-License-Identifier: Apache-2.0
// Random graphs on random streams with small limits: splitting loses no order and adds no removable wait.
#include <algorithm>

#include <gtest/gtest.h>

#include "millstream/schedule/stages.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

TEST(SplitProperty, NoOrderIsLostNoWaitIsIdleAndPiecesKeepTheLimit) {
  const std::uint64_t graphs = property_count(200);
  std::size_t splits = 0, implied = 0;
  for (std::uint64_t seed = 1; seed <= graphs; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const std::size_t width = 1 + random.below(4);
    const Placed p = random_placed(random, 10 + random.below(50), width, 0.02 + 0.001 * static_cast<double>(random.below(100)));
    const SyncPlan plan = plan_of(p);
    std::vector<std::uint32_t> cost(p.graph.node_count(), 1);
    for (const SyncPair& k : plan.kept) ++cost[k.from.index], ++cost[k.to.index];
    Target t = no_limits();
    t.limits.tasks_per_stream = *std::max_element(cost.begin(), cost.end()) + 2 + static_cast<std::uint32_t>(random.below(12));
    for (const EventIds how : {EventIds::minimal, EventIds::sequential}) {
      LowerOptions options;
      options.event_ids = how;
      const auto s = lower(p.graph, p.on, plan, t, options);
      ASSERT_TRUE(s.ok()) << to_string(s.error());
      splits += s->splits.size();
      // The order of a stream is required where it is cut, whether or not the graph asks for it.
      std::vector<Requirement> kept_order;
      for (const SplitPoint& x : s->splits) {
        std::optional<NodeId> before;
        for (const NodeId n : p.graph.order()) {
          if (n == x.node) break;
          if (p.on.placement[n]->stream == p.on.placement[x.node]->stream) before = n;
        }
        kept_order.push_back({*before, x.node, Requirement::Kind::control, {}});
      }
      const CheckReport report = check(p.graph, *s, &t, kept_order);
      ASSERT_TRUE(report.ok()) << report.violations.front().message << "\n" << print(p.graph, *s);
      ASSERT_TRUE(report.redundant.empty()) << print(p.graph, *s);
      // Stream order is kept across pieces.
      const HappensBefore order(p.graph, *s);
      std::vector<std::optional<NodeId>> last(width);
      for (const NodeId n : p.graph.order()) {
        auto& before = last[p.on.placement[n]->stream.index];
        if (before) { ASSERT_TRUE(order.before(*before, n)) << p.graph.name(*before) << " " << p.graph.name(n) << "\n" << print(p.graph, *s); }
        before = n;
      }
      const auto again = parse_schedule(print(p.graph, *s), p.graph, "again");
      ASSERT_TRUE(again.ok()) << to_string(again.error());
      ASSERT_EQ(*again, *s);
      const auto names = task_names(p.graph, *s);
      std::vector<std::string> all;
      for (const auto& lane : names) all.insert(all.end(), lane.begin(), lane.end());
      std::sort(all.begin(), all.end());
      ASSERT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << *std::adjacent_find(all.begin(), all.end());
    }
    const auto cut = split_streams({p.graph, p.on, plan.kept, t, {}});
    implied += cut->points.size() - cut->pairs.size();
  }
  EXPECT_GT(splits, graphs / 4);
  EXPECT_GT(implied, 0u);
}

TEST(SplitProperty, AttachedPartsStaySoundAcrossCutsInEveryMode) {
  std::size_t splits = 0, parts = 0;
  for (std::uint64_t seed = 1; seed <= property_count(200); ++seed) {
    Random random(seed + 5'000'000);
    const std::size_t width = 1 + random.below(3);
    Placed p = random_placed(random, 8 + random.below(30), width, 0.08);
    std::vector<StreamId> attached;
    for (std::size_t i = random.below(3); i > 0; --i) attached.push_back(p.on.new_stream({"", std::nullopt, 0, true}));
    for (const NodeId n : p.graph.nodes()) {
      if (!attached.empty() && p.on.placement[n] && random.chance(0.2)) p.on.attached.set(n, {attached[random.below(attached.size())]});
    }
    Target t = no_limits();
    for (const SyncMode mode : {SyncMode::exact, SyncMode::compat, SyncMode::none}) {
      SCOPED_TRACE(fmt::format("seed {} mode {}", seed, static_cast<int>(mode)));
      const auto plan = plan_sync(p.graph, p.on, {mode});
      ASSERT_TRUE(plan.ok()) << to_string(plan.error());
      LowerOptions options;
      if (random.chance(0.5)) options.split_units = SplitUnits::node;
      if (random.chance(0.5)) options.event_ids = EventIds::sequential;
      t.limits.tasks_per_stream = 12 + static_cast<std::uint32_t>(random.below(40));
      const auto s = lower(p.graph, p.on, *plan, t, options);
      if (!s.ok() && s.error().code == ErrorCode::task_limit) continue;  // an attached stream, or one node's records
      ASSERT_TRUE(s.ok()) << to_string(s.error());
      splits += s->splits.size();
      for (const PhysicalStream& lane : s->streams) {
        for (const Task& task : lane.tasks) parts += task.kind == Task::Kind::attached ? 1 : 0;
      }
      const CheckReport report = check(p.graph, *s, nullptr, {}, false);
      ASSERT_TRUE(report.ok()) << report.violations.front().message << "\n" << print(p.graph, *s);
      const auto again = parse_schedule(print(p.graph, *s), p.graph, "again");
      ASSERT_TRUE(again.ok()) << to_string(again.error());
      ASSERT_EQ(*again, *s);
    }
  }
  EXPECT_GT(splits, property_count(200) / 4);
  EXPECT_GT(parts, property_count(200));
}

}  // namespace
}  // namespace millstream::testing
