// SPDX-License-Identifier: Apache-2.0
// The scoring simulation: what a plan would take, waits and shared bandwidth included.
#include "millstream/assign/predict.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millstream {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

enum class State : std::uint8_t { done, blocked, ready, running };

struct Lane {
  std::uint32_t next = 0;  // into Simulation::list_
  std::uint32_t end = 0;
  State state = State::done;
  double free = 0;    // when the lane reached its next node
  double at = 0;      // ready: earliest start; running: finish
  double rate = 1;    // running: share of full speed
  double demand = 0;  // running: bytes a microsecond at full speed
};

class Simulation {
 public:
  Simulation(const TaskGraph& tasks, const Lanes& lanes, const WorkTable& work, const Target& target,
             std::uint32_t threads, const std::vector<LanePair>& pairs)
      : tasks_(tasks),
        lanes_of_(lanes),
        work_(work),
        costs_(target.costs),
        threads_(std::max(1u, threads)),
        slots_(std::max(1u, target.cores / threads_)),
        lanes_(lanes.count),
        pairs_(pairs),
        recorded_(pairs.size(), kForever) {
    list_by_lane();
    list_pairs();
  }

  Prediction run() {
    for (Lane& lane : lanes_) arrive(lane);
    while (true) {
      start_what_can();
      const double next = next_time();
      if (next == kForever) break;
      if (running_ > 0) busy_ += next - now_;
      if (running_ > 1) shared_ += next - now_;
      now_ = next;
      finish_what_is_done();
    }
    for (const Lane& lane : lanes_) {
      if (lane.state != State::done) return {kForever, 0, pairs_.size()};
    }
    return {now_, busy_ > 0 ? shared_ / busy_ : 0, pairs_.size()};
  }

