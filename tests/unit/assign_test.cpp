// SPDX-License-Identifier: Apache-2.0
// Rules and the driver: labels, single-stream mode, auto, provenance, warnings.
#include <gtest/gtest.h>

#include "millstream/assign/assignment.h"
#include "millstream/assign/cost_model.h"
#include "millstream/assign/rules.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "t.mst");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return graph.ok() ? std::move(*graph) : Graph();
}

Target target_named(std::string_view name) {
  Result<Target> t = load_target(name);
  EXPECT_TRUE(t.ok());
  return std::move(*t);
}

StreamAssignment assigned(const Graph& g, const Target& t, const AssignOptions& options = {}) {
  Result<StreamAssignment> on = assign_streams(g, t, options);
  EXPECT_TRUE(on.ok()) << (on.ok() ? "" : to_string(on.error()));
  if (!on.ok()) return {};
  for (const Error& e : verify(g, *on)) ADD_FAILURE() << to_string(e);
  return std::move(*on);
}

std::string failure(const Graph& g, const Target& t, const AssignOptions& options) {
  const Result<StreamAssignment> on = assign_streams(g, t, options);
  return on.ok() ? "no error" : to_string(on.error());
}

// "0 1 1 0": streams in node order.
std::string streams(const StreamAssignment& on) {
  std::string out;
  for (const auto& p : on.placement) {
    out += (out.empty() ? "" : " ") + (p ? std::to_string(p->stream.index) : std::string("-"));
  }
  return out;
}

std::string all_warnings(const StreamAssignment& on) {
  std::string out;
  for (const Error& e : on.warnings) out += to_string(e, "warning") + "\n";
  return out;
}

constexpr std::string_view kTwoLabels = R"(graph
  x   = Fill()           @cost(1)
  a   = MatMul(x)        @cost(3) @label("s1")
  b   = Relu(x)          @cost(1)
  out = Add(a, b)        @cost(1)
)";

TEST(ByLabel, ALabelledBranchGetsItsStreamAndTheRestShareAnother) {
  const Graph g = parsed(kTwoLabels);
  const StreamAssignment on = assigned(g, target_named("unit"));
  EXPECT_EQ(streams(on), "1 0 1 1");
  EXPECT_EQ(on.streams[StreamId(0)].label, "s1");
  EXPECT_EQ(on.streams[StreamId(1)].label, "");
  ASSERT_EQ(on.rules, (std::vector<std::string>{"by-label", "auto"}));
  EXPECT_EQ(on.rules[on.placement[NodeId(1)]->decided_by.index], "by-label");
  EXPECT_EQ(on.rules[on.placement[NodeId(0)]->decided_by.index], "auto");
  ASSERT_EQ(on.reports.size(), 2u);
  EXPECT_EQ(on.reports[0].nodes_placed, 1u);
  EXPECT_EQ(on.reports[1].nodes_placed, 3u);
  EXPECT_EQ(on.reports[1].nodes_moved, 0u);
  EXPECT_EQ(on.estimate->span_us, 5);
  EXPECT_EQ(on.estimate->single_stream_us, 6);
  EXPECT_EQ(on.estimate->lower_bound_us, 5);
  EXPECT_EQ(on.estimate->limited_by, "critical path");
}

TEST(ByLabel, EqualLabelsShareAStreamInOrderOfFirstAppearance) {
  const Graph g = parsed(R"(graph
  a = Op() @label("l1")
  b = Op(a) @label("l2")
  c = Op(b) @label("l1")
  d = Op(c) @label("l2")
  e = Op(d) @label("l2")
)");
  EXPECT_EQ(streams(assigned(g, target_named("unit"))), "0 1 0 1 1");
}

TEST(ByLabel, AUserLabelWinsAndItsNameSpaceIsItsOwn) {
  const Graph g = parsed(R"(graph
  a = Op() @label("x")
  b = Op() @user_label("x") @priority(3)
  c = Op() @label("y") @user_label("x") @priority(1)
)");
  const StreamAssignment on = assigned(g, target_named("unit"));
  EXPECT_EQ(streams(on), "0 1 1");
  EXPECT_EQ(on.streams[StreamId(0)].label, "x");
  EXPECT_EQ(on.streams[StreamId(1)].label_text(), "user:x");
  EXPECT_EQ(on.streams[StreamId(1)].priority, 1);
  EXPECT_NE(all_warnings(on).find("has two priorities: 3 on b and 1 on c; 1, the more urgent, counts"),
            std::string::npos);
}

