// SPDX-License-Identifier: Apache-2.0
// Reading stays within 64 MiB + 8 x the file, measured as the growth of the process's peak.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/onnx_build.h"

namespace millstream::test {
namespace {

namespace fs = std::filesystem;

void put_varint(std::string& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out += static_cast<char>((v & 0x7f) | 0x80);
  out += static_cast<char>(v);
}
std::string field(std::uint32_t number, const std::string& bytes) {
  std::string out;
  put_varint(out, number << 3 | 2);
  put_varint(out, bytes.size());
  return out + bytes;
}

struct Outcome {
  int status = -1;           ///< 0 imported, 1 refused
  std::uint64_t bytes = 0;   ///< peak of the child beyond what it started with
};

// In a child, so that each has a peak of its own.
Outcome import_in_child(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const bool ok = import_graph(path, {}).ok();
    getrusage(RUSAGE_SELF, &after);
    const std::uint64_t grown = static_cast<std::uint64_t>(after.ru_maxrss - before.ru_maxrss) * 1024;
    const bool told = write(ends[1], &grown, sizeof grown) == static_cast<ssize_t>(sizeof grown);
    _exit(!told ? 2 : ok ? 0 : 1);
  }
  Outcome out;
  close(ends[1]);
  int status = 0;
  const bool heard = read(ends[0], &out.bytes, sizeof out.bytes) == static_cast<ssize_t>(sizeof out.bytes);
  close(ends[0]);
  waitpid(child, &status, 0);
  if (heard && WIFEXITED(status)) out.status = WEXITSTATUS(status);
  return out;
}

class ImportMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's own memory would be measured";
#endif
    path_ = (fs::temp_directory_path() / ("millstream_memory_" + std::to_string(getpid()) + ".onnx")).string();
  }
  void TearDown() override {
    if (!path_.empty()) fs::remove(path_);
  }
  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void expect_within_bound(int status) const {
    const Outcome out = import_in_child(path_);
    EXPECT_EQ(out.status, status);
    EXPECT_LE(out.bytes, (std::uint64_t{64} << 20) + 8 * fs::file_size(path_));
  }
  // A model around graph fields that stand ready as bytes.
  static std::string around(const std::string& nodes, const std::string& last) {
    auto m = model();
    input(m.mutable_graph(), "v0", {"4"});
    output(m.mutable_graph(), last);
    const std::string graph = m.graph().SerializeAsString() + nodes;
    m.clear_graph();
    return m.SerializeAsString() + field(7, graph);
  }
  std::string path_;
};

TEST_F(ImportMemory, OfManySmallNodes) {
  std::string nodes;
  constexpr int kNodes = 200'000;
  for (int i = 0; i < kNodes; ++i) {
    nodes += field(1, field(1, "v" + std::to_string(i)) + field(2, "v" + std::to_string(i + 1)) + field(4, "Relu"));
  }
  put(around(nodes, "v" + std::to_string(kNodes)));
  expect_within_bound(0);
}

TEST_F(ImportMemory, OfOneLargeWeight) {
  auto m = model();
  floats(m.mutable_graph()->add_initializer(), "w", {1 << 24}, std::vector<float>(1 << 24, 1.0f));
  put(around(m.graph().SerializeAsString() + field(1, field(1, "v0") + field(2, "y") + field(4, "Relu")), "y"));
  expect_within_bound(0);
}

TEST_F(ImportMemory, OfNodesThatAreEmpty) {
  std::string nodes;
  for (int i = 0; i < 4'000'000; ++i) nodes += std::string("\x0a\x00", 2);
  put(around(nodes, "v0"));
  expect_within_bound(1);
}

TEST_F(ImportMemory, OfAttributesOfManyNumbers) {
  const std::string attribute = field(1, "note") + field(8, std::string(1'000'000, '\x01'));
  std::string nodes;
  for (int i = 0; i < 16; ++i) {
    nodes += field(1, field(1, "v" + std::to_string(i)) + field(2, "v" + std::to_string(i + 1)) + field(4, "Relu") + field(5, attribute));
  }
  put(around(nodes, "v16"));
  expect_within_bound(0);
  const std::string longer = field(1, "note") + field(8, std::string(16'000'000, '\x01'));
  put(around(field(1, field(1, "v0") + field(2, "y") + field(4, "Relu") + field(5, longer)), "y"));
  expect_within_bound(1);
}

}  // namespace
}  // namespace millstream::test
