// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/insert.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/tasks.h"
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
  Inserter(const Graph& graph, const StreamAssignment& on, const ControlFlow& flow, std::vector<SyncPair> extra)
      : graph_(graph), on_(on), flow_(flow), control_begin_(graph.node_count() + 1, 0), extra_(std::move(extra)) {
    for (const ControlEdge& e : graph.control_edges()) ++control_begin_[e.to.index + 1];
    for (std::size_t i = 1; i < control_begin_.size(); ++i) control_begin_[i] += control_begin_[i - 1];
    control_.resize(graph.control_edges().size());
    std::vector<std::uint32_t> next(control_begin_.begin(), control_begin_.end() - 1);
    for (const ControlEdge& e : graph.control_edges()) control_[next[e.to.index]++] = e.from;
    for (const NodeId n : graph.nodes()) any_unplaced_ = any_unplaced_ || !on.placement[n];
    if (any_unplaced_) through_.resize(graph.node_count());
    any_enter_ = graph.strings().find("Enter") || graph.strings().find("RefEnter");
    if (flow.scoped()) lift_edges();
    std::stable_sort(extra_.begin(), extra_.end(), [](const SyncPair& a, const SyncPair& b) { return a.to < b.to; });
  }

  Result<Insertion> run(std::vector<NodeId> walk) {
    Insertion out;
    if (any_unplaced_) {
      const TaskTypes emits(graph_);
      for (const NodeId n : walk.empty() ? graph_.order() : walk) {
        if (on_.placement[n]) continue;
        through_[n] = collect(n);
        if (through_[n].empty() || !needs_stream(graph_, on_, emits, n)) continue;
        return unplaced_reader(graph_, on_, through_[n].front().node(), n);
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
  // Edges between scopes become edges of the nodes in the common scope that own their ends.
  void lift_edges() {
    const auto lift = [&](NodeId p, NodeId n, PairReason reason) {
      if (graph_.scope_of(p) == graph_.scope_of(n)) return;
      if (const auto e = lifted(graph_, flow_, p, n)) extra_.push_back({e->from, e->to, reason});
    };
    for (const NodeId n : graph_.nodes()) {
      for (const InputRef in : graph_.inputs(n)) {
        const auto v = in.get();
        if (const auto p = v ? graph_.producer(*v) : std::nullopt) lift(*p, n, PairReason::data);
      }
    }
    for (const ControlEdge& e : graph_.control_edges()) lift(e.from, e.to, PairReason::control);
  }

  // The nearest nodes with a stream that precede n, each once, ascending by id. Valid until the next call.
  const std::vector<ForeignSource>& collect(NodeId n) {
    found_.clear();
    const auto take = [&](NodeId p, PairReason reason) {
      if (on_.placement[p]) {
        found_.push_back({p, reason});
        return;
      }
      for (const ForeignSource& s : through_[p]) {
        found_.push_back({s.node(), reason == PairReason::data ? s.reason() : reason});
      }
    };
    const auto add = [&](NodeId p, PairReason reason) {
      if (any_enter_ && is_enter(graph_.type(p)) && graph_.type(n) != "StreamActive") return;
      take(p, reason);
      if (!flow_.scoped()) return;
      for (const NodeId end : flow_.ends_of(p)) take(end, PairReason::exit);
    };
    const auto add_edge = [&](NodeId p, PairReason reason) {
      if (!flow_.scoped() || graph_.scope_of(p) == graph_.scope_of(n)) add(p, reason);
    };
    for (const InputRef in : graph_.inputs(n)) {
      const auto v = in.get();
      const auto p = v ? graph_.producer(*v) : std::nullopt;
      if (p) add_edge(*p, PairReason::data);
    }
    if (graph_.body_count() != 0) {
      for (const ValueId v : graph_.captures(n)) {
        if (const auto p = graph_.producer(v)) add_edge(*p, PairReason::data);
      }
    }
    for (std::uint32_t i = control_begin_[n.index]; i < control_begin_[n.index + 1]; ++i) {
      add_edge(control_[i], PairReason::control);
    }
    if (!extra_.empty()) {
      auto e = std::lower_bound(extra_.begin(), extra_.end(), n, [](const SyncPair& p, NodeId k) { return p.to < k; });
      for (; e != extra_.end() && e->to == n; ++e) {
        if (e->reason == PairReason::data || e->reason == PairReason::control) {
          add(e->from, e->reason);
        } else {
          take(e->from, e->reason);
        }
      }
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
  const ControlFlow& flow_;
  std::vector<std::uint32_t> control_begin_;
  std::vector<NodeId> control_;
  std::vector<SyncPair> extra_;  // by receiver
  bool any_unplaced_ = false;
  bool any_enter_ = false;
  IdVec<NodeId, std::vector<ForeignSource>> through_;  // of nodes without a stream; empty without any
  std::vector<ForeignSource> found_;
};

}  // namespace

bool needs_stream(const Graph& graph, const StreamAssignment& on, const TaskTypes& emits, NodeId n) {
  if (graph.annotations().thread_scope.get(n)) return false;
  return on.clusters != 0 || emits(n);
}

Error unplaced_reader(const Graph& graph, const StreamAssignment& on, NodeId producer, NodeId reader) {
  return Error{ErrorCode::producer_unplaced,
               fmt::format("node {} ({}) reads {}, which is on stream {}, but has no stream itself", quote_name(graph.name(reader)),
                           graph.type(reader), quote_name(graph.name(producer)), on.placement[producer]->stream.index)}
      .note("the likely cause is an engine whose nodes get no stream of their own (skip_assign_stream)")
      .help("put the node on an engine that has streams, or take the flag from its engine in the target's file");
}

std::optional<ControlEdge> lifted(const Graph& graph, const ControlFlow& flow, NodeId from, NodeId to) {
  const ScopeId a = graph.scope_of(from), b = graph.scope_of(to), c = flow.common(a, b);
  const auto owner = [&](ScopeId s, NodeId n) { return s == c ? n : *graph.scope(flow.child_of(c, s)).parent_node; };
  const NodeId p = owner(a, from), n = owner(b, to);
  if (p == n) return std::nullopt;
  return ControlEdge{p, n};
}

Result<Insertion> insert_pairs(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                               const ControlFlow& flow) {
  if (on.placement.size() != graph.node_count()) {
    return Error{ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on.placement.size(),
                                                       graph.node_count())};
  }
  MST_CHECK(graph.node_count() < ForeignSource::kMostNodes, "node ids fit 29 bits");
  for (const NodeId n : graph.nodes()) {
    if (on.placement[n] && on.placement[n]->stream.index >= on.streams.size()) {
      return Error{ErrorCode::plan_mismatch, fmt::format("node {} is on stream {}, but there are {} streams",
                                                         quote_name(graph.name(n)), on.placement[n]->stream.index,
                                                         on.streams.size())};
    }
  }
  std::vector<SyncPair> extra = scope_pairs(graph, on, activation, flow);
  MST_TRY(std::vector<NodeId> walk, walk_order(graph, on, activation, extra));
  MST_TRY(Insertion out, Inserter(graph, on, flow, std::move(extra)).run(std::move(walk)));
  out.warnings = loop_warnings(graph, on, activation, flow);
  return out;
}

}  // namespace millstream
