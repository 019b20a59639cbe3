// SPDX-License-Identifier: Apache-2.0
// Plans of every kind of graph are written, read again and found sound.
#include <nlohmann/json.hpp>

#include "tests/cli_fixture.h"

namespace millstream {
namespace {

class CliPlans : public Cli {
 protected:
  // Compiles MODEL to a plan, and has every command that loads plans read it.
  void goes_round(const std::string& model, const std::string& options, const std::string& shows) {
    SCOPED_TRACE(model + " " + options + "\n" + text_of(model));
    ASSERT_EQ(run("compile " + model + " " + options + " -o p.plan"), 0) << err();
    EXPECT_TRUE(out_has(shows)) << out();
    EXPECT_EQ(run("check p.plan"), 0) << err() << out();
    EXPECT_EQ(run("explain p.plan"), 0) << err();
    EXPECT_EQ(run("diff p.plan p.plan"), 0) << err();
    EXPECT_EQ(run("compile p.plan " + options + " -o q.plan"), 0) << err();
    EXPECT_EQ(text_of("q.plan"), text_of("p.plan"));
  }
  void put_graph(const std::string& name, const std::string& nodes) { put(name, "graph g\n  input x : f32[4]\n" + nodes); }
};

constexpr const char* kNpu = "--target npu --strategy ge";

TEST_F(CliPlans, OfAttachedStreams) {
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a) @attached(1, \"k\")\n  c = Exp(b) @label(\"s\") @attached(1, \"k\")\n  d = Add(b, c)\n  output d\n");
  goes_round("m.mst", kNpu, "+b");
}

TEST_F(CliPlans, OfPartsThatTheirKernelsOrder) {
  put("self.toml", "name = \"self\"\n[[engine]]\nname = \"E\"\nself_synchronising = true\nop_types = [\"*\"]\n");
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a) @attached(1, \"k\")\n  c = Exp(b) @label(\"s\") @attached(1, \"k\")\n  d = Add(b, c)\n  output d\n");
  goes_round("m.mst", "--target self.toml --strategy ge", "++b");
  EXPECT_EQ(run("check p.plan --target self.toml"), 0) << err() << out();
  EXPECT_EQ(run("check p.plan --target npu"), 1);
  EXPECT_TRUE(out_has("does not declare self_synchronising")) << out();
}

TEST_F(CliPlans, OfOtherRanksAreOfTheirOwnModels) {
  put_graph("m.mst", "  a = Relu(x)\n  h = HcomAllReduce(a)\n  output h\n");
  put_graph("n.mst", "  a = Exp(x)\n  h = HcomAllReduce(a)\n  output h\n");
  ASSERT_EQ(run(std::string("compile m.mst -o m.plan ") + kNpu), 0) << err();
  ASSERT_EQ(run(std::string("compile n.mst -o n.plan ") + kNpu), 0) << err();
  EXPECT_EQ(run("check m.plan --graph m.mst --ranks n.plan"), 0) << err() << out();
}

TEST_F(CliPlans, OfStreamsThatAreSplit) {
  put("small.toml", "name = \"small\"\n[limits]\ntasks_per_stream = 9\n[tasks]\ndefault = 3\n[[engine]]\nname = \"E\"\nop_types = [\"*\"]\n");
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a)\n  c = Exp(b)\n  d = Exp(c)\n  e = Exp(d)\n  f = Add(e, a)\n  output f\n");
  goes_round("m.mst", "--target small.toml --strategy ge", "stream 1 of 0");
}

TEST_F(CliPlans, OfLabels) {
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a) @label(\"s\")\n  c = Exp(a) @user_label(\"u\")\n  d = Add(b, c)\n  output d\n");
  goes_round("m.mst", kNpu, "user_stream_label: u");
}

TEST_F(CliPlans, OfControlFlow) {
  put("m.mst",
      "graph g\n  input c : bool[]\n  input x : f32[4]\n  a = Relu(x)\n  y = If(c) {then_branch=body(yes), else_branch=body(no)}\n"
      "  z = Exp(y)\n  output z\nbody yes\n  outer a\n  q = Exp(a)\n  output q\nbody no\n  outer a\n  q = Abs(a)\n  output q\n");
  goes_round("m.mst", kNpu, "placed");
}

TEST_F(CliPlans, OfParallelGroups) {
  put_graph("m.mst", "  a = Relu(x) @parallel_group(\"1\")\n  b = Exp(x)\n  c = Abs(x) @parallel_group(\"1\")\n  d = Add(b, c)\n  e = Add(a, d)\n  output e\n");
  goes_round("m.mst", kNpu, "parallel-group");
}

TEST_F(CliPlans, OfNodesThatNeedNoStream) {
  put("m.mst", "graph g\n  d = Data()\n  k = Const()\n  r = Reshape(d, k)\n  a = Relu(r)\n  output a\n");
  goes_round("m.mst", kNpu, "skipped-engine");
}

