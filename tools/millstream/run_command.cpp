// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "millstream/assign/cost_model.h"
#include "millstream/backend/backend.h"
#include "millstream/exec/executable.h"
#include "millstream/graph/text.h"
#include "millstream/import/file_bytes.h"
#include "millstream/ops/op.h"
#include "millstream/trace/trace.h"
#include "tools/millstream/common.h"
#include "tools/millstream/compare.h"
#include "tools/millstream/profile_option.h"
#include "tools/millstream/progress.h"
#include "tools/millstream/running.h"

namespace millstream::cli {
namespace {

struct Options {
  ModelOptions model;
  PipelineOptions pipeline;
  ProfileOption profile;
  std::string device = "cpu";
  std::optional<std::uint32_t> workers;
  std::vector<std::string> inputs;
  std::vector<std::string> expects;
  std::vector<std::string> outputs;
  std::uint32_t warmup = 1;
  std::uint32_t repeat = 1;
  std::string compare;
  std::optional<std::uint32_t> compare_threads;
  std::optional<std::uint64_t> delays;
  std::string trace;
  double rtol = 1e-3;
  double atol = 1e-6;
};

std::string output_names(const Graph& graph) {
  std::string known;
  for (const ValueId v : graph.outputs()) known += fmt::format("{}{}", known.empty() ? "" : ", ", quote_name(graph.name(v)));
  return known;
}

bool has_output(const Graph& graph, std::string_view name) {
  for (const ValueId v : graph.outputs()) {
    if (graph.name(v) == name) return true;
  }
  return false;
}

// --output NAME=FILE, or FILE alone for a model with one output. No file twice, and none that is read.
Result<std::map<std::string, std::string>> output_files(const Options& options, const Loaded& loaded) {
  const Graph& graph = loaded.graph;
  std::map<std::string, std::string> files;
  std::vector<std::string> read;
  for (const auto* texts : {&options.inputs, &options.expects}) {
    for (const std::string& text : *texts) {
      MST_TRY(const auto pair, split_assignment(text, "--input"));
      read.push_back(pair.second);
    }
  }
  for (const std::string& text : options.outputs) {
    std::pair<std::string, std::string> pair;
    if (text.find('=') != std::string::npos) {
      MST_TRY(pair, split_assignment(text, "--output"));
    } else {
      if (graph.outputs().size() != 1) {
        return Error{ErrorCode::usage, fmt::format("--output {}: the model has {}", text, counted(graph.outputs().size(), "output"))}.help(
            "say which with --output NAME=FILE: " + output_names(graph));
      }
      pair = {std::string(graph.name(graph.outputs()[0])), text};
    }
    const auto& [name, file] = pair;
    if (!has_output(graph, name)) {
      return Error{ErrorCode::usage, fmt::format("the model has no output \"{}\"", name)}.help("its outputs: " + output_names(graph));
    }
    if (!ends_with(file, ".npy") && !ends_with(file, ".pb")) {
      return Error{ErrorCode::usage, fmt::format("--output {}: the file must end in .npy or .pb", text)};
    }
    MST_TRY_VOID(check_output(file, options.model, loaded.model_path));
    for (const std::string& other : read) {
      if (same_file(file, other)) return Error{ErrorCode::usage, fmt::format("\"{}\" would overwrite \"{}\", which is read", file, other)}.help("give the output another name");
    }
    for (const auto& [earlier, path] : files) {
      if (path == file || same_file(path, file)) return Error{ErrorCode::usage, fmt::format("--output writes {} and {} into one file, {}", earlier, name, file)};
    }
    if (!files.emplace(pair).second) return Error{ErrorCode::usage, fmt::format("--output {} is given twice", name)};
  }
  return files;
}

Result<std::map<std::string, Tensor>> read_expected(const Graph& graph, const std::vector<std::string>& texts) {
  MST_TRY(const auto files, files_by_name(texts, "--expect"));
  std::map<std::string, Tensor> expected;
  for (const auto& [name, file] : files) {
    if (!has_output(graph, name)) {
      return Error{ErrorCode::usage, fmt::format("the model has no output \"{}\"", name)}.help("its outputs: " + output_names(graph));
    }
    MST_TRY(Tensor t, read_tensor(file));
    expected.emplace(name, std::move(t));
  }
  return expected;
}

/// What a run computes with, and what becomes of its results.
struct Data {
  std::vector<Tensor> inputs;
  std::map<std::string, Tensor> expected;
  std::map<std::string, std::string> output_to;
};

Result<Data> read_data(const Options& options, const Loaded& loaded) {
  Data data;
  MST_TRY(data.inputs, read_inputs(loaded.graph, options.inputs, options.model.json));
  MST_TRY(data.expected, read_expected(loaded.graph, options.expects));
  MST_TRY(data.output_to, output_files(options, loaded));
  return data;
}

// Says what each output is, whether it is as expected, and writes it: the exit status.
Result<int> report_outputs(const Options& options, const Graph& graph, const Data& data, const std::vector<Tensor>& outputs, Json& json) {
  int status = 0;
  json["outputs"] = Json::object();
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string name(graph.name(graph.outputs()[i]));
    const Tensor& got = outputs[i];
    Json row = {{"desc", to_string(got.desc())}};
    const auto want = data.expected.find(name);
    std::string verdict;
    if (want != data.expected.end()) {
      Result<Difference> d = compare(got, want->second, options.rtol, options.atol);
      if (!d.ok()) {
        row["ok"] = false;
        row["reason"] = d.error().message;
        verdict = "  DIFFERS: " + d.error().message;
        status = 1;
      } else {
        row["max_abs_err"] = d->max_abs_err;
        row["max_rel_err"] = d->max_rel_err;
        row["ok"] = d->ok;
        if (d->ok) {
          verdict = fmt::format("  as expected: max abs err {:.3g}, max rel err {:.3g}", d->max_abs_err, d->max_rel_err);
        } else {
          verdict = fmt::format("  DIFFERS {}; max abs err {:.3g}, max rel err {:.3g}", d->worst, d->max_abs_err, d->max_rel_err);
          row["worst"] = d->where;
          row["elements_outside"] = d->outside;
          status = 1;
        }
      }
    }
    if (const auto file = data.output_to.find(name); file != data.output_to.end()) {
      MST_TRY_VOID(write_tensor(file->second, got));
      row["file"] = file->second;
      verdict += fmt::format("  wrote {}", file->second);
    }
    if (!options.model.json) fmt::print("output     {} {}{}\n", quote_name(name), to_string(got.desc()), verdict);
    json["outputs"][name] = std::move(row);
  }
  return status;
}

double percentile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::llround(q * static_cast<double>(values.size() - 1)))];
}

