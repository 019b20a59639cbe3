// SPDX-License-Identifier: Apache-2.0
// check, explain, diff: what a plan says, and whether it is right.
#include <algorithm>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "tools/millstream/common.h"

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
  }
  return "?";
}

struct CheckOptions {
  ModelOptions model;
  std::string target;
};

Result<int> run_check(const CheckOptions& options) {
  MST_TRY(const Loaded loaded, load(options.model));
  const Graph& graph = loaded.graph;
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
  if (loaded.plan) {
    for (Violation& v : verify(graph, *loaded.schedule, loaded.plan->memory)) report.violations.push_back(std::move(v));
  }
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
    for (const auto& r : report.redundant) {
      json["redundant"].push_back({{"event", r.event.index}, {"stream", r.wait.stream.index}, {"task", r.wait.index}});
    }
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
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
  for (std::size_t i = 0; i < report.redundant.size() && i < kShown; ++i) {
    const auto& r = report.redundant[i];
    fmt::print("redundant: stream {} waits for e{} (task {}), but other orders imply it\n", r.wait.stream.index, r.event.index, r.wait.index);
  }
  if (report.redundant.size() > kShown) fmt::print("and {} more redundant waits\n", report.redundant.size() - kShown);
  if (report.ok()) {
    std::uint64_t waits = 0;
    for (const PhysicalStream& s : loaded.schedule->streams) {
      for (const Task& t : s.tasks) waits += t.kind == Task::Kind::wait;
    }
    fmt::print("ok: {} streams, {} nodes, {} waits: every dependency is ordered, no deadlock, {} waits redundant\n",
               loaded.schedule->streams.size(), graph.node_count(), waits, report.redundant.size());
  } else {
    fmt::print("{} violations\n", report.violations.size());
  }
  return report.ok() ? 0 : 1;
}

// ---- explain

struct ExplainOptions {
  ModelOptions model;
  PipelineOptions pipeline;
  std::string node;
};

