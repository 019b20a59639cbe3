// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/import/file_bytes.h"
#include "millstream/schedule/summary.h"
#include "tools/millstream/common.h"
#include "tools/millstream/pass_options.h"
#include "tools/millstream/plan_difference.h"
#include "tools/millstream/plan_rows.h"
#include "tools/millstream/profile_option.h"

namespace millstream::cli {
namespace {

struct SyncCounts {
  std::uint64_t records = 0;
  std::uint64_t waits = 0;
};

SyncCounts count_sync(const Schedule& schedule) {
  SyncCounts n;
  for (const PhysicalStream& s : schedule.streams) {
    for (const Task& t : s.tasks) {
      n.records += t.kind == Task::Kind::record;
      n.waits += t.kind == Task::Kind::wait;
    }
  }
  return n;
}

// The streams of each graph that have nodes there, by the names of the ecosystem's summary.
Json summary_json(const AllocationSummary& summary) {
  Json out = Json::array();
  for (const GraphSummary& g : summary.graphs) {
    Json streams = Json::array();
    for (const StreamSummary& s : g.streams) {
      if (s.physical == 0) continue;
      streams.push_back({{"logic_stream_id", s.id}, {"user_stream_label", s.user_label}, {"is_assigned_by_user_stream_pass", s.assigned_by_pass},
                         {"attached_stream_ids", s.attached}, {"physical_model_stream_num", s.physical}, {"hccl_followed_stream_num", s.followed}});
    }
    out.push_back({{"graph", g.name}, {"streams", std::move(streams)}});
  }
  return out;
}

struct Options {
  ModelOptions model;
  PipelineOptions pipeline;
  ProfileOption profile;
  std::string output;
  std::string dump_graph;
  bool summary = false;
};

// What can be known before anything is compiled.
Result<void> check_output_name(const Options& options) {
  const std::string& path = options.output;
  const std::string name = std::filesystem::path(path).filename().string();
  if (path.empty() || ((ends_with(name, ".plan") || ends_with(name, ".mst")) && name.front() != '.')) return {};
  return Error{ErrorCode::usage, fmt::format("-o {}: the file must end in .plan or .mst", path)};
}

// The lanes as text. The comment holds the command that checks them, since the lanes alone do not say what
// the model and its sizes are.
std::string schedule_text(const Loaded& loaded, const Compiled& compiled) {
  std::string check = fmt::format("millstream check THIS.mst --graph {}", loaded.model_path);
  for (const auto& [name, n] : loaded.dims) check += fmt::format(" --dim {}={}", name, n);
  std::string line;
  for (const char c : check) line += static_cast<unsigned char>(c) < 0x20 ? '?' : c;  // a comment ends with its line
  return fmt::format("# schedule of a model; to check it: {}\nschedule\n{}", line, print(loaded.graph, compiled.schedule));
}

Result<void> write_output(const Options& options, const Loaded& loaded, const Compiled& compiled) {
  const std::string& path = options.output;
  MST_TRY_VOID(check_output(path, options.model, loaded.model_path));
  if (ends_with(path, ".mst")) {
    return write_bytes(path, schedule_text(loaded, compiled));
  }
  Plan plan;
  plan.graph_hash = hash_of(loaded.graph);
  namespace fs = std::filesystem;
  std::error_code ec;
  const fs::path folder = fs::absolute(path, ec).parent_path();
  plan.model_path = fs::absolute(loaded.model_path, ec).lexically_relative(folder).string();
  plan.dims.assign(loaded.dims.begin(), loaded.dims.end());
  plan.assignment = compiled.assignment;
  plan.sync = compiled.sync;
  plan.schedule = compiled.schedule;
  plan.memory = compiled.memory;
  return write_plan(path, plan);
}

// --dump-graph counts before the environment where the two say the same thing.
DumpFiles dump_files(const Options& options, const CompileOptions& compile) {
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  DumpSettingsRead read = dump_settings(variable, ::getpid(), 0);
  for (const Error& w : read.warnings) warn(w);
  if (!options.dump_graph.empty()) {
    read.settings.folder = options.dump_graph;
    if (!read.settings.detail) read.settings.detail = DumpDetail::no_weights;
  }
  if (compile.max_dump_files > 0) read.settings.max_files = compile.max_dump_files;
  if (compile.max_dump_bytes > 0) read.settings.max_bytes = compile.max_dump_bytes;
  return DumpFiles(std::move(read.settings));
}

// What the dump had that is read, where it can be compared.
std::optional<PlanSide> side_of_dump(const Loaded& loaded) {
  if (!loaded.dump || (!loaded.schedule && !loaded.placed)) return std::nullopt;
  Result<PlanSide> side = plan_side(loaded.graph, loaded.schedule ? *loaded.schedule : *loaded.placed, loaded.schedule.has_value());
  if (side.ok()) return *std::move(side);
  // Waits that are never met: millstream check says which. Streams can be compared all the same.
  side = plan_side(loaded.graph, *loaded.schedule, false);
  return side.ok() ? std::optional<PlanSide>(*std::move(side)) : std::nullopt;
}

int run_compile(const Options& options) {
  if (auto r = check_output_name(options); !r.ok()) return fail(r.error());
  Result<Loaded> loaded = load(options.model);
  if (!loaded.ok()) return fail(loaded.error());
  Result<ResolvedPipeline> pipeline = resolve(options.pipeline, options.model);
  if (!pipeline.ok()) return fail(pipeline.error());
  if (loaded->schedule && !loaded->dump) {
    warn(Error{ErrorCode::no_effect, fmt::format("the {} in \"{}\" is not used: compile decides anew", loaded->plan ? "plan" : "schedule", options.model.path)}.help(
        "millstream check verifies it, millstream run runs it"));
  }
  const std::uint64_t rss_before = peak_rss_kb();
  const std::optional<PlanSide> before = side_of_dump(*loaded);
  DumpFiles dumps = dump_files(options, pipeline->compile);
  Result<MeasuredCompile> measured = compile_measured(*loaded, *pipeline, options.profile, &dumps);
  if (!measured.ok()) return fail(measured.error());
  const Compiled* compiled = &measured->compiled;
  std::optional<PlanDifference> difference;
  if (before) {
    const Result<PlanSide> after = plan_side(loaded->graph, compiled->schedule, before->has_waits);
    if (!after.ok()) return fail(after.error());
    difference = plan_difference(*before, *after);
  }
  if (measured->measured.joined) loaded->graph.annotations().cost = std::move(measured->measured.given);  // a plan is of the model as it is
  if (!options.output.empty()) {
    if (auto r = write_output(options, *loaded, *compiled); !r.ok()) return fail(r.error());
  }
  if (options.model.json) {
    Json json = compile_json(loaded->graph, *compiled, pipeline->target);
    json["read_ms"] = loaded->read_ms;
    json["read_rss_kb"] = rss_before;
    json["profile"] = profile_json(measured->measured.joined);
    json["pass_libraries"] = Json::array();
    for (const LibraryReport& library : loaded->pass_libraries) json["pass_libraries"].push_back(library_json(library));
    json["dumps"] = dumps.written();
    json["difference"] = nullptr;
    if (difference) {
      json["difference"] = {{"moved", difference->moved}, {"renumbered", difference->renumbered},
                            {"added_waits", difference->added_waits}, {"removed_waits", difference->removed_waits}};
    }
    json["plan"] = options.output.empty() ? Json(nullptr) : Json(options.output);
    print_with_rows(json, loaded->graph, *compiled);
  } else {
    for (const auto* list : {&compiled->assignment.warnings, &compiled->sync.warnings, &compiled->schedule.warnings}) {
      for (const Error& w : *list) warn(w);
    }
    fmt::print("{}", compile_text(loaded->graph, *compiled, pipeline->target, loaded->graph.node_count() <= 400, options.summary));
    if (difference) {
      fmt::print("beside what the dump had{}:\n", before->has_waits ? "" : " (its streams; it holds no waits that could be compared)");
      print_difference(*difference, "the dump", "this plan");
      print_totals(*difference);
    }
    for (const std::string& path : dumps.written()) fmt::print("wrote {}\n", path);
    if (!options.output.empty()) fmt::print("wrote {}\n", options.output);
  }
  return 0;
}

}  // namespace

Json compile_json(const Graph& graph, const Compiled& c, const Target& target) {
  Json json;
  const SyncCounts sync = count_sync(c.schedule);
  const Dependencies deps(graph);
  json["nodes"] = graph.node_count();
  json["edges"] = deps.edge_count();
  json["target"] = target.name;
  json["clusters"] = c.assignment.clusters;
  json["logical_streams"] = c.assignment.stream_count();
  json["attached_streams"] = c.assignment.attached_count();
  json["physical_streams"] = c.schedule.stream_count();
  json["physical_to_logical"] = Json::array();
  for (const PhysicalStream& s : c.schedule.streams) json["physical_to_logical"].push_back(s.logical.index);
  if (c.schedule.streams.empty()) json["physical_to_logical"].push_back(0);
  json["huge_streams"] = Json::array();
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(c.schedule.streams.size())) {
    if (c.schedule.streams[s].huge) json["huge_streams"].push_back(s.index);
  }
  json["summary"] = summary_json(summarize(graph, c.assignment, c.sync, c.schedule));
  json["split_points"] = Json::array();
  for (const SplitPoint& p : c.schedule.splits) {
    json["split_points"].push_back({{"node", std::string(graph.name(p.node))}, {"opened", p.opened.index}, {"reason", p.reason}});
  }
  json["threads_per_op"] = c.assignment.threads_per_op;
  json["pairs_inserted"] = c.sync.inserted - given_by_activations(c.sync);
  json["pairs_kept"] = c.sync.kept.size();
  json["pairs_compat"] = c.sync.compat ? Json(c.sync.compat->kept()) : Json(nullptr);
  json["compat"] = nullptr;
  if (const auto& k = c.sync.compat) {
    json["compat"] = {{"inserted", k->inserted}, {"after_send", k->after_send}, {"after_receive", k->after_receive},
                      {"after_activate", k->after_activate}, {"after_switch", k->after_switch}, {"added", k->added}};
  }
  json["records"] = sync.records;
  json["waits"] = sync.waits;
  json["event_ids"] = c.schedule.event_kind == EventKind::event ? c.schedule.event_count : 0;
  json["notify_ids"] = c.schedule.event_kind == EventKind::notify ? c.schedule.event_count : 0;
  json["compile_ms"] = c.total_ms();
  for (const auto& [name, ms] : c.stage_ms) json["stage_ms"][name] = ms;
  json["peak_rss_kb"] = peak_rss_kb();
  json["memory"] = {{"peak_bytes", c.memory.peak_bytes},
                    {"single_stream_bytes", c.memory.single_stream_bytes},
                    {"lower_bound_bytes", c.memory.lower_bound_bytes}};
  if (const auto& e = c.assignment.estimate) {
    json["estimated"] = {{"span_us", e->span_us}, {"single_stream_us", e->single_stream_us}, {"lower_bound_us", e->lower_bound_us},
                         {"overlap", e->overlap}, {"limited_by", e->limited_by}, {"unknown_costs", e->unknown_costs}};
  }
  json["considered"] = Json::array();
  for (const Candidate& candidate : c.assignment.considered) {
    json["considered"].push_back({{"streams", candidate.streams}, {"threads_per_op", candidate.threads_per_op},
                                  {"span_us", candidate.span_us}, {"pairs", candidate.pairs}});
  }
  json["rules"] = Json::array();
  for (const RuleReport& r : c.assignment.reports) {
    json["rules"].push_back({{"rule", r.rule}, {"placed", r.nodes_placed}, {"moved", r.nodes_moved}, {"ms", r.milliseconds}});
  }
  json["warnings"] = Json::array();
  for (const auto* list : {&c.assignment.warnings, &c.sync.warnings, &c.schedule.warnings}) {
    for (const Error& w : *list) json["warnings"].push_back(error_json(w));
  }
  return json;
}

