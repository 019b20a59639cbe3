// SPDX-License-Identifier: Apache-2.0
#include "millstream/profile/records.h"

#include <limits>

#include <fmt/format.h>

namespace millstream {

std::string_view to_string(ProfileSource source) {
  switch (source) {
    case ProfileSource::op_summary: return "op_summary";
    case ProfileSource::kernel_details: return "kernel_details";
    case ProfileSource::task_time: return "task_time";
    case ProfileSource::trace: return "trace";
  }
  return "?";
}

Result<std::vector<ProfileRecord>> read_records(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '[' || text[first] == '{')) return read_trace(text, file);
  return read_table(text, file);
}

std::string print(const std::vector<ProfileRecord>& records) {
  std::string out;
  for (const ProfileRecord& r : records) {
    out += fmt::format("{} {}", to_string(r.source), r.op_name.empty() ? "-" : r.op_name);
    if (!r.op_type.empty() || !r.task_type.empty()) {
      out += fmt::format(" ({}{}{})", r.op_type, r.op_type.empty() || r.task_type.empty() ? "" : ", ", r.task_type);
    }
    const auto add = [&](std::string_view word, const std::optional<std::int64_t>& value) {
      if (value) out += fmt::format(" {} {}", word, *value);
    };
    add("device", r.device);
    add("model", r.model);
    add("stream", r.stream);
    add("task", r.task);
    add("batch", r.batch);
    add("at", r.start_ns);
    out += fmt::format(" for {} ns", r.dur_ns);
    add("blocks", r.blocks);
    add("mix", r.mix_blocks);
    out += '\n';
  }
  return out;
}

std::optional<std::int64_t> parse_ns(std::string_view text, int power) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::size_t i = 0;
  std::int64_t value = 0;
  bool digits = false, dropped_half = false, dropped = false, after_point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    digits = true;
    // Digits beyond a nanosecond round.
    if (after_point && (dropped || power == 0)) {
      if (!dropped) dropped_half = c >= '5';
      dropped = true;
      continue;
    }
    if (value > (kMost - 9) / 10) return std::nullopt;
    value = value * 10 + (c - '0');
    if (after_point) --power;
  }
  if (!digits) return std::nullopt;
  if (i < text.size()) {
    // An exponent: only where no digit was dropped, so that nothing is lost.
    if ((text[i] != 'e' && text[i] != 'E') || dropped) return std::nullopt;
    const bool negative = i + 1 < text.size() && text[i + 1] == '-';
    i += negative || (i + 1 < text.size() && text[i + 1] == '+') ? 2 : 1;
    if (i >= text.size()) return std::nullopt;
    int exponent = 0;
    for (; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9' || exponent > 99) return std::nullopt;
      exponent = exponent * 10 + (text[i] - '0');
    }
    power += negative ? -exponent : exponent;
  }
  for (; power > 0 && value != 0; --power) {
    if (value > kMost / 10) return std::nullopt;
    value *= 10;
  }
  for (; power < 0 && value != 0; ++power) {
    dropped_half = value % 10 >= 5;
    value /= 10;
  }
  return dropped_half && value < kMost ? value + 1 : value;
}

}  // namespace millstream
