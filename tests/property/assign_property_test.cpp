// SPDX-License-Identifier: Apache-2.0
// Random graphs: assignments verify, labels are kept, auto never predicts itself slower than one stream,
// and what the prediction says is what the simulation then shows.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "millstream/assign/assignment.h"
#include "millstream/assign/cost_model.h"
#include "millstream/assign/predict.h"
#include "millstream/assign/width.h"
#include "millstream/backend/backend.h"
#include "millstream/trace/trace.h"
#include "tests/random_graph.h"

namespace millstream {
namespace {

using testing::property_count;
using testing::Random;
using testing::random_graph;
using testing::RandomGraphOptions;

Target target_named(std::string_view name) {
  Result<Target> t = load_target(name);
  EXPECT_TRUE(t.ok());
  return std::move(*t);
}

Graph graph_of(Random& random, std::size_t labels) {
  RandomGraphOptions options;
  options.nodes = 1 + random.below(40);
  options.edge = 0.05 + 0.3 * static_cast<double>(random.below(8)) / 8;
  options.window = 4 + random.below(20);
  options.labels = labels;
  Graph g = random_graph(random, options);
  for (const NodeId n : g.nodes()) {
    if (random.chance(0.9)) g.annotations().cost.set(n, static_cast<double>(random.below(40)));
  }
  return g;
}

std::vector<std::vector<bool>> closure(const Graph& g) {
  const std::size_t n = g.node_count();
  const Dependencies deps(g);
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
  for (const NodeId v : g.order()) {
    for (const NodeId u : deps.predecessors(v)) {
      before[u.index][v.index] = true;
      for (std::size_t a = 0; a < n; ++a) {
        if (before[a][u.index]) before[a][v.index] = true;
      }
    }
  }
  return before;
}

TEST(AssignProperty, AutoVerifiesAndIsNeverPredictedSlowerThanOneStream) {
  for (std::uint64_t seed = 0; seed < property_count(1500); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Graph g = graph_of(random, 0);
    Target target = target_named(seed % 3 == 0 ? "unit" : "cpu");
    target.cores = 1 + static_cast<std::uint32_t>(random.below(8));
    AssignOptions options;
    options.streams = 1 + static_cast<std::uint32_t>(random.below(8));
    if (random.chance(0.3)) options.threads_per_op = 1 + static_cast<std::uint32_t>(random.below(4));
    const Result<StreamAssignment> on = assign_streams(g, target, options);
    ASSERT_TRUE(on.ok()) << to_string(on.error());
    for (const Error& e : verify(g, *on)) ADD_FAILURE() << to_string(e);
    ASSERT_TRUE(on->estimate.has_value());
    const Estimate& e = *on->estimate;
    EXPECT_LE(on->streams.size(), options.streams);
    EXPECT_LE(e.span_us, e.single_stream_us);
    EXPECT_GE(e.span_us, e.lower_bound_us * (1 - 1e-9));
    EXPECT_TRUE(e.overlap >= 0 && e.overlap <= 1);
    if (on->streams.size() > 1) {
      EXPECT_LT(e.span_us, 0.95 * e.single_stream_us);
      EXPECT_LE(on->streams.size() * on->threads_per_op, std::max<std::size_t>(target.cores, on->threads_per_op));
    }
    // The estimate of the finished assignment is the one it was chosen by.
    EXPECT_DOUBLE_EQ(estimate(g, target, *on).span_us, e.span_us);
    // Same input, same assignment.
    const Result<StreamAssignment> again = assign_streams(g, target, options);
    EXPECT_EQ(again->placement, on->placement);
    EXPECT_EQ(again->considered, on->considered);
  }
}

TEST(AssignProperty, LabelsAreKeptAndTheirStreamsHoldNothingElse) {
  for (std::uint64_t seed = 0; seed < property_count(800); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Graph g = graph_of(random, 1 + random.below(4));
    Target target = target_named("cpu");
    target.cores = 1 + static_cast<std::uint32_t>(random.below(8));
    AssignOptions options;
    options.streams = 1 + static_cast<std::uint32_t>(random.below(8));
    options.force_streams = random.chance(0.3);
    const Result<StreamAssignment> on = assign_streams(g, target, options);
    ASSERT_TRUE(on.ok()) << to_string(on.error());
    for (const Error& e : verify(g, *on)) ADD_FAILURE() << to_string(e);
    std::map<std::string, StreamId> stream_of;
    for (const NodeId n : g.nodes()) {
      const auto& label = g.annotations().label.get(n);
      const StreamId s = *on->stream_of(n);
      const std::string text = label ? std::string(g.text(*label)) : "";
      EXPECT_EQ(on->streams[s].label, text) << g.name(n);
      EXPECT_EQ(on->rules[on->placement[n]->decided_by.index], label ? "by-label" : "auto");
      if (label) {
        EXPECT_EQ(stream_of.emplace(text, s).first->second, s);
      }
    }
  }
}

TEST(AssignProperty, ForcedStreamsUseExactlyWhatTheGraphAllows) {
  for (std::uint64_t seed = 0; seed < property_count(500); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Graph g = graph_of(random, 0);
    AssignOptions options;
    options.force_streams = true;
    options.streams = 1 + static_cast<std::uint32_t>(random.below(8));
    const Result<StreamAssignment> on = assign_streams(g, target_named("cpu"), options);
    ASSERT_TRUE(on.ok());
    const Width width = width_of(TaskGraph(g), {});
    ASSERT_TRUE(width.exact);
    EXPECT_EQ(on->streams.size(), std::min(options.streams, width.size()));
  }
}

TEST(AssignProperty, WidthIsTheLargestAntichain) {
  for (std::uint64_t seed = 0; seed < property_count(500); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    RandomGraphOptions options;
    options.nodes = 1 + random.below(12);
    const Graph g = random_graph(random, options);
    const auto before = closure(g);
    const Width width = width_of(TaskGraph(g), {});
    for (const NodeId a : width.antichain) {
      for (const NodeId b : width.antichain) EXPECT_FALSE(before[a.index][b.index]);
    }
    std::size_t best = 0;
    for (std::uint32_t set = 1; set < (1u << g.node_count()); ++set) {
      bool antichain = true;
      for (std::size_t a = 0; a < g.node_count() && antichain; ++a) {
        for (std::size_t b = 0; b < g.node_count() && antichain; ++b) {
          antichain = (set >> a & 1) == 0 || (set >> b & 1) == 0 || !before[a][b];
        }
      }
      if (antichain) best = std::max(best, static_cast<std::size_t>(__builtin_popcount(set)));
    }
    EXPECT_EQ(width.size(), best);
  }
}

// Pairs of lane order and dependencies: brute-force transitive reduction, cross edges only.
std::set<std::pair<std::uint32_t, std::uint32_t>> reduced(const Graph& g, const Lanes& lanes) {
  const std::size_t n = g.node_count();
  const Dependencies deps(g);
  std::vector<std::vector<bool>> edge(n, std::vector<bool>(n, false)), before(n, std::vector<bool>(n, false));
  std::vector<std::optional<NodeId>> last(lanes.count);
  for (const NodeId v : g.order()) {
    for (const NodeId u : deps.predecessors(v)) edge[u.index][v.index] = true;
    std::optional<NodeId>& l = last[lanes.of[v]];
    if (l) edge[l->index][v.index] = true;
    l = v;
    for (std::size_t u = 0; u < n; ++u) {
      if (!edge[u][v.index]) continue;
      before[u][v.index] = true;
      for (std::size_t a = 0; a < n; ++a) {
        if (before[a][u]) before[a][v.index] = true;
      }
    }
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> out;
  for (std::uint32_t u = 0; u < n; ++u) {
    for (std::uint32_t v = 0; v < n; ++v) {
      if (!edge[u][v] || lanes.of[NodeId(u)] == lanes.of[NodeId(v)]) continue;
      bool implied = false;
      for (std::size_t w = 0; w < n; ++w) implied = implied || (before[u][w] && before[w][v]);
      if (!implied) out.insert({u, v});
    }
  }
  return out;
}

// Waits before their node in the order of the pairs, records behind it: what `lower` writes.
Schedule schedule_of(const Graph& g, const Lanes& lanes, const std::vector<LanePair>& pairs) {
  Schedule s;
  for (std::uint32_t l = 0; l < lanes.count; ++l) s.streams.push_back({StreamId(l), {}});
  s.logical_streams = lanes.count;
  s.event_count = static_cast<std::uint32_t>(pairs.size());
  for (const NodeId v : g.order()) {
    std::vector<Task>& tasks = s.streams[PhysicalStreamId(lanes.of[v])].tasks;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].to == v) tasks.push_back(Task::wait(EventId(i)));
    }
    tasks.push_back(Task::launch(v));
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].from == v) tasks.push_back(Task::record(EventId(i)));
    }
  }
  return s;
}

