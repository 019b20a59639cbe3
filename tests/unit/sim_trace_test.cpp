// SPDX-License-Identifier: Apache-2.0
// Virtual time and what is printed of it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "millstream/assign/cost_model.h"
#include "millstream/backend/backend.h"
#include "millstream/graph/text.h"
#include "millstream/trace/trace.h"
#include "tests/hand_schedule.h"

namespace millstream {
namespace {

using testing::hand_schedule;

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "t.mst");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return graph.ok() ? std::move(*graph) : Graph();
}

Target unit() {
  Result<Target> t = load_target("unit");
  EXPECT_TRUE(t.ok());
  return std::move(*t);
}

class Counter final : public Launcher {
 public:
  Result<void> launch(NodeId node, PhysicalStreamId) override {
    launched.push_back(node);
    if (fails && *fails == node) return Error{ErrorCode::kernel, "it broke"};
    return {};
  }
  std::vector<NodeId> launched;
  std::optional<NodeId> fails;
};

Result<Trace> simulate(const Graph& g, const Schedule& s, const Target& t, std::optional<std::uint64_t> seed = {}) {
  Counter counter;
  ExecuteOptions options;
  options.trace = true;
  options.delay_seed = seed;
  return make_sim_backend(t, durations_us(g, t, 1), false)->execute(g, s, counter, options);
}

constexpr std::string_view kTwoLabels = R"(graph
  x   = Fill()           @cost(1)
  a   = MatMul(x)        @cost(3) @label("s1")
  b   = Relu(x)          @cost(1)
  out = Add(a, b)        @cost(1)
)";
const std::vector<std::string> kTwoLanes = {"?e0 a !e1", "x !e0 b ?e1 out"};

TEST(Sim, ThePictureOfTheDesign) {
  const Graph g = parsed(kTwoLabels);
  const Schedule s = hand_schedule(g, kTwoLanes);
  const Result<Trace> t = simulate(g, s, unit());
  ASSERT_TRUE(t.ok()) << to_string(t.error());
  EXPECT_EQ(print_lanes(g, s, *t, 1000),
            "time      0    1    2    3    4\n"
            "stream 0  .    a    a    a    .\n"
            "stream 1  x    b    .    .    out\n");
  EXPECT_EQ(t->total_ns, 5000u);
  EXPECT_TRUE(t->virtual_time);
  EXPECT_DOUBLE_EQ(overlap(s, *t), 0.2);
  EXPECT_TRUE(verify(g, s, *t).empty());
}

TEST(Sim, RecordsWaitsAndHandOffsTakeTheirTime) {
  const Graph g = parsed(kTwoLabels);
  const Schedule s = hand_schedule(g, kTwoLanes);
  Target t = unit();
  t.device.record_us = 0.25;
  t.device.wait_us = 0.5;
  t.device.hand_off_us = 2;
  const Result<Trace> trace = simulate(g, s, t);
  ASSERT_TRUE(trace.ok());
  // x 0-1, record to 1.25; a waits, starts at 1.25 + 2 + 0.5, ends at 6.75, record to 7; b 1.25-2.25;
  // out starts at 7 + 2 + 0.5.
  EXPECT_EQ(trace->total_ns, 10500u);
  EXPECT_TRUE(verify(g, s, *trace).empty());
  // A wait that is satisfied on arrival pays no hand-off.
  const Schedule early = hand_schedule(parsed("graph\n p = Op() @cost(1)\n q = Op() @cost(5)\n r = Op(p, q)\n"),
                                       {"p !e0", "q ?e0 r"});
  const Graph g2 = parsed("graph\n p = Op() @cost(1)\n q = Op() @cost(5)\n r = Op(p, q)\n");
  EXPECT_EQ(simulate(g2, early, t)->total_ns, 6500u);
}

TEST(Sim, AtMostAsManyLaunchesAsCoresRunAtOnce) {
  const Graph g = parsed("graph\n a = Op() @cost(2)\n b = Op() @cost(2)\n c = Op() @cost(1)\n");
  const Schedule s = hand_schedule(g, {"a", "b", "c"});
  Target t = unit();
  EXPECT_EQ(simulate(g, s, t)->total_ns, 2000u);
  t.cores = 2;
  const Result<Trace> two = simulate(g, s, t);
  EXPECT_EQ(print_lanes(g, s, *two, 1000),
            "time      0  1  2\n"
            "stream 0  a  a  .\n"
            "stream 1  b  b  .\n"
            "stream 2  .  .  c\n");
  t.cores = 1;
  EXPECT_EQ(simulate(g, s, t)->total_ns, 5000u);
  t.device.engine_slots = {2};  // the device's own count before its cores
  EXPECT_EQ(simulate(g, s, t)->total_ns, two->total_ns);
}

