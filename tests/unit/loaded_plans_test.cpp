// SPDX-License-Identifier: Apache-2.0
// Plans that share a device: whose streams they take, and how often they are recorded.
#include <gtest/gtest.h>

#include <optional>

#include <fmt/format.h>

#include "millstream/backend/loaded_plans.h"
#include "millstream/graph/text.h"
#include "millstream/runtime/objects.h"
#include "tests/hand_schedule.h"

namespace millstream::testing {
namespace {

// A plan of `streams` streams: each waits for the one before it.
struct Chain {
  explicit Chain(std::uint32_t streams) {
    std::string text = "graph\n";
    std::vector<std::string> lanes;
    for (std::uint32_t s = 0; s < streams; ++s) {
      text += s == 0 ? "  n0 = Op()\n" : fmt::format("  n{} = Op(n{})\n", s, s - 1);
      lanes.push_back(fmt::format("{}n{}{}", s == 0 ? "" : fmt::format("?e{} ", s - 1), s, s + 1 == streams ? "" : fmt::format(" !e{}", s)));
    }
    graph = *parse_graph(text, "test");
    schedule = hand_schedule(graph, lanes);
  }
  Graph graph;
  Schedule schedule;
};

class Order final : public Launcher {
 public:
  Result<void> launch(NodeId node, PhysicalStreamId) override {
    nodes.push_back(node.index);  // the chain orders the launches
    return {};
  }
  std::vector<std::uint32_t> nodes;
};

class Loading : public ::testing::TestWithParam<BackendId> {
 protected:
  void SetUp() override {
    Profile profile;
    profile.workers = 2;
    profile.max_streams = 20;
    device_.emplace(std::move(*Device::open_private(GetParam(), profile)));
    context_.emplace(device_->primary());
  }
  // How many launches ran, each at its turn, with as many spans as tasks.
  std::size_t launches(LoadedPlans& plans, const Chain& chain) {
    const Result<Program*> program = plans.load(chain.graph, chain.schedule);
    EXPECT_TRUE(program.ok()) << to_string(program.error());
    if (!program.ok()) return 0;
    Order order;
    ProgramRun run;
    run.launcher = &order;
    for (std::uint32_t s = 0; s < chain.schedule.streams.size(); ++s) run.delays.emplace_back(std::nullopt);
    device_->start_trace();
    const Result<void> done = (*program)->execute(run);
    EXPECT_TRUE(done.ok()) << to_string(done.error());
    device_->stop_trace();
    std::vector<std::uint32_t> traced;
    for (const Span& span : (*program)->spans(chain.schedule, device_->take_trace())) {
      EXPECT_LE(span.begin_ns, span.end_ns);
      if (span.what.kind == Task::Kind::launch) traced.push_back(span.what.index);
    }
    EXPECT_EQ(traced, order.nodes);
    for (std::uint32_t n = 0; n < order.nodes.size(); ++n) EXPECT_EQ(order.nodes[n], n);
    return order.nodes.size();
  }
  std::optional<Device> device_;
  std::optional<Context> context_;
};

INSTANTIATE_TEST_SUITE_P(Backends, Loading, ::testing::Values(BackendId::cpu, BackendId::sim),
                         [](const auto& tested) { return std::string(tested.param == BackendId::cpu ? "cpu" : "sim"); });

TEST_P(Loading, TwoPlansOnOneDeviceMakeTheStreamsOfTheLargerOne) {
  const Chain three(3), four(4);
  LoadedPlans plans(*context_);
  EXPECT_EQ(launches(plans, three), 3u);
  EXPECT_EQ(plans.streams_made(), 3u);
  EXPECT_EQ(launches(plans, four), 4u);
  EXPECT_EQ(plans.streams_made(), 4u);
}

TEST_P(Loading, PlansUsedInTurnsAreRecordedOnce) {
  const Chain three(3), four(4);
  LoadedPlans plans(*context_);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(launches(plans, three), 3u);
    EXPECT_EQ(launches(plans, four), 4u);
  }
  EXPECT_EQ(plans.recordings(), 2u);
  const Chain equal(3);  // another object, the same plan
  EXPECT_EQ(launches(plans, equal), 3u);
  EXPECT_EQ(plans.recordings(), 2u);
}

TEST_P(Loading, APlanWhoseControlNodeIsOfAnotherTypeIsAnotherPlan) {
  Schedule schedule;
  schedule.streams.resize(2);
  schedule.logical_streams = 2;
  LoadedPlans plans(*context_);
  for (const std::string type : {"StreamSwitch", "StreamSwitchN"}) {
    const Graph graph = *parse_graph("graph\n  s = " + type + "()\n  a = Op()\n", "test");
    schedule.controls = {{*graph.find_node("s"), {1}}};
    schedule.streams[PhysicalStreamId(0)].tasks = {{Task::Kind::stream_switch, 0}};
    schedule.streams[PhysicalStreamId(1)].tasks = {Task::launch(*graph.find_node("a"))};
    for (int twice = 0; twice < 2; ++twice) {
      const Result<Program*> program = plans.load(graph, schedule);
      ASSERT_TRUE(program.ok()) << to_string(program.error());
    }
  }
  EXPECT_EQ(plans.recordings(), 2u);
}

TEST_P(Loading, OneMoreThanMayStayUnloadsThePlanThatWasNotUsedForLongest) {
  std::vector<Chain> chains;
  for (std::uint32_t n = 1; n <= LoadedPlans::kMost + 1; ++n) chains.emplace_back(n);
  LoadedPlans plans(*context_);
  for (std::size_t n = 0; n < LoadedPlans::kMost; ++n) launches(plans, chains[n]);
  launches(plans, chains[0]);
  EXPECT_EQ(plans.recordings(), LoadedPlans::kMost);
  launches(plans, chains.back());  // the second goes
  launches(plans, chains[0]);
  EXPECT_EQ(plans.recordings(), LoadedPlans::kMost + 1);
  EXPECT_EQ(launches(plans, chains[1]), 2u);
  EXPECT_EQ(plans.recordings(), LoadedPlans::kMost + 2);
}

TEST_P(Loading, AStreamThatPlansShareKeepsNoTapeOfAnUnloadedOne) {
  const Chain keeper(2), other(2);
  PlanStreams streams(*context_, PlanStreams::Plans::several);
  const auto load = [&](std::uint32_t model) {
    return std::move(*Program::record(*context_, std::move(*streams.acquire(model, keeper.schedule)), keeper.graph, keeper.schedule));
  };
  const std::unique_ptr<Program> stays = load(0);
  const std::vector<Stream*> shared = std::move(*streams.acquire(1, keeper.schedule));
  streams.release(1);
  for (std::uint32_t model = 2; model < 6; ++model) {
    load(model).reset();
    streams.release(model);
    for (const Stream* stream : shared) EXPECT_TRUE(stream->state()->retired.empty());
  }
  EXPECT_EQ(streams.made(), 2u);
}

TEST_P(Loading, APlanThatCannotBeLoadedKeepsNoStream) {
  const Chain three(3), many(25);
  Chain stuck(2);
  stuck.schedule = hand_schedule(stuck.graph, {"?e0 n0", "n1"});
  LoadedPlans plans(*context_);
  const Result<Program*> full = plans.load(many.graph, many.schedule);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::no_more_streams);
  EXPECT_EQ(plans.load(stuck.graph, stuck.schedule).error().code, ErrorCode::deadlock);
  EXPECT_EQ(launches(plans, three), 3u);
  std::vector<Stream> rest;  // beside the default stream and the three
  for (Result<Stream> made = context_->create_stream(); made.ok(); made = context_->create_stream()) rest.push_back(std::move(*made));
  EXPECT_EQ(rest.size(), 16u);
}

TEST_P(Loading, AStreamOfOnePlanAloneComesFromTheListAndStaysForTheNext) {
  const Chain three(3), two(2);
  PlanStreams streams(*context_, PlanStreams::Plans::one);
  const Result<std::vector<Stream*>> first = streams.acquire(0, three.schedule);
  const Result<std::vector<Stream*>> second = streams.acquire(1, two.schedule);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(streams.made(), 3u);
  EXPECT_EQ((*second)[0], (*first)[0]);
  EXPECT_EQ((*second)[1], (*first)[1]);
}

}  // namespace
}  // namespace millstream::testing