double timed_run(Engine& engine, const std::vector<Tensor>& inputs, const ExecuteOptions& options, Result<RunResult>& result) {
  const auto start = std::chrono::steady_clock::now();
  result = run(*engine.executable, inputs, options);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

bool bitwise_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}

Result<void> write_trace(const std::string& path, const Graph& graph, const Schedule& schedule, const Trace& trace) {
  return write_bytes(path, to_chrome_json(graph, schedule, trace));
}

// Where it was written to.
void print_trace(const Options& options, const Trace& trace) {
  if (options.trace.empty()) return;
  const std::string part = trace.cut ? fmt::format("the first {} tasks of the run; ", trace.spans.size()) : "";
  fmt::print("trace      {} ({}open it in ui.perfetto.dev)\n", options.trace, part);
}

// The picture of a small run: at most about 100 characters wide, the time axis scaled to fit.
void print_grid(const Graph& graph, const Schedule& schedule, const Trace& trace) {
  constexpr std::uint64_t kWidth = 100;
  constexpr std::uint64_t kNodes = 200;
  std::size_t cell = 1, head = 8, launches = 0;
  for (const PhysicalStream& s : schedule.streams) {
    for (const Task& t : s.tasks) {
      if (t.kind != Task::Kind::launch) continue;
      cell = std::max(cell, graph.name(t.node()).size());
      ++launches;
    }
  }
  if (launches == 0) return;
  const std::uint64_t columns = kWidth > head + cell + 2 ? (kWidth - head) / (cell + 2) : 1;
  if (launches > kNodes || columns < 4) {
    fmt::print("picture    left out: {}; --trace FILE.json shows any run\n",
               launches > kNodes ? fmt::format("{} are more than {}", counted(launches, "node"), kNodes) : std::string("the names are too long"));
    return;
  }
  // Whole microseconds where they fit, then 2, 5, 10, ...: the axis counts ticks.
  std::uint64_t tick = 1000;
  for (int step = 0; (trace.total_ns + tick - 1) / tick > columns; ++step) tick = step % 3 == 1 ? tick / 2 * 5 : tick * 2;
  if (tick != 1000) fmt::print("one column is {} us; of several nodes in a column the longest stands there\n", tick / 1000);
  fmt::print("{}", print_lanes(graph, schedule, trace, tick));
}

