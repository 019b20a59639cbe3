// SPDX-License-Identifier: Apache-2.0
// single: everything on stream 0. A label asks for the opposite, so it is refused, not dropped.
#include <fmt/format.h>

#include "millstream/assign/estimate.h"
#include "millstream/assign/rules.h"

namespace millstream {
namespace {

std::uint32_t best_threads(const Graph& graph, const Target& target) {
  const TaskGraph tasks(graph);
  const WorkTable work = work_of(graph, target);
  return best_one_stream(tasks, work, target, std::nullopt).threads_per_op;
}

void all_on_one(const Graph& graph, StreamAssignment& on) {
  const TaskTypes emits(graph);
  for (const NodeId n : graph.nodes()) {
    if (!emits(n)) continue;
    if (on.streams.empty()) on.new_stream();  // a graph without tasks has no stream
    on.placement[n] = Placement{StreamId(0), RuleId()};
  }
}

}  // namespace

Error label_on_one_stream(const Graph& graph, NodeId n, bool user, std::string_view label, const AssignOptions& options) {
  Error error{ErrorCode::conflict,
              fmt::format("{} label \"{}\" on {} conflicts with single-stream mode", user ? "user stream" : "stream", label, graph.name(n))};
  if (const auto where = graph.where(n)) {
    error.at(*where);
  } else {
    error.note(fmt::format("{} of type {} carries the label", graph.name(n), graph.type(n)));
  }
  const bool option = options.single_stream;
  return std::move(error)
      .note(fmt::format("single-stream mode was set by {}", option ? "single_stream=true" : "strategy single"))
      .help(fmt::format("drop the label, or {}", option ? "set single_stream=false" : "take another strategy"));
}

Result<StreamAssignment> assign_single(const RuleInput& in, StreamAssignment on) {
  const Graph& graph = in.graph;
  const Annotations& notes = graph.annotations();
  if (!notes.label.empty() || !notes.user_label.empty()) {
    for (const NodeId n : graph.order()) {
      const auto& user_note = notes.user_label.get(n);
      const bool user = user_note && !graph.text(*user_note).empty();
      const auto& label = user ? user_note : notes.label.get(n);
      if (!label || graph.text(*label).empty()) continue;
      return label_on_one_stream(graph, n, user, graph.text(*label), in.options);
    }
  }
  all_on_one(graph, on);
  on.threads_per_op = in.options.threads_per_op.value_or(best_threads(graph, in.target));
  return on;
}

StreamAssignment one_stream(const Graph& graph, const Target& target, std::uint32_t threads_per_op) {
  StreamAssignment on;
  on.placement = IdVec<NodeId, std::optional<Placement>>(graph.node_count());
  on.rules.push_back("single");
  on.reasons.push_back("one stream for everything: the baseline, labels ignored");
  on.threads_per_op = threads_per_op;
  all_on_one(graph, on);
  on.estimate = estimate(graph, target, on);
  return on;
}

}  // namespace millstream
