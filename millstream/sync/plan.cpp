// SPDX-License-Identifier: Apache-2.0
// plan_sync: inserts, then keeps what the mode says.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/compat.h"
#include "millstream/sync/conditions.h"
#include "millstream/sync/fewest.h"
#include "millstream/sync/reduce.h"
#include "millstream/sync/task_pairs.h"

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
    case PairReason::merged: return "merged";
  }
  return "?";
}

namespace {

// Every inserted pair as a list, forks and joins left out.
std::vector<SyncPair> all_pairs(const Graph& graph, const Insertion& inserted) {
  std::vector<SyncPair> out;
  out.reserve(inserted.sources.size());
  for (const NodeId n : graph.order()) {
    for (const ForeignSource& s : inserted.of(n)) out.push_back({s.node(), n, s.reason()});
  }
  return out;
}

std::string arrow(const Graph& graph, const SyncPair& p) {
  return fmt::format("{} -> {}", quote_name(graph.name(p.from)), quote_name(graph.name(p.to)));
}

// Every mode keeps them all.
std::uint32_t forks_and_joins(const SyncPlan& plan) {
  return static_cast<std::uint32_t>(std::count_if(plan.kept.begin(), plan.kept.end(), [](const SyncPair& p) {
    return p.reason == PairReason::fork || p.reason == PairReason::join;
  }));
}

Result<SyncPlan> plan_compat(const ReduceInput& in) {
  MST_TRY(CompatResult compat, compat_events(in.graph, in.on, in.activation));
  const CompatEvents loops = loop_events(in.graph, in.on, in.activation, compat.events);
  compat.events.insert(compat.events.end(), loops.begin(), loops.end());
  compat.counts.added = static_cast<std::uint32_t>(loops.size());
  std::vector<SyncPair> given;
  given.reserve(compat.events.size());
  for (const CompatEvent& e : compat.events) given.push_back({e.from, e.to, e.reason});
  MST_TRY(GivenPlan explained, explain_given(in, given));
  SyncPlan plan = std::move(explained.plan);
  compat.counts.added += forks_and_joins(plan);
  plan.compat = compat.counts;
  plan.lost = std::move(explained.lost);
  for (const SyncPair& p : plan.lost) {
    plan.warnings.push_back(Error{ErrorCode::race, fmt::format("compat drops {}, but nothing that it keeps orders the two in every run", arrow(in.graph, p))}
                                .help("use sync=exact, or add a control edge from each activator of the stream"));
  }
  return plan;
}

// The plan without pairs of nodes without a task that no order between tasks needs; nullopt: all are needed.
Result<std::optional<SyncPlan>> between_tasks(const ReduceInput& in, const SyncPlan& plan) {
  const auto tasks = nodes_with_task(in.graph, in.activation);
  const auto may_go = [&](const SyncPair& p) { return tasks[p.from] == 0 || tasks[p.to] == 0; };
  if (std::none_of(plan.kept.begin(), plan.kept.end(), may_go)) return std::optional<SyncPlan>();
  std::vector<SyncPair> all;
  std::copy_if(plan.kept.begin(), plan.kept.end(), std::back_inserter(all), [](const SyncPair& p) { return p.from != p.to; });
  Insertion needs = task_pairs(in.graph, in.on, in.on, in.activation, in.flow, tasks);
  needs.walk = in.inserted.walk;
  const std::size_t before = all.size();
  MST_TRY(const std::vector<SyncPair> left, without_idle_pairs({in.graph, in.on, needs, in.activation, in.flow, in.conditions}, std::move(all), may_go));
  if (left.size() == before) return std::optional<SyncPlan>();
  MST_TRY(GivenPlan out, explain_given(in, left));
  return std::optional<SyncPlan>(std::move(out.plan));
}

}  // namespace

