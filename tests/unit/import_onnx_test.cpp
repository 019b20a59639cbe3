// SPDX-License-Identifier: Apache-2.0
// What an ONNX model becomes.
#include <gtest/gtest.h>

#include <set>

#include "millstream/graph/text.h"
#include "tests/unit/onnx_build.h"

namespace millstream::test {
namespace {

Graph graph_of(const onnx::ModelProto& m, const ImportOptions& options = {}) {
  auto g = imported(m, options);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : to_string(g.error()));
  return g.ok() ? std::move(*g) : Graph();
}
std::string desc_of(const Graph& g, std::string_view name) {
  const auto v = g.find_value(name);
  return v ? to_string(g.desc(*v)) : "no such value";
}

TEST(ImportOnnx, ReadsNodesAttributesAndShapes) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"1", "3", "8", "8"});
  floats(g->add_initializer(), "w", {4, 3, 3, 3}, std::vector<float>(108, 0.5f));
  set_ints(node(g, "Conv", {"x", "w"}, {"c"}, "conv"), "pads", {1, 1, 1, 1});
  node(g, "Relu", {"c"}, {"y"}, "relu");
  output(g, "y");
  const Graph graph = graph_of(m);
  EXPECT_EQ(graph.name(), "g");
  EXPECT_EQ(graph.opset(), 17);
  ASSERT_EQ(graph.node_count(), 2u);
  EXPECT_EQ(graph.name(NodeId(0)), "conv");
  EXPECT_EQ(graph.attrs(NodeId(0)).get_ints("pads"), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(desc_of(graph, "y"), "f32[1,4,8,8]");
  const Tensor* w = graph.constant(*graph.find_value("w"));
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->as<float>()[107], 0.5f);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w->bytes()) % 64, 0u);
}

TEST(ImportOnnx, AnInitialiserThatIsAlsoAnInputIsAConstant) {
  auto m = model(7, 3);
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  input(g, "w", {"2"});
  floats(g->add_initializer(), "w", {2}, {1, 2});
  node(g, "Add", {"x", "w"}, {"y"});
  output(g, "y");
  const Graph graph = graph_of(m);
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.name(graph.inputs()[0]), "x");
  EXPECT_NE(graph.constant(*graph.find_value("w")), nullptr);
}

TEST(ImportOnnx, EveryFormOfConstantNodeIsAConstant) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  floats(attribute(node(g, "Constant", {}, {"a"}), "value", onnx::AttributeProto::TENSOR)->mutable_t(), "", {2}, {1, 2});
  attribute(node(g, "Constant", {}, {"b"}), "value_float", onnx::AttributeProto::FLOAT)->set_f(0.25f);
  attribute(node(g, "Constant", {}, {"c"}), "value_floats", onnx::AttributeProto::FLOATS)->add_floats(3);
  set_int(node(g, "Constant", {}, {"d"}), "value_int", -7);
  set_ints(node(g, "Constant", {}, {"e"}), "value_ints", {2});
  node(g, "Add", {"x", "a"}, {"s1"});
  node(g, "Mul", {"s1", "b"}, {"s2"});
  node(g, "Add", {"s2", "c"}, {"s3"});
  node(g, "Reshape", {"s3", "e"}, {"y"});
  output(g, "y");
  ImportOptions keep;
  keep.fold = false;
  const Graph graph = graph_of(m, keep);
  EXPECT_EQ(graph.node_count(), 4u);
  EXPECT_EQ(graph.constant(*graph.find_value("b"))->as<float>()[0], 0.25f);
  EXPECT_TRUE(graph.constant(*graph.find_value("b"))->shape().empty());
  EXPECT_EQ(graph.constant(*graph.find_value("d"))->as<std::int64_t>()[0], -7);
  EXPECT_EQ(desc_of(graph, "c"), "f32[1]");
  EXPECT_EQ(desc_of(graph, "e"), "i64[1]");
}

TEST(ImportOnnx, AGraphOutputThatIsAConstantIsSomeNodesOutput) {
  auto m = model();
  auto* g = m.mutable_graph();
  floats(g->add_initializer(), "w", {2}, {1, 2});
  set_int(node(g, "Constant", {}, {"k"}), "value_int", 5);
  output(g, "w");
  output(g, "k");
  const Graph graph = graph_of(m);
  ASSERT_EQ(graph.outputs().size(), 2u);
  for (const ValueId v : graph.outputs()) EXPECT_EQ(graph.kind(v), ValueKind::output);
  EXPECT_EQ(graph.name(graph.outputs()[0]), "w");
  EXPECT_EQ(desc_of(graph, "k"), "i64[]");
}

