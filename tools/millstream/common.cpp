// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/common.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/import/file_bytes.h"
#include "millstream/ops/op.h"
#include "tools/millstream/pass_options.h"

namespace millstream::cli {
namespace fs = std::filesystem;

void add_model_options(CLI::App& app, ModelOptions& options, const std::string& positional, const std::string& what) {
  app.add_option(positional, options.path, what)->required();
  app.add_option("--graph", options.graph, "the model a plan or schedule file belongs to");
  app.add_option("--dim", options.dims, "NAME=N: bind a symbolic dimension (repeatable)")->allow_extra_args(false);
  app.add_option("--max-memory", options.max_memory, "BYTES (k, M, G): refuse tensors and arenas beyond this");
  app.add_flag("--json", options.json, "print one JSON object on stdout");
}

void add_pipeline_options(CLI::App& app, PipelineOptions& options) {
  app.add_option("--target", options.target, "device description: cpu, npu, a2, train, infer, edge, a TOML file, or an engine table (.json)")->capture_default_str();
  app.add_option("--strategy", options.strategy, "ge, auto or single; default: ge where the input carries engines, auto otherwise");
  app.add_option("--streams", options.streams, "auto: at most N streams; default 8");
  app.add_option("--threads-per-op", options.threads_per_op, "threads one operator may use: N or auto (the default: auto chooses)");
  app.add_option("--cores", options.cores, "cores the plan is made for; default: the target's, for cpu this machine's");
  app.add_flag("--force-streams", options.force_streams, "use the streams even where one is predicted faster");
  app.add_option("--set", options.sets, "KEY=VALUE: any option of docs/options.md (repeatable)")->allow_extra_args(false);
  add_pass_options(app, options.passes);
}

Result<std::pair<std::string, std::string>> split_assignment(const std::string& text, std::string_view option) {
  const std::size_t eq = text.find('=');
  if (eq == std::string::npos || eq == 0) {
    return Error{ErrorCode::usage, fmt::format("{} {} is not NAME=VALUE", option, text)};
  }
  return std::make_pair(text.substr(0, eq), text.substr(eq + 1));
}

Result<std::uint64_t> parse_bytes(const std::string& text, std::string_view option) {
  std::uint64_t n = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, n);
  std::uint64_t unit = 0;
  const std::string_view suffix(stop, static_cast<std::size_t>(end - stop));
  if (suffix.empty()) unit = 1;
  if (suffix == "k" || suffix == "K") unit = 1ull << 10;
  if (suffix == "M") unit = 1ull << 20;
  if (suffix == "G") unit = 1ull << 30;
  if (code != std::errc() || unit == 0 || n > (~std::uint64_t{0}) / unit) {
    return Error{ErrorCode::usage, fmt::format("{} {} is not a number of bytes", option, text)}.help("for example 500000, 64k, 16M, 2G");
  }
  return n * unit;
}

namespace {

bool given(const PipelineOptions& options, const OptionRow& row) {
  // Every strategy says whether there is one stream.
  if (row.key == "single_stream" && !options.strategy.empty()) return true;
  return std::any_of(options.sets.begin(), options.sets.end(), [&](const std::string& text) {
    const OptionRow* set = find_option(std::string_view(text).substr(0, text.find('=')));
    return set == &row || (set != nullptr && row.key == "single_stream" && set->key == "strategy");
  });
}

// Variables that are not set, or empty, say nothing.
Result<ResolvedPipeline> with_environment(const PipelineOptions& options, ResolvedPipeline out) {
  for (const OptionRow& row : option_table()) {
    if (row.environment.empty()) continue;
    const std::string name(row.environment);
    const char* text = std::getenv(name.c_str());
    if (text == nullptr || *text == '\0' || given(options, row)) continue;
    if (auto done = set_option(out.compile, name, text); !done.ok()) {
      Error error = std::move(done).error();
      return std::move(error.note(fmt::format("{} is an environment variable; --set {}=VALUE counts before it", name, row.key)));
    }
    out.from_environment.push_back(fmt::format("{}={}", name, text));
  }
  return out;
}

}  // namespace

void say_environment(const ResolvedPipeline& pipeline) {
  for (const std::string& text : pipeline.from_environment) complain(fmt::format("note: {} is set in the environment\n", text));
}