TEST(ByLabel, ALabelInsideANestedGraphIsReported) {
  const Graph g = parsed(R"(graph
  c = Op()
  r = If(c) {else_branch=body(no), then_branch=body(yes)}
body no
  a = Op() @label("s1")
  output a
body yes
  b = Op()
  output b
)");
  EXPECT_NE(all_warnings(assigned(g, target_named("unit"))).find("label \"s1\" on a in r.else_branch has no effect"),
            std::string::npos);
}

TEST(Single, EverythingOnStreamZero) {
  const Graph g = parsed("graph\n a = Op()\n b = Op()\n c = Op(a, b)\n");
  AssignOptions options;
  options.strategy = Strategy::single;
  const StreamAssignment on = assigned(g, target_named("cpu"), options);
  EXPECT_EQ(streams(on), "0 0 0");
  EXPECT_EQ(on.rules, std::vector<std::string>{"single"});
  EXPECT_EQ(on.estimate->span_us, on.estimate->single_stream_us);
  EXPECT_TRUE(on.warnings.empty()) << all_warnings(on);
}

TEST(Single, ALabelConflictsWithSingleStreamMode) {
  const Graph g = parsed(kTwoLabels);
  AssignOptions options;
  options.single_stream = true;
  EXPECT_EQ(failure(g, target_named("unit"), options),
            "error: stream label \"s1\" on a conflicts with single-stream mode [E02 conflict]\n"
            "  --> t.mst:3:3   a   = MatMul(x)        @cost(3) @label(\"s1\")\n"
            "  note: single-stream mode was set by single_stream=true\n"
            "  help: drop the label, or set single_stream=false");
  options.single_stream = false;
  options.strategy = Strategy::single;
  EXPECT_NE(failure(g, target_named("unit"), options).find("set by strategy single\n  help: drop the label, or take another strategy"), std::string::npos);
}

TEST(Single, TheBaselineIgnoresLabels) {
  const Graph g = parsed(kTwoLabels);
  const StreamAssignment on = one_stream(g, target_named("unit"), 1);
  EXPECT_EQ(streams(on), "0 0 0 0");
  EXPECT_TRUE(verify(g, on).empty());
  EXPECT_EQ(on.estimate->span_us, 6);
}

TEST(Auto, TwoLongBranchesRunSideBySide) {
  const Graph g = parsed(R"(graph
  x = Op() @cost(1)
  a = Op(x) @cost(100)
  b = Op(x) @cost(100)
  y = Op(a, b) @cost(1)
)");
  Target cpu = target_named("cpu");
  cpu.cores = 2;
  const StreamAssignment on = assigned(g, cpu);
  EXPECT_EQ(streams(on), "0 0 1 1");
  EXPECT_EQ(on.threads_per_op, 1u);
  EXPECT_LT(on.estimate->span_us, on.estimate->single_stream_us * 0.6);
  EXPECT_GE(on.estimate->span_us, on.estimate->lower_bound_us);
  EXPECT_GT(on.estimate->overlap, 0.85);
  EXPECT_TRUE(on.warnings.empty()) << all_warnings(on);
  EXPECT_NE(on.reasons[1].find("2 streams with 1 thread an operator"), std::string::npos) << on.reasons[1];
}

TEST(Auto, FieldReport26TheSingleStreamPlanIsKeptWhenItWinsAndThatIsSaid) {
  const Graph g = parsed(R"(graph
  x = Op() @cost(1)
  a = Op(x) @cost(2)
  b = Op(x) @cost(2)
  y = Op(a, b) @cost(1)
)");
  Target cpu = target_named("cpu");
  cpu.cores = 2;
  EXPECT_EQ(all_warnings(assigned(g, cpu)), "") << "nobody asked for streams";
  AssignOptions asked;
  asked.streams_asked = true;
  const StreamAssignment on = assigned(g, cpu, asked);
  EXPECT_EQ(streams(on), "0 0 0 0");
  EXPECT_EQ(all_warnings(on),
            "warning: one stream is kept: more streams would not gain 5 % [E44 no effect]\n"
            "  note: kept: 1 stream with 1 thread an operator: 6.0 us, 0 waits\n"
            "  note: the list scheduler, given 2 streams, used one: waits would cost more than they gain\n");
}

