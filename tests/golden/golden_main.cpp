// SPDX-License-Identifier: Apache-2.0
// Runs text pictures: golden_main [--rewrite] FILE_OR_FOLDER...
// A file holds a graph section, then directives. A directive is a line that starts in the first column,
// the indented lines under it are its input, and what must be printed stands between "----" and an empty
// line. Directives: graph, flatten, schedule, rules, decisions, chain RULE..., starts, sync, run, check, compile, events,
// acquire N. Words KEY=VALUE
// behind them set options (docs/options.md), target=NAME, limit.KEY=N and self_synchronising=ENGINE of the target. A graph section that cannot
// be read is answered by its error.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "millstream/assign/chain.h"
#include "millstream/assign/cost_model.h"
#include "millstream/backend/backend.h"
#include "millstream/compile/compile.h"
#include "millstream/exec/executable.h"
#include "millstream/graph/flatten.h"
#include "millstream/graph/text.h"
#include "millstream/runtime/stream_pools.h"
#include "millstream/schedule/stages.h"
#include "millstream/trace/trace.h"

namespace millstream {
namespace {

struct Directive {
  std::string line;
  std::vector<std::string> input;     // without the common indentation of two
  std::vector<std::string> expected;
  std::vector<std::string> comments;  // lines above it, as they stand
};

struct Picture {
  std::string head;  // comments and the graph section, as they stand
  std::vector<Directive> directives;
  std::vector<std::string> tail;
};

bool indented(const std::string& line) { return !line.empty() && (line[0] == ' ' || line[0] == '\t'); }

Result<Picture> read_picture(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Error{ErrorCode::io, fmt::format("cannot open {}", path)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  Picture p;
  std::size_t i = 0;
  bool in_graph = false;
  for (; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const bool header = line.rfind("graph", 0) == 0 || line.rfind("body ", 0) == 0;
    if (header && !in_graph) {
      in_graph = true;
    } else if (in_graph && !line.empty() && !indented(line) && line[0] != '#' && !header) {
      break;
    } else if (in_graph && line == "graph") {
      break;  // the directive "graph" behind the section
    }
    p.head += line + "\n";
  }
  while (i < lines.size()) {
    Directive d;
    while (i < lines.size() && (lines[i].empty() || lines[i][0] == '#')) d.comments.push_back(lines[i++]);
    if (i == lines.size()) {
      p.tail = d.comments;
      break;
    }
    d.line = lines[i++];
    while (i < lines.size() && lines[i] != "----") {
      if (!indented(lines[i])) return Error{ErrorCode::syntax, fmt::format("{}:{}: expected an indented input line or ----", path, i + 1)};
      d.input.push_back(lines[i++].substr(2));
    }
    if (i == lines.size()) return Error{ErrorCode::syntax, fmt::format("{}: \"{}\" has no ----", path, d.line)};
    ++i;
    while (i < lines.size() && !lines[i].empty()) d.expected.push_back(lines[i++]);
    p.directives.push_back(std::move(d));
  }
  if (p.directives.empty()) return Error{ErrorCode::syntax, fmt::format("{}: no directive", path)};
  return p;
}

struct Words {
  std::string verb;
  std::vector<std::string> operands;
  std::string target = "unit";
  std::vector<std::pair<std::string, std::uint32_t>> limits;  // limit.KEY=N: of the target
  std::string self_synchronising;                             // an engine of the target
  CompileOptions options;
};

Result<Target> target_of(const Words& w) {
  MST_TRY(Target target, load_target(w.target));
  const std::pair<std::string_view, std::uint32_t*> known[] = {
      {"streams", &target.limits.streams},           {"tasks_per_stream", &target.limits.tasks_per_stream},
      {"events", &target.limits.events},             {"notifies", &target.limits.notifies},
      {"huge_streams", &target.limits.huge_streams}, {"tasks_per_huge_stream", &target.limits.tasks_per_huge_stream},
      {"tasks_per_node", &target.tasks_per_node}};
  for (const auto& [key, value] : w.limits) {
    std::uint32_t* slot = nullptr;
    for (const auto& [name, member] : known) slot = name == key ? member : slot;
    if (slot == nullptr) return Error{ErrorCode::usage, fmt::format("a target has no limit \"{}\"", key)};
    *slot = value;
  }
  for (Engine& e : target.engines) e.self_synchronising = e.self_synchronising || e.name == w.self_synchronising;
  return target;
}

// "FROM -> TO: ID" a line, "_" for an end that is missing: numbered as the last step of lowering does.
Result<std::string> number_events(const Graph& graph, const std::vector<std::string>& lines) {
  Events events;
  for (const std::string& line : lines) {
    std::istringstream in(line);
    std::string from, arrow, to;
    std::uint32_t id = 0;
    if (!(in >> from >> arrow >> to >> id) || arrow != "->" || to.empty() || to.back() != ':') return Error{ErrorCode::syntax, fmt::format("expected FROM -> TO: ID, found \"{}\"", line)};
    to.pop_back();
    const auto node = [&](const std::string& name) { return name == "_" ? std::nullopt : graph.find_node(name); };
    events.uses.push_back({node(from), node(to), id});
    events.count = std::max(events.count, id + 1);
  }
  MST_TRY(const Events numbered, make_continuous(graph, std::move(events)));
  std::string out;
  for (const EventUse& use : numbered.uses) out += fmt::format("{} -> {}: {}\n", graph.name(*use.from), graph.name(*use.to), use.id);
  return out;
}

// The first streams of a list, as loading a plan asks for them.
Result<std::string> acquire(const Words& w) {
  std::vector<char> made(StreamList::kMost);
  std::size_t next = 0;
  StreamList list({[&](StreamKind) -> Result<StreamHandle> { return static_cast<StreamHandle>(&made[next++]); }, [](StreamHandle) {}}, {});
  MST_TRY(const auto streams, list.acquire(w.operands.empty() ? 0 : std::stoul(w.operands[0])));
  return fmt::format("{} streams\n", streams.size());
}

// What each stream is for, how much each rule did, and all that the rules say about each node.
std::string decisions(const Graph& graph, const Target& target, const CompileOptions& options, const StreamAssignment& on) {
  std::string out;
  for (const StreamId s : ids<StreamId>(on.streams.size())) {
    const StreamInfo& info = on.streams[s];
    out += fmt::format("stream {}:", s.index);
    if (!info.label.empty()) out += fmt::format(" {}label \"{}\"", info.user ? "user " : "", info.label);
    if (info.engine) out += fmt::format(" engine {}", target.engines[*info.engine].name);
    if (info.attached) out += " attached";
    if (info.priority != 0) out += fmt::format(" priority {}", info.priority);
    out += "\n";
  }
  out += fmt::format("threads {}{}\n", on.threads_per_op, on.considered.empty() ? "" : fmt::format(", {} plans weighed", on.considered.size()));
  for (std::size_t r = 0; r < on.reports.size(); ++r) {
    const RuleReport& report = on.reports[r];
    if (report.nodes_placed + report.nodes_moved == 0) continue;
    out += fmt::format("{}: placed {}, moved {}: {}\n", report.rule, report.nodes_placed, report.nodes_moved, on.reasons[r]);
  }
  for (const NodeId n : graph.nodes()) {
    const auto& placement = on.placement[n];
    out += fmt::format("{}: {}\n", graph.name(n),
                       placement ? fmt::format("stream {} by {}", placement->stream.index, on.rules[placement->decided_by.index]) : "no stream");
    const auto said = explain_placement(graph, target, options.assign, n);
    if (!said.ok()) return out + to_string(said.error());
    for (const std::string& line : *said) out += "  " + line + "\n";
  }
  return out;
}

Result<Words> words_of(const std::string& line) {
  Words w;
  std::istringstream in(line);
  in >> w.verb;
  for (std::string word; in >> word;) {
    if (word.rfind("--", 0) == 0) word = word.substr(2);
    const std::size_t eq = word.find('=');
    if (eq == std::string::npos) {
      w.operands.push_back(word);
    } else if (word.substr(0, eq) == "target") {
      w.target = word.substr(eq + 1);
    } else if (word.rfind("limit.", 0) == 0) {
      w.limits.push_back({word.substr(6, eq - 6), static_cast<std::uint32_t>(std::stoul(word.substr(eq + 1)))});
    } else if (word.substr(0, eq) == "self_synchronising") {
      w.self_synchronising = word.substr(eq + 1);
    } else if (word.substr(0, eq) == "max_pairs") {  // of sync=fewest
      w.options.sync.max_pairs = static_cast<std::uint32_t>(std::stoul(word.substr(eq + 1)));
    } else if (word.substr(0, eq) == "device") {
      if (word.substr(eq + 1) != "sim") return Error{ErrorCode::usage, "pictures run on device=sim"};
    } else {
      MST_TRY_VOID(set_option(w.options, word.substr(0, eq), word.substr(eq + 1)));
    }
  }
  return w;
}

// Where values decide the way: floats 0, 1, 2, ..., integers 3, 4, ..., bools true.
Result<std::string> run_with_values(const Graph& graph, const Compiled& c, const Target& target) {
  const auto backend = make_sim_backend(target, durations_us(graph, target, c.assignment.threads_per_op), true);
  MST_TRY(Executable executable, instantiate(graph, c.schedule, c.memory, all_kernels(), *backend, {}));
  std::vector<Tensor> inputs;
  for (const ValueId v : graph.inputs()) {
    Tensor t(graph.desc(v).dtype, graph.desc(v).dims());
    for (std::int64_t i = 0; i < t.elements(); ++i) {
      if (t.dtype() == DType::f32) t.as_mutable<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i);
      if (t.dtype() == DType::i64) t.as_mutable<std::int64_t>()[static_cast<std::size_t>(i)] = 3 + i;
      if (t.dtype() == DType::boolean) t.as_mutable<std::uint8_t>()[static_cast<std::size_t>(i)] = 1;
    }
    inputs.push_back(std::move(t));
  }
  ExecuteOptions execute;
  execute.trace = true;
  MST_TRY(const RunResult result, run(executable, inputs, execute));
  std::string out = print_lanes(graph, c.schedule, result.trace, 1000);
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const Tensor& t = result.outputs[i];
    out += fmt::format("{} = ", graph.name(graph.outputs()[i]));
    out += t.dtype() == DType::f32 ? fmt::format("[{}]\n", fmt::join(t.as<float>(), ", ")) : to_string(t.desc()) + "\n";
  }
  return out;
}

Result<std::string> answer(const Graph& given, const Directive& d, const std::string& file) {
  MST_TRY(const Words w, words_of(d.line));
  MST_TRY(const Target target, target_of(w));
  if (w.verb == "events") return number_events(given, d.input);
  if (w.verb == "acquire") return acquire(w);
  if (w.verb == "graph") return print(given);
  if (w.verb == "flatten") {
    MST_TRY(const Graph flat, flatten(given));
    return print(flat);
  }
  MST_TRY(const Graph graph, prepare(given, target, w.options));
  if (w.verb == "check") {
    std::string text;
    for (const std::string& line : d.input) text += line + "\n";
    MST_TRY(const Schedule schedule, parse_schedule(text, graph, file));
    const CheckReport report = check(graph, schedule, &target);
    std::string out = report.ok() ? "ok\n" : "";
    for (const Violation& v : report.violations) {
      out += v.message + "\n";
      if (v.missing_from) out += fmt::format("  missing: a wait before {} for {}\n", quote_name(graph.name(*v.missing_to)), quote_name(graph.name(*v.missing_from)));
    }
    for (const auto& r : report.redundant) out += fmt::format("redundant: stream {} task {} waits for e{}\n", r.wait.stream.index, r.wait.index, r.event.index);
    return out;
  }
  if (w.verb == "chain") {
    // Only these rules, then synchronisation: what a broken assignment is answered.
    MST_TRY(const StreamAssignment on, run_rules(graph, target, w.options.assign, w.operands, ChainSeed{}));
    std::string out;
    for (const NodeId n : graph.nodes()) out += fmt::format("{}: {}\n", graph.name(n), on.stream_of(n) ? fmt::format("stream {}", on.stream_of(n)->index) : "no stream");
    MST_TRY(const SyncPlan plan, plan_sync(graph, on, w.options.sync));
    return out + print(graph, on, plan);
  }
  if (w.verb == "starts") {
    // What each activation starts, before any stream is split; synchronisation is not asked.
    MST_TRY(const StreamAssignment on, assign_streams(graph, target, w.options.assign));
    MST_TRY(const Activation activation, plan_activation(graph, on));
    Splitting whole;
    whole.streams = static_cast<std::uint32_t>(on.streams.size());
    MST_TRY(const Starts starts, plan_starts({graph, on, activation, whole, w.options.sync.mode}));
    std::string out;
    for (const StartList& list : starts.lists) out += fmt::format("{} starts {}\n", graph.name(list.node), fmt::join(list.streams, ", "));
    return out;
  }
  if (w.verb == "sync") {
    MST_TRY(const StreamAssignment on, assign_streams(graph, target, w.options.assign));
    MST_TRY(const SyncPlan plan, plan_sync(graph, on, w.options.sync));
    std::string out;
    for (const Error& warning : plan.warnings) out += to_string(warning, "warning") + "\n";
    for (const Error& error : verify(graph, on, plan)) out += to_string(error) + "\n";
    return out + print(graph, on, plan);
  }
  MST_TRY(const Compiled c, compile(graph, target, w.options));
  std::string warnings;
  for (const auto* list : {&c.assignment.warnings, &c.sync.warnings, &c.schedule.warnings}) {
    for (const Error& warning : *list) warnings += to_string(warning, "warning") + "\n";
  }
  if (w.verb == "schedule") return warnings + print(graph, c.schedule);
  if (w.verb == "rules") {
    std::string out = warnings;
    for (const NodeId n : graph.nodes()) {
      const auto& placement = c.assignment.placement[n];
      out += placement ? fmt::format("{}: stream {} by {}\n", graph.name(n), placement->stream.index, c.assignment.rules[placement->decided_by.index])
                       : fmt::format("{}: no stream\n", graph.name(n));
    }
    return out;
  }
  if (w.verb == "decisions") return warnings + decisions(graph, target, w.options, c.assignment);
  if (w.verb == "compile") {
    return warnings + fmt::format("inserted {}, kept {}, dropped {}, event ids {}, streams {}\n", c.sync.inserted - given_by_activations(c.sync), c.sync.kept.size(),
                                  c.sync.dropped.size() - given_by_activations(c.sync), c.schedule.event_count, c.schedule.streams.size());
  }
  if (w.verb == "run") {
    if (c.schedule.has_control()) return run_with_values(graph, c, target);
    auto backend = make_sim_backend(target, durations_us(graph, target, c.assignment.threads_per_op), false);
    struct Nothing : Launcher {
      Result<void> launch(NodeId, PhysicalStreamId) override { return {}; }
    } nothing;
    ExecuteOptions execute;
    execute.trace = true;
    MST_TRY(const Trace trace, backend->execute(graph, c.schedule, nothing, execute));
    return print_lanes(graph, c.schedule, trace, 1000);
  }
  return Error{ErrorCode::usage, fmt::format("unknown directive \"{}\"", w.verb)};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out.push_back(line);
  }
  return out;
}

