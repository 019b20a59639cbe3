// SPDX-License-Identifier: Apache-2.0
// check, explain: what a plan says, and whether it is right.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "millstream/assign/rules.h"
#include "millstream/assign/chain.h"
#include "millstream/graph/text.h"
#include "millstream/memory/left_out.h"
#include "millstream/report/explain.h"
#include "tools/millstream/common.h"
#include "tools/millstream/error_page.h"
#include "tools/millstream/profile_option.h"
#include "tools/millstream/ranks_command.h"
#include "tools/millstream/redundant_waits.h"

namespace millstream::cli {
namespace {

std::string_view kind_name(Violation::Kind kind) {
  switch (kind) {
    case Violation::Kind::race: return "race";
    case Violation::Kind::deadlock: return "deadlock";
    case Violation::Kind::unmatched_wait: return "unmatched wait";
    case Violation::Kind::event_reuse: return "event reuse";
    case Violation::Kind::missing_node: return "missing node";
    case Violation::Kind::repeated_node: return "repeated node";
    case Violation::Kind::limit: return "limit";
    case Violation::Kind::memory: return "memory";
    case Violation::Kind::start: return "start";
    case Violation::Kind::region: return "region";
  }
  return "?";
}

// Events that are recorded and that no task waits for: no fault, but work for nothing.
std::vector<std::uint32_t> unread_events(const Schedule& schedule) {
  std::vector<std::pair<bool, bool>> seen(schedule.event_count);  // recorded, waited for
  for (const PhysicalStream& s : schedule.streams) {
    for (const Task& t : s.tasks) {
      if (t.kind == Task::Kind::record && t.index < seen.size()) seen[t.index].first = true;
      if (t.kind == Task::Kind::wait && t.index < seen.size()) seen[t.index].second = true;
    }
  }
  std::vector<std::uint32_t> out;
  for (std::uint32_t e = 0; e < seen.size(); ++e) {
    if (seen[e].first && !seen[e].second) out.push_back(e);
  }
  return out;
}

std::string limit_text(std::uint32_t limit) { return limit == ~std::uint32_t{0} ? std::string("none") : fmt::format("{}", limit); }

struct CheckOptions {
  ModelOptions model;
  std::vector<std::string> ranks;  // plans of the other ranks
  std::string target;
};

Result<int> run_check(const CheckOptions& options) {
  if (!options.ranks.empty()) return run_ranks(options.model, options.ranks);
  MST_TRY(const Loaded loaded, load(options.model));
  const Graph& graph = loaded.graph;
  if (loaded.dump && !loaded.schedule) {
    if (!loaded.placed) {
      return Error{ErrorCode::usage, fmt::format("\"{}\" gives no node a stream", options.model.path)}.help(
          "a dump of DUMP_GE_GRAPH=1 or 2 does, from AfterAssignedLogicalStreams on");
    }
    return Error{ErrorCode::usage, fmt::format("\"{}\" holds streams but no Send and Recv nodes, so there is no order to check", options.model.path)}.help(
        "give the dump of phase Build; millstream compile DUMP plans this one anew and compares the streams");
  }
  if (!loaded.schedule) {
    return Error{ErrorCode::usage, fmt::format("\"{}\" holds no schedule to check", options.model.path)}.help(
        "give a .plan, or a .mst with a schedule section; millstream compile MODEL -o PLAN.plan makes one");
  }
  std::optional<Target> target;
  if (!options.target.empty()) {
    MST_TRY(target, load_target(options.target));
  }
  const std::span<const Requirement> reuse =
      loaded.plan ? std::span<const Requirement>(loaded.plan->memory.reuse) : std::span<const Requirement>();
  CheckReport report = check(graph, *loaded.schedule, target ? &*target : nullptr, reuse, true);
  if (loaded.plan && !target) std::erase_if(report.violations, [&](const Violation& v) { return left_out(graph, *loaded.plan, v); });
  // Control flow has no memory plan yet: compile makes none, and there is nothing to verify.
  const bool memory_checked = loaded.plan && !loaded.schedule->has_control();
  if (memory_checked) {
    for (Violation& v : verify(graph, *loaded.schedule, loaded.plan->memory)) report.violations.push_back(std::move(v));
  }
  const RedundantWaits redundant = redundant_together(graph, *loaded.schedule, report, reuse);
  const std::vector<std::uint32_t> unread = unread_events(*loaded.schedule);
  const auto node = [&](const std::optional<NodeId>& n) { return n ? Json(std::string(graph.name(*n))) : Json(nullptr); };
  if (options.model.json) {
    Json json;
    json["ok"] = report.ok();
    json["violations"] = Json::array();
    json["limits"] = Json::array();
    for (const Violation& v : report.violations) {
      Json row;
      row["kind"] = kind_name(v.kind);
      row["message"] = v.message;
      row["first"] = node(v.first);
      row["second"] = node(v.second);
      row["streams"] = Json::array();
      for (const PhysicalStreamId s : v.streams) row["streams"].push_back(s.index);
      row["missing"] = v.missing_from ? Json{{"from", node(v.missing_from)}, {"to", node(v.missing_to)}} : Json(nullptr);
      if (v.kind == Violation::Kind::limit) json["limits"].push_back(row);
      json["violations"].push_back(std::move(row));
    }
    json["redundant"] = Json::array();
    for (const JointlyRedundant& r : redundant.waits) {
      Json implied = Json::array();
      for (const SyncPair& p : r.implied) implied.push_back({{"from", std::string(graph.name(p.from))}, {"to", std::string(graph.name(p.to))}});
      json["redundant"].push_back({{"event", r.what.event.index}, {"stream", r.what.wait.stream.index}, {"task", r.what.wait.index},
                                   {"ordered", r.ordered}, {"implied_by", implied}});
    }
    json["redundant_together"] = redundant.jointly;
    json["unread_events"] = unread;
    json["memory_checked"] = memory_checked;
    json["target"] = target ? Json(target->name) : Json(nullptr);
    print_json(json);
    return report.ok() ? 0 : 1;
  }
  constexpr std::size_t kShown = 20;
  for (std::size_t i = 0; i < report.violations.size() && i < kShown; ++i) {
    const Violation& v = report.violations[i];
    fmt::print("{}: {}\n", kind_name(v.kind), v.message);
    if (v.missing_from && v.missing_to) {
      fmt::print("  missing: a wait before {} for {}\n", quote_name(graph.name(*v.missing_to)), quote_name(graph.name(*v.missing_from)));
    }
  }
  if (report.violations.size() > kShown) fmt::print("and {} more (--json lists all)\n", report.violations.size() - kShown);
  for (std::size_t i = 0; i < redundant.waits.size() && i < kShown; ++i) {
    const JointlyRedundant& r = redundant.waits[i];
    std::string why = "no dependency needs it";
    if (!redundant.jointly || !report.ok()) {
      why = "the other orders suffice";
    } else if (r.ordered) {
      why = r.implied.empty() ? "the stream's own order implies it" : "implied by ";
      for (std::size_t k = 0; k < r.implied.size(); ++k) {
        why += fmt::format("{}{} -> {}", k == 0 ? "" : " .. ", quote_name(graph.name(r.implied[k].from)), quote_name(graph.name(r.implied[k].to)));
      }
    }
    fmt::print("redundant: stream {} waits for e{} (task {}): {}\n", r.what.wait.stream.index, r.what.event.index, r.what.wait.index, why);
  }
  if (redundant.waits.size() > kShown) fmt::print("and {} more\n", counted(redundant.waits.size() - kShown, "redundant wait"));
  if (!redundant.jointly) fmt::print("note: each of these may go, but perhaps not all of them together\n");
  for (std::size_t i = 0; i < unread.size() && i < kShown; ++i) fmt::print("note: e{} is recorded, and no task waits for it\n", unread[i]);
  if (unread.size() > kShown) fmt::print("note: and {} more events that no task waits for\n", unread.size() - kShown);
  if (loaded.plan && !memory_checked) fmt::print("memory was not checked: a plan with control flow on the device has no memory plan\n");
  if (target) {
    fmt::print("limits of target {}: streams {}, tasks a stream {}, events {}, notifies {}\n", target->name, limit_text(target->limits.streams),
               limit_text(target->limits.tasks_per_stream), limit_text(target->limits.events), limit_text(target->limits.notifies));
  } else {
    fmt::print("limits were not checked (--target NAME checks those of a device)\n");
  }
  if (report.ok()) {
    std::uint64_t waits = 0;
    for (const PhysicalStream& s : loaded.schedule->streams) {
      for (const Task& t : s.tasks) waits += t.kind == Task::Kind::wait;
    }
    fmt::print("ok: {}, {}, {}: every dependency is ordered, no deadlock, {}\n", counted(loaded.schedule->stream_count(), "stream"),
               counted(graph.node_count(), "node"), counted(waits, "wait"), counted(redundant.waits.size(), "redundant wait"));
  } else {
    fmt::print("{}\n", counted(report.violations.size(), "violation"));
  }
  return report.ok() ? 0 : 1;
}

// ---- explain

struct ExplainOptions {
  ModelOptions model;
  PipelineOptions pipeline;
  ProfileOption profile;
  std::string node;
  bool markdown = false;
};

// `explain E37`: the error's row of docs/errors.md; of a number of the acl interface all its rows. A file of that name is a
// model all the same.
Result<int> explain_error(const std::string& number, bool json) {
  const std::vector<const ErrorAdvice*> rows = find_advice(number);
  if (rows.empty()) return Error{ErrorCode::usage, fmt::format("no error has the number {}", number)}.help("millstream explain errors --markdown lists all");
  Json all = Json::array();
  for (const ErrorAdvice* row : rows) {
    const ErrorCodeInfo& info = error_code_info(row->code);
    if (json) {
      all.push_back({{"number", info.number}, {"word", info.word}, {"exit_status", info.exit_status}, {"meaning", row->meaning}, {"cause", row->cause}, {"remedy", row->remedy}});
    } else {
      fmt::print("{} {} (exit status {})\n  meaning    {}\n  cause      {}\n  remedy     {}\n", info.number, info.word, info.exit_status, row->meaning, row->cause, row->remedy);
    }
  }
  if (json) print_json(all.size() == 1 ? all[0] : Json{{"errors", all}});
  return 0;
}

Json row_of(const ExplainInput& plan, const NodeReasons& node) {
  const Graph& graph = plan.graph;
  const auto name = [&](NodeId n) { return std::string(graph.name(n)); };
  Json row = {{"node", name(node.node)}, {"type", std::string(graph.type(node.node))},
              {"stream", node.stream ? Json(node.stream->index) : Json(nullptr)}, {"rule", node.rule}, {"reason", node.reason},
              {"waits", Json::array()}, {"dropped", Json::array()}};
  row["decisions"] = node.decisions.empty() ? Json(nullptr) : Json(node.decisions);
  for (const NodeId by : node.stream_started_by) row["stream_started_by"].push_back(name(by));
  for (const CutReason& cut : node.cuts) {
    row["split"] = {{"stream", cut.opened.index}, {"reason", cut.reason}, {"event", cut.event ? Json(*cut.event) : Json(nullptr)}};
  }
  for (const std::uint32_t i : node.waits) {
    const SyncPair& p = plan.sync.kept[i];
    row["waits"].push_back({{"for", name(p.from)}, {"stream", plan.on.stream_of(p.from)->index}, {"reason", std::string(to_string(p.reason))}});
  }
  for (const std::uint32_t i : node.dropped) {
    const DroppedPair& d = plan.sync.dropped[i];
    Json implied = Json::array();
    for (const PairId id : plan.sync.path(d)) {
      if ((id.index & kStartStep) != 0) {
        const StartFact& fact = plan.sync.starts[id.index & ~kStartStep];
        implied.push_back({{"from", name(fact.source)}, {"to", name(fact.start)}, {"starts", true}});
      } else {
        const SyncPair& p = plan.sync.kept[id.index];
        implied.push_back({{"from", name(p.from)}, {"to", name(p.to)}});
      }
    }
    row["dropped"].push_back({{"pair", {{"from", name(d.pair.from)}, {"to", name(d.pair.to)}}}, {"implied_by", implied}});
  }
  return row;
}

Result<int> run_explain(const ExplainOptions& options) {
  if (options.markdown && options.model.path == "errors") {
    fmt::print("{}", error_table_markdown());
    return 0;
  }
  if (is_error_number(options.model.path) && !std::filesystem::exists(options.model.path)) return explain_error(options.model.path, options.model.json);
  MST_TRY(Loaded loaded, load(options.model));
  MST_TRY(const ResolvedPipeline pipeline, resolve(options.pipeline, options.model));
  warn_of_idle_options(options.pipeline, loaded);
  if (loaded.plan) warn_of_idle_profile(options.profile, "the plan decides");
  StreamAssignment on;
  SyncPlan sync;
  Schedule schedule;
  if (loaded.plan) {
    on = loaded.plan->assignment;
    sync = loaded.plan->sync;
    schedule = loaded.plan->schedule;
  } else if (loaded.schedule && !loaded.dump) {
    return Error{ErrorCode::usage, "a schedule text does not say which rule placed a node"}.help("explain a MODEL or a .plan; check a schedule with millstream check");
  } else {
    say_environment(pipeline);
    MST_TRY(const CompileOptions compile, with_passes(pipeline, loaded.pass_libraries));
    for (const Error& w : compile.warnings) warn(w);
    MST_TRY(loaded.graph, prepare(std::move(loaded.graph), pipeline.target, pipeline.compile));
    MST_TRY_VOID(measure(loaded.graph, options.profile));
    MST_TRY(on, decide_streams(loaded.graph, pipeline.target, compile));
    MST_TRY(sync, plan_sync(loaded.graph, on, pipeline.compile.sync));
    // Decisions can be explained although the device cannot hold the plan.
    if (auto lowered = lower(loaded.graph, on, sync, pipeline.target, pipeline.compile.lower); lowered.ok()) {
      schedule = *std::move(lowered);
    } else {
      warn(lowered.error());
    }
  }
  const Graph& graph = loaded.graph;
  std::optional<NodeId> only;
  if (!options.node.empty()) {
    only = graph.find_node(options.node);
    if (!only) {
      std::string near;
      for (const NodeId n : graph.nodes()) {
        if (graph.name(n).find(options.node) != std::string_view::npos && near.size() < 200) near += fmt::format("{}{}", near.empty() ? "" : ", ", graph.name(n));
      }
      return Error{ErrorCode::usage, fmt::format("the model has no node \"{}\"", options.node)}.help(near.empty() ? "millstream convert MODEL OUT.mst lists the nodes" : "nodes with that text in their name: " + near);
    }
  }
  const ExplainInput plan{graph, on, sync, schedule};
  MST_TRY(std::vector<NodeReasons> reasons, explain(plan, only));
  if (only && !loaded.plan && chosen_strategy(graph, pipeline.target, pipeline.compile.assign) == Strategy::ge) {
    MST_TRY(reasons.front().decisions, explain_placement(graph, pipeline.target, pipeline.compile.assign, *only));
  }

  Json json = Json::array();
  for (const NodeReasons& node : reasons) {
    if (options.model.json) {
      json.push_back(row_of(plan, node));
    } else {
      fmt::print("{}", print(plan, node));
    }
  }
  if (options.model.json) {
    print_json(only ? json[0] : Json{{"nodes", json}});
  } else {
    for (const Error& w : on.warnings) warn(w);
  }
  return 0;
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* sub = app.add_subcommand("check", "verify any plan or schedule: races, deadlocks, limits, redundant waits");
  add_model_options(*sub, options->model, "PLAN", "plan (.plan), schedule (.mst) or graph dump (.pbtxt, .txt)");
  sub->add_option("--target", options->target, "also check this target's limits");
  sub->add_option("--ranks", options->ranks, "plans of the other ranks: only whether collectives are ordered alike on all of them");
  sub->callback(runner(options, run_check, status));
}

void add_explain(CLI::App& app, int& status) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* sub = app.add_subcommand("explain", "which rule placed a node, which waits it needs, what implies the others");
  add_model_options(*sub, options->model, "MODEL", "model (.onnx, .mst) or .plan; or an error's number, such as E37 or (of the acl interface) 107019");
  sub->add_option("NODE", options->node, "only this node");
  sub->add_flag("--markdown", options->markdown, "with the word errors: the table of docs/errors.md");
  add_pipeline_options(*sub, options->pipeline);
  add_profile_option(*sub, options->profile);
  sub->callback(runner(options, run_explain, status));
}

}  // namespace millstream::cli