TEST(Sim, ADeadlockNamesStreamsLastTasksAndEvents) {
  const Graph g = parsed("graph\n a = Op()\n b = Op()\n c = Op()\n");
  const Result<Trace> t = simulate(g, hand_schedule(g, {"a ?e1 b !e0", "?e0 c !e1"}), unit());
  ASSERT_FALSE(t.ok());
  EXPECT_EQ(to_string(t.error()),
            "error: the schedule cannot finish: stream 0 waits for event 1 after node \"a\", which stream 1 records [E38 deadlock]\n"
            "  note: stream 1 waits for event 0 after nothing, which stream 0 records\n"
            "  note: the cycle: stream 0 waits for stream 1 waits for stream 0\n"
            "  help: `millstream check` shows which wait or record is wrong");
}

TEST(Sim, AnEventRecordedTwiceBeforeItsWaitIsRefused) {
  const Graph g = parsed("graph\n a = Op()\n b = Op()\n c = Op()\n");
  // Even where the wait would come in time: which record it takes must not be a question of time.
  for (const std::string other : {"?e0 c", "c ?e0"}) {
    const Result<Trace> twice = simulate(g, hand_schedule(g, {"a !e0 b !e0", other}), unit());
    ASSERT_FALSE(twice.ok());
    EXPECT_EQ(twice.error().code, ErrorCode::shared_event_id);
  }
}

TEST(Sim, EventIdsAreUsedAgainAfterTheirWait) {
  const Graph g = parsed("graph\n a = Op()\n b = Op(a)\n c = Op(b)\n");
  // One id serves both pairs: b's wait comes before b's record. Whoever waits first in time, c takes b's
  // record, wherever its stream stands.
  for (const std::vector<std::string>& lanes : {std::vector<std::string>{"a !e0", "?e0 b !e0", "?e0 c"},
                                                {"?e0 c", "?e0 b !e0", "a !e0"},
                                                {"a !e0 ?e0 c", "?e0 b !e0"}}) {
    const Schedule s = hand_schedule(g, lanes);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Result<Trace> t = simulate(g, s, unit(), seed);
      ASSERT_TRUE(t.ok()) << to_string(t.error());
      EXPECT_TRUE(verify(g, s, *t).empty());
    }
  }
}

TEST(Sim, FunctionalRunsLaunchInAnOrderThatTheScheduleAllows) {
  const Graph g = parsed(kTwoLabels);
  const Schedule s = hand_schedule(g, kTwoLanes);
  Counter counter;
  const auto backend = make_sim_backend(unit(), durations_us(g, unit(), 1), true);
  const Result<Trace> t = backend->execute(g, s, counter, {});
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(t->spans.empty());
  EXPECT_EQ(t->total_ns, 5000u);
  ASSERT_EQ(counter.launched.size(), 4u);
  EXPECT_EQ(counter.launched.front(), NodeId(0));
  EXPECT_EQ(counter.launched.back(), NodeId(3));
  counter.fails = NodeId(2);
  const Result<Trace> broken = backend->execute(g, s, counter, {});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message, "it broke");
}

TEST(Sim, DelaysAreSeededAndKeepEveryOrder) {
  const Graph g = parsed(kTwoLabels);
  const Schedule s = hand_schedule(g, kTwoLanes);
  std::uint64_t different = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Result<Trace> one = simulate(g, s, unit(), seed);
    const Result<Trace> two = simulate(g, s, unit(), seed);
    ASSERT_TRUE(one.ok());
    EXPECT_EQ(one->total_ns, two->total_ns);
    EXPECT_TRUE(verify(g, s, *one).empty()) << "seed " << seed;
    different += one->total_ns != 5000 ? 1 : 0;
  }
  EXPECT_GT(different, 10u);
}

