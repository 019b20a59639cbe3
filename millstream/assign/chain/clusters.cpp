// SPDX-License-Identifier: Apache-2.0
#include "millstream/assign/chain/clusters.h"

#include <algorithm>

namespace millstream::chain {
namespace {

constexpr std::uint32_t kEnd = 0xffffffffu;

// Lists of cluster numbers that can be joined in constant time. An entry may name a cluster that has been merged since.
class Lists {
 public:
  explicit Lists(std::size_t n) : head_(n, kEnd), tail_(n, kEnd) {}
  void append(std::uint32_t list, std::uint32_t value) {
    const auto at = static_cast<std::uint32_t>(items_.size());
    items_.push_back({value, kEnd});
    (head_[list] == kEnd ? head_[list] : items_[tail_[list]].next) = at;
    tail_[list] = at;
  }
  void join(std::uint32_t into, std::uint32_t from) {
    if (head_[from] == kEnd) return;
    (head_[into] == kEnd ? head_[into] : items_[tail_[into]].next) = head_[from];
    tail_[into] = tail_[from];
    head_[from] = tail_[from] = kEnd;
  }
  std::uint32_t last(std::uint32_t list) const { return head_[list] == kEnd ? kEnd : items_[tail_[list]].value; }

  /// Calls visit(value) once for each cluster that `find` makes of the entries; repeats leave the list.
  template <class Find, class First, class Visit>
  std::size_t sweep(std::uint32_t list, Find find, First first, Visit visit) {
    std::size_t seen = 0;
    std::uint32_t before = kEnd;
    for (std::uint32_t at = head_[list]; at != kEnd; at = items_[at].next) {
      ++seen;
      const std::uint32_t value = find(items_[at].value);
      items_[at].value = value;
      if (!first(value)) {
        items_[before].next = items_[at].next;
        if (tail_[list] == at) tail_[list] = before;
        continue;
      }
      before = at;
      visit(value);
    }
    return seen;
  }

 private:
  struct Item {
    std::uint32_t value, next;
  };
  std::vector<std::uint32_t> head_, tail_;
  std::vector<Item> items_;
};

class Merger {
 public:
  explicit Merger(const ClusterGraph& graph)
      : graph_(graph), root_(graph.size()), out_(graph.size()), in_(graph.size()), ahead_(graph.size(), 0),
        behind_(graph.size(), 0), swept_(graph.size(), 0), parent_of_(graph.size(), kEnd) {
    for (std::uint32_t i = 0; i < root_.size(); ++i) root_[i] = i;
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t c = 0; c < graph_.size(); ++c) add(c);
    for (std::uint32_t c = 0; c < graph_.size(); ++c) root_[c] = find(c);
    return std::move(root_);
  }

 private:
  std::uint32_t find(std::uint32_t c) {
    while (root_[c] != c) {
      root_[c] = root_[root_[c]];
      c = root_[c];
    }
    return c;
  }

  void add(std::uint32_t c) {
    parents_.clear();
    for (std::uint32_t i = graph_.pred_begin[c]; i < graph_.pred_begin[c + 1]; ++i) {
      const std::uint32_t p = find(graph_.pred[i]);
      if (parent_of_[p] == c) continue;
      parent_of_[p] = c;
      parents_.push_back(p);
    }
    merging_.clear();
    for (const std::uint32_t p : parents_) {
      if (graph_.key[p] == graph_.key[c] && (parents_.size() == 1 || !reaches_another(p))) merging_.push_back(p);
    }
    std::uint32_t merged = c;
    for (const std::uint32_t p : merging_) {
      const std::uint32_t first = std::min(p, merged), second = std::max(p, merged);
      root_[second] = first;
      out_.join(first, second);
      in_.join(first, second);
      merged = first;
    }
    for (const std::uint32_t p : parents_) {
      if (std::find(merging_.begin(), merging_.end(), p) != merging_.end()) continue;
      const std::uint32_t last = out_.last(p);
      if (last != kEnd && find(last) == merged) continue;
      out_.append(p, merged);
      in_.append(merged, p);
    }
  }

  // Whether a path leads from p to another of the parents.
  bool reaches_another(std::uint32_t p) {
    ++query_;
    ahead_side_.assign(1, p);
    ahead_[p] = query_;
    behind_side_.clear();
    for (const std::uint32_t q : parents_) {
      if (q == p) continue;
      behind_[q] = query_;
      behind_side_.push_back(q);
    }
    std::size_t cost_ahead = 0, cost_behind = 0;
    bool met = false;
    while (!met && !ahead_side_.empty() && !behind_side_.empty()) {
      if (cost_ahead <= cost_behind) {
        cost_ahead += 1 + expand(out_, ahead_side_, ahead_, behind_, met);
      } else {
        cost_behind += 1 + expand(in_, behind_side_, behind_, ahead_, met);
      }
    }
    return met;
  }

  std::size_t expand(Lists& lists, std::vector<std::uint32_t>& side, std::vector<std::uint32_t>& mine,
                     const std::vector<std::uint32_t>& other, bool& met) {
    const std::uint32_t at = side.back();
    side.pop_back();
    ++sweep_;
    return lists.sweep(
        at, [&](std::uint32_t x) { return find(x); },
        [&](std::uint32_t x) {
          if (swept_[x] == sweep_) return false;
          swept_[x] = sweep_;
          return true;
        },
        [&](std::uint32_t x) {
          met = met || other[x] == query_;
          if (mine[x] == query_) return;
          mine[x] = query_;
          side.push_back(x);
        });
  }

  const ClusterGraph& graph_;
  std::vector<std::uint32_t> root_;  // by position: towards the first position of its cluster
  Lists out_, in_;                   // of a cluster: neighbours over edges that leave it
  std::vector<std::uint32_t> ahead_, behind_;  // last question that met the cluster, on each side
  std::vector<std::uint32_t> swept_;
  std::vector<std::uint32_t> parent_of_;  // the last child that had this cluster as a parent
  std::vector<std::uint32_t> parents_, merging_, ahead_side_, behind_side_;
  std::uint32_t query_ = 0;
  std::uint32_t sweep_ = 0;
};

}  // namespace

std::vector<std::uint32_t> merge_clusters(const ClusterGraph& graph) { return Merger(graph).run(); }

}  // namespace millstream::chain
