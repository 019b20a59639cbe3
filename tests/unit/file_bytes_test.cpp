// SPDX-License-Identifier: Apache-2.0
// Reading and writing whole files: what stands at the place before stays safe.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "millstream/import/file_bytes.h"

namespace millstream {
namespace {

namespace fs = std::filesystem;

class FileBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("millstream_file_bytes_" + std::to_string(::getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  std::string text_of(const std::string& name) const {
    std::ifstream in(at(name));
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }
  fs::path root_;
};

TEST_F(FileBytes, ASymbolicLinkStaysAndItsFileIsReplaced) {
  std::ofstream(at("real")) << "old";
  fs::create_symlink("real", at("link"));
  ASSERT_TRUE(write_bytes(at("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(text_of("real"), "new");
  fs::create_symlink("made", at("dangling"));
  ASSERT_TRUE(write_bytes(at("dangling"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(at("dangling")));
  EXPECT_EQ(text_of("made"), "new");
}

TEST_F(FileBytes, PermissionsStay) {
  std::ofstream(at("private")) << "old";
  ASSERT_EQ(::chmod(at("private").c_str(), 0600), 0);
  ASSERT_TRUE(write_bytes(at("private"), "new").ok());
  struct stat now {};
  ASSERT_EQ(::stat(at("private").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0600u);
  EXPECT_EQ(text_of("private"), "new");
}

TEST_F(FileBytes, APipeIsWrittenToAndStaysAPipe) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = text_of("pipe"); });
  const bool written = write_bytes(at("pipe"), "through").ok();
  reader.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(FileBytes, ASomebodysFileOfATemporaryNameIsNotTouched) {
  const std::string theirs = "out." + std::to_string(::getpid()) + ".0.tmp";
  std::ofstream(at(theirs)) << "theirs";
  std::ofstream(at("out.part")) << "theirs too";
  ASSERT_TRUE(write_bytes(at("out"), "ours").ok());
  EXPECT_EQ(text_of(theirs), "theirs");
  EXPECT_EQ(text_of("out.part"), "theirs too");
  EXPECT_EQ(text_of("out"), "ours");
  EXPECT_EQ(files(), 3u);
}

TEST_F(FileBytes, AFailedWriteLeavesTheOldFileAndNothingElse) {
  fs::create_directories(at("folder"));
  EXPECT_EQ(write_bytes(at("folder"), "x").error().code, ErrorCode::io);
  EXPECT_EQ(write_bytes(at("missing/x"), "x").error().code, ErrorCode::io);
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileBytes, ConcurrentWritersLeaveOneWholeFile) {
  const std::string a(100000, 'a'), b(100000, 'b');
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_bytes(at("both"), a).ok());
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_bytes(at("both"), b).ok());
  other.join();
  const std::string got = text_of("both");
  EXPECT_TRUE(got == a || got == b);
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileBytes, WhatIsNoRegularFileIsNotRead) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_bytes(at("pipe")).error().code, ErrorCode::io);  // and does not wait for a writer
  EXPECT_EQ(read_bytes(root_.string()).error().code, ErrorCode::io);
  EXPECT_EQ(read_bytes("/dev/zero").error().code, ErrorCode::io);
  EXPECT_EQ(read_bytes(at("missing")).error().code, ErrorCode::io);
}

TEST_F(FileBytes, AByteOrderMarkIsNoPartOfTheText) {
  std::ofstream(at("bom")) << "\xef\xbb\xbfgraph";
  EXPECT_EQ(*read_text(at("bom")), "graph");
  EXPECT_EQ(read_bytes(at("bom"))->size(), 8u);
}

TEST_F(FileBytes, TextInUtf16IsRefusedByItsName) {
  for (const std::string mark : {"\xff\xfe", "\xfe\xff"}) {
    std::ofstream(at("wide")) << mark << std::string("g\0r\0", 4);
    ASSERT_FALSE(read_text(at("wide")).ok());
    EXPECT_NE(to_string(read_text(at("wide")).error()).find("it is text in UTF-16"), std::string::npos);
    EXPECT_TRUE(read_bytes(at("wide")).ok());
  }
}

TEST_F(FileBytes, SameFileSeesThroughLinksAndPaths) {
  std::ofstream(at("x")) << "x";
  std::ofstream(at("y")) << "x";
  fs::create_symlink("x", at("l"));
  fs::create_hard_link(at("x"), at("h"));
  EXPECT_TRUE(same_file(at("x"), at("./x")));
  EXPECT_TRUE(same_file(at("x"), at("l")));
  EXPECT_TRUE(same_file(at("x"), at("h")));
  EXPECT_FALSE(same_file(at("x"), at("y")));
  EXPECT_FALSE(same_file(at("x"), at("missing")));
}

}  // namespace
}  // namespace millstream
