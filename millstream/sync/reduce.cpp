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
//
// A stream of several activators and a label that is reached in several ways start from the minimum over the
// ways, entry by entry; such an entry came over a start fact, which keeps each way's own record. A node with
// attached streams has three positions: its fork, itself and its join, behind which its records stand.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/clock_rows.h"
#include "millstream/sync/reduce.h"

namespace millstream {

namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

struct Entry {
  std::uint32_t position = 0;  // tasks of that stream known complete
  std::uint32_t record = kNone;
};

// How an entry became known: over `pair` (or a start fact), which brought what `parent` brought to its source.
struct Provenance {
  std::uint32_t pair;
  std::uint32_t parent;
};

// A node that is reached in several ways, or a stream's first node that others start.
struct OrNode {
  NodeId node;
  std::vector<NodeId> ways;      // activators or jumps
  bool falls_through = false;    // a label that the node before it on its stream leads to as well
};

// What all ways to `start` know of one stream.
struct Fact {
  NodeId start;
  std::uint32_t stream = 0;
  std::uint32_t position = 0;
  std::uint32_t ways_begin = 0;
  std::uint32_t ways = 0;
};
struct Way {
  NodeId through;
  std::uint32_t record;
  std::optional<NodeId> idle = std::nullopt;
};

class Reducer {
 public:
  Reducer(const ReduceInput& in, const std::vector<SyncPair>* given)
      : graph_(in.graph),
        on_(in.on),
        inserted_(in.inserted),
        order_(in.inserted.walk.empty() ? in.graph.order() : in.inserted.walk),
        streams_(static_cast<std::uint32_t>(in.on.streams.size())),
        attached_(!in.on.attached.empty()),
        given_mode_(given != nullptr),
        rank_(in.graph.node_count(), 0),
        position_(in.graph.node_count(), 0),
        readers_(in.graph.node_count(), 0),
        slot_(in.graph.node_count(), kNone),
        left_(streams_, 0),
        now_(streams_, kNone),
        next_position_(streams_, 0),
        rows_(streams_) {
    for (std::size_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = static_cast<std::uint32_t>(i);
    for (const ForeignSource& s : inserted_.sources) ++readers_[s.node()];
    if (given_mode_) {
      given_ = *given;
      std::stable_sort(given_.begin(), given_.end(), [&](const SyncPair& a, const SyncPair& b) {
        return a.to != b.to ? a.to < b.to : rank_[a.from] > rank_[b.from];
      });
      for (const SyncPair& p : given_) ++readers_[p.from];
    }
    for (const NodeId n : order_) {
      if (on_.placement[n]) ++left_[stream(n)];
    }
    if (attached_) {
      for (const NodeId n : order_) {
        for (const StreamId a : parts(n)) ++left_[a.index];
      }
    }
    find_or_nodes(in);
    conditions_ = in.conditions;
    if (!or_nodes_.empty()) number_ends();
  }

  Result<SyncPlan> run() {
    plan_.inserted = static_cast<std::uint32_t>(inserted_.sources.size());
    for (const NodeId n : order_) {
      if (on_.placement[n]) MST_TRY_VOID(visit(n));
    }
    write_facts();
    sort_kept();
    plan_.kept.shrink_to_fit();
    return std::move(plan_);
  }

  std::vector<SyncPair> lost() { return std::move(lost_); }

 private:
  std::uint32_t stream(NodeId n) const { return on_.placement[n]->stream.index; }
  std::span<const StreamId> parts(NodeId n) const {
    return attached_ && on_.placement[n] ? on_.forked(n) : std::span<const StreamId>();
  }

  void find_or_nodes(const ReduceInput& in) {
    std::vector<std::uint32_t> last(streams_, kNone);
    const bool started = !in.activation.empty();
    if (!started && !in.flow.has_jumps()) return;
    for (const NodeId n : graph_.order()) {
      if (!on_.placement[n]) continue;
      const std::uint32_t here = stream(n);
      const std::uint32_t previous = last[here];
      last[here] = n.index;
      OrNode o{n, {}};
      if (previous == kNone && !in.activation.head(StreamId(here))) {
        o.ways = in.activation.started_by[StreamId(here)];
      } else if (in.flow.is_target(n)) {
        o.ways = in.flow.jumps_to(n);
        o.falls_through = previous != kNone && !in.flow.leaves(NodeId(previous));
      }
      if (o.ways.empty()) continue;
      for (const NodeId w : o.ways) ++readers_[w];
      or_nodes_.push_back(std::move(o));
    }
    std::sort(or_nodes_.begin(), or_nodes_.end(), [](const OrNode& a, const OrNode& b) { return a.node < b.node; });
  }
  void number_ends() {
    ends_.resize(streams_);
    std::vector<std::uint32_t> next(streams_, 0);
    for (const NodeId n : graph_.order()) {
      if (!on_.placement[n]) continue;
      const std::span<const StreamId> list = parts(n);
      ends_[stream(n)].push_back({next[stream(n)] += list.empty() ? 1 : 3, n});
      for (const StreamId a : list) ends_[a.index].push_back({++next[a.index], n});
    }
  }
  // The first node of a stream that a position does not cover.
  auto first_behind(std::uint32_t s, std::uint32_t position) const {
    return std::upper_bound(ends_[s].begin(), ends_[s].end(), position, [](std::uint32_t p, const auto& e) { return p < e.first; });
  }
  const OrNode* or_node(NodeId n) const {
    if (or_nodes_.empty()) return nullptr;
    const auto at = std::lower_bound(or_nodes_.begin(), or_nodes_.end(), n, [](const OrNode& o, NodeId k) { return o.node < k; });
    return at != or_nodes_.end() && at->node == n ? &*at : nullptr;
  }

  Entry* clock_of(std::uint32_t s) {
    if (now_[s] == kNone) {
      now_[s] = rows_.take();
      std::fill_n(rows_.row(now_[s]), streams_, Entry{});
    }
    return rows_.row(now_[s]);
  }

  void read(NodeId from) {
    if (--readers_[from] != 0 || slot_[from] == kNone) return;
    rows_.give_back(slot_[from]);
    slot_[from] = kNone;
  }

  Result<void> visit(NodeId n) {
    const std::uint32_t here = stream(n);
    Entry* clock = clock_of(here);
    const OrNode* ways = or_node(n);
    if (ways != nullptr && !ways->falls_through) start_from(*ways, here, clock);

    if (given_mode_) {
      auto at = std::lower_bound(given_.begin(), given_.end(), n, [](const SyncPair& p, NodeId k) { return p.to < k; });
      for (; at != given_.end() && at->to == n; ++at) {
        if (position_[at->from] == 0) return behind(n, at->from);
        join(clock, rows_.row(slot_[at->from]), static_cast<std::uint32_t>(plan_.kept.size()));
        plan_.kept.push_back(*at);
        read(at->from);
      }
    }
    sources_.assign(inserted_.of(n).begin(), inserted_.of(n).end());
    if (sources_.size() > 1) {
      std::sort(sources_.begin(), sources_.end(), [&](const ForeignSource& a, const ForeignSource& b) {
        return rank_[a.node()] > rank_[b.node()];
      });
    }
    for (const ForeignSource& s : sources_) {
      const NodeId from = s.node();
      if (position_[from] == 0) return behind(n, from);
      const SyncPair pair{from, n, s.reason()};
      if (given_mode_ && is_given(pair)) {
        read(from);
        continue;
      }
      if (clock[stream(from)].position >= position_[from]) {
        drop(pair, clock[stream(from)].record);
      } else if (given_mode_) {
        lost_.push_back(pair);
      } else {
        join(clock, rows_.row(slot_[from]), static_cast<std::uint32_t>(plan_.kept.size()));
        plan_.kept.push_back(pair);
      }
      read(from);
    }
    if (ways != nullptr && ways->falls_through) start_from(*ways, here, clock);

    position_[n] = ++next_position_[here];
    if (attached_) visit_parts(n, here, clock);
    clock[here] = {next_position_[here], kNone};
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

  // The walk has not come to it: the execution order is not one of this graph.
  Error behind(NodeId n, NodeId from) const {
    return Error{ErrorCode::bad_graph, fmt::format("{} needs {}, which the execution order lists behind it",
                                                   quote_name(graph_.name(n)), quote_name(graph_.name(from)))};
  }

  bool is_given(const SyncPair& pair) const {
    auto at = std::lower_bound(given_.begin(), given_.end(), pair.to, [](const SyncPair& p, NodeId k) { return p.to < k; });
    for (; at != given_.end() && at->to == pair.to; ++at) {
      if (at->from == pair.from && at->reason == pair.reason) return true;
    }
    return false;
  }

  // The node's parts on its attached streams, between its fork and its join; its first position is the fork's.
  void visit_parts(NodeId n, std::uint32_t here, Entry* clock) {
    const std::span<const StreamId> list = parts(n);
    if (list.empty()) return;
    clock[here] = {position_[n], kNone};
    for (const StreamId a : list) {
      Entry* side = clock_of(a.index);
      join(side, clock, static_cast<std::uint32_t>(plan_.kept.size()));
      plan_.kept.push_back({n, n, PairReason::fork, a});
      side[a.index] = {++next_position_[a.index], kNone};
    }
    position_[n] = ++next_position_[here];
    ++next_position_[here];
    clock[here] = {next_position_[here], kNone};
    for (const StreamId a : list) {
      join(clock, rows_.row(now_[a.index]), static_cast<std::uint32_t>(plan_.kept.size()));
      plan_.kept.push_back({n, n, PairReason::join, a});
      if (--left_[a.index] == 0) {
        rows_.give_back(now_[a.index]);
        now_[a.index] = kNone;
      }
    }
    plan_.inserted += static_cast<std::uint32_t>(2 * list.size());
  }

  // The clock becomes what every way knows; a label's own waits are part of the way that falls through.
  void start_from(const OrNode& o, std::uint32_t here, Entry* clock) {
    for (std::uint32_t s = 0; s < streams_; ++s) {
      if (s == here) continue;
      Fact f{o.node, s, kNone, static_cast<std::uint32_t>(ways_.size()), 0};
      std::uint32_t least = kNone;  // of all ways, should the stream be idle in each
      const auto way = [&](NodeId through, const Entry& known) {
        std::optional<NodeId> idle;
        const auto next = first_behind(s, known.position);
        if (conditions_ != nullptr && next != ends_[s].end() && conditions_->excludes(o.node, through, next->second)) idle = next->second;
        ways_.push_back({through, known.record, idle});
        least = std::min(least, known.position);
        if (!idle) f.position = std::min(f.position, known.position);
      };
      if (o.falls_through) way(o.node, clock[s]);
      for (const NodeId w : o.ways) way(w, slot_[w] == kNone ? Entry{} : rows_.row(slot_[w])[s]);
      f.ways = static_cast<std::uint32_t>(ways_.size()) - f.ways_begin;
      if (f.position == kNone) {
        f.position = least;
        for (std::uint32_t w = f.ways_begin; w < ways_.size(); ++w) ways_[w].idle.reset();
      }
      const std::uint32_t position = f.position;
      if (position == 0) {
        ways_.erase(ways_.begin() + f.ways_begin, ways_.end());
        clock[s] = Entry{};
        continue;
      }
      clock[s] = {position, static_cast<std::uint32_t>(records_.size())};
      records_.push_back({kStartStep | static_cast<std::uint32_t>(facts_.size()), kNone});
      facts_.push_back(f);
    }
    for (const NodeId w : o.ways) read(w);
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
    write_path(record);
    d.path_length = static_cast<std::uint32_t>(plan_.path_pool.size()) - d.path_begin;
    MST_CHECK(d.path_length != 0, "a covered position came over a pair");
    plan_.dropped.push_back(d);
  }

  void write_path(std::uint32_t record) {
    const auto begin = static_cast<std::ptrdiff_t>(plan_.path_pool.size());
    for (; record != kNone; record = records_[record].parent) {
      const std::uint32_t step = records_[record].pair;
      if ((step & kStartStep) != 0) use_fact(step & ~kStartStep);
      plan_.path_pool.push_back(PairId(step));
    }
    std::reverse(plan_.path_pool.begin() + begin, plan_.path_pool.end());
  }

  void use_fact(std::uint32_t f) {
    if (used_facts_.size() < facts_.size()) used_facts_.resize(facts_.size(), 0);
    used_facts_[f] = 1;
  }

  // The facts that paths name, earlier ones first, with a path for each way.
  void write_facts() {
    if (facts_.empty()) return;
    use_fact(0);  // fits the table
    used_facts_[0] = 0;
    for (const PairId step : plan_.path_pool) {
      if ((step.index & kStartStep) != 0) used_facts_[step.index & ~kStartStep] = 1;
    }
    struct Written {
      std::uint32_t begin, length;
    };
    std::vector<Written> paths(ways_.size());
    for (std::size_t f = facts_.size(); f-- > 0;) {
      if (used_facts_[f] == 0) continue;
      for (std::uint32_t w = facts_[f].ways_begin; w < facts_[f].ways_begin + facts_[f].ways; ++w) {
        paths[w].begin = static_cast<std::uint32_t>(plan_.path_pool.size());
        write_path(ways_[w].record);
        paths[w].length = static_cast<std::uint32_t>(plan_.path_pool.size()) - paths[w].begin;
      }
    }
    std::vector<std::uint32_t> place(facts_.size(), kNone);
    for (std::size_t f = 0; f < facts_.size(); ++f) {
      if (used_facts_[f] == 0) continue;
      place[f] = static_cast<std::uint32_t>(plan_.starts.size());
      const Fact& fact = facts_[f];
      // The last node of the stream that the position covers; a fork covers what stands before it.
      auto at = first_behind(fact.stream, fact.position);
      MST_CHECK(at != ends_[fact.stream].begin(), "a fact that a path names covers a node");
      --at;
      plan_.starts.push_back({fact.start, at->second, StreamId(fact.stream), static_cast<std::uint32_t>(plan_.start_ways.size()), fact.ways});
      for (std::uint32_t w = fact.ways_begin; w < fact.ways_begin + fact.ways; ++w) {
        plan_.start_ways.push_back({ways_[w].through, paths[w].begin, paths[w].length, ways_[w].idle});
      }
    }
    for (PairId& step : plan_.path_pool) {
      if ((step.index & kStartStep) != 0) step = PairId(kStartStep | place[step.index & ~kStartStep]);
    }
  }

  // Frees the records that no live row reaches. Parents are older than children, so one pass renumbers.
  void collect() {
    std::vector<std::uint32_t> renumbered(records_.size(), kNone);
    const auto mark = [&](std::uint32_t r) {
      for (; r != kNone && renumbered[r] == kNone; r = records_[r].parent) renumbered[r] = 0;
    };
    for (std::uint32_t id = 0; id < rows_.made(); ++id) {
      if (!rows_.live(id)) continue;
      const Entry* row = rows_.row(id);
      for (std::uint32_t s = 0; s < streams_; ++s) mark(row[s].record);
    }
    for (const Way& w : ways_) mark(w.record);
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
    for (Way& w : ways_) {
      if (w.record != kNone) w.record = renumbered[w.record];
    }
    records_.resize(used);
    // Twice what is left, and at least what one look at all rows costs: constant amortized.
    collect_at_ = std::max({kCollectAtLeast, std::size_t{used} * 2, std::size_t{rows_.made()} * streams_, ways_.size()});
  }

  // By receiver, then sender, in execution order; path_pool follows.
  void sort_kept() {
    if (!inserted_.walk.empty()) {
      for (std::size_t i = 0; i < graph_.order().size(); ++i) rank_[graph_.order()[i]] = static_cast<std::uint32_t>(i);
    }
    const auto before = [&](const SyncPair& a, const SyncPair& b) {
      if (a.to != b.to) return rank_[a.to] < rank_[b.to];
      if (a.from != b.from) return rank_[a.from] < rank_[b.from];
      return a.reason != b.reason ? a.reason < b.reason : a.stream < b.stream;
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
    for (PairId& id : plan_.path_pool) {
      if ((id.index & kStartStep) == 0) id = PairId(place[id.index]);
    }
  }

  static constexpr std::size_t kCollectAtLeast = 1 << 16;

  const Graph& graph_;
  const StreamAssignment& on_;
  const Insertion& inserted_;
  const std::vector<NodeId>& order_;
  const std::uint32_t streams_;
  const bool attached_;
  const bool given_mode_;
  Conditions* conditions_ = nullptr;
  std::vector<SyncPair> given_;  // by receiver, latest sender first
  std::vector<SyncPair> lost_;
  std::vector<OrNode> or_nodes_;  // by node
  std::vector<Fact> facts_;
  std::vector<Way> ways_;
  std::vector<std::uint8_t> used_facts_;
  std::vector<std::vector<std::pair<std::uint32_t, NodeId>>> ends_;  // by stream: nodes by their last position
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

}  // namespace

Result<SyncPlan> reduce(const ReduceInput& in) { return Reducer(in, nullptr).run(); }

Result<GivenPlan> explain_given(const ReduceInput& in, const std::vector<SyncPair>& given) {
  Reducer reducer(in, &given);
  GivenPlan out;
  MST_TRY(out.plan, reducer.run());
  out.lost = reducer.lost();
  return out;
}

}  // namespace millstream
