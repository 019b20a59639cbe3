// SPDX-License-Identifier: Apache-2.0
// report: one page with the plan, its reasons and its runs; two plans beside each other.
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "millstream/compile/simulate.h"
#include "millstream/import/file_bytes.h"
#include "millstream/report/measured.h"
#include "millstream/report/report_data.h"
#include "tools/millstream/common.h"
#include "tools/millstream/profile_option.h"
#include "tools/millstream/running.h"

namespace millstream::cli {
namespace {

struct Options {
  ModelOptions model;
  PipelineOptions pipeline;
  ProfileOption profile;
  const CLI::Option* target = nullptr;
  std::string other;
  std::string output;
  bool run = false;
};

/// What is shown of one input: the plan's parts, whether compiled, read from a plan, or a schedule alone.
struct Parts {
  Loaded loaded;
  StreamAssignment assignment;
  SyncPlan sync;
  Schedule schedule;
  MemoryPlan memory;
  Measured measured;
};

Result<Parts> read_parts(const ModelOptions& model, const Options& options, ResolvedPipeline pipeline) {
  Parts out;
  MST_TRY(out.loaded, load(model));
  warn_of_idle_options(options.pipeline, out.loaded);
  if (!out.loaded.schedule) {
    pipeline.compile.sync.count_compat = true;
    MST_TRY(MeasuredCompile made, compile_measured(out.loaded, pipeline, options.profile));
    out.assignment = std::move(made.compiled.assignment);
    out.sync = std::move(made.compiled.sync);
    out.schedule = std::move(made.compiled.schedule);
    out.memory = std::move(made.compiled.memory);
    out.measured = std::move(made.measured);
    return out;
  }
  say_environment(pipeline);
  MST_TRY(out.measured, measure(out.loaded.graph, options.profile));
  if (out.loaded.plan) {
    Plan& plan = *out.loaded.plan;
    out.assignment = std::move(plan.assignment);
    out.sync = std::move(plan.sync);
    out.schedule = std::move(plan.schedule);
    out.memory = std::move(plan.memory);
    return out;
  }
  out.schedule = *out.loaded.schedule;
  MST_TRY_VOID(refuse_unsafe(out.loaded.graph, out.schedule, pipeline.target));
  out.assignment = assignment_of(out.loaded.graph, out.schedule);
  MST_TRY(out.sync.kept, pairs_of(out.loaded.graph, out.schedule));
  out.sync.inserted = static_cast<std::uint32_t>(out.sync.kept.size());
  MST_TRY(out.memory, plan_memory(out.loaded.graph, out.schedule, pipeline.compile.memory));
  return out;
}

// The second run counts: the first one fills caches.
Result<ReportView> measured(const ReportInput& input, const ReportPlan& plan, const MemoryPlan& memory, const ResolvedPipeline& pipeline, bool quiet) {
  MST_TRY(const std::vector<Tensor> inputs, read_inputs(input.graph, {}, quiet));
  const KernelTable kernels = all_kernels();
  const std::uint32_t threads = input.assignment.threads_per_op;
  const std::uint32_t workers = default_workers(machine_cores(), threads, input.schedule);
  MST_TRY(const std::unique_ptr<Engine> engine, make_engine(input.graph, input.schedule, memory, kernels, workers, threads, pipeline.compile.memory.max_bytes));
  ExecuteOptions traced;
  traced.trace = true;
  for (int warm = 0; warm < 2; ++warm) {
    MST_TRY(const RunResult result, run(*engine->executable, inputs, traced));
    if (warm == 1) return view_of(input, plan, result.trace, fmt::format("measured on cpu, {} x {}", counted(workers, "worker"), counted(threads, "thread")));
  }
  return Error{ErrorCode::internal, "no run"};
}

Result<ReportPlan> report_of(const Options& options, const std::string& path) {
  ModelOptions model = options.model;
  model.path = path;
  MST_TRY(const ResolvedPipeline pipeline, resolve(options.pipeline, model));
  MST_TRY(const Parts parts, read_parts(model, options, pipeline));
  MST_TRY_VOID(check_output(options.output, model, parts.loaded.model_path));
  const ReportInput input{parts.loaded.graph, pipeline.target, parts.assignment, parts.sync, parts.schedule};
  ReportPlan plan = report_plan(input);
  plan.title = std::filesystem::path(path).filename().string();
  plan.file = path;
  if (parts.loaded.schedule && options.target->count() == 0) {
    plan.notes.push_back(fmt::format("no --target is given, and \"{}\" does not say what it was made for: the times are of {}", path, pipeline.target.name));
    complain(fmt::format("note: {}\n", plan.notes.back()));
  }
  MST_TRY(ReportView sim, simulated_view(input, plan));
  plan.views.push_back(std::move(sim));
  if (parts.measured.joined) {
    plan.notes.push_back(to_string(*parts.measured.joined, parts.loaded.graph));
    if (auto view = view_of_records(input, plan, parts.measured.records, *parts.measured.joined)) plan.views.push_back(std::move(*view));
  }
  if (options.run) {
    MST_TRY(ReportView view, measured(input, plan, parts.memory, pipeline, options.model.json));
    plan.views.push_back(std::move(view));
  }
  return plan;
}

Json view_json(const ReportView& view) {
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1000; };
  Json streams = Json::array(), path = Json::object();
  for (const LaneUse& use : view.use) {
    Json row = Json::object();
    for (const LaneCause& cause : lane_causes()) row[std::string(cause.key) + "_us"] = us(use.*cause.ns);
    streams.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < view.path_ns.size(); ++i) path[std::string(to_string(static_cast<PathCause>(i)))] = us(view.path_ns[i]);
  return {{"what", view.what}, {"span_us", us(view.total_ns)}, {"overlap", view.overlap}, {"streams", std::move(streams)}, {"critical_path_us", std::move(path)}};
}

Result<int> run_report(const Options& options) {
  if (!ends_with(options.output, ".html") || std::filesystem::path(options.output).filename() == ".html") {
    return Error{ErrorCode::usage, fmt::format("-o {}: the file must end in .html", options.output)};
  }
  std::vector<ReportPlan> plans;
  MST_TRY(ReportPlan first, report_of(options, options.model.path));
  plans.push_back(std::move(first));
  if (!options.other.empty()) {
    MST_TRY(ReportPlan second, report_of(options, options.other));
    plans.push_back(std::move(second));
  }
  const std::string page = to_html(plans);
  MST_TRY_VOID(write_bytes(options.output, page));
  if (options.model.json) {
    Json json = {{"output", options.output}, {"bytes", page.size()}, {"plans", Json::array()}};
    for (const ReportPlan& plan : plans) {
      Json views = Json::array();
      for (const ReportView& view : plan.views) views.push_back(view_json(view));
      json["plans"].push_back({{"title", plan.title}, {"nodes", plan.nodes.size()}, {"streams", plan.streams}, {"views", std::move(views)}});
    }
    print_json(json);
  } else {
    for (const ReportPlan& plan : plans) {
      for (const ReportView& view : plan.views) fmt::print("{}, {}", plan.title, to_text(view));
    }
    fmt::print("wrote {} (open it in a browser)\n", options.output);
  }
  return 0;
}

}  // namespace

void add_report(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("report", "one web page with the plan, its times and its reasons; two plans side by side");
  add_model_options(*sub, options->model, "MODEL", "model (.onnx, .mst), schedule (.mst) or .plan");
  sub->add_option("OTHER", options->other, "a second one, to compare with the first");
  sub->add_option("-o,--output", options->output, "page to write (.html)")->required();
  sub->add_flag("--run", options->run, "also run it with real kernels on this machine, and show the times measured");
  add_pipeline_options(*sub, options->pipeline);
  options->target = sub->get_option("--target");
  add_profile_option(*sub, options->profile);
  sub->footer("\nExamples:\n"
              "  millstream report model.onnx --dim batch=1 --streams 4 -o model.html\n"
              "  millstream report before.plan after.plan --run -o change.html\n"
              "  millstream report model.onnx --profile op_summary_20260101.csv -o measured.html\n");
  sub->callback(runner(options, run_report, status));
}

}  // namespace millstream::cli
