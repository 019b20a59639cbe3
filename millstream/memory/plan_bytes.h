// SPDX-License-Identifier: Apache-2.0
// A plan as bytes: docs/plan-file.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/memory/memory_plan.h"

namespace millstream {

inline constexpr std::string_view kPlanMagic{"MSTPLAN\0", 8};
inline constexpr std::uint32_t kPlanVersion = 4;

std::string plan_bytes(const Plan& plan);
/// Trusts nothing: every count is bounded by the bytes that are left, every id by the table it points into. `file`
/// is for messages. Errors: bad_model.
Result<Plan> parse_plan(std::string_view bytes, const std::string& file);
/// 64-bit FNV-1a, the file's last eight bytes.
std::uint64_t plan_checksum(std::string_view bytes);

/// Appends: fixed little-endian numbers, LEB128 numbers, texts with their length.
class PlanWriter {
 public:
  void u32(std::uint32_t n) { fixed(n, 4); }
  void u64(std::uint64_t n) { fixed(n, 8); }
  void number(std::uint64_t n);
  void signed_number(std::int64_t n);
  void real(double x);
  void text(std::string_view s);
  void raw(std::string_view s) { bytes_ += s; }
  const std::string& bytes() const { return bytes_; }

 private:
  void fixed(std::uint64_t n, int bytes);
  std::string bytes_;
};

/// Reads what PlanWriter wrote. After the first failure everything reads as 0 and `failed` says why.
class PlanReader {
 public:
  explicit PlanReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint32_t u32() { return static_cast<std::uint32_t>(fixed(4)); }
  std::uint64_t u64() { return fixed(8); }
  std::uint64_t number();
  std::int64_t signed_number();
  double real();
  std::string text();
  /// A number below `limit`.
  std::uint32_t index(std::uint64_t limit, std::string_view what);
  /// How many entries follow, each of at least `least` bytes.
  std::size_t count(std::string_view what, std::size_t least = 1);
  std::string_view raw(std::uint64_t size, std::string_view what);
  bool at_end() const { return bytes_.empty(); }
  bool ok() const { return failed_.empty(); }
  const std::string& failed() const { return failed_; }
  void fail(std::string why) {
    if (failed_.empty()) failed_ = std::move(why);
    bytes_ = {};
  }

 private:
  std::uint64_t fixed(int bytes);
  std::string_view bytes_;
  std::string failed_;
};

}  // namespace millstream
