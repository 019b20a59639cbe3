// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/insert.h"

#include <algorithm>
#include <functional>
#include <queue>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

// A node without a stream runs at no time of its own, so only its place between others matters: its
// stream is `none`.
constexpr std::uint32_t kNoStream = 0xffffffffu;

std::uint32_t stream_index(const StreamAssignment& on, NodeId n) {
  return on.placement[n] ? on.placement[n]->stream.index : kNoStream;
}

class Inserter {
 public:
  Inserter(const Graph& graph, const StreamAssignment& on)
      : graph_(graph), on_(on), control_begin_(graph.node_count() + 1, 0) {
    for (const ControlEdge& e : graph.control_edges()) ++control_begin_[e.to.index + 1];
    for (std::size_t i = 1; i < control_begin_.size(); ++i) control_begin_[i] += control_begin_[i - 1];
    control_.resize(graph.control_edges().size());
    std::vector<std::uint32_t> next(control_begin_.begin(), control_begin_.end() - 1);
    for (const ControlEdge& e : graph.control_edges()) control_[next[e.to.index]++] = e.from;
    for (const NodeId n : graph.nodes()) any_unplaced_ = any_unplaced_ || !on.placement[n];
    if (any_unplaced_) through_.resize(graph.node_count());
  }

  Insertion run(std::vector<NodeId> walk) {
    Insertion out;
    if (any_unplaced_) {
      for (const NodeId n : walk.empty() ? graph_.order() : walk) {
        if (!on_.placement[n]) through_[n] = collect(n);
      }
    }
    out.walk = std::move(walk);
    out.begin.reserve(graph_.node_count() + 1);
    out.begin.push_back(0);
    for (const NodeId n : graph_.nodes()) {
      if (on_.placement[n]) {
        const std::uint32_t here = on_.placement[n]->stream.index;
        for (const ForeignSource& s : collect(n)) {
          if (stream_index(on_, s.node()) != here) out.sources.push_back(s);
        }
      }
      out.begin.push_back(static_cast<std::uint32_t>(out.sources.size()));
    }
    return out;
  }

 private:
  // The nearest nodes with a stream that precede n, each once, ascending by id. Valid until the next call
  // for a placed node.
  const std::vector<ForeignSource>& collect(NodeId n) {
    found_.clear();
    const auto add = [&](NodeId p, PairReason reason) {
      if (on_.placement[p]) {
        found_.push_back({p, reason});
        return;
      }
      for (const ForeignSource& s : through_[p]) {
        found_.push_back({s.node(), reason == PairReason::control ? reason : s.reason()});
      }
    };
    for (const InputRef in : graph_.inputs(n)) {
      const auto v = in.get();
      const auto p = v ? graph_.producer(*v) : std::nullopt;
      if (p) add(*p, PairReason::data);
    }
    if (graph_.body_count() != 0) {
      for (const ValueId v : graph_.captures(n)) {
        if (const auto p = graph_.producer(v)) add(*p, PairReason::data);
      }
    }
    for (std::uint32_t i = control_begin_[n.index]; i < control_begin_[n.index + 1]; ++i) {
      add(control_[i], PairReason::control);
    }
    if (found_.size() > 1) {
      std::sort(found_.begin(), found_.end(), [](const ForeignSource& a, const ForeignSource& b) {
        return a.node() != b.node() ? a.node() < b.node() : a.reason() < b.reason();
      });
      found_.erase(std::unique(found_.begin(), found_.end(),
                               [](const ForeignSource& a, const ForeignSource& b) { return a.node() == b.node(); }),
                   found_.end());
    }
    return found_;
  }

  const Graph& graph_;
  const StreamAssignment& on_;
  std::vector<std::uint32_t> control_begin_;
  std::vector<NodeId> control_;
  bool any_unplaced_ = false;
  IdVec<NodeId, std::vector<ForeignSource>> through_;  // of nodes without a stream; empty without any
  std::vector<ForeignSource> found_;
};

}  // namespace

Result<std::vector<NodeId>> walk_order(const Graph& graph, const StreamAssignment& on) {
  if (!graph.order_is_fixed()) return std::vector<NodeId>();
  const std::vector<NodeId>& order = graph.order();
  const Dependencies direct(graph);
  IdVec<NodeId, std::uint32_t> place(graph.node_count(), 0);
  IdVec<NodeId, std::uint32_t> blocked_by(graph.node_count(), 0);
  IdVec<NodeId, std::uint32_t> next_on_stream(graph.node_count(), kNoStream);
  std::vector<std::uint32_t> last(on.streams.size(), kNoStream);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeId n = order[i];
    place[n] = static_cast<std::uint32_t>(i);
    blocked_by[n] += static_cast<std::uint32_t>(direct.predecessors(n).size());
    const std::uint32_t s = stream_index(on, n);
    if (s == kNoStream) continue;
    if (last[s] != kNoStream) {
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
    if (next_on_stream[n] != kNoStream) release(NodeId(next_on_stream[n]));
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
    return Error{ErrorCode::deadlock, fmt::format("the fixed order and the edges wait for each other in a circle, at {}",
                                                  quote_name(graph.name(n)))}
        .help("change the order, or the streams of the nodes behind it");
  }
  MST_CHECK(false, "a walk that misses nodes has a blocked one");
}

Result<Insertion> insert_pairs(const Graph& graph, const StreamAssignment& on) {
  if (on.placement.size() != graph.node_count()) {
    return Error{ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on.placement.size(),
                                                       graph.node_count())};
  }
  MST_CHECK(graph.node_count() < 0x80000000u, "node ids fit 31 bits");
  for (const NodeId n : graph.nodes()) {
    if (on.placement[n] && on.placement[n]->stream.index >= on.streams.size()) {
      return Error{ErrorCode::plan_mismatch, fmt::format("node {} is on stream {}, but there are {} streams",
                                                         quote_name(graph.name(n)), on.placement[n]->stream.index,
                                                         on.streams.size())};
    }
  }
  MST_TRY(std::vector<NodeId> walk, walk_order(graph, on));
  return Inserter(graph, on).run(std::move(walk));
}

}  // namespace millstream
