// SPDX-License-Identifier: Apache-2.0
// plan_sync against the plainest definition of what it must find. MST_PROPERTY_COUNT sets how many graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "millstream/graph/dependencies.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

// Required orders between placed nodes, on any streams, through nodes without one.
std::set<Edge> required(const Placed& p) {
  const Dependencies direct(p.graph);
  std::set<Edge> out;
  for (const NodeId v : p.graph.nodes()) {
    if (!p.on.placement[v]) continue;
    std::vector<NodeId> todo(direct.predecessors(v).begin(), direct.predecessors(v).end());
    while (!todo.empty()) {
      const NodeId u = todo.back();
      todo.pop_back();
      if (p.on.placement[u]) {
        out.insert({u.index, v.index});
      } else {
        todo.insert(todo.end(), direct.predecessors(u).begin(), direct.predecessors(u).end());
      }
    }
  }
  return out;
}

bool foreign(const Placed& p, const Edge& e) {
  return p.on.placement[NodeId(e.first)]->stream != p.on.placement[NodeId(e.second)]->stream;
}

// Cross-stream edges of the transitive reduction: those with no node between their ends.
std::set<Edge> reduction(const Placed& p, const std::set<Edge>& edges) {
  const std::size_t n = p.graph.node_count();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
  for (const Edge& e : edges) before[e.first][e.second] = true;
  for (std::size_t u = 0; u < n; ++u) {
    for (std::size_t v = u + 1; v < n; ++v) {
      const auto &a = p.on.placement[NodeId(u)], &b = p.on.placement[NodeId(v)];
      if (a && b && a->stream == b->stream) before[u][v] = true;  // random graphs list nodes in order
    }
  }
  for (std::size_t w = 0; w < n; ++w) {
    for (std::size_t u = 0; u < n; ++u) {
      for (std::size_t v = 0; before[u][w] && v < n; ++v) {
        if (before[w][v]) before[u][v] = true;
      }
    }
  }
  std::set<Edge> out;
  for (const Edge& e : edges) {
    bool between = false;
    for (std::size_t w = 0; w < n; ++w) between = between || (before[e.first][w] && before[w][e.second]);
    if (foreign(p, e) && !between) out.insert(e);
  }
  return out;
}

Placed random_case(Random& random) {
  const std::size_t nodes = 4 + random.below(16);
  return random_placed(random, nodes, 1 + random.below(5), 0.05 + 0.4 * static_cast<double>(random.below(100)) / 100,
                       random.chance(0.4) ? 0.25 : 0);
}

TEST(SyncProperty, KeptIsTheTransitiveReductionAndItsCertificatesHold) {
  std::uint64_t inserted = 0, kept = 0;
  for (std::uint64_t seed = 0; seed < property_count(4000); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Placed p = random_case(random);
    const SyncPlan plan = plan_of(p);
    const std::set<Edge> edges = required(p);
    std::set<Edge> got;
    for (const SyncPair& k : plan.kept) got.insert({k.from.index, k.to.index});
    ASSERT_EQ(got.size(), plan.kept.size());
    ASSERT_EQ(got, reduction(p, edges));
    ASSERT_EQ(plan.inserted, static_cast<std::size_t>(std::count_if(edges.begin(), edges.end(), [&](const Edge& e) { return foreign(p, e); })));
    ASSERT_EQ(plan.inserted, plan.kept.size() + plan.dropped.size());
    for (const Error& e : verify(p.graph, p.on, plan)) ADD_FAILURE() << to_string(e);
    for (const DroppedPair& d : plan.dropped) ASSERT_LE(d.path_length, p.on.streams.size());
    for (std::size_t i = 1; i < plan.kept.size(); ++i) {
      ASSERT_LT(std::pair(plan.kept[i - 1].to, plan.kept[i - 1].from), std::pair(plan.kept[i].to, plan.kept[i].from));
    }
    ASSERT_EQ(plan.kept, plan_of(p).kept);
    inserted += plan.inserted;
    kept += plan.kept.size();
  }
  EXPECT_LT(kept, inserted);
}

TEST(SyncProperty, TheOracleContainsEveryDependencyAndEachKeptPairIsNeeded) {
  for (std::uint64_t seed = 0; seed < property_count(1000); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed + 1'000'000);
    const Placed p = random_case(random);
    const SyncPlan plan = plan_of(p);
    const std::set<Edge> edges = required(p);
    const auto lost = [&](const SyncPlan& of, EventIds how) {
      const HappensBefore order(p.graph, schedule_of(p, of, how));
      return std::count_if(edges.begin(), edges.end(), [&](const Edge& e) { return !order.before(NodeId(e.first), NodeId(e.second)); });
    };
    ASSERT_EQ(lost(plan, EventIds::minimal), 0);
    ASSERT_EQ(lost(plan, EventIds::sequential), 0);
    for (std::size_t i = 0; i < plan.kept.size(); ++i) {
      SyncPlan fewer = plan;
      fewer.kept.erase(fewer.kept.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_GT(lost(fewer, EventIds::sequential), 0) << arrows(p.graph, plan.kept)[i];
    }
  }
}

// The order of independent nodes is no order: nothing is ordered that the dependencies and streams do not order.
TEST(SyncProperty, NoOrderIsAdded) {
  for (std::uint64_t seed = 0; seed < property_count(500); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed + 2'000'000);
    const Placed p = random_case(random);
    const HappensBefore exact(p.graph, schedule_of(p, plan_of(p)));
    const HappensBefore all(p.graph, schedule_of(p, plan_of(p, SyncMode::none), EventIds::sequential));
    for (const NodeId a : p.graph.nodes()) {
      for (const NodeId b : p.graph.nodes()) ASSERT_EQ(exact.before(a, b), all.before(a, b));
    }
  }
}

// Large enough that provenance records are collected many times.
TEST(SyncProperty, CertificatesOfLargeGraphsHold) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed + 3'000'000);
    const Placed p = random_placed(random, 30'000, 24, 0.08, seed == 0 ? 0.05 : 0);
    const SyncPlan plan = plan_of(p);
    EXPECT_GT(plan.kept.size(), 10'000u);
    EXPECT_GT(plan.dropped.size(), 1'000u);
    for (const Error& e : verify(p.graph, p.on, plan)) ADD_FAILURE() << to_string(e);
    if (seed == 0) continue;  // check would miss the nodes without a stream
    const CheckReport report = check(p.graph, schedule_of(p, plan), nullptr);
    EXPECT_TRUE(report.ok());
    EXPECT_TRUE(report.redundant.empty());
  }
}

}  // namespace
}  // namespace millstream::testing
