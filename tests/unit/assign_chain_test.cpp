// SPDX-License-Identifier: Apache-2.0
// The rules of the chain on graphs small enough to place by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "millstream/assign/chain.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

// E1, E2, ... plain; I independent; A attaches; K skips and attaches.
Target engines() {
  Target t;
  t.name = "test";
  t.engines_in_input = true;
  for (const char* name : {"E1", "E2", "E3", "E4", "I", "A", "K", "AIcoreEngine", "DNN_VM_AICPU"}) {
    Engine e;
    e.name = name;
    e.independent = e.name == "I";
    e.attach = e.name == "A" || e.name == "K";
    e.skip = e.name == "K";
    if (e.name == "E1") e.op_types = {"*"};
    t.engines.push_back(std::move(e));
  }
  return t;
}

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "t.mst");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return graph.ok() ? std::move(*graph) : Graph();
}

std::string streams(std::string_view text, const AssignOptions& options = {}) {
  const Graph g = parsed(text);
  const auto on = assign_streams(g, engines(), options);
  if (!on.ok()) return to_string(on.error());
  for (const Error& e : verify(g, *on)) ADD_FAILURE() << to_string(e);
  std::string out;
  for (const auto& p : on->placement) out += (out.empty() ? "" : " ") + (p ? std::to_string(p->stream.index) : std::string("-"));
  return out;
}

std::vector<std::string> why(std::string_view text, std::string_view node, const AssignOptions& options = {}) {
  const Graph g = parsed(text);
  const auto said = explain_placement(g, engines(), options, *g.find_node(node));
  EXPECT_TRUE(said.ok());
  return said.ok() ? *said : std::vector<std::string>();
}