TEST_F(CliPlans, OfBodiesWhoseNodesNeedNoStream) {
  put("m.mst",
      "graph g\n  input x : f32[4]\n  w = Relu(x)\n  y = PartitionedCall(x) {f=body(f)}\n  output y\n"
      "body f shapes=dynamic\n  input p : f32[4]\n  outer w\n  a = Identity(w)\n  output a\n");
  goes_round("m.mst", kNpu, "skipped-engine");
  EXPECT_EQ(run("check p.plan --target npu"), 0) << err() << out();
}

TEST_F(CliPlans, TheSummaryIsAskedForOrPrintedByTheChain) {
  ASSERT_EQ(run("compile two.mst --dim N=4"), 0) << err();
  EXPECT_FALSE(out_has("logic_stream_id")) << out();
  ASSERT_EQ(run("compile two.mst --dim N=4 --summary"), 0) << err();
  EXPECT_TRUE(out_has("logic_stream_id: 0, ")) << out();
  ASSERT_EQ(run("compile two.mst --dim N=4 --target npu --strategy ge"), 0) << err();
  EXPECT_TRUE(out_has("logic_stream_id: 0, ")) << out();
}

TEST_F(CliPlans, JsonHasSummaryHugeStreamsAndTaskNames) {
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a) @user_label(\"u\")\n  c = Add(a, b)\n  output c\n");
  ASSERT_EQ(run(std::string("compile m.mst --json ") + kNpu), 0) << err();
  const auto json = nlohmann::json::parse(out());
  ASSERT_EQ(json["summary"].size(), 1u);
  EXPECT_EQ(json["summary"][0]["graph"], "g");
  EXPECT_EQ(json["summary"][0]["streams"].size(), json["logical_streams"]);
  EXPECT_EQ(json["summary"][0]["streams"][0]["user_stream_label"], "u");
  EXPECT_EQ(json["huge_streams"], nlohmann::json::array());
  EXPECT_EQ(json["names"][0], (std::vector<std::string>{"g_Recv_0", "b", "g_Send_1"}));
  ASSERT_EQ(run("compile two.mst --dim N=4 --json"), 0) << err();
  EXPECT_FALSE(out_has("\"names\"")) << out();
  ASSERT_EQ(run(std::string("compile m.mst -o m.plan ") + kNpu), 0) << err();
  ASSERT_EQ(run("explain m.plan b --json"), 0) << err();
  EXPECT_TRUE(nlohmann::json::parse(out())["decisions"].is_null()) << out();
  ASSERT_EQ(run(std::string("explain m.mst b --json ") + kNpu), 0) << err();
  EXPECT_GT(nlohmann::json::parse(out())["decisions"].size(), 0u) << out();
}

TEST_F(CliPlans, AnEngineTableIsATarget) {
  put("table.json",
      "{\"schedule_units\": [{\"id\": \"TS_1\", \"cal_engines\": [{\"id\": \"AIcoreEngine\"},"
      " {\"id\": \"VectorEngine\", \"attach\": true}, {\"id\": \"Extra\", \"independent\": true}]}]}");
  put_graph("m.mst", "  a = MatMul(x, x) @engine(\"AIcoreEngine\")\n  b = Exp(a) @engine(\"Extra\")\n  c = Exp(a) @engine(\"VectorEngine\")\n  output c\n");
  ASSERT_EQ(run("compile m.mst --target table.json"), 0) << err();
  EXPECT_TRUE(out_has("independent: placed 1")) << out();
  EXPECT_EQ(run("compile m.mst --target npu"), 2);  // it has no engine Extra
  put("bad.json", "{\"schedule_units\": 1}");
  EXPECT_EQ(run("compile m.mst --target bad.json"), 2);
  EXPECT_TRUE(err_has("bad.json: schedule_units must be an array")) << err();
  EXPECT_EQ(run("compile m.mst --target absent.json"), 2);
  EXPECT_TRUE(err_has("there is no target \"absent.json\"")) << err();
}

TEST_F(CliPlans, ThePresetOf2023TurnsTheNewerRulesOff) {
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a)\n  output b\n");
  ASSERT_EQ(run(std::string("explain m.mst b --set compat=ge2023 ") + kNpu), 0) << err();
  EXPECT_FALSE(out_has("ineffective")) << out();
  ASSERT_EQ(run(std::string("compile m.mst --json --set compat=ge2023 ") + kNpu), 0) << err();
  const nlohmann::json told = nlohmann::json::parse(out());
  for (const auto& row : told["rules"]) EXPECT_TRUE(row["rule"] != "mde-group" && row["rule"] != "ineffective") << row;
}

}  // namespace
}  // namespace millstream
