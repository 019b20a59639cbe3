// SPDX-License-Identifier: Apache-2.0
// What the command line answers when it is used rightly: files, JSON, advice, comparisons.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "millstream/import/import.h"
#include "tests/cli_fixture.h"
#include "tools/millstream/error_page.h"

namespace millstream {
namespace {

using Json = nlohmann::json;

class CliAnswers : public Cli {
 protected:
  Json json() const { return Json::parse(out()); }
};

Tensor row(std::initializer_list<float> values) {
  Tensor t(DType::f32, {1, static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.as_mutable<float>().begin());
  return t;
}

TEST_F(CliAnswers, AnOutputIsWrittenAndReadBackAsExpected) {
  for (const char* file : {"o.npy", "o.pb"}) {
    ASSERT_EQ(run(std::string("run two.mst --dim N=4 --output out=") + file), 0) << err();
    EXPECT_TRUE(out_has(std::string("wrote ") + file)) << out();
    EXPECT_EQ(run(std::string("run two.mst --dim N=4 --expect out=") + file), 0) << out();
  }
  ASSERT_EQ(run("run two.mst --dim N=4 --output alone.npy --json"), 0) << err();
  EXPECT_EQ(json()["outputs"]["out"]["file"], "alone.npy");
  EXPECT_EQ(text_of("alone.npy"), text_of("o.npy"));
}

TEST_F(CliAnswers, AnOutputFileThatCannotBeMeantIsRefusedBeforeTheRun) {
  put("many.mst", "graph\n  input x : f32[4]\n  a = Relu(x)\n  b = Tanh(x)\n  output a, b\n");
  ASSERT_TRUE(write_tensor((root_ / "x.npy").string(), row({1, 2, 3, 4})).ok());
  for (const char* arguments :
       {"many.mst --output o.npy", "many.mst --output c=o.npy", "many.mst --output a=o.txt", "many.mst --output a=o.npy --output b=o.npy",
        "many.mst --output a=o.npy --output a=p.npy", "two.mst --dim N=4 --input x=x.npy --output x.npy",
        "many.mst --device sim --output c=o.npy"}) {
    EXPECT_EQ(run(std::string("run ") + arguments), 2) << arguments;
    EXPECT_FALSE(out_has("output ")) << arguments << ": it ran first";
  }
}

TEST_F(CliAnswers, CompatCountsCompareWithThePairsThatAreKept) {
  put("shared.mst",
      "graph\n  input x : f32[4]\n  a = Relu(x) @label(\"s0\")\n  k1 = Relu(x) @label(\"s0\") @attached(1, \"k\")\n"
      "  k2 = Relu(x) @label(\"s1\") @attached(1, \"k\")\n  d = Relu(a) @label(\"s1\")\n  output k1, k2, d\n");
  ASSERT_EQ(run("compile shared.mst --target npu --strategy ge --json"), 0) << err();
  const Json exact = json();
  EXPECT_EQ(exact["pairs_kept"], 4);
  EXPECT_EQ(exact["pairs_compat"], 5);
  EXPECT_EQ(exact["compat"]["inserted"], 1);
  EXPECT_EQ(exact["compat"]["after_switch"], 1);
  EXPECT_EQ(exact["compat"]["added"], 4);
  ASSERT_EQ(run("compile shared.mst --target npu --strategy ge --set sync=compat --json"), 0) << err();
  EXPECT_EQ(json()["compat"], exact["compat"]);
  EXPECT_EQ(json()["pairs_kept"], 5);
  ASSERT_EQ(run("compile shared.mst --target npu --strategy ge --set sync=compat"), 0) << err();
  EXPECT_TRUE(out_has("1 inserted, 1 after send, 1 after receive, 1 after activate, 1 after switch, 4 added: 5 kept")) << out();
}

TEST_F(CliAnswers, ADifferenceNamesItsWorstElement) {
  put("copy.mst", "graph\n  input x : f32[2,3]\n  y = Relu(x)\n  output y\n");
  Tensor x(DType::f32, {2, 3}), want(DType::f32, {2, 3});
  for (int i = 0; i < 6; ++i) x.as_mutable<float>()[i] = want.as_mutable<float>()[i] = 1.0f;
  want.as_mutable<float>()[1] = 1.5f;
  want.as_mutable<float>()[5] = 3.0f;
  ASSERT_TRUE(write_tensor((root_ / "x.npy").string(), x).ok());
  ASSERT_TRUE(write_tensor((root_ / "w.npy").string(), want).ok());
  EXPECT_EQ(run("run copy.mst --input x=x.npy --expect y=w.npy"), 1);
  EXPECT_TRUE(out_has("DIFFERS at [1,2]: have 1, want 3, allowed error 0.003; 2 of 6 elements differ")) << out();
  EXPECT_EQ(run("run copy.mst --input x=x.npy --expect y=w.npy --json"), 1);
  EXPECT_EQ(json()["outputs"]["y"]["worst"], Json({1, 2}));
  EXPECT_EQ(json()["outputs"]["y"]["elements_outside"], 2);
}

TEST_F(CliAnswers, AnotherNumberingOfStreamsIsNoMove) {
  put("one.mst", "schedule\nstream 0: a ?e0 out\nstream 1: b !e0\n");
  put("swapped.mst", "schedule\nstream 0: b !e0\nstream 1: a ?e0 out\n");
  put("moved.mst", "schedule\nstream 0: b ?e0 out\nstream 1: a !e0\n");
  ASSERT_EQ(run("diff one.mst swapped.mst --graph two.mst --dim N=4"), 0) << err();
  EXPECT_TRUE(out_has("same     stream 0 of A is stream 1 of B")) << out();
  EXPECT_TRUE(out_has("0 nodes moved, 0 waits added, 0 removed")) << out();
  ASSERT_EQ(run("diff one.mst moved.mst --graph two.mst --dim N=4 --json"), 0) << err();
  EXPECT_EQ(json()["moved"].size(), 2u) << out();  // out stays, a and b change places
  EXPECT_EQ(json()["removed_waits"], Json({{{"from", "b"}, {"to", "out"}}}));
}

TEST_F(CliAnswers, PlansAreComparedByTheirFiguresToo) {
  ASSERT_EQ(run("compile two.mst --dim N=4 --strategy single --threads-per-op 1 -o a.plan"), 0) << err();
  ASSERT_EQ(run("compile two.mst --dim N=4 --streams 2 --force-streams --threads-per-op 2 --cores 4 -o b.plan"), 0) << err();
  ASSERT_EQ(run("diff a.plan b.plan"), 0) << err();
  EXPECT_TRUE(out_has("threads  1 -> 2 an operator")) << out();
}

TEST_F(CliAnswers, DifferentModelsAreNotCompared) {
  put("other.mst", "graph\n  input x : f32[4]\n  p = Relu(x)\n  output p\n");
  EXPECT_EQ(run("compile two.mst --dim N=4 -o a.plan && " MST_CLI " compile other.mst -o b.plan"), 0) << err();
  EXPECT_EQ(run("diff a.plan b.plan"), 2);
  EXPECT_TRUE(err_has("different models: no node in common")) << err();
}

TEST_F(CliAnswers, EveryCommandAnswersInJson) {
  ASSERT_EQ(run("compile two.mst --dim N=4 --streams 2 --force-streams -o two.plan --json"), 0) << err();
  const Json plan = json();
  EXPECT_EQ(plan["plan"], "two.plan");
  EXPECT_EQ(plan["placement"].size(), 3u);
  EXPECT_EQ(plan["lanes"].size(), plan["physical_streams"]);
  for (const Json& w : plan["warnings"]) EXPECT_EQ(w["code"], "E44");
  for (const char* arguments :
       {"run two.plan", "check two.plan", "explain two.plan", "explain two.plan out", "explain E37", "diff two.plan two.plan",
        "convert two.plan lanes.mst", "gen lanes --nodes 8 -o g.mst", "options", "run two.plan --device sim"}) {
    EXPECT_EQ(run(std::string(arguments) + " --json"), 0) << arguments << ": " << err();
    EXPECT_TRUE(Json::accept(out())) << arguments << ": " << out();
  }
}

TEST_F(CliAnswers, AnErrorIsOneJsonObjectWithJson) {
  put("bad.mst", "graph\n  input x : f32[4]\n  y = Relu(\n");
  const std::pair<const char*, const char*> cases[] = {{"compile missing.mst", "E32"}, {"compile bad.mst", "E30"}, {"run --nosuch", "E33"},
                                                       {"check two.mst --dim N=4", "E33"}, {"nosuch", "E33"}};
  for (const auto& [arguments, code] : cases) {
    EXPECT_EQ(run(std::string(arguments) + " --json"), 2) << arguments;
    ASSERT_TRUE(Json::accept(out())) << arguments << ": " << out();
    EXPECT_EQ(json()["error"]["code"], code) << out();
    EXPECT_TRUE(err_has("error: ")) << err();
  }
  EXPECT_EQ(run("compile bad.mst --json"), 2);
  EXPECT_EQ(json()["error"]["where"]["line"], 3);
}

TEST_F(CliAnswers, AnErrorNumberIsExplained) {
  ASSERT_EQ(run("explain e37"), 0) << err();
  EXPECT_TRUE(out_has("E37 race (exit status 1)")) << out();
  EXPECT_TRUE(out_has("remedy     add the wait")) << out();
  for (const char* number : {"E98", "e98", "98", "107018"}) {
    EXPECT_EQ(run(std::string("explain ") + number), 2);
    EXPECT_TRUE(err_has(std::string("no error has the number ") + number)) << err();
  }
}

TEST_F(CliAnswers, ANumberOfTheAclInterfaceIsExplainedByAllItsErrors) {
  ASSERT_EQ(run("explain 107000"), 0) << err();
  EXPECT_TRUE(out_has("E51 bad value (exit status 2)") && out_has("E52 bad state (exit status 2)")) << out();
  ASSERT_EQ(run("explain 107019 --json"), 0) << err();
  ASSERT_EQ(json()["errors"].size(), 2u) << out();
  EXPECT_EQ(json()["errors"][1]["number"], "E61");
  ASSERT_EQ(run("explain 507015 --json"), 0) << err();
  EXPECT_EQ(json()["number"], "E76") << out();
}

TEST_F(CliAnswers, TheErrorPageIsPrintedFromTheAdvice) {
  ASSERT_EQ(cli::error_advice().size(), error_code_table().size());
  for (std::size_t i = 0; i < cli::error_advice().size(); ++i) EXPECT_EQ(cli::error_advice()[i].code, error_code_table()[i].code);
  std::ifstream in(std::string(MST_SOURCE_DIR) + "/docs/errors.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(page.find(cli::error_table_markdown()), std::string::npos) << "run: millstream explain errors --markdown";
}

TEST_F(CliAnswers, RedundantWaitsMayAllGo) {
  // Either wait of out for b may go, not both; each implies the other.
  put("twice.mst", "schedule\nstream 0: a ?e0 ?e1 out\nstream 1: b !e0 !e1\n");
  ASSERT_EQ(run("check twice.mst --graph two.mst --dim N=4"), 0) << err();
  EXPECT_TRUE(out_has("redundant: stream 0 waits for e0 (task 1): implied by b -> out")) << out();
  EXPECT_TRUE(out_has("ok: 2 streams, 3 nodes, 2 waits: every dependency is ordered, no deadlock, 1 redundant wait\n")) << out();
}

TEST_F(CliAnswers, ARedundantWaitNamesThePathThatImpliesIt) {
  put("chain.mst", "graph\n  input x : f32[4]\n  a = Relu(x)\n  b = Tanh(a)\n  c = Add(a, b)\n  d = Relu(x)\n  output c, d\n");
  put("lanes.mst", "schedule\nstream 0: a !e0 !e1 !e3\nstream 1: ?e0 b !e2\nstream 2: ?e1 ?e2 c\nstream 3: ?e3 d\n");
  ASSERT_EQ(run("check lanes.mst --graph chain.mst"), 0) << err();
  EXPECT_TRUE(out_has("waits for e1 (task 0): implied by a -> b .. b -> c")) << out();
  EXPECT_TRUE(out_has("waits for e3 (task 0): no dependency needs it")) << out();
  ASSERT_EQ(run("check lanes.mst --graph chain.mst --json"), 0) << err();
  EXPECT_EQ(json()["redundant"][0]["implied_by"].size(), 2u) << out();
}

TEST_F(CliAnswers, CheckSaysWhichLimitsItChecked) {
  put("lanes.mst", "schedule\nstream 0: a !e0 b out\n");
  ASSERT_EQ(run("check lanes.mst --graph two.mst --dim N=4"), 0) << err();
  EXPECT_TRUE(out_has("limits were not checked")) << out();
  EXPECT_TRUE(out_has("note: e0 is recorded, and no task waits for it")) << out();
  ASSERT_EQ(run("check lanes.mst --graph two.mst --dim N=4 --target npu"), 0) << err();
  EXPECT_TRUE(out_has("limits of target npu: streams")) << out();
}

TEST_F(CliAnswers, APlanOfOtherSizesSaysItsOwn) {
  ASSERT_EQ(run("compile two.mst --dim N=64 -o two.plan"), 0) << err();
  for (const char* command : {"run", "check"}) {
    EXPECT_EQ(run(std::string(command) + " two.plan --dim N=4"), 2);
    EXPECT_TRUE(err_has("was compiled with N=64 [E35")) << err();
    EXPECT_EQ(run(std::string(command) + " two.plan --dim N=64"), 0) << err();
  }
}

TEST_F(CliAnswers, TheSimulationsPictureFitsAScreen) {
  ASSERT_EQ(run("gen lanes --nodes 60 --width 3 -o g.mst"), 0) << err();
  ASSERT_EQ(run("run g.mst --device sim --target unit"), 0) << err();
  std::istringstream lines(out());
  bool picture = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("time", 0) == 0) picture = true;
    if (picture) {
      EXPECT_LE(line.size(), 100u) << line;
    }
  }
  EXPECT_TRUE(picture) << out();
  ASSERT_EQ(run("gen lanes --nodes 600 --width 3 -o g.mst"), 0) << err();
  ASSERT_EQ(run("run g.mst --device sim --target unit"), 0) << err();
  EXPECT_TRUE(out_has("picture    left out")) << out();
}

TEST_F(CliAnswers, AScheduleThatCompileDoesNotUseIsNamed) {
  put("both.mst", std::string("graph\n  input x : f32[4]\n  a = Relu(x)\n  output a\n\nschedule\nstream 0: a\n"));
  ASSERT_EQ(run("compile both.mst"), 0) << err();
  EXPECT_TRUE(err_has("the schedule in \"both.mst\" is not used")) << err();
}

TEST_F(CliAnswers, AWrittenScheduleSaysHowToCheckIt) {
  ASSERT_EQ(run("compile two.mst --dim N=4 -o lanes.mst"), 0) << err();
  const std::string text = text_of("lanes.mst");
  EXPECT_NE(text.find("millstream check THIS.mst --graph two.mst --dim N=4\n"), std::string::npos) << text;
}

TEST_F(CliAnswers, WhatIsWrittenIsSaidOnStderr) {
  ASSERT_EQ(run("gen lanes --nodes 8 --width 2 -o g.mst"), 0);
  EXPECT_TRUE(err_has("wrote g.mst (")) << err();
  EXPECT_EQ(out(), "");
  ASSERT_EQ(run("convert g.mst -"), 0);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(out().rfind("graph", 0), 0u) << out();
}

TEST_F(CliAnswers, AComparisonOfEqualPlansSaysThatItIsNoise) {
  ASSERT_EQ(run("run two.mst --dim N=4 --strategy single --compare single"), 0) << err();
  EXPECT_TRUE(out_has("the same plan, so the two differ by noise only")) << out();
  ASSERT_EQ(run("run two.mst --dim N=4 --streams 2 --force-streams --compare single"), 0) << err();
  EXPECT_TRUE(out_has("x as fast as one stream")) << out();
}

TEST_F(CliAnswers, AnOperatorThatIsNotThereIsShownWithItsLineAndTheNearestName) {
  put("near.mst", "graph\n  input x : f32[4,4]\n  y = Relu(x)\n  z = Matmull(x, y)\n  output z\n");
  EXPECT_EQ(run("compile near.mst"), 2);
  EXPECT_TRUE(err_has("--> near.mst:4:3   z = Matmull(x, y)")) << err();
  EXPECT_TRUE(err_has("did you mean MatMul?")) << err();
  put("far.mst", "graph\n  input x : f32[4,4]\n  z = Frobnicate(x)\n  output z\n");
  EXPECT_EQ(run("compile far.mst"), 2);
  EXPECT_FALSE(err_has("did you mean")) << err();
}

TEST_F(CliAnswers, AShapeErrorIsShownWithItsLine) {
  put("shape.mst", "graph\n  input x : f32[4,3]\n  y = Relu(x)\n  z = MatMul(y, x)\n  output z\n");
  EXPECT_EQ(run("compile shape.mst"), 2);
  EXPECT_TRUE(err_has("E39")) << err();
  EXPECT_TRUE(err_has("--> shape.mst:4:3   z = MatMul(y, x)")) << err();
}

TEST_F(CliAnswers, AnnotationsThatMeanAnotherAreHintedAt) {
  put("stream.mst", "graph\n  input x : f32[4]\n  y = Relu(x) @stream(\"side\")\n");
  EXPECT_EQ(run("compile stream.mst"), 2);
  EXPECT_TRUE(err_has("@label(\"side\")")) << err();
  put("foo.mst", "graph\n  input x : f32[4]\n  y = Relu(x) @foo\n");
  EXPECT_EQ(run("compile foo.mst"), 2);
  EXPECT_TRUE(err_has("unknown annotation @foo")) << err();
  put("bare.mst", "graph\n  input x : f32[4]\n  y = Relu(x) @label\n");
  EXPECT_EQ(run("compile bare.mst"), 2);
  EXPECT_TRUE(err_has("annotation @label has no value")) << err();
}

TEST_F(CliAnswers, AFaultInALongLineIsShown) {
  std::string line = "  const c : f32[200] = [";
  for (int i = 0; i < 199; ++i) line += "0, ";
  put("long.mst", "graph\n" + line + "oops]\n");
  EXPECT_EQ(run("compile long.mst"), 2);
  EXPECT_TRUE(err_has("0, oops]")) << err();
}

TEST_F(CliAnswers, APlanWithControlFlowIsCheckedWithoutItsMemory) {
  put("if.mst",
      "graph\n  input c : bool[]\n  input x : f32[4]\n  r = If(c) {then_branch=body(yes), else_branch=body(no)}\n  output r\n"
      "body yes\n  outer x : f32[4]\n  a = Relu(x)\n  output a\nbody no\n  outer x : f32[4]\n  b = Tanh(x)\n  output b\n");
  ASSERT_EQ(run("compile if.mst --target npu --strategy ge -o if.plan"), 0) << err();
  EXPECT_EQ(run("check if.plan"), 0) << out();
  EXPECT_TRUE(out_has("memory was not checked")) << out();
  EXPECT_EQ(run("diff if.plan if.plan"), 0) << err();
  EXPECT_EQ(run("compile if.mst --target npu --strategy ge --json"), 0) << err();
  std::set<std::string> done;
  const Json plan = json();
  for (const Json& lane : plan["lanes"]) {
    for (const Json& task : lane["tasks"]) done.insert(task["do"].get<std::string>());
  }
  EXPECT_TRUE(done.count("branch") == 1 && done.count("label") == 1 && done.count("jump") == 1) << out();
}

TEST_F(CliAnswers, APlanWithControlFlowRunsOnEitherDeviceByWhatItsInputsSay) {
  put("if.mst",
      "graph\n  input c : bool[]\n  input x : f32[1,4]\n  r = If(c) {then_branch=body(yes), else_branch=body(no)}\n  output r\n"
      "body yes\n  outer x : f32[1,4]\n  a = Relu(x)\n  b = Neg(a) @user_label(\"side\")\n  d = Add(a, b)\n  output d\nbody no\n  outer x : f32[1,4]\n  b = Neg(x)\n  output b\n");
  ASSERT_TRUE(write_tensor((root_ / "x.npy").string(), row({1, -2, 3, -4})).ok());
  ASSERT_TRUE(write_tensor((root_ / "no.npy").string(), row({-1, 2, -3, 4})).ok());
  ASSERT_TRUE(write_tensor((root_ / "yes.npy").string(), row({0, 0, 0, 0})).ok());
  Tensor yes(DType::boolean, {});
  yes.as_mutable<std::uint8_t>()[0] = 1;
  ASSERT_TRUE(write_tensor((root_ / "c.npy").string(), yes).ok());
  ASSERT_EQ(run("compile if.mst --target npu --strategy ge -o if.plan"), 0) << err();
  for (const std::string device : {"cpu", "sim"}) {
    for (const char* model : {"if.mst --strategy ge", "if.plan"}) {
      EXPECT_EQ(run(fmt::format("run {} --target npu --device {} --input x=x.npy --expect r=no.npy", model, device)), 0) << out() << err();
      EXPECT_EQ(run(fmt::format("run {} --target npu --device {} --input x=x.npy --input c=c.npy --expect r=yes.npy --trace t.json", model, device)), 0) << out() << err();
      EXPECT_NE(text_of("t.json").find("LabelSwitchByIndex"), std::string::npos);
      EXPECT_EQ(text_of("t.json").find("else_branch/b"), std::string::npos) << "the branch that was not taken ran";
    }
  }
  ASSERT_EQ(run("compile if.mst --target npu --strategy ge --json"), 0) << err();
}

TEST_F(CliAnswers, TheSimulationComputesValuesWhereTheyAreAskedFor) {
  put("neg.mst", "graph\n  input x : f32[1,4]\n  y = Neg(x)\n  output y\n");
  ASSERT_TRUE(write_tensor((root_ / "x.npy").string(), row({1, -2, 3, -4})).ok());
  ASSERT_TRUE(write_tensor((root_ / "y.npy").string(), row({-1, 2, -3, 4})).ok());
  EXPECT_EQ(run("run neg.mst --device sim --input x=x.npy --expect y=y.npy"), 0) << err();
  EXPECT_TRUE(out_has("as expected")) << out();
  EXPECT_EQ(run("run neg.mst --device sim --input x=x.npy --expect y=x.npy"), 1) << err();
  EXPECT_EQ(run("run neg.mst --device sim --input x=x.npy --output z.npy"), 0) << err();
  EXPECT_EQ(text_of("z.npy"), text_of("y.npy"));
  EXPECT_EQ(run("run neg.mst --device sim"), 0) << err();
  EXPECT_FALSE(out_has("output ")) << out();
}

TEST_F(CliAnswers, MoreThreadsThanCoresAreNamed) {
  ASSERT_EQ(run("run two.mst --dim N=4 --cores 2 --workers 2 --threads-per-op 2"), 0) << err();
  EXPECT_TRUE(err_has("2 workers x 2 threads are more than the 2 cores")) << err();
}

}  // namespace
}  // namespace millstream
