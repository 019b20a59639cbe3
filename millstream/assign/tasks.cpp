// SPDX-License-Identifier: Apache-2.0
#include "millstream/assign/tasks.h"

#include <algorithm>

#include "millstream/ops/op.h"

namespace millstream {
namespace {

constexpr std::uint8_t kUnasked = 2;

}  // namespace

TaskTypes::TaskTypes(const Graph& graph) : graph_(graph), by_type_(graph.strings().size(), kUnasked) {
  for (const NodeId n : graph.nodes()) {
    std::uint8_t& emits = by_type_[graph.type_id(n).index];
    if (emits != kUnasked) continue;
    const OpSchema* op = find_op(graph.type(n));
    emits = op != nullptr && op->no_task ? 0 : 1;
    all_ = all_ && emits == 1;
  }
}

TaskNodes::TaskNodes(const Graph& graph) : emits_(graph) {
  if (graph.scope_count() == 1 || graph.annotations().roles.empty()) return;
  by_scopes_ = IdVec<NodeId, std::uint8_t>(graph.node_count(), 0);
  for (const NodeId n : graph.nodes()) {
    const auto& roles = graph.annotations().roles.get(n);
    if (!roles || !roles->first_active) continue;
    if (const auto owner = graph.scope(graph.scope_of(n)).parent_node) by_scopes_[*owner] = 1;
  }
}

TaskGraph::TaskGraph(const Graph& graph) : direct_(graph), order_(graph.order()), place_(graph.node_count()) {
  for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = static_cast<std::uint32_t>(i);
  const TaskTypes emits(graph);
  if (emits.all()) return;
  is_task_ = IdVec<NodeId, std::uint8_t>(graph.node_count());
  for (const NodeId n : graph.nodes()) is_task_[n] = emits(n) ? 1 : 0;
  contract();
}

// A node's task predecessors are its own and, through each predecessor without a task, that one's.
void TaskGraph::contract() {
  const std::size_t n = node_count();
  std::vector<std::vector<NodeId>> through(n);  // of nodes without a task only
  std::vector<std::vector<NodeId>> preds(n);
  for (const NodeId v : order_) {
    std::vector<NodeId> list;
    for (const NodeId p : direct_.predecessors(v)) {
      if (is_task_[p]) {
        list.push_back(p);
      } else {
        list.insert(list.end(), through[p.index].begin(), through[p.index].end());
      }
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    (is_task_[v] ? preds : through)[v.index] = std::move(list);
  }
  pred_begin_.assign(1, 0);
  succ_begin_.assign(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    pred_.insert(pred_.end(), preds[i].begin(), preds[i].end());
    pred_begin_.push_back(static_cast<std::uint32_t>(pred_.size()));
    for (const NodeId p : preds[i]) ++succ_begin_[p.index + 1];
  }
  for (std::size_t i = 0; i < n; ++i) succ_begin_[i + 1] += succ_begin_[i];
  succ_.resize(pred_.size());
  std::vector<std::uint32_t> next(succ_begin_.begin(), succ_begin_.end() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    for (const NodeId p : preds[i]) succ_[next[p.index]++] = NodeId(i);
  }
  order_.erase(std::remove_if(order_.begin(), order_.end(), [&](NodeId v) { return !is_task_[v]; }),
               order_.end());
}

}  // namespace millstream