TEST(Auto, PlansThatMayNeedMoreEventsThanTheTargetHasAreNotChosen) {
  const Graph g = parsed(R"(graph
  x = Op() @cost(100)
  a = Op(x) @cost(2000)
  b = Op(x) @cost(2000)
  y = Op(a, b) @cost(100)
)");
  Target cpu = target_named("cpu");
  cpu.cores = 2;
  EXPECT_EQ(assigned(g, cpu).streams.size(), 2u);
  cpu.limits.events = 1;
  EXPECT_EQ(assigned(g, cpu).streams.size(), 1u);
}

TEST(Auto, UnknownCostsKeepOneStreamAndSaySo) {
  const Graph g = parsed(R"(graph
  input x : f32[N,64]
  a = Relu(x) : f32[N,64]
  b = Tanh(x) : f32[N,64]
  y = Add(a, b) : f32[N,64]
)");
  Target cpu = target_named("cpu");
  cpu.cores = 4;
  const StreamAssignment on = assigned(g, cpu);
  EXPECT_EQ(on.streams.size(), 1u);
  EXPECT_NE(all_warnings(on).find("too many to compare plans"), std::string::npos) << all_warnings(on);
  EXPECT_NE(on.reasons.back().find("costs are unknown"), std::string::npos);
}

TEST(Auto, LabelsThatNeedMoreStreamsThanAskedForWarn) {
  const Graph g = parsed("graph\n x = Op() @cost(5)\n a = Op(x) @cost(5) @label(\"s\")\n b = Op(x) @cost(5)\n");
  AssignOptions options;
  options.streams = 1;
  EXPECT_NE(all_warnings(assigned(g, target_named("cpu"), options)).find("1 stream label and the nodes without one need 2 streams"),
            std::string::npos)
      << all_warnings(assigned(g, target_named("cpu"), options));
}

TEST(Auto, FieldReport13StreamsForAChainHaveNoEffectAndWarn) {
  const Graph g = parsed("graph\n a = Op() @cost(5)\n b = Op(a) @cost(5)\n c = Op(b) @cost(5)\n");
  AssignOptions options;
  options.streams = 4;
  options.streams_asked = true;
  Target cpu = target_named("cpu");
  cpu.cores = 4;
  EXPECT_NE(all_warnings(assigned(g, cpu, options)).find("every node depends on the one before it"),
            std::string::npos);
  options.force_streams = true;
  const StreamAssignment forced = assigned(g, cpu, options);
  EXPECT_EQ(streams(forced), "0 0 0");
  EXPECT_NE(all_warnings(forced).find("force_streams asks for 4 streams, but the graph has work for 1"),
            std::string::npos);
}

