// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/needed_cuts.h"

#include <algorithm>
#include <set>

#include "millstream/sync/conditions.h"
#include "millstream/sync/control.h"
#include "millstream/sync/reduce.h"
#include "millstream/sync/task_pairs.h"

namespace millstream {
namespace {

StreamAssignment on_pieces(const StartInput& in, const Starts& starts) {
  StreamAssignment out = in.on;
  while (out.streams.size() < starts.streams) out.new_stream();
  PieceWalk pieces(in.on, in.splitting);
  for (const NodeId n : in.graph.order()) {
    if (in.on.placement[n]) out.placement[n]->stream = StreamId(pieces.next(n));
  }
  return out;
}

Activation of_pieces(const Starts& starts) {
  Activation out;
  out.started_by = IdVec<StreamId, std::vector<NodeId>>(starts.streams);
  const auto add = [&](Activator a, const std::vector<std::uint32_t>& streams) {
    for (const std::uint32_t s : streams) {
      a.streams.push_back(StreamId(s));
      if (!a.loop) out.started_by[StreamId(s)].push_back(a.node);
    }
    out.activators.push_back(std::move(a));
  };
  for (const StartList& list : starts.lists) add({list.node, {}, list.loop}, list.streams);
  for (const RelayStream& relay : starts.relays) add({relay.switch_node, {}}, relay.targets);
  for (auto& by : out.started_by) {
    std::sort(by.begin(), by.end());
    by.erase(std::unique(by.begin(), by.end()), by.end());
  }
  return out;
}

Insertion listed(const Graph& graph, std::vector<SyncPair> pairs, const std::vector<NodeId>& walk) {
  const auto same = [](const SyncPair& a, const SyncPair& b) { return a.from == b.from && a.to == b.to; };
  std::stable_sort(pairs.begin(), pairs.end(), [](const SyncPair& a, const SyncPair& b) { return a.to != b.to ? a.to < b.to : a.from < b.from; });
  pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
  Insertion out;
  out.walk = walk;
  std::size_t next = 0;
  out.begin.push_back(0);
  for (const NodeId n : graph.nodes()) {
    for (; next < pairs.size() && pairs[next].to == n; ++next) out.sources.push_back({pairs[next].from, PairReason::control});
    out.begin.push_back(static_cast<std::uint32_t>(out.sources.size()));
  }
  return out;
}

std::set<std::pair<NodeId, NodeId>> ends_of(const std::vector<SyncPair>& pairs) {
  std::set<std::pair<NodeId, NodeId>> out;
  for (const SyncPair& p : pairs) out.insert({p.from, p.to});
  return out;
}

std::vector<SyncPair> between_streams(const std::vector<SyncPair>& kept) {
  std::vector<SyncPair> out;
  std::copy_if(kept.begin(), kept.end(), std::back_inserter(out), [](const SyncPair& p) { return p.from != p.to; });
  return out;
}

// What tasks need of tasks on other pieces: also the order of their own stream across its cuts.
std::vector<SyncPair> task_needs(const StartInput& in, const StreamAssignment& pieces, const ControlFlow& flow, const IdVec<NodeId, std::uint8_t>& tasks) {
  std::vector<SyncPair> out;
  const Insertion direct = task_pairs(in.graph, in.on, pieces, in.activation, flow, tasks);
  std::vector<std::optional<NodeId>> last(in.on.streams.size());
  for (const NodeId n : in.graph.order()) {
    if (!in.on.placement[n] || tasks[n] == 0) continue;
    for (const ForeignSource& s : direct.of(n)) out.push_back({s.node(), n});
    std::optional<NodeId>& before = last[in.on.placement[n]->stream.index];
    if (before && pieces.placement[*before]->stream != pieces.placement[n]->stream) out.push_back({*before, n});
    before = n;
  }
  return out;
}

}  // namespace

Result<std::vector<SyncPair>> needed_cuts(const StartInput& in, const Starts& starts, const std::vector<SyncPair>& kept) {
  const ControlFlow flow(in.graph);
  Conditions conditions(in.graph, in.on, in.activation, flow);  // a piece runs whenever its stream does
  const StreamAssignment pieces = on_pieces(in, starts);
  const Activation activation = of_pieces(starts);
  const auto tasks = nodes_with_task(in.graph, activation);
  const std::vector<SyncPair> needs = task_needs(in, pieces, flow, tasks);
  std::vector<SyncPair> pairs = between_streams(kept);
  const std::set<std::pair<NodeId, NodeId>> known = ends_of(pairs), cuts = ends_of(in.splitting.pairs);
  pairs.insert(pairs.end(), in.splitting.pairs.begin(), in.splitting.pairs.end());
  MST_TRY(const std::vector<NodeId> walk, walk_order(in.graph, in.on, in.activation, pairs));
  pairs.insert(pairs.end(), needs.begin(), needs.end());
  const Insertion all = listed(in.graph, std::move(pairs), walk);
  MST_TRY(const SyncPlan plan, reduce({in.graph, pieces, all, activation, flow, &conditions}));

  const Insertion required = listed(in.graph, needs, walk);
  const auto idle_cut = [&](const SyncPair& p) { return cuts.count({p.from, p.to}) != 0 && (tasks[p.from] == 0 || tasks[p.to] == 0); };
  MST_TRY(const std::vector<SyncPair> left, without_idle_pairs({in.graph, pieces, required, activation, flow, &conditions}, between_streams(plan.kept), idle_cut));
  std::vector<SyncPair> out;
  for (const SyncPair& p : left) {
    if (known.count({p.from, p.to}) != 0) continue;
    out.push_back({p.from, p.to, cuts.count({p.from, p.to}) != 0 ? PairReason::split : p.reason});
  }
  return out;
}

}  // namespace millstream
