// SPDX-License-Identifier: Apache-2.0
// Inference over whole graphs, evaluation of small values, and folding.
#include <gtest/gtest.h>

#include <cmath>

#include "millstream/graph/text.h"
#include "millstream/ops/numbers.h"
#include "millstream/ops/op.h"

namespace millstream {
namespace {

Graph inferred(std::string_view text) {
  auto parsed = parse_graph(text, "t.mst");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : to_string(parsed.error()));
  if (!parsed.ok()) return Graph();
  auto g = infer_shapes(std::move(*parsed), {});
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : to_string(g.error()));
  return g.ok() ? std::move(*g) : Graph();
}
Graph folded(std::string_view text) {
  auto g = fold_constants(inferred(text));
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : to_string(g.error()));
  return g.ok() ? std::move(*g) : Graph();
}
std::string failure(std::string_view text) {
  auto parsed = parse_graph(text, "t.mst");
  if (!parsed.ok()) return to_string(parsed.error());
  auto g = infer_shapes(std::move(*parsed), {});
  return g.ok() ? "no error" : to_string(g.error());
}

/// The values of `v` after folding `lines`, which compute it; "kept" when they were not evaluated.
std::string value(const std::string& lines) {
  const Graph g = folded("graph\n  input x : f32[2,3]\n" + lines + "\n  y = Relu(x)\n  z = Cast(v) {to=7}\n  output y, z\n");
  const auto v = g.find_value("v");
  if (!v) return "gone";
  const Tensor* t = g.constant(*v);
  if (t == nullptr) return "kept";
  std::string out;
  const auto numbers = Numbers::of(*t);
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    if (i != 0) out += ' ';
    if (numbers->is_real()) {
      char buffer[32];
      std::snprintf(buffer, sizeof buffer, "%g", numbers->real[i]);
      out += buffer;
    } else {
      out += std::to_string(numbers->whole[i]);
    }
  }
  return std::string(dtype_name(t->dtype())) + " " + out;
}

TEST(Evaluate, ComputesWhatModelsDoToShapes) {
  const std::string ab = "  const a : i64[3] = [7, -7, 2]\n  const b : i64[3] = [2, 2, -3]\n";
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"  v = Shape(x)", "i64 2 3"},
      {"  v = Shape(x) {start=-1}", "i64 3"},
      {"  v = Size(x)", "i64 6"},
      {ab + "  v = Add(a, b)", "i64 9 -5 -1"},
      {ab + "  v = Div(a, b)", "i64 3 -3 0"},
      {ab + "  v = Mod(a, b)", "i64 1 1 -1"},
      {ab + "  v = Mod(a, b) {fmod=1}", "i64 1 -1 2"},
      {ab + "  v = Max(a, b)", "i64 7 2 2"},
      {ab + "  v = Neg(a)", "i64 -7 7 -2"},
      {ab + "  v = Less(a, b)", "bool 0 1 0"},
      {ab + "  c = Less(a, b)\n  v = Where(c, a, b)", "i64 2 -7 -3"},
      {ab + "  v = Concat(a, b) {axis=0}", "i64 7 -7 2 2 2 -3"},
      {ab + "  v = ReduceProd(a) {keepdims=0}", "i64 -98"},
      {"  const a : i64[2,3] = [1, 2, 3, 4, 5, 6]\n  v = Transpose(a)", "i64 1 4 2 5 3 6"},
      {"  const a : i64[2,3] = [1, 2, 3, 4, 5, 6]\n  const i : i64[2] = [-1, 0]\n  v = Gather(a, i) {axis=1}", "i64 3 1 6 4"},
      {"  const a : i64[4] = [1, 2, 3, 4]\n  const s : i64[1] = [3]\n  const e : i64[1] = [-9]\n  const t : i64[1] = [-2]\n"
       "  v = Slice(a, s, e, _, t)", "i64 4 2"},
      {"  const a : i64[5] = [1, 2, 3, 4, 5]\n  const s : i64[2] = [2, 3]\n  u, v = Split(a, s)", "i64 3 4 5"},
      {"  const a : i64[1] = [4]\n  const s : i64[2] = [2, 3]\n  v = Expand(a, s)", "i64 4 4 4 4 4 4"},
      {"  const s : i64[1] = [3]\n  v = ConstantOfShape(s) {value=i64[1] = [7]}", "i64 7 7 7"},
      {"  const a : i64[] = [2]\n  const b : i64[] = [9]\n  const c : i64[] = [3]\n  v = Range(a, b, c)", "i64 2 5 8"},
      {"  const a : i64[2,2] = [0, 5, 6, 0]\n  v = NonZero(a)", "i64 0 1 1 0"},
      {"  const a : f32[3] = [1.5, -1.5, 2.0]\n  v = Floor(a)", "f32 1 -2 2"},
      {"  const a : f32[2] = [1.9, -1.9]\n  v = Cast(a) {to=6}", "i32 1 -1"},
      {"  const a : f32[2] = [1.0, 3.0]\n  const b : f32[] = [2.0]\n  v = Div(a, b)", "f32 0.5 1.5"},
      {"  const a : i64[2] = [1, 2]\n  const b : i64[2] = [1, 0]\n  v = Div(a, b)", "kept"},
      {"  const a : f32[1] = [1e30]\n  v = Cast(a) {to=6}", "kept"},
      {"  const a : f32[600] = fill(seed=1, low=0.0, high=1.0)\n  const k : i64[1] = [2]\n  v = Tile(a, k)", "kept"},
  };
  for (const auto& [lines, expected] : rows) EXPECT_EQ(value(lines), expected) << lines;
}

