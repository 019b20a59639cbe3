// SPDX-License-Identifier: Apache-2.0
// auto: candidates, their predicted spans, and the rule that picks one.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/auto/list_schedule.h"
#include "millstream/assign/estimate.h"
#include "millstream/assign/rules.h"
#include "millstream/assign/width.h"

namespace millstream {
namespace {

// More streams must be predicted at least this much faster than fewer to be worth their waits.
constexpr double kWorthwhile = 0.95;
// Above this many nodes only one stream and one other count are weighed, with one listing.
constexpr std::size_t kHugeNodes = 200'000;
// With more than this share of costs unknown a prediction says nothing: one stream is kept.
constexpr double kTooManyUnknown = 0.1;

struct Choice {
  Candidate candidate;
  Prediction prediction;
  Lanes lanes;
};

class Chooser {
 public:
  Chooser(const RuleInput& in, const StreamAssignment& on)
      : in_(in),
        tasks_(in.graph),
        work_(work_of(in.graph, in.target)),
        fixed_(in.graph.node_count()),
        fixed_lanes_(static_cast<std::uint32_t>(on.streams.size())),
        free_nodes_(in.graph.node_count(), 0) {
    bool all_free = true;
    for (const NodeId n : tasks_.order()) {
      if (const auto s = on.stream_of(n)) {
        fixed_[n] = s->index;
        all_free = false;
      } else {
        free_nodes_[n] = 1;
        any_free_ = true;
      }
    }
    width_ = width_of(tasks_, all_free ? IdVec<NodeId, std::uint8_t>() : free_nodes_);
    if (fixed_lanes_ != 0) whole_width_ = width_of(tasks_, {}).size();
  }

  /// Most streams the free nodes may get: what is asked for and allowed, what the graph has work for.
  std::uint32_t most_free_lanes() const {
    const std::uint32_t allowed = std::min(in_.options.streams, in_.target.limits.streams);
    const std::uint32_t left = allowed > fixed_lanes_ ? allowed - fixed_lanes_ : 1;
    return std::max(1u, std::min(left, width_.size()));
  }

  std::vector<std::uint32_t> lane_counts() const {
    if (!any_free_) return {0};
    const std::uint32_t most = most_free_lanes();
    if (in_.options.force_streams) return {most};
    if (blind()) return {1};
    // More streams than operators that can run at once only add waits.
    const std::uint32_t at_once = std::max(1u, in_.target.cores / in_.options.threads_per_op.value_or(1));
    const std::uint32_t useful = std::min(most, std::max(1u, at_once));
    if (useful == 1) return {1};
    if (in_.graph.node_count() > kHugeNodes) return {1, useful};
    std::vector<std::uint32_t> out;
    for (std::uint32_t k = 1; k < useful; k += k < 8 ? 1 : k / 4) out.push_back(k);
    out.push_back(useful);
    return out;
  }

  /// Too many costs are unknown to compare plans.
  bool blind() const { return work_.unknown > kTooManyUnknown * static_cast<double>(in_.graph.node_count()); }

  /// The best plan with `k` free lanes.
  std::optional<Choice> best_with(std::uint32_t k, std::vector<Candidate>& considered) const {
    const std::uint32_t lanes = std::max(1u, fixed_lanes_ + k);
    std::vector<std::uint32_t> threads;
    if (in_.options.threads_per_op) {
      threads = {*in_.options.threads_per_op};
    } else if (lanes == 1) {
      threads = one_stream_threads(in_.target.cores, work_, std::nullopt);
    } else {
      threads = {std::max(1u, in_.target.cores / lanes)};
      // Label streams may stand idle for long: an operator may then use every core.
      if (fixed_lanes_ != 0 && threads[0] != in_.target.cores) threads.push_back(in_.target.cores);
    }
    std::optional<Choice> best;
    for (const std::uint32_t t : threads) {
      std::optional<Choice> c = lanes == 1 ? one_lane(t) : many_lanes(k, t);
      considered.push_back(c->candidate);
      if (!best || c->candidate.span_us < best->candidate.span_us) best = std::move(c);
    }
    return best;
  }

  const TaskGraph& tasks() const { return tasks_; }
  const WorkTable& work() const { return work_; }
  std::uint32_t fixed_lanes() const { return fixed_lanes_; }
  std::uint32_t whole_width() const { return whole_width_; }
  const Width& width() const { return width_; }
  bool any_free() const { return any_free_; }

 private:
  Choice one_lane(std::uint32_t threads) const {
    Choice c;
    c.lanes.count = 1;
    c.lanes.of = IdVec<NodeId, std::uint32_t>(in_.graph.node_count(), 0);
    c.prediction.span_us = one_lane_us(tasks_, work_, in_.target, threads);
    c.candidate = {1, threads, c.prediction.span_us, 0};
    return c;
  }