// Times alone, or with values: where the plan has control flow, which way it goes only they tell, and where the user wants
// to see them.
Result<Trace> simulate(const Options& options, const Loaded& loaded, const ResolvedPipeline& pipeline, const Schedule& schedule,
                       const MemoryPlan& memory, std::uint32_t threads, int& status, Json& json) {
  const bool values = schedule.has_control() || !options.inputs.empty() || !options.expects.empty() || !options.outputs.empty();
  auto backend = make_sim_backend(pipeline.target, durations_us(loaded.graph, pipeline.target, threads), values);
  ExecuteOptions execute;
  execute.trace = true;
  execute.delay_seed = options.delays;
  if (!values) {
    struct Nothing : Launcher {
      Result<void> launch(NodeId, PhysicalStreamId) override { return {}; }
    } nothing;
    return backend->execute(loaded.graph, schedule, nothing, execute);
  }
  MST_TRY(const Data data, read_data(options, loaded));
  const KernelTable kernels = all_kernels();
  InstantiateOptions how;
  how.max_bytes = pipeline.compile.memory.max_bytes;
  MST_TRY(Executable executable, instantiate(loaded.graph, schedule, memory, kernels, *backend, how));
  MST_TRY(RunResult result, run(executable, data.inputs, execute));
  MST_TRY(status, report_outputs(options, loaded.graph, data, result.outputs, json));
  return std::move(result.trace);
}

Result<int> run_sim(const Options& options, const Loaded& loaded, const ResolvedPipeline& pipeline, const Schedule& schedule,
                    const MemoryPlan& memory, std::uint32_t threads, Json& json) {
  int status = 0;
  MST_TRY(const Trace trace, simulate(options, loaded, pipeline, schedule, memory, threads, status, json));
  if (!options.trace.empty()) MST_TRY_VOID(write_trace(options.trace, loaded.graph, schedule, trace));
  json["device"] = "sim";
  json["span_us"] = static_cast<double>(trace.total_ns) / 1000;
  json["overlap"] = overlap(schedule, trace);
  json["trace_cut"] = trace.cut;
  json["streams_used"] = schedule.stream_count();
  if (!options.model.json) {
    print_grid(loaded.graph, schedule, trace);
    fmt::print("simulated  {:.3f} us on {}, overlap {:.2f}\n", static_cast<double>(trace.total_ns) / 1000,
               counted(schedule.stream_count(), "stream"), overlap(schedule, trace));
    print_trace(options, trace);
  }
  return status;
}

