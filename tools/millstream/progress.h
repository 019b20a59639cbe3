// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr for work that takes longer than a second; silent when stderr is no terminal.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace millstream::cli {

class Progress {
 public:
  Progress(std::string what, std::uint64_t total) : what_(std::move(what)), total_(total), shown_(false) {}
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance() {
    ++done_;
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now - start_ < std::chrono::seconds(1) || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    constexpr std::uint64_t kWidth = 30;
    const std::uint64_t filled = total_ == 0 ? 0 : kWidth * done_ / total_;
    std::fprintf(stderr, "\r\033[K%s [%s%s] %llu/%llu", what_.c_str(), std::string(filled, '#').c_str(),
                 std::string(kWidth - filled, '.').c_str(), static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(total_));
    std::fflush(stderr);
  }

 private:
  std::string what_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool shown_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

}  // namespace millstream::cli
