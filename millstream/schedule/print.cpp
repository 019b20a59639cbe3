// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

std::string print(const Graph& graph, const Schedule& schedule) {
  std::string out;
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    const PhysicalStream& stream = schedule.streams[s];
    out += fmt::format("stream {}", s.index);
    if (stream.logical.index != s.index) out += fmt::format(" of {}", stream.logical.index);
    out += ':';
    bool first = true;
    for (const Task& t : stream.tasks) {
      out += first ? " " : "  ";
      first = false;
      switch (t.kind) {
        case Task::Kind::launch: out += quote_name(graph.name(t.node())); break;
        case Task::Kind::record: out += fmt::format("!e{}", t.index); break;
        case Task::Kind::wait: out += fmt::format("?e{}", t.index); break;
      }
    }
    out += '\n';
  }
  return out;
}

}  // namespace millstream
