// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/graph.h"

namespace millstream {
namespace {

void verify_into(const Graph& graph, std::vector<Error>& errors) {
  const auto bad = [&](std::string message) {
    errors.push_back(Error{ErrorCode::bad_graph, fmt::format("graph \"{}\": {}", graph.name(), message)});
  };

  // Names are interned, so a bit per string tells a repeat.
  std::vector<bool> seen(graph.strings().size(), false);
  for (const NodeId n : graph.nodes()) {
    const auto id = graph.strings().find(graph.name(n));
    if (graph.name(n).empty()) {
      bad(fmt::format("node {} of type {} has no name", n.index, graph.type(n)));
    } else if (seen[id->index]) {
      bad(fmt::format("two nodes are named \"{}\"", graph.name(n)));
    }
    seen[id->index] = true;
  }
  std::fill(seen.begin(), seen.end(), false);
  for (const ValueId v : graph.values()) {
    if (graph.name(v).empty()) continue;  // an output left out
    const auto id = graph.strings().find(graph.name(v));
    if (seen[id->index]) bad(fmt::format("two values are named \"{}\"", graph.name(v)));
    seen[id->index] = true;
  }

  for (const ValueId v : graph.outputs()) {
    if (v.index >= graph.value_count()) {
      bad("an output does not exist");
      return;
    }
  }

  if (graph.order().size() != graph.node_count()) {
    bad(fmt::format("the order lists {} of {} nodes", graph.order().size(), graph.node_count()));
    return;
  }
  constexpr std::uint32_t kUnset = 0xffffffffu;
  std::vector<std::uint32_t> position(graph.node_count(), kUnset);
  for (std::size_t i = 0; i < graph.order().size(); ++i) {
    const NodeId n = graph.order()[i];
    if (n.index >= graph.node_count() || position[n.index] != kUnset) {
      bad("the order is not a permutation of the nodes");
      return;
    }
    position[n.index] = static_cast<std::uint32_t>(i);
  }
  if (!graph.order_is_fixed()) {
    const Dependencies deps(graph);
    for (const NodeId n : graph.nodes()) {
      for (const NodeId p : deps.predecessors(n)) {
        if (position[p.index] >= position[n.index]) {
          bad(fmt::format("the order puts \"{}\" before \"{}\", which it depends on", graph.name(n),
                          graph.name(p)));
        }
      }
    }
  }
}

// `scope` holds the value names visible from outside, innermost last.
void verify_scoped(const Graph& graph, std::vector<const Graph*>& scope, std::vector<Error>& errors) {
  verify_into(graph, errors);
  for (const ValueId v : graph.values()) {
    if (graph.kind(v) != ValueKind::outer) continue;
    if (!scope.empty() && scope.back()->find_value(graph.name(v))) continue;
    errors.push_back(Error{ErrorCode::bad_graph,
                           fmt::format("graph \"{}\": outer value \"{}\" does not exist in the enclosing graph",
                                       graph.name(), graph.name(v))});
  }
  scope.push_back(&graph);
  for (std::size_t i = 0; i < graph.body_count(); ++i) verify_scoped(graph.body(BodyId(i)), scope, errors);
  scope.pop_back();
}

}  // namespace

std::vector<Error> verify(const Graph& graph) {
  std::vector<Error> errors;
  std::vector<const Graph*> scope;
  // A body is finished before its owner exists: its outer values are checked with the owner's verify.
  verify_into(graph, errors);
  for (std::size_t i = 0; i < graph.body_count(); ++i) {
    scope.assign(1, &graph);
    verify_scoped(graph.body(BodyId(i)), scope, errors);
  }
  return errors;
}

}  // namespace millstream
