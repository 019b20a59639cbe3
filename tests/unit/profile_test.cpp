// SPDX-License-Identifier: Apache-2.0
// Profiles: the samples in tests/profile, exact times, and names that are taken apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "millstream/graph/text.h"
#include "millstream/profile/join.h"

namespace millstream {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Beside each sample stands what is read from it, or the error. MST_REWRITE=1 writes it anew, for a human to read.
TEST(Profile, EachSampleIsReadAsWhatStandsBesideIt) {
  std::vector<fs::path> samples;
  for (const auto& entry : fs::directory_iterator(fs::path(MST_SOURCE_DIR) / "tests/profile")) {
    if (entry.path().extension() != ".records") samples.push_back(entry.path());
  }
  std::sort(samples.begin(), samples.end());
  ASSERT_GT(samples.size(), 15u);
  for (const fs::path& sample : samples) {
    const auto records = read_records(text_of(sample), sample.filename().string());
    const std::string got = records.ok() ? print(*records) : to_string(records.error()) + "\n";
    if (std::getenv("MST_REWRITE") != nullptr) std::ofstream(sample.string() + ".records", std::ios::binary) << got;
    EXPECT_EQ(got, text_of(sample.string() + ".records")) << sample;
  }
}

TEST(Profile, TimesKeepTheirLastDigit) {
  EXPECT_EQ(parse_ns("1736408883704643.212", 3), 1736408883704643212);
  EXPECT_EQ(parse_ns("6.54", 3), 6540);
  EXPECT_EQ(parse_ns("10214358740412", 0), 10214358740412);
  EXPECT_EQ(parse_ns("0", 3), 0);
  EXPECT_EQ(parse_ns("0.0004", 3), 0);
  EXPECT_EQ(parse_ns("0.0005", 3), 1);
  EXPECT_EQ(parse_ns("1.2e3", 3), 1200000);
  EXPECT_EQ(parse_ns("15e-4", 3), 2);
  EXPECT_EQ(parse_ns("7.5", 0), 8);
}

TEST(Profile, WhatIsNoTimeIsRefused) {
  for (const char* text : {"", ".", "-1", "+1", "1.2.3", "x", "1e", "1e-", "nan", "inf", "0x10", "1 2", "9223372036854775807", "1e99", "1e1000000"}) {
    EXPECT_FALSE(parse_ns(text, 3)) << text;
  }
}

Graph chain() {
  return *parse_graph(
      "graph\n  input x : f32[4]\n  conv = Relu(x)\n  bias = Relu(conv)\n  relu = Relu(bias)\n  \"scope/poolrelu_2\" = Relu(relu)\n"
      "  out = Relu(\"scope/poolrelu_2\")\n  output out\n",
      "t.mst");
}

ProfileRecord record(std::string name, std::int64_t ns) {
  ProfileRecord r;
  r.op_name = std::move(name);
  r.dur_ns = ns;
  return r;
}

double us(const Graph& graph, const Joined& joined, std::string_view name) { return joined.duration_us[*graph.find_node(name)].value_or(-1); }

TEST(Profile, ANodeTakesTheMedianOfItsRuns) {
  const Graph graph = chain();
  const Joined joined = join(graph, {record("conv", 3000), record("conv", 100000), record("conv", 4000), record("out", 1000), record("out", 2000)});
  EXPECT_EQ(us(graph, joined, "conv"), 4);
  EXPECT_EQ(us(graph, joined, "out"), 1.5);
  EXPECT_EQ(us(graph, joined, "relu"), -1);
  EXPECT_EQ(joined.nodes, 2u);
  EXPECT_EQ(joined.records, 5u);
}

TEST(Profile, TheNodesOfAFusedOperatorShareItsTime) {
  const Graph graph = chain();
  for (const char* name : {"convbiasrelu", "conv_bias_relu", "conv/bias+relu"}) {
    const Joined joined = join(graph, {record(name, 6000)});
    EXPECT_EQ(us(graph, joined, "conv"), 2) << name;
    EXPECT_EQ(us(graph, joined, "bias"), 2) << name;
    EXPECT_EQ(us(graph, joined, "relu"), 2) << name;
    EXPECT_EQ(joined.nodes, 3u);
  }
}

TEST(Profile, AFusedNodeTakesAsLongAsItsParts) {
  const Graph graph = chain();
  const Joined joined = join(graph, {record("scope/pool", 5000), record("relu_2", 1000)});
  EXPECT_EQ(us(graph, joined, "scope/poolrelu_2"), 6);
  EXPECT_EQ(joined.records, 2u);
}

TEST(Profile, OnlyPartOfANameIsNoMatch) {
  const Graph graph = chain();
  const Joined joined = join(graph, {record("convbiasX", 6000), record("con", 1), record("convbias__relu", 1), record("", 7), record("conv_", 1)});
  EXPECT_EQ(joined.nodes, 0u);
  EXPECT_EQ(joined.records, 0u);
  EXPECT_EQ(joined.named_records, 4u);
}

TEST(Profile, TheLineSaysHowMuchBelongsToNodes) {
  const Graph graph = chain();
  EXPECT_EQ(to_string(join(graph, {record("conv", 9000), record("gone", 1000), record("", 5000)}), graph),
            "profile: 1 of 5 nodes measured, not \"bias\", \"relu\", \"scope/poolrelu_2\" and 1 more; 1 of 2 records, 90.0 % of their 10.000 us, belong to nodes");
  EXPECT_EQ(to_string(join(graph, {}), graph), "profile: 0 of 5 nodes measured; 0 of 0 records, 0.0 % of their 0.000 us, belong to nodes");
}

TEST(Profile, LongNamesAreTakenApartQuickly) {
  std::string text = "graph\n  input x : f32[4]\n";
  std::string last = "x", fused;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "\"model/encoder/layer/" + std::to_string(i) + "\"";
    text += "  " + name + " = Relu(" + last + ")\n";
    last = name;
  }
  const Graph graph = *parse_graph(text + "  output " + last + "\n", "t.mst");
  for (int i = 100; i < 200; ++i) fused += "model/encoder/layer/" + std::to_string(i);
  const Joined joined = join(graph, std::vector<ProfileRecord>(200, record(fused, 1000)));
  EXPECT_EQ(joined.nodes, 100u);
}

}  // namespace
}  // namespace millstream
