// SPDX-License-Identifier: Apache-2.0
// What the commands share: options of the pipeline, reading of models and plans, output of errors.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "millstream/compile/compile.h"
#include "millstream/core/result.h"
#include "millstream/dump/dump.h"
#include "millstream/dump/dump_files.h"
#include "millstream/import/import.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/pass/load.h"

namespace millstream::cli {

using Json = nlohmann::ordered_json;

/// Options that say how to read a model.
struct ModelOptions {
  std::string path;
  std::string graph;  ///< --graph: the model of a plan or schedule file
  std::vector<std::string> dims;
  std::string max_memory;
  bool json = false;
};
void add_model_options(CLI::App& app, ModelOptions& options, const std::string& positional,
                       const std::string& what);

/// --pass and --pass-policy.
struct PassArguments {
  std::vector<std::string> libraries;
  std::string policy;
};

/// Options of `compile`, shared by every command that compiles.
struct PipelineOptions {
  std::string target = "cpu";
  std::string strategy;
  std::optional<std::uint32_t> streams;
  std::string threads_per_op;
  std::optional<std::uint32_t> cores;
  bool force_streams = false;
  std::vector<std::string> sets;
  PassArguments passes;
};
void add_pipeline_options(CLI::App& app, PipelineOptions& options);

struct ResolvedPipeline {
  Target target;
  CompileOptions compile;
  std::vector<std::string> from_environment;  ///< VARIABLE=TEXT of each variable that set an option
  PassArguments passes;                       ///< not loaded yet: only a compilation runs code of others
};
/// The command line counts before the environment (the variables of docs/options.md).
Result<ResolvedPipeline> resolve(const PipelineOptions& options, const ModelOptions& model);
/// Says on stderr which variables decided with.
void say_environment(const ResolvedPipeline& pipeline);

/// A model with the schedule or plan that came with it.
struct Loaded {
  Graph graph;
  std::string model_path;  ///< where the graph was read from
  std::optional<Schedule> schedule;
  std::optional<Plan> plan;
  std::optional<DumpKind> dump;  ///< it was read from a graph dump
  /// Of a dump that says where nodes stand but holds no records and waits although it needs some: that.
  std::optional<Schedule> placed;
  std::map<std::string, std::int64_t> dims;  ///< what --dim and the plan bind
  double read_ms = 0;
  std::vector<LibraryReport> pass_libraries;  ///< of compile_loaded
};
/// MODEL (.onnx, .mst, a graph dump), SCHEDULE.mst or PLAN. A plan's own model is found relative to the plan unless
/// --graph is given; a plan that does not match the graph is refused.
Result<Loaded> load(const ModelOptions& options);

/// The options of a compilation with the stream passes loaded; what there is to say about those goes to stderr and to its
/// warnings.
Result<CompileOptions> with_passes(const ResolvedPipeline& pipeline, std::vector<LibraryReport>& libraries);

/// What else happens on the way of compile_loaded.
struct CompileSteps {
  DumpFiles* dumps = nullptr;                             ///< each phase goes there
  std::function<Result<void>(Graph&)> prepared = nullptr; ///< with the graph that is about to be compiled
};
/// Prepares the loaded graph (it becomes the one that the plan's ids mean) and compiles it.
Result<Compiled> compile_loaded(Loaded& loaded, const ResolvedPipeline& pipeline, const CompileSteps& steps = {});

/// Refuses an output that would take the place of what the command reads. A plan may be written over a plan.
Result<void> check_output(const std::string& output, const ModelOptions& options, const std::string& model_path);
bool ends_with(std::string_view text, std::string_view end);
/// NAME=VALUE. `option` is for the message.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& text, std::string_view option);
/// "1500", "64k", "2M", "3G" bytes.
Result<std::uint64_t> parse_bytes(const std::string& text, std::string_view option);

/// Prints the error and returns its exit status. Where --json is given, stdout gets {"error": {...}} as well.
int fail(const Error& error);
/// Says once, before anything fails, that --json is on the command line.
void print_errors_as_json(bool on);
void print_json(const Json& json);
/// {"code": "E37", "word": "race", "message": ..., "notes": [...], "where": {...} or null}
Json error_json(const Error& error);
/// "1 stream", "2 streams"; the plural is `plural` where an s is not enough.
std::string counted(std::uint64_t n, std::string_view one, std::string_view plural = "");
void warn(const Error& warning);
/// To stderr. What it does not take is lost: there is nowhere else to say so.
void complain(const std::string& text);
/// Says which options of the pipeline a plan or schedule that is given makes useless.
void warn_of_idle_options(const PipelineOptions& options, const Loaded& loaded);
/// Processors this process may use.
std::uint32_t machine_cores();
std::uint64_t peak_rss_kb();
std::string hex64(std::uint64_t value);

/// What a command does when it is parsed: calls, prints an error, sets the status.
template <class Options>
auto runner(std::shared_ptr<Options> options, Result<int> (*call)(const Options&), int& status) {
  return [options, call, &status] {
    const Result<int> r = call(*options);
    status = r.ok() ? *r : fail(r.error());
  };
}

// The commands. Each adds itself and runs when parsed; the exit status goes to `status`.
void add_compile(CLI::App& app, int& status);
void add_run(CLI::App& app, int& status);
void add_check(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_diff(CLI::App& app, int& status);
void add_convert(CLI::App& app, int& status);
void add_report(CLI::App& app, int& status);
void add_gen(CLI::App& app, int& status);
void add_options(CLI::App& app, int& status);
void add_passes(CLI::App& app, int& status);

/// The numbers `compile` prints and `run` repeats (DESIGN: command-line contract).
Json compile_json(const Graph& graph, const Compiled& compiled, const Target& target);
/// With `summary` the lines of each logical stream, which a plan of the rule chain prints anyway.
std::string compile_text(const Graph& graph, const Compiled& compiled, const Target& target, bool lanes, bool summary = false);

}  // namespace millstream::cli
