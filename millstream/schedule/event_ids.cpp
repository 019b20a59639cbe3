// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/event_ids.h"

#include <algorithm>
#include <queue>

#include "millstream/sync/clock_rows.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

// Pairs by one of their ends, in kept order.
struct ByNode {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> pairs;
  template <class End>
  ByNode(std::size_t nodes, const std::vector<SyncPair>& kept, End end) : begin(nodes + 1, 0), pairs(kept.size()) {
    for (const SyncPair& p : kept) ++begin[end(p).index + 1];
    for (std::size_t i = 0; i < nodes; ++i) begin[i + 1] += begin[i];
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t i = 0; i < kept.size(); ++i) pairs[next[end(kept[i]).index]++] = i;
  }
  std::span<const std::uint32_t> of(NodeId n) const {
    return {pairs.data() + begin[n.index], begin[n.index + 1] - begin[n.index]};
  }
};

// Calls visit(pair, limit) for each pair in order of waits: limit[s] = what of stream s is complete both
// before the pair's record and, without the pair, before its wait. Earlier pair p may give its id to q
// iff limit(q)[stream of p's wait] >= position of p's wait's node.
class Lifetimes {
 public:
  Lifetimes(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const std::vector<NodeId>& walk)
      : on_(on), plan_(plan), walk_(walk), position_(graph.node_count(), 0) {}
  std::uint32_t position(NodeId n) const { return position_[n]; }
  std::uint32_t stream(NodeId n) const { return on_.placement[n]->stream.index; }

  template <class Visit>
  void walk(const ByNode& waits, const ByNode& records, Visit visit) {
    const std::uint32_t width = static_cast<std::uint32_t>(on_.streams.size());
    ClockRows<std::uint32_t> rows(width);
    std::vector<std::uint32_t> now(width, kNone), next(width, 0), limit(width);
    IdVec<NodeId, std::uint32_t> slot(position_.size(), kNone);
    std::vector<std::uint32_t> left(plan_.kept.empty() ? 0 : position_.size(), 0);
    for (const SyncPair& p : plan_.kept) ++left[p.from.index];
    for (const NodeId n : walk_) {
      if (!on_.placement[n]) continue;
      const std::uint32_t here = stream(n);
      if (now[here] == kNone) {
        now[here] = rows.take();
        std::fill_n(rows.row(now[here]), width, 0u);
      }
      std::uint32_t* clock = rows.row(now[here]);
      for (const std::uint32_t q : waits.of(n)) {
        const NodeId from = plan_.kept[q].from;
        const std::uint32_t* source = rows.row(slot[from]);
        for (std::uint32_t s = 0; s < width; ++s) limit[s] = std::min(clock[s], source[s]);
        visit(q, limit);
        for (std::uint32_t s = 0; s < width; ++s) clock[s] = std::max(clock[s], source[s]);
        if (--left[from.index] == 0) rows.give_back(slot[from]);
      }
      clock[here] = position_[n] = ++next[here];
      if (!records.of(n).empty()) {
        slot[n] = rows.take();
        std::copy_n(clock, width, rows.row(slot[n]));
      }
    }
  }

 private:
  const StreamAssignment& on_;
  const SyncPlan& plan_;
  const std::vector<NodeId>& walk_;
  IdVec<NodeId, std::uint32_t> position_;
};

// Chains of pairs: the next user of each pair's id.
struct Chains {
  std::vector<std::uint32_t> next, previous;
  explicit Chains(std::size_t pairs) : next(pairs, kNone), previous(pairs, kNone) {}
  void link(std::uint32_t p, std::uint32_t q) {
    next[p] = q;
    previous[q] = p;
  }
};

// Each pair takes over from the pair whose wait is longest past on the first stream that has one. Waits of
// one stream are ordered, so only the oldest of each stream can be free when none of them is.
Chains first_free(Lifetimes& lifetimes, const SyncPlan& plan, const ByNode& waits, const ByNode& records,
                  std::size_t streams) {
  Chains chains(plan.kept.size());
  std::vector<std::queue<std::uint32_t>> waiting(streams);  // pairs whose id nobody took, by stream of the wait
  lifetimes.walk(waits, records, [&](std::uint32_t q, const std::vector<std::uint32_t>& limit) {
    for (std::size_t s = 0; s < streams; ++s) {
      if (waiting[s].empty() || limit[s] < lifetimes.position(plan.kept[waiting[s].front()].to)) continue;
      // A pair into the node now waited for has no position yet (0): it is not complete.
      if (lifetimes.position(plan.kept[waiting[s].front()].to) == 0) continue;
      chains.link(waiting[s].front(), q);
      waiting[s].pop();
      break;
    }
    waiting[lifetimes.stream(plan.kept[q].to)].push(q);
  });
  return chains;
}

