// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "millstream/graph/text.h"

namespace millstream {
namespace {

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "t.mst");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return graph.ok() ? std::move(*graph) : Graph();
}

std::string failure(std::string_view text) {
  const Result<Graph> graph = parse_graph(text, "t.mst");
  return graph.ok() ? "no error" : to_string(graph.error());
}

TEST(GraphText, ReadsThePictureOfTheDesign) {
  const Graph g = parsed(R"(graph
  x   = Fill()           @cost(1)
  a   = MatMul(x)        @cost(3) @label("s1")
  b   = Relu(x)          @cost(1)
  out = Add(a, b)        @cost(1)
)");
  ASSERT_EQ(g.node_count(), 4u);
  EXPECT_EQ(g.type(NodeId(1)), "MatMul");
  EXPECT_EQ(g.text(*g.annotations().label.get(NodeId(1))), "s1");
  EXPECT_EQ(*g.annotations().cost.get(NodeId(1)), 3.0);
  ASSERT_EQ(g.outputs().size(), 1u);
  EXPECT_EQ(g.name(g.outputs()[0]), "out");
}

TEST(GraphText, PrintedTextReadsBackTheSame) {
  const std::string text = R"(graph net opset=18
  input x : f32[1,N,?]
  input "odd name \"1\"" : i64[...]
  const w : f32[2] = [1.5, -inf]
  const h : f16[2] = hex "003c0040"
  const e : i64[0] = []
  y, _, z = Split(x, _, w) {a=1, b=2.0, c="t", d=[1, 2], e=[1.0], f=["q"], g=ints[], t=f32[1] = [0.25]} : f32[1], ?[...], f32[2,M] @label("s") @user_label("u") @priority(-3) @parallel_group("-1") @engine("AIcoreEngine") @cost(2.5)
  Sink(y, z) @name("sink") @after(y)
  r = If(y) {else_branch=body(no), then_branch=body(yes)}
  loopback sink -> y
  output r, z
body no opset=18
  outer y : f32[1]
  a = Relu(y)
  output a
body yes opset=18
  b = Fill()
  output b
)";
  const Graph g = parsed(text);
  const std::string printed = print(g);
  const Graph again = parsed(printed);
  EXPECT_EQ(printed, print(again));
  EXPECT_TRUE(same(g, again));
  EXPECT_EQ(hash_of(g), hash_of(again));
  ASSERT_TRUE(g.find_node("r"));
  ASSERT_EQ(g.captures(*g.find_node("r")).size(), 1u);
}

TEST(GraphText, AnErrorNamesLineColumnAndRemedy) {
  EXPECT_EQ(failure("graph\n  x = Fill()\n  y = Relu(q)\n"),
            "error: there is no value \"q\" above this line [E30 syntax]\n"
            "  --> t.mst:3:12   y = Relu(q)\n"
            "  help: values are declared before they are read: input, const, outer, or a node's output");
  EXPECT_EQ(failure("graph\n  x = Fill() @colour(1)\n"),
            "error: unknown annotation @colour [E30 syntax]\n  --> t.mst:2:15   x = Fill() @colour(1)\n"
            "  help: there are name, after, cost, label, user_label, priority, inner_parallel, parallel_group, engine, "
            "new_stream, stream, attached, activates, activates_streams, role, continuous, batch, multiplex, "
            "thread_scope, used_streams and scope");
}

TEST(GraphText, RefusesWhatIsWrong) {
  EXPECT_NE(failure("graph\n a = Op() @label(\"x\") @label(\"y\")\n").find("given twice"), std::string::npos);
  EXPECT_NE(failure("graph\n const c : f32[2] = fill(low=2.0, high=1.0)\n").find("low <= high"), std::string::npos);
  EXPECT_NE(failure("graph\n a = Op() @scope(s)\n").find("there is no scope"), std::string::npos);
  EXPECT_NE(failure("graph\n a = Op()\n scope s of b\n").find("b"), std::string::npos);
  EXPECT_NE(failure("graph\n x = Fill()\n x = Fill()\n").find("two values are named \"x\""), std::string::npos);
  EXPECT_NE(failure("graph\n a = Op() @after(b)\n b = Op(a)\n").find("cycle"), std::string::npos);
  EXPECT_NE(failure("graph\n const c : f32[3] = [1, 2]\n").find("needs 3 numbers"), std::string::npos);
  EXPECT_NE(failure("graph\n const c : f32[99999999999] = hex \"00\"\n").find("bytes"), std::string::npos);
  EXPECT_NE(failure("graph\n const c : u8[1] = [256]\n").find("does not fit"), std::string::npos);
  EXPECT_NE(failure("graph\n r = If() {b=body(x)}\n").find("there is no body \"x\""), std::string::npos);
  EXPECT_NE(failure("graph\nbody x\n").find("not used"), std::string::npos);
  EXPECT_NE(failure("graph\n a = Op(\"x\n").find("closing quote"), std::string::npos);
  EXPECT_NE(failure("graph\n a = Op()\n order a a\n").find("twice"), std::string::npos);
  EXPECT_NE(failure("graph\n a = Op() ]\n").find("expected the end of the line"), std::string::npos);
}

TEST(GraphText, AnOrderThatTheInputFixedIsKept) {
  const Graph g = parsed("graph\n a = Op()\n b = Op(a)\n order fixed b a\n");
  EXPECT_TRUE(g.order_is_fixed());
  EXPECT_EQ(g.order()[0], NodeId(1));
}

TEST(GraphText, SectionsAreFoundWithTheirLines) {
  const auto s = split_sections("# c\ngraph\n a = Op()\nschedule\nstream 0: a\n", "t.mst");
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->graph_line, 2u);
  EXPECT_EQ(s->schedule_line, 5u);
  EXPECT_EQ(s->schedule, "stream 0: a\n");
  EXPECT_FALSE(split_sections("model\n", "t.mst").ok());
}

}  // namespace
}  // namespace millstream
