// SPDX-License-Identifier: Apache-2.0
// What each stream of a dump runs, from its nodes in the order they are listed.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/dump/assemble.h"
#include "millstream/schedule/control_types.h"

namespace millstream::dump {
namespace {

constexpr std::uint64_t kMostEvents = std::uint64_t{1} << 20;
constexpr std::int64_t kMostLabels = 1 << 20;

}  // namespace

// -1: it names none.
std::int64_t Assembler::event_number(const Row& row) const {
  for (const std::string_view key : {"event_id", "notify_id"}) {
    if (const Attr* found = attr(row, key)) {
      if (const auto* i = std::get_if<std::int64_t>(found)) return *i;
    }
  }
  return -1;
}

Result<std::optional<Schedule>> Assembler::lanes(const std::vector<std::uint32_t>& rows, const Graph& graph) {
  std::int64_t most_stream = -1;
  bool any = false, notify = false, event = false;
  for (const std::uint32_t r : rows) {
    const Row& row = rows_[r];
    most_stream = std::max(most_stream, row.stream);
    if (row.kind == Kind::sync) {
      any = true;
      const bool plain = type(row) == "Send" || type(row) == "Recv";
      (plain ? event : notify) = true;
      if (row.stream < 0) return error_at(row.place, ErrorCode::syntax, fmt::format("{} node \"{}\" is on no stream", type(row), name(row)));
    }
    if (row.extra != kNone && (!extras_[row.extra].send.empty() || !extras_[row.extra].recv.empty())) any = event = true;
    for (const std::string_view key : {kAttachedTo, kSelfAttachedTo, std::string_view("active_stream_list")}) {
      for (const std::int64_t s : ints(row, key)) {
        if (s < 0 || s >= kMostStreams) {
          return error_at(row.place, ErrorCode::syntax, fmt::format("node \"{}\" uses stream {}; streams are numbered 0..{}", name(row), s, kMostStreams - 1));
        }
        most_stream = std::max(most_stream, s);
      }
    }
  }
  if (!any) return std::optional<Schedule>();
  Schedule out;
  out.streams.resize(static_cast<std::size_t>(most_stream + 1));
  out.logical_streams = static_cast<std::uint32_t>(most_stream + 1);
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(out.streams.size())) out.streams[s].logical = StreamId(s.index);
  out.event_kind = notify && !event ? EventKind::notify : EventKind::event;
  // Events and notifies are numbered apart. In a dump with both, notifies get the numbers behind the events.
  std::uint64_t events = 0;
  const auto checked = [&](const Row& row, std::int64_t id) -> Result<std::uint32_t> {
    if (id >= 0 && static_cast<std::uint64_t>(id) < kMostEvents) return static_cast<std::uint32_t>(id);
    return error_at(row.place, ErrorCode::syntax, id == -1 ? fmt::format("node \"{}\" names no event", name(row))
                                                           : fmt::format("node \"{}\" uses event {}; events are numbered 0..{}", name(row), id, kMostEvents - 1));
  };
  for (const std::uint32_t r : rows) {
    const Row& row = rows_[r];
    if (row.kind == Kind::sync && !(notify && event && type(row) != "Send" && type(row) != "Recv")) {
      MST_TRY(const std::uint32_t id, checked(row, event_number(row)));
      events = std::max<std::uint64_t>(events, id + 1);
    }
    if (row.extra == kNone) continue;
    for (const auto* list : {&extras_[row.extra].send, &extras_[row.extra].recv}) {
      for (const std::int64_t id : *list) {
        MST_TRY(const std::uint32_t good, checked(row, id));
        events = std::max<std::uint64_t>(events, good + 1);
      }
    }
  }
  std::uint64_t count = events;
  const std::vector<bool> emits = emits_(graph);
  const ControlTypes control(graph);
  const auto lane = [&](std::int64_t s) -> std::vector<Task>& { return out.streams[PhysicalStreamId(static_cast<std::size_t>(s))].tasks; };
  const auto push_control = [&](std::int64_t s, Task::Kind kind, ControlTask task) {
    lane(s).push_back({kind, static_cast<std::uint32_t>(out.controls.size())});
    out.controls.push_back(std::move(task));
  };
  const auto stream_numbers = [&](const Row& row) {
    const std::vector<std::int64_t> list = ints(row, "active_stream_list");
    return std::vector<std::uint32_t>(list.begin(), list.end());
  };
  for (const std::uint32_t r : rows) {
    const Row& row = rows_[r];
    if (row.stream < 0) continue;
    if (row.kind == Kind::sync) {
      MST_TRY(std::uint32_t id, checked(row, event_number(row)));
      if (notify && event && type(row) != "Send" && type(row) != "Recv") id += static_cast<std::uint32_t>(events);
      count = std::max<std::uint64_t>(count, id + 1);
      lane(row.stream).push_back(is_send(type(row)) ? Task::record(EventId(id)) : Task::wait(EventId(id)));
      continue;
    }
    if (row.kind == Kind::relay) {
      const NodeId owner(node_of_[relay_of_[r]]);
      PhysicalStream& stream = out.streams[PhysicalStreamId(static_cast<std::size_t>(row.stream))];
      stream.relay = true;
      if (const std::int64_t s = rows_[relay_of_[r]].stream; s >= 0) stream.logical = StreamId(static_cast<std::size_t>(s));
      for (const std::uint32_t s : stream_numbers(row)) push_control(row.stream, Task::Kind::activate, {owner, {s}});
      continue;
    }
    if (row.kind != Kind::node) continue;
    const NodeId n(node_of_[r]);
    const Extra* extra = row.extra == kNone ? nullptr : &extras_[row.extra];
    if (extra != nullptr) {
      for (const std::int64_t id : extra->recv) lane(row.stream).push_back(Task::wait(EventId(static_cast<std::size_t>(id))));
    }
    const auto kind = control.none() ? std::nullopt : control.of(n);
    if (!kind) {
      if (emits[n.index]) lane(row.stream).push_back(Task::launch(n));
    } else if (*kind == Task::Kind::activate || *kind == Task::Kind::stream_switch) {
      std::vector<std::uint32_t> list = stream_numbers(row);
      if (*kind == Task::Kind::stream_switch) {
        push_control(row.stream, *kind, {n, std::move(list)});
      } else {
        for (const std::uint32_t s : list) push_control(row.stream, *kind, {n, {s}});
      }
    } else {
      ControlTask task{n, {}};
      std::vector<std::int64_t> labels = ints(row, "label_list");
      if (*kind != Task::Kind::branch) labels = {graph.attrs(n).get_int("label_index", -1)};
      for (const std::int64_t label : labels) {
        if (label < 0 || label >= kMostLabels) return error_at(row.place, ErrorCode::syntax, fmt::format("node \"{}\" ({}) names no label", name(row), type(row)));
        task.targets.push_back(static_cast<std::uint32_t>(label));
        if (*kind == Task::Kind::label) out.label_count = std::max(out.label_count, static_cast<std::uint32_t>(label) + 1);
      }
      push_control(row.stream, *kind, std::move(task));
    }
    for (const std::int64_t s : ints(row, kAttachedTo)) lane(s).push_back(Task::attached(n));
    for (const std::int64_t s : ints(row, kSelfAttachedTo)) lane(s).push_back(Task::self_attached(n));
    if (extra != nullptr) {
      for (const std::int64_t id : extra->send) lane(row.stream).push_back(Task::record(EventId(static_cast<std::size_t>(id))));
    }
  }
  out.event_count = static_cast<std::uint32_t>(count);
  // Control tasks stand in the order of streams.
  std::vector<ControlTask> ordered;
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(out.streams.size())) {
    for (Task& t : out.streams[s].tasks) {
      if (!t.is_control()) continue;
      ordered.push_back(std::move(out.controls[t.index]));
      t.index = static_cast<std::uint32_t>(ordered.size() - 1);
    }
  }
  out.controls = std::move(ordered);
  return std::optional<Schedule>(std::move(out));
}

}  // namespace millstream::dump
