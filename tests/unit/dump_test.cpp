// SPDX-License-Identifier: Apache-2.0
// Dumps as text: what is read, what is written, what viewers accept, and where errors point.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "millstream/dump/dump.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

std::string sample(const std::string& name) {
  std::ifstream in(std::string(MST_SOURCE_DIR) + "/tests/dump/" + name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  EXPECT_FALSE(out.str().empty()) << name;
  return out.str();
}

/// The graph, or why there is none.
std::string graph_of(const std::string& text) {
  const Result<Dump> dump = read_dump(text, "text");
  return dump.ok() ? print(dump->graph) : to_string(dump.error());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Dump, TheOnnxFormIsReadWithStreamsDescsAndControlEdges) {
  const Result<Dump> dump = read_dump(sample("small.pbtxt"), "small.pbtxt");
  ASSERT_TRUE(dump.ok()) << to_string(dump.error());
  EXPECT_EQ(dump->kind, DumpKind::ge_onnx);
  EXPECT_FALSE(dump->schedule.has_value());
  EXPECT_EQ(print(dump->graph),
            "graph g0 opset=23\n"
            "  x = Data() @stream(0)\n"
            "  abs = Abs(x) : f32[2,3] @stream(1)\n"
            "  NetOutput(abs, _) @name(\"out\") @after(abs)\n"
            "  output abs\n");
}

TEST(Dump, TheProtoFormIsReadAlike) {
  const Result<Dump> dump = read_dump(sample("small.txt"), "small.txt");
  ASSERT_TRUE(dump.ok()) << to_string(dump.error());
  EXPECT_EQ(dump->kind, DumpKind::ge_proto);
  EXPECT_EQ(print(dump->graph),
            "graph g0 opset=23\n"
            "  x = Data() : f32[2,3] @stream(0)\n"
            "  abs = Abs(x) {_user_label_demo=\"side\"} : f32[2,3] @user_label(\"side\") @stream(1)\n"
            "  NetOutput(abs, _) @name(\"out\") @after(abs)\n"
            "  output abs\n");
}

TEST(Dump, TorchAirsTwoFormsAreRead) {
  EXPECT_EQ(graph_of("name: \"g\"\ninput: \"x:0\"\nop { name: \"x\" type: \"Data\" stream_id: -1 output_desc { dtype: DT_FLOAT16 shape { dim: -1 } } }\n"
                     "op { name: \"a\" type: \"Abs\" input: \"x:0\" stream_id: -1 output_desc { shape { dim: -2 } } }\n"),
            "graph g opset=23\n  x = Data() : f16[?]\n  a = Abs(x)\n  output a\n");
  EXPECT_EQ(graph_of("node { name: \"x\" op: \"Data\" attr { key: \"[o]y\" value { s: \"dtype: DT_FLOAT\" } } }\n"
                     "node { name: \"a\" op: \"Abs\" input: \"x:0\" input: \"^x\" attr { key: \"_user_stream_label\" value { s: \"side\" } } }\n"),
            "graph graph opset=23\n  x = Data()\n  Abs(x) @name(\"a\") @user_label(\"side\") @after(x)\n");
}

TEST(Dump, UnknownFieldsOfEveryShapeAreSkipped) {
  const std::string known = "graph { node { name: \"x\" op_type: \"ge:Data\" output: \"x:0\" } }";
  const std::string plain = graph_of("ir_version: 6 " + known);
  for (const char* unknown :
       {"new: 5", "new: -  7", "new: \"a\" 'b'", "new { a: 1 b { c: \"}\" } }", "new: < a: 1 >", "new: [1, 2]", "new: [{ a: 1 }, { b: [] }]", "new: []",
        "new: WORD", "[a.b.c]: 1", "[type.googleapis.com/x.Y] { z: 1 }", "new: 1.5e-3f", "new: inf;", "# a comment { \n", "new: \"\\\"}\"", "new: {}, newer: 0x1f"}) {
    EXPECT_EQ(graph_of("ir_version: 6 " + std::string(unknown) + " " + known), plain) << unknown;
    EXPECT_EQ(graph_of("ir_version: 6 graph { " + std::string(unknown) + " node { " + std::string(unknown) +
                       " name: \"x\" op_type: \"ge:Data\" output: \"x:0\" attribute { name: \"id\" " + std::string(unknown) + " type: INT } } }"),
              plain)
        << unknown;
  }
}

TEST(Dump, AZeroThatIsNotPrintedIsStreamZero) {
  const auto stream = [](const std::string& attribute) {
    const Result<Dump> dump = read_dump("ir_version: 6 graph { node { name: \"a\" op_type: \"ge:Abs\" " + attribute + " } }", "text");
    EXPECT_TRUE(dump.ok());
    return dump->graph.annotations().preset_stream.get(NodeId(0));
  };
  EXPECT_EQ(stream("attribute { name: \"stream_id\" type: INT }"), 0);
  EXPECT_EQ(stream("attribute { name: \"stream_id\" i: -1 type: INT }"), std::nullopt);
  EXPECT_EQ(stream(""), std::nullopt);
}

TEST(Dump, SendAndRecvNodesAreTheTasksOfTheirStreams) {
  const Result<Dump> dump = read_dump(sample("built.txt"), "built.txt");
  ASSERT_TRUE(dump.ok()) << to_string(dump.error());
  ASSERT_TRUE(dump->schedule.has_value());
  EXPECT_EQ(print(dump->graph, *dump->schedule), "stream 0: a  !e0  c  ?e1  d\nstream 1: ?e0  b  !e1\n");
  EXPECT_EQ(dump->graph.node_count(), 4u);
  EXPECT_TRUE(check(dump->graph, *dump->schedule, nullptr).ok());
}

TEST(Dump, EventListsOfNodesAreTasksToo) {
  const Result<Dump> dump = read_dump(
      "ir_version: 6 graph { node { name: \"a\" op_type: \"ge:Abs\" output: \"a:0\" attribute { name: \"send_event_id_list\" ints: 0 type: INTS } "
      "attribute { name: \"stream_id\" type: INT } } "
      "node { name: \"b\" op_type: \"ge:Abs\" input: \"a:0\" attribute { name: \"recv_event_id_list\" ints: [0] type: INTS } attribute { name: \"stream_id\" i: 1 type: INT } } }",
      "text");
  ASSERT_TRUE(dump.ok()) << to_string(dump.error());
  ASSERT_TRUE(dump->schedule.has_value());
  EXPECT_EQ(print(dump->graph, *dump->schedule), "stream 0: a  !e0\nstream 1: ?e0  b\n");
}

TEST(Dump, ErrorsSayWhereTheyAre) {
  const struct {
    const char* text;
    const char* where;
    const char* what;
  } rows[] = {
      {"ir_version: 6\ngraph {\n  node {\n    name: \"a\"\n", "text:5:1", "ends inside a message"},
      {"ir_version: 6\ngraph {\n  node {\n    name: 5\n", "text:4:11", "expected a string"},
      {"ir_version: 6\ngraph {\n  node { name: \"a\" op_type: \"Abs\" }\n}\n", "text:3:8", "dumps write ge:TYPE"},
      {"ir_version: 6\ngraph {\n  node { name: \"a\" op_type: \"ge:Abs\" input: \"b:0\" }\n}\n", "text:3:8", "reads \"b\""},
      {"ir_version: 6\ngraph {\n  node { name: \"a\" op_type: \"ge:Abs\" input: \"b:x\" }\n}\n", "text:3:8", "not SOURCE:OUTPUT"},
      {"ir_version: 6\ngraph {\n  node { name: \"a\" op_type: \"ge:X\" }\n  node { name: \"a\" op_type: \"ge:X\" }\n}\n", "text:4:8", "two nodes \"a\""},
      {"ir_version: 6\ngraph {\n  node { name: \"a\" op_type: \"ge:X\" input: \"a:4000000000\" }\n}\n", "text:3:8", "not SOURCE:OUTPUT"},
      {"ir_version: 6\ngraph {\n  node { name: \"a\n", "text:3:16", "closing quote"},
      {"ir_version: 6\ngraph {\n  node { name: \"\\q\" }\n}", "text:3:17", "escape"},
      {"graph {\n  op {\n    name: \"a\"\n    type: \"X\"\n    stream_id: 70000\n  }\n}\n", "text:2:6", "stream 70000"},
      {"graph {\n  op {\n    name: \"s\"\n    type: \"Send\"\n  }\n}\n", "text:2:6", "names no event"},
      {"graph {\n  op {\n    name: \"a\"\n    stream_id: 99999999999999999999\n  }\n}\n", "text:4:16", "integer of 64 bits"},
      {"nothing: 1\n", "text:1:1", "none of the graph dumps"},
      {"graph { op { name: \"a\" type: \"X\" } }\ngraph {\n name: \"s\" }\n", "text:2:7", "no node owns"},
  };
  for (const auto& row : rows) {
    const std::string error = graph_of(row.text);
    EXPECT_TRUE(has(error, row.where)) << error;
    EXPECT_TRUE(has(error, row.what)) << error;
  }
}

TEST(Dump, ACycleIsAnErrorOfTheFile) {
  const std::string error = graph_of("graph {\n  op { name: \"a\" type: \"X\" input: \"b:0\" }\n  op { name: \"b\" type: \"X\" input: \"a:0\" }\n}\n");
  EXPECT_TRUE(has(error, "cycle")) << error;
  EXPECT_TRUE(has(error, "--> text:")) << error;
}

TEST(Dump, MessagesThatNestWithoutEndAreRefused) {
  std::string text = "ir_version: 6 graph { ";
  for (int i = 0; i < 100000; ++i) text += "x { ";
  EXPECT_TRUE(has(graph_of(text), "deep"));
  text = "ir_version: 6 ";
  for (int i = 0; i < 1000; ++i) text += "graph { node { attribute { name: \"graph\" g { ";
  EXPECT_TRUE(has(graph_of(text), "expected") || has(graph_of(text), "deep")) << graph_of(text).substr(0, 300);
}

TEST(Dump, FewBytesCannotClaimManyOutputs) {
  std::string text = "ir_version: 6 graph { node { name: \"a\" op_type: \"ge:X\" }";
  for (int i = 0; i < 200; ++i) text += fmt::format(" node {{ name: \"n{}\" op_type: \"ge:X\" input: \"n{}:60000\" }}", i, (i + 1) % 200);
  EXPECT_TRUE(has(graph_of(text + " }"), "outputs")) << graph_of(text + " }").substr(0, 300);
}

// Each text of half a megabyte would take minutes if it were looked through once for each of its parts.
TEST(Dump, ManyOfOneKindTakeNoLongerThanTheirText) {
  std::string attrs, tensors, nested;
  for (int i = 20000; i-- > 0;) {
    attrs += fmt::format("attr {{ key: \"{:x}\" value {{ i: {} }} }}\n", i, i);
    tensors += fmt::format("attribute {{ name: \"t{}_desc_dtype\" s: \"DT_INT8\" type: STRING }} attribute {{ name: \"t{}_desc_shape\" ints: 1 type: INTS }} "
                           "attribute {{ name: \"t{}_data\" s: \"x\" type: STRING }}\n", i, i, i);
  }
  const std::string spread(600, '#');
  for (int i = 0; i < 3000; ++i) {
    nested += fmt::format("node {{ name: \"n{}\" op_type: \"ge:If\" attribute {{ name: \"g\" g {{ name: \"n{}/g\" node {{ name: \"a\" op_type: \"ge:A\" }}\n {}\n }} }} }}\n", i, i, spread);
  }
  const Result<Dump> many = read_dump("graph { op { name: \"b\" type: \"A\" " + attrs + "attr { key: \"7\" value { i: 1 } } } }", "text");
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(many->graph.attrs(NodeId(0)).items().size(), 20000u);
  EXPECT_EQ(many->graph.attrs(NodeId(0)).get_int("7", 0), 1);  // of two of one name the later one
  const Result<Dump> joined = read_dump("ir_version: 6 graph { node { name: \"b\" op_type: \"ge:A\" " + tensors + "} }", "text");
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->graph.attrs(NodeId(0)).items().size(), 20000u);
  EXPECT_NE(joined->graph.attrs(NodeId(0)).get_tensor("t7"), nullptr);
  const Result<Dump> bodies = read_dump("ir_version: 6 graph {\n" + nested + "}", "text");
  ASSERT_TRUE(bodies.ok()) << to_string(bodies.error());
  EXPECT_EQ(bodies->graph.where(NodeId(0))->line, 2u);  // each stands in three lines, and holds a graph
  EXPECT_EQ(bodies->graph.where(NodeId(2999))->line, 2u + 3 * 2999);
  EXPECT_EQ(bodies->graph.where(NodeId(2999))->column, 6u);
}

