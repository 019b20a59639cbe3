// SPDX-License-Identifier: Apache-2.0
// Text lanes: one row a physical stream, one column a tick.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/trace/trace.h"

namespace millstream {
namespace {

// A picture wider than this is no picture; the caller should choose a longer tick.
constexpr std::uint64_t kMaxColumns = 1000;

std::string stream_name(const Schedule& schedule, PhysicalStreamId s) {
  const StreamId logical = schedule.streams[s].logical;
  return logical.index == s.index ? fmt::format("stream {}", s.index)
                                  : fmt::format("stream {} of {}", s.index, logical.index);
}

// Of the launches in a tick the one that fills most of it stands there; ties go to the earlier.
struct Cell {
  std::string_view name = ".";
  std::uint64_t filled = 0;
};

}  // namespace

std::string print_lanes(const Graph& graph, const Schedule& schedule, const Trace& trace, std::uint64_t tick_ns) {
  MST_CHECK(tick_ns > 0, "a tick takes time");
  const std::uint64_t ticks = (trace.total_ns + tick_ns - 1) / tick_ns;
  const std::uint64_t columns = std::min(ticks, kMaxColumns);
  std::vector<std::vector<Cell>> rows(schedule.streams.size(), std::vector<Cell>(columns));
  for (const Span& span : trace.spans) {
    if (span.what.kind != Task::Kind::launch) continue;
    std::vector<Cell>& row = rows[span.task.stream.index];
    for (std::uint64_t t = span.begin_ns / tick_ns; t < columns && t * tick_ns < span.end_ns; ++t) {
      const std::uint64_t filled =
          std::min(span.end_ns, (t + 1) * tick_ns) - std::max(span.begin_ns, t * tick_ns);
      if (filled > row[t].filled) row[t] = {graph.name(span.what.node()), filled};
    }
  }
  std::size_t head = std::string_view("time").size();
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(rows.size())) {
    head = std::max(head, stream_name(schedule, s).size());
  }
  std::size_t cell = fmt::format("{}", columns == 0 ? 0 : columns - 1).size();
  for (const auto& row : rows) {
    for (const Cell& c : row) cell = std::max(cell, c.name.size());
  }

  std::string out;
  const auto line = [&](std::string_view name, const auto& text_of) {
    std::string text = fmt::format("{:<{}}", name, head);
    for (std::uint64_t t = 0; t < columns; ++t) text += fmt::format("  {:<{}}", text_of(t), cell);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line("time", [](std::uint64_t t) { return fmt::format("{}", t); });
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(rows.size())) {
    line(stream_name(schedule, s), [&](std::uint64_t t) { return std::string(rows[s.index][t].name); });
  }
  if (columns < ticks) out += fmt::format("... and {} columns more\n", ticks - columns);
  return out;
}

}  // namespace millstream
