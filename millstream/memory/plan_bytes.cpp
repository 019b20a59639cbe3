// SPDX-License-Identifier: Apache-2.0
#include "millstream/memory/plan_bytes.h"

#include <cstring>

#include <fmt/format.h>

namespace millstream {

std::uint64_t plan_checksum(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

void PlanWriter::fixed(std::uint64_t n, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(n >> (8 * i) & 0xff);
}
void PlanWriter::number(std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) bytes_ += static_cast<char>(n | 0x80);
  bytes_ += static_cast<char>(n);
}
void PlanWriter::signed_number(std::int64_t n) {
  const auto u = static_cast<std::uint64_t>(n);
  number(u << 1 ^ (n < 0 ? ~std::uint64_t{0} : 0));
}
void PlanWriter::real(double x) {
  std::uint64_t n = 0;
  std::memcpy(&n, &x, 8);
  u64(n);
}
void PlanWriter::text(std::string_view s) {
  number(s.size());
  bytes_ += s;
}

std::uint64_t PlanReader::fixed(int bytes) {
  if (bytes_.size() < static_cast<std::size_t>(bytes)) {
    fail("the file is cut off");
    return 0;
  }
  std::uint64_t n = 0;
  for (int i = 0; i < bytes; ++i) n |= std::uint64_t{static_cast<unsigned char>(bytes_[static_cast<std::size_t>(i)])} << (8 * i);
  bytes_.remove_prefix(static_cast<std::size_t>(bytes));
  return n;
}
std::uint64_t PlanReader::number() {
  std::uint64_t n = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes_.empty()) {
      fail("the file is cut off");
      return 0;
    }
    const auto byte = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    n |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return n;
  }
  fail("a number is longer than 64 bits");
  return 0;
}
std::int64_t PlanReader::signed_number() {
  const std::uint64_t u = number();
  return static_cast<std::int64_t>(u >> 1 ^ (~(u & 1) + 1));
}
double PlanReader::real() {
  const std::uint64_t n = u64();
  double x = 0;
  std::memcpy(&x, &n, 8);
  return x;
}
std::string PlanReader::text() { return std::string(raw(number(), "a text")); }
std::uint32_t PlanReader::index(std::uint64_t limit, std::string_view what) {
  const std::uint64_t n = number();
  if (ok() && (n >= limit || n > 0xffffffffu)) fail(fmt::format("{} is {}, allowed are numbers below {}", what, n, limit));
  return ok() ? static_cast<std::uint32_t>(n) : 0;
}
std::size_t PlanReader::count(std::string_view what, std::size_t least) {
  const std::uint64_t n = number();
  if (ok() && n > bytes_.size() / least) fail(fmt::format("{} {}, but only {} bytes are left", n, what, bytes_.size()));
  return ok() ? static_cast<std::size_t>(n) : 0;
}
std::string_view PlanReader::raw(std::uint64_t size, std::string_view what) {
  if (ok() && size > bytes_.size()) fail(fmt::format("{} of {} bytes, but only {} are left", what, size, bytes_.size()));
  if (!ok()) return {};
  const std::string_view out = bytes_.substr(0, static_cast<std::size_t>(size));
  bytes_.remove_prefix(out.size());
  return out;
}

}  // namespace millstream
