// SPDX-License-Identifier: Apache-2.0
// Exact reduction by vector clocks, with a certificate for each drop.
//
// Because a stream runs in order, everything that happens before a node is a prefix of every stream; one
// row of positions describes it. Walking nodes in execution order and a node's foreign predecessors latest
// first, a predecessor that the row covers already is implied by what was taken before it (an implied one
// precedes what implies it); the others are exactly the cross-stream edges of the transitive reduction.
//
// Each entry also remembers how its position became known: the pair it came over and, through `parent`, the
// pairs before that. An entry is replaced only by a higher position, so no chain visits a stream twice and
// none is longer than the number of streams.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/clock_rows.h"
#include "millstream/sync/insert.h"

namespace millstream {

std::string_view to_string(PairReason reason) {
  switch (reason) {
    case PairReason::data: return "data";
    case PairReason::control: return "control";
    case PairReason::reuse: return "reuse";
    case PairReason::split: return "split";
    case PairReason::user: return "user";
    case PairReason::exit: return "exit";
    case PairReason::entry: return "entry";
    case PairReason::loop: return "loop";
    case PairReason::fork: return "fork";
    case PairReason::join: return "join";
  }
  return "?";
}

namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

struct Entry {
  std::uint32_t position = 0;  // tasks of that stream known complete
  std::uint32_t record = kNone;
};

// How an entry became known: over `pair`, which brought what `parent` brought to the pair's source.
struct Provenance {
  std::uint32_t pair;
  std::uint32_t parent;
};

class Reducer {
 public:
  Reducer(const Graph& graph, const StreamAssignment& on, const Insertion& inserted)
      : graph_(graph),
        on_(on),
        inserted_(inserted),
        order_(inserted.walk.empty() ? graph.order() : inserted.walk),
        streams_(static_cast<std::uint32_t>(on.streams.size())),
        rank_(graph.node_count(), 0),
        position_(graph.node_count(), 0),
        readers_(graph.node_count(), 0),
        slot_(graph.node_count(), kNone),
        left_(streams_, 0),
        now_(streams_, kNone),
        next_position_(streams_, 0),
        rows_(streams_) {
    for (std::size_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = static_cast<std::uint32_t>(i);
    for (const ForeignSource& s : inserted.sources) ++readers_[s.node()];
    for (const NodeId n : order_) {
      if (on.placement[n]) ++left_[stream(n)];
    }
  }

  Result<SyncPlan> run() {
    plan_.inserted = static_cast<std::uint32_t>(inserted_.sources.size());
    for (const NodeId n : order_) {
      if (on_.placement[n]) MST_TRY_VOID(visit(n));
    }
    sort_kept();
    plan_.kept.shrink_to_fit();
    return std::move(plan_);
  }

 private:
  std::uint32_t stream(NodeId n) const { return on_.placement[n]->stream.index; }

  Result<void> visit(NodeId n) {
    const std::uint32_t here = stream(n);
    if (now_[here] == kNone) {
      now_[here] = rows_.take();
      std::fill_n(rows_.row(now_[here]), streams_, Entry{});
    }
    Entry* clock = rows_.row(now_[here]);

    sources_.assign(inserted_.of(n).begin(), inserted_.of(n).end());
    if (sources_.size() > 1) {
      std::sort(sources_.begin(), sources_.end(), [&](const ForeignSource& a, const ForeignSource& b) {
        return rank_[a.node()] > rank_[b.node()];
      });
    }
    for (const ForeignSource& s : sources_) {
      const NodeId from = s.node();
      // The walk has not come to it: the execution order is not one of this graph.
      if (position_[from] == 0) {
        return Error{ErrorCode::bad_graph, fmt::format("{} needs {}, which the execution order lists behind it",
                                                       quote_name(graph_.name(n)), quote_name(graph_.name(from)))};
      }
      const SyncPair pair{from, n, s.reason()};
      if (clock[stream(from)].position >= position_[from]) {
        drop(pair, clock[stream(from)].record);
      } else {
        join(clock, rows_.row(slot_[from]), static_cast<std::uint32_t>(plan_.kept.size()));
        plan_.kept.push_back(pair);
      }
      if (--readers_[from] == 0) {
        rows_.give_back(slot_[from]);
        slot_[from] = kNone;
      }
    }

    position_[n] = ++next_position_[here];
    clock[here] = {position_[n], kNone};
    if (readers_[n] != 0) {
      slot_[n] = rows_.take();
      std::copy_n(clock, streams_, rows_.row(slot_[n]));
    }
    if (--left_[here] == 0) {
      rows_.give_back(now_[here]);
      now_[here] = kNone;
    }
    if (records_.size() >= collect_at_) collect();
    return {};
  }

  void join(Entry* clock, const Entry* other, std::uint32_t pair) {
    for (std::uint32_t s = 0; s < streams_; ++s) {
      if (other[s].position <= clock[s].position) continue;
      clock[s] = {other[s].position, static_cast<std::uint32_t>(records_.size())};
      records_.push_back({pair, other[s].record});
    }
  }

  void drop(const SyncPair& pair, std::uint32_t record) {
    DroppedPair d;
    d.pair = pair;
    d.path_begin = static_cast<std::uint32_t>(plan_.path_pool.size());
    for (; record != kNone; record = records_[record].parent) plan_.path_pool.push_back(PairId(records_[record].pair));
    d.path_length = static_cast<std::uint32_t>(plan_.path_pool.size()) - d.path_begin;
    MST_CHECK(d.path_length != 0, "a covered position came over a pair");
    std::reverse(plan_.path_pool.begin() + d.path_begin, plan_.path_pool.end());
    plan_.dropped.push_back(d);
  }

  // Frees the records that no live row reaches. Parents are older than children, so one pass renumbers.
  void collect() {
    std::vector<std::uint32_t> renumbered(records_.size(), kNone);
    for (std::uint32_t id = 0; id < rows_.made(); ++id) {
      if (!rows_.live(id)) continue;
      const Entry* row = rows_.row(id);
      for (std::uint32_t s = 0; s < streams_; ++s) {
        for (std::uint32_t r = row[s].record; r != kNone && renumbered[r] == kNone; r = records_[r].parent) {
          renumbered[r] = 0;
        }
      }
    }
    std::uint32_t used = 0;
    for (std::uint32_t r = 0; r < records_.size(); ++r) {
      if (renumbered[r] == kNone) continue;
      const Provenance p = records_[r];
      renumbered[r] = used;
      records_[used++] = {p.pair, p.parent == kNone ? kNone : renumbered[p.parent]};
    }
    for (std::uint32_t id = 0; id < rows_.made(); ++id) {
      if (!rows_.live(id)) continue;
      Entry* row = rows_.row(id);
      for (std::uint32_t s = 0; s < streams_; ++s) {
        if (row[s].record != kNone) row[s].record = renumbered[row[s].record];
      }
    }
    records_.resize(used);
    // Twice what is left, and at least what one look at all rows costs: constant amortized.
    collect_at_ = std::max({kCollectAtLeast, std::size_t{used} * 2, std::size_t{rows_.made()} * streams_});
  }

  // By receiver, then sender, in execution order; path_pool follows.
  void sort_kept() {
    if (!inserted_.walk.empty()) {
      for (std::size_t i = 0; i < graph_.order().size(); ++i) rank_[graph_.order()[i]] = static_cast<std::uint32_t>(i);
    }
    const auto before = [&](const SyncPair& a, const SyncPair& b) {
      return a.to != b.to ? rank_[a.to] < rank_[b.to] : rank_[a.from] < rank_[b.from];
    };
    if (std::is_sorted(plan_.kept.begin(), plan_.kept.end(), before)) return;
    std::vector<std::uint32_t> sorted(plan_.kept.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::sort(sorted.begin(), sorted.end(),
              [&](std::uint32_t a, std::uint32_t b) { return before(plan_.kept[a], plan_.kept[b]); });
    std::vector<std::uint32_t> place(sorted.size());
    std::vector<SyncPair> kept(sorted.size());
    for (std::uint32_t i = 0; i < sorted.size(); ++i) {
      place[sorted[i]] = i;
      kept[i] = plan_.kept[sorted[i]];
    }
    plan_.kept = std::move(kept);
    for (PairId& id : plan_.path_pool) id = PairId(place[id.index]);
  }

  static constexpr std::size_t kCollectAtLeast = 1 << 16;

  const Graph& graph_;
  const StreamAssignment& on_;
  const Insertion& inserted_;
  const std::vector<NodeId>& order_;
  const std::uint32_t streams_;
  IdVec<NodeId, std::uint32_t> rank_;
  IdVec<NodeId, std::uint32_t> position_;  // on its stream, from 1; 0: not yet visited
  IdVec<NodeId, std::uint32_t> readers_;   // foreign successors not yet visited
  IdVec<NodeId, std::uint32_t> slot_;      // row of the clock behind the node, while it has readers
  std::vector<std::uint32_t> left_;        // by stream: nodes not yet visited
  std::vector<std::uint32_t> now_;         // by stream: row of what it knows
  std::vector<std::uint32_t> next_position_;
  ClockRows<Entry> rows_;
  std::vector<Provenance> records_;
  std::size_t collect_at_ = kCollectAtLeast;
  std::vector<ForeignSource> sources_;
  SyncPlan plan_;
};

// Every inserted pair, unreduced.
SyncPlan keep_all(const Graph& graph, const Insertion& inserted) {
  SyncPlan plan;
  plan.mode = SyncMode::none;
  plan.inserted = static_cast<std::uint32_t>(inserted.sources.size());
  IdVec<NodeId, std::uint32_t> rank(graph.node_count(), 0);
  for (std::size_t i = 0; i < graph.order().size(); ++i) rank[graph.order()[i]] = static_cast<std::uint32_t>(i);
  for (const NodeId n : graph.order()) {
    const std::size_t first = plan.kept.size();
    for (const ForeignSource& s : inserted.of(n)) plan.kept.push_back({s.node(), n, s.reason()});
    std::sort(plan.kept.begin() + static_cast<std::ptrdiff_t>(first), plan.kept.end(),
              [&](const SyncPair& a, const SyncPair& b) { return rank[a.from] < rank[b.from]; });
  }
  return plan;
}

}  // namespace

Result<SyncPlan> plan_sync(const Graph& graph, const StreamAssignment& on, const SyncOptions& options) {
  MST_TRY(const Insertion inserted, insert_pairs(graph, on));
  if (options.mode == SyncMode::none) return keep_all(graph, inserted);
  return Reducer(graph, on, inserted).run();
}

}  // namespace millstream
