// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/limits.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream {
namespace {

std::string stream_name(const StreamAssignment& on, std::uint32_t logical) {
  const std::string label = logical < on.streams.size() ? on.streams[StreamId(logical)].label_text() : std::string();
  return label.empty() ? fmt::format("stream {}", logical) : fmt::format("stream {} (label {})", logical, quote(label));
}

// The three largest of `count`, by index, as "NAME: N what".
template <class Name>
std::string largest(const std::vector<std::uint64_t>& count, std::string_view what, Name name) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < count.size(); ++i) {
    if (count[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return count[a] > count[b]; });
  std::string out;
  for (std::size_t i = 0; i < order.size() && i < 3; ++i) {
    out += fmt::format("{}{}: {} {}", out.empty() ? "" : "; ", name(order[i]), count[order[i]], what);
  }
  return out;
}

class Limiter {
 public:
  Limiter(const Graph& graph, const StreamAssignment& on, const Schedule& schedule, const Target& target, const LowerOptions& options)
      : graph_(graph), on_(on), schedule_(schedule), target_(target), options_(options), costs_(graph, target) {}

  Result<std::vector<Error>> run() {
    MST_TRY_VOID(streams());
    MST_TRY_VOID(events());
    MST_TRY_VOID(tasks());
    return std::move(warnings_);
  }

 private:
  Result<void> streams() const {
    if (schedule_.streams.size() <= target_.limits.streams) return {};
    std::vector<std::uint64_t> pieces(schedule_.logical_streams, 0);
    for (const PhysicalStream& s : schedule_.streams) ++pieces[s.logical.index];
    Error e{ErrorCode::stream_limit, fmt::format("the plan needs {} streams, target {} has {}", schedule_.streams.size(), target_.name,
                                                 target_.limits.streams)};
    e.note("largest: " + largest(pieces, "physical streams", [&](std::uint32_t s) { return stream_name(on_, s); }));
    if (schedule_.splits.empty()) {
      return std::move(e.help(on_.skips_engines ? "use fewer stream labels and parallel groups, or smaller numbers in max_parallel (ge.streamMaxParallelNum)"
                                                : "use fewer stream labels, or --streams with a smaller number"));
    }
    return std::move(e.help("each piece of a long stream is a stream of its own: raise limits.tasks_per_stream in the target's file if the device allows "
                            "it, or use fewer streams where nothing overlaps"));
  }

  Result<void> events() const {
    const bool notify = schedule_.event_kind == EventKind::notify;
    const std::uint32_t limit = notify ? target_.limits.notifies : target_.limits.events;
    if (schedule_.event_count <= limit) return {};
    std::vector<std::uint64_t> records(schedule_.logical_streams, 0);
    for (const PhysicalStream& s : schedule_.streams) {
      for (const Task& t : s.tasks) records[s.logical.index] += t.kind == Task::Kind::record ? 1 : 0;
    }
    const std::string_view what = notify ? "notifies" : "events";
    Error e{notify ? ErrorCode::notify_limit : ErrorCode::allocation_limit,
            fmt::format("the plan needs {} {}, target {} has {}", schedule_.event_count, what, target_.name, limit)};
    e.note("most are recorded on " + largest(records, "records", [&](std::uint32_t s) { return stream_name(on_, s); }));
    const std::string_view fewer = on_.skips_engines ? "fewer stream labels, smaller numbers in max_parallel" : "fewer streams (--streams N)";
    return std::move(e.help(fmt::format("use {}{}; sync=fewest merges waits, event_ids=minimal shares ids", notify ? "events (EVENT without notify), " : "", fewer)));
  }

  std::uint64_t tasks_of(const Task& t) const {
    return t.kind == Task::Kind::launch ? std::max(1u, costs_.of(t.node())) : 1;
  }

  Result<void> tasks() {
    const Limits& limits = target_.limits;
    if (limits.tasks_per_stream == 0xffffffffu) return {};
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      const PhysicalStream& stream = schedule_.streams[s];
      const std::uint64_t limit = stream.huge ? limits.tasks_per_huge_stream : limits.tasks_per_stream;
      std::uint64_t needed = 0;
      for (const Task& t : stream.tasks) needed += tasks_of(t);
      if (needed <= limit) continue;
      if (options_.single_stream && !stream.huge && limits.huge_streams == 0) continue;  // splitting warned of it
      Error e = too_long(s, needed, limit);
      if (options_.split_units != SplitUnits::node) return e;
      warnings_.push_back(std::move(e));
    }
    return {};
  }

  Error too_long(PhysicalStreamId s, std::uint64_t needed, std::uint64_t limit) const {
    const PhysicalStream& stream = schedule_.streams[s];
    std::vector<std::uint64_t> by_type(graph_.strings().size() + 1, 0);  // the last: records and waits
    for (const Task& t : stream.tasks) {
      by_type[t.kind == Task::Kind::launch ? graph_.type_id(t.node()).index : graph_.strings().size()] += tasks_of(t);
    }
    const std::string name = s.index == stream.logical.index ? stream_name(on_, s.index)
                                                             : fmt::format("stream {}, a piece of {},", s.index, stream_name(on_, stream.logical.index));
    return Error{ErrorCode::task_limit, fmt::format("{} holds {} tasks, a stream of target {} holds {}", name, needed, target_.name, limit)}
        .note("largest: " + largest(by_type, "tasks", [&](std::uint32_t t) {
                return t == graph_.strings().size() ? std::string("records, waits and control flow") : std::string(graph_.text(StringId(t)));
              }))
        .help("spread the nodes over more streams, or raise limits.tasks_per_stream in the target's file if the device allows it");
  }

  const Graph& graph_;
  const StreamAssignment& on_;
  const Schedule& schedule_;
  const Target& target_;
  const LowerOptions& options_;
  TaskCosts costs_;
  std::vector<Error> warnings_;
};

}  // namespace

Result<std::vector<Error>> hold_limits(const Graph& graph, const StreamAssignment& on, const Schedule& schedule, const Target& target,
                                       const LowerOptions& options) {
  return Limiter(graph, on, schedule, target, options).run();
}

}  // namespace millstream
