// SPDX-License-Identifier: Apache-2.0
// Graph dumps on the command line: written by compile, read by every command.
#include <algorithm>
#include <vector>

#include "tests/cli_fixture.h"

namespace millstream {
namespace {

class CliDump : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    for (const char* name : {"built.txt", "racy.txt", "placed.pbtxt"}) fs::copy(fs::path(MST_SOURCE_DIR) / "tests/dump" / name, root_ / name);
  }
};

TEST_F(CliDump, CheckVerifiesAnAllocationThatSomebodyElseMade) {
  EXPECT_EQ(run("check built.txt"), 0) << out() << err();
  EXPECT_TRUE(out_has("ok: 2 streams, 4 nodes")) << out();
}

TEST_F(CliDump, CheckNamesTheRaceTheRedundantWaitAndTheLimit) {
  EXPECT_EQ(run("check racy.txt --target edge"), 1) << out() << err();
  EXPECT_TRUE(out_has("race: ")) << out();
  EXPECT_TRUE(out_has("missing: a wait before d for b")) << out();
  EXPECT_EQ(run("check racy.txt --json"), 1);
  EXPECT_TRUE(out_has("\"kind\": \"race\"")) << out();
}

// Beside each dump of tests/dump/check stands what check says of it; with limit.toml for the one that is over a limit.
TEST_F(CliDump, CheckSaysWhatIsRacyRedundantStuckOrOverALimit) {
  std::vector<std::string> names;
  fs::create_directories(root_ / "check");
  for (const auto& file : fs::directory_iterator(fs::path(MST_SOURCE_DIR) / "tests/dump/check")) {
    fs::copy(file.path(), root_ / "check" / file.path().filename());
    if (file.path().extension() == ".said") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), 7u);
  for (const std::string& name : names) {
    const bool limit = name.rfind("limit", 0) == 0, good = name.rfind("redundant", 0) == 0;
    EXPECT_EQ(run("check check/" + name + (limit ? " --target check/limit.toml" : "")), good ? 0 : 1) << name << err();
    EXPECT_EQ(out(), text_of("check/" + name + ".said")) << name;
  }
}

TEST_F(CliDump, CheckAsksForRecordsAndWaitsWhereThereAreNone) {
  EXPECT_EQ(run("check placed.pbtxt"), 2);
  EXPECT_TRUE(err_has("no Send and Recv nodes")) << err();
  EXPECT_TRUE(err_has("phase Build")) << err();
}

TEST_F(CliDump, CompilePlansAnewAndSaysWhatIsDifferent) {
  EXPECT_EQ(run("compile built.txt --strategy single"), 0) << err();
  EXPECT_TRUE(out_has("beside what the dump had:")) << out();
  EXPECT_TRUE(out_has("moved    b: stream 1 of the dump -> stream 0 of this plan")) << out();
  EXPECT_TRUE(out_has("1 node moved, 0 waits added, 2 removed")) << out();
  EXPECT_EQ(run("compile placed.pbtxt --strategy single --json"), 0) << err();
  EXPECT_TRUE(out_has("\"difference\": {")) << out();
}

TEST_F(CliDump, EveryCommandTakesADump) {
  EXPECT_EQ(run("explain built.txt b"), 0) << err();
  EXPECT_EQ(run("run built.txt --device sim"), 0) << err();
  EXPECT_EQ(run("diff built.txt placed.pbtxt"), 0) << err();
  EXPECT_EQ(run("convert built.txt -"), 0) << err();
  EXPECT_TRUE(out_has("schedule\nstream 0: a  !e0  c  ?e1  d\n")) << out();
  EXPECT_EQ(run("compile built.txt -o built.plan"), 0) << err();
  EXPECT_EQ(run("check built.plan"), 0) << err();
  EXPECT_EQ(run("run built.txt --device cpu"), 2);
}

TEST_F(CliDump, WhatCompileDumpsIsReadAsTheSamePlan) {
  ASSERT_EQ(run("gen lanes --nodes 40 --width 4 --labels 4 -o net.mst"), 0);
  ASSERT_EQ(run("compile net.mst --force-streams --streams 4 --dump-graph dumps -o net.plan", "DUMP_GE_GRAPH=1 timeout 20 "), 0) << err();
  const std::string built = "dumps/ge_onnx_00000005_graph_0_Build.pbtxt";
  EXPECT_TRUE(out_has("wrote " + built)) << out();
  for (const std::string& file : {built, std::string("dumps/ge_proto_00000005_graph_0_Build.txt")}) {
    EXPECT_EQ(run("check " + file), 0) << out() << err();
    EXPECT_EQ(run("diff " + file + " net.plan"), 0) << err();
    EXPECT_EQ(out(), "0 nodes moved, 0 waits added, 0 removed\n");
  }
}

TEST_F(CliDump, TheEnvironmentAsksForDumpsToo) {
  ASSERT_EQ(run("compile two.mst --dim N=4", "DUMP_GE_GRAPH=2 DUMP_GRAPH_LEVEL=3 DUMP_GRAPH_FORMAT=onnx DUMP_GRAPH_PATH=there timeout 10 "), 0) << err();
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "there")) files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
  ASSERT_EQ(run("compile two.mst --dim N=4", "DUMP_GE_GRAPH=9 timeout 10 "), 0);
  EXPECT_TRUE(err_has("DUMP_GE_GRAPH=9")) << err();
}

TEST_F(CliDump, TheEnginesOptionsLimitNumberAndSizeOfFiles) {
  const auto files = [&](const std::string& folder) {
    std::size_t n = 0;
    if (fs::exists(root_ / folder)) n = static_cast<std::size_t>(std::distance(fs::directory_iterator(root_ / folder), {}));
    return n;
  };
  ASSERT_EQ(run("compile two.mst --dim N=4 --dump-graph some --set ge.maxDumpFileNum=1"), 0) << err();
  EXPECT_EQ(files("some"), 4u) << "numbers 0 and 1 of both formats";
  ASSERT_EQ(run("compile two.mst --dim N=4 --dump-graph small --set ge.maxDumpFileSize=10"), 0) << err();
  EXPECT_EQ(files("small"), 0u);
  EXPECT_EQ(run("compile two.mst --dim N=4 --dump-graph none --set ge.maxDumpFileNum=-1"), 2);
  EXPECT_TRUE(err_has("max_dump_files")) << err();
}

TEST_F(CliDump, ADamagedDumpIsRefusedInItsPlace) {
  put("cut.txt", text_of("built.txt").substr(0, 300));
  EXPECT_EQ(run("check cut.txt"), 2);
  EXPECT_TRUE(err_has("--> cut.txt:")) << err();
}

}  // namespace
}  // namespace millstream
