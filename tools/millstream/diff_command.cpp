// SPDX-License-Identifier: Apache-2.0
// diff: what two plans do differently. Streams are compared by what they run, not by their numbers.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "tools/millstream/common.h"

namespace millstream::cli {
namespace {

struct DiffOptions {
  std::string a, b, graph;
  std::vector<std::string> dims;
  PipelineOptions pipeline;
  bool json = false;
};

struct Side {
  std::map<std::string, std::uint32_t> stream;  // node name -> logical stream
  std::set<std::pair<std::string, std::string>> waits;
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
  if (!loaded.schedule) {
    MST_TRY(const ResolvedPipeline pipeline, resolve(options.pipeline, model));
    MST_TRY(Compiled compiled, compile_loaded(loaded, pipeline));
    decided(compiled.assignment, compiled.memory);
    loaded.schedule = std::move(compiled.schedule);
  }
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

// Which stream of b is which of a: the two that share most nodes first, ties by number.
std::map<std::uint32_t, std::uint32_t> matched_streams(const Side& a, const Side& b) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> shared;
  for (const auto& [name, stream] : a.stream) {
    if (const auto it = b.stream.find(name); it != b.stream.end()) ++shared[{stream, it->second}];
  }
  std::vector<std::pair<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>>> order;
  for (const auto& [pair, count] : shared) order.push_back({count, pair});
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::map<std::uint32_t, std::uint32_t> to;
  std::set<std::uint32_t> taken;
  for (const auto& [count, pair] : order) {
    if (to.count(pair.first) == 0 && taken.insert(pair.second).second) to.emplace(pair.first, pair.second);
  }
  return to;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Result<int> run_diff(const DiffOptions& options) {
  MST_TRY(const Side a, side_of(options.a, options));
  MST_TRY(const Side b, side_of(options.b, options));
  const auto known_to_b = [&](const auto& row) { return b.stream.count(row.first) != 0; };
  if (!a.stream.empty() && !b.stream.empty() && std::none_of(a.stream.begin(), a.stream.end(), known_to_b)) {
    return Error{ErrorCode::usage, fmt::format("\"{}\" and \"{}\" are of different models: no node in common", options.a, options.b)}.help(
        "diff compares two plans of one model");
  }
  const auto match = matched_streams(a, b);
  const auto same = [&](std::uint32_t x, std::uint32_t y) {
    const auto it = match.find(x);
    return it != match.end() && it->second == y;
  };
  Json renumbered = Json::array(), moved = Json::array(), added = Json::array(), removed = Json::array();
  for (const auto& [x, y] : match) {
    if (x != y) renumbered.push_back({{"from", x}, {"to", y}});
  }
  for (const auto& [name, stream] : a.stream) {
    auto it = b.stream.find(name);
    if (it == b.stream.end()) {
      moved.push_back({{"node", name}, {"from", stream}, {"to", nullptr}});
    } else if (!same(stream, it->second)) {
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
    print_json({{"moved", moved},
                {"renumbered", renumbered},
                {"added_waits", added},
                {"removed_waits", removed},
                {"threads_per_op", {or_null(a.threads), or_null(b.threads)}},
                {"predicted_us", {or_null(a.predicted_us), or_null(b.predicted_us)}},
                {"peak_bytes", {or_null(a.peak_bytes), or_null(b.peak_bytes)}}});
    return 0;
  }
  const auto stream = [](const Json& s) { return s.is_null() ? std::string("absent") : fmt::format("stream {}", s.get<std::uint32_t>()); };
  for (const Json& r : renumbered) fmt::print("same     stream {} of A is stream {} of B\n", r["from"].get<std::uint32_t>(), r["to"].get<std::uint32_t>());
  for (const Json& m : moved) fmt::print("moved    {}: {} of A -> {} of B\n", quote_name(m["node"].get<std::string>()), stream(m["from"]), stream(m["to"]));
  for (const Json& w : added) fmt::print("added    wait of {} for {}\n", quote_name(w["to"].get<std::string>()), quote_name(w["from"].get<std::string>()));
  for (const Json& w : removed) fmt::print("removed  wait of {} for {}\n", quote_name(w["to"].get<std::string>()), quote_name(w["from"].get<std::string>()));
  if (a.threads && b.threads && *a.threads != *b.threads) fmt::print("threads  {} -> {} an operator\n", *a.threads, *b.threads);
  if (a.predicted_us && b.predicted_us && *a.predicted_us != *b.predicted_us) {
    fmt::print("predicted {:.1f} -> {:.1f} us\n", *a.predicted_us, *b.predicted_us);
  }
  if (a.peak_bytes && b.peak_bytes && *a.peak_bytes != *b.peak_bytes) fmt::print("memory   {} -> {} bytes\n", *a.peak_bytes, *b.peak_bytes);
  fmt::print("{} moved, {} added, {} removed\n", counted(moved.size(), "node"), counted(added.size(), "wait"), removed.size());
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
  sub->footer("\nStreams are matched by the nodes they run, so that another numbering is no move.\n"
              "Example: millstream diff before.plan after.plan\n");
  sub->callback(runner(options, run_diff, status));
}

}  // namespace millstream::cli