TEST(Chain, AChainOfEnginesGoesOnWhereItMay) {
  EXPECT_EQ(streams(R"(graph
  a = Op() @engine("E1")
  b = Op(a) @engine("E2")
  c = Op(b) @engine("E3")
)"), "0 1 2");
  EXPECT_EQ(streams(R"(graph
  a = Op() @engine("E1")
  b = Op(a) @engine("A")
  c = Op(b) @engine("E1")
  d = Op(c) @engine("E2")
)"), "0 0 0 1");
}

TEST(Chain, ThreeConsumersOfOneEngineOpenStreamsUpToMaxParallel) {
  const std::string_view text = R"(graph
  p = Op() @engine("E1") @label("x")
  q = Op() @engine("E1")
  h = Op(q) @engine("I")
  x = Op(q, h) @engine("E1")
  y = Op(q, h) @engine("E1")
  z = Op(q, h) @engine("E1")
)";
  EXPECT_EQ(streams(text), "0 2 1 2 2 2");
  AssignOptions options;
  options.max_parallel = {{"E1", 100}};
  EXPECT_EQ(streams(text, options), "0 2 1 3 4 5");
}

TEST(Chain, LabelsThenIndependentEnginesThenTheRest) {
  EXPECT_EQ(streams(R"(graph
  a = Op() @engine("E1")
  b = Op(a) @engine("E2") @label("l1")
  c = Op(a) @engine("I") @label("l1")
  d = Op(a) @engine("E2") @label("l2")
  e = Op(a) @engine("I") @label("l2")
)"), "4 0 2 1 3");
}

TEST(Chain, ACollectiveAUserLabelAndTheRestOfTheNetwork) {
  EXPECT_EQ(streams(R"(graph
  d = Data() @engine("K")
  a = Op(d) @engine("E1")
  b = HcomAllReduce(a) @engine("I")
  e = Op(a) @engine("E1") @user_label("1")
  c = Op(b, e) @engine("E1")
  out = NetOutput(c) @engine("K")
)"), "- 2 1 0 2 2");
}

TEST(Chain, AGroupNumberPinsItsNodesBeforeAllOtherRules) {
  EXPECT_EQ(streams(R"(graph
  a = Op()
  b = Op(a) @new_stream(7)
  c = Op(b) @new_stream(7)
  d = Op(c)
)"), "1 0 0 1");
  EXPECT_NE(streams("graph\n a = Op() @new_stream(-1)\n b = Op(a) @engine(\"E2\")\n", {Strategy::ge}).find("[E16"), std::string::npos);
}

TEST(Chain, AUserLabelWithoutInnerParallelKeepsIndependentEngines) {
  EXPECT_EQ(streams(R"(graph
  a = Op() @engine("E1") @user_label("u")
  h = Op(a) @engine("I") @user_label("u")
)"), "0 1");
  EXPECT_EQ(streams(R"(graph
  a = Op() @engine("E1") @user_label("u") @inner_parallel(false)
  h = Op(a) @engine("I") @user_label("u") @inner_parallel(false)
)"), "0 0");
}

TEST(Chain, AParallelGroupMovesToAStreamOfItsOwn) {
  EXPECT_EQ(streams(R"(graph
  a = Op() @engine("E1") @parallel_group("g1")
  b = Op(a) @engine("E1")
  c = Op(b) @engine("E1") @parallel_group("g2")
  d = Op(c) @engine("E1") @parallel_group("g1")
)"), "1 0 2 1");
}

TEST(Chain, WhatConsumesAnAllReduceRunsBesideTheRest) {
  const std::string_view text = R"(graph
  g2 = Op() @engine("E1")
  g1 = Op(g2) @engine("E1")
  ar = HcomAllReduce(g2, g1) @engine("I")
  g0 = Op(g1) @engine("E1")
  upd = Op(ar) @engine("E1")
)";
  EXPECT_EQ(streams(text), "1 1 0 1 2");
  AssignOptions options;
  options.hcom_parallel = false;
  EXPECT_EQ(streams(text, options), "1 1 0 1 1");
}

TEST(Chain, AChainThatOnlyMakesItsStreamWaitMovesBack) {
  const std::string_view text = R"(graph
  a = Op() @engine("E1")
  b = Op(a) @engine("E2")
  c = Op(b) @engine("E2")
  d = Op(c) @engine("E1")
)";
  EXPECT_EQ(streams(text), "0 0 0 0");
  AssignOptions options;
  options.ineffective_chain = false;
  EXPECT_EQ(streams(R"(graph
  a = Op() @engine("E1")
  b = Op(a) @engine("E2")
  d = Op(b) @engine("E1")
)", options), "0 0 0");
  options.newer_rules = false;
  EXPECT_EQ(streams(text, options), "0 1 1 0");
}

TEST(Chain, ABodysFirstEngineStreamIsItsCallers) {
  const std::string text = R"(graph
  x = Op() @engine("E1")
  p = PartitionedCall(x) @engine("E1")
  h = Op() @engine("I") @scope("body")
  c = Op() @engine("E1") @scope("body")
  v = Op() @engine("E3") @scope("body")
  scope body of p
)";
  const std::string got = streams(text);
  EXPECT_EQ(got, "0 0 1 0 2") << got;
}

TEST(Chain, AUserLabelIsOneStreamOverCallsAndOneForEachBodyOfControlFlow) {
  EXPECT_EQ(streams(R"(graph
  x = Op() @engine("E1") @user_label("u")
  p = PartitionedCall(x) @engine("E1")
  c = Op() @engine("E1") @user_label("u") @scope("call")
  w = If(p) @engine("E1")
  t = Op() @engine("E1") @user_label("u") @scope("then")
  e = Op() @engine("E1") @user_label("u") @scope("else")
  scope call of p
  scope then of w
  scope else of w
)"), "0 1 0 1 2 3");
}

TEST(Chain, AStreamLabelReachesAsFarAsItsScope) {
  EXPECT_EQ(streams(R"(graph
  x = Op() @engine("E1") @label("l")
  p = PartitionedCall(x) @engine("E1")
  c = Op() @engine("E1") @label("l") @scope("call")
  scope call of p
)"), "0 1 2");
}

TEST(Chain, LabelsAndActivationsOfControlFlowStandOnTheCallersStream) {
  Graph g = parsed(R"(graph
  x = Op() @engine("E1")
  w = If(x) @engine("E2")
  head = LabelSet() @engine("E3") @scope("then")
  t = Op(head) @engine("E4") @scope("then")
  v = Op(t) @engine("E3") @scope("then")
  scope then of w
)");
  Roles roles;
  roles.rts_label = true;
  g.annotations().roles.set(*g.find_node("head"), roles);
  AssignOptions options;
  options.newer_rules = false;
  const auto on = assign_streams(g, engines(), options);
  ASSERT_TRUE(on.ok()) << to_string(on.error());
  EXPECT_EQ(on->stream_of(*g.find_node("head")), on->stream_of(*g.find_node("w")));
  EXPECT_EQ(on->rules[on->placement[*g.find_node("t")]->decided_by.index], "by-dependency");
}

TEST(Chain, ALabelWithoutItsBranchGetsItOrIsRefused) {
  const std::string_view text = R"(graph
  a = Op() @engine("E1") @label("l")
  b = Op() @engine("E1") @label("l")
)";
  Graph g = parsed(text);
  g.annotations().batch.set(NodeId(0), g.intern("Batch_0"));
  g.annotations().batch.set(NodeId(1), g.intern("Batch_1"));
  const auto on = assign_streams(g, engines(), {});
  ASSERT_TRUE(on.ok());
  EXPECT_EQ(on->streams.size(), 2u);
  EXPECT_EQ(on->streams[StreamId(1)].label, "l|Batch_1");
  AssignOptions options;
  options.mdim_label_suffix = false;
  const auto refused = assign_streams(g, engines(), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "label \"l\" on a does not contain its branch \"Batch_0\"");
}

TEST(Chain, ALabelledOutputOfAStaticWhileBodyIsAnErrorInADynamicGraph) {
  const std::string_view text = R"(graph shapes=dynamic
  d = Data() @engine("K")
  w = While(d) @engine("E1")
  x = Op() @engine("E1") @scope("body")
  o = NetOutput(x) @engine("K") @user_label("u") @scope("body")
  scope body of w
)";
  EXPECT_NE(streams(text).find("error: NetOutput o of body body of While w is on stream 1 by its user label \"u\", but must be on stream 0 [E13"),
            std::string::npos) << streams(text);
}

TEST(Chain, TheWarningsNameLabelsThatCannotHelp) {
  std::string text = "graph\n";
  for (int i = 0; i < 12; ++i) {
    text += "  n" + std::to_string(i) + " = Op(" + (i == 0 ? "" : "n" + std::to_string(i - 1)) + ") @engine(\"E1\") @cost(5) @label(\"layer" + std::to_string(i) + "\")\n";
  }
  const Graph g = parsed(text);
  const auto on = assign_streams(g, engines(), {});
  ASSERT_TRUE(on.ok());
  std::string all;
  for (const Error& e : on->warnings) all += to_string(e, "warning") + "\n";
  EXPECT_NE(all.find("12 streams, 12 of them labels', but only 1 of the graph's nodes are independent"), std::string::npos) << all;
  EXPECT_NE(all.find("12 labels stand one behind the other: their number grows with the depth of the model"), std::string::npos) << all;
  EXPECT_NE(all.find("slower than one stream [E44"), std::string::npos) << all;
  EXPECT_NE(all.find("engine E1 has 60.0 us of work"), std::string::npos) << all;
}

TEST(Chain, AutoTakesThePlaceOfByDependencyAndObeysTheOthers) {
  AssignOptions options;
  options.strategy = Strategy::automatic;
  const Graph g = parsed(R"(graph
  a = Op() @engine("E1") @cost(10)
  l = Op(a) @engine("E1") @cost(10) @label("x")
  h = Op(a) @engine("I") @cost(10)
  p = Op(a) @engine("E1") @cost(10) @new_stream(1)
  z = Op(l, h, p) @engine("E2") @cost(10)
)");
  const auto on = assign_streams(g, engines(), options);
  ASSERT_TRUE(on.ok()) << to_string(on.error());
  EXPECT_TRUE(verify(g, *on).empty());
  const auto of = [&](const char* n) { return on->placement[*g.find_node(n)]; };
  EXPECT_EQ(on->rules[of("p")->decided_by.index], "mde-group");
  EXPECT_EQ(on->rules[of("l")->decided_by.index], "by-label");
  EXPECT_EQ(on->rules[of("h")->decided_by.index], "independent");
  EXPECT_EQ(on->rules[of("a")->decided_by.index], "auto");
  EXPECT_NE(of("p")->stream, of("l")->stream);
  EXPECT_NE(of("h")->stream, of("l")->stream);
  EXPECT_NE(of("h")->stream, of("p")->stream);
}

TEST(Chain, SingleStreamModeIgnoresEnginesAndRefusesLabels) {
  AssignOptions options;
  options.single_stream = true;
  options.strategy = Strategy::single;
  EXPECT_EQ(streams("graph\n a = Op() @engine(\"E1\")\n b = Op(a) @engine(\"I\")\n c = Op(b) @engine(\"E2\")\n", options), "0 0 0");
  EXPECT_NE(streams("graph\n a = Op() @engine(\"E1\") @user_label(\"u\")\n b = Op(a) @engine(\"I\")\n", options).find("[E02 conflict]"),
            std::string::npos);
}

TEST(Chain, DynamicGraphsHaveOneStreamUnlessMoreAreAskedFor) {
  const std::string_view text = R"(graph shapes=dynamic
  a = Op() @engine("AIcoreEngine")
  b = Op(a) @engine("DNN_VM_AICPU")
  c = Op(b) @engine("AIcoreEngine")
  d = Op(a) @engine("AIcoreEngine")
)";
  EXPECT_EQ(streams(text), "0 0 0 0");
  AssignOptions options;
  options.ac_parallel = true;
  EXPECT_EQ(streams(text, options), "0 1 0 0");
}

TEST(Chain, AttachedStreamsFollowTheMainOnesAndShareByKey) {
  const Graph g = parsed(R"(graph
  a = Op() @engine("E1")
  b = Op(a) @engine("I")
)");
  Graph wanted = g;
  wanted.annotations().attached.set(NodeId(0), {{1, "k"}});
  wanted.annotations().attached.set(NodeId(1), {{1, "k"}});
  const auto on = assign_streams(wanted, engines(), {});
  ASSERT_TRUE(on.ok()) << to_string(on.error());
  EXPECT_EQ(on->streams.size(), 3u);
  EXPECT_EQ(on->attached.get(NodeId(0)), on->attached.get(NodeId(1)));
  EXPECT_EQ(on->attached.get(NodeId(0))->front(), StreamId(2));
  wanted.annotations().attached.set(NodeId(1), {{2, "k2"}});
  const auto many = assign_streams(wanted, engines(), {});
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().message, "b has 2 attached streams (3, 4), allowed are 1");
}

TEST(Chain, ReasonsNameTheRuleTheStreamAndWhy) {
  const std::string_view text = R"(graph
  a = Op() @engine("E1")
  b = Op(a) @engine("A")
  c = Op(b) @engine("E2") @label("l")
)";
  EXPECT_EQ(why(text, "b"), std::vector<std::string>{"by-dependency: reuses stream 1 of a: its engine attaches to any predecessor's stream"});
  EXPECT_EQ(why(text, "c"), std::vector<std::string>{"by-label: label \"l\" opens stream 0"});
}

TEST(MaxParallel, ReadsItsTextAndNamesTheOffendingPiece) {
  const auto read = [](std::string_view text) {
    const auto got = parse_max_parallel(text);
    if (!got.ok()) return got.error().message;
    std::string out;
    for (const MaxParallel& m : *got) out += m.engine + "=" + std::to_string(m.count) + " ";
    return out;
  };
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read(" AIcoreEngine : 8 , DNN_VM_AICPU:2"), "AIcoreEngine=8 DNN_VM_AICPU=2 ");
  EXPECT_EQ(read("E"), "max_parallel \"E\": \"E\" has no \":\"");
  EXPECT_EQ(read("E:1,"), "max_parallel \"E:1,\": \"\" has no \":\"");
  EXPECT_EQ(read(":1"), "max_parallel \":1\": \":1\" names no engine");
  EXPECT_EQ(read("E:"), "max_parallel \"E:\": \"E:\" has no count");
  EXPECT_EQ(read("E:x"), "max_parallel \"E:x\": \"E:x\" has a count that is no whole number");
  EXPECT_EQ(read("E:0"), "max_parallel \"E:0\": \"E:0\" has a count below 1");
  EXPECT_EQ(read("E:99999999999"), "max_parallel \"E:99999999999\": \"E:99999999999\" has a count above 65535");
  EXPECT_EQ(read("E:1,E:2"), "max_parallel \"E:1,E:2\": \"E:2\" repeats its engine");
}

TEST(Rules, AnUnknownNameListsTheRules) {
  const Graph g = parsed("graph\n a = Op()\n");
  const std::vector<std::string> rules = {"AssignByLabelPass", "ByMagic"};
  const auto on = run_rules(g, engines(), {}, rules, {});
  ASSERT_FALSE(on.ok());
  EXPECT_EQ(on.error().message, "there is no rule \"ByMagic\"");
}

}  // namespace
}  // namespace millstream