std::string compile_text(const Graph& graph, const Compiled& c, const Target& target, bool lanes, bool summary) {
  const SyncCounts sync = count_sync(c.schedule);
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{}: {}, target {} ({})\n", graph.name(), counted(graph.node_count(), "node"), target.name, counted(target.cores, "core"));
  fmt::format_to(to, "streams    {} ({} an operator)\n", c.schedule.stream_count(), counted(c.assignment.threads_per_op, "thread"));
  fmt::format_to(to, "sync       {} needed, {} implied and dropped; {}, {}, {}\n",
                 counted(c.sync.kept.size(), "pair"), c.sync.dropped.size() - given_by_activations(c.sync), counted(sync.records, "record"), counted(sync.waits, "wait"),
                 counted(c.schedule.event_count, "event id"));
  if (const auto& k = c.sync.compat; k && c.sync.mode == SyncMode::compat) {
    fmt::format_to(to, "compat     {} inserted, {} after send, {} after receive, {} after activate, {} after switch, {} added: {} kept\n",
                   k->inserted, k->after_send, k->after_receive, k->after_activate, k->after_switch, k->added, k->kept());
  } else if (k) {
    fmt::format_to(to, "compat     Graph Engine's three rules would keep {} of {}\n", k->kept(), counted(k->inserted + k->added, "pair"));
  }
  if (c.schedule.has_control()) {
    out += "memory     not planned: with control flow on the device each launch makes its outputs\n";
  } else {
    fmt::format_to(to, "memory     peak {} bytes (one stream {}, lower bound {})\n", c.memory.peak_bytes,
                   c.memory.single_stream_bytes, c.memory.lower_bound_bytes);
  }
  if (const auto& e = c.assignment.estimate) {
    fmt::format_to(to, "predicted  {:.1f} us; best one-stream plan {:.1f}, no plan under {:.1f} ({})\n", e->span_us, e->single_stream_us,
                   e->lower_bound_us, e->limited_by);
  }
  fmt::format_to(to, "compiled   in {:.2f} ms:", c.total_ms());
  for (const auto& [name, ms] : c.stage_ms) fmt::format_to(to, " {} {:.2f}", name, ms);
  out += '\n';
  for (const RuleReport& r : c.assignment.reports) {
    // A pass that found nothing to move may have looked for a wrong name.
    if (r.rule.rfind("pass ", 0) == 0) {
      fmt::format_to(to, "rule       {}: moved {}\n", r.rule, counted(r.nodes_placed + r.nodes_moved, "node"));
      continue;
    }
    if (r.nodes_placed + r.nodes_moved == 0) continue;
    fmt::format_to(to, "rule       {}: placed {}, moved {}\n", r.rule, r.nodes_placed, r.nodes_moved);
  }
  if (summary || c.assignment.clusters != 0) out += print(summarize(graph, c.assignment, c.sync, c.schedule));
  if (lanes) out += print(graph, c.schedule);
  return out;
}

