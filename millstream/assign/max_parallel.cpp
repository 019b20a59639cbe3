// SPDX-License-Identifier: Apache-2.0
// "engine:count,engine:count".
#include <charconv>

#include <fmt/format.h>

#include "millstream/assign/chain.h"

namespace millstream {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::vector<MaxParallel>> parse_max_parallel(std::string_view text) {
  std::vector<MaxParallel> out;
  if (trimmed(text).empty()) return out;
  const auto bad = [&](std::string_view piece, std::string_view why) {
    return Error{ErrorCode::bad_parallel_num, fmt::format("max_parallel \"{}\": \"{}\" {}", text, piece, why)}.help(
        "write engine:count,engine:count with counts of 1 and more, each engine once");
  };
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view piece = trimmed(rest.substr(0, comma));
    const std::size_t colon = piece.find(':');
    if (colon == std::string_view::npos) return bad(piece, "has no \":\"");
    const std::string_view engine = trimmed(piece.substr(0, colon));
    const std::string_view number = trimmed(piece.substr(colon + 1));
    if (engine.empty()) return bad(piece, "names no engine");
    if (number.empty()) return bad(piece, "has no count");
    std::uint32_t count = 0;
    const auto [stop, code] = std::from_chars(number.data(), number.data() + number.size(), count);
    if (code == std::errc::result_out_of_range || (code == std::errc() && count > 65535)) return bad(piece, "has a count above 65535");
    if (code != std::errc() || stop != number.data() + number.size()) return bad(piece, "has a count that is no whole number");
    if (count < 1) return bad(piece, "has a count below 1");
    for (const MaxParallel& m : out) {
      if (m.engine == engine) return bad(piece, "repeats its engine");
    }
    out.push_back({std::string(engine), count});
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace millstream