TEST(Evaluate, HalvesRoundToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double x = half_to_double(static_cast<std::uint16_t>(bits));
    if (std::isnan(x)) continue;
    ASSERT_EQ(double_to_half(x), bits) << x;
  }
  EXPECT_EQ(double_to_half(1.0 + 1.0 / 2048), 0x3c00);      // a tie goes to the even 1
  EXPECT_EQ(double_to_half(1.0 + 3.0 / 2048), 0x3c02);      // and up to the even neighbour
  EXPECT_EQ(double_to_half(65519.9), 0x7bff);
  EXPECT_EQ(double_to_half(65520.0), 0x7c00);
  EXPECT_EQ(double_to_half(std::ldexp(1.0, -25)), 0x0000);  // half of the smallest: to even zero
  EXPECT_EQ(double_to_half(std::ldexp(1.5, -25)), 0x0001);
  EXPECT_TRUE(std::isnan(half_to_double(double_to_half(NAN))));
}

TEST(Infer, ShapeArithmeticGivesStaticShapes) {
  const Graph g = inferred(R"(graph
  input x : f32[2,3,4,5]
  s = Shape(x)
  const i : i64[2] = [0, 1]
  const m : i64[1] = [-1]
  head = Gather(s, i)
  target = Concat(head, m) {axis=0}
  y = Reshape(x, target)
)");
  EXPECT_EQ(to_string(g.desc(*g.find_value("y"))), "f32[2,3,20]");
}

TEST(Infer, ContradictionsNameTheNode) {
  EXPECT_NE(failure("graph\n input x : f32[2,3]\n input y : f32[4,3]\n z = Add(x, y) @name(\"sum\")\n").find("\"sum\""), std::string::npos);
  EXPECT_NE(failure("graph\n input x : f32[2]\n z = Relu(x, x)\n").find("Relu \"z\": has 2 input(s), needs 1"), std::string::npos);
  EXPECT_NE(failure("graph\n input x : f32[2]\n z = Add(x, _)\n").find("no input 1"), std::string::npos);
}

