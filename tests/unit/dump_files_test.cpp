// SPDX-License-Identifier: Apache-2.0
// Which dump files are written, what they are called and where they lie.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "millstream/dump/dump_files.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

namespace fs = std::filesystem;

DumpSettingsRead from(const std::map<std::string, std::string>& variables) {
  return dump_settings([&](const char* name) { return variables.count(name) != 0 ? variables.at(name) : std::string(); }, 42, 1);
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("millstream_dump_" + std::to_string(::getpid()));
    fs::create_directories(root_);
    auto graph = parse_graph("graph\n  a = Op()\n  b = Op(a)\n", "text");
    ASSERT_TRUE(graph.ok());
    graph_ = *std::move(graph);
  }
  void TearDown() override { fs::remove_all(root_); }

  DumpSettings settings() const {
    DumpSettings s;
    s.detail = DumpDetail::no_weights;
    s.folder = root_.string();
    return s;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(root_)) out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

  fs::path root_;
  Graph graph_;
};

TEST(DumpSettingsTest, NothingIsDumpedUnlessAskedFor) {
  EXPECT_FALSE(DumpFiles(from({}).settings).on());
  const DumpSettingsRead other = from({{"DUMP_GE_GRAPH", "4"}});
  EXPECT_FALSE(DumpFiles(other.settings).on());
  ASSERT_EQ(other.warnings.size(), 1u);
  EXPECT_NE(other.warnings[0].message.find("DUMP_GE_GRAPH=4"), std::string::npos);
  for (const char* value : {"1", "2", "3"}) EXPECT_TRUE(DumpFiles(from({{"DUMP_GE_GRAPH", value}}).settings).on()) << value;
}

TEST(DumpSettingsTest, TheLevelSaysWhichPhases) {
  const auto wanted = [&](const std::string& level) {
    std::map<std::string, std::string> variables = {{"DUMP_GE_GRAPH", "2"}};
    if (!level.empty()) variables["DUMP_GRAPH_LEVEL"] = level;
    const DumpFiles files(from(variables).settings);
    std::string out;
    for (const std::string& phase : {std::string("PreRunBegin"), phase_before_pass("P"), phase_after_pass("P"), std::string("Build"), std::string("Build_sub_graph_0")}) {
      out += files.wants(phase) ? '1' : '0';
    }
    return out;
  };
  EXPECT_EQ(wanted(""), "11110");
  EXPECT_EQ(wanted("1"), "11111");
  EXPECT_EQ(wanted("2"), "11110");
  EXPECT_EQ(wanted("3"), "00010");
  EXPECT_EQ(wanted("4"), "10000");
  EXPECT_EQ(wanted("AfterAssign|Begin"), "10100");
  EXPECT_EQ(wanted("Build|2"), "11110") << "names and numbers do not mix";
}

TEST(DumpSettingsTest, TheFormatSaysWhichFiles) {
  const auto formats = [](const std::string& text) {
    const DumpSettingsRead read = from({{"DUMP_GRAPH_FORMAT", text}});
    return std::string(read.settings.onnx ? "o" : "") + (read.settings.proto ? "p" : "") + (read.warnings.empty() ? "" : "!");
  };
  EXPECT_EQ(formats(""), "op");
  EXPECT_EQ(formats("onnx"), "o");
  EXPECT_EQ(formats("ge_proto"), "p");
  EXPECT_EQ(formats("ge_proto|onnx"), "op");
  EXPECT_EQ(formats("onnx|readable"), "o!");
  EXPECT_EQ(formats("ONNX"), "op!");
}

TEST(DumpSettingsTest, TheFirstFolderThatIsSetCounts) {
  const auto folder = [](const std::map<std::string, std::string>& variables) { return from(variables).settings.folder; };
  EXPECT_EQ(folder({}), "");
  EXPECT_EQ(folder({{"DUMP_GRAPH_PATH", "/g"}}), "/g/pid_42_deviceid_1");
  EXPECT_EQ(folder({{"ASCEND_WORK_PATH", "/w"}, {"DUMP_GRAPH_PATH", "/g"}}), "/g/pid_42_deviceid_1");
  EXPECT_EQ(folder({{"ASCEND_WORK_PATH", "/w"}}), "/w/pid_42_deviceid_1");
  EXPECT_EQ(folder({{"NPU_COLLECT_PATH", "/n"}, {"DUMP_GRAPH_PATH", "/g"}}), "/n/extra-info/graph/42_1");
  EXPECT_EQ(folder({{"ASCEND_DUMP_PATH", "/d"}, {"NPU_COLLECT_PATH", "/n"}}), "/d/pid_42_deviceid_1");
}

