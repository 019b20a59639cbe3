// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/task_pairs.h"

#include <algorithm>

#include "millstream/graph/dependencies.h"

namespace millstream {
namespace {

// Clock entries that trying out may touch; a tenth of a second.
constexpr std::uint64_t kWork = 50'000'000;

class Trimmer {
 public:
  Trimmer(const ReduceInput& in, const std::function<bool(const SyncPair&)>& may_go) : in_(in), may_go_(may_go) {}

  Result<std::vector<SyncPair>> run(std::vector<SyncPair> pairs) {
    MST_TRY(const GivenPlan all, explain_given(in_, pairs));
    if (!all.lost.empty()) return pairs;
    std::vector<std::uint8_t> used(all.plan.kept.size(), 0);
    for (const PairId step : all.plan.path_pool) {
      if (step.index < kStartStep) used[step.index] = 1;
    }
    std::vector<SyncPair> kept;
    for (std::size_t i = 0; i < used.size(); ++i) {
      const SyncPair& p = all.plan.kept[i];
      if (p.from != p.to && (used[i] != 0 || !may_go_(p))) kept.push_back(p);
    }
    return try_each(kept);
  }

 private:
  Result<std::vector<SyncPair>> try_each(const std::vector<SyncPair>& pairs) const {
    const std::uint64_t one_run = (in_.graph.node_count() + in_.inserted.sources.size() + pairs.size()) * in_.on.streams.size();
    std::uint64_t tries = kWork / std::max<std::uint64_t>(one_run, 1);
    const std::vector<std::uint8_t> sure = surely_needed(pairs);
    std::vector<SyncPair> left;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (sure[i] == 0 && tries > 0) {
        --tries;
        std::vector<SyncPair> without = left;
        without.insert(without.end(), pairs.begin() + static_cast<std::ptrdiff_t>(i) + 1, pairs.end());
        MST_TRY(const GivenPlan rest, explain_given(in_, without));
        if (rest.lost.empty()) continue;
      }
      left.push_back(pairs[i]);
    }
    return left;
  }

  // Those that may not go, and those whose sender the first node behind the wait that needs anything needs while no
  // other wait stands between: no pair is implied by the others.
  std::vector<std::uint8_t> surely_needed(const std::vector<SyncPair>& pairs) const {
    IdVec<NodeId, std::uint8_t> waits(in_.graph.node_count(), 0);
    for (const SyncPair& p : pairs) waits[p.to] = 1;
    IdVec<NodeId, std::optional<NodeId>> next(in_.graph.node_count());
    std::vector<std::optional<NodeId>> behind(in_.on.streams.size());
    const std::vector<NodeId>& order = in_.graph.order();
    for (std::size_t i = order.size(); i-- > 0;) {
      const NodeId n = order[i];
      if (!in_.on.placement[n]) continue;
      std::optional<NodeId>& later = behind[in_.on.placement[n]->stream.index];
      if (!in_.inserted.of(n).empty()) later = n;
      next[n] = later;
      if (waits[n] != 0) later.reset();
    }
    std::vector<std::uint8_t> out;
    for (const SyncPair& p : pairs) {
      bool sure = !may_go_(p);
      if (!sure && next[p.to]) {
        const auto needs = in_.inserted.of(*next[p.to]);
        sure = std::any_of(needs.begin(), needs.end(), [&](const ForeignSource& s) { return s.node() == p.from; });
      }
      out.push_back(sure ? 1 : 0);
    }
    return out;
  }

  const ReduceInput& in_;
  const std::function<bool(const SyncPair&)>& may_go_;
};

}  // namespace

IdVec<NodeId, std::uint8_t> nodes_with_task(const Graph& graph, const Activation& activation) {
  const TaskNodes emits(graph);
  IdVec<NodeId, std::uint8_t> out(graph.node_count(), 0);
  for (const NodeId n : graph.nodes()) out[n] = emits(n) && graph.type(n) != "StreamActive" ? 1 : 0;
  for (const Activator& a : activation.activators) out[a.node] = 1;
  return out;
}

Insertion task_pairs(const Graph& graph, const StreamAssignment& on, const StreamAssignment& lanes, const Activation& activation,
                     const ControlFlow& flow, const IdVec<NodeId, std::uint8_t>& tasks) {
  StreamAssignment running = on;
  for (const NodeId n : graph.nodes()) {
    if (tasks[n] == 0) running.placement[n].reset();
  }
  std::vector<SyncPair> extra = scope_pairs(graph, running, activation, flow);
  const Dependencies direct(graph);
  IdVec<NodeId, std::vector<NodeId>> through(graph.node_count());  // of nodes without a task
  Insertion out;
  std::vector<std::vector<ForeignSource>> of(graph.node_count());
  const auto lower_end = [](const SyncPair& p, NodeId k) { return p.to < k; };
  for (const NodeId n : graph.order()) {
    std::vector<NodeId> sources;
    for (const NodeId p : direct.predecessors(n)) {
      if (is_enter(graph.type(p)) && graph.type(n) != "StreamActive") continue;
      if (running.placement[p]) {
        sources.push_back(p);
      } else {
        sources.insert(sources.end(), through[p].begin(), through[p].end());
      }
    }
    for (auto e = std::lower_bound(extra.begin(), extra.end(), n, lower_end); e != extra.end() && e->to == n; ++e) {
      if (running.placement[e->from]) {
        sources.push_back(e->from);
      } else {
        sources.insert(sources.end(), through[e->from].begin(), through[e->from].end());
      }
    }
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    if (!running.placement[n]) {
      through[n] = std::move(sources);
      continue;
    }
    for (const NodeId p : sources) {
      if (lanes.placement[p]->stream != lanes.placement[n]->stream) of[n.index].push_back({p, PairReason::data});
    }
  }
  out.begin.push_back(0);
  for (const NodeId n : graph.nodes()) {
    out.sources.insert(out.sources.end(), of[n.index].begin(), of[n.index].end());
    out.begin.push_back(static_cast<std::uint32_t>(out.sources.size()));
  }
  return out;
}

Result<std::vector<SyncPair>> without_idle_pairs(const ReduceInput& in, std::vector<SyncPair> pairs, const std::function<bool(const SyncPair&)>& may_go) {
  if (std::none_of(pairs.begin(), pairs.end(), may_go)) return pairs;
  return Trimmer(in, may_go).run(std::move(pairs));
}

}  // namespace millstream
