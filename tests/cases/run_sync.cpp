// SPDX-License-Identifier: Apache-2.0
// Stage sync: given streams, then the phases that the case names. Under compat the three local rules step by
// step; else insertion and the exact reduction.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/schedule/stages.h"
#include "millstream/sync/compat.h"
#include "tests/cases/case.h"

namespace millstream::cases {
namespace {

Events as_events(const CompatEvents& from) {
  Events events;
  for (const CompatEvent& e : from) {
    events.uses.push_back({e.from, e.to, e.id});
    events.count = std::max(events.count, e.id + 1);
  }
  return events;
}

CompatEvents given_events(const Case& c) {
  CompatEvents events;
  for (const Json& row : c.json.at("preset_events")) {
    events.push_back({row.at("id").get<std::uint32_t>(), *c.graph.find_node(row.at("send").get<std::string>()),
                      *c.graph.find_node(row.at("recv").get<std::string>()), PairReason::user});
  }
  return events;
}

class SyncRun {
 public:
  SyncRun(const Case& c, const CompileOptions& options, Outcome& outcome)
      : case_(c), options_(options), outcome_(outcome), on_(given_streams(c, 1)), target_(c.target) {
    // How many tasks a stream and how many streams a device holds is no matter of this stage.
    target_.limits.tasks_per_stream = target_.limits.streams = target_.limits.events = 0xffffffffu;
  }

  Result<void> run() {
    const std::vector<std::string> phases = case_.phases();
    const auto has = [&](std::string_view phase) { return std::find(phases.begin(), phases.end(), phase) != phases.end(); };
    const bool compat = options_.sync.mode == SyncMode::compat;
    Activation activation;
    activation.started_by = IdVec<StreamId, std::vector<NodeId>>(on_.streams.size());
    if (has("label_activation")) {
      MST_TRY(activation, plan_activation(case_.graph, on_));
    }
    if (case_.json.contains("preset_events")) events_ = given_events(case_);
    if (has("insert") || has("optimize")) {
      if (compat) {
        MST_TRY(events_, insert_events(case_.graph, on_, activation));
        if (has("optimize")) {
          events_ = drop_by_send(case_.graph, on_, events_);
          events_ = drop_by_receive(case_.graph, on_, events_);
          events_ = drop_by_activate(case_.graph, on_, activation, events_);
          events_ = drop_switch_sends(case_.graph, events_);
        }
      } else {
        SyncOptions sync = options_.sync;
        if (!has("optimize")) sync.mode = SyncMode::none;
        MST_TRY(const SyncPlan plan, plan_sync(case_.graph, on_, sync));
        events_.clear();
        for (const SyncPair& p : plan.kept) {
          if (p.from != p.to) events_.push_back({static_cast<std::uint32_t>(events_.size()), p.from, p.to, p.reason});
        }
      }
      if (has("optimize")) outcome_.event_num_after_optimize = static_cast<std::int64_t>(events_.size());
      MST_TRY(const CompatResult old, compat_events(case_.graph, on_, activation));
      outcome_.event_num_2023 = static_cast<std::int64_t>(old.events.size());
    }
    Events events = as_events(events_);
    if (case_.has_option("preset_event_num")) events.count = case_.option("preset_event_num").get<std::uint32_t>();
    if (has("multi_dim_reuse")) {
      MST_TRY(events, reuse_across_dims(case_.graph, std::move(events)));
    }
    if (has("event_multiplexing")) {
      const std::uint32_t threshold = case_.has_option("event_reuse_threshold") ? case_.option("event_reuse_threshold").get<std::uint32_t>() : options_.lower.multiplex_threshold;
      MST_TRY(events, multiplex(case_.graph, std::move(events), threshold));
    }
    if (has("continuity")) {
      MST_TRY(events, make_continuous(case_.graph, std::move(events)));
    }
    show(events);
    if (has("insert") && has("continuity")) return materialise(has("generate_nodes"));
    return {};
  }

 private:
  void show(const Events& events) {
    outcome_.syncs.emplace();
    std::set<std::uint32_t> ids;
    for (const EventUse& use : events.uses) {
      ids.insert(use.id);
      if (use.from && use.to) {
        outcome_.syncs->push_back({{std::string(case_.graph.name(*use.from)), std::string(case_.graph.name(*use.to))}, use.id});
      }
    }
    show_count(options_.sync.kind, ids.size(), outcome_);
  }

  // The whole stage as a compiler runs it: limits, and the names of what is added.
  Result<void> materialise(bool names) {
    MST_TRY(const SyncPlan plan, plan_sync(case_.graph, on_, options_.sync));
    MST_TRY(const Schedule schedule, lower(case_.graph, on_, plan, target_, options_.lower));
    if (!names) return {};
    outcome_.inserted.emplace();
    const auto all = task_names(case_.graph, schedule);
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule.streams.size())) {
      const auto& tasks = schedule.streams[s].tasks;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].kind != Task::Kind::record && tasks[i].kind != Task::Kind::wait) continue;
        outcome_.inserted->push_back({all[s][i], tasks[i].kind == Task::Kind::record ? "Send" : "Recv", "", {}});
      }
    }
    outcome_.total_nodes = static_cast<std::int64_t>(case_.graph.node_count() + outcome_.inserted->size());
    return {};
  }

  const Case& case_;
  const CompileOptions& options_;
  Outcome& outcome_;
  StreamAssignment on_;
  Target target_;
  CompatEvents events_;
};

}  // namespace

void show_count(EventKind kind, std::size_t count, Outcome& outcome) {
  const auto n = static_cast<std::int64_t>(count);
  outcome.event_num = kind == EventKind::event ? n : 0;
  outcome.notify_num = kind == EventKind::notify ? n : 0;
  outcome.sync_type = kind == EventKind::event ? "event" : "notify";
}

void show_syncs(const Case& c, const SyncPlan& plan, Outcome& outcome) {
  outcome.syncs.emplace();
  for (const SyncPair& p : plan.kept) {
    if (p.from == p.to) continue;
    outcome.syncs->push_back({{std::string(c.graph.name(p.from)), std::string(c.graph.name(p.to))}, static_cast<std::int64_t>(outcome.syncs->size())});
  }
  show_count(plan.kind, outcome.syncs->size(), outcome);
}

Outcome run_sync(const Case& c, const CompileOptions& options) {
  Outcome outcome;
  SyncRun run(c, options, outcome);
  show_streams(c, given_streams(c, 1), outcome);
  if (auto done = run.run(); !done.ok()) outcome.error = done.error();
  return outcome;
}

}  // namespace millstream::cases
