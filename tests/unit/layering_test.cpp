// SPDX-License-Identifier: Apache-2.0
// A folder under millstream/ includes only folders above it in the pipeline, and the library below the command
// line reads no environment variable.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace millstream {
namespace {

namespace fs = std::filesystem;

// The order of CMakeLists.txt and docs/design.md.
const std::vector<std::string> kOrder = {"core",   "graph", "profile", "ops", "import",  "target", "assign", "pass", "sync",
                                         "schedule", "dump", "memory", "trace", "report", "kernels", "runtime", "backend", "exec", "compile"};

std::size_t rank(const std::string& folder) {
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), folder) - kOrder.begin());
}

template <class Visit>
void for_each_line(Visit visit) {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(MST_SOURCE_DIR) / "millstream")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) visit(entry.path(), line);
  }
}

TEST(Layering, AFolderIncludesOnlyFoldersAboveIt) {
  std::size_t includes = 0;
  for_each_line([&](const fs::path& file, const std::string& line) {
    const std::string marker = "#include \"millstream/";
    if (line.rfind(marker, 0) != 0) return;
    const std::string rest = line.substr(marker.size());
    if (rest.find('/') == std::string::npos || file.filename() == "millstream.h") return;  // the public surface lists all
    const std::string to = rest.substr(0, rest.find('/'));
    const std::string from = fs::relative(file, fs::path(MST_SOURCE_DIR) / "millstream").begin()->string();
    ++includes;
    ASSERT_LT(rank(from), kOrder.size()) << "folder " << from << " has no place in the pipeline order";
    EXPECT_LE(rank(to), rank(from)) << file.string() << " includes " << rest;
  });
  EXPECT_GT(includes, 50u);
}

TEST(Layering, TheLibraryReadsNoEnvironmentVariable) {
  std::size_t lines = 0;
  for_each_line([&](const fs::path& file, const std::string& line) {
    ++lines;
    EXPECT_EQ(line.find("getenv("), std::string::npos) << file.string() << ": " << line;
  });
  EXPECT_GT(lines, 1000u);
}

}  // namespace
}  // namespace millstream
