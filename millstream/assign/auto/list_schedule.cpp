// SPDX-License-Identifier: Apache-2.0
#include "millstream/assign/auto/list_schedule.h"

#include <algorithm>
#include <queue>

namespace millstream {
namespace {

constexpr std::uint32_t kNoLane = 0xffffffffu;
// Two finishes closer than this (relative) count as equal: a rounding must not part neighbours.
constexpr double kTie = 1e-9;

class Placer {
 public:
  explicit Placer(const ListScheduleInput& in)
      : in_(in),
        lane_count_(in.fixed_lanes + in.free_lanes),
        free_(lane_count_, 0),
        latest_(lane_count_, 0),
        seen_(lane_count_ <= kMaxSeenLanes ? std::size_t{lane_count_} * lane_count_ : 0, 0),
        finish_(in.tasks.node_count(), 0) {
    lanes_.of = IdVec<NodeId, std::uint32_t>(in.tasks.node_count(), kNoLane);
    lanes_.count = lane_count_;
    if (in.free_sync) return;
    wait_ = in.costs.wait_us;
    record_ = in.costs.record_us;
    hand_off_ = in.costs.hand_off_us;
  }

  void place(NodeId v) {
    gather(v);
    const double duration = in_.durations[v];
    std::uint32_t best = kNoLane;
    double best_finish = 0;
    if (in_.fixed[v]) {
      best = *in_.fixed[v];
      best_finish = start_on(best) + duration;
    } else {
      // The lane of the last predecessor first: it wins ties.
      if (last_lane_ != kNoLane && last_lane_ >= in_.fixed_lanes) {
        best = last_lane_;
        best_finish = start_on(best) + duration;
      }
      for (std::uint32_t s = in_.fixed_lanes; s < lane_count_; ++s) {
        const double finish = start_on(s) + duration;
        if (best == kNoLane || finish < best_finish - kTie * (1 + best_finish)) {
          best = s;
          best_finish = finish;
        }
      }
    }
    settle(v, best, best_finish);
  }

  Lanes take() { return std::move(lanes_); }

 private:
  static constexpr std::uint32_t kMaxSeenLanes = 1024;

  // Per lane the latest predecessor; overall the latest and the latest on another lane than that one.
  void gather(NodeId v) {
    for (const std::uint32_t s : touched_) latest_[s] = 0;
    touched_.clear();
    last_lane_ = kNoLane;
    for (const NodeId u : in_.tasks.predecessors(v)) {
      const std::uint32_t s = lanes_.of[u];
      if (s == kNoLane) continue;  // a fixed order may list a predecessor later
      if (latest_[s] == 0) touched_.push_back(s);
      latest_[s] = std::max(latest_[s], finish_[u]);
      // Zero marks absence, so a predecessor that took no time still counts.
      latest_[s] = std::max(latest_[s], kTiny);
      if (last_lane_ == kNoLane || latest_[s] > latest_[last_lane_]) last_lane_ = s;
    }
    first_ = second_ = 0;
    for (const std::uint32_t s : touched_) {
      if (s == last_lane_) {
        first_ = latest_[s];
      } else {
        second_ = std::max(second_, latest_[s]);
      }
    }
  }

  double start_on(std::uint32_t s) const {
    double at = free_[s];
    const double record = s == last_lane_ ? second_ : first_;
    if (record == 0) return at;
    const double waits = static_cast<double>(touched_.size()) - (latest_[s] != 0 ? 1 : 0);
    if (record + record_ > at) {
      // A record this lane has already waited behind is implied and costs nothing.
      at = record + record_ + hand_off_;
    }
    return at + wait_ * waits;
  }

  void settle(NodeId v, std::uint32_t s, double finish) {
    lanes_.of[v] = s;
    finish_[v] = finish;
    free_[s] = finish;
    if (seen_.empty()) return;
    for (const std::uint32_t a : touched_) {
      if (a == s) continue;
      double& seen = seen_[std::size_t{s} * lane_count_ + a];
      if (latest_[a] > seen) {
        seen = latest_[a];
        free_[a] += record_;
      }
    }
  }

  static constexpr double kTiny = 1e-300;

  const ListScheduleInput& in_;
  const std::uint32_t lane_count_;
  double wait_ = 0, record_ = 0, hand_off_ = 0;
  Lanes lanes_;
  std::vector<double> free_;    // by lane: end of its last task
  std::vector<double> latest_;  // by lane: latest predecessor of the current node; 0 = none
  std::vector<double> seen_;    // lane, lane: the latest finish of the second that the first waited for
  IdVec<NodeId, double> finish_;
  std::vector<std::uint32_t> touched_;
  std::uint32_t last_lane_ = kNoLane;
  double first_ = 0, second_ = 0;
};

void place_by_rank(const ListScheduleInput& in, Placer& placer) {
  const double parts = in.fixed_lanes + in.free_lanes;
  const double sync =
      in.free_sync ? 0 : (in.costs.record_us + in.costs.wait_us + in.costs.hand_off_us) * (parts - 1) / parts;
  const IdVec<NodeId, double> rank = upward_ranks(in.tasks, in.durations, sync);
  IdVec<NodeId, std::uint32_t> missing(in.tasks.node_count(), 0);
  const auto later = [&](NodeId a, NodeId b) {
    if (rank[a] != rank[b]) return rank[a] < rank[b];
    return in.tasks.rank_in_order(a) > in.tasks.rank_in_order(b);
  };
  std::priority_queue<NodeId, std::vector<NodeId>, decltype(later)> ready(later);
  for (const NodeId v : in.tasks.order()) {
    missing[v] = static_cast<std::uint32_t>(in.tasks.predecessors(v).size());
    if (missing[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const NodeId v = ready.top();
    ready.pop();
    placer.place(v);
    for (const NodeId w : in.tasks.successors(v)) {
      if (--missing[w] == 0) ready.push(w);
    }
  }
}

}  // namespace

Lanes list_schedule(const ListScheduleInput& in, ListOrder order) {
  Placer placer(in);
  if (order == ListOrder::by_rank) {
    place_by_rank(in, placer);
  } else {
    for (const NodeId v : in.tasks.order()) placer.place(v);
  }
  return placer.take();
}

void spread(const ListScheduleInput& in, const std::vector<NodeId>& antichain, Lanes& lanes) {
  std::vector<std::uint32_t> nodes_on(lanes.count, 0);
  for (const NodeId v : in.tasks.order()) ++nodes_on[lanes.of[v]];
  std::uint32_t empty = in.fixed_lanes;
  const auto next_empty = [&] {
    while (empty < lanes.count && nodes_on[empty] != 0) ++empty;
    return empty < lanes.count;
  };
  std::vector<char> taken(lanes.count, 0);  // lanes that already hold a node of the antichain
  for (const NodeId v : antichain) {
    const std::uint32_t s = lanes.of[v];
    if (!taken[s]) {
      taken[s] = 1;
      continue;
    }
    if (!next_empty()) return;
    --nodes_on[s];
    ++nodes_on[empty];
    lanes.of[v] = empty;
    taken[empty] = 1;
  }
}

}  // namespace millstream
