// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/fewest.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream {
namespace {

bool fixed(const SyncPair& p) { return p.from == p.to; }  // forks and joins

class Merger {
 public:
  Merger(const ReduceInput& in, Conditions& conditions) : in_(in), conditions_(conditions), rank_(in.graph.node_count()) {
    const std::vector<NodeId>& walk = in.inserted.walk.empty() ? in.graph.order() : in.inserted.walk;
    for (std::size_t i = 0; i < walk.size(); ++i) rank_[walk[i]] = static_cast<std::uint32_t>(i);
    controlled_ = !in.activation.empty() || in.flow.scoped();
  }

  Result<SyncPlan> run(SyncPlan exact, std::uint32_t most) {
    std::vector<SyncPair> pairs;
    std::uint32_t fixed_pairs = 0;
    for (const SyncPair& p : exact.kept) {
      if (fixed(p)) {
        ++fixed_pairs;
      } else {
        pairs.push_back(p);
      }
    }
    const std::size_t before = pairs.size();
    const std::size_t goal = most > fixed_pairs ? most - fixed_pairs : 0;
    std::vector<SyncPair> kept = pairs;
    while (kept.size() > goal && merge_round(kept, kept.size() - goal)) {
      MST_TRY(kept, thin_out(kept));
    }
    if (kept.size() == pairs.size()) return exact;  // nothing was merged
    MST_TRY(GivenPlan given, explain_given(in_, kept));
    MST_CHECK(given.lost.empty(), "merging keeps every required order");
    std::string example;
    std::size_t merged = 0;
    for (const SyncPair& p : kept) {
      if (p.reason != PairReason::merged) continue;
      if (merged++ == 0) example = fmt::format("{} waits for {}", quote_name(in_.graph.name(p.to)), quote_name(in_.graph.name(p.from)));
    }
    Error added{ErrorCode::no_effect, fmt::format("{} pairs instead of {}: {} of them order more than the graph requires, such as {}",
                                                  kept.size(), before, merged, example)};
    added.note("streams wait longer than they need to, because the target has too few events");
    if (kept.size() > goal) added.note(fmt::format("{} pairs were the aim; no further ones can be merged without a deadlock", goal));
    given.plan.warnings.push_back(std::move(added));
    return std::move(given.plan);
  }

 private:
  std::uint32_t stream(NodeId n) const { return in_.on.placement[n]->stream.index; }

  // Merges up to `wanted` couples of neighbours; false when there are none.
  bool merge_round(std::vector<SyncPair>& pairs, std::size_t wanted) {
    std::sort(pairs.begin(), pairs.end(), [&](const SyncPair& a, const SyncPair& b) {
      if (stream(a.from) != stream(b.from)) return stream(a.from) < stream(b.from);
      if (stream(a.to) != stream(b.to)) return stream(a.to) < stream(b.to);
      return a.from != b.from ? rank_[a.from] < rank_[b.from] : rank_[a.to] < rank_[b.to];
    });
    struct Couple {
      std::uint64_t delay;
      std::size_t first;
    };
    std::vector<Couple> couples;
    for (std::size_t i = 0; i + 1 < pairs.size(); ++i) {
      const SyncPair &a = pairs[i], &b = pairs[i + 1];
      if (stream(a.from) != stream(b.from) || stream(a.to) != stream(b.to)) continue;
      if (rank_[b.from] >= rank_[a.to] || rank_[a.to] > rank_[b.to]) continue;  // would close a circle in the walk
      if (controlled_ && (!conditions_.together(a.from, b.from) || !conditions_.together(a.to, b.to))) continue;
      couples.push_back({std::uint64_t{rank_[b.from]} - rank_[a.from] + rank_[b.to] - rank_[a.to], i});
    }
    std::sort(couples.begin(), couples.end(), [](const Couple& a, const Couple& b) {
      return a.delay != b.delay ? a.delay < b.delay : a.first < b.first;
    });
    std::vector<std::uint8_t> gone(pairs.size(), 0), touched(pairs.size(), 0);
    std::size_t merged = 0;
    for (const Couple& c : couples) {
      if (merged == wanted) break;
      if (touched[c.first] != 0 || touched[c.first + 1] != 0) continue;
      touched[c.first] = touched[c.first + 1] = 1;
      gone[c.first + 1] = 1;
      const SyncPair &a = pairs[c.first], &b = pairs[c.first + 1];
      pairs[c.first] = {b.from, a.to, PairReason::merged};
      ++merged;
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (gone[i] == 0) pairs[left++] = pairs[i];
    }
    pairs.resize(left);
    return merged != 0;
  }

  // The exact reduction of `pairs`.
  Result<std::vector<SyncPair>> thin_out(const std::vector<SyncPair>& pairs) const {
    Insertion merged;
    merged.walk = in_.inserted.walk;
    std::vector<SyncPair> by_to = pairs;
    std::stable_sort(by_to.begin(), by_to.end(), [](const SyncPair& a, const SyncPair& b) { return a.to < b.to; });
    std::size_t next = 0;
    merged.begin.push_back(0);
    for (const NodeId n : in_.graph.nodes()) {
      for (; next < by_to.size() && by_to[next].to == n; ++next) merged.sources.push_back({by_to[next].from, by_to[next].reason});
      merged.begin.push_back(static_cast<std::uint32_t>(merged.sources.size()));
    }
    MST_TRY(const SyncPlan plan, reduce({in_.graph, in_.on, merged, in_.activation, in_.flow, in_.conditions}));
    std::vector<SyncPair> out;
    for (const SyncPair& p : plan.kept) {
      if (!fixed(p)) out.push_back(p);
    }
    return out;
  }

  const ReduceInput& in_;
  Conditions& conditions_;
  IdVec<NodeId, std::uint32_t> rank_;
  bool controlled_ = false;
};

}  // namespace

Result<SyncPlan> merge_pairs(const ReduceInput& in, Conditions& conditions, SyncPlan exact, std::uint32_t most) {
  return Merger(in, conditions).run(std::move(exact), most);
}

}  // namespace millstream
