// SPDX-License-Identifier: Apache-2.0
// The fast clustering gives what the literal merge gives, whatever the order in which parents are tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "millstream/assign/chain/clusters.h"
#include "tests/random_graph.h"

namespace millstream::chain {
namespace {

// The merge as it is written down: clusters with sets of neighbours; for each node its parents by number of
// out-neighbours, and a search for a second path.
class Literal {
 public:
  explicit Literal(const ClusterGraph& g) : g_(g), in_(g.size()), out_(g.size()), of_(g.size()) {
    for (std::uint32_t c = 0; c < g.size(); ++c) {
      of_[c] = c;
      for (std::uint32_t i = g.pred_begin[c]; i < g.pred_begin[c + 1]; ++i) {
        in_[c].insert(g.pred[i]);
        out_[g.pred[i]].insert(c);
      }
    }
  }
  std::vector<std::uint32_t> run() {
    for (std::uint32_t c = 0; c < g_.size(); ++c) {
      std::vector<std::uint32_t> parents(in_[c].begin(), in_[c].end());
      std::stable_sort(parents.begin(), parents.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return out_[a].size() < out_[b].size(); });
      for (const std::uint32_t p : parents) {
        const std::uint32_t child = of_[c];
        if (g_.key[p] == g_.key[child] && !second_path(p, child, c)) merge(p, child);
      }
    }
    return of_;
  }

 private:
  bool second_path(std::uint32_t from, std::uint32_t to, std::uint32_t bound) const {
    std::vector<std::uint32_t> todo(out_[from].begin(), out_[from].end());
    std::set<std::uint32_t> seen(todo.begin(), todo.end());
    seen.erase(to);
    todo.erase(std::remove(todo.begin(), todo.end(), to), todo.end());
    while (!todo.empty()) {
      const std::uint32_t at = todo.back();
      todo.pop_back();
      if (at > bound) continue;
      for (const std::uint32_t next : out_[at]) {
        if (next == to) return true;
        if (seen.insert(next).second) todo.push_back(next);
      }
    }
    return false;
  }
  void merge(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t into = std::min(a, b), from = std::max(a, b);
    for (const std::uint32_t x : in_[from]) {
      out_[x].erase(from);
      if (x != into) {
        out_[x].insert(into);
        in_[into].insert(x);
      }
    }
    for (const std::uint32_t x : out_[from]) {
      in_[x].erase(from);
      if (x != into) {
        in_[x].insert(into);
        out_[into].insert(x);
      }
    }
    in_[into].erase(from);
    out_[into].erase(from);
    in_[from].clear();
    out_[from].clear();
    for (std::uint32_t& x : of_) {
      if (x == from) x = into;
    }
  }

  const ClusterGraph& g_;
  std::vector<std::set<std::uint32_t>> in_, out_;
  std::vector<std::uint32_t> of_;
};

ClusterGraph random_clusters(testing::Random& random) {
  ClusterGraph g;
  const std::size_t n = 2 + random.below(38);
  const std::uint64_t keys = 1 + random.below(4);
  const std::size_t window = 1 + random.below(n);
  const double edge = 0.02 + static_cast<double>(random.below(40)) / 100;
  for (std::size_t i = 0; i < n; ++i) {
    g.key.push_back(random.below(keys));
    for (std::size_t j = i > window ? i - window : 0; j < i; ++j) {
      if (random.chance(edge)) g.pred.push_back(static_cast<std::uint32_t>(j));
      if (random.chance(edge / 10)) g.pred.push_back(static_cast<std::uint32_t>(j));
    }
    g.pred_begin.push_back(static_cast<std::uint32_t>(g.pred.size()));
  }
  return g;
}

TEST(Clusters, EqualTheLiteralMergeOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < testing::property_count(10'000); ++seed) {
    testing::Random random(seed);
    const ClusterGraph g = random_clusters(random);
    ASSERT_EQ(merge_clusters(g), Literal(g).run()) << "seed " << seed;
  }
}

// A search sweeps a repeated entry off the end of a list, to which a later node then adds: rare, so by name.
TEST(Clusters, AListThatLostItsLastEntryTakesAnother) {
  testing::Random random(15'200);
  const ClusterGraph g = random_clusters(random);
  EXPECT_EQ(merge_clusters(g), Literal(g).run());
}

// Lanes with cross edges from the lane before, all of one lane listed behind another or step by step.
ClusterGraph lanes(std::uint32_t width, std::uint32_t steps, std::uint32_t keys, bool by_lane, bool both_ways) {
  testing::Random random(7);
  std::vector<bool> cross(std::size_t{width} * steps);
  for (std::size_t i = 0; i < cross.size(); ++i) cross[i] = random.chance(0.25);
  ClusterGraph g;
  const auto at = [&](std::uint32_t lane, std::uint32_t step) { return by_lane ? lane * steps + step : step * width + lane; };
  for (std::uint32_t i = 0; i < width * steps; ++i) {
    const std::uint32_t lane = by_lane ? i / steps : i % width, step = by_lane ? i % steps : i / width;
    g.key.push_back(lane % keys);
    if (step > 0) g.pred.push_back(at(lane, step - 1));
    if (step > 0 && cross[std::size_t{step} * width + lane]) {
      if (lane > 0) g.pred.push_back(at(lane - 1, step - 1));
      if (lane == 0 && both_ways && !by_lane) g.pred.push_back(at(width - 1, step - 1));
    }
    g.pred_begin.push_back(static_cast<std::uint32_t>(g.pred.size()));
  }
  return g;
}

// How long it takes: bench/rule_chain.py.
TEST(Clusters, AMillionNodesInEitherListingMergeByTheirLanes) {
  for (const bool by_lane : {false, true}) {
    // One way round the lanes never come back: each is one cluster.
    EXPECT_EQ(merge_clusters(lanes(8, 125'000, 8, by_lane, false)).back(), by_lane ? 7u * 125'000 : 7u);
    for (const std::uint32_t keys : {3u, 1u}) {
      for (const bool both_ways : {false, true}) {
        const std::vector<std::uint32_t> first = merge_clusters(lanes(8, 125'000, keys, by_lane, both_ways));
        EXPECT_EQ(first.size(), 1'000'000u);
        for (std::size_t n = 0; n < first.size(); ++n) ASSERT_LE(first[n], n) << keys << by_lane << both_ways;  // the first of its cluster
      }
    }
  }
}

}  // namespace
}  // namespace millstream::chain
