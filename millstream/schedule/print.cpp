// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

namespace {

// NODE>s2 starts, NODE?>s2|s3 switches, NODE:L0 is a label, NODE>L0 jumps, NODE>L0|L1 branches (NODE?>L0 to one).
std::string control_text(const Graph& graph, const ControlTask& control, Task::Kind kind) {
  const bool streams = kind == Task::Kind::activate || kind == Task::Kind::stream_switch;
  std::string targets;
  for (const std::uint32_t t : control.targets) {
    targets += fmt::format("{}{}{}", targets.empty() ? "" : "|", streams ? "s" : "L", t);
  }
  const bool chooses = kind == Task::Kind::stream_switch || (kind == Task::Kind::branch && control.targets.size() == 1);
  const std::string_view sign = kind == Task::Kind::label ? ":" : chooses ? "?>" : ">";
  return fmt::format("{}{}{}", quote_name(graph.name(control.node)), sign, targets);
}

}  // namespace

std::string print(const Graph& graph, const Schedule& schedule) {
  std::string out;
  const char event = schedule.event_kind == EventKind::notify ? 'n' : 'e';
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    const PhysicalStream& stream = schedule.streams[s];
    out += fmt::format("stream {}", s.index);
    if (stream.logical.index != s.index) out += fmt::format(" of {}", stream.logical.index);
    if (stream.relay) out += " relay";
    if (stream.huge) out += " huge";
    out += ':';
    bool first = true;
    for (const Task& t : stream.tasks) {
      out += first ? " " : "  ";
      first = false;
      switch (t.kind) {
        case Task::Kind::launch: out += quote_name(graph.name(t.node())); break;
        case Task::Kind::record: out += fmt::format("!{}{}", event, t.index); break;
        case Task::Kind::wait: out += fmt::format("?{}{}", event, t.index); break;
        case Task::Kind::attached: out += fmt::format("+{}", quote_name(graph.name(t.node()))); break;
        case Task::Kind::self_attached: out += fmt::format("++{}", quote_name(graph.name(t.node()))); break;
        case Task::Kind::activate:
        case Task::Kind::label:
        case Task::Kind::jump:
        case Task::Kind::branch:
        case Task::Kind::stream_switch:
          out += control_text(graph, schedule.controls[t.index], t.kind);
          break;
      }
    }
    out += '\n';
  }
  return out;
}

}  // namespace millstream
