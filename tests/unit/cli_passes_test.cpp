// SPDX-License-Identifier: Apache-2.0
// Stream passes on the command line.
#include <csignal>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli_fixture.h"

namespace millstream {
namespace {

using Json = nlohmann::json;

class CliPasses : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    put("model.mst",
        "graph g\n  input x : f32[4]\n  a = Relu(x) @engine(\"AIcoreEngine\") @cost(1)\n  b = Neg(x) @engine(\"AIcoreEngine\") @cost(1)\n"
        "  out = Add(a, b) @engine(\"AIcoreEngine\") @cost(1)\n  output out\n");
    for (const char* name : {"first", "second", "no_query", "throws"}) {
      fs::create_directories(root_ / "lib");
      fs::copy_file(std::string(MST_PASS_PLUGINS) + "/" + name + ".so", root_ / "lib" / (std::string(name) + ".so"));
      fs::permissions(root_ / "lib" / (std::string(name) + ".so"), fs::perms(0644));
    }
  }
  int with(const std::string& variables, const std::string& arguments) { return run(arguments, "env " + variables + " timeout 60 "); }
  /// NODE=STREAM of compile --json, and the rest.
  Json json() const { return Json::parse(out()); }
  std::map<std::string, int> placement() const {
    std::map<std::string, int> out;
    const Json all = json();
    for (const auto& row : all["placement"]) out[row["node"]] = row["stream"];
    return out;
  }
  const std::string compile_ = "compile model.mst --target npu --json ";
};

TEST_F(CliPasses, ThePassMovesItsNodeAndTheReportSaysSo) {
  ASSERT_EQ(with("PASS_SCRIPT=move", compile_ + "--pass lib/first.so -o p.plan"), 0) << err();
  EXPECT_EQ(placement(), (std::map<std::string, int>{{"a", 1}, {"b", 0}, {"out", 0}}));
  EXPECT_EQ(json()["pass_libraries"][0]["passes"], Json({"first"}));
  EXPECT_EQ(json()["waits"], 1);  // out waits for a
  EXPECT_TRUE(err_has("note: stream passes of"));
  ASSERT_EQ(run("check p.plan"), 0) << err();
  ASSERT_EQ(run("run p.plan --pass lib/first.so"), 0) << err();
  EXPECT_TRUE(err_has("--pass without effect"));
  ASSERT_EQ(with("PASS_SCRIPT=move", "explain model.mst a --target npu --pass lib/first.so"), 0) << err();
  EXPECT_TRUE(out_has("pass first: a stream pass of")) << out();
}

TEST_F(CliPasses, CompileSaysOfEachPassHowManyNodesItMoved) {
  ASSERT_EQ(with("PASS_SCRIPT=move", "compile model.mst --target npu --pass lib/first.so"), 0) << err();
  EXPECT_TRUE(out_has("rule       pass first: moved 1 node\n")) << out();
  ASSERT_EQ(with("PASS_SCRIPT=none", "compile model.mst --target npu --pass lib/first.so --pass lib/second.so"), 0) << err();
  EXPECT_TRUE(out_has("rule       pass first: moved 0 nodes\nrule       pass second: moved 0 nodes\n")) << out();
}

// Its dump of the graph before the pass and the one behind it are the same but for the stream of the node that moved.
TEST_F(CliPasses, DumpsAroundAPassDifferInTheStreamOfItsNode) {
  ASSERT_EQ(with("PASS_SCRIPT=move", compile_ + "--pass lib/first.so --dump-graph dumps"), 0) << err();
  for (const std::string format : {".pbtxt", ".txt"}) {
    std::vector<std::string> before, after;
    for (const auto& file : fs::recursive_directory_iterator(root_ / "dumps")) {
      const std::string name = file.path().filename().string();
      if (file.path().extension() != format || name.find("RunCustomPass_") == std::string::npos) continue;
      std::vector<std::string>& lines = name.find("RunCustomPass_Before") != std::string::npos ? before : after;
      ASSERT_TRUE(lines.empty()) << name;
      std::ifstream in(file.path());
      for (std::string line; std::getline(in, line);) lines.push_back(line);
    }
    ASSERT_FALSE(before.empty() || after.empty()) << format;
    std::size_t first = 0;
    while (first < before.size() && before[first] == after[first]) ++first;
    std::size_t last = 0;
    while (last < before.size() - first && last < after.size() - first && before[before.size() - 1 - last] == after[after.size() - 1 - last]) ++last;
    EXPECT_LE(before.size() - first - last, 1u) << format;
    ASSERT_EQ(after.size() - first - last, 1u) << format;  // a stream of 0 is not written
    EXPECT_NE(after[first].find(": 1"), std::string::npos) << after[first];
  }
}

