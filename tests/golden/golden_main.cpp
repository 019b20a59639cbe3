// SPDX-License-Identifier: Apache-2.0
// Runs text pictures: golden_main [--rewrite] FILE_OR_FOLDER...
// A file holds a graph section, then directives. A directive is a line that starts in the first column,
// the indented lines under it are its input, and what must be printed stands between "----" and an empty
// line. Directives: graph, flatten, schedule, sync, run, check, explain NODE, compile. Words KEY=VALUE behind them set
// options (docs/options.md), and target=NAME.
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

#include "millstream/assign/cost_model.h"
#include "millstream/backend/backend.h"
#include "millstream/compile/compile.h"
#include "millstream/graph/flatten.h"
#include "millstream/graph/text.h"
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
  CompileOptions options;
};

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

Result<std::string> answer(const Graph& graph, const Directive& d, const std::string& file) {
  MST_TRY(const Words w, words_of(d.line));
  MST_TRY(const Target target, load_target(w.target));
  if (w.verb == "graph") return print(graph);
  if (w.verb == "flatten") {
    MST_TRY(const Graph flat, flatten(graph));
    return print(flat);
  }
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
  for (const Error& warning : c.assignment.warnings) warnings += to_string(warning, "warning") + "\n";
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
  if (w.verb == "compile") {
    return warnings + fmt::format("inserted {}, kept {}, dropped {}, event ids {}, streams {}\n", c.sync.inserted, c.sync.kept.size(),
                                  c.sync.dropped.size(), c.schedule.event_count, c.schedule.streams.size());
  }
  if (w.verb == "run") {
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