Result<ResolvedPipeline> resolve(const PipelineOptions& options, const ModelOptions& model) {
  ResolvedPipeline out;
  out.passes = options.passes;
  MST_TRY(out.target, load_target(options.target));
  if (options.target == "cpu") out.target.cores = machine_cores();
  if (options.cores) {
    if (*options.cores < 1 || *options.cores > 4096) return Error{ErrorCode::usage, fmt::format("--cores {} lies outside 1..4096", *options.cores)};
    out.target.cores = *options.cores;
  }
  MST_TRY(out, with_environment(options, std::move(out)));
  if (!options.strategy.empty()) MST_TRY_VOID(set_option(out.compile, "strategy", options.strategy));
  if (options.streams) MST_TRY_VOID(set_option(out.compile, "streams", fmt::format("{}", *options.streams)));
  if (!options.threads_per_op.empty()) MST_TRY_VOID(set_option(out.compile, "threads_per_op", options.threads_per_op));
  if (options.force_streams) out.compile.assign.force_streams = true;
  for (const std::string& text : options.sets) {
    MST_TRY(const auto pair, split_assignment(text, "--set"));
    MST_TRY_VOID(set_option(out.compile, pair.first, pair.second));
  }
  if (!model.max_memory.empty()) {
    MST_TRY(out.compile.memory.max_bytes, parse_bytes(model.max_memory, "--max-memory"));
  }
  return out;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

Result<void> check_output(const std::string& output, const ModelOptions& options, const std::string& model_path) {
  for (const std::string& read : {options.path, options.graph, model_path}) {
    if (read.empty() || !same_file(output, read) || (ends_with(read, ".plan") && ends_with(output, ".plan"))) continue;
    return Error{ErrorCode::usage, fmt::format("\"{}\" would overwrite \"{}\", which is read", output, read)}.help("give the output another name");
  }
  return {};
}

namespace {

Result<ImportOptions> import_options(const ModelOptions& options) {
  ImportOptions out;
  for (const std::string& text : options.dims) {
    MST_TRY(const auto pair, split_assignment(text, "--dim"));
    std::int64_t n = 0;
    const char* end = pair.second.data() + pair.second.size();
    const auto [stop, code] = std::from_chars(pair.second.data(), end, n);
    if (code != std::errc() || stop != end || n < 0) {
      return Error{ErrorCode::usage, fmt::format("--dim {}: the size must be a number from 0 up", text)};
    }
    const auto [at, fresh] = out.dims.emplace(pair.first, n);
    if (!fresh && at->second != n) {
      return Error{ErrorCode::usage, fmt::format("--dim binds {} to {} and to {}", pair.first, at->second, n)};
    }
  }
  if (!options.max_memory.empty()) {
    MST_TRY(out.max_memory, parse_bytes(options.max_memory, "--max-memory"));
  }
  return out;
}

bool named_as_dump(std::string_view path) { return ends_with(path, ".pbtxt") || ends_with(path, ".txt"); }

// None where the file is no dump.
Result<std::optional<Dump>> try_dump(const std::string& path, const ImportOptions& options) {
  if (!named_as_dump(path)) return std::optional<Dump>();
  MST_TRY(const std::string text, read_text(path));
  if (!is_dump(text)) return std::optional<Dump>();
  if (!options.dims.empty()) {
    return Error{ErrorCode::usage, fmt::format("--dim {}: the dump \"{}\" has no symbolic dimensions", options.dims.begin()->first, path)}.help("leave --dim out");
  }
  MST_TRY(Dump dump, read_dump(text, path));
  return std::optional<Dump>(std::move(dump));
}

Result<Graph> import_model(const std::string& path, const ImportOptions& options) {
  MST_TRY(std::optional<Dump> dump, try_dump(path, options));
  if (dump) return std::move(dump->graph);
  return import_graph(path, options);
}

Loaded from_dump(Dump dump, const std::string& path) {
  Loaded out;
  out.model_path = path;
  out.dump = dump.kind;
  out.graph = std::move(dump.graph);
  out.schedule = std::move(dump.schedule);
  if (out.schedule || !dump.has_streams) return out;
  // Without records and waits all is right only where nothing needs any.
  Schedule placed = placed_lanes(out.graph);
  const auto used = std::count_if(placed.streams.begin(), placed.streams.end(), [](const PhysicalStream& s) { return !s.tasks.empty(); });
  (used <= 1 ? out.schedule : out.placed) = std::move(placed);
  return out;
}

Result<Loaded> load_plan(const ModelOptions& options) {
  Loaded out;
  MST_TRY(Plan plan, read_plan(options.path));
  out.model_path = options.graph;
  if (out.model_path.empty()) {
    if (plan.model_path.empty()) {
      return Error{ErrorCode::usage, fmt::format("the plan \"{}\" does not say which model it belongs to", options.path)}.help("give it with --graph MODEL");
    }
    out.model_path = (fs::path(options.path).parent_path() / plan.model_path).lexically_normal().string();
  }
  MST_TRY(ImportOptions import, import_options(options));
  for (const auto& [name, n] : plan.dims) {
    const auto [at, fresh] = import.dims.emplace(name, n);
    if (fresh || at->second == n) continue;
    return Error{ErrorCode::plan_mismatch, fmt::format("--dim {}={}: the plan \"{}\" was compiled with {}={}", name, at->second, options.path, name, n)}.help(
        fmt::format("compile the model again with --dim {}={}, or leave --dim out", name, at->second));
  }
  Result<Graph> graph = import_model(out.model_path, import);
  if (!graph.ok()) {
    Error error = std::move(graph).error();
    if (error.code == ErrorCode::io && options.graph.empty()) {
      error.note(fmt::format("the plan \"{}\" says that its model lies there", options.path))
          .help("give the model with --graph MODEL, or put both where they were");
    }
    return error;
  }
  MST_TRY(out.graph, graph_of_plan(std::move(graph).value(), plan.graph_hash));
  out.dims = import.dims;
  MST_TRY_VOID(verify_plan(out.graph, plan, nullptr));
  out.schedule = plan.schedule;
  out.plan = std::move(plan);
  return out;
}

Result<Loaded> load_text(const ModelOptions& options) {
  Loaded out;
  MST_TRY(const std::string text, read_text(options.path));
  MST_TRY(const TextSections sections, split_sections(text, options.path));
  MST_TRY(const ImportOptions import, import_options(options));
  out.dims = import.dims;
  if (!options.graph.empty()) {
    out.model_path = options.graph;
    MST_TRY(out.graph, import_model(options.graph, import));
  } else if (sections.has_graph) {
    out.model_path = options.path;
    MST_TRY(out.graph, import_graph(options.path, import));
  } else {
    return Error{ErrorCode::usage, fmt::format("\"{}\" holds a schedule but no graph", options.path)}.help("give its model with --graph MODEL");
  }
  if (sections.has_schedule) {
    Result<Schedule> schedule = parse_schedule(sections.schedule, out.graph, options.path, sections.schedule_line);
    if (!schedule.ok() && out.graph.body_count() != 0) {
      // A schedule of the rule chain names the nodes of the flattened graph.
      MST_TRY(Graph flat, lower_for_chain(out.graph));
      if (Result<Schedule> again = parse_schedule(sections.schedule, flat, options.path, sections.schedule_line); again.ok()) {
        out.graph = std::move(flat);
        schedule = std::move(again);
      }
    }
    MST_TRY(out.schedule, std::move(schedule));
  }
  return out;
}

}  // namespace

Result<Loaded> load(const ModelOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Result<Loaded> out = [&]() -> Result<Loaded> {
    if (ends_with(options.path, ".plan")) return load_plan(options);
    if (ends_with(options.path, ".mst")) return load_text(options);
    Loaded loaded;
    if (!options.graph.empty()) {
      return Error{ErrorCode::usage, fmt::format("--graph {}: \"{}\" is read as a model already", options.graph, options.path)}.help(
          "--graph goes with a .plan, or with a .mst that holds a schedule");
    }
    MST_TRY(const ImportOptions import, import_options(options));
    MST_TRY(std::optional<Dump> dump, try_dump(options.path, import));
    if (dump) return from_dump(*std::move(dump), options.path);
    loaded.dims = import.dims;
    loaded.model_path = options.path;
    MST_TRY(loaded.graph, import_graph(options.path, import));
    return loaded;
  }();
  if (out.ok()) out->read_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return out;
}

Result<Compiled> compile_loaded(Loaded& loaded, const ResolvedPipeline& pipeline, const CompileSteps& steps) {
  DumpFiles* const dumps = steps.dumps;
  say_environment(pipeline);
  const bool on = dumps != nullptr && dumps->on();
  const auto dump = [&](std::string_view phase, const DumpStreams& streams) {
    for (const Error& w : dumps->dump(loaded.graph, streams, phase)) warn(w);
  };
  const auto unplaced = [&] { return DumpStreams{IdVec<NodeId, std::int64_t>(loaded.graph.node_count(), -1)}; };
  if (on) dump(kPhasePreRunBegin, unplaced());
  MST_TRY(loaded.graph, prepare(std::move(loaded.graph), pipeline.target, pipeline.compile));
  if (steps.prepared) MST_TRY_VOID(steps.prepared(loaded.graph));
  if (on) dump(kPhaseBeforeAssigned, unplaced());
  const auto placed = [&](const StreamAssignment& assignment) {
    DumpStreams streams = unplaced();
    for (const NodeId n : loaded.graph.nodes()) {
      if (const auto stream = assignment.stream_of(n)) streams.stream[n] = stream->index;
    }
    return streams;
  };
  MST_TRY(CompileOptions options, with_passes(pipeline, loaded.pass_libraries));
  if (on) {
    options.passes.observe = [&](const PassMoment& m) {
      const std::string phase = m.after ? phase_after_pass(m.pass.label) : phase_before_pass(m.pass.label);
      if (m.scope == ScopeId(0)) return dump(phase, placed(m.on));
      // A body of known shapes is a graph of its own.
      for (const Error& w : dumps->dump_subgraph(loaded.graph, m.scope.index - 1, placed(m.on), phase, m.scope.index)) warn(w);
    };
  }
  MST_TRY(Compiled compiled, compile(loaded.graph, pipeline.target, options));
  if (!on) return compiled;
  const DumpStreams logical = placed(compiled.assignment);
  dump(kPhaseAfterAssigned, logical);
  dump(kPhaseBeforeRefresh, logical);
  DumpStreams built;
  built.schedule = &compiled.schedule;
  dump(kPhaseAfterRefresh, built);
  dump(kPhaseBuild, built);
  return compiled;
}

Result<CompileOptions> with_passes(const ResolvedPipeline& pipeline, std::vector<LibraryReport>& libraries) {
  CompileOptions options = pipeline.compile;
  MST_TRY(const PassRequest request, resolve_passes(pipeline.passes));
  MST_TRY(LoadedPasses loaded, load_requested(request));
  options.passes.policy = request.policy;
  options.passes.passes = std::move(loaded.passes);
  options.warnings.insert(options.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  libraries = std::move(loaded.libraries);
  return options;
}

void complain(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

namespace {
bool json_errors = false;  // a property of the process's command line
}

void print_errors_as_json(bool on) { json_errors = on; }

void print_json(const Json& json) { fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace)); }

Json error_json(const Error& error) {
  const ErrorCodeInfo& info = error_code_info(error.code);
  Json json = {{"code", info.number}, {"word", info.word}, {"message", error.message}, {"notes", Json::array()}, {"where", nullptr}};
  for (const Note& n : error.notes) {
    json["notes"].push_back({{"kind", n.kind == Note::Kind::help ? "help" : "note"}, {"text", n.text}});
  }
  if (error.where) json["where"] = {{"file", error.where->file}, {"line", error.where->line}, {"column", error.where->column}};
  return json;
}

std::string counted(std::uint64_t n, std::string_view one, std::string_view plural) {
  if (n == 1) return fmt::format("1 {}", one);
  return plural.empty() ? fmt::format("{} {}s", n, one) : fmt::format("{} {}", n, plural);
}

int fail(const Error& error) {
  if (json_errors) print_json({{"error", error_json(error)}});
  std::fflush(stdout);  // what was found before comes first
  complain(to_string(error) + "\n");
  return exit_status(error);
}

void warn(const Error& warning) { complain(to_string(warning, "warning") + "\n"); }

void warn_of_idle_options(const PipelineOptions& options, const Loaded& loaded) {
  if (!loaded.plan && !loaded.schedule) return;
  std::string idle;
  const auto add = [&](bool given, std::string_view name) {
    if (given) idle += fmt::format("{}{}", idle.empty() ? "" : ", ", name);
  };
  add(!options.strategy.empty(), "--strategy");
  add(options.streams.has_value(), "--streams");
  add(loaded.plan && !options.threads_per_op.empty(), "--threads-per-op");
  add(options.force_streams, "--force-streams");
  add(loaded.plan && !options.sets.empty(), "--set");
  add(!options.passes.libraries.empty(), "--pass");
  add(!options.passes.policy.empty(), "--pass-policy");
  if (idle.empty()) return;
  warn(Error{ErrorCode::no_effect, fmt::format("{} without effect: the {} decides", idle, loaded.plan ? "plan" : "schedule")}.help(
      "compile the model with these options"));
}

std::uint32_t machine_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int n = CPU_COUNT(&set);
  return n < 1 ? 1 : static_cast<std::uint32_t>(n);
}

// The kernel's high-water mark of this program. What getrusage says also counts the process that started it.
std::uint64_t peak_rss_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss);
}

std::string hex64(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace millstream::cli