TEST(Dump, FewBytesCannotClaimManySubgraphsOrTexts) {
  std::string graphs = "graph { op { name: \"b\" type: \"A\" } }", texts = "\"\"";
  for (int i = 0; i < 6000; ++i) graphs += "graph{name:\"b/" + std::to_string(i) + "\"}";
  EXPECT_TRUE(has(graph_of(graphs), "subgraphs, more than the text can hold")) << graph_of(graphs);
  for (int i = 0; i < 19; ++i) texts += ", " + texts;  // 2^19
  EXPECT_TRUE(has(graph_of("graph { op { name: \"b\" type: \"A\" attr { key: \"x\" value { list { s: [" + texts + ", " + texts + "] } } } } }"), "texts in lists"));
  EXPECT_TRUE(has(graph_of("ir_version: 6 graph { node { name: \"b\" op_type: \"ge:A\" attribute { name: \"x\" strings: [" + texts + ", " + texts + "] } } }"), "texts in lists"));
}

TEST(Dump, MillstreamTextIsNoDump) {
  EXPECT_FALSE(is_dump("graph net opset=18\n  input x : f32[2]\n"));
  EXPECT_FALSE(is_dump("graph\n  input x : f32[2]\n"));
  EXPECT_FALSE(is_dump("schedule\nstream 0: a\n"));
  EXPECT_FALSE(is_dump(""));
  EXPECT_TRUE(is_dump("graph {\n"));
  EXPECT_TRUE(is_dump("# a comment\n\nir_version: 6\n"));
  EXPECT_TRUE(is_dump("op{"));
}

