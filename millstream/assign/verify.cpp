// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "millstream/assign/assignment.h"
#include "millstream/assign/tasks.h"

namespace millstream {

std::uint32_t StreamAssignment::attached_count() const {
  std::uint32_t count = 0;
  for (const StreamInfo& s : streams) count += s.attached ? 1 : 0;
  return count;
}

std::uint32_t StreamAssignment::stream_count() const {
  return streams.empty() ? 1 : static_cast<std::uint32_t>(streams.size());
}

std::vector<Error> verify(const Graph& graph, const StreamAssignment& on) {
  std::vector<Error> out;
  const auto add = [&](ErrorCode code, std::string message) { out.push_back(Error{code, std::move(message)}); };
  if (on.placement.size() != graph.node_count()) {
    add(ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on.placement.size(),
                                              graph.node_count()));
    return out;
  }
  if (on.threads_per_op == 0) add(ErrorCode::bad_option, "0 threads an operator");
  if (on.reasons.size() != on.rules.size()) {
    add(ErrorCode::internal, fmt::format("{} rules but {} reasons", on.rules.size(), on.reasons.size()));
  }
  const TaskTypes emits(graph);
  IdVec<StreamId, std::uint32_t> nodes_on(on.streams.size(), 0);
  for (const NodeId n : graph.nodes()) {
    const auto& p = on.placement[n];
    if (!p) {
      if (emits(n) && !on.skips_engines) {
        add(ErrorCode::no_stream, fmt::format("node {} of type {} has no stream", graph.name(n), graph.type(n)));
      }
      continue;
    }
    if (p->stream.index >= on.streams.size()) {
      add(ErrorCode::no_stream, fmt::format("node {} is on stream {}, but there are {} streams", graph.name(n),
                                            p->stream.index, on.streams.size()));
      continue;
    }
    ++nodes_on[p->stream];
    if (p->decided_by.index >= on.rules.size()) {
      add(ErrorCode::internal, fmt::format("node {} was placed by rule {}, but there are {} rules", graph.name(n),
                                           p->decided_by.index, on.rules.size()));
    }
  }
  for (const NodeId n : graph.nodes()) {
    const auto& list = on.attached.get(n);
    if (!list) continue;
    for (const StreamId s : *list) {
      if (s.index >= on.streams.size() || !on.streams[s].attached) {
        add(ErrorCode::no_stream, fmt::format("node {} is attached to stream {}, which is no attached stream",
                                              graph.name(n), s.index));
      } else {
        ++nodes_on[s];
      }
    }
  }
  for (const StreamId s : ids<StreamId>(on.streams.size())) {
    if (nodes_on[s] == 0) {
      add(ErrorCode::no_stream, fmt::format("stream {} has no node: ids are not dense", s.index));
    }
  }
  return out;
}

}  // namespace millstream
