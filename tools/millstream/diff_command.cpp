// SPDX-License-Identifier: Apache-2.0
// diff: what two plans do differently. Streams are compared by what they run, not by their numbers.
#include <algorithm>

#include <fmt/format.h>

#include "tools/millstream/common.h"
#include "tools/millstream/plan_difference.h"
#include "tools/millstream/profile_option.h"

namespace millstream::cli {
namespace {

struct DiffOptions {
  std::string a, b, graph;
  std::vector<std::string> dims;
  PipelineOptions pipeline;
  ProfileOption profile;
  bool json = false;
};

struct Side {
  PlanSide plan;
  bool compiled = false;
  // A schedule as text says nothing of these.
  std::optional<std::uint32_t> threads;
  std::optional<double> predicted_us;
  std::optional<std::uint64_t> peak_bytes;
};

Result<Side> side_of(const std::string& path, const DiffOptions& options) {
  ModelOptions model;
  model.path = path;
  model.graph = options.graph;
  model.dims = options.dims;
  MST_TRY(Loaded loaded, load(model));
  Side side;
  const auto decided = [&](const StreamAssignment& on, const MemoryPlan& memory) {
    side.threads = on.threads_per_op;
    if (on.estimate) side.predicted_us = on.estimate->span_us;
    side.peak_bytes = memory.peak_bytes;
  };
  if (loaded.plan) decided(loaded.plan->assignment, loaded.plan->memory);
  if (!loaded.schedule && loaded.placed) {
    MST_TRY(side.plan, plan_side(loaded.graph, *loaded.placed, false));
    return side;
  }
  if (!loaded.schedule) {
    MST_TRY(const ResolvedPipeline pipeline, resolve(options.pipeline, model));
    MST_TRY(MeasuredCompile made, compile_measured(loaded, pipeline, options.profile));
    decided(made.compiled.assignment, made.compiled.memory);
    loaded.schedule = std::move(made.compiled.schedule);
    side.compiled = true;
  }
  MST_TRY(side.plan, plan_side(loaded.graph, *loaded.schedule, true));
  return side;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Result<int> run_diff(const DiffOptions& options) {
  MST_TRY(const Side a, side_of(options.a, options));
  MST_TRY(const Side b, side_of(options.b, options));
  if (!a.compiled && !b.compiled) warn_of_idle_profile(options.profile, "neither of the two is compiled");
  const auto known_to_b = [&](const auto& row) { return b.plan.stream.count(row.first) != 0; };
  if (!a.plan.stream.empty() && !b.plan.stream.empty() && std::none_of(a.plan.stream.begin(), a.plan.stream.end(), known_to_b)) {
    return Error{ErrorCode::usage, fmt::format("\"{}\" and \"{}\" are of different models: no node in common", options.a, options.b)}.help(
        "diff compares two plans of one model");
  }
  const PlanDifference difference = plan_difference(a.plan, b.plan);
  if (options.json) {
    print_json({{"moved", difference.moved},
                {"renumbered", difference.renumbered},
                {"added_waits", difference.added_waits},
                {"removed_waits", difference.removed_waits},
                {"threads_per_op", {or_null(a.threads), or_null(b.threads)}},
                {"predicted_us", {or_null(a.predicted_us), or_null(b.predicted_us)}},
                {"peak_bytes", {or_null(a.peak_bytes), or_null(b.peak_bytes)}}});
    return 0;
  }
  print_difference(difference, "A", "B");
  if (a.threads && b.threads && *a.threads != *b.threads) fmt::print("threads  {} -> {} an operator\n", *a.threads, *b.threads);
  if (a.predicted_us && b.predicted_us && *a.predicted_us != *b.predicted_us) {
    fmt::print("predicted {:.1f} -> {:.1f} us\n", *a.predicted_us, *b.predicted_us);
  }
  if (a.peak_bytes && b.peak_bytes && *a.peak_bytes != *b.peak_bytes) fmt::print("memory   {} -> {} bytes\n", *a.peak_bytes, *b.peak_bytes);
  print_totals(difference);
  return 0;
}

}  // namespace

void add_diff(CLI::App& app, int& status) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* sub = app.add_subcommand("diff", "what two plans do differently: nodes moved, waits added and removed, figures");
  sub->add_option("A", options->a, "plan, schedule or model")->required();
  sub->add_option("B", options->b, "plan, schedule or model")->required();
  sub->add_option("--graph", options->graph, "the model of plan or schedule files");
  sub->add_option("--dim", options->dims, "NAME=N: bind a symbolic dimension (repeatable)")->allow_extra_args(false);
  sub->add_flag("--json", options->json, "print one JSON object on stdout");
  add_pipeline_options(*sub, options->pipeline);
  add_profile_option(*sub, options->profile);
  sub->footer("\nStreams are matched by the nodes they run, so that another numbering is no move.\n"
              "Example: millstream diff before.plan after.plan\n");
  sub->callback(runner(options, run_diff, status));
}

}  // namespace millstream::cli