// ---- writing

Graph small() {
  auto graph = parse_graph(
      "graph g0\n"
      "  x = Data() @stream(0)\n"
      "  abs = Abs(x) : f32[2,3] @stream(1)\n"
      "  NetOutput(abs, _) @name(\"out\") @after(abs)\n"
      "  output abs\n",
      "text");
  EXPECT_TRUE(graph.ok());
  return *std::move(graph);
}

TEST(DumpWriter, TheOnnxFormIsWrittenAsProtobufItselfPrintsIt) {
  EXPECT_EQ(write_dump(small(), {}, DumpFormat::onnx, DumpDetail::full), sample("written.pbtxt"));
}

TEST(DumpWriter, TheProtoFormIsWrittenAsProtobufItselfPrintsIt) {
  EXPECT_EQ(write_dump(small(), {}, DumpFormat::proto, DumpDetail::full), sample("written.txt"));
}

TEST(DumpWriter, LinksOnlyHasNoAttributes) {
  EXPECT_EQ(write_dump(small(), {}, DumpFormat::onnx, DumpDetail::links), sample("links.pbtxt"));
}

TEST(DumpWriter, TextsOfOperatorsAreLeftOutOfOnnxBelowFullDetailAndKeptInProto) {
  auto graph = parse_graph("graph\n  a = Op() {mode=\"fast\", n=3, w=f32[1] = [1.0]} @label(\"side\")\n", "text");
  ASSERT_TRUE(graph.ok());
  const std::string onnx = write_dump(*graph, {}, DumpFormat::onnx, DumpDetail::no_weights);
  EXPECT_FALSE(has(onnx, "fast"));
  EXPECT_FALSE(has(onnx, "side"));
  EXPECT_FALSE(has(onnx, "w_data"));
  EXPECT_TRUE(has(onnx, "w_desc_dtype"));
  EXPECT_TRUE(has(onnx, "\"n\""));
  for (const DumpDetail detail : {DumpDetail::full, DumpDetail::no_weights, DumpDetail::links}) {
    const std::string proto = write_dump(*graph, {}, DumpFormat::proto, detail);
    EXPECT_TRUE(has(proto, "fast"));
    EXPECT_TRUE(has(proto, "_stream_label"));
  }
}