// A model of unknown shapes with parts of known ones: a pair of dumps for the root, then one for each part, which is a graph of its own.
TEST_F(CliPasses, AMixedModelHasAPairOfDumpsForTheRootAndForEachStaticPart) {
  put("mixed.mst",
      "graph net shapes=dynamic\n  input x : f32[4]\n  a = Relu(x) : f32[4]\n  y = PartitionedCall(x) {f=body(b)} : f32[4]\n"
      "  z = PartitionedCall(y) {f=body(d)} : f32[4]\n  o = Neg(z) : f32[4]\n  output o\n"
      "body b\n  input p : f32[4]\n  q = Relu(p) : f32[4]\n  r = Neg(q) : f32[4]\n  output r\n"
      "body d\n  input s : f32[4]\n  outer a : f32[4]\n  t = Add(s, a) : f32[4]\n  output t\n");
  ASSERT_EQ(with("PASS_SCRIPT=move", "compile mixed.mst --strategy ge --target npu --pass lib/first.so --dump-graph dumps"), 0) << err();
  for (const std::string format : {"onnx", "proto"}) {
    const std::string extension = format == "onnx" ? ".pbtxt" : ".txt";
    for (int part = 0; part < 3; ++part) {
      for (const int after : {0, 1}) {
        // PreRunBegin and BeforeAssignedLogicalStreams come first.
        const std::string file = "dumps/ge_" + format + "_0000000" + std::to_string(2 + 2 * part + after) + "_graph_" + std::to_string(part) + "_RunCustomPass_" +
                                 (after != 0 ? "After" : "Before") + "AssignLogicStreamfirst" + extension;
        ASSERT_EQ(run("convert " + file + " " + format + std::to_string(part) + std::to_string(after) + ".mst"), 0) << file << err();
      }
    }
    EXPECT_TRUE(fs::exists(root_ / ("dumps/ge_" + format + "_00000008_graph_0_AfterAssignedLogicalStreams" + extension)));
    EXPECT_NE(text_of(format + "00.mst"), text_of(format + "01.mst"));  // a is a node of the root: it moved there
    EXPECT_EQ(text_of(format + "10.mst"), text_of(format + "11.mst"));
    EXPECT_NE(text_of(format + "10.mst").find("y/f/q = Relu(y/f/p)"), std::string::npos) << text_of(format + "10.mst");
    EXPECT_EQ(text_of(format + "10.mst").find("z/f/t"), std::string::npos);
    EXPECT_NE(text_of(format + "20.mst").find("a = Data()"), std::string::npos) << text_of(format + "20.mst");
    EXPECT_NE(text_of(format + "20.mst").find("z/f/t = Add(z/f/s, a)"), std::string::npos) << text_of(format + "20.mst");
  }
}

TEST_F(CliPasses, AFailingPassFailsTheCompilationOrIsUndone) {
  EXPECT_EQ(with("PASS_SCRIPT=fail", compile_ + "--pass lib/first.so"), 2);
  EXPECT_TRUE(err_has("failed with -2") && err_has("lib/first.so") && err_has("\"first\"") && err_has("I do not like this graph")) << err();
  EXPECT_EQ(with("PASS_SCRIPT=fail", compile_ + "--pass lib/first.so --pass-policy stop"), 2);
  EXPECT_EQ(with("PASS_SCRIPT=throw", compile_ + "--pass lib/first.so"), 2);
  EXPECT_TRUE(err_has("failed with -1") && err_has("thrown by the pass")) << err();
  ASSERT_EQ(with("PASS_SCRIPT=fail", compile_ + "--pass lib/first.so --pass-policy rollback"), 0) << err();
  EXPECT_EQ(placement()["a"], 0);
  EXPECT_EQ(json()["warnings"].size(), 1u);
  ASSERT_EQ(with("PASS_SCRIPT=above", compile_ + "--pass lib/first.so"), 0) << err();
  EXPECT_EQ(placement()["a"], 0);
  EXPECT_NE(json()["warnings"][0].dump().find("AllocateNextStreamId"), std::string::npos);
  EXPECT_EQ(with("PASS_SCRIPT=above", compile_ + "--pass lib/first.so --pass-policy strict"), 2);
  EXPECT_EQ(run(compile_ + "--pass-policy never"), 2);
}

TEST_F(CliPasses, APassThatEndsTheProgramIsNoSuccess) {
  for (const char* script : {"exit", "thread"}) {
    EXPECT_EQ(with(std::string("PASS_SCRIPT=") + script, compile_ + "--pass lib/first.so -o p.plan"), 2) << script;
    EXPECT_TRUE(err_has("stream pass \"first\" of ") && err_has("lib/first.so\" ended the program: ")) << err();
    EXPECT_EQ(json()["error"]["code"], "E45") << script;
    EXPECT_FALSE(fs::exists(root_ / "p.plan"));
  }
  EXPECT_TRUE(err_has("thrown by a thread")) << err();
  EXPECT_EQ(with("PASS_SCRIPT=abort", compile_ + "--pass lib/first.so -o p.plan"), 128 + SIGABRT);
  EXPECT_TRUE(err_has("lib/first.so\" crashed the program")) << err();
  EXPECT_EQ(run("passes --list --pass lib/throws.so"), 2);
  EXPECT_TRUE(err_has("lib/throws.so\" ended the program: an exception that nobody caught: thrown at the start")) << err();
}