TEST(Trace, ChromeJsonHasATrackAStreamAndAnArrowAWait) {
  const Graph g = parsed(kTwoLabels);
  const Schedule s = hand_schedule(g, kTwoLanes);
  const Result<Trace> t = simulate(g, s, unit());
  ASSERT_TRUE(t.ok());
  const nlohmann::json doc = nlohmann::json::parse(to_chrome_json(g, s, *t));
  std::map<std::string, int> phases;
  std::vector<std::string> tracks;
  std::map<int, std::pair<int, int>> arrows;
  for (const auto& e : doc["traceEvents"]) {
    const std::string ph = e["ph"];
    ++phases[ph];
    if (ph == "M" && e["name"] == "thread_name") tracks.push_back(e["args"]["name"]);
    if (ph == "X" && e["name"] == "a") {
      EXPECT_EQ(e["ts"], 1.0);
      EXPECT_EQ(e["dur"], 3.0);
      EXPECT_EQ(e["tid"], 0);
    }
    if (ph == "s") arrows[e["id"]].first = e["tid"];
    if (ph == "f") arrows[e["id"]].second = e["tid"];
  }
  EXPECT_EQ(phases["X"], 8);
  EXPECT_EQ(tracks, (std::vector<std::string>{"stream 0 \"s1\"", "stream 1"}));
  ASSERT_EQ(arrows.size(), 2u);
  EXPECT_EQ(arrows[0], (std::pair<int, int>{1, 0}));
  EXPECT_EQ(arrows[1], (std::pair<int, int>{0, 1}));
}

TEST(Trace, NamesThatAreNotUtf8DoNotBreakTheFile) {
  Graph g("g");
  const std::string name = "n\xff\"\n";
  const std::string_view outputs[] = {name};
  Graph::NodeSpec spec;
  spec.type = "Op";
  spec.name = name;
  spec.outputs = outputs;
  g.add_node(spec);
  ASSERT_TRUE(g.finish().ok());
  Schedule s;
  s.streams.push_back({StreamId(0), {Task::launch(NodeId(0))}});
  const Result<Trace> t = simulate(g, s, unit());
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(nlohmann::json::accept(to_chrome_json(g, s, *t)));
}

TEST(Trace, VerifyFindsWhatIsOutOfOrder) {
  const Graph g = parsed(kTwoLabels);
  const Schedule s = hand_schedule(g, kTwoLanes);
  const Trace good = *simulate(g, s, unit());
  const auto messages = [&](const Trace& t) {
    std::string out;
    for (const Error& e : verify(g, s, t)) out += e.message + "\n";
    return out;
  };
  ASSERT_EQ(messages(good), "");
  Trace bad = good;
  bad.spans.pop_back();
  EXPECT_NE(messages(bad).find("the trace ends before task 4 of stream 1, out"), std::string::npos);
  bad = good;
  bad.spans[1].begin_ns = 0;  // a, before x has ended
  bad.spans[0].end_ns = 0;
  EXPECT_NE(messages(bad).find("a on stream 0 begins at 0 ns, but x on stream 1, which it needs, ends at 1000 ns"),
            std::string::npos) << messages(bad);
  EXPECT_NE(messages(bad).find("the wait for event 0 ends at 0 ns, before its record begins at 1000 ns"),
            std::string::npos) << messages(bad);
  bad = good;
  bad.spans.back().begin_ns = 0;
  EXPECT_NE(messages(bad).find("stream 1: out begins at 0 ns, before wait for event 1 ends"), std::string::npos);
}

TEST(Trace, LanesShowTheLaunchThatFillsMostOfATick) {
  const Graph g = parsed("graph\n p = Op() @cost(1)\n q = Op(p) @cost(3)\n r = Op(q) @cost(5)\n");
  const Schedule s = hand_schedule(g, {"p q r"});
  EXPECT_EQ(print_lanes(g, s, *simulate(g, s, unit()), 4000),
            "time      0  1  2\n"
            "stream 0  q  r  r\n");
}

TEST(Trace, AnEmptyRunPrintsNoColumns) {
  const Graph g = parsed("graph\n p = Op() @cost(0)\n");
  const Schedule s = hand_schedule(g, {"p"});
  EXPECT_EQ(print_lanes(g, s, *simulate(g, s, unit()), 1000), "time\nstream 0\n");
}

}  // namespace
}  // namespace millstream
