// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/dependencies.h"

#include <algorithm>

namespace millstream {
namespace {

// By parent node: the nodes that close its scopes.
std::vector<std::vector<NodeId>> end_nodes(const Graph& graph) {
  std::vector<std::vector<NodeId>> ends(graph.node_count());
  const std::size_t scopes = graph.scope_count();
  std::vector<std::optional<NodeId>> marked(scopes), net_output(scopes);
  for (const NodeId n : graph.nodes()) {
    const ScopeId s = graph.scope_of(n);
    const auto& roles = graph.annotations().roles.get(n);
    if (roles && roles->end_node && !marked[s.index]) marked[s.index] = n;
    if (graph.type(n) == "NetOutput") net_output[s.index] = n;
  }
  for (std::size_t s = 1; s < scopes; ++s) {
    const auto& end = marked[s] ? marked[s] : net_output[s];
    if (end) ends[graph.scope(ScopeId(s)).parent_node->index].push_back(*end);
  }
  return ends;
}

// Whether a scope runs inside a node, which then has not ended.
bool owns(const Graph& graph, NodeId n, ScopeId scope) {
  for (; scope.index != 0; scope = graph.scope(scope).parent) {
    if (graph.scope(scope).parent_node == n) return true;
  }
  return false;
}

}  // namespace

Dependencies::Dependencies(const Graph& graph) {
  const std::size_t n = graph.node_count();
  // Control edges by target: offsets, then one pass.
  std::vector<std::uint32_t> control_begin(n + 1, 0);
  for (const ControlEdge& e : graph.control_edges()) ++control_begin[e.to.index + 1];
  for (std::size_t i = 0; i < n; ++i) control_begin[i + 1] += control_begin[i];
  std::vector<NodeId> control(graph.control_edges().size());
  {
    std::vector<std::uint32_t> next(control_begin.begin(), control_begin.end() - 1);
    for (const ControlEdge& e : graph.control_edges()) control[next[e.to.index]++] = e.from;
  }

  const bool scoped = graph.scope_count() > 1;
  const std::vector<std::vector<NodeId>> ends = scoped ? end_nodes(graph) : std::vector<std::vector<NodeId>>();

  pred_begin_.reserve(n + 1);
  pred_begin_.push_back(0);
  for (const NodeId node : graph.nodes()) {
    const std::size_t first = pred_.size();
    const auto add = [&](ValueId v) {
      if (const auto p = graph.producer(v)) pred_.push_back(*p);
    };
    for (const InputRef in : graph.inputs(node)) {
      if (const auto v = in.get()) add(*v);
    }
    if (graph.body_count() != 0) {
      for (const ValueId v : graph.captures(node)) add(v);
    }
    for (std::uint32_t i = control_begin[node.index]; i < control_begin[node.index + 1]; ++i) {
      pred_.push_back(control[i]);
    }
    if (scoped) {
      const ScopeId here = graph.scope_of(node);
      bool entered = here.index == 0;
      const std::size_t direct = pred_.size();
      for (std::size_t i = first; i < direct; ++i) {
        entered = entered || graph.scope_of(pred_[i]) == here;
        if (ends[pred_[i].index].empty() || owns(graph, pred_[i], here)) continue;
        pred_.insert(pred_.end(), ends[pred_[i].index].begin(), ends[pred_[i].index].end());
      }
      if (!entered) pred_.push_back(*graph.scope(here).parent_node);
    }
    std::sort(pred_.begin() + static_cast<std::ptrdiff_t>(first), pred_.end());
    pred_.erase(std::unique(pred_.begin() + static_cast<std::ptrdiff_t>(first), pred_.end()), pred_.end());
    pred_begin_.push_back(static_cast<std::uint32_t>(pred_.size()));
  }

  succ_begin_.assign(n + 1, 0);
  for (const NodeId p : pred_) ++succ_begin_[p.index + 1];
  for (std::size_t i = 0; i < n; ++i) succ_begin_[i + 1] += succ_begin_[i];
  succ_.resize(pred_.size());
  std::vector<std::uint32_t> next(succ_begin_.begin(), succ_begin_.end() - 1);
  for (const NodeId node : graph.nodes()) {
    for (const NodeId p : predecessors(node)) succ_[next[p.index]++] = node;
  }
}

}  // namespace millstream
