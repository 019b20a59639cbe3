// SPDX-License-Identifier: Apache-2.0
// Profiles with bytes changed, cut out, doubled or moved: each is read or refused with a place, nothing crashes, and none takes
// more memory than 64 MiB and 4 x the file. MST_PROPERTY_COUNT says how many for each format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "millstream/graph/text.h"
#include "millstream/profile/join.h"
#include "tests/memory_use.h"
#include "tests/random_graph.h"

namespace millstream {
namespace {

namespace fs = std::filesystem;

// The samples whose names begin so.
std::vector<std::string> samples(const std::vector<std::string>& begins) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(MST_SOURCE_DIR) / "tests/profile")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".records") continue;
    for (const std::string& begin : begins) {
      if (name.rfind(begin, 0) == 0) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    out.push_back(text.str());
  }
  return out;
}

std::string mutated(std::string text, std::mt19937& random) {
  constexpr std::string_view kBytes = "\",\n\r\t{}[]:\\0129.eE-+uN/A \x00\xff";
  for (std::uint32_t change = 1 + random() % 4; change-- > 0 && !text.empty();) {
    const std::size_t at = random() % text.size(), length = 1 + random() % 20;
    switch (random() % 5) {
      case 0: text[at] = kBytes[random() % kBytes.size()]; break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(random() % text.size(), length)); break;
      case 3: text.insert(at, 1, kBytes[random() % kBytes.size()]); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

void damage(const std::vector<std::string>& begins) {
  const std::vector<std::string> texts = samples(begins);
  ASSERT_FALSE(texts.empty());
  const char* seed_text = std::getenv("MST_SEED");
  const auto seed = static_cast<std::uint32_t>(seed_text != nullptr ? std::strtoul(seed_text, nullptr, 10) : 1);
  std::mt19937 random(seed);
  const Graph graph = *parse_graph("graph\n  input x : f32[4]\n  Abs_1 = Relu(x)\n  conv1 = Relu(Abs_1)\n  Relu = Relu(conv1)\n  output Relu\n", "t.mst");
  std::size_t read = 0, refused = 0, longest = 0;
  const std::uint64_t before = testing::high_water_kb(), count = testing::property_count(600);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string text = mutated(texts[i % texts.size()], random);
    longest = std::max(longest, text.size());
    const auto records = read_records(text, "m.csv");
    if (!records.ok()) {
      ++refused;
      EXPECT_TRUE(records.error().where.has_value()) << "seed " << seed << ", file " << i << ": " << to_string(records.error());
      EXPECT_NE(records.error().code, ErrorCode::internal) << "seed " << seed << ", file " << i;
      continue;
    }
    ++read;
    join(graph, *records);
    print(*records);
  }
  EXPECT_GT(read, count / 20);
  EXPECT_GT(refused, count / 20);
  if (testing::kMemoryCounts) {
    EXPECT_LE(testing::high_water_kb() - before, testing::allowed_kb(longest));
  }
}

TEST(ProfileMutation, ADamagedOpSummaryIsReadOrRefusedWithAPlace) { damage({"op_summary"}); }

TEST(ProfileMutation, ADamagedTaskTimeIsReadOrRefusedWithAPlace) { damage({"task_time_2"}); }

TEST(ProfileMutation, DamagedKernelDetailsAreReadOrRefusedWithAPlace) { damage({"kernel_details"}); }

TEST(ProfileMutation, ADamagedTraceIsReadOrRefusedWithAPlace) { damage({"msprof", "trace_view", "own_run"}); }

}  // namespace
}  // namespace millstream
