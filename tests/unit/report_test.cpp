// SPDX-License-Identifier: Apache-2.0
// What the report says of a plan: where each lane's time goes, the critical path, and a page that holds it all.
#include <gtest/gtest.h>

#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "millstream/assign/cost_model.h"
#include "millstream/backend/backend.h"
#include "millstream/compile/compile.h"
#include "millstream/graph/text.h"
#include "millstream/report/report_data.h"

namespace millstream {
namespace {

std::string use_line(const LaneUse& u) {
  return fmt::format("run {} sync {} wait {} hand-off {} busy {} before {} after {}", u.run, u.sync, u.wait, u.hand_off, u.busy, u.before, u.after);
}

std::uint64_t sum(const LaneUse& u) { return u.run + u.sync + u.wait + u.hand_off + u.busy + u.before + u.after; }

ReportSpan node(std::uint32_t lane, std::uint32_t n, std::uint64_t begin, std::uint64_t end) { return {lane, Task::Kind::launch, n, begin, end}; }

ReportView two_lanes() {
  ReportView view;
  view.what = "by hand";
  view.lanes = {"", ""};
  view.total_ns = 100;
  view.spans = {node(0, 0, 0, 40), {0, Task::Kind::record, 0, 40, 42}, node(0, 1, 50, 60),
                node(1, 2, 0, 10), {1, Task::Kind::wait, 0, 10, 45}, node(1, 3, 45, 100)};
  view.arrows = {{1, 4}};
  return view;
}

TEST(Report, ALaneWaitsUntilTheRecordAndIsHandedOverAfterIt) {
  const std::vector<ReportNode> nodes(4);
  const ReportView view = analyse(two_lanes(), nodes, 0, false);
  EXPECT_EQ(use_line(view.use[0]), "run 50 sync 2 wait 0 hand-off 0 busy 8 before 0 after 40");
  EXPECT_EQ(use_line(view.use[1]), "run 65 sync 0 wait 32 hand-off 3 busy 0 before 0 after 0");
  ASSERT_EQ(view.awaited.size(), 1u);
  EXPECT_EQ(view.awaited[0].lane, 1u);
  EXPECT_EQ(view.awaited[0].other, 0u);
  EXPECT_EQ(view.awaited[0].ns, 32u);
}

TEST(Report, TheCriticalPathGoesThroughTheRecordThatBlocked) {
  const std::vector<ReportNode> nodes(4);
  const ReportView view = analyse(two_lanes(), nodes, 0, false);
  EXPECT_EQ(view.critical, (std::vector<std::uint32_t>{0, 1, 4, 5}));
  EXPECT_EQ(view.path_ns[static_cast<std::size_t>(PathCause::nodes)], 95u);
  EXPECT_EQ(view.path_ns[static_cast<std::size_t>(PathCause::sync)], 2u);
  EXPECT_EQ(view.path_ns[static_cast<std::size_t>(PathCause::hand_off)], 3u);
}

TEST(Report, ANodeThatWaitsForAnEngineFollowsTheOneThatLeftIt) {
  ReportView view;
  view.lanes = {"", ""};
  view.total_ns = 30;
  view.spans = {node(0, 0, 0, 20), node(1, 1, 20, 30)};
  const ReportView got = analyse(std::move(view), std::vector<ReportNode>(2), 0, false);
  EXPECT_EQ(got.critical, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(use_line(got.use[1]), "run 10 sync 0 wait 0 hand-off 0 busy 20 before 0 after 0");
}

TEST(Report, OfMeasuredTimesALateStartWaitsForWhatThePairNames) {
  ReportView view;
  view.lanes = {"", ""};
  view.total_ns = 30;
  view.spans = {node(0, 0, 0, 15), node(1, 1, 20, 30)};
  view.arrows = {{0, 1}};
  const ReportView got = analyse(std::move(view), std::vector<ReportNode>(2), 0, false);
  EXPECT_EQ(use_line(got.use[1]), "run 10 sync 0 wait 15 hand-off 0 busy 5 before 0 after 0");
}

// A compiled graph with its simulated times.
ReportPlan reported(const Graph& graph, const Target& target, std::uint32_t streams) {
  CompileOptions options;
  options.assign.streams = streams;
  options.assign.force_streams = true;
  options.sync.count_compat = true;
  Compiled compiled = *compile(graph, target, options);
  const ReportInput input{graph, target, compiled.assignment, compiled.sync, compiled.schedule};
  ReportPlan plan = report_plan(input);
  plan.title = "t.mst";
  struct Nothing : Launcher {
    Result<void> launch(NodeId, PhysicalStreamId) override { return {}; }
  } nothing;
  ExecuteOptions execute;
  execute.trace = true;
  const Trace trace = *make_sim_backend(target, durations_us(graph, target, 1), false)->execute(graph, compiled.schedule, nothing, execute);
  plan.views.push_back(view_of(input, plan, trace, "simulated"));
  return plan;
}

Graph wide(std::uint32_t width) {
  std::string text = "graph\n  input x : f32[4]\n  s = Relu(x) @cost(5)\n";
  std::string last;
  for (std::uint32_t i = 0; i < width; ++i) {
    text += fmt::format("  a{0} = Relu(s) @cost({1})\n  b{0} = Tanh(a{0}) @cost({2})\n", i, 3 + i % 5, 1 + i % 7);
    last += fmt::format("{}b{}", i == 0 ? "" : ", ", i);
  }
  return *parse_graph(text + "  out = Sum(" + last + ") @cost(2)\n  output out\n", "wide.mst");
}

TEST(Report, OfEveryLaneThePartsAddUpToTheWhole) {
  const Target target = *load_target("unit");
  for (const std::uint32_t width : {1u, 3u, 9u}) {
    for (const std::uint32_t streams : {1u, 2u, 5u}) {
      const ReportPlan plan = reported(wide(width), target, streams);
      const ReportView& view = plan.views[0];
      for (const LaneUse& u : view.use) EXPECT_EQ(sum(u), view.total_ns) << use_line(u);
      EXPECT_EQ(std::accumulate(view.path_ns.begin(), view.path_ns.end(), std::uint64_t{0}), view.total_ns);
      EXPECT_LE(view.engine_ns[0], view.total_ns * plan.engine_units[0]);
    }
  }
}

TEST(Report, WalkingOnceStopsAtAWaitWithoutARecord) {
  const Graph graph = *parse_graph("graph\n  input x : f32[4]\n  a = Relu(x) @cost(3)\n  b = Tanh(a) @cost(2)\n  output b\n", "t.mst");
  const Schedule schedule = *parse_schedule("stream 0: a !e0\nstream 1: ?e0 b\n", graph, "t.mst");
  Costs costs;
  costs.record_us = costs.wait_us = 0;
  costs.hand_off_us = 1;
  const IdVec<NodeId, double> durations = durations_us(graph, *load_target("unit"), 1);
  EXPECT_EQ(walk_once(schedule, durations, costs).total_ns, 6000u);
  const Schedule stuck = *parse_schedule("stream 0: a\nstream 1: ?e0 b\n", graph, "t.mst");
  EXPECT_EQ(walk_once(stuck, durations, costs).spans.size(), 1u);
}

TEST(Report, ThePageIsWholeAndAsksForNothing) {
  const std::string page = to_html({reported(wide(3), *load_target("unit"), 2)});
  EXPECT_EQ(page.find("@MST_"), std::string::npos);
  for (const char* fetches : {"http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_EQ(page.find(fetches), std::string::npos) << fetches;
  }
}

TEST(Report, NamesCanHoldAnything) {
  Graph graph("g");
  const ValueId x = graph.add_input("x", {});
  const InputRef in[] = {x};
  const std::string name = "</script><b>\"\\\xff\xc3\n";
  const std::string_view out[] = {"y"};
  graph.add_node({"Relu", name, in, out});
  ASSERT_TRUE(graph.finish().ok());
  const std::vector<ReportPlan> plans = {reported(graph, *load_target("unit"), 1)};
  const std::string json = to_json(plans);
  EXPECT_EQ(json.find('<'), std::string::npos);
  const auto data = nlohmann::json::parse(json);
  EXPECT_EQ(data["plans"][0]["nodes"]["name"][0].get<std::string>().substr(0, 14), "</script><b>\"\\");
  EXPECT_EQ(to_json(plans), json);
}

TEST(Report, APlanSaysItsCountsAndReasons) {
  const ReportPlan plan = reported(wide(3), *load_target("unit"), 2);
  const auto data = nlohmann::json::parse(to_json({plan}))["plans"][0];
  EXPECT_EQ(data["counts"]["pairs_kept"], plan.sync.kept.size());
  EXPECT_GT(data["counts"]["waits"], 0);
  EXPECT_FALSE(data["counts"]["pairs_compat"].is_null());
  EXPECT_GT(data["bounds"]["critical_path_us"], 0.0);
  EXPECT_FALSE(data["rules"][data["nodes"]["rule"][0].get<std::size_t>()]["reason"].get<std::string>().empty());
}

}  // namespace
}  // namespace millstream
