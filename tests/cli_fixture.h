// SPDX-License-Identifier: Apache-2.0
// Runs the command line in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace millstream {

namespace fs = std::filesystem;

inline constexpr const char* kTwo =
    "graph\n  input x : f32[1,N]\n  a = Sigmoid(x)\n  b = Tanh(x)\n  out = Add(a, b)\n  output out\n";

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("millstream_cli_" + std::to_string(::getpid()));
    fs::create_directories(root_);
    put("two.mst", kTwo);
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& text) const { std::ofstream(root_ / name, std::ios::binary) << text; }
  std::string text_of(const std::string& name) const {
    std::ifstream in(root_ / name, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  /// Exit status of `millstream ARGUMENTS` in the test's folder; 128 + n after signal n, 124 after ten seconds.
  /// Output lies in files "out" and "err" unless the arguments redirect it.
  int run(const std::string& arguments, const std::string& before = "timeout 10 ") {
    const std::string command = "cd '" + root_.string() + "' && { " + before + MST_CLI + " " + arguments + " ; } >out 2>err </dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string err() const { return text_of("err"); }
  std::string out() const { return text_of("out"); }
  bool err_has(const std::string& text) const { return err().find(text) != std::string::npos; }
  bool out_has(const std::string& text) const { return out().find(text) != std::string::npos; }

  fs::path root_;
};

}  // namespace millstream