std::uint32_t given_by_activations(const SyncPlan& plan) {
  std::vector<std::uint8_t> needs_pair(plan.starts.size(), 0);
  const auto any_pair = [&](std::uint32_t begin, std::uint32_t length) {
    return std::any_of(plan.path_pool.begin() + begin, plan.path_pool.begin() + begin + length, [&](PairId step) {
      return step.index < kStartStep || needs_pair[step.index - kStartStep] != 0;
    });
  };
  for (std::size_t f = 0; f < plan.starts.size(); ++f) {  // a fact names earlier ones
    const StartFact& fact = plan.starts[f];
    for (std::uint32_t w = fact.ways_begin; w < fact.ways_begin + fact.ways; ++w) {
      if (any_pair(plan.start_ways[w].path_begin, plan.start_ways[w].path_length)) needs_pair[f] = 1;
    }
  }
  return static_cast<std::uint32_t>(std::count_if(plan.dropped.begin(), plan.dropped.end(), [&](const DroppedPair& d) {
    return !any_pair(d.path_begin, d.path_length);
  }));
}

Result<SyncPlan> plan_sync(const Graph& graph, const StreamAssignment& on, const SyncOptions& options) {
  if (on.placement.size() != graph.node_count()) {
    return Error{ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on.placement.size(),
                                                       graph.node_count())};
  }
  MST_TRY(const Activation activation, plan_activation(graph, on));
  const ControlFlow flow(graph);
  MST_TRY(const Insertion inserted, insert_pairs(graph, on, activation, flow));
  const bool conditional = !activation.empty() || flow.scoped() || !graph.annotations().batch.empty() || flow.has_jumps();
  std::optional<Conditions> conditions;
  if (conditional || options.mode == SyncMode::fewest) conditions.emplace(graph, on, activation, flow);
  const ReduceInput in{graph, on, inserted, activation, flow, conditional ? &*conditions : nullptr};

  SyncPlan plan;
  switch (options.mode) {
    case SyncMode::none: {
      // A wait that could stand for ever is left out where the others imply it.
      std::vector<SyncPair> given, never;
      for (const SyncPair& p : all_pairs(graph, inserted)) {
        const bool waits = !conditional || !conditions->conditional_wait(p);
        (waits ? given : never).push_back(p);
      }
      MST_TRY(GivenPlan all, explain_given(in, given));
      if (!all.lost.empty()) return *conditions->conditional_wait(all.lost.front());
      plan = std::move(all.plan);
      break;
    }
    case SyncMode::compat: {
      MST_TRY(plan, plan_compat(in));
      break;
    }
    case SyncMode::exact:
    case SyncMode::fewest: {
      MST_TRY(plan, reduce(in));
      break;
    }
  }
  if (conditions) {
    for (const SyncPair& p : plan.kept) {
      auto error = conditional ? conditions->conditional_wait(p) : std::nullopt;
      if (!error) continue;
      if (options.mode != SyncMode::compat) return std::move(*error);
      plan.warnings.push_back(std::move(*error));
      plan.unmet.push_back(p);
    }
  }
  if (options.mode == SyncMode::exact || options.mode == SyncMode::fewest) {
    MST_TRY(std::optional<SyncPlan> lean, between_tasks(in, plan));
    const std::size_t least = lean ? lean->kept.size() : plan.kept.size();
    if (options.mode == SyncMode::fewest && least > options.max_pairs) {
      MST_TRY(plan, merge_pairs(in, *conditions, std::move(plan), options.max_pairs));
    } else if (lean) {
      plan = std::move(*lean);
    }
  }
  plan.mode = options.mode;
  plan.warnings.insert(plan.warnings.end(), inserted.warnings.begin(), inserted.warnings.end());
  if (options.count_compat && !plan.compat) {
    MST_TRY(CompatResult compat, compat_events(graph, on, activation));
    compat.counts.added = static_cast<std::uint32_t>(loop_events(graph, on, activation, compat.events).size()) + forks_and_joins(plan);
    plan.compat = compat.counts;
  }
  plan.kind = options.kind;
  if (options.kind == EventKind::notify && graph.dynamic()) {
    plan.kind = EventKind::event;
    plan.warnings.push_back(Error{ErrorCode::no_effect, "a graph of dynamic shapes keeps events: notifies need static shapes"}
                                .help("leave event_kind at event for this graph"));
  }
  return plan;
}

}  // namespace millstream