TEST_F(CliPasses, WhatAPassPrintsIsNoPartOfJson) {
  ASSERT_EQ(with("PASS_SCRIPT=print", compile_ + "--pass lib/first.so"), 0);
  EXPECT_TRUE(json().contains("placement"));
  EXPECT_TRUE(err_has("from the pass")) << err();
  ASSERT_EQ(with("PASS_SCRIPT=print", "compile model.mst --target npu --pass lib/first.so"), 0);
  EXPECT_TRUE(out_has("from the pass")) << out();
}

TEST_F(CliPasses, InSingleStreamModeNoPassIsCalled) {
  for (const char* single : {"--strategy single", "--set ge.enableSingleStream=true", "--set single_stream=true"}) {
    ASSERT_EQ(with("PASS_LOG=log PASS_SCRIPT=fail", compile_ + "--pass lib/first.so " + single), 0) << err();
    EXPECT_FALSE(fs::exists(root_ / "log"));
    EXPECT_NE(json()["warnings"].dump().find("stream passes do not run"), std::string::npos);
  }
}

TEST_F(CliPasses, VariablesSayWherePassesAre) {
  const auto install = [&](const std::string& opp, const char* name) {
    fs::create_directories(root_ / opp / "vendors/v/custom_fusion_passes");
    fs::copy_file(root_ / "lib" / (std::string(name) + ".so"), root_ / opp / "vendors/v/custom_fusion_passes" / (std::string(name) + ".so"));
  };
  install("one/opp", "first");
  install("two/opp", "second");
  const std::string at = root_.string();
  const auto passes = [&](const std::string& variables, const std::string& more = "") {
    EXPECT_EQ(with(variables, "passes --list --json " + more), 0) << err();
    std::string names;
    const Json all = json();
    for (const auto& p : all["passes"]) names += p["label"].get<std::string>() + " ";
    return names;
  };
  EXPECT_EQ(passes("ASCEND_PATH=" + at + "/one"), "first ");
  EXPECT_EQ(passes("ASCEND_OPP_PATH=" + at + "/two/opp ASCEND_PATH=" + at + "/one"), "second ");
  EXPECT_EQ(passes("MILLSTREAM_PASS_PATH=" + at + "/two:" + at + "/one ASCEND_OPP_PATH=" + at + "/x"), "second first ");
  EXPECT_EQ(passes("ASCEND_CUSTOM_OPP_PATH=" + at + "/two"), "");
  EXPECT_EQ(passes("MILLSTREAM_PASS_PATH=two"), "");
  EXPECT_NE(json()["warnings"].dump().find("write the whole path"), std::string::npos);
  EXPECT_EQ(passes("MILLSTREAM_DISABLE_PLUGINS=1 ASCEND_PATH=" + at + "/one"), "");
  EXPECT_EQ(passes("MILLSTREAM_DISABLE_PLUGINS=0 ASCEND_PATH=" + at + "/one"), "first ");
  EXPECT_EQ(passes("MILLSTREAM_PASS_ALLOW=/no.so ASCEND_PATH=" + at + "/one"), "");
  EXPECT_EQ(passes("ASCEND_PATH=" + at + "/one", "--pass lib/second.so"), "first second ");
  EXPECT_EQ(with("MILLSTREAM_PASS_ALLOW=no.so", "passes"), 2);
  EXPECT_EQ(with("MILLSTREAM_DISABLE_PLUGINS=1", compile_ + "--pass lib/first.so"), 2);
  // Listing runs no pass; a compilation runs those found in their order.
  EXPECT_EQ(with("PASS_LOG=log MILLSTREAM_PASS_PATH=" + at + "/two:" + at + "/one", "passes"), 0);
  EXPECT_FALSE(fs::exists(root_ / "log"));
  EXPECT_TRUE(out_has("2 stream passes, in the order they run"));
  EXPECT_EQ(with("PASS_LOG=log MILLSTREAM_PASS_PATH=" + at + "/two:" + at + "/one", compile_), 0) << err();
  EXPECT_EQ(text_of("log"), "second\nfirst\n");
}

TEST_F(CliPasses, ALibraryThatCannotBeLoadedIsSkippedWhenFoundAndAnErrorWhenNamed) {
  fs::create_directories(root_ / "opp/vendors/v/custom_fusion_passes");
  fs::copy_file(root_ / "lib/no_query.so", root_ / "opp/vendors/v/custom_fusion_passes/n.so");
  const std::string opp = "ASCEND_OPP_PATH=" + root_.string() + "/opp";
  ASSERT_EQ(with(opp, compile_), 0) << err();
  EXPECT_NE(json()["pass_libraries"][0]["error"].dump().find("exports no"), std::string::npos);
  EXPECT_EQ(json()["warnings"].size(), 1u);
  EXPECT_EQ(with(opp, compile_ + "--pass-policy strict"), 2);
  EXPECT_EQ(run(compile_ + "--pass lib/no_query.so"), 2);
  EXPECT_TRUE(err_has("exports no mst_plugin_query_v1"));
}

}  // namespace
}  // namespace millstream
