// SPDX-License-Identifier: Apache-2.0
// How much memory a test's process has used, for bounds on what reads damaged files.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace millstream::testing {

// Sanitizers keep freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryCounts = false;
#else
inline constexpr bool kMemoryCounts = true;
#endif

/// The most that the process has held so far.
inline std::uint64_t high_water_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

/// What reading a file of that size may take.
inline std::uint64_t allowed_kb(std::size_t file_bytes) { return (64u << 10) + 4 * file_bytes / 1024; }

}  // namespace millstream::testing
