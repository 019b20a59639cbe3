// SPDX-License-Identifier: Apache-2.0
// Stages split and activate: given streams and limits.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/schedule/stages.h"
#include "millstream/sync/insert.h"
#include "tests/cases/case.h"

namespace millstream::cases {
namespace {

constexpr std::uint32_t kNoLimit = 0xffffffffu;

class SplitRun {
 public:
  SplitRun(const Case& c, const CompileOptions& options, Outcome& outcome) : case_(c), options_(options), outcome_(outcome), target_(c.target) {
    const auto number = [&](const char* key, std::uint32_t otherwise) {
      return c.has_option(key) && !c.option(key).is_null() ? c.option(key).get<std::uint32_t>() : otherwise;
    };
    Limits& limits = target_.limits;
    limits.tasks_per_stream = number("max_tasks_per_stream", kNoLimit);
    limits.streams = kNoLimit;
    limits.tasks_per_huge_stream = number("max_tasks_per_huge_stream", 0);
    limits.huge_streams = limits.tasks_per_huge_stream != 0 ? 1 : 0;
    target_.tasks_per_node = number("tasks_per_normal_node", 1);
    if (c.has_option("tasks_per_hccl_node")) {
      for (const char* type : {"HcomBroadcast", "HcomAllGather", "HcomAllReduce", "HcomReduceScatter", "HcomReduce"}) {
        target_.task_counts.push_back({type, number("tasks_per_hccl_node", 1)});
      }
    }
    options_.lower.split_reserved = number("reserved_tasks", 0);
    on_ = given_streams(c, number("stream_num", 1));
  }

  Result<void> run() {
    show_streams(case_, on_, outcome_);
    const bool activate = case_.stage == "activate";
    const std::vector<std::string> phases = case_.phases();
    const auto has = [&](std::string_view phase) { return std::find(phases.begin(), phases.end(), phase) != phases.end(); };
    MST_TRY(const Activation activation, plan_activation(case_.graph, on_));

    std::vector<SyncPair> pairs;
    if (case_.has_option("insert_events") ? case_.option("insert_events").get<bool>() : !activate) {
      MST_TRY(const SyncPlan plan, plan_sync(case_.graph, on_, options_.sync));
      pairs = plan.kept;
      show_syncs(case_, plan, outcome_);
    } else {
      outcome_.syncs.emplace();
      show_count(options_.sync.kind, 0, outcome_);
    }
    Splitting splitting;
    splitting.streams = static_cast<std::uint32_t>(on_.streams.size());
    if (!activate || has("split")) {
      SplitInput input{case_.graph, on_, pairs, target_, options_.lower, options_.sync.mode, &activation, true};
      input.charge_pairs = case_.has_option("count_sync_tasks") && case_.option("count_sync_tasks").get<bool>();
      MST_TRY(splitting, split_streams(input));
      show_split(splitting);
    }
    const StartInput input{case_.graph, on_, activation, splitting, options_.sync.mode};
    MST_TRY(Starts starts, update_starts(input));
    if (has("switch")) {
      MST_TRY(starts, expand_switches(input, std::move(starts)));
      outcome_.inserted.emplace();
      for (const RelayStream& r : starts.relays) {
        const std::string name(case_.graph.name(r.switch_node));
        outcome_.inserted->push_back({fmt::format("{}_StreamActive_{}", name, r.branch), "StreamActive", name, {r.targets.begin(), r.targets.end()}});
      }
    }
    if (has("loop")) {
      MST_TRY(starts, start_loops(input, std::move(starts)));
      show_loops(activation, starts);
    }
    if (has("check")) MST_TRY_VOID(check_starts(input, starts));
    outcome_.active_streams.emplace();
    for (const StartList& list : starts.lists) {
      (*outcome_.active_streams)[std::string(case_.graph.name(list.node))] = {list.streams.begin(), list.streams.end()};
    }
    outcome_.activated_streams.emplace(starts.started.begin(), starts.started.end());
    return {};
  }

 private:
  void show_split(const Splitting& splitting) {
    const auto name = [&](NodeId n) { return std::string(case_.graph.name(n)); };
    outcome_.physical_stream_num = splitting.streams;
    outcome_.split_map.emplace();
    for (std::size_t i = 0; i < splitting.points.size(); ++i) (*outcome_.split_map)[splitting.points[i].opened.index] = splitting.logical_of[i].index;
    outcome_.split_syncs.emplace();
    for (const SyncPair& p : splitting.pairs) outcome_.split_syncs->push_back({name(p.from), name(p.to)});
    outcome_.node_physical.emplace();
    PieceWalk walk(on_, splitting);
    for (const NodeId n : case_.graph.order()) {
      if (on_.placement[n]) (*outcome_.node_physical)[name(n)] = walk.next(n);
    }
    outcome_.huge_streams.emplace();
    for (const PhysicalStreamId s : splitting.huge) outcome_.huge_streams->push_back(s.index);
    outcome_.warning = !splitting.warnings.empty();
  }

  // Exact sync has the loops' pairs among those it inserts; the local rules add them afterwards.
  void show_loops(const Activation& activation, const Starts& starts) {
    outcome_.loop_syncs.emplace();
    std::vector<SyncPair> pairs = starts.loop_pairs;
    if (options_.sync.mode != SyncMode::compat) pairs = scope_pairs(case_.graph, on_, activation, ControlFlow(case_.graph));
    for (const SyncPair& p : pairs) {
      if (p.reason == PairReason::loop) outcome_.loop_syncs->insert({std::string(case_.graph.name(p.from)), std::string(case_.graph.name(p.to))});
    }
  }

  const Case& case_;
  CompileOptions options_;
  Outcome& outcome_;
  Target target_;
  StreamAssignment on_;
};

}  // namespace

Outcome run_split(const Case& c, const CompileOptions& options) {
  Outcome outcome;
  SplitRun run(c, options, outcome);
  if (auto done = run.run(); !done.ok()) outcome.error = done.error();
  return outcome;
}

}  // namespace millstream::cases
