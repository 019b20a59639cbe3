// SPDX-License-Identifier: Apache-2.0
// Checks a sync plan without trusting it or the code that made it: where the reducer walks forwards and asks
// what is known complete, this walks backwards and asks what is reached first.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/text.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

std::uint64_t key(NodeId from, NodeId to) { return (std::uint64_t{from.index} << 32) | to.index; }

class PlanVerifier {
 public:
  PlanVerifier(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan)
      : graph_(graph), on_(on), plan_(plan) {}

  std::vector<Error> run() {
    if (on_.placement.size() != graph_.node_count()) {
      add(ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on_.placement.size(), graph_.node_count()));
      return std::move(errors_);
    }
    for (const NodeId n : graph_.nodes()) {
      if (on_.placement[n] && on_.placement[n]->stream.index >= on_.streams.size()) {
        add(ErrorCode::plan_mismatch, fmt::format("node {} is on stream {}, but there are {} streams", name(n), stream(n), on_.streams.size()));
        return std::move(errors_);
      }
    }
    number_positions();
    check_kept();
    if (!errors_.empty()) return std::move(errors_);  // what follows reads the pairs
    for (const DroppedPair& d : plan_.dropped) check_certificate(d);
    check_requirements();
    if (!sort_walk()) return std::move(errors_);
    if (plan_.mode == SyncMode::exact) check_irredundant();
    return std::move(errors_);
  }

 private:
  void add(ErrorCode code, std::string message) { errors_.push_back(Error{code, std::move(message)}); }
  std::uint32_t stream(NodeId n) const { return on_.placement[n]->stream.index; }
  bool placed(NodeId n) const { return n.index < graph_.node_count() && on_.placement[n].has_value(); }
  std::string name(NodeId n) const {
    return n.index < graph_.node_count() ? quote_name(graph_.name(n)) : fmt::format("#{}", n.index);
  }
  std::string arrow(const SyncPair& p) const { return fmt::format("{} -> {}", name(p.from), name(p.to)); }
  // a, and later or the same on its stream, b
  bool along(NodeId a, NodeId b) const { return stream(a) == stream(b) && position_[a] <= position_[b]; }

  void number_positions() {
    position_ = IdVec<NodeId, std::uint32_t>(graph_.node_count(), 0);
    nodes_on_.resize(on_.streams.size());
    for (const NodeId n : graph_.order()) {
      if (!on_.placement[n]) continue;
      nodes_on_[stream(n)].push_back(n);
      position_[n] = static_cast<std::uint32_t>(nodes_on_[stream(n)].size());
    }
  }

  void check_kept() {
    kept_keys_.reserve(plan_.kept.size());
    for (const SyncPair& p : plan_.kept) {
      if (!placed(p.from) || !placed(p.to)) {
        add(ErrorCode::plan_mismatch, fmt::format("pair {} names a node without a stream", arrow(p)));
      } else if (stream(p.from) == stream(p.to)) {
        add(ErrorCode::plan_mismatch, fmt::format("pair {} stays on stream {}", arrow(p), stream(p.from)));
      } else {
        kept_keys_.push_back(key(p.from, p.to));
      }
    }
    std::sort(kept_keys_.begin(), kept_keys_.end());
    const auto twice = std::adjacent_find(kept_keys_.begin(), kept_keys_.end());
    if (twice != kept_keys_.end()) {
      add(ErrorCode::plan_mismatch, fmt::format("pair {} -> {} is kept twice", name(NodeId(*twice >> 32)), name(NodeId(*twice & kNever))));
    }
  }

  void check_certificate(const DroppedPair& d) {
    const auto bad = [&](std::string why) {
      add(ErrorCode::plan_mismatch, fmt::format("dropped pair {}: {}", arrow(d.pair), why));
    };
    if (!placed(d.pair.from) || !placed(d.pair.to)) return bad("names a node without a stream");
    if (d.path_begin > plan_.path_pool.size() || d.path_length > plan_.path_pool.size() - d.path_begin) {
      return bad("its path lies outside the plan");
    }
    if (d.path_length == 0) return bad("has no path that implies it");
    NodeId at = d.pair.from;
    for (const PairId id : plan_.path(d)) {
      if (id.index >= plan_.kept.size()) return bad(fmt::format("its path names pair {} of {}", id.index, plan_.kept.size()));
      const SyncPair& p = plan_.kept[id.index];
      if (!along(at, p.from)) return bad(fmt::format("its path breaks between {} and {}", name(at), name(p.from)));
      at = p.to;
    }
    if (!along(at, d.pair.to)) return bad(fmt::format("its path ends at {}", name(at)));
    dropped_keys_.push_back(key(d.pair.from, d.pair.to));
  }

  // Nearest placed predecessors, through nodes without a stream.
  void collect(const Dependencies& direct, NodeId n) {
    found_.clear();
    todo_.assign(direct.predecessors(n).begin(), direct.predecessors(n).end());
    std::vector<NodeId> passed;
    while (!todo_.empty()) {
      const NodeId p = todo_.back();
      todo_.pop_back();
      if (on_.placement[p]) {
        found_.push_back(p);
      } else if (!std::binary_search(passed.begin(), passed.end(), p)) {
        passed.insert(std::upper_bound(passed.begin(), passed.end(), p), p);
        todo_.insert(todo_.end(), direct.predecessors(p).begin(), direct.predecessors(p).end());
      }
    }
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  }

  void check_requirements() {
    std::sort(dropped_keys_.begin(), dropped_keys_.end());
    const auto in = [](const std::vector<std::uint64_t>& keys, std::uint64_t k) {
      return std::binary_search(keys.begin(), keys.end(), k);
    };
    const Dependencies direct(graph_);
    std::size_t required = 0;
    std::vector<std::uint64_t> required_keys;
    for (const NodeId n : graph_.nodes()) {
      if (!on_.placement[n]) continue;
      collect(direct, n);
      for (const NodeId p : found_) {
        if (stream(p) == stream(n)) {
          if (position_[p] > position_[n]) {
            add(ErrorCode::deadlock, fmt::format("stream {} runs {} before {}, which it needs", stream(n), name(n), name(p)));
          }
          continue;
        }
        ++required;
        const std::uint64_t k = key(p, n);
        required_keys.push_back(k);
        const bool kept = in(kept_keys_, k), dropped = in(dropped_keys_, k);
        if (!kept && !dropped) add(ErrorCode::race, fmt::format("{} -> {} is neither kept nor dropped with a proof", name(p), name(n)));
        if (kept && dropped) add(ErrorCode::plan_mismatch, fmt::format("{} -> {} is both kept and dropped", name(p), name(n)));
      }
    }
    std::sort(required_keys.begin(), required_keys.end());
    for (const SyncPair& p : plan_.kept) {
      const bool dependency = p.reason == PairReason::data || p.reason == PairReason::control;
      if (dependency && !in(required_keys, key(p.from, p.to))) {
        add(ErrorCode::plan_mismatch, fmt::format("kept pair {} is no {} dependency", arrow(p), to_string(p.reason)));
      }
    }
    if (plan_.inserted != required) {
      add(ErrorCode::plan_mismatch, fmt::format("the plan counts {} pairs, the graph has {}", plan_.inserted, required));
    }
  }

  // Kept pairs by source and a walk over all placed nodes. False when they close a circle.
  bool sort_walk() {
    const std::size_t n = graph_.node_count();
    exits_begin_.assign(n + 1, 0);
    entries_.assign(n, 0);
    for (const SyncPair& p : plan_.kept) {
      ++exits_begin_[p.from.index + 1];
      ++entries_[p.to.index];
    }
    for (std::size_t i = 0; i < n; ++i) exits_begin_[i + 1] += exits_begin_[i];
    exits_.resize(plan_.kept.size());
    std::vector<std::uint32_t> next(exits_begin_.begin(), exits_begin_.end() - 1);
    for (const SyncPair& p : plan_.kept) exits_[next[p.from.index]++] = p.to;

    std::vector<std::uint32_t> open = entries_;
    std::size_t total = 0;
    std::vector<NodeId> ready;
    for (const auto& list : nodes_on_) {
      total += list.size();
      for (std::size_t i = 1; i < list.size(); ++i) ++open[list[i].index];
      if (!list.empty() && open[list[0].index] == 0) ready.push_back(list[0]);
    }
    while (!ready.empty()) {
      const NodeId at = ready.back();
      ready.pop_back();
      walk_.push_back(at);
      const auto release = [&](NodeId m) {
        if (--open[m.index] == 0) ready.push_back(m);
      };
      const auto& list = nodes_on_[stream(at)];
      if (position_[at] < list.size()) release(list[position_[at]]);
      for (std::uint32_t i = exits_begin_[at.index]; i < exits_begin_[at.index + 1]; ++i) release(exits_[i]);
    }
    if (walk_.size() == total) return true;
    for (const NodeId m : graph_.order()) {
      if (!on_.placement[m] || open[m.index] == 0) continue;
      add(ErrorCode::deadlock, fmt::format("the kept pairs and the streams' orders close a circle through {}", name(m)));
      return false;
    }
    return false;
  }

  // reach(n)[s]: the first position on stream s that n or something behind n reaches. A pair u -> w can go
  // if another exit of u reaches w's stream at or before w.
  void check_irredundant() {
    const std::size_t width = nodes_on_.size();
    std::vector<std::vector<std::uint32_t>> now(width);                 // of the node last walked on each stream
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> held;  // of nodes with entries; looked up only
    for (std::size_t i = walk_.size(); i-- > 0;) {
      const NodeId u = walk_[i];
      std::vector<std::uint32_t>& along_stream = now[stream(u)];
      if (along_stream.empty()) along_stream.assign(width, kNever);
      const std::span<const NodeId> out(exits_.data() + exits_begin_[u.index], exits_begin_[u.index + 1] - exits_begin_[u.index]);
      for (const NodeId w : out) {
        bool other = along_stream[stream(w)] <= position_[w];
        for (const NodeId x : out) other = other || (x != w && held.at(x.index)[stream(w)] <= position_[w]);
        if (other) add(ErrorCode::plan_mismatch, fmt::format("kept pair {} is implied by the others", arrow({u, w})));
      }
      for (const NodeId w : out) {
        const auto row = held.find(w.index);
        for (std::size_t s = 0; s < width; ++s) along_stream[s] = std::min(along_stream[s], row->second[s]);
        if (--entries_[w.index] == 0) held.erase(row);
      }
      along_stream[stream(u)] = position_[u];
      if (entries_[u.index] != 0) held.emplace(u.index, along_stream);
    }
  }

  const Graph& graph_;
  const StreamAssignment& on_;
  const SyncPlan& plan_;
  std::vector<Error> errors_;
  IdVec<NodeId, std::uint32_t> position_;  // on its stream, from 1
  std::vector<std::vector<NodeId>> nodes_on_;
  std::vector<std::uint64_t> kept_keys_, dropped_keys_;
  std::vector<NodeId> found_, todo_;
  std::vector<std::uint32_t> exits_begin_, entries_;
  std::vector<NodeId> exits_;
  std::vector<NodeId> walk_;
};

}  // namespace

std::vector<Error> verify(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan) {
  return PlanVerifier(graph, on, plan).run();
}

}  // namespace millstream