// Below full detail no text says which node a subgraph belongs to: its name begins with that node's, also inside another one.
TEST(DumpWriter, SubgraphsInSubgraphsFindTheirNodesByNameAlone) {
  const auto graph = parse_graph(
      "graph nest\n  input x : f32[4]\n  input c : bool[]\n  r = If(c) {then_branch=body(yes), else_branch=body(no)} : f32[4]\n  output r\n"
      "body yes\n  outer x : f32[4]\n  outer c : bool[]\n  p = Abs(x) : f32[4]\n  s = If(c) {then_branch=body(a), else_branch=body(b)} : f32[4]\n  output s\n"
      "body no\n  outer x : f32[4]\n  q = Neg(x) : f32[4]\n  output q\n"
      "body a\n  outer p : f32[4]\n  u = Relu(p) : f32[4]\n  output u\nbody b\n  outer x : f32[4]\n  w = Exp(x) : f32[4]\n  output w\n",
      "t.mst");
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  for (const DumpFormat format : {DumpFormat::onnx, DumpFormat::proto}) {
    for (const DumpDetail detail : {DumpDetail::full, DumpDetail::no_weights}) {
      const auto dump = read_dump(write_dump(*graph, {}, format, detail), "again");
      ASSERT_TRUE(dump.ok()) << to_string(dump.error());
      const Graph& root = dump->graph;
      ASSERT_EQ(root.bodies(*root.find_node("r")).size(), 2u);
      const Graph& inner = root.body(root.bodies(*root.find_node("r"))[0].body);
      ASSERT_TRUE(inner.find_node("s").has_value());
      EXPECT_EQ(inner.bodies(*inner.find_node("s")).size(), 2u);
    }
  }
}