TEST(Auto, FieldReport13LabelsThatCannotOverlapWarn) {
  const Graph g = parsed(R"(graph
  a = Op() @cost(5) @label("a")
  b = Op(a) @cost(5) @label("b")
  c = Op(b) @cost(5) @label("c")
)");
  Target cpu = target_named("cpu");
  cpu.cores = 4;
  const StreamAssignment on = assigned(g, cpu);
  EXPECT_EQ(streams(on), "0 1 2");
  const std::string warnings = all_warnings(on);
  EXPECT_NE(warnings.find("3 stream labels, but only 1 of the graph's nodes are independent"), std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("the labels' plan is predicted slower than one stream"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("labels ignored: 1 stream"), std::string::npos) << warnings;
}

TEST(Auto, ForcedStreamsUseAsManyAsTheGraphHasWorkFor) {
  const Graph g = parsed(R"(graph
  x = Op() @cost(1)
  a = Op(x) @cost(1)
  b = Op(x) @cost(1)
  c = Op(x) @cost(1)
  y = Op(a, b, c) @cost(1)
)");
  Target cpu = target_named("cpu");
  cpu.cores = 1;
  AssignOptions options;
  options.force_streams = true;
  for (const std::uint32_t n : {1u, 2u, 3u, 8u}) {
    options.streams = n;
    EXPECT_EQ(assigned(g, cpu, options).streams.size(), std::min(n, 3u));
  }
}

TEST(Auto, ThreadsTimesStreamsStayWithinTheCores) {
  const Graph g = parsed(R"(graph
  a = Op() @cost(100)
  b = Op() @cost(100)
  c = Op() @cost(100)
  d = Op() @cost(100)
)");
  Target cpu = target_named("cpu");
  cpu.cores = 4;
  EXPECT_EQ(assigned(g, cpu).streams.size(), 4u);
  AssignOptions options;
  options.threads_per_op = 2;
  const StreamAssignment on = assigned(g, cpu, options);
  EXPECT_EQ(on.streams.size(), 2u);
  EXPECT_EQ(on.threads_per_op, 2u);
  options.threads_per_op = 4;
  EXPECT_EQ(assigned(g, cpu, options).streams.size(), 1u);
}

TEST(Auto, BandwidthThatOperatorsShareIsNotCountedTwice) {
  // Two copies that each take all the bandwidth gain nothing from a second stream.
  const Graph g = parsed(R"(graph
  input x : f32[4000000]
  a = Relu(x) : f32[4000000]
  b = Neg(x) : f32[4000000]
)");
  Target cpu = target_named("cpu");
  cpu.cores = 2;
  cpu.costs.total_bytes_per_us = cpu.costs.bytes_per_us;
  const StreamAssignment narrow = assigned(g, cpu);
  EXPECT_EQ(narrow.streams.size(), 1u);
  EXPECT_EQ(narrow.estimate->limited_by, "memory bandwidth");
  cpu.costs.total_bytes_per_us = 10 * cpu.costs.bytes_per_us;
  cpu.costs.parallel_share = 0;
  EXPECT_EQ(assigned(g, cpu).streams.size(), 2u);
}

TEST(Auto, AHugeGraphWeighsOneStreamAndOneOtherCount) {
  constexpr std::size_t kLanes = 4, kSteps = 51'000;
  Graph g("huge");
  std::vector<NodeId> last;
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::string name = "n" + std::to_string(step) + "_" + std::to_string(lane);
      const std::string_view outputs[] = {name};
      std::vector<InputRef> inputs;
      if (step > 0) inputs.push_back(g.outputs(last[lane])[0]);
      Graph::NodeSpec spec;
      spec.type = "Op";
      spec.inputs = inputs;
      spec.outputs = outputs;
      const NodeId n = g.add_node(spec);
      g.annotations().cost.set(n, 1);
      (step == 0 ? last.emplace_back() : last[lane]) = n;
    }
  }
  ASSERT_TRUE(g.finish().ok());
  Target cpu = target_named("cpu");
  cpu.cores = 4;
  const StreamAssignment on = assigned(g, cpu);
  ASSERT_EQ(on.streams.size(), kLanes);
  EXPECT_EQ(on.considered.size(), 4u);  // one stream with 4, 2 and 1 threads; four streams with 1
  EXPECT_EQ(on.considered.back().pairs, 0u);
  EXPECT_DOUBLE_EQ(on.estimate->span_us, static_cast<double>(kSteps));
}

TEST(Options, ImpossibleOnesAreErrors) {
  const Graph g = parsed("graph\n a = Op()\n");
  const Target cpu = target_named("cpu");
  AssignOptions options;
  options.streams = 0;
  EXPECT_NE(failure(g, cpu, options).find("option streams cannot be 0"), std::string::npos);
  options = {};
  options.strategy = Strategy::automatic;
  options.single_stream = true;
  EXPECT_NE(failure(g, cpu, options).find("E02"), std::string::npos);
  Graph negative = g;
  negative.annotations().cost.set(NodeId(0), -1.0);
  EXPECT_NE(failure(negative, cpu, {}).find("@cost(-1) on a is not a duration [E16"), std::string::npos);
}

TEST(Assign, AnEmptyGraphHasNoStreams) {
  Graph g("empty");
  ASSERT_TRUE(g.finish().ok());
  EXPECT_EQ(assigned(g, target_named("cpu")).streams.size(), 0u);
}

TEST(Verify, ReportsEveryDefect) {
  const Graph g = parsed("graph\n a = Op()\n b = Op(a)\n c = Op(b)\n");
  StreamAssignment on = assigned(g, target_named("cpu"));
  on.placement[NodeId(0)].reset();
  on.placement[NodeId(1)]->stream = StreamId(7);
  on.new_stream();
  const std::vector<Error> errors = verify(g, on);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_NE(errors[0].message.find("node a of type Op has no stream"), std::string::npos);
  EXPECT_NE(errors[1].message.find("node b is on stream 7, but there are 2 streams"), std::string::npos);
  EXPECT_NE(errors[2].message.find("stream 1 has no node"), std::string::npos);
}