TEST(ImportOnnx, SymbolsAreBoundAndTheRestStaysSymbolic) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"N", "C", ""});
  node(g, "Relu", {"x"}, {"y"});
  output(g, "y");
  EXPECT_EQ(desc_of(graph_of(m), "y"), "f32[N,C,x.2]");
  ImportOptions options;
  options.dims = {{"N", 4}, {"x.2", 9}};
  EXPECT_EQ(desc_of(graph_of(m, options), "y"), "f32[4,C,9]");
  options.dims = {{"batch", 4}};
  const std::string text = failure(m, options);
  EXPECT_TRUE(has(text, "no symbolic dimension \"batch\"")) << text;
  EXPECT_TRUE(has(text, "\"C\", \"N\", \"x.2\"")) << text;
}

TEST(ImportOnnx, OptionalInputsMayBeLeftOut) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  floats(g->add_initializer(), "top", {}, {6});
  node(g, "Clip", {"x", "", "top"}, {"y"});
  output(g, "y");
  const Graph graph = graph_of(m);
  ASSERT_EQ(graph.inputs(NodeId(0)).size(), 3u);
  EXPECT_TRUE(graph.inputs(NodeId(0))[1].absent());
  EXPECT_FALSE(graph.inputs(NodeId(0))[2].absent());
}

TEST(ImportOnnx, NodeNamesAreMadeUniqueAndGivenNamesWin) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  node(g, "Relu", {"x"}, {"a"});            // would be Relu_0
  node(g, "Relu", {"a"}, {"b"}, "Relu_0");
  node(g, "Relu", {"b"}, {"c"}, "twin");
  node(g, "Relu", {"c"}, {"y"}, "twin");
  output(g, "y");
  const Graph graph = graph_of(m);
  std::vector<std::string> names;
  for (const NodeId n : graph.nodes()) names.emplace_back(graph.name(n));
  EXPECT_EQ(names, (std::vector<std::string>{"Relu_0_1", "Relu_0", "twin", "twin_1"}));
}

TEST(ImportOnnx, BodiesReadOuterValues) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"3"});
  input(g, "c", {}, onnx::TensorProto::BOOL);
  node(g, "Relu", {"x"}, {"r"});
  auto* n = node(g, "If", {"c"}, {"y"}, "choose");
  auto* yes = attribute(n, "then_branch", onnx::AttributeProto::GRAPH)->mutable_g();
  auto* no = attribute(n, "else_branch", onnx::AttributeProto::GRAPH)->mutable_g();
  node(yes, "Neg", {"r"}, {"t"});
  output(yes, "t");
  // A nested If reads from two graphs out.
  auto* inner = node(no, "If", {"c"}, {"e"}, "again");
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto* b = attribute(inner, branch, onnx::AttributeProto::GRAPH)->mutable_g();
    node(b, "Abs", {"r"}, {"v"});
    output(b, "v");
  }
  output(no, "e");
  output(g, "y");
  const Graph graph = graph_of(m);
  const NodeId choose = *graph.find_node("choose");
  ASSERT_EQ(graph.bodies(choose).size(), 2u);
  std::set<std::string> captured;
  for (const ValueId v : graph.captures(choose)) captured.emplace(graph.name(v));
  EXPECT_EQ(captured, (std::set<std::string>{"c", "r"}));
  EXPECT_EQ(desc_of(graph, "y"), "f32[3]");
  EXPECT_TRUE(verify(graph).empty());
}

TEST(ImportOnnx, ALoopsShapesHoldForEveryTurn) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2", "3"});
  ints(g->add_initializer(), "trips", {}, {4});
  auto* n = node(g, "Loop", {"trips", "", "x", "x"}, {"grown", "kept", "stack"}, "loop");
  auto* body = attribute(n, "body", onnx::AttributeProto::GRAPH)->mutable_g();
  describe(body->add_input(), "i", onnx::TensorProto::INT64, {});
  describe(body->add_input(), "go", onnx::TensorProto::BOOL, {});
  describe(body->add_input(), "a", onnx::TensorProto::FLOAT, {"2", "3"});  // stale: a grows
  describe(body->add_input(), "b", onnx::TensorProto::FLOAT, {"2", "3"});
  set_int(node(body, "Concat", {"a", "x"}, {"a2"}), "axis", 0);
  node(body, "Relu", {"b"}, {"b2"});
  for (const char* out : {"go", "a2", "b2", "b2"}) output(body, out);
  output(g, "grown");
  output(g, "kept");
  output(g, "stack");
  const Graph graph = graph_of(m);
  EXPECT_EQ(desc_of(graph, "grown"), "f32[?,3]");
  EXPECT_EQ(desc_of(graph, "kept"), "f32[2,3]");
  EXPECT_EQ(desc_of(graph, "stack"), "f32[?,2,3]");
}