void add_compile(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("compile", "decide streams, sync and memory; print the plan and its numbers");
  add_model_options(*sub, options->model, "MODEL", "model: .onnx, .mst or a graph dump (.pbtxt, .txt)");
  sub->add_option("-o,--output", options->output, "write the plan: .plan (binary) or .mst (lanes as text)");
  sub->add_option("--dump-graph", options->dump_graph, "FOLDER: write the graph of each phase as ge_onnx_*.pbtxt and ge_proto_*.txt (docs/dumps.md)");
  sub->add_flag("--summary", options->summary, "also a line for each logical stream, as strategy ge prints");
  add_pipeline_options(*sub, options->pipeline);
  add_profile_option(*sub, options->profile);
  sub->footer("\nExamples:\n"
              "  millstream compile model.onnx --dim batch=1 -o model.plan\n"
              "  millstream compile model.mst --streams 4 --force-streams\n");
  sub->callback([options, &status] { status = run_compile(*options); });
}

void add_options(CLI::App& app, int& status) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("options", "list every option --set takes");
  auto json = std::make_shared<bool>(false);
  sub->add_flag("--markdown", *markdown, "as docs/options.md");
  sub->add_flag("--json", *json, "print one JSON object on stdout");
  sub->callback([markdown, json, &status] {
    if (*json) {
      Json rows = Json::array();
      for (const OptionRow& row : option_table()) {
        rows.push_back({{"key", row.key}, {"ecosystem", row.ecosystem}, {"flag", row.flag}, {"environment", row.environment}, {"values", row.values}, {"default", row.otherwise}, {"what", row.what}});
      }
      print_json({{"options", rows}});
    } else if (*markdown) {
      fmt::print("{}", options_markdown());
    } else {
      for (const OptionRow& row : option_table()) {
        fmt::print("{:16} {}\n{:16} values: {}; default: {}\n", row.key, row.what, "", row.values, row.otherwise);
      }
    }
    status = 0;
  });
}

}  // namespace millstream::cli
