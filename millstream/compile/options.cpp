// SPDX-License-Identifier: Apache-2.0
// The one table of options. docs/options.md is printed from it (millstream options --markdown).
#include <charconv>

#include <fmt/format.h>

#include "millstream/compile/compile.h"

namespace millstream {
namespace {

Error illegal(const OptionRow& row, std::string_view value) {
  return Error{ErrorCode::bad_option, fmt::format("option {} cannot be \"{}\"", row.key, value)}.help(
      fmt::format("legal values: {}", row.values));
}

Result<bool> truth(const OptionRow& row, std::string_view value) {
  if (value == "true" || value == "1" || value == "on") return true;
  if (value == "false" || value == "0" || value == "off" || value.empty()) return false;
  return illegal(row, value);
}

Result<std::uint32_t> count(const OptionRow& row, std::string_view value, std::uint32_t low, std::uint32_t high) {
  std::uint32_t n = 0;
  const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (code != std::errc() || stop != value.data() + value.size() || n < low || n > high) return illegal(row, value);
  return n;
}

Result<void> set_strategy(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "ge") {
    o.assign.strategy = Strategy::ge;
  } else if (value == "auto") {
    o.assign.strategy = Strategy::automatic;
  } else if (value == "single") {
    o.assign.strategy = Strategy::single;
    o.assign.single_stream = true;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_single(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(const bool on, truth(row, value));
  o.assign.single_stream = on;
  if (on) o.assign.strategy = Strategy::single;
  return {};
}

Result<void> set_streams(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.assign.streams, count(row, value, 1, 65535));
  return {};
}

Result<void> set_threads(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "auto") {
    o.assign.threads_per_op.reset();
    return {};
  }
  MST_TRY(o.assign.threads_per_op, count(row, value, 1, 1024));
  return {};
}

Result<void> set_force(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.assign.force_streams, truth(row, value));
  return {};
}

Result<void> set_sync(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "exact") {
    o.sync.mode = SyncMode::exact;
  } else if (value == "none") {
    o.sync.mode = SyncMode::none;
  } else if (value == "compat") {
    o.sync.mode = SyncMode::compat;
  } else if (value == "fewest") {
    o.sync.mode = SyncMode::fewest;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_event_ids(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "minimal") {
    o.lower.event_ids = EventIds::minimal;
  } else if (value == "sequential") {
    o.lower.event_ids = EventIds::sequential;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_reuse(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.memory.reuse, truth(row, value));
  return {};
}

}  // namespace

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> table = {
      {"strategy", "", "--strategy", "ge, auto, single", "ge when the input carries engines, auto otherwise",
       "who decides the streams", set_strategy},
      {"single_stream", "ge.enableSingleStream, SINGLE_STREAM_ENABLE, enable_single_stream", "--strategy single",
       "true, false", "false", "everything on one stream; an error when nodes carry stream labels", set_single},
      {"streams", "", "--streams", "1..65535", "8", "auto uses at most this many streams", set_streams},
      {"force_streams", "", "--force-streams", "true, false", "false",
       "auto uses as many streams as are useful even when one is predicted faster (measurements, stress)", set_force},
      {"threads_per_op", "", "--threads-per-op", "auto, 1..1024", "auto",
       "threads one operator may use; auto picks it together with the streams for the cores there are", set_threads},
      {"sync", "", "", "exact, compat, fewest, none", "exact",
       "exact: the unique minimum of waits; compat: the three local rules of Graph Engine; fewest: fewer waits than exact by adding order, only where the target has too few events; none: keep every inserted pair (comparisons)",
       set_sync},
      {"event_ids", "", "", "minimal, sequential", "minimal",
       "minimal: an id is used again when its old wait provably happens first", set_event_ids},
      {"memory_reuse", "", "", "true, false", "true", "buffers share memory where happens-before allows it", set_reuse},
  };
  return table;
}

Result<void> set_option(CompileOptions& options, std::string_view key, std::string_view value) {
  for (const OptionRow& row : option_table()) {
    bool match = row.key == key;
    for (std::string_view rest = row.ecosystem; !rest.empty() && !match;) {
      const std::size_t comma = rest.find(", ");
      match = rest.substr(0, comma) == key;
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    }
    if (match) return row.apply(options, row, value);
  }
  std::string known;
  for (const OptionRow& row : option_table()) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.key);
  return Error{ErrorCode::bad_option, fmt::format("there is no option \"{}\"", key)}.help("options: " + known);
}

std::string options_markdown() {
  std::string out =
      "# Options\n\nPrinted from the option table by `millstream options --markdown`. Set any of them with "
      "`--set KEY=VALUE`;\nthe ecosystem's keys are accepted as KEY too.\n\n"
      "| key | ecosystem key | flag | values | default | what it does |\n|---|---|---|---|---|---|\n";
  for (const OptionRow& row : option_table()) {
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", row.key, row.ecosystem,
                       row.flag.empty() ? "" : fmt::format("`{}`", row.flag), row.values, row.otherwise, row.what);
  }
  return out;
}

}  // namespace millstream