TEST(DumpWriter, WeightsOfConstantsAreInFullDetailOnly) {
  auto graph = parse_graph("graph\n  const w : f32[2] = [1.0, 2.0]\n  a = Op(w)\n", "text");
  ASSERT_TRUE(graph.ok());
  EXPECT_TRUE(has(write_dump(*graph, {}, DumpFormat::proto, DumpDetail::full), "data:"));
  EXPECT_FALSE(has(write_dump(*graph, {}, DumpFormat::proto, DumpDetail::no_weights), "data:"));
  const auto again = read_dump(write_dump(*graph, {}, DumpFormat::proto, DumpDetail::no_weights), "text");
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(print(again->graph), "graph graph opset=23\n  w = Const() : f32[2]\n  a = Op(w)\n  output a\n");
}

// What Netron's reader of text takes (docs/dumps.md), row by row.
class Netron : public ::testing::Test {
 protected:
  void SetUp() override {
    auto graph = parse_graph(
        "graph net\n"
        "  input \"gr\xC3\xBC\xC3\x9F\" : string[2]\n"
        "  a = Op(\"gr\xC3\xBC\xC3\x9F\") {b=\"\\x07\\x0B\\x0C?\\n\\xFF\xC3\xBC\", big=9223372036854775807, f=0.5} : c64[1] @name(\"no\\x07de\")\n"
        "  c = Op(a) : bf16[?] @stream(0)\n",
        "text");
    ASSERT_TRUE(graph.ok()) << to_string(graph.error());
    text_ = write_dump(*graph, {}, DumpFormat::onnx, DumpDetail::full);
  }
  std::string text_;
};