// Hopcroft-Karp on p -> q where p may give its id to q.
class Matching {
 public:
  Matching(std::vector<std::vector<std::uint32_t>> next, Chains start) : next_(std::move(next)), chains_(std::move(start)) {}
  Chains run() {
    while (layer()) {
      for (std::uint32_t p = 0; p < next_.size(); ++p) {
        if (chains_.next[p] == kNone) augment(p);
      }
    }
    return std::move(chains_);
  }

 private:
  bool layer() {
    depth_.assign(next_.size(), kNone);
    at_.assign(next_.size(), 0);
    std::vector<std::uint32_t> queue;
    for (std::uint32_t p = 0; p < next_.size(); ++p) {
      if (chains_.next[p] != kNone) continue;
      depth_[p] = 0;
      queue.push_back(p);
    }
    bool found = false;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const std::uint32_t q : next_[queue[i]]) {
        const std::uint32_t p = chains_.previous[q];
        if (p == kNone) {
          found = true;
        } else if (depth_[p] == kNone) {
          depth_[p] = depth_[queue[i]] + 1;
          queue.push_back(p);
        }
      }
    }
    return found;
  }

  // Depth-first along layers; the path lies on a stack of our own.
  bool augment(std::uint32_t start) {
    std::vector<std::uint32_t> path = {start};
    while (!path.empty()) {
      const std::uint32_t p = path.back();
      if (at_[p] == next_[p].size()) {
        depth_[p] = kNone;
        path.pop_back();
        if (!path.empty()) ++at_[path.back()];
        continue;
      }
      const std::uint32_t q = next_[p][at_[p]];
      const std::uint32_t owner = chains_.previous[q];
      if (owner == kNone) {
        for (std::size_t i = path.size(); i-- > 0;) chains_.link(path[i], next_[path[i]][at_[path[i]]]);
        return true;
      }
      if (depth_[owner] != kNone && depth_[owner] == depth_[p] + 1) {
        path.push_back(owner);
      } else {
        ++at_[p];
      }
    }
    return false;
  }

  std::vector<std::vector<std::uint32_t>> next_;
  Chains chains_;
  std::vector<std::uint32_t> depth_;
  std::vector<std::size_t> at_;
};

Chains fewest(Lifetimes& lifetimes, const SyncPlan& plan, const ByNode& waits, const ByNode& records, Chains start) {
  std::vector<std::vector<std::uint32_t>> next(plan.kept.size());
  std::vector<std::uint32_t> seen;  // pairs in order of waits
  lifetimes.walk(waits, records, [&](std::uint32_t q, const std::vector<std::uint32_t>& limit) {
    for (const std::uint32_t p : seen) {
      const NodeId to = plan.kept[p].to;
      if (to != plan.kept[q].to && limit[lifetimes.stream(to)] >= lifetimes.position(to)) next[p].push_back(q);
    }
    seen.push_back(q);
  });
  return Matching(std::move(next), std::move(start)).run();
}

}  // namespace

std::vector<EventId> colour_events(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan,
                                   const std::vector<NodeId>& walk, EventIds how) {
  const std::size_t nodes = graph.node_count();
  const ByNode records(nodes, plan.kept, [](const SyncPair& p) { return p.from; });
  Chains chains(how == EventIds::minimal ? plan.kept.size() : 0);
  if (how == EventIds::minimal) {
    const ByNode waits(nodes, plan.kept, [](const SyncPair& p) { return p.to; });
    Lifetimes lifetimes(graph, on, plan, walk);
    chains = first_free(lifetimes, plan, waits, records, on.streams.size());
    if (plan.kept.size() <= kExactEventPairs) {
      Lifetimes again(graph, on, plan, walk);
      chains = fewest(again, plan, waits, records, std::move(chains));
    }
  }
  // The first user of an id is the first of its chain in execution order, too.
  std::vector<EventId> out(plan.kept.size(), EventId(kNone));
  std::uint32_t count = 0;
  for (const NodeId n : graph.order()) {
    for (const std::uint32_t p : records.of(n)) {
      if (out[p].index != kNone) continue;
      std::uint32_t first = p;
      while (how == EventIds::minimal && chains.previous[first] != kNone) first = chains.previous[first];
      for (std::uint32_t i = first; i != kNone; i = how == EventIds::minimal ? chains.next[i] : kNone) out[i] = EventId(count);
      ++count;
    }
  }
  return out;
}

}  // namespace millstream
