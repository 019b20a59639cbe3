// SPDX-License-Identifier: Apache-2.0
// A trace against its schedule and graph: every task once, in stream order, waits after their records,
// nodes after what they depend on.
#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/trace/pairing.h"

namespace millstream {
namespace {

std::string describe(const Graph& graph, const Task& task) {
  switch (task.kind) {
    case Task::Kind::launch:
      return std::string(graph.name(task.node()));
    case Task::Kind::record:
      return fmt::format("record of event {}", task.index);
    case Task::Kind::wait:
      return fmt::format("wait for event {}", task.index);
    case Task::Kind::attached:
    case Task::Kind::self_attached:
      return fmt::format("attached part of {}", graph.name(task.node()));
    case Task::Kind::activate:
    case Task::Kind::label:
    case Task::Kind::jump:
    case Task::Kind::branch:
    case Task::Kind::stream_switch:
      return fmt::format("control task {}", task.index);
  }
  return "?";
}

}  // namespace

std::vector<Error> verify(const Graph& graph, const Schedule& schedule, const Trace& trace) {
  std::vector<Error> out;
  const auto add = [&](ErrorCode code, std::string message) { out.push_back(Error{code, std::move(message)}); };

  // Spans are by stream, then index: walk both lists side by side.
  std::size_t at = 0;
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
    const std::vector<Task>& tasks = schedule.streams[s].tasks;
    for (std::uint32_t i = 0; i < tasks.size(); ++i, ++at) {
      if (at >= trace.spans.size()) {
        add(ErrorCode::plan_mismatch, fmt::format("the trace ends before task {} of stream {}, {}", i, s.index,
                                                  describe(graph, tasks[i])));
        return out;
      }
      const Span& span = trace.spans[at];
      if (span.task != TaskRef{s, i} || !(span.what == tasks[i])) {
        add(ErrorCode::plan_mismatch,
            fmt::format("span {} is task {} of stream {}, but task {} of stream {}, {}, is due", at, span.task.index,
                        span.task.stream.index, i, s.index, describe(graph, tasks[i])));
        return out;
      }
      if (span.end_ns < span.begin_ns || span.end_ns > trace.total_ns) {
        add(ErrorCode::race, fmt::format("{} on stream {} runs from {} to {} ns in a run of {} ns",
                                         describe(graph, tasks[i]), s.index, span.begin_ns, span.end_ns,
                                         trace.total_ns));
      }
      if (i > 0 && span.begin_ns < trace.spans[at - 1].end_ns) {
        add(ErrorCode::race,
            fmt::format("stream {}: {} begins at {} ns, before {} ends at {} ns", s.index, describe(graph, tasks[i]),
                        span.begin_ns, describe(graph, tasks[i - 1]), trace.spans[at - 1].end_ns));
      }
    }
  }
  if (at != trace.spans.size()) {
    add(ErrorCode::plan_mismatch,
        fmt::format("the trace has {} spans, the schedule {} tasks", trace.spans.size(), at));
    return out;
  }

  for (const ConsumedRecord& c : pair_records(trace)) {
    const Span& wait = trace.spans[c.wait];
    if (!c.record) {
      add(ErrorCode::wait_without_record, fmt::format("stream {}: a wait for event {} ended without a record",
                                                      wait.task.stream.index, wait.what.index));
      // A record publishes between its begin and its end, so a wait may end before the record's span does.
    } else if (wait.end_ns < trace.spans[*c.record].begin_ns) {
      add(ErrorCode::race, fmt::format("stream {}: the wait for event {} ends at {} ns, before its record begins at {} ns",
                                       wait.task.stream.index, wait.what.index, wait.end_ns,
                                       trace.spans[*c.record].begin_ns));
    }
  }

  IdVec<NodeId, std::optional<std::size_t>> span_of(graph.node_count());
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    if (trace.spans[i].what.kind == Task::Kind::launch) span_of[trace.spans[i].what.node()] = i;
  }
  const Dependencies dependencies(graph);
  for (const NodeId v : graph.nodes()) {
    if (!span_of[v]) continue;
    for (const NodeId u : dependencies.predecessors(v)) {
      if (!span_of[u]) continue;
      const Span& before = trace.spans[*span_of[u]];
      const Span& after = trace.spans[*span_of[v]];
      if (after.begin_ns < before.end_ns) {
        add(ErrorCode::race, fmt::format("{} on stream {} begins at {} ns, but {} on stream {}, which it needs, ends at {} ns",
                                         graph.name(v), after.task.stream.index, after.begin_ns, graph.name(u),
                                         before.task.stream.index, before.end_ns));
      }
    }
  }
  return out;
}

}  // namespace millstream