TEST(ImportOnnx, ALoopThatCarriesNothingKeepsTheInputsThatAreLeftOut) {
  auto m = model();
  auto* g = m.mutable_graph();
  ints(g->add_initializer(), "trips", {}, {4});
  auto* n = node(g, "Loop", {"trips", ""}, {"stack"}, "loop");
  auto* body = attribute(n, "body", onnx::AttributeProto::GRAPH)->mutable_g();
  describe(body->add_input(), "i", onnx::TensorProto::INT64, {"1"});
  describe(body->add_input(), "go", onnx::TensorProto::BOOL, {});
  node(body, "Neg", {"i"}, {"j"});
  for (const char* out : {"go", "j"}) output(body, out);
  output(g, "stack");
  const Graph graph = graph_of(m);
  EXPECT_EQ(graph.inputs(*graph.find_node("loop")).size(), 2u);
  EXPECT_EQ(desc_of(graph, "stack"), "i64[?,1]");
}

TEST(ImportOnnx, AStaleDeclaredShapeDoesNotWin) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2", "3"});
  node(g, "Relu", {"x"}, {"h"});
  node(g, "Relu", {"h"}, {"y"});
  describe(g->add_value_info(), "h", onnx::TensorProto::FLOAT, {"5", "5"});
  describe(g->add_output(), "y", onnx::TensorProto::FLOAT, {"7"});
  EXPECT_EQ(desc_of(graph_of(m), "y"), "f32[2,3]");
}

TEST(ImportOnnx, ANodeOfAnotherDomainIsSpelledWithIt) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  node(g, "Relu", {"x"}, {"h"})->set_domain("ai.onnx");
  node(g, "Thing", {"h"}, {"y"})->set_domain("com.example");
  output(g, "y");
  EXPECT_TRUE(has(failure(m), "com.example::Thing (opset 0, 1 node): not an operator of millstream")) << failure(m);
}

// --- functions

onnx::ModelProto scaled_model() {
  auto m = model();
  auto* f = m.add_functions();
  f->set_name("Scale");
  f->set_domain("my");
  f->add_input("a");
  f->add_output("b");
  f->add_attribute("factor");
  f->add_opset_import()->set_version(17);
  auto* k = node(f, "Constant", {}, {"k"});
  auto* a = k->add_attribute();
  a->set_name("value_float");
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_ref_attr_name("factor");
  node(f, "Mul", {"a", "k"}, {"b"});
  return m;
}
void call_scale(onnx::GraphProto* g, const std::string& in, const std::string& out, float factor, const std::string& name) {
  auto* n = node(g, "Scale", {in}, {out}, name);
  n->set_domain("my");
  attribute(n, "factor", onnx::AttributeProto::FLOAT)->set_f(factor);
}

TEST(ImportOnnx, FunctionsAreInlinedWithTheirAttributes) {
  auto m = scaled_model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  call_scale(g, "x", "k", 2.0f, "first");  // "k" is also a name inside the function
  call_scale(g, "k", "y", 3.0f, "second");
  output(g, "y");
  const Graph graph = graph_of(m);
  ASSERT_EQ(graph.node_count(), 2u);
  EXPECT_EQ(graph.name(NodeId(0)), "first/Mul_0");
  EXPECT_EQ(graph.constant(*graph.find_value("first/k"))->as<float>()[0], 2.0f);
  EXPECT_EQ(graph.constant(*graph.find_value("second/k"))->as<float>()[0], 3.0f);
  EXPECT_EQ(desc_of(graph, "k"), "f32[2]");
  EXPECT_EQ(desc_of(graph, "y"), "f32[2]");
}

TEST(ImportOnnx, AFunctionMayPassItsInputOnOrCallAnother) {
  auto m = scaled_model();
  auto* pass = m.add_functions();
  pass->set_name("Pass");
  pass->set_domain("my");
  pass->add_input("a");
  pass->add_input("unused");
  pass->add_output("a");
  pass->add_output("c");
  pass->add_attribute("by");
  auto* inner = node(pass, "Scale", {"a"}, {"c"});
  inner->set_domain("my");
  auto* a = inner->add_attribute();
  a->set_name("factor");
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_ref_attr_name("by");
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  auto* n = node(g, "Pass", {"x"}, {"same", "scaled"}, "p");
  n->set_domain("my");
  attribute(n, "by", onnx::AttributeProto::FLOAT)->set_f(5);
  output(g, "same");
  output(g, "scaled");
  const Graph graph = graph_of(m);
  EXPECT_EQ(desc_of(graph, "same"), "f32[2]");
  EXPECT_EQ(desc_of(graph, "scaled"), "f32[2]");
  EXPECT_EQ(graph.constant(*graph.find_value("p/Scale_0/k"))->as<float>()[0], 5.0f) << print(graph);
}