Result<int> run_cpu(const Options& options, const Loaded& loaded, const ResolvedPipeline& pipeline, Schedule schedule,
                    MemoryPlan memory, std::uint32_t threads, Json& json) {
  const Graph& graph = loaded.graph;
  const bool quiet = options.model.json;
  const std::uint32_t cores = pipeline.target.cores;
  const std::uint32_t workers = options.workers.value_or(default_workers(cores, threads, schedule));
  const KernelTable kernels = all_kernels();
  MST_TRY(const Data data, read_data(options, loaded));
  const std::vector<Tensor>& inputs = data.inputs;
  if (options.workers && std::uint64_t{workers} * threads > cores) {
    warn(Error{ErrorCode::no_effect, fmt::format("{} x {} are more than the {}: they take turns", counted(workers, "worker"),
                                                 counted(threads, "thread"), counted(cores, "core"))}
             .help("--workers and --threads-per-op whose product is at most the cores"));
  }
  const auto max_bytes = pipeline.compile.memory.max_bytes;
  MST_TRY(const std::unique_ptr<Engine> engine, make_engine(graph, std::move(schedule), std::move(memory), kernels, workers, threads, max_bytes));

  std::unique_ptr<Engine> single;
  const std::uint32_t single_threads = options.compare_threads.value_or(threads);
  if (!options.compare.empty()) {
    // The baseline ignores labels: it is a measurement, not the single-stream option.
    MST_TRY(Compiled compiled, compile_assignment(graph, pipeline.target, one_stream(graph, pipeline.target, single_threads), pipeline.compile));
    MST_TRY(single, make_engine(graph, std::move(compiled.schedule), std::move(compiled.memory), kernels, 1, single_threads, max_bytes));
  }

  ExecuteOptions execute;
  execute.delay_seed = options.delays;
  ExecuteOptions plain;
  std::vector<double> times, single_times, ratios;
  bool equal = true;
  Result<RunResult> result = RunResult{};
  Result<RunResult> single_result = RunResult{};
  Progress progress("running", std::uint64_t{options.warmup} + options.repeat);
  std::vector<Tensor> reference;
  for (std::uint64_t i = 0; i < std::uint64_t{options.warmup} + options.repeat; ++i) {
    if (execute.delay_seed && i > 0) execute.delay_seed = *options.delays + i;  // another order each time
    const double ms = timed_run(*engine, inputs, execute, result);
    if (!result.ok()) return std::move(result).error();
    double single_ms = 0;
    if (single) {
      if (!options.delays || reference.empty()) {
        single_ms = timed_run(*single, inputs, plain, single_result);
        if (!single_result.ok()) return std::move(single_result).error();
        reference = single_result->outputs;
      }
      if (single_threads == threads) equal = equal && bitwise_equal(result->outputs, reference);
    }
    if (i >= options.warmup) {
      times.push_back(ms);
      if (single && single_ms > 0) {
        single_times.push_back(single_ms);
        ratios.push_back(single_ms / ms);
      }
    }
    progress.advance();
  }

  json["device"] = "cpu";
  json["workers"] = workers;
  json["threads_per_op"] = threads;
  MST_TRY(int status, report_outputs(options, graph, data, result->outputs, json));
  json["repeat"] = options.repeat;
  json["median_ms"] = percentile(times, 0.5);
  json["min_ms"] = percentile(times, 0);
  json["p90_ms"] = percentile(times, 0.9);
  json["streams_used"] = engine->schedule.stream_count();
  if (single) {
    if (!single_times.empty()) {
      json["single_median_ms"] = percentile(single_times, 0.5);
      json["single_threads_per_op"] = single_threads;
      json["pair_speedup_median"] = percentile(ratios, 0.5);
    }
    if (single_threads == threads) {
      json["bitwise_equal_to_single"] = equal;
      if (!equal) status = 1;
    }
  }
  // The trace costs time, so it comes from a run of its own.
  ExecuteOptions traced;
  traced.trace = true;
  result = run(*engine->executable, inputs, traced);
  if (!result.ok()) return std::move(result).error();
  const double share = overlap(engine->schedule, result->trace);
  json["overlap"] = share;
  json["trace_cut"] = result->trace.cut;
  if (!options.trace.empty()) MST_TRY_VOID(write_trace(options.trace, graph, engine->schedule, result->trace));

  if (!quiet) {
    fmt::print("ran        {} on {}, {} x {}: median {:.3f} ms, min {:.3f}, p90 {:.3f}; overlap {:.2f}\n",
               options.repeat == 1 ? std::string("once") : fmt::format("{} times", options.repeat),
               counted(engine->schedule.stream_count(), "stream"), counted(workers, "worker"), counted(threads, "thread"), percentile(times, 0.5), percentile(times, 0), percentile(times, 0.9), share);
    if (single) {
      if (!single_times.empty()) {
        if (single_threads == threads && engine->schedule == single->schedule) {
          fmt::print("one stream median {:.3f} ms: the same plan, so the two differ by noise only\n", percentile(single_times, 0.5));
        } else {
          fmt::print("one stream median {:.3f} ms with {}; the plan is {:.2f}x as fast as one stream\n", percentile(single_times, 0.5),
                     counted(single_threads, "thread"), percentile(ratios, 0.5));
        }
      }
      if (single_threads == threads) fmt::print("outputs    {} to the one-stream run\n", equal ? "bitwise equal" : "NOT bitwise equal");
    }
    print_trace(options, result->trace);
  }
  return status;
}