 private:
  void list_by_lane() {
    std::vector<std::uint32_t> begin(lanes_.size() + 1, 0);
    for (const NodeId v : tasks_.order()) ++begin[lanes_of_.of[v] + 1];
    for (std::size_t i = 0; i < lanes_.size(); ++i) begin[i + 1] += begin[i];
    list_.resize(tasks_.order().size());
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].next = begin[i];
      lanes_[i].end = begin[i + 1];
    }
    for (const NodeId v : tasks_.order()) list_[begin[lanes_of_.of[v]]++] = v;
  }

  // Waits of a node stand together in pairs_, in the order its stream will wait.
  void list_pairs() {
    const std::size_t n = tasks_.node_count();
    out_begin_.assign(n + 1, 0);
    first_wait_ = IdVec<NodeId, std::uint32_t>(n, 0);
    pending_ = IdVec<NodeId, std::uint32_t>(n, 0);
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      ++out_begin_[pairs_[i].from.index + 1];
      ++pending_[pairs_[i].to];
      first_wait_[pairs_[i].to] = static_cast<std::uint32_t>(i);
    }
    for (std::size_t i = 0; i < n; ++i) out_begin_[i + 1] += out_begin_[i];
    out_.resize(pairs_.size());
    std::vector<std::uint32_t> at(out_begin_.begin(), out_begin_.end() - 1);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      out_[at[pairs_[i].from.index]++] = static_cast<std::uint32_t>(i);
    }
  }

  void arrive(Lane& lane) {
    if (lane.next == lane.end) {
      lane.state = State::done;
    } else if (pending_[list_[lane.next]] != 0) {
      lane.state = State::blocked;
    } else {
      release(lane);
    }
  }

  // Every record the next node waits for is known. A lane that was there first pays the hand-off.
  void release(Lane& lane) {
    const NodeId v = list_[lane.next];
    lane.state = State::ready;
    lane.at = lane.free;
    for (std::size_t i = first_wait_[v]; i < pairs_.size() && pairs_[i].to == v; ++i) {
      if (recorded_[i] > lane.at) lane.at = recorded_[i] + costs_.hand_off_us;
      lane.at += costs_.wait_us;
    }
  }

  void start_what_can() {
    while (running_ < slots_) {
      Lane* best = nullptr;
      for (Lane& lane : lanes_) {
        if (lane.state == State::ready && lane.at <= now_ && (best == nullptr || lane.at < best->at)) {
          best = &lane;
          // With a slot for every lane the order of starting does not matter.
          if (slots_ >= lanes_.size()) start(lane), best = nullptr;
        }
      }
      if (best == nullptr) break;
      start(*best);
    }
    if (demand_changed_) share_bandwidth();
  }

  void start(Lane& lane) {
    const NodeWork& w = work_.nodes[list_[lane.next]];
    const double duration = duration_us(w, costs_, threads_);
    lane.state = State::running;
    lane.at = now_ + duration;
    lane.rate = 1;
    lane.demand = duration > 0 ? w.bytes / duration : 0;
    ++running_;
    if (lane.demand > 0) demand_changed_ = true;
  }

  // Max-min: who wants least gets it; the rest divide what is left.
  void share_bandwidth() {
    demand_changed_ = false;
    double wanted = 0;
    wanting_.clear();
    for (Lane& lane : lanes_) {
      if (lane.state == State::running && lane.demand > 0) {
        wanted += lane.demand;
        wanting_.push_back(&lane);
      }
    }
    if (wanted <= costs_.total_bytes_per_us) {
      if (!stretched_) return;
      for (Lane* lane : wanting_) set_rate(*lane, 1);
      stretched_ = false;
      return;
    }
    stretched_ = true;
    std::stable_sort(wanting_.begin(), wanting_.end(),
                     [](const Lane* a, const Lane* b) { return a->demand < b->demand; });
    double left = costs_.total_bytes_per_us;
    for (std::size_t i = 0; i < wanting_.size(); ++i) {
      const double fair = left / static_cast<double>(wanting_.size() - i);
      const double given = std::min(wanting_[i]->demand, fair);
      set_rate(*wanting_[i], given / wanting_[i]->demand);
      left -= given;
    }
  }

  void set_rate(Lane& lane, double rate) {
    if (rate == lane.rate) return;
    lane.at = now_ + (lane.at - now_) * lane.rate / rate;
    lane.rate = rate;
  }

  double next_time() const {
    double next = kForever;
    for (const Lane& lane : lanes_) {
      if (lane.state == State::running || (lane.state == State::ready && lane.at > now_)) {
        next = std::min(next, lane.at);
      }
    }
    return next;
  }

  void finish_what_is_done() {
    for (Lane& lane : lanes_) {
      if (lane.state != State::running || lane.at > now_) continue;
      const NodeId v = list_[lane.next];
      --running_;
      if (lane.demand > 0) demand_changed_ = true;
      double at = now_;
      for (std::uint32_t i = out_begin_[v.index]; i < out_begin_[v.index + 1]; ++i) {
        at += costs_.record_us;
        const NodeId to = pairs_[out_[i]].to;
        recorded_[out_[i]] = at;
        Lane& waiting = lanes_[lanes_of_.of[to]];
        if (--pending_[to] == 0 && waiting.state == State::blocked && list_[waiting.next] == to) {
          release(waiting);
        }
      }
      lane.free = at;
      lane.state = State::done;
      ++lane.next;
      arrive(lane);
    }
  }

  const TaskGraph& tasks_;
  const Lanes& lanes_of_;
  const WorkTable& work_;
  const Costs& costs_;
  const std::uint32_t threads_;
  const std::uint32_t slots_;
  std::vector<Lane> lanes_;
  const std::vector<LanePair>& pairs_;
  std::vector<double> recorded_;  // by pair: when its record was done
  std::vector<NodeId> list_;
  std::vector<std::uint32_t> out_begin_;
  std::vector<std::uint32_t> out_;  // pairs a node records for, in the order it records
  IdVec<NodeId, std::uint32_t> first_wait_, pending_;
  std::vector<Lane*> wanting_;
  std::uint32_t running_ = 0;
  bool demand_changed_ = false;
  bool stretched_ = false;
  double now_ = 0, busy_ = 0, shared_ = 0;
};

}  // namespace

Prediction predict(const TaskGraph& tasks, const Lanes& lanes, const WorkTable& work,
                   const Target& target, std::uint32_t threads) {
  const std::vector<LanePair> pairs = exact_pairs(tasks, lanes);
  return Simulation(tasks, lanes, work, target, threads, pairs).run();
}

double one_lane_us(const TaskGraph& tasks, const WorkTable& work, const Target& target,
                   std::uint32_t threads) {
  double sum = 0;
  for (const NodeId v : tasks.order()) sum += duration_us(work.nodes[v], target.costs, threads);
  return sum;
}

LowerBound lower_bound(const TaskGraph& tasks, const WorkTable& work, const Target& target) {
  LowerBound out;
  IdVec<NodeId, double> finish(tasks.node_count(), 0);
  for (const NodeId v : tasks.order()) {
    double ready = 0;
    for (const NodeId u : tasks.predecessors(v)) ready = std::max(ready, finish[u]);
    // More threads never make duration_us longer.
    finish[v] = ready + duration_us(work.nodes[v], target.costs, target.cores);
    out.critical_path_us = std::max(out.critical_path_us, finish[v]);
    out.cores_us += duration_us(work.nodes[v], target.costs, 1);
    out.bandwidth_us += work.nodes[v].bytes / target.costs.total_bytes_per_us;
  }
  out.cores_us /= target.cores;
  return out;
}

}  // namespace millstream
