// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/dependencies.h"

#include <algorithm>

namespace millstream {

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
