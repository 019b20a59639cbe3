// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/names.h"

#include <algorithm>

#include <fmt/format.h>

namespace millstream {

IdVec<PhysicalStreamId, std::vector<std::string>> task_names(const Graph& graph, const Schedule& schedule) {
  IdVec<PhysicalStreamId, std::vector<std::string>> out(schedule.streams.size());
  // Tasks in execution order: those of a node (with the waits before it and the records behind it) at its place.
  std::vector<std::uint32_t> place(graph.node_count(), 0);
  for (std::uint32_t i = 0; i < graph.order().size(); ++i) place[graph.order()[i].index] = i;
  struct Group {
    std::uint32_t place;
    std::uint32_t stream;
    std::uint32_t begin, end;
  };
  std::vector<Group> groups;
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    const std::vector<Task>& tasks = schedule.streams[s].tasks;
    out[s].resize(tasks.size());
    std::uint32_t begin = 0, at = 0;
    bool named = false;  // the group holds a node's own task
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      const Task& t = tasks[i];
      if (t.kind == Task::Kind::record) continue;
      const bool wait = t.kind == Task::Kind::wait;
      const NodeId node = wait ? NodeId(0) : t.is_control() ? schedule.controls[t.index].node : t.node();
      if (named && (wait || place[node.index] != at)) {
        groups.push_back({at, s.index, begin, i});
        begin = i;
        named = false;
      }
      if (wait) continue;
      at = place[node.index];
      named = true;
    }
    if (begin < tasks.size()) groups.push_back({at, s.index, begin, static_cast<std::uint32_t>(tasks.size())});
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.place < b.place; });
  const bool notify = schedule.event_kind == EventKind::notify;
  std::vector<std::uint32_t> sent(schedule.event_count, 0), received(schedule.event_count, 0);
  for (const Group& g : groups) {
    const PhysicalStreamId s{g.stream};
    for (std::uint32_t i = g.begin; i < g.end; ++i) {
      const Task& t = schedule.streams[s].tasks[i];
      std::string& name = out[s][i];
      if (t.kind == Task::Kind::record || t.kind == Task::Kind::wait) {
        const bool send = t.kind == Task::Kind::record;
        const std::string_view word = send ? (notify ? "NotifyRecord" : "Send") : (notify ? "NotifyWait" : "Recv");
        const std::uint32_t used = (send ? sent : received)[t.index]++;
        name = fmt::format("{}_{}_{}", graph.name(), word, t.index);
        if (used != 0) name += fmt::format("_Reuse_{}", used);
      } else if (t.is_control()) {
        name = std::string(graph.name(schedule.controls[t.index].node));
      } else {
        name = std::string(graph.name(t.node()));
      }
    }
  }
  // A relay stands for one branch of its switch: the target of that switch that is the relay.
  for (const PhysicalStream& stream : schedule.streams) {
    for (const Task& t : stream.tasks) {
      if (t.kind != Task::Kind::stream_switch) continue;
      const ControlTask& sw = schedule.controls[t.index];
      for (std::size_t b = 0; b < sw.targets.size(); ++b) {
        const PhysicalStreamId target{sw.targets[b]};
        if (target.index >= schedule.streams.size() || !schedule.streams[target].relay) continue;
        for (std::string& name : out[target]) name = fmt::format("{}_StreamActive_{}", graph.name(sw.node), b);
      }
    }
  }
  return out;
}

}  // namespace millstream
