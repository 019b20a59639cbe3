// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/event_ids.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/clock_rows.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

// Pairs by one of their ends, in kept order.
struct ByNode {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> pairs;
  template <class End>
  ByNode(std::size_t nodes, std::span<const SyncPair> kept, End end) : begin(nodes + 1, 0), pairs(kept.size()) {
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
// iff complete(p, limit(q)). A node with attached parts is several stops: its waits and forks, each part, its
// joins, launch and records.
class Lifetimes {
 public:
  explicit Lifetimes(const PairLanes& in) : in_(in), wait_(in.pairs.size()), next_(in.streams, 0) {}
  std::uint32_t stream(std::uint32_t pair) const { return wait_[pair].stream; }
  bool complete(std::uint32_t pair, const std::vector<std::uint32_t>& limit) const {
    const Stop& at = wait_[pair];
    return at.position != 0 && limit[at.stream] >= at.position;
  }
  bool shareable(std::uint32_t pair) const {
    return in_.always.empty() || (in_.always[in_.pairs[pair].from.index] != 0 && in_.always[in_.pairs[pair].to.index] != 0);
  }

  template <class Visit>
  void walk(const ByNode& waits, Visit visit) {
    const std::uint32_t width = in_.streams;
    ClockRows<std::uint32_t> rows(width);
    std::vector<std::uint32_t> now(width, kNone), limit(width);
    IdVec<NodeId, std::uint32_t> slot(in_.graph.node_count(), kNone);
    std::vector<std::uint32_t> left(in_.graph.node_count(), 0);
    for (std::uint32_t i = 0; i < in_.pairs.size(); ++i) {
      if (shareable(i) && in_.pairs[i].from != in_.pairs[i].to) ++left[in_.pairs[i].from.index];
    }
    const auto clock_of = [&](std::uint32_t stream) {
      if (now[stream] == kNone) {
        now[stream] = rows.take();
        std::fill_n(rows.row(now[stream]), width, 0u);
      }
      return rows.row(now[stream]);
    };
    const auto take = [&](std::uint32_t pair, std::uint32_t* clock, const std::uint32_t* source, std::uint32_t stream) {
      for (std::uint32_t s = 0; s < width; ++s) limit[s] = std::min(clock[s], source[s]);
      wait_[pair].stream = stream;
      visit(pair, limit);
      for (std::uint32_t s = 0; s < width; ++s) clock[s] = std::max(clock[s], source[s]);
    };
    for (const NodeId n : in_.walk) {
      if (!in_.on.placement[n]) continue;
      const std::uint32_t here = in_.lane[n];
      std::uint32_t* clock = clock_of(here);
      if (!in_.always.empty() && in_.always[n.index] == 0) {
        clock[here] = ++next_[here];
        continue;
      }
      const auto my_waits = waits.of(n);
      for (const std::uint32_t q : my_waits) {
        const NodeId from = in_.pairs[q].from;
        if (from == n || !shareable(q)) continue;
        take(q, clock, rows.row(slot[from]), here);
        if (--left[from.index] == 0) rows.give_back(slot[from]);
      }
      const std::uint32_t position = clock[here] = ++next_[here];
      for (const std::uint32_t q : my_waits) {
        if (in_.pairs[q].from != n && shareable(q)) wait_[q].position = position;
      }
      if (const auto forked = in_.on.forked(n); !forked.empty()) attached_parts(n, forked, my_waits, clock_of, take);
      if (left[n.index] != 0) {
        slot[n] = rows.take();
        std::copy_n(clock_of(here), width, rows.row(slot[n]));
      }
    }
  }

 private:
  struct Stop {
    std::uint32_t stream = 0;
    std::uint32_t position = 0;  // 0: not passed yet
  };

  template <class ClockOf, class Take>
  void attached_parts(NodeId n, std::span<const StreamId> attached, std::span<const std::uint32_t> pairs, ClockOf clock_of, Take take) {
    const std::uint32_t here = in_.lane[n];
    // As lower writes them: all forks before the launch, all joins behind it.
    for (const PairReason reason : {PairReason::fork, PairReason::join}) {
      for (const StreamId a : attached) {
        const std::uint32_t from = reason == PairReason::fork ? here : a.index;
        const std::uint32_t to = reason == PairReason::fork ? a.index : here;
        for (const std::uint32_t q : pairs) {
          const SyncPair& p = in_.pairs[q];
          if (p.from != p.to || p.stream != a || p.reason != reason) continue;
          std::uint32_t* target = clock_of(to);
          take(q, target, clock_of(from), to);
          wait_[q].position = target[to] = ++next_[to];
        }
        if (reason == PairReason::fork) {
          std::uint32_t* part = clock_of(a.index);
          part[a.index] = ++next_[a.index];
        }
      }
    }
  }

  const PairLanes& in_;
  std::vector<Stop> wait_;  // by pair
  std::vector<std::uint32_t> next_;
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
Chains first_free(const PairLanes& in, const ByNode& waits) {
  Lifetimes lifetimes(in);
  Chains chains(in.pairs.size());
  std::vector<std::queue<std::uint32_t>> waiting(in.streams);  // pairs whose id nobody took, by stream of the wait
  lifetimes.walk(waits, [&](std::uint32_t q, const std::vector<std::uint32_t>& limit) {
    for (std::size_t s = 0; s < in.streams; ++s) {
      if (waiting[s].empty() || !lifetimes.complete(waiting[s].front(), limit)) continue;
      chains.link(waiting[s].front(), q);
      waiting[s].pop();
      break;
    }
    waiting[lifetimes.stream(q)].push(q);
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

Chains fewest(const PairLanes& in, const ByNode& waits, Chains start) {
  Lifetimes lifetimes(in);
  std::vector<std::vector<std::uint32_t>> next(in.pairs.size());
  std::vector<std::uint32_t> seen;  // pairs in order of waits
  lifetimes.walk(waits, [&](std::uint32_t q, const std::vector<std::uint32_t>& limit) {
    for (const std::uint32_t p : seen) {
      if (lifetimes.complete(p, limit)) next[p].push_back(q);
    }
    seen.push_back(q);
  });
  return Matching(std::move(next), std::move(start)).run();
}

}  // namespace

std::vector<EventId> colour_events(const PairLanes& in, EventIds how) {
  const std::size_t nodes = in.graph.node_count();
  const ByNode records(nodes, in.pairs, [](const SyncPair& p) { return p.from; });
  Chains chains(how == EventIds::minimal ? in.pairs.size() : 0);
  if (how == EventIds::minimal) {
    const ByNode waits(nodes, in.pairs, [](const SyncPair& p) { return p.to; });
    chains = first_free(in, waits);
    if (in.pairs.size() <= kExactEventPairs) chains = fewest(in, waits, std::move(chains));
  }
  // The first user of an id is the first of its chain in execution order, too.
  std::vector<EventId> out(in.pairs.size(), EventId(kNone));
  std::uint32_t count = 0;
  for (const NodeId n : in.graph.order()) {
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

Result<void> check_shared(const PairLanes& in, const std::vector<std::uint32_t>& group) {
  const std::size_t nodes = in.graph.node_count();
  const ByNode waits(nodes, in.pairs, [](const SyncPair& p) { return p.to; });
  Lifetimes lifetimes(in);
  std::unordered_map<std::uint32_t, std::uint32_t> last;  // by group: the pair that used the id last
  std::optional<Error> error;
  const auto refuse = [&](std::uint32_t p, std::uint32_t q, std::string why) {
    const auto pair = [&](std::uint32_t i) {
      return fmt::format("{} -> {}", quote_name(in.graph.name(in.pairs[i].from)), quote_name(in.graph.name(in.pairs[i].to)));
    };
    error = Error{ErrorCode::shared_event_id, fmt::format("{} and {} are told to share an event id, but {}", pair(p), pair(q), why)};
    error->note("a wait consumes the record: the id is free again only when the first wait is sure to be over before the second "
                "record and before the second wait");
    error->help("give them different numbers in the event multiplexing of their nodes");
  };
  lifetimes.walk(waits, [&](std::uint32_t q, const std::vector<std::uint32_t>& limit) {
    if (group[q] == kNone || error) return;
    const auto [it, fresh] = last.try_emplace(group[q], q);
    if (fresh) return;
    if (!lifetimes.complete(it->second, limit)) refuse(it->second, q, "nothing orders them");
    it->second = q;
  });
  std::unordered_map<std::uint32_t, std::uint32_t> first;
  for (std::uint32_t q = 0; q < in.pairs.size() && !error; ++q) {
    if (group[q] == kNone) continue;
    const auto [it, fresh] = first.try_emplace(group[q], q);
    if (!fresh && (!lifetimes.shareable(q) || !lifetimes.shareable(it->second))) refuse(it->second, q, "one of them may not run, or run again");
  }
  if (error) return std::move(*error);
  return {};
}

}  // namespace millstream
