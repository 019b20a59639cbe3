// SPDX-License-Identifier: Apache-2.0
// What the command line does when it is used wrongly, or when what it uses fails.
#include <sys/stat.h>

#include "millstream/import/import.h"
#include "tests/cli_fixture.h"

namespace millstream {
namespace {

TEST_F(Cli, AnOutputNeverTakesThePlaceOfWhatIsRead) {
  ASSERT_EQ(run("compile two.mst --dim N=4 -o two.plan"), 0) << err();
  put("lanes.mst", "schedule\nstream 0: a b out\n");
  fs::create_symlink("two.mst", root_ / "other.mst");
  for (const char* arguments :
       {"compile two.mst --dim N=4 -o two.mst", "compile two.mst --dim N=4 -o ./two.mst", "compile two.mst --dim N=4 -o other.mst",
        "convert two.mst two.mst", "convert two.plan two.mst", "compile lanes.mst --graph two.mst --dim N=4 -o lanes.mst"}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    EXPECT_TRUE(err_has("would overwrite")) << err();
  }
  EXPECT_EQ(text_of("two.mst"), kTwo);
  EXPECT_EQ(run("compile two.plan -o two.plan"), 0) << err();
}

TEST_F(Cli, APlanCompiledFromAPlanKeepsItsDimensions) {
  ASSERT_EQ(run("compile two.mst --dim N=4 -o a.plan"), 0) << err();
  ASSERT_EQ(run("compile a.plan -o b.plan"), 0) << err();
  EXPECT_EQ(run("run b.plan"), 0) << err();
  EXPECT_EQ(run("compile two.mst --dim N=4 --dim N=5"), 2);
  EXPECT_TRUE(err_has("binds N to 4 and to 5")) << err();
}

TEST_F(Cli, OutputThatDoesNotArriveIsNoSuccess) {
  for (const char* arguments : {"compile two.mst --dim N=4", "run two.mst --dim N=4 --json", "gen lanes --nodes 5000 -o -", "--help"}) {
    EXPECT_EQ(run(std::string(arguments) + " >/dev/full"), 2) << arguments;
    EXPECT_TRUE(err_has("cannot write to the standard output")) << err();
  }
}

TEST_F(Cli, AFullOrClosedErrorOutputDoesNotAbort) {
  EXPECT_EQ(run("compile two.mst --dim N=4 2>/dev/full"), 0);  // it warns
  EXPECT_EQ(run("compile missing.mst 2>/dev/full"), 2);
  EXPECT_EQ(run("nosuch 2>/dev/full"), 2);
  EXPECT_EQ(run("compile two.mst --dim N=4 -o closed.plan >&- 2>&-"), 0);
  EXPECT_EQ(run("check closed.plan"), 0) << err();
}

TEST_F(Cli, OptionsOfARunThatMeanNothingAreRefusedBeforeIt) {
  ASSERT_TRUE(write_tensor((root_ / "o.npy").string(), Tensor(DType::f32, {1, 4})).ok());
  for (const char* arguments :
       {"--expect out=o.npy --rtol nan", "--expect out=o.npy --rtol inf", "--expect out=o.npy --rtol -1", "--expect out=o.npy --atol nan",
        "--expect a=o.npy", "--expect out=missing.npy", "--expect out=o.npy --expect out=o.npy", "--input x=o.npy --input x=o.npy",
        "--trace t.txt", "--trace .json", "--compare-threads 2", "--compare single --compare-threads 0",
        "--compare single --compare-threads 1025", "--device sim --expect a=o.npy", "--device sim --compare single"}) {
    EXPECT_EQ(run(std::string("run two.mst --dim N=4 ") + arguments), 2) << arguments;
    EXPECT_EQ(out().find("output "), std::string::npos) << arguments << ": it ran first";
  }
  EXPECT_EQ(run("run two.mst --dim N=4 --expect out=o.npy"), 1);
}

TEST_F(Cli, RunsThatAreTooManyForACounterStillRun) {
  EXPECT_EQ(run("run two.mst --dim N=4 --warmup 4294967295 --repeat 1", "timeout 1 "), 124) << err();
}

TEST_F(Cli, APipeIsNoModelAndNotWaitedFor) {
  for (const char* name : {"p.mst", "p.plan", "p.onnx"}) {
    ASSERT_EQ(::mkfifo((root_ / name).c_str(), 0600), 0);
    EXPECT_EQ(run(std::string("check ") + name), 2) << name;
    EXPECT_TRUE(err_has("not a regular file")) << err();
  }
}

TEST_F(Cli, AGraphWithoutTasksRuns) {
  put("empty.mst", "graph\n");
  put("through.mst", "graph\n  input x : f32[4]\n  output x\n");
  EXPECT_EQ(run("run empty.mst --compare single"), 0) << err();
  EXPECT_EQ(run("run through.mst --compare single"), 0) << err();
  EXPECT_TRUE(out_has("streams    1 ")) << out();
  EXPECT_EQ(run("compile through.mst --json"), 0) << err();
  EXPECT_TRUE(out_has("\"logical_streams\": 1,")) << out();
  EXPECT_TRUE(out_has("\"physical_streams\": 1,")) << out();
  put("data.mst", "graph\n  d = Data() @engine(\"DNN_VM_GE_LOCAL\")\n  c = Const() @engine(\"DNN_VM_GE_LOCAL\")\n");
  EXPECT_EQ(run("compile data.mst --target npu"), 0) << err();
  EXPECT_TRUE(out_has("streams    1 ")) << out();
}

TEST_F(Cli, MaxMemoryHoldsForShapesThatOnlyInputsDecide) {
  put("shape.mst", "graph\n  input s : i64[2]\n  y = ConstantOfShape(s)\n  z = Relu(y)\n");
  Tensor shape(DType::i64, {2});
  shape.as_mutable<std::int64_t>()[0] = shape.as_mutable<std::int64_t>()[1] = 1000;
  ASSERT_TRUE(write_tensor((root_ / "s.npy").string(), shape).ok());
  // One OpenMP thread: the thread sanitizer does not see how libgomp hands work to others.
  EXPECT_EQ(run("run shape.mst --input s=s.npy --threads-per-op 1"), 0) << err();
  EXPECT_EQ(run("run shape.mst --input s=s.npy --max-memory 1M"), 3);
  EXPECT_TRUE(err_has("ConstantOfShape \"y\": an output f32[1000,1000] takes 4000000 bytes, allowed are 1048576")) << err();
}

TEST_F(Cli, NamesDoNotReachTheTerminalRaw) {
  put("names.mst", "graph\n  input x : f32[4]\n  \"\\x1b[31m\" = Relu(x)\n");
  ASSERT_EQ(run("run names.mst"), 0) << err();
  EXPECT_EQ(out().find('\x1b'), std::string::npos) << out();
  put("bytes.mst", "graph\n  input x : \x1b[31m\n");
  EXPECT_EQ(run("compile bytes.mst"), 2);
  EXPECT_EQ(err().find('\x1b'), std::string::npos) << err();
}

TEST_F(Cli, AFileUnderAWrongNameIsToldByItsContent) {
  ASSERT_EQ(run("compile two.mst --dim N=4 -o two.plan"), 0) << err();
  fs::copy_file(root_ / "two.plan", root_ / "plan.bin");
  fs::copy_file(root_ / "two.mst", root_ / "text.onnx");
  EXPECT_EQ(run("check plan.bin"), 2);
  EXPECT_TRUE(err_has("is a plan, not a model")) << err();
  EXPECT_EQ(run("compile text.onnx"), 2);
  EXPECT_TRUE(err_has("is millstream text, not ONNX")) << err();
}

TEST_F(Cli, AMovedPlanSaysWhereItLooksForItsModel) {
  fs::create_directories(root_ / "away");
  ASSERT_EQ(run("compile two.mst --dim N=4 -o away/two.plan"), 0) << err();
  fs::rename(root_ / "away/two.plan", root_ / "two.plan");
  EXPECT_EQ(run("check two.plan"), 2);
  EXPECT_TRUE(err_has("--graph MODEL")) << err();
  EXPECT_EQ(run("check two.plan --graph two.mst"), 0) << err();
}

TEST_F(Cli, OptionsThatAPlanMakesUselessAreNamed) {
  ASSERT_EQ(run("compile two.mst --dim N=4 -o two.plan"), 0) << err();
  EXPECT_EQ(run("run two.plan --streams 4 --strategy single"), 0) << err();
  EXPECT_TRUE(err_has("--strategy, --streams without effect")) << err();
  EXPECT_EQ(run("compile text.onnx --graph two.mst"), 2);
}

TEST_F(Cli, TheEnvironmentSetsWhatTheCommandLineLeavesOpen) {
  put("parts.mst", "graph\n  input x : f32[4]\n  a = Relu(x) @engine(\"AIcoreEngine\")\n  h = HcomAllReduce(a) @engine(\"DNN_HCCL\")\n  b = Relu(h) @engine(\"AIcoreEngine\")\n");
  const std::string command = "compile parts.mst --target npu";
  const auto streams = [&](const std::string& more, const std::string& variables) {
    EXPECT_EQ(run(command + more, variables + " timeout 10 "), 0) << err();
    return out().substr(out().find("streams    "), 12);
  };
  EXPECT_EQ(streams("", ""), "streams    2");
  EXPECT_EQ(streams("", "SINGLE_STREAM_ENABLE=true"), "streams    1");
  EXPECT_TRUE(err_has("note: SINGLE_STREAM_ENABLE=true is set in the environment")) << err();
  EXPECT_EQ(streams("", "SINGLE_STREAM_ENABLE="), "streams    2");
  EXPECT_EQ(err(), "");
  for (const char* stronger : {" --strategy ge", " --set strategy=ge", " --set single_stream=false", " --set ge.enableSingleStream=false"}) {
    EXPECT_EQ(streams(stronger, "SINGLE_STREAM_ENABLE=true"), "streams    2") << stronger;
    EXPECT_EQ(err(), "") << stronger;
  }
  EXPECT_EQ(streams("", "SINGLE_STREAM_ENABLE=foo"), "streams    2");
  EXPECT_TRUE(err_has("SINGLE_STREAM_ENABLE is \"foo\", which counts as false")) << err();
  EXPECT_EQ(run("explain parts.mst --target npu", "SINGLE_STREAM_ENABLE=1 timeout 10 "), 0);
  EXPECT_TRUE(out_has("single-stream")) << out();
  EXPECT_EQ(run("run parts.mst --target npu --device sim", "SINGLE_STREAM_ENABLE=1 timeout 10 "), 0);
  EXPECT_TRUE(out_has("streams    1")) << out();
}

TEST_F(Cli, TheEnvironmentOpensStreamsForDynamicShapes) {
  put("dynamic.mst",
      "graph shapes=dynamic\n  input x : f32[4]\n  a = Relu(x) @engine(\"AIcoreEngine\")\n  b = Abs(a) @engine(\"DNN_VM_AICPU\")\n"
      "  h = HcomAllReduce(a) @engine(\"DNN_HCCL\")\n  c = Neg(a) @engine(\"AIcoreEngine\")\n  d = Sum(b, h, c) @engine(\"AIcoreEngine\")\n");
  const auto streams = [&](const std::string& more, const std::string& variables) {
    EXPECT_EQ(run("compile dynamic.mst --target npu" + more, variables + " timeout 10 "), 0) << err();
    return out().substr(out().find("streams    "), 12);
  };
  EXPECT_EQ(streams("", ""), "streams    1");
  EXPECT_EQ(streams("", "ENABLE_DYNAMIC_SHAPE_MULTI_STREAM=1"), "streams    2");
  EXPECT_EQ(streams("", "AC_PARALLEL_ENABLE=1"), "streams    2");
  EXPECT_EQ(streams("", "ENABLE_DYNAMIC_SHAPE_MULTI_STREAM=1 AC_PARALLEL_ENABLE=1"), "streams    3");
  EXPECT_EQ(streams(" --set dynamic_multi_stream=false --set ac_parallel=0", "ENABLE_DYNAMIC_SHAPE_MULTI_STREAM=1 AC_PARALLEL_ENABLE=1"), "streams    1");
  EXPECT_EQ(run("compile dynamic.mst --target npu", "AC_PARALLEL_ENABLE=foo timeout 10 "), 2);
  EXPECT_TRUE(err_has("option ac_parallel cannot be \"foo\"")) << err();
  EXPECT_TRUE(err_has("AC_PARALLEL_ENABLE is an environment variable")) << err();
}

TEST_F(Cli, AnUnsafeScheduleIsRefusedByItsOwnFault) {
  put("race.mst", "schedule\nstream 0: a\nstream 1: b out\n");
  put("dead.mst", "schedule\nstream 0: ?e0 a !e1\nstream 1: ?e1 b out !e0\n");
  EXPECT_EQ(run("run race.mst --graph two.mst --dim N=4"), 1);
  EXPECT_TRUE(err_has("E37 race")) << err();
  EXPECT_EQ(run("run dead.mst --graph two.mst --dim N=4"), 1);
  EXPECT_TRUE(err_has("E38 deadlock")) << err();
}

}  // namespace
}  // namespace millstream
