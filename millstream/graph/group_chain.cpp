// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/group_chain.h"

#include <algorithm>
#include <map>
#include <set>

#include "millstream/graph/dependencies.h"

namespace millstream {
namespace {

/// One side of a conditional that a node stands in.
struct Side {
  NodeId feeder;  // makes what the switch tests: alternatives have one feeder
  NodeId branch;  // the StreamSwitch
  std::size_t size = 0;  // nodes on this side; a side inside another is smaller
};

class Conditionals {
 public:
  Conditionals(const Graph& graph, const Dependencies& deps) : deps_(deps), sides_(graph.node_count()) {
    std::vector<std::uint32_t> place(graph.node_count());
    for (std::size_t i = 0; i < graph.order().size(); ++i) place[graph.order()[i].index] = static_cast<std::uint32_t>(i);
    for (const NodeId n : graph.nodes()) {
      if (graph.type(n) != "StreamSwitch") continue;
      const auto in = graph.inputs(n).empty() ? std::nullopt : graph.inputs(n)[0].get();
      const auto feeder = in ? graph.producer(*in) : std::nullopt;
      walk(graph, n, feeder.value_or(n), place);
    }
    for (const NodeId n : graph.nodes()) {
      std::sort(sides_[n].begin(), sides_[n].end(), [](const Side& a, const Side& b) { return a.size != b.size ? a.size > b.size : a.branch < b.branch; });
    }
  }

  /// Outermost first.
  const std::vector<Side>& sides(NodeId n) const { return sides_[n]; }
  std::optional<NodeId> last_merge(NodeId feeder) const {
    const auto found = merges_.find(feeder);
    return found == merges_.end() ? std::nullopt : std::optional<NodeId>(found->second);
  }

 private:
  // Everything behind the switch up to the merge that closes it; inner switches are closed by their own.
  void walk(const Graph& graph, NodeId start, NodeId feeder, const std::vector<std::uint32_t>& place) {
    std::set<std::pair<NodeId, int>> seen;
    std::vector<std::pair<NodeId, int>> stack = {{start, 0}};
    std::set<NodeId> inside;
    while (!stack.empty()) {
      const auto [n, depth] = stack.back();
      stack.pop_back();
      const int below = depth + (graph.type(n) == "StreamSwitch" ? 1 : graph.type(n) == "StreamMerge" ? -1 : 0);
      if (below == 0) {
        const auto [at, fresh] = merges_.emplace(feeder, n);
        if (!fresh && place[n.index] > place[at->second.index]) at->second = n;
        continue;
      }
      if (n != start) inside.insert(n);
      for (const NodeId s : deps_.successors(n)) {
        if (graph.scope_of(s) == graph.scope_of(start) && seen.insert({s, below}).second) stack.push_back({s, below});
      }
    }
    for (const NodeId n : inside) sides_[n].push_back({feeder, start, inside.size()});
  }

  const Dependencies& deps_;
  IdVec<NodeId, std::vector<Side>> sides_;
  std::map<NodeId, NodeId> merges_;  // by feeder
};

// The edge that puts `to` behind `from`, seen from the innermost place that both share.
std::optional<ControlEdge> edge_between(const Conditionals& conditionals, NodeId from, NodeId to) {
  const auto& a = conditionals.sides(from);
  const auto& b = conditionals.sides(to);
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i].branch == b[i].branch) ++i;
  if (i < a.size() && i < b.size() && a[i].feeder == b[i].feeder) return std::nullopt;  // alternatives
  const auto source = i < a.size() ? conditionals.last_merge(a[i].feeder) : std::optional<NodeId>(from);
  const NodeId target = i < b.size() ? b[i].feeder : to;
  if (!source || *source == target) return std::nullopt;
  return ControlEdge{*source, target};
}

}  // namespace

std::vector<ControlEdge> group_chain(const Graph& graph) {
  std::map<std::pair<ScopeId, std::string_view>, std::vector<NodeId>> groups;
  for (const NodeId n : graph.order()) {
    const auto& group = graph.annotations().parallel_group.get(n);
    if (group && !graph.text(*group).empty() && !graph.scope(graph.scope_of(n)).dynamic) groups[{graph.scope_of(n), graph.text(*group)}].push_back(n);
  }
  std::vector<ControlEdge> edges;
  if (std::none_of(groups.begin(), groups.end(), [](const auto& g) { return g.second.size() > 1; })) return edges;
  const Dependencies deps(graph);
  const Conditionals conditionals(graph, deps);
  std::map<NodeId, std::vector<NodeId>> added;
  const auto reaches = [&](NodeId from, NodeId to) {
    std::vector<bool> seen(graph.node_count(), false);
    std::vector<NodeId> stack = {from};
    while (!stack.empty()) {
      const NodeId n = stack.back();
      stack.pop_back();
      if (n == to) return true;
      if (seen[n.index]) continue;
      seen[n.index] = true;
      const auto next = deps.successors(n);
      stack.insert(stack.end(), next.begin(), next.end());
      if (const auto more = added.find(n); more != added.end()) stack.insert(stack.end(), more->second.begin(), more->second.end());
    }
    return false;
  };
  std::vector<std::uint32_t> place(graph.node_count());
  for (std::size_t i = 0; i < graph.order().size(); ++i) place[graph.order()[i].index] = static_cast<std::uint32_t>(i);
  for (const auto& [key, members] : groups) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      // Behind an alternative the chain goes on from the last member that is none.
      for (std::size_t j = i; j-- > 0;) {
        const auto edge = edge_between(conditionals, members[j], members[i]);
        if (!edge) continue;
        const auto known = deps.successors(edge->from);
        const bool there = std::binary_search(known.begin(), known.end(), edge->to) ||
                           std::find(edges.begin(), edges.end(), *edge) != edges.end();
        // Forward in an order that respects the edges, nothing can close a cycle, unless an edge went back.
        const bool safe = place[edge->from.index] < place[edge->to.index] && added.empty();
        if (!there && (safe || !reaches(edge->to, edge->from))) {
          edges.push_back(*edge);
          if (place[edge->from.index] > place[edge->to.index]) added[edge->from].push_back(edge->to);
        }
        break;
      }
    }
  }
  return edges;
}

}  // namespace millstream
