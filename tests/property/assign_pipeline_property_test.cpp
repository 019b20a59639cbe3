// SPDX-License-Identifier: Apache-2.0
// What auto predicts before there is a plan is what the later stages then make: the same waits, the same span.
#include <gtest/gtest.h>

#include <cmath>

#include "millstream/assign/assignment.h"
#include "millstream/assign/cost_model.h"
#include "millstream/assign/predict.h"
#include "millstream/backend/backend.h"
#include "millstream/trace/trace.h"
#include "tests/random_graph.h"

namespace millstream {
namespace {

using testing::property_count;
using testing::Random;
using testing::RandomGraphOptions;

class Nothing final : public Launcher {
 public:
  Result<void> launch(NodeId, PhysicalStreamId) override { return {}; }
};

TEST(AssignPipelineProperty, WaitsAndSpanAreThoseOfTheFinishedPlan) {
  for (std::uint64_t seed = 0; seed < property_count(600); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    RandomGraphOptions shape;
    shape.nodes = 1 + random.below(40);
    shape.edge = 0.05 + 0.3 * static_cast<double>(random.below(8)) / 8;
    shape.labels = random.below(3);
    Graph g = testing::random_graph(random, shape);
    for (const NodeId n : g.nodes()) g.annotations().cost.set(n, static_cast<double>(1 + random.below(40)));
    Result<Target> target = load_target("cpu");
    ASSERT_TRUE(target.ok());
    target->cores = 1 + static_cast<std::uint32_t>(random.below(8));
    AssignOptions options;
    options.streams = 1 + static_cast<std::uint32_t>(random.below(8));
    options.force_streams = random.chance(0.5);
    options.threads_per_op = 1;
    const Result<StreamAssignment> on = assign_streams(g, *target, options);
    ASSERT_TRUE(on.ok()) << to_string(on.error());
    const Result<SyncPlan> sync = plan_sync(g, *on, {});
    ASSERT_TRUE(sync.ok()) << to_string(sync.error());

    Lanes lanes;
    lanes.count = static_cast<std::uint32_t>(on->streams.size());
    lanes.of = IdVec<NodeId, std::uint32_t>(g.node_count());
    for (const NodeId n : g.nodes()) lanes.of[n] = on->stream_of(n)->index;
    const std::vector<LanePair> pairs = exact_pairs(TaskGraph(g), lanes);
    ASSERT_EQ(pairs.size(), sync->kept.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(pairs[i].from, sync->kept[i].from) << i;
      EXPECT_EQ(pairs[i].to, sync->kept[i].to) << i;
    }

    const Result<Schedule> schedule = lower(g, *on, *sync, *target, {});
    ASSERT_TRUE(schedule.ok()) << to_string(schedule.error());
    EXPECT_TRUE(check(g, *schedule, &*target).ok());
    Nothing launcher;
    ExecuteOptions run;
    run.trace = true;
    const Result<Trace> trace =
        make_sim_backend(*target, durations_us(g, *target, 1), false)->execute(g, *schedule, launcher, run);
    ASSERT_TRUE(trace.ok()) << to_string(trace.error());
    for (const Error& e : verify(g, *schedule, *trace)) ADD_FAILURE() << to_string(e);
    std::uint64_t end = 0;
    for (const Span& span : trace->spans) {
      if (span.what.kind == Task::Kind::launch) end = std::max(end, span.end_ns);
    }
    EXPECT_NEAR(on->estimate->span_us * 1000, static_cast<double>(end), 1);
    EXPECT_NEAR(on->estimate->overlap, overlap(*schedule, *trace), 1e-3);

    // Delays change times, never what is ordered.
    run.delay_seed = seed;
    const Result<Trace> delayed =
        make_sim_backend(*target, durations_us(g, *target, 1), false)->execute(g, *schedule, launcher, run);
    ASSERT_TRUE(delayed.ok()) << to_string(delayed.error());
    for (const Error& e : verify(g, *schedule, *delayed)) ADD_FAILURE() << to_string(e);
  }
}

}  // namespace
}  // namespace millstream