TEST(Infer, EveryMissingOperatorIsToldAtOnce) {
  const std::string told = failure("graph\n input x : f32[2]\n a = Foo(x)\n b = Bar(a)\n c = Foo(b)\n");
  EXPECT_NE(told.find("Bar (opset 23, 1 node)"), std::string::npos) << told;
  EXPECT_NE(told.find("Foo (opset 23,"), std::string::npos) << told;
}

TEST(Infer, ATensorBeyondTheLimitIsRefusedByNode) {
  auto g = parse_graph("graph\n input x : f32[10]\n const s : i64[2] = [1000, 10]\n y = Expand(x, s)\n", "t.mst");
  const auto out = infer_shapes(std::move(*g), InferOptions{10'000});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().code, ErrorCode::memory_limit);
  EXPECT_NE(out.error().message.find("Expand \"y\""), std::string::npos);
}

TEST(Infer, OneNodeFromItsActualInputs) {
  const Graph g = inferred("graph\n input x : f32[N,M]\n s = Shape(x)\n y = Reshape(x, s)\n output y\n");
  Tensor x(DType::f32, {2, 6});
  Tensor s(DType::i64, {2});
  s.as_mutable<std::int64_t>()[0] = 4;
  s.as_mutable<std::int64_t>()[1] = 3;
  const Tensor* inputs[] = {&x, &s};
  const auto out = infer_node(g, *g.find_node("y"), inputs);
  ASSERT_TRUE(out.ok()) << to_string(out.error());
  EXPECT_EQ(to_string((*out)[0]), "f32[4,3]");
  s.as_mutable<std::int64_t>()[1] = 5;
  EXPECT_FALSE(infer_node(g, *g.find_node("y"), inputs).ok());
}

TEST(Infer, CostNeedsStaticShapes) {
  const Graph g = inferred("graph\n input x : f32[2,3]\n input w : f32[3,4]\n input d : f32[N]\n y = MatMul(x, w)\n z = Relu(d)\n");
  const auto cost = cost_of(g, *g.find_node("y"));
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->flops, 2.0 * 2 * 3 * 4);
  EXPECT_EQ(cost->bytes, 4.0 * (6 + 12 + 8));
  EXPECT_FALSE(cost_of(g, *g.find_node("z")));
}

TEST(Fold, KeepsWhatTheUserSpokeAbout) {
  const Graph g = folded(R"(graph
  input x : f32[2]
  a = Identity(x) @label("s1")
  b = Identity(a)
  c = Relu(b)
  dead = Neg(c)
  after = Abs(c) @after(c)
  output c
)");
  EXPECT_TRUE(g.find_node("a"));
  EXPECT_FALSE(g.find_node("b"));
  EXPECT_FALSE(g.find_node("dead"));
  EXPECT_TRUE(g.find_node("after"));  // an end of a control edge
  EXPECT_EQ(g.text(*g.annotations().label.get(*g.find_node("a"))), "s1");
  EXPECT_EQ(g.control_edges().size(), 1u);
}

TEST(Fold, AFixedOrderLeavesTheGraphAlone) {
  const std::string text = "graph\n  input x : f32[2]\n  a = Identity(x)\n  b = Relu(a)\n  order fixed b a\n  output b\n";
  EXPECT_EQ(folded(text).node_count(), 2u);
}

TEST(Fold, ReachesIntoBodiesAndKeepsWhatTheyRead) {
  const Graph g = folded(R"(graph
  input x : f32[2,3]
  input c : bool[]
  copy = Identity(x)
  s = Shape(x)
  r = If(c) {then_branch=body(yes), else_branch=body(no)}
  output r
body yes
  outer copy : f32[2,3]
  outer s : i64[2]
  const one : i64[2] = [1, 1]
  t = Mul(s, one)
  y = Reshape(copy, t)
  output y
body no
  outer copy : f32[2,3]
  n = Neg(copy)
  output n
)");
  EXPECT_TRUE(verify(g).empty());
  EXPECT_TRUE(g.find_node("copy"));  // the bodies read it by name
  EXPECT_FALSE(g.find_node("s"));
  const Graph& yes = g.body(g.bodies(*g.find_node("r"))[0].attribute == "then_branch" ? g.bodies(*g.find_node("r"))[0].body
                                                                                      : g.bodies(*g.find_node("r"))[1].body);
  EXPECT_EQ(yes.node_count(), 1u);
  EXPECT_EQ(to_string(yes.desc(yes.outputs()[0])), "f32[2,3]");
}

TEST(Fold, DropoutGoesOnlyWhenItPassesOn) {
  const auto nodes = [](const std::string& line) {
    return folded("graph\n  input x : f32[2]\n  input t : bool[]\n  const no : bool[] = [0]\n  const r : f32[] = [0.5]\n" + line +
                  "\n  y = Relu(d)\n  output y\n").node_count();
  };
  EXPECT_EQ(nodes("  d = Dropout(x)"), 1u);
  EXPECT_EQ(nodes("  d = Dropout(x, r, no)"), 1u);
  EXPECT_EQ(nodes("  d = Dropout(x, r, t)"), 2u);
}

TEST(Infer, ADeclaredDescMustNotContradictWhatTheOperatorGives) {
  const auto failure_of = [](std::string_view desc, bool shapes) {
    auto parsed = parse_graph("graph\n  input x : f32[1,4]\n  y = Relu(x) : " + std::string(desc) + "\n  output y\n", "t.mst");
    InferOptions options;
    options.shapes_must_agree = shapes;
    const auto g = infer_shapes(std::move(*parsed), options);
    return g.ok() ? "no error" : to_string(g.error());
  };
  EXPECT_EQ(failure_of("i64[1,4]", false), "error: Relu \"y\": output \"y\" is f32[1,4], the model declares i64[1,4] [E39 shape]\n  --> t.mst:3:3   y = Relu(x) : i64[1,4]");
  EXPECT_EQ(failure_of("f32[2,4]", false), "no error");  // ONNX: exported with another batch
  EXPECT_NE(failure_of("f32[2,4]", true), "no error");
  EXPECT_NE(failure_of("f32[4]", true), "no error");
  for (const char* agrees : {"f32[1,4]", "f32[1,N]", "f32[...]", "?[...]", "f32[?,4]"}) EXPECT_EQ(failure_of(agrees, true), "no error") << agrees;
}

// One node that nothing reads makes a new graph of what stays: all that was said about it stays too.
TEST(Fold, WhatStaysKeepsAllThatTheInputSays) {
  constexpr std::string_view head = "graph g shapes=dynamic\n  input x : f32[4]\n";
  constexpr std::string_view rest =
      "  a = Relu(x) : f32[4] @label(\"s\") @user_label(\"u\") @priority(-1) @inner_parallel(false) @parallel_group(\"p\") @engine(\"E\") @cost(2)"
      " @new_stream(3) @stream(4) @attached(2, \"k\") @continuous(\"c\") @batch(\"b\") @multiplex(\"SendTo;w;0\") @thread_scope(7) @used_streams(5) @role(loop_active)\n"
      "  StreamActive(a) @name(\"act\") @activates(\"w\")\n"
      "  w = Neg(x) : f32[4] @label(\"w\") @after(act)\n"
      "  output w\n";
  const auto kept = parse_graph(std::string(head) + std::string(rest), "kept.mst");
  ASSERT_TRUE(kept.ok()) << to_string(kept.error());
  const auto more = parse_graph(std::string(head) + "  dead = Exp(x) : f32[4]\n" + std::string(rest), "more.mst");
  ASSERT_TRUE(more.ok()) << to_string(more.error());
  const auto folded = fold_constants(*more);
  ASSERT_TRUE(folded.ok()) << to_string(folded.error());
  EXPECT_EQ(print(*folded), print(*kept));
  ASSERT_TRUE(folded->where(NodeId(0)));
  EXPECT_EQ(folded->where(NodeId(0))->line, 4u);
}

}  // namespace
}  // namespace millstream