// What the options say wrongly is found before minutes of work, not after.
Result<void> check_options(const Options& options) {
  if (options.device != "cpu" && options.device != "sim") {
    return Error{ErrorCode::usage, fmt::format("there is no device \"{}\"", options.device)}.help("devices: cpu, sim");
  }
  if (!options.compare.empty() && options.compare != "single") {
    return Error{ErrorCode::usage, fmt::format("--compare {}: only \"single\" is known", options.compare)};
  }
  if (options.repeat < 1) return Error{ErrorCode::usage, "--repeat needs at least 1"};
  if (options.workers && (*options.workers < 1 || *options.workers > 1024)) {
    return Error{ErrorCode::usage, fmt::format("--workers {} lies outside 1..1024", *options.workers)};
  }
  if (options.compare_threads) {
    if (options.compare.empty()) return Error{ErrorCode::usage, "--compare-threads needs --compare single"};
    if (*options.compare_threads < 1 || *options.compare_threads > 1024) {
      return Error{ErrorCode::usage, fmt::format("--compare-threads {} lies outside 1..1024", *options.compare_threads)};
    }
  }
  for (const auto& [name, value] : {std::pair("--rtol", options.rtol), std::pair("--atol", options.atol)}) {
    if (!std::isfinite(value) || value < 0) {
      return Error{ErrorCode::usage, fmt::format("{} {} is no tolerance", name, value)}.help("a number from 0 up");
    }
  }
  if (!options.trace.empty() && (!ends_with(options.trace, ".json") || std::filesystem::path(options.trace).filename() == ".json")) {
    return Error{ErrorCode::usage, fmt::format("--trace {}: the file must end in .json", options.trace)};
  }
  if (options.device == "sim" && !options.compare.empty()) {
    return Error{ErrorCode::usage, "--compare needs --device cpu: it measures time, and the simulation computes it"};
  }
  return {};
}