TEST_F(Files, FormatsAreNumberedOnTheirOwn) {
  DumpSettings s = settings();
  s.phases = DumpSettings::Phases::all;
  DumpFiles files(s);
  EXPECT_TRUE(files.dump(graph_, {}, kPhasePreRunBegin).empty());
  EXPECT_TRUE(files.dump(graph_, {}, kPhaseBuild, 7).empty());
  EXPECT_EQ(names(), (std::vector<std::string>{"ge_onnx_00000000_graph_0_PreRunBegin.pbtxt", "ge_onnx_00000001_graph_7_Build.pbtxt",
                                               "ge_proto_00000000_graph_0_PreRunBegin.txt", "ge_proto_00000001_graph_7_Build.txt"}));
  EXPECT_EQ(files.written().size(), 4u);
  struct stat info {};
  ASSERT_EQ(::stat(files.written()[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(Files, WhatNoLevelWantsTakesNoNumber) {
  DumpSettings s = settings();
  s.phases = DumpSettings::Phases::build;
  DumpFiles files(s);
  files.dump(graph_, {}, kPhasePreRunBegin);
  files.dump(graph_, {}, kPhaseBuild);
  EXPECT_EQ(names(), (std::vector<std::string>{"ge_onnx_00000000_graph_0_Build.pbtxt", "ge_proto_00000000_graph_0_Build.txt"}));
}

TEST_F(Files, SubgraphsAreFilesOfTheirOwnAtLevelOne) {
  auto graph = parse_graph("graph\n  c = Op()\n  w = If(c)\n  a = Op() @scope(\"yes\")\n  scope yes of w\n", "text");
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  DumpSettings s = settings();
  s.phases = DumpSettings::Phases::all;
  s.proto = false;
  DumpFiles files(s);
  files.dump(*graph, {}, kPhaseBuild);
  EXPECT_EQ(names(), (std::vector<std::string>{"ge_onnx_00000000_graph_0_Build.pbtxt", "ge_onnx_00000001_graph_0_Build_sub_graph_0.pbtxt"}));
}

TEST_F(Files, APassNameMakesNoFolder) {
  DumpFiles files(settings());
  files.dump(graph_, {}, phase_before_pass("my/pass\n"));
  EXPECT_EQ(names()[0], "ge_onnx_00000000_graph_0_RunCustomPass_BeforeAssignLogicStreammy_pass_.pbtxt");
}

TEST_F(Files, ALongPathIsCutBeforeItsExtension) {
  DumpFiles files(settings());
  files.dump(graph_, {}, phase_before_pass(std::string(230, 'p')));
  ASSERT_EQ(files.written().size(), 2u);
  EXPECT_EQ(files.written()[0].size(), 254u);
  EXPECT_EQ(files.written()[0].substr(248), ".pbtxt");
}

TEST_F(Files, LimitsOnNumberAndSizeHold) {
  DumpSettings s = settings();
  s.proto = false;
  s.max_files = 1;
  DumpFiles files(s);
  for (int i = 0; i < 4; ++i) files.dump(graph_, {}, kPhaseBuild);
  EXPECT_EQ(names().size(), 2u);  // numbers 0 and 1
  s.max_files.reset();
  s.max_bytes = 10;
  DumpFiles small(s);
  small.dump(graph_, {}, kPhasePreRunBegin);
  EXPECT_EQ(names().size(), 2u);
  EXPECT_TRUE(small.written().empty());
}

TEST_F(Files, AFolderThatCannotBeMadeGivesWayToTheCurrentOne) {
  const fs::path old = fs::current_path();
  fs::current_path(root_);
  DumpSettings s = settings();
  s.folder = "/proc/no/such";
  DumpFiles files(s);
  const std::vector<Error> warnings = files.dump(graph_, {}, kPhaseBuild);
  fs::current_path(old);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].message.find("/proc/no/such"), std::string::npos);
  EXPECT_EQ(names().size(), 2u);
}

TEST(DumpName, IsTakenApart) {
  const auto a = parse_dump_name("ge_onnx_00000012_graph_3_RunCustomPass_AfterAssignLogicStreamMine.pbtxt");
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->format, "onnx");
  EXPECT_EQ(a->number, 12u);
  EXPECT_EQ(a->graph_id, 3);
  EXPECT_EQ(a->phase, "RunCustomPass_AfterAssignLogicStreamMine");
  const auto b = parse_dump_name("ge_proto_00005_Build.txt");
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->graph_id, std::nullopt);
  EXPECT_EQ(b->phase, "Build");
  EXPECT_TRUE(parse_dump_name("ge_readable_1_graph_-1_x.txt").has_value());
  for (const char* other : {"model.onnx", "ge_onnx_x_graph_1_B.pbtxt", "ge_onnx_1_graph_1_B.onnx", "ge_", "dynamo_original_graph_0_rank_0_pid_1_ts_2.txt"}) {
    EXPECT_FALSE(parse_dump_name(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace millstream