TEST(ImportOnnx, TheOverloadOfAFunctionIsReadThoughTheSchemaIsOlder) {
  auto m = model();
  auto* g = m.mutable_graph();
  for (const char* overload : {"one", "two"}) {
    auto* f = m.add_functions();
    f->set_name("F");
    f->set_domain("my");
    f->add_input("a");
    f->add_output("b");
    node(f, std::string(overload) == "one" ? "Neg" : "Abs", {"a"}, {"b"});
    f->GetReflection()->MutableUnknownFields(f)->AddLengthDelimited(13, overload);
  }
  input(g, "x", {"2"});
  auto* n = node(g, "F", {"x"}, {"y"});
  n->set_domain("my");
  n->GetReflection()->MutableUnknownFields(n)->AddLengthDelimited(8, "two");
  output(g, "y");
  EXPECT_EQ(graph_of(m).type(NodeId(0)), "Abs");
}

TEST(ImportOnnx, RecursionAndExplosionOfFunctionsAreRefused) {
  auto m = model();
  auto* g = m.mutable_graph();
  const auto add = [&](int i, int calls, int next) {
    auto* f = m.add_functions();
    f->set_name("F" + std::to_string(i));
    f->set_domain("my");
    f->add_input("a");
    f->add_output("z");
    std::string last = "a";
    for (int k = 0; k < calls; ++k) {
      const std::string out = k + 1 == calls ? "z" : "v" + std::to_string(k);
      if (next < 0) {
        node(f, "Neg", {last}, {out});
      } else {
        node(f, "F" + std::to_string(next), {last}, {out})->set_domain("my");
      }
      last = out;
    }
  };
  input(g, "x", {"2"});
  node(g, "F0", {"x"}, {"y"})->set_domain("my");
  output(g, "y");
  auto recursive = m;
  std::swap(m, recursive);
  add(0, 1, 1);
  add(1, 1, 0);
  EXPECT_TRUE(has(failure(m), "calls itself")) << failure(m);
  std::swap(m, recursive);
  for (int i = 0; i < 40; ++i) add(i, 10, i == 39 ? -1 : i + 1);  // 10^40 nodes
  EXPECT_TRUE(has(failure(m), "expand to more than")) << failure(m);
}

// --- folding

TEST(ImportOnnx, ShapeArithmeticIsFoldedAway) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2", "3", "4"});
  node(g, "Shape", {"x"}, {"s"});
  ints(g->add_initializer(), "zero", {1}, {0});
  ints(g->add_initializer(), "minus", {1}, {-1});
  node(g, "Gather", {"s", "zero"}, {"n"});
  set_int(node(g, "Concat", {"n", "minus"}, {"target"}), "axis", 0);
  node(g, "Reshape", {"x", "target"}, {"flat"});
  node(g, "Identity", {"flat"}, {"same"});
  node(g, "Dropout", {"same"}, {"kept"});
  node(g, "Relu", {"kept"}, {"y"});
  node(g, "Neg", {"flat"}, {"dead"});
  output(g, "y");
  const Graph graph = graph_of(m);
  ASSERT_EQ(graph.node_count(), 2u) << print(graph);
  EXPECT_EQ(graph.type(NodeId(0)), "Reshape");
  EXPECT_EQ(graph.type(NodeId(1)), "Relu");
  EXPECT_EQ(desc_of(graph, "y"), "f32[2,12]");
  EXPECT_EQ(graph.constant(*graph.find_value("target"))->as<std::int64_t>()[0], 2);
  ImportOptions keep;
  keep.fold = false;
  EXPECT_EQ(graph_of(m, keep).node_count(), 8u);
}

TEST(ImportOnnx, AnOutputKeepsItsNameWhenItsNodeOnlyCopies) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  node(g, "Relu", {"x"}, {"h"});
  node(g, "Identity", {"h"}, {"y"});
  output(g, "y");
  const Graph graph = graph_of(m);
  ASSERT_EQ(graph.outputs().size(), 1u);
  EXPECT_EQ(graph.name(graph.outputs()[0]), "y");
  EXPECT_EQ(graph.kind(graph.outputs()[0]), ValueKind::output);
}

TEST(ImportOnnx, TheSameBytesGiveTheSameGraph) {
  auto m = scaled_model();
  auto* g = m.mutable_graph();
  input(g, "x", {"N", "2"});
  call_scale(g, "x", "h", 2.0f, "");
  call_scale(g, "h", "y", 2.0f, "");
  output(g, "y");
  EXPECT_EQ(print(graph_of(m)), print(graph_of(m)));
  EXPECT_EQ(hash_of(graph_of(m)), hash_of(graph_of(m)));
}

}  // namespace
}  // namespace millstream::test
