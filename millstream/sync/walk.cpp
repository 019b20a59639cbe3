// SPDX-License-Identifier: Apache-2.0
// Linear extensions of everything that a plan orders.
#include <algorithm>
#include <functional>
#include <queue>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/text.h"
#include "millstream/sync/insert.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

std::uint32_t stream_index(const StreamAssignment& on, NodeId n) {
  return on.placement[n] ? on.placement[n]->stream.index : kNone;
}

Result<std::vector<NodeId>> sort(const Graph& graph, const StreamAssignment& on, std::span<const ControlEdge> more) {
  const std::vector<NodeId>& order = graph.order();
  const Dependencies direct(graph);
  IdVec<NodeId, std::uint32_t> place(graph.node_count(), 0);
  IdVec<NodeId, std::uint32_t> blocked_by(graph.node_count(), 0);
  IdVec<NodeId, std::uint32_t> next_on_stream(graph.node_count(), kNone);
  std::vector<std::uint32_t> last(on.streams.size(), kNone);
  std::vector<ControlEdge> extra(more.begin(), more.end());
  std::stable_sort(extra.begin(), extra.end(), [](const ControlEdge& a, const ControlEdge& b) { return a.from < b.from; });
  for (const ControlEdge& e : extra) ++blocked_by[e.to];
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeId n = order[i];
    place[n] = static_cast<std::uint32_t>(i);
    blocked_by[n] += static_cast<std::uint32_t>(direct.predecessors(n).size());
    const std::uint32_t s = stream_index(on, n);
    if (s == kNone) continue;
    if (last[s] != kNone) {
      next_on_stream[NodeId(last[s])] = n.index;
      ++blocked_by[n];
    }
    last[s] = n.index;
  }
  // Earliest in execution order first, so that the walk stays close to it.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (const NodeId n : order) {
    if (blocked_by[n] == 0) ready.push(place[n]);
  }
  std::vector<NodeId> walk;
  walk.reserve(order.size());
  while (!ready.empty()) {
    const NodeId n = order[ready.top()];
    ready.pop();
    walk.push_back(n);
    const auto release = [&](NodeId m) {
      if (--blocked_by[m] == 0) ready.push(place[m]);
    };
    for (const NodeId m : direct.successors(n)) release(m);
    if (next_on_stream[n] != kNone) release(NodeId(next_on_stream[n]));
    auto e = std::lower_bound(extra.begin(), extra.end(), n, [](const ControlEdge& a, NodeId k) { return a.from < k; });
    for (; e != extra.end() && e->from == n; ++e) release(e->to);
  }
  if (walk.size() == order.size()) return walk;
  // The first edge that the order contradicts, if one does so on a single stream, is the clearest cause.
  for (const NodeId n : order) {
    if (blocked_by[n] == 0) continue;
    for (const NodeId p : direct.predecessors(n)) {
      if (on.placement[n] && on.placement[p] && on.placement[n]->stream == on.placement[p]->stream && place[p] > place[n]) {
        return Error{ErrorCode::deadlock, fmt::format("the fixed order runs {} before {} on stream {}, but {} needs it",
                                                      quote_name(graph.name(n)), quote_name(graph.name(p)),
                                                      on.placement[n]->stream.index, quote_name(graph.name(n)))}
            .help("put them on two streams or change the order");
      }
    }
  }
  for (const NodeId n : order) {
    if (blocked_by[n] == 0) continue;
    if (!extra.empty()) {
      return Error{ErrorCode::deadlock, fmt::format("activations, loops and the streams' orders wait for each other in a circle, at {}",
                                                    quote_name(graph.name(n)))}
          .help("a stream must be started by what does not need it, and end before what starts it again");
    }
    return Error{ErrorCode::deadlock, fmt::format("the fixed order and the edges wait for each other in a circle, at {}",
                                                  quote_name(graph.name(n)))}
        .help("change the order, or the streams of the nodes behind it");
  }
  MST_CHECK(false, "a walk that misses nodes has a blocked one");
}

}  // namespace

Result<std::vector<NodeId>> walk_order(const Graph& graph, const StreamAssignment& on) {
  if (!graph.order_is_fixed()) return std::vector<NodeId>();
  return sort(graph, on, {});
}

Result<std::vector<NodeId>> walk_order(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                                       std::span<const SyncPair> pairs) {
  const bool attached = !on.attached.empty();
  if (activation.empty() && pairs.empty() && !(attached && graph.order_is_fixed())) return walk_order(graph, on);
  std::vector<ControlEdge> more;
  if (attached) {  // nodes that share an attached stream run their parts on it in execution order
    std::vector<std::uint32_t> last(on.streams.size(), kNone);
    for (const NodeId n : graph.order()) {
      const auto& list = on.attached.get(n);
      if (!list) continue;
      for (const StreamId a : *list) {
        if (last[a.index] != kNone) more.push_back({NodeId(last[a.index]), n});
        last[a.index] = n.index;
      }
    }
  }
  for (const SyncPair& p : pairs) {
    if (p.from != p.to) more.push_back({p.from, p.to});
  }
  if (!activation.empty()) {
    std::vector<std::uint32_t> first(on.streams.size(), kNone);
    for (const NodeId n : graph.order()) {
      const std::uint32_t s = stream_index(on, n);
      if (s != kNone && first[s] == kNone) first[s] = n.index;
    }
    for (const Activator& a : activation.activators) {
      if (a.loop) continue;
      for (const StreamId s : a.streams) {
        if (first[s.index] != kNone) more.push_back({a.node, NodeId(first[s.index])});
      }
    }
  }
  if (!graph.order_is_fixed()) {
    std::vector<std::uint32_t> place(graph.node_count());
    for (std::size_t i = 0; i < graph.order().size(); ++i) place[graph.order()[i].index] = static_cast<std::uint32_t>(i);
    const bool forward = std::all_of(more.begin(), more.end(),
                                     [&](const ControlEdge& e) { return place[e.from.index] < place[e.to.index]; });
    if (forward) return std::vector<NodeId>();
  }
  return sort(graph, on, more);
}

}  // namespace millstream