// Returns the number of directives that differ.
int run_file(const std::string& path, bool rewrite) {
  Result<Picture> picture = read_picture(path);
  if (!picture.ok()) {
    fmt::print("{}\n", to_string(picture.error()));
    return 1;
  }
  const std::string file = std::filesystem::path(path).filename().string();
  const Result<Graph> graph = parse_graph(picture->head, file);
  int failures = 0;
  for (Directive& d : picture->directives) {
    Result<std::string> got = graph.ok() ? answer(*graph, d, file) : Result<std::string>(graph.error());
    const std::vector<std::string> lines = lines_of(got.ok() ? *got : to_string(got.error()));
    if (lines == d.expected) continue;
    if (rewrite) {
      d.expected = lines;
      continue;
    }
    ++failures;
    fmt::print("{}: {}\n  expected:\n", path, d.line);
    for (const std::string& line : d.expected) fmt::print("    {}\n", line);
    fmt::print("  got:\n");
    for (const std::string& line : lines) fmt::print("    {}\n", line);
  }
  if (rewrite) {
    std::ofstream out(path, std::ios::trunc);
    out << picture->head;
    for (const Directive& d : picture->directives) {
      for (const std::string& c : d.comments) out << c << "\n";
      out << d.line << "\n";
      for (const std::string& line : d.input) out << "  " << line << "\n";
      out << "----\n";
      for (const std::string& line : d.expected) out << line << "\n";
    }
  }
  return failures;
}

}  // namespace
}  // namespace millstream

int main(int argc, char** argv) {
  bool rewrite = false;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--rewrite") {
      rewrite = true;
    } else if (std::filesystem::is_directory(arg)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(arg)) {
        if (entry.path().extension() == ".test") files.push_back(entry.path().string());
      }
    } else {
      files.push_back(arg);
    }
  }
  if (files.empty()) {
    fmt::print(stderr, "usage: golden_main [--rewrite] FILE_OR_FOLDER...\n");
    return 2;
  }
  std::sort(files.begin(), files.end());
  int failed = 0;
  for (const std::string& file : files) failed += millstream::run_file(file, rewrite) != 0;
  fmt::print("{} passed, {} failed\n", files.size() - static_cast<std::size_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}
