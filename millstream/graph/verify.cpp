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

  for (std::size_t i = 1; i < graph.scope_count(); ++i) {
    const Scope& scope = graph.scope(ScopeId(i));
    if (!scope.parent_node || scope.parent_node->index >= graph.node_count()) {
      bad(fmt::format("scope \"{}\" has no parent node", scope.name));
      return;
    }
    if (scope.parent.index >= i || graph.scope_of(*scope.parent_node) != scope.parent) {
      bad(fmt::format("scope \"{}\" does not stand behind the scope of its parent node \"{}\"", scope.name,
                      graph.name(*scope.parent_node)));
      return;
    }
  }
  for (const NodeId n : graph.nodes()) {
    if (graph.scope_of(n).index >= graph.scope_count()) {
      bad(fmt::format("node \"{}\" is in a scope that does not exist", graph.name(n)));
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

void verify_bodies(const Graph& graph, std::vector<Error>& errors) {
  if (graph.body_count() == 0) return;
  std::vector<bool> is_value(graph.strings().size(), false);  // by StringId
  for (const ValueId v : graph.values()) is_value[graph.strings().find(graph.name(v))->index] = true;
  for (std::size_t i = 0; i < graph.body_count(); ++i) {
    const Graph& body = graph.body(BodyId(i));
    verify_into(body, errors);
    for (const ValueId v : body.values()) {
      if (body.kind(v) != ValueKind::outer) continue;
      const auto id = graph.strings().find(body.name(v));
      if (id && is_value[id->index]) continue;
      errors.push_back(Error{ErrorCode::bad_graph,
                             fmt::format("graph \"{}\": outer value \"{}\" does not exist in the enclosing graph",
                                         body.name(), body.name(v))});
    }
    verify_bodies(body, errors);
  }
}

}  // namespace

std::vector<Error> verify(const Graph& graph) {
  std::vector<Error> errors;
  // A body is finished before its owner exists: its outer values are checked with the owner's verify.
  verify_into(graph, errors);
  verify_bodies(graph, errors);
  return errors;
}

}  // namespace millstream
