// SPDX-License-Identifier: Apache-2.0
// by-label: one stream a label, in order of first appearance in execution order. A user label wins over a
// stream label; the two name spaces never meet. The smallest of a user label's priorities counts.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/rules.h"
#include "millstream/assign/tasks.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

bool has_labels(const Graph& graph) {
  return !graph.annotations().label.empty() || !graph.annotations().user_label.empty();
}

// Nodes of nested graphs run inside their node: a label there asks for what cannot happen.
void warn_of_nested(const Graph& graph, const std::string& path, StreamAssignment& on) {
  for (const NodeId n : graph.nodes()) {
    for (const Body& b : graph.bodies(n)) {
      const Graph& body = graph.body(b.body);
      const std::string inner = fmt::format("{}{}.{}", path, graph.name(n), b.attribute);
      for (const NodeId m : body.nodes()) {
        const auto& user_note = body.annotations().user_label.get(m);
        const auto& label = user_note && !body.text(*user_note).empty() ? user_note : body.annotations().label.get(m);
        if (!label || body.text(*label).empty()) continue;
        on.warnings.push_back(
            Error{ErrorCode::no_effect, fmt::format("label \"{}\" on {} in {} has no effect",
                                                    body.text(*label), body.name(m), inner)}
                .note("a nested graph runs as one task, on the stream of the node that holds it")
                .help(fmt::format("label {} instead; strategy ge makes nested graphs device tasks, whose labels count", graph.name(n))));
        break;
      }
      if (body.body_count() != 0) warn_of_nested(body, inner + "/", on);
    }
  }
}

}  // namespace

Result<StreamAssignment> assign_by_label(const RuleInput& in, StreamAssignment on) {
  const Graph& graph = in.graph;
  if (graph.body_count() != 0) warn_of_nested(graph, "", on);
  if (!has_labels(graph)) return on;
  const Annotations& notes = graph.annotations();
  const TaskTypes emits(graph);
  // Stream of each label, by interned text; one table a name space.
  std::vector<std::uint32_t> user_stream(graph.strings().size(), kNone);
  std::vector<std::uint32_t> label_stream(graph.strings().size(), kNone);
  IdVec<StreamId, std::optional<NodeId>> priority_from(on.streams.size());
  for (const NodeId n : graph.order()) {
    const auto& user_note = notes.user_label.get(n);
    const bool user = user_note && !graph.text(*user_note).empty();
    const auto& label = user ? user_note : notes.label.get(n);
    if (!label || graph.text(*label).empty() || !emits(n)) continue;
    std::uint32_t& stream = (user ? user_stream : label_stream)[label->index];
    if (stream == kNone) {
      StreamInfo info;
      info.label = std::string(graph.text(*label));
      info.user = user;
      stream = on.new_stream(std::move(info)).index;
      priority_from.push_back(std::nullopt);
    }
    const StreamId s(stream);
    on.placement[n] = Placement{s, RuleId()};
    const auto& priority = notes.priority.get(n);
    if (!user || !priority) continue;
    StreamInfo& info = on.streams[s];
    if (priority_from[s] && info.priority != *priority) {
      on.warnings.push_back(Error{
          ErrorCode::conflict,
          fmt::format("user label \"{}\" has two priorities: {} on {} and {} on {}; {}, the more urgent, counts",
                      graph.text(*label), info.priority, graph.name(*priority_from[s]), *priority, graph.name(n),
                      std::min(info.priority, *priority))}
                                .help("give every node of a label the same priority"));
    }
    if (!priority_from[s] || *priority < info.priority) {
      info.priority = *priority;
      priority_from[s] = n;
    }
  }
  return on;
}

}  // namespace millstream