Result<int> run_explain(const ExplainOptions& options) {
  MST_TRY(const Loaded loaded, load(options.model));
  MST_TRY(const ResolvedPipeline pipeline, resolve(options.pipeline, options.model));
  warn_of_idle_options(options.pipeline, loaded);
  const Graph& graph = loaded.graph;
  StreamAssignment on;
  SyncPlan sync;
  if (loaded.plan) {
    on = loaded.plan->assignment;
    sync = loaded.plan->sync;
  } else if (loaded.schedule) {
    return Error{ErrorCode::usage, "a schedule text does not say which rule placed a node"}.help("explain a MODEL or a .plan; check a schedule with millstream check");
  } else {
    MST_TRY(on, assign_streams(graph, pipeline.target, pipeline.compile.assign));
    MST_TRY(sync, plan_sync(graph, on, pipeline.compile.sync));
  }
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
  std::vector<std::vector<std::uint32_t>> waits(graph.node_count()), dropped(graph.node_count());
  for (std::uint32_t i = 0; i < sync.kept.size(); ++i) waits[sync.kept[i].to.index].push_back(i);
  for (std::uint32_t i = 0; i < sync.dropped.size(); ++i) dropped[sync.dropped[i].pair.to.index].push_back(i);
  const auto name = [&](NodeId n) { return quote_name(graph.name(n)); };
  const auto stream = [&](NodeId n) { return on.stream_of(n) ? fmt::format("stream {}", on.stream_of(n)->index) : std::string("no stream"); };

  Json json = Json::array();
  for (const NodeId n : graph.order()) {
    if (only && n != *only) continue;
    const auto& placement = on.placement[n];
    const std::string rule = placement ? on.rules[placement->decided_by.index] : "";
    const std::string reason = placement ? on.reasons[placement->decided_by.index] : "it emits no task";
    Json row = {{"node", std::string(graph.name(n))}, {"type", std::string(graph.type(n))},
                {"stream", placement ? Json(placement->stream.index) : Json(nullptr)}, {"rule", rule}, {"reason", reason},
                {"waits", Json::array()}, {"dropped", Json::array()}};
    std::string text = fmt::format("{} ({}) runs on {}", name(n), graph.type(n), stream(n));
    if (placement && !on.streams[placement->stream].label.empty()) text += fmt::format(", the stream of label \"{}\"", on.streams[placement->stream].label);
    text += fmt::format("\n  rule       {}: {}\n", rule.empty() ? "-" : rule, reason);
    for (const std::uint32_t i : waits[n.index]) {
      const SyncPair& p = sync.kept[i];
      row["waits"].push_back({{"for", std::string(graph.name(p.from))}, {"stream", on.stream_of(p.from)->index}, {"reason", std::string(to_string(p.reason))}});
      text += fmt::format("  waits for  {} on {} ({} dependency)\n", name(p.from), stream(p.from), to_string(p.reason));
    }
    for (const std::uint32_t i : dropped[n.index]) {
      const DroppedPair& d = sync.dropped[i];
      std::string path = name(d.pair.from);
      Json implied = Json::array();
      for (const PairId id : sync.path(d)) {
        const SyncPair& p = sync.kept[id.index];
        implied.push_back({{"from", std::string(graph.name(p.from))}, {"to", std::string(graph.name(p.to))}});
        if (p.from != d.pair.from || implied.size() > 1) path += fmt::format(" .. {}", name(p.from));
        path += fmt::format(" -> {}", name(p.to));
      }
      row["dropped"].push_back({{"pair", {{"from", std::string(graph.name(d.pair.from))}, {"to", std::string(graph.name(d.pair.to))}}}, {"implied_by", implied}});
      text += fmt::format("  no wait for {} on {}: implied by {}{}\n", name(d.pair.from), stream(d.pair.from), path,
                          sync.path(d).empty() || sync.kept[sync.path(d).back().index].to == d.pair.to ? "" : fmt::format(" .. {}", name(d.pair.to)));
    }
    if (options.model.json) {
      json.push_back(std::move(row));
    } else {
      fmt::print("{}", text);
    }
  }
  if (options.model.json) {
    fmt::print("{}\n", (only ? json[0] : Json{{"nodes", json}}).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    for (const Error& w : on.warnings) warn(w);
  }
  return 0;
}

// ---- diff

struct DiffOptions {
  std::string a, b, graph;
  std::vector<std::string> dims;
  PipelineOptions pipeline;
  bool json = false;
};

struct Side {
  std::map<std::string, std::uint32_t> stream;  // node name -> logical stream
  std::set<std::pair<std::string, std::string>> waits;
};

Result<Side> side_of(const std::string& path, const DiffOptions& options) {
  ModelOptions model;
  model.path = path;
  model.graph = options.graph;
  model.dims = options.dims;
  MST_TRY(Loaded loaded, load(model));
  Side side;
  if (!loaded.schedule) {
    MST_TRY(const ResolvedPipeline pipeline, resolve(options.pipeline, model));
    MST_TRY(Compiled compiled, compile_loaded(loaded, pipeline));
    loaded.schedule = std::move(compiled.schedule);
  }
  // A pair: the last launch before the record, the first launch after the wait, by event.
  std::map<std::uint32_t, std::vector<std::string>> records;
  const Schedule& schedule = *loaded.schedule;
  for (const PhysicalStream& s : schedule.streams) {
    for (const Task& t : s.tasks) {
      if (t.kind == Task::Kind::launch) side.stream[std::string(loaded.graph.name(t.node()))] = s.logical.index;
    }
  }
  MST_TRY(const std::vector<SyncPair> pairs, pairs_of(loaded.graph, schedule));
  for (const SyncPair& p : pairs) side.waits.insert({std::string(loaded.graph.name(p.from)), std::string(loaded.graph.name(p.to))});
  return side;
}

Result<int> run_diff(const DiffOptions& options) {
  MST_TRY(const Side a, side_of(options.a, options));
  MST_TRY(const Side b, side_of(options.b, options));
  Json moved = Json::array(), added = Json::array(), removed = Json::array();
  for (const auto& [name, stream] : a.stream) {
    auto it = b.stream.find(name);
    if (it == b.stream.end()) {
      moved.push_back({{"node", name}, {"from", stream}, {"to", nullptr}});
    } else if (it->second != stream) {
      moved.push_back({{"node", name}, {"from", stream}, {"to", it->second}});
    }
  }
  for (const auto& [name, stream] : b.stream) {
    if (a.stream.count(name) == 0) moved.push_back({{"node", name}, {"from", nullptr}, {"to", stream}});
  }
  for (const auto& w : b.waits) {
    if (a.waits.count(w) == 0) added.push_back({{"from", w.first}, {"to", w.second}});
  }
  for (const auto& w : a.waits) {
    if (b.waits.count(w) == 0) removed.push_back({{"from", w.first}, {"to", w.second}});
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"moved", moved}, {"added_waits", added}, {"removed_waits", removed}}.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  const auto stream = [](const Json& s) { return s.is_null() ? std::string("absent") : fmt::format("stream {}", s.get<std::uint32_t>()); };
  for (const Json& m : moved) fmt::print("moved    {}: {} -> {}\n", quote_name(m["node"].get<std::string>()), stream(m["from"]), stream(m["to"]));
  for (const Json& w : added) fmt::print("added    wait of {} for {}\n", quote_name(w["to"].get<std::string>()), quote_name(w["from"].get<std::string>()));
  for (const Json& w : removed) fmt::print("removed  wait of {} for {}\n", quote_name(w["to"].get<std::string>()), quote_name(w["from"].get<std::string>()));
  fmt::print("{} moved, {} waits added, {} removed\n", moved.size(), added.size(), removed.size());
  return 0;
}

template <class Options>
auto runner(std::shared_ptr<Options> options, Result<int> (*call)(const Options&), int& status) {
  return [options, call, &status] {
    const Result<int> r = call(*options);
    status = r.ok() ? *r : fail(r.error());
  };
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* sub = app.add_subcommand("check", "verify any plan or schedule: races, deadlocks, limits, redundant waits");
  add_model_options(*sub, options->model, "PLAN", "plan (.plan) or schedule (.mst)");
  sub->add_option("--target", options->target, "also check this target's limits");
  sub->callback(runner(options, run_check, status));
}

void add_explain(CLI::App& app, int& status) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* sub = app.add_subcommand("explain", "which rule placed a node, which waits it needs, what implies the others");
  add_model_options(*sub, options->model, "MODEL", "model (.onnx, .mst) or .plan");
  sub->add_option("NODE", options->node, "only this node");
  add_pipeline_options(*sub, options->pipeline);
  sub->callback(runner(options, run_explain, status));
}

void add_diff(CLI::App& app, int& status) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* sub = app.add_subcommand("diff", "what two plans do differently: nodes moved, waits added and removed");
  sub->add_option("A", options->a, "plan, schedule or model")->required();
  sub->add_option("B", options->b, "plan, schedule or model")->required();
  sub->add_option("--graph", options->graph, "the model of plan or schedule files");
  sub->add_option("--dim", options->dims, "NAME=N: bind a symbolic dimension (repeatable)")->allow_extra_args(false);
  sub->add_flag("--json", options->json, "print one JSON object on stdout");
  add_pipeline_options(*sub, options->pipeline);
  sub->callback(runner(options, run_diff, status));
}

}  // namespace millstream::cli
