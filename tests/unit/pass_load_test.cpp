// SPDX-License-Identifier: Apache-2.0
// Finding, checking and loading libraries with stream passes.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "millstream/pass/load.h"
#include "millstream/pass/sha256.h"

namespace millstream {
namespace {

namespace fs = std::filesystem;

class PassLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("millstream_pass_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string plugin(const std::string& name) { return std::string(MST_PASS_PLUGINS) + "/" + name + ".so"; }
  /// A copy of a plug-in, with the usual permissions.
  std::string put(const std::string& name, const fs::path& to) const {
    fs::create_directories((root_ / to).parent_path());
    fs::remove(root_ / to);  // a file that is loaded must not be written
    fs::copy_file(plugin(name), root_ / to);
    ::chmod((root_ / to).c_str(), 0644);
    return (root_ / to).string();
  }
  std::string write(const std::string& text, const fs::path& to) const {
    fs::create_directories((root_ / to).parent_path());
    std::ofstream(root_ / to, std::ios::binary) << text;
    return (root_ / to).string();
  }
  PassSources found() const {
    PassSources sources;
    sources.folders = {root_.string()};
    return sources;
  }
  static std::vector<std::string> names(const LoadedPasses& loaded) {
    std::vector<std::string> out;
    for (const StreamPass& p : loaded.passes) out.push_back(p.label);
    return out;
  }
  static std::string all(const std::vector<Error>& warnings) {
    std::string out;
    for (const Error& w : warnings) out += to_string(w, "warning") + "\n";
    return out;
  }
  /// The error of loading one named library.
  static std::string refusal(const std::string& path, PassSources sources = {}) {
    sources.named = {path};
    const auto loaded = load_passes(sources);
    return loaded.ok() ? "loaded" : to_string(loaded.error());
  }
  fs::path root_;
};

using Names = std::vector<std::string>;
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(PassLoad, VendorsThenFilesInTheOrderOfTheirBytes) {
  put("second", "vendors/a/custom_fusion_passes/z.so");
  put("first", "vendors/b/custom_fusion_passes/a.so");
  put("unfit", "vendors/B/custom_fusion_passes/m.so");  // capitals stand before small letters
  const auto loaded = load_passes(found());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(names(*loaded), (Names{"good", "good_2", "second", "first"}));
}

TEST_F(PassLoad, OnlyFilesThatEndInSoOneLevelDeepAreTaken) {
  put("first", "vendors/v/custom_fusion_passes/x.so");
  put("second", "vendors/v/custom_fusion_passes/x.so.bak");
  put("second", "vendors/v/custom_fusion_passes/libx.so.1");
  put("second", "vendors/v/custom_fusion_passes/sub/y.so");
  put("second", "vendors/v/deep/custom_fusion_passes/y.so");
  put("second", "vendors/v/y.so");
  fs::create_directories(root_ / "vendors/v/custom_fusion_passes/folder.so");
  const auto loaded = load_passes(found());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(names(*loaded), (Names{"first"}));
  ASSERT_EQ(loaded->warnings.size(), 1u) << all(loaded->warnings);
  EXPECT_SAYS(all(loaded->warnings), "\"folder.so\", \"sub\"");
}

TEST_F(PassLoad, WhatIsNotThereIsNothingToSay) {
  PassSources sources = found();
  EXPECT_TRUE(load_passes(sources)->warnings.empty());
  fs::create_directories(root_ / "vendors/v");
  EXPECT_TRUE(load_passes(sources)->warnings.empty());
}

TEST_F(PassLoad, LinksAreFollowedAndOneThatLeadsNowhereIsSaid) {
  put("first", "real/first.so");
  fs::create_directories(root_ / "vendors/v/custom_fusion_passes");
  fs::create_symlink(root_ / "real/first.so", root_ / "vendors/v/custom_fusion_passes/a.so");
  fs::create_symlink(root_ / "nothing.so", root_ / "vendors/v/custom_fusion_passes/b.so");
  const auto loaded = load_passes(found());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(names(*loaded), (Names{"first"}));
  EXPECT_SAYS(all(loaded->warnings), "b.so\" is a link that leads nowhere");
  EXPECT_SAYS(all(loaded->warnings), "it is skipped");
  ASSERT_EQ(loaded->libraries.size(), 2u);
  EXPECT_TRUE(loaded->libraries[1].error.has_value());
  PassSources strict = found();
  strict.strict = true;
  EXPECT_FALSE(load_passes(strict).ok());
}

TEST_F(PassLoad, TwoLibrariesDoNotSeeEachOthersPasses) {
  put("first", "vendors/v/custom_fusion_passes/a.so");
  put("second", "vendors/v/custom_fusion_passes/b.so");
  const auto loaded = load_passes(found());
  ASSERT_TRUE(loaded.ok());
  ASSERT_EQ(loaded->libraries.size(), 2u);
  EXPECT_EQ(loaded->libraries[0].passes, (Names{"first"}));
  EXPECT_EQ(loaded->libraries[1].passes, (Names{"second"}));
}

TEST_F(PassLoad, OneFileUnderTwoNamesIsLoadedOnce) {
  const std::string a = put("first", "vendors/v/custom_fusion_passes/a.so");
  fs::create_hard_link(a, root_ / "vendors/v/custom_fusion_passes/b.so");
  const auto loaded = load_passes(found());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(names(*loaded), (Names{"first"}));
  EXPECT_SAYS(all(loaded->warnings), "is the same file as");
}

TEST_F(PassLoad, AFileUnderAnOldNameIsTheNewFile) {
  put("first", "x.so");
  PassSources sources;
  sources.named = {(root_ / "x.so").string()};
  EXPECT_EQ(names(*load_passes(sources)), (Names{"first"}));
  fs::remove(root_ / "x.so");
  put("second", "x.so");
  EXPECT_EQ(names(*load_passes(sources)), (Names{"second"}));
}

TEST_F(PassLoad, TwoPassesOfOneNameBothStayUnderTwoLabels) {
  put("first", "vendors/v/custom_fusion_passes/a.so");
  put("first", "vendors/v/custom_fusion_passes/b.so");  // another file with the same bytes
  const auto loaded = load_passes(found());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(names(*loaded), (Names{"first", "first_2"}));
  EXPECT_EQ(loaded->passes[1].name, "first");
  EXPECT_SAYS(all(loaded->warnings), "both run, this one as \"first_2\"");
}

TEST_F(PassLoad, RegistrationsThatCannotRunAreSaid) {
  PassSources sources;
  sources.named = {put("unfit", "u.so")};
  const auto loaded = load_passes(sources);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(names(*loaded), (Names{"good", "good_2"}));
  const std::string said = all(loaded->warnings);
  EXPECT_SAYS(said, "\"empty\", which has no function");
  EXPECT_SAYS(said, "\"edits\", which edits the graph: millstream runs stream passes only");
  EXPECT_SAYS(said, "\"edits late\", which edits the graph, at a stage that takes stream passes only");
  EXPECT_SAYS(said, "\"early\", a stream pass at stage 0");
  EXPECT_SAYS(said, "\"two?lines\", which edits the graph");
}

TEST_F(PassLoad, WhatIsNoLibraryForThisMachineIsRefused) {
  EXPECT_SAYS(refusal((root_ / "absent.so").string()), "cannot be found");
  fs::create_directories(root_ / "folder.so");
  EXPECT_SAYS(refusal((root_ / "folder.so").string()), "is no regular file");
  ASSERT_EQ(::mkfifo((root_ / "pipe.so").c_str(), 0600), 0);
  EXPECT_SAYS(refusal((root_ / "pipe.so").string()), "is no regular file");
  EXPECT_SAYS(refusal(write("", "empty.so")), "is no shared library");
  EXPECT_SAYS(refusal(write("#!/bin/sh\necho no library at all\n", "script.so")), "is no shared library");
  EXPECT_SAYS(refusal(write(std::string("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0", 16), "cut.so")), "is");
  std::ifstream in(plugin("first"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto with = [&](std::size_t at, char value) {
    std::string changed = bytes;
    changed[at] = value;
    return write(changed, "changed.so");
  };
  EXPECT_SAYS(refusal(with(4, 1)), "is for another machine");          // 32 bits
  EXPECT_SAYS(refusal(with(18, static_cast<char>(0xF3))), "is for another machine");
  EXPECT_SAYS(refusal(with(16, 2)), "is no shared library but an ELF file of type 2");
  EXPECT_SAYS(refusal(write(bytes.substr(0, 2000), "cut_short.so")), "is cut short");
}

TEST_F(PassLoad, LibrariesOfOtherInterfacesAreRefusedWithTheRemedy) {
  EXPECT_SAYS(refusal(put("no_query", "n.so")), "exports no mst_plugin_query_v1");
  EXPECT_SAYS(refusal(put("no_query", "n.so")), "build again");
  EXPECT_SAYS(refusal(put("other_version", "o.so")), "speaks version 2.0 of the interface, this program 1.0");
  const std::string unresolved = refusal(put("unresolved", "r.so"));
  EXPECT_SAYS(unresolved, "cannot be loaded: undefined symbol: no_such_function");
  EXPECT_EQ(unresolved.find("/proc/"), std::string::npos);
}

TEST_F(PassLoad, WhatEveryoneMayWriteIsRefused) {
  const std::string path = put("first", "open/x.so");
  ::chmod(path.c_str(), 0646);
  EXPECT_SAYS(refusal(path), "can be written by everyone");
  ::chmod(path.c_str(), 0644);
  ::chmod((root_ / "open").c_str(), 0777);
  EXPECT_SAYS(refusal(path), "where everyone may write");
  // The folder of a link, and the folder of what it leads to.
  fs::create_directories(root_ / "closed");
  fs::create_symlink(path, root_ / "closed/link.so");
  EXPECT_SAYS(refusal((root_ / "closed/link.so").string()), "where everyone may write");
  const std::string safe = put("first", "closed/y.so");
  fs::create_symlink(safe, root_ / "open/link.so");
  EXPECT_SAYS(refusal((root_ / "open/link.so").string()), "where everyone may write");
  EXPECT_EQ(refusal(safe), "loaded");
  // Folders on the way to it.
  for (const char* folder : {"vendors", "vendors/v", "vendors/v/custom_fusion_passes"}) {
    put("first", "vendors/v/custom_fusion_passes/x.so");
    ::chmod((root_ / folder).c_str(), 0777);
    const auto loaded = load_passes(found());
    ASSERT_TRUE(loaded.ok());
    EXPECT_TRUE(loaded->passes.empty()) << folder;
    EXPECT_SAYS(all(loaded->warnings), "everyone may write");
    ::chmod((root_ / folder).c_str(), 0755);
  }
}

TEST_F(PassLoad, WhatOthersMayChangeWarnsAndStrictRefuses) {
  const std::string path = put("first", "x.so");
  ::chmod(path.c_str(), 0664);
  PassSources sources;
  sources.named = {path};
  const auto loaded = load_passes(sources);
  ASSERT_TRUE(loaded.ok());
  EXPECT_SAYS(all(loaded->warnings), "can be written by its group");
  sources.strict = true;
  EXPECT_FALSE(load_passes(sources).ok());
  ::chmod(path.c_str(), 0644);
  EXPECT_TRUE(load_passes(sources).ok());
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_SAYS(refusal(path, sources), "belongs to user 12345");
}

TEST_F(PassLoad, AFileThatCannotBeReadIsSaidAndTheExecuteBitIsNotNeeded) {
  const std::string path = put("first", "x.so");
  ::chmod(path.c_str(), 0444);
  EXPECT_EQ(refusal(path), "loaded");
  ::chmod(path.c_str(), 0);
  if (::geteuid() == 0 && ::seteuid(65534) != 0) GTEST_SKIP() << "root reads everything";
  const std::string said = refusal(path);
  EXPECT_EQ(::seteuid(::getuid()), 0);
  EXPECT_SAYS(said, "cannot be read: Permission denied");
}

TEST_F(PassLoad, NumberAndSizeAreLimited) {
  const std::string a = put("first", "vendors/v/custom_fusion_passes/a.so");
  const std::string b = put("second", "vendors/v/custom_fusion_passes/b.so");
  PassSources sources = found();
  sources.max_libraries = 1;
  auto loaded = load_passes(sources);
  EXPECT_EQ(names(*loaded), (Names{"first"}));
  EXPECT_SAYS(all(loaded->warnings), "one too many: at most 1");
  sources = found();
  sources.rules.max_bytes = std::min(fs::file_size(a), fs::file_size(b)) - 1;
  loaded = load_passes(sources);
  EXPECT_TRUE(loaded->passes.empty());
  EXPECT_SAYS(all(loaded->warnings), "allowed are");
  sources = found();
  sources.max_total_bytes = fs::file_size(a) + fs::file_size(b) - 1;
  loaded = load_passes(sources);
  EXPECT_EQ(names(*loaded), (Names{"first"}));
  EXPECT_SAYS(all(loaded->warnings), "with those before it");
  const PassSources defaults;
  EXPECT_EQ(defaults.max_libraries, 64u);
  EXPECT_EQ(defaults.rules.max_bytes, 209'100'800u);
  EXPECT_EQ(defaults.max_total_bytes, 522'752'000u);
}

TEST_F(PassLoad, AListSaysWhichLibrariesMayBeLoaded) {
  const std::string path = put("first", "x.so");
  PassSources sources;
  sources.rules.allowed = std::vector<std::string>{"/another.so"};
  const std::string said = refusal(path, sources);
  EXPECT_SAYS(said, "is not on the list");
  sources.rules.allowed = std::vector<std::string>{path};
  EXPECT_EQ(refusal(path, sources), "loaded");
  std::ifstream in(path, std::ios::binary);
  const std::string sum = sha256(std::string((std::istreambuf_iterator<char>(in)), {}));
  EXPECT_SAYS(said, sum);
  sources.rules.allowed = std::vector<std::string>{sum};
  EXPECT_EQ(refusal(path, sources), "loaded");
}

TEST_F(PassLoad, SwitchedOffOrPrivilegedNothingIsLoaded) {
  put("first", "vendors/v/custom_fusion_passes/a.so");
  for (bool PassSources::*off : {&PassSources::switched_off, &PassSources::privileged}) {
    PassSources sources = found();
    sources.*off = true;
    const auto loaded = load_passes(sources);
    ASSERT_TRUE(loaded.ok());
    EXPECT_TRUE(loaded->libraries.empty());
    EXPECT_SAYS(refusal(plugin("first"), sources), "is not loaded");
  }
}

TEST(Sha256, KnownSums) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace millstream