class Nothing final : public Launcher {
 public:
  Result<void> launch(NodeId, PhysicalStreamId) override { return {}; }
};

TEST(AssignProperty, PredictedWaitsAreTheTransitiveReductionAndThePredictedSpanIsTheSimulated) {
  for (std::uint64_t seed = 0; seed < property_count(1500); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Graph g = graph_of(random, 0);
    Lanes lanes;
    lanes.count = 1 + static_cast<std::uint32_t>(random.below(6));
    lanes.of = IdVec<NodeId, std::uint32_t>(g.node_count());
    for (const NodeId n : g.nodes()) lanes.of[n] = static_cast<std::uint32_t>(random.below(lanes.count));
    const TaskGraph tasks(g);
    const std::vector<LanePair> pairs = exact_pairs(tasks, lanes);
    std::set<std::pair<std::uint32_t, std::uint32_t>> kept;
    for (const LanePair& p : pairs) kept.insert({p.from.index, p.to.index});
    ASSERT_EQ(kept.size(), pairs.size());
    EXPECT_EQ(kept, reduced(g, lanes));

    Target target = target_named("unit");
    target.cores = 1 + static_cast<std::uint32_t>(random.below(6));
    if (seed % 2 == 0) {
      target.device.record_us = target.costs.record_us = static_cast<double>(random.below(3)) / 2;
      target.device.wait_us = target.costs.wait_us = static_cast<double>(random.below(3)) / 2;
      target.device.hand_off_us = target.costs.hand_off_us = static_cast<double>(random.below(5));
    }
    const Prediction predicted = predict(tasks, lanes, work_of(g, target), target, 1);
    const Schedule s = schedule_of(g, lanes, pairs);
    Nothing launcher;
    ExecuteOptions options;
    options.trace = true;
    const Result<Trace> trace =
        make_sim_backend(target, durations_us(g, target, 1), false)->execute(g, s, launcher, options);
    ASSERT_TRUE(trace.ok()) << to_string(trace.error());
    for (const Error& e : verify(g, s, *trace)) ADD_FAILURE() << to_string(e);
    std::uint64_t last_launch = 0;
    for (const Span& span : trace->spans) {
      if (span.what.kind == Task::Kind::launch) last_launch = std::max(last_launch, span.end_ns);
    }
    EXPECT_NEAR(predicted.span_us * 1000, static_cast<double>(last_launch), 1);
    EXPECT_NEAR(predicted.overlap, overlap(s, *trace), 1e-3);
  }
}

}  // namespace
}  // namespace millstream