TEST_F(Netron, FindsTheVersionFirst) { EXPECT_EQ(text_.rfind("ir_version: 6\nproducer_name: \"GE\"\nmodel_version: 1\ngraph {", 0), 0u); }

TEST_F(Netron, MeetsNoControlByteAndNoBlockComment) {
  EXPECT_FALSE(has(text_, "/*"));
  for (const char c : text_) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 && c != '\n') << static_cast<int>(c);
}

TEST_F(Netron, MeetsOnlyFieldsOfOnnx) {
  const std::string known[] = {"ir_version", "producer_name", "model_version", "graph", "node", "name", "output", "input", "op_type", "attribute", "i", "f", "s",
                               "ints", "floats", "strings", "g", "type", "tensor_type", "elem_type", "shape", "dim", "dim_value", "opset_import", "version"};
  std::istringstream in(text_);
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    const std::string field = line.substr(begin, line.find_first_of(": ", begin) - begin);
    EXPECT_TRUE(field == "}" || std::find(std::begin(known), std::end(known), field) != std::end(known)) << line;
  }
}

TEST_F(Netron, MeetsATypeInEveryAttributeByItsNameInOnnx) {
  std::size_t attributes = 0, types = 0;
  std::istringstream in(text_);
  for (std::string line; std::getline(in, line);) {
    attributes += has(line, "attribute {");
    if (!has(line, " type: ")) continue;
    ++types;
    const std::string word = line.substr(line.find(": ") + 2);
    EXPECT_TRUE(word == "INT" || word == "INTS" || word == "STRING" || word == "STRINGS" || word == "FLOAT" || word == "FLOATS" || word == "GRAPH") << line;
  }
  EXPECT_EQ(attributes, types);
  EXPECT_GT(attributes, 10u);
}

TEST_F(Netron, MeetsNoElementTypeItDoesNotKnow) {
  // c is bf16: its result has no type rather than an unknown one.
  EXPECT_FALSE(has(text_, "elem_type"));
  auto graph = parse_graph("graph\n  a = Op() : f16[2]\n", "text");
  ASSERT_TRUE(graph.ok());
  EXPECT_TRUE(has(write_dump(*graph, {}, DumpFormat::onnx, DumpDetail::full), "elem_type: 10\n"));
}

TEST_F(Netron, MeetsOnlyEscapesItKnows) {
  for (std::size_t i = 0; i + 1 < text_.size(); ++i) {
    if (text_[i] != '\\') continue;
    const char c = text_[++i];
    EXPECT_TRUE(has("\\'\"nrt01234567", std::string(1, c))) << c;
    EXPECT_TRUE(c < '0' || c > '7' || (std::isdigit(text_[i + 1]) && std::isdigit(text_[i + 2])));
  }
  EXPECT_TRUE(has(text_, "\\007")) << "a control byte of a name becomes three octal digits";
}

TEST_F(Netron, SeesNamesAsUtf8AndBytesAsOctal) {
  EXPECT_TRUE(has(text_, "name: \"gr\xC3\xBC\xC3\x9F\"\n"));
  EXPECT_TRUE(has(text_, "s: \"\\007\\013\\014?\\n\\377\\303\\274\"\n")) << text_;
}

TEST_F(Netron, SeesLargeNumbersAsDigits) { EXPECT_TRUE(has(text_, "i: 9223372036854775807\n")); }

TEST_F(Netron, SeesEveryNodeUnderItsTypeWithGeInFront) {
  std::istringstream in(text_);
  for (std::string line; std::getline(in, line);) {
    EXPECT_TRUE(!has(line, "op_type: ") || has(line, "op_type: \"ge:")) << line;
  }
}

}  // namespace
}  // namespace millstream