TEST(Costs, RooflineAmdahlAndTheirLimits) {
  Costs c;
  c.launch_us = 1;
  c.flops_per_us = 100;
  c.bytes_per_us = 10;
  c.total_bytes_per_us = 15;
  c.parallel_us = 2;
  c.parallel_share = 0.5;
  const NodeWork compute{1, 40, 100};  // 40 us of compute, 10 us of memory
  EXPECT_DOUBLE_EQ(duration_us(compute, c, 1), 41);
  EXPECT_DOUBLE_EQ(duration_us(compute, c, 2), 1 + 40 * 0.75 + 2);
  const NodeWork memory{1, 1, 300};  // 30 us on one core, 20 us at the device's bandwidth
  EXPECT_DOUBLE_EQ(duration_us(memory, c, 1), 31);
  EXPECT_DOUBLE_EQ(duration_us(memory, c, 1000), 1 + 20 + 2);
  const NodeWork tiny{1, 2, 0};  // two cores would take 1.5 + 2: stays on one
  EXPECT_DOUBLE_EQ(duration_us(tiny, c, 2), 3);
}

// E20: what a rule must not do, with the full text.
TEST(Driver, ARuleThatDoesNotFitTheGraphIsNamed) {
  const Graph g = parsed("graph\n  a = Op()\n  b = Op(a)\n");
  const Target unit = target_named("unit");
  const IdVec<NodeId, EngineId> engines(g.node_count(), EngineId(0));
  const RuleInput input{g, unit, {}, engines};
  const auto run = [&](Result<StreamAssignment> (*apply)(const RuleInput&, StreamAssignment)) {
    const auto on = apply_rules(input, {{"mine", "a test", apply}});
    return on.ok() ? std::string("no error") : to_string(on.error());
  };
  EXPECT_EQ(run([](const RuleInput&, StreamAssignment on) -> Result<StreamAssignment> {
              on.placement.push_back(std::nullopt);
              return on;
            }),
            "error: rule mine returned 3 nodes for a graph of 2 [E20 graph changed]\n"
            "  help: a rule places and moves nodes, and leaves the graph alone");
  EXPECT_EQ(run([](const RuleInput&, StreamAssignment on) -> Result<StreamAssignment> {
              on.placement[NodeId(1)] = Placement{StreamId(4), RuleId()};
              return on;
            }),
            "error: rule mine put b on stream 4, but the assignment has 0 streams [E20 graph changed]\n"
            "  help: open a stream with new_stream before a node is put on it");
}

TEST(Costs, GivenCostIsTheWholeDurationAndNestedGraphsAddUp) {
  const Graph g = parsed(R"(graph
  c = Op() @cost(7)
  r = If(c) {else_branch=body(no), then_branch=body(yes)}
body no
  a = Op() @cost(3)
  output a
body yes
  b = Op() @cost(4)
  output b
)");
  Target unit = target_named("unit");
  EXPECT_EQ(durations_us(g, unit, 1).raw(), (std::vector<double>{7, 8}));
  EXPECT_EQ(durations_us(g, unit, 4).raw(), (std::vector<double>{7, 8}));
}

TEST(Costs, UnknownOnesCountAsALaunchAndAreCounted) {
  const Graph g = parsed("graph\n input x : f32[N]\n a = Relu(x) : f32[N]\n b = Relu(a) : f32[N]\n");
  const WorkTable work = work_of(g, target_named("cpu"));
  EXPECT_EQ(work.unknown, 2u);
  EXPECT_EQ(durations_us(g, target_named("cpu"), 1).raw(), (std::vector<double>{1, 1}));
  Target cpu = target_named("cpu");
  cpu.cores = 4;
  const StreamAssignment on = assigned(g, cpu);
  EXPECT_NE(all_warnings(on).find("the cost of 2 of 2 nodes is unknown"), std::string::npos);
  EXPECT_EQ(on.threads_per_op, 4u);  // they may be large
}

}  // namespace
}  // namespace millstream