  Choice many_lanes(std::uint32_t k, std::uint32_t threads) const {
    IdVec<NodeId, double> durations(in_.graph.node_count());
    for (const NodeId n : tasks_.order()) durations[n] = duration_us(work_.nodes[n], in_.target.costs, threads);
    const bool forced = in_.options.force_streams;
    const ListScheduleInput in{tasks_, durations, in_.target.costs, fixed_, fixed_lanes_, std::max(1u, k), forced};
    Choice best;
    const auto weigh = [&](Lanes lanes, bool first) {
      if (forced) spread(in, width_.antichain, lanes);
      number_by_first_use(lanes);
      const Prediction p = predict(tasks_, lanes, work_, in_.target, threads);
      if (!first && p.span_us >= best.prediction.span_us) return;
      best = Choice{{lanes.count, threads, p.span_us, p.pairs}, p, std::move(lanes)};
    };
    weigh(list_schedule(in, ListOrder::execution_order), true);
    if (!forced && k > 1 && in_.graph.node_count() <= kHugeNodes) {
      weigh(list_schedule(in, ListOrder::by_rank), false);
    }
    return best;
  }

  // Label lanes keep their numbers; the others are counted from there in order of first use, and unused ones
  // vanish. Lanes are then numbered like the streams they become, which decides ties in the prediction.
  void number_by_first_use(Lanes& lanes) const {
    std::vector<std::optional<std::uint32_t>> number(lanes.count);
    for (std::uint32_t s = 0; s < fixed_lanes_; ++s) number[s] = s;
    std::uint32_t next = fixed_lanes_;
    for (const NodeId n : tasks_.order()) {
      std::optional<std::uint32_t>& to = number[lanes.of[n]];
      if (!to) to = next++;
      lanes.of[n] = *to;
    }
    lanes.count = next;
  }

