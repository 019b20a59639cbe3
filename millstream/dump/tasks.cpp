// SPDX-License-Identifier: Apache-2.0
// What of reading needs the table of operators: which nodes emit a task.
#include "millstream/assign/tasks.h"
#include "millstream/dump/readers.h"

namespace millstream {
namespace {

std::vector<bool> emits_task(const Graph& graph) {
  const TaskNodes emits(graph);
  std::vector<bool> out;
  out.reserve(graph.node_count());
  for (const NodeId n : graph.nodes()) out.push_back(emits(n));
  return out;
}

}  // namespace

Result<Dump> read_dump(std::string_view text, const std::string& file) { return dump::read(text, file, emits_task); }

Schedule placed_lanes(const Graph& graph) {
  Schedule out;
  const TaskNodes emits(graph);
  for (const NodeId n : graph.order()) {
    const auto& stream = graph.annotations().preset_stream.get(n);
    if (!stream || *stream < 0 || *stream >= dump::kMostStreams || !emits(n)) continue;
    const auto s = static_cast<std::uint32_t>(*stream);
    while (out.streams.size() <= s) out.streams.push_back({StreamId(out.streams.size()), {}, false, false});
    out.streams[PhysicalStreamId(s)].tasks.push_back(Task::launch(n));
  }
  out.logical_streams = static_cast<std::uint32_t>(out.streams.size());
  return out;
}

}  // namespace millstream
