// SPDX-License-Identifier: Apache-2.0
// Chrome trace-event JSON, which Perfetto opens: one process, one thread a physical stream, complete events
// for tasks, flow arrows from each record to the wait that consumed it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "millstream/trace/pairing.h"

namespace millstream {
namespace {

using nlohmann::json;

// Names come from models and need not be UTF-8; a trace viewer shows the replacement character.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

double us(std::uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

json meta(std::string_view what, std::optional<std::uint32_t> thread, json args) {
  json out = {{"ph", "M"}, {"name", what}, {"pid", 0}, {"args", std::move(args)}};
  if (thread) out["tid"] = *thread;
  return out;
}

}  // namespace

std::string to_chrome_json(const Graph& graph, const Schedule& schedule, const Trace& trace) {
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  bool first = true;
  const auto add = [&](const json& event) {
    out += first ? "\n" : ",\n";
    first = false;
    out += dump(event);
  };
  add(meta("process_name", std::nullopt,
           {{"name", fmt::format("{} ({})", graph.name(), trace.virtual_time ? "simulated" : "device")}}));
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    const StreamId logical = schedule.streams[s].logical;
    std::string name = fmt::format("stream {}", s.index);
    if (logical.index != s.index) name += fmt::format(" of {}", logical.index);
    // The label its nodes carry, if they carry one: the graph is asked, for a schedule knows none.
    for (const Task& t : schedule.streams[s].tasks) {
      if (t.kind != Task::Kind::launch || t.index >= graph.node_count()) continue;
      const auto& user = graph.annotations().user_label.get(t.node());
      const auto& label = user ? user : graph.annotations().label.get(t.node());
      if (label) name += fmt::format(" \"{}\"", graph.text(*label));
      break;
    }
    add(meta("thread_name", s.index, {{"name", name}}));
    add(meta("thread_sort_index", s.index, {{"sort_index", s.index}}));
  }
  for (const Span& span : trace.spans) {
    json event = {{"ph", "X"},
                  {"pid", 0},
                  {"tid", span.task.stream.index},
                  {"ts", us(span.begin_ns)},
                  {"dur", us(span.end_ns - span.begin_ns)}};
    json args = {{"stream", span.task.stream.index}, {"index", span.task.index}, {"worker", span.worker}};
    switch (span.what.kind) {
      case Task::Kind::launch:
        event["name"] = graph.name(span.what.node());
        event["cat"] = "launch";
        args["type"] = graph.type(span.what.node());
        break;
      case Task::Kind::record:
        event["name"] = fmt::format("record e{}", span.what.index);
        event["cat"] = "record";
        args["event"] = span.what.index;
        break;
      case Task::Kind::wait:
        event["name"] = fmt::format("wait e{}", span.what.index);
        event["cat"] = "wait";
        args["event"] = span.what.index;
        break;
      case Task::Kind::attached:
      case Task::Kind::self_attached:
        event["name"] = fmt::format("{} (attached)", graph.name(span.what.node()));
        event["cat"] = "attached";
        break;
      case Task::Kind::activate:
      case Task::Kind::label:
      case Task::Kind::jump:
      case Task::Kind::branch:
      case Task::Kind::stream_switch:
        event["name"] = graph.name(schedule.controls[span.what.index].node);
        event["cat"] = "control";
        args["type"] = graph.type(schedule.controls[span.what.index].node);
        break;
    }
    event["args"] = std::move(args);
    add(event);
  }
  std::uint64_t flow = 0;
  for (const ConsumedRecord& c : pair_records(trace)) {
    if (!c.record) continue;
    const Span& from = trace.spans[*c.record];
    const Span& to = trace.spans[c.wait];
    const std::string name = fmt::format("e{}", from.what.index);
    add({{"ph", "s"}, {"id", flow}, {"name", name}, {"cat", "sync"}, {"pid", 0},
         {"tid", from.task.stream.index}, {"ts", us(from.begin_ns)}});
    // An arrow ends at the slice that encloses it: the wait, at its end.
    add({{"ph", "f"}, {"bp", "e"}, {"id", flow}, {"name", name}, {"cat", "sync"}, {"pid", 0},
         {"tid", to.task.stream.index}, {"ts", us(to.end_ns)}});
    ++flow;
  }
  out += "\n]}\n";
  return out;
}

}  // namespace millstream
