// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/plan_rows.h"

#include <fmt/format.h>

#include "millstream/schedule/names.h"

namespace millstream::cli {
namespace {

std::string text_of(const Json& json, int indent = -1) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

std::string_view task_word(Task::Kind kind) {
  switch (kind) {
    case Task::Kind::launch: return "launch";
    case Task::Kind::record: return "record";
    case Task::Kind::wait: return "wait";
    case Task::Kind::attached: return "attached";
    case Task::Kind::self_attached: return "self_attached";
    case Task::Kind::activate: return "activate";
    case Task::Kind::label: return "label";
    case Task::Kind::jump: return "jump";
    case Task::Kind::branch: return "branch";
    case Task::Kind::stream_switch: return "stream_switch";
  }
  return "?";
}

// A node, an event, or for control flow the node and its targets.
Json task_json(const Graph& graph, const Schedule& schedule, const Task& t) {
  Json task = {{"do", task_word(t.kind)}};
  if (t.names_node()) {
    task["node"] = std::string(graph.name(t.node()));
  } else if (t.kind == Task::Kind::record || t.kind == Task::Kind::wait) {
    task["event"] = t.index;
  } else {
    task["node"] = std::string(graph.name(schedule.controls[t.index].node));
    task["targets"] = schedule.controls[t.index].targets;
  }
  return task;
}

void print_lanes(const Graph& graph, const Schedule& schedule) {
  fmt::print(",\n  \"lanes\": [");
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    fmt::print("{}\n    {{\"stream\": {}, \"logical\": {}, \"tasks\": [", s.index == 0 ? "" : ",", s.index, schedule.streams[s].logical.index);
    bool first = true;
    for (const Task& t : schedule.streams[s].tasks) {
      fmt::print("{}\n      {}", first ? "" : ",", text_of(task_json(graph, schedule, t)));
      first = false;
    }
    fmt::print("]}}");
  }
  fmt::print("]");
}

// The ecosystem's names of the tasks, in the order of the lanes.
void print_names(const Graph& graph, const Schedule& schedule) {
  fmt::print(",\n  \"names\": [");
  bool first = true;
  for (const std::vector<std::string>& names : task_names(graph, schedule)) {
    fmt::print("{}\n    {}", first ? "" : ",", text_of(Json(names)));
    first = false;
  }
  fmt::print("]");
}

void print_placement(const Graph& graph, const StreamAssignment& on) {
  fmt::print(",\n  \"placement\": [");
  bool first = true;
  for (const NodeId n : graph.order()) {
    const auto& placement = on.placement[n];
    const Json row = {{"node", std::string(graph.name(n))},
                      {"type", std::string(graph.type(n))},
                      {"stream", placement ? Json(placement->stream.index) : Json(nullptr)},
                      {"rule", placement ? Json(on.rules[placement->decided_by.index]) : Json(nullptr)}};
    fmt::print("{}\n    {}", first ? "" : ",", text_of(row));
    first = false;
  }
  fmt::print("]");
}

}  // namespace

void print_with_rows(const Json& head, const Graph& graph, const Compiled& compiled) {
  const std::string text = text_of(head, 2);
  fmt::print("{}", text.substr(0, text.rfind("\n}")));
  print_lanes(graph, compiled.schedule);
  if (compiled.assignment.clusters != 0) print_names(graph, compiled.schedule);
  print_placement(graph, compiled.assignment);
  fmt::print("\n}}\n");
}

}  // namespace millstream::cli
