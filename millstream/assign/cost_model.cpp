// SPDX-License-Identifier: Apache-2.0
#include "millstream/assign/cost_model.h"

#include <algorithm>
#include <cmath>

#include "millstream/ops/op.h"

namespace millstream {
namespace {

// Flops and bytes of a node without its nested graphs. Neighbours of one type often have the same
// descs (which are interned, so equal addresses mean equal descs); without attributes their cost is equal.
class CostReader {
 public:
  explicit CostReader(const Graph& graph) : graph_(graph), last_(graph.strings().size(), kNone) {}

  std::optional<OpCost> operator()(NodeId n) {
    if (!graph_.attrs(n).empty() || !graph_.bodies(n).empty()) return ask(n);
    std::uint32_t& last = last_[graph_.type_id(n).index];
    if (last == kNone || !alike(NodeId(last), n)) {
      last = n.index;
      if (cost_.size() <= graph_.type_id(n).index) cost_.resize(graph_.type_id(n).index + 1);
      cost_[graph_.type_id(n).index] = ask(n);
    }
    return cost_[graph_.type_id(n).index];
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  std::optional<OpCost> ask(NodeId n) const {
    const Attrs& own = graph_.attrs(n);
    if (own.has("_flops") || own.has("_bytes")) {
      return OpCost{static_cast<double>(own.get_int("_flops", 0)), static_cast<double>(own.get_int("_bytes", 0))};
    }
    const OpSchema* op = find_op(graph_.type(n));
    if (op != nullptr && (op->view || op->no_task)) return OpCost{};
    return cost_of(graph_, n);
  }

  bool alike(NodeId a, NodeId b) const {
    const auto in_a = graph_.inputs(a), in_b = graph_.inputs(b);
    const auto out_a = graph_.outputs(a), out_b = graph_.outputs(b);
    if (in_a.size() != in_b.size() || out_a.size() != out_b.size()) return false;
    for (std::size_t i = 0; i < in_a.size(); ++i) {
      if (in_a[i].absent() != in_b[i].absent()) return false;
      if (!in_a[i].absent() && &graph_.desc(*in_a[i].get()) != &graph_.desc(*in_b[i].get())) return false;
    }
    for (std::size_t i = 0; i < out_a.size(); ++i) {
      if (&graph_.desc(out_a[i]) != &graph_.desc(out_b[i])) return false;
    }
    return true;
  }

  const Graph& graph_;
  std::vector<std::uint32_t> last_;  // by type: the node last asked
  std::vector<std::optional<OpCost>> cost_;
};

bool finite(double x) { return std::isfinite(x) && x >= 0; }

}  // namespace

WorkTable work_of(const Graph& graph, const Target& target) {
  const Costs& costs = target.costs;
  const bool shapes_matter =
      std::isfinite(costs.flops_per_us) || std::isfinite(costs.bytes_per_us) || std::isfinite(costs.total_bytes_per_us);
  WorkTable table;
  table.nodes = IdVec<NodeId, NodeWork>(graph.node_count());
  CostReader reader(graph);
  const auto& given = graph.annotations().cost;
  for (const NodeId n : graph.nodes()) {
    NodeWork& w = table.nodes[n];
    if (const auto& cost = given.get(n)) {
      w.fixed_us = finite(*cost) ? *cost : 0;
      continue;
    }
    w.fixed_us = costs.launch_us;
    if (graph.body_count() != 0 && !graph.bodies(n).empty()) {
      for (const Body& b : graph.bodies(n)) {
        const WorkTable inner = work_of(graph.body(b.body), target);
        for (const NodeWork& x : inner.nodes) {
          w.fixed_us += x.fixed_us;
          w.compute_us += x.compute_us;
          w.bytes += x.bytes;
        }
        table.unknown += inner.unknown;
      }
      continue;
    }
    if (!shapes_matter) continue;
    const std::optional<OpCost> cost = reader(n);
    if (!cost || !finite(cost->flops) || !finite(cost->bytes)) {
      ++table.unknown;
      continue;
    }
    w.compute_us = cost->flops / costs.flops_per_us;
    w.bytes = cost->bytes;
  }
  return table;
}

double duration_us(const NodeWork& w, const Costs& costs, std::uint32_t threads) {
  const double memory = w.bytes / costs.bytes_per_us;
  const double floor = w.bytes / costs.total_bytes_per_us;
  const double alone = std::max({w.compute_us, memory, floor});
  if (threads <= 1) return w.fixed_us + alone;
  const double scale = (1 - costs.parallel_share) + costs.parallel_share / threads;
  const double shared = std::max({w.compute_us * scale, memory * scale, floor}) + costs.parallel_us;
  return w.fixed_us + std::min(alone, shared);
}

IdVec<NodeId, double> durations_us(const Graph& graph, const Target& target, std::uint32_t threads) {
  const WorkTable table = work_of(graph, target);
  IdVec<NodeId, double> out(graph.node_count());
  for (const NodeId n : graph.nodes()) out[n] = duration_us(table.nodes[n], target.costs, threads);
  return out;
}

}  // namespace millstream