  const RuleInput& in_;
  TaskGraph tasks_;
  WorkTable work_;
  IdVec<NodeId, std::optional<std::uint32_t>> fixed_;
  std::uint32_t fixed_lanes_;
  IdVec<NodeId, std::uint8_t> free_nodes_;
  bool any_free_ = false;
  Width width_;
  std::uint32_t whole_width_ = 0;
};

std::string words(const Candidate& c) {
  return fmt::format("{} stream{} with {} thread{} an operator: {:.1f} us, {} wait{}", c.streams,
                     c.streams == 1 ? "" : "s", c.threads_per_op, c.threads_per_op == 1 ? "" : "s", c.span_us,
                     c.pairs, c.pairs == 1 ? "" : "s");
}

void place(const Chooser& chooser, const Lanes& lanes, StreamAssignment& on) {
  if (!chooser.any_free()) return;
  while (on.streams.size() < lanes.count) on.new_stream();
  for (const NodeId n : chooser.tasks().order()) {
    if (!on.placement[n]) on.placement[n] = Placement{StreamId(lanes.of[n]), RuleId()};
  }
}

void warn(const RuleInput& in, const Chooser& chooser, const Choice& chosen, const Candidate& single,
          const std::vector<Candidate>& considered, StreamAssignment& on) {
  const auto say = [&](std::string message) -> Error& {
    return on.warnings.emplace_back(Error{ErrorCode::no_effect, std::move(message)});
  };
  if (chooser.fixed_lanes() > std::max(1u, chooser.whole_width())) {
    say(fmt::format("{} stream labels, but {}{} of the graph's nodes are independent at any time",
                    chooser.fixed_lanes(), chooser.width().exact ? "only " : "about ", chooser.whole_width()))
        .note("streams beyond that cost waits and cannot run at the same time")
        .help("give nodes that follow each other the same label");
  }
  const std::uint32_t needed = chooser.fixed_lanes() + (chooser.fixed_lanes() != 0 && chooser.any_free() ? 1 : 0);
  if (needed > in.options.streams) {
    say(fmt::format("{} stream label{}{} need{} {} streams, more than streams={}", chooser.fixed_lanes(),
                    chooser.fixed_lanes() == 1 ? "" : "s", chooser.any_free() ? " and the nodes without one" : "",
                    chooser.fixed_lanes() == 1 && !chooser.any_free() ? "s" : "", needed, in.options.streams))
        .help("labels win; drop labels, or raise streams");
  }
  if (chooser.work().unknown != 0) {
    say(fmt::format("the cost of {} of {} nodes is unknown; each counts as one launch of {} us",
                    chooser.work().unknown, in.graph.node_count(), in.target.costs.launch_us))
        .note(chooser.blind() ? "that is too many to compare plans: predictions mean nothing, and one stream is kept unless "
                                "labels or force_streams say otherwise"
                              : "predictions are as rough as that")
        .help("bind symbolic dimensions with --dim, or give costs with @cost");
  }
  const Candidate& c = chosen.candidate;
  if (chooser.fixed_lanes() != 0 || in.options.force_streams) {
    if (c.streams > 1 && c.span_us > single.span_us) {
      Error& e = say(fmt::format("the {} is predicted slower than one stream",
                                 in.options.force_streams ? "forced number of streams" : "labels' plan"));
      e.note("this plan: " + words(c)).note((chooser.fixed_lanes() != 0 ? "labels ignored: " : "one stream: ") + words(single));
      if (2 * c.threads_per_op > in.target.cores) {
        e.note(fmt::format("{} thread{} an operator leave room for one operator at a time on {} core{}; threads_per_op={} "
                           "lets streams overlap",
                           c.threads_per_op, c.threads_per_op == 1 ? "" : "s", in.target.cores,
                           in.target.cores == 1 ? "" : "s", std::max(1u, in.target.cores / c.streams)));
      }
      e.help(in.options.force_streams ? "drop --force-streams (force_streams=false)"
                                      : "drop the labels, or label longer branches");
    }
    if (in.options.force_streams && c.streams < in.options.streams) {
      say(fmt::format("force_streams asks for {} streams, but the graph has work for {}{}", in.options.streams,
                      chooser.width().exact ? "" : "about ", c.streams))
          .note(fmt::format("{} of its nodes are independent at any time", chooser.width().size()));
    }
    return;
  }
  if (!in.options.streams_asked || chooser.blind()) return;
  if (c.streams > 1 || in.options.streams == 1 || chooser.tasks().order().size() < 2) return;
  Error& e = say(fmt::format("one stream is kept: more streams would not gain {:.0f} %", (1 - kWorthwhile) * 100));
  e.note("kept: " + words(c));
  const Candidate* other = nullptr;
  for (const Candidate& x : considered) {
    if (x.streams > 1 && (other == nullptr || x.span_us < other->span_us)) other = &x;
  }
  if (other != nullptr) {
    e.note("best with more: " + words(*other));
  } else if (chooser.width().size() <= 1) {
    e.note("every node depends on the one before it: nothing can run at the same time");
  } else if (chooser.lane_counts().back() > 1) {
    e.note(fmt::format("the list scheduler, given {} streams, used one: waits would cost more than they gain",
                       chooser.lane_counts().back()));
  } else {
    e.note(fmt::format("{} core{} at {} thread{} an operator leave no room for a second stream", in.target.cores,
                       in.target.cores == 1 ? "" : "s", in.options.threads_per_op.value_or(1),
                       in.options.threads_per_op.value_or(1) == 1 ? "" : "s"));
  }
}

}  // namespace

Result<StreamAssignment> assign_auto(const RuleInput& in, StreamAssignment on) {
  const Chooser chooser(in, on);
  const Candidate single =
      best_one_stream(chooser.tasks(), chooser.work(), in.target, in.options.threads_per_op);
  std::optional<Choice> fewest;  // labels and one more stream at most: what the others must beat
  std::optional<Choice> fastest;
  std::vector<Candidate> considered;
  for (const std::uint32_t k : chooser.lane_counts()) {
    std::optional<Choice> c = chooser.best_with(k, considered);
    if (!fewest) {
      fewest = std::move(c);
    } else if (c->candidate.pairs > in.target.limits.events) {
      continue;  // it may need an event id a pair, which the target does not have
    } else if (!fastest || c->candidate.span_us < fastest->candidate.span_us) {
      fastest = std::move(c);
    }
  }
  const bool more = fastest && fastest->candidate.span_us < kWorthwhile * fewest->candidate.span_us;
  const Choice& chosen = more ? *fastest : *fewest;

  on.threads_per_op = chosen.candidate.threads_per_op;
  place(chooser, chosen.lanes, on);
  on.estimate = estimate_of(chooser.tasks(), chooser.work(), in.target, chosen.prediction, single.span_us);
  warn(in, chooser, chosen, single, considered, on);
  on.considered = std::move(considered);
  if (!on.reasons.empty() && chooser.any_free()) {
    on.reasons.back() = fmt::format("{}: {}; one stream with {} thread{}: {:.1f} us",
                                    in.options.force_streams ? "forced number of streams"
                                    : chooser.blind()        ? "costs are unknown"
                                                             : "predicted best",
                                    words(chosen.candidate), single.threads_per_op,
                                    single.threads_per_op == 1 ? "" : "s", single.span_us);
  }
  return on;
}

}  // namespace millstream