Result<int> run_model(const Options& options) {
  MST_TRY_VOID(check_options(options));
  MST_TRY(Loaded loaded, load(options.model));
  if (!options.trace.empty()) MST_TRY_VOID(check_output(options.trace, options.model, loaded.model_path));
  MST_TRY(ResolvedPipeline pipeline, resolve(options.pipeline, options.model));
  warn_of_idle_options(options.pipeline, loaded);
  // Dumps may hold anything; kernels take only what their operators allow.
  if (options.device == "cpu" && (ends_with(loaded.model_path, ".pbtxt") || ends_with(loaded.model_path, ".txt"))) {
    MST_TRY(loaded.graph, infer_shapes(std::move(loaded.graph), {}));
  }
  Json json;
  Schedule schedule;
  MemoryPlan memory;
  std::uint32_t threads = 1;
  if (loaded.plan) {
    json["plan"] = options.model.path;
    schedule = loaded.plan->schedule;
    memory = loaded.plan->memory;
    threads = loaded.plan->assignment.threads_per_op;
  } else if (loaded.schedule) {
    MST_TRY_VOID(refuse_unsafe(loaded.graph, *loaded.schedule, pipeline.target));
    schedule = *loaded.schedule;
    MST_TRY(memory, plan_memory(loaded.graph, schedule, pipeline.compile.memory));
    threads = pipeline.compile.assign.threads_per_op.value_or(1);
  } else {
    MST_TRY(MeasuredCompile measured, compile_measured(loaded, pipeline, options.profile));
    Compiled& compiled = measured.compiled;
    json = compile_json(loaded.graph, compiled, pipeline.target);
    json["profile"] = profile_json(measured.measured.joined);
    if (!options.model.json) {
      for (const auto* list : {&compiled.assignment.warnings, &compiled.sync.warnings, &compiled.schedule.warnings}) {
        for (const Error& w : *list) warn(w);
      }
      fmt::print("{}", compile_text(loaded.graph, compiled, pipeline.target, false));
    }
    schedule = std::move(compiled.schedule);
    memory = std::move(compiled.memory);
    threads = compiled.assignment.threads_per_op;
  }
  if ((loaded.plan || loaded.schedule) && !options.profile.files.empty()) {
    MST_TRY(const Measured measured, measure(loaded.graph, options.profile));
    json["profile"] = profile_json(measured.joined);
  }
  Result<int> status = options.device == "sim"
                           ? run_sim(options, loaded, pipeline, schedule, memory, threads, json)
                           : run_cpu(options, loaded, pipeline, std::move(schedule), std::move(memory), threads, json);
  if (status.ok() && options.model.json) print_json(json);
  return status;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("run", "compile (unless given a plan) and run");
  add_model_options(*sub, options->model, "MODEL", "model (.onnx, .mst), schedule (.mst) or .plan");
  sub->add_option("--device", options->device, "cpu (real kernels) or sim (virtual time; values too where --input, --expect, --output or control flow asks for them)")->capture_default_str();
  sub->add_option("--workers", options->workers, "worker threads; default: cores / threads an operator, at most the streams");
  sub->add_option("--input", options->inputs, "NAME=FILE (.npy, .pb); repeatable")->allow_extra_args(false);
  sub->add_option("--expect", options->expects, "NAME=FILE: compare an output; repeatable")->allow_extra_args(false);
  sub->add_option("--output", options->outputs, "NAME=FILE: write an output (.npy, .pb); FILE alone where there is one output; repeatable")->allow_extra_args(false);
  sub->add_option("--rtol", options->rtol, "relative tolerance of --expect")->capture_default_str();
  sub->add_option("--atol", options->atol, "absolute tolerance of --expect, times the largest expected magnitude")->capture_default_str();
  sub->add_option("--warmup", options->warmup, "runs before timing")->capture_default_str();
  sub->add_option("--repeat", options->repeat, "timed runs")->capture_default_str();
  sub->add_option("--compare", options->compare, "single: run the one-stream plan in turn, compare bits and times");
  sub->add_option("--compare-threads", options->compare_threads, "threads an operator of the one-stream run (default: the same)");
  sub->add_option("--delays", options->delays, "SEED: random delays in the workers (stress)")->check(CLI::NonNegativeNumber);
  sub->add_option("--trace", options->trace, "FILE.json: Chrome trace, one track a stream (open it in Perfetto)");
  add_pipeline_options(*sub, options->pipeline);
  add_profile_option(*sub, options->profile);
  sub->footer("\nExamples:\n"
              "  millstream run model.onnx --dim N=1 --input image=image.npy --output scores=scores.npy\n"
              "  millstream run model.plan --compare single --repeat 20 --trace trace.json\n"
              "  millstream run model.mst --device sim --target unit\n");
  sub->callback(runner(options, run_model, status));
}

}  // namespace millstream::cli
