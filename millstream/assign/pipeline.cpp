// SPDX-License-Identifier: Apache-2.0
// The table of rules, and the driver: it runs a chain, compares before and after each rule, and from that
// knows who placed and who moved a node.
#include <chrono>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"
#include "millstream/assign/rules.h"
#include "millstream/assign/tasks.h"

namespace millstream {
namespace {

StreamRule by_label() {
  return {"by-label", "nodes with one label share one stream", assign_by_label};
}

constexpr std::size_t kMaxListed = 20;

// Streams that no node uses any more vanish; ids stay dense and keep their order.
void compact(StreamAssignment& on) {
  IdVec<StreamId, std::uint8_t> used(on.streams.size(), 0);
  for (const auto& p : on.placement) {
    if (p) used[p->stream] = 1;
  }
  IdVec<StreamId, StreamId> to(on.streams.size());
  IdVec<StreamId, StreamInfo> kept;
  for (const StreamId s : ids<StreamId>(on.streams.size())) {
    if (used[s]) to[s] = kept.push_back(std::move(on.streams[s]));
  }
  if (kept.size() == used.size()) {
    on.streams = std::move(kept);
    return;
  }
  for (auto& p : on.placement) {
    if (p) p->stream = to[p->stream];
  }
  on.streams = std::move(kept);
}

// What the rule did, and its name on every node it placed or moved.
RuleReport compare(const IdVec<NodeId, std::optional<Placement>>& before, RuleId rule, StreamAssignment& on) {
  RuleReport report;
  report.rule = on.rules[rule.index];
  for (const NodeId n : ids<NodeId>(before.size())) {
    if (!on.placement[n]) continue;
    if (!before[n]) {
      ++report.nodes_placed;
    } else if (before[n]->stream != on.placement[n]->stream) {
      ++report.nodes_moved;
    } else {
      on.placement[n]->decided_by = before[n]->decided_by;
      continue;
    }
    on.placement[n]->decided_by = rule;
  }
  return report;
}

Result<void> check_options(const Graph& graph, const Target& target, const AssignOptions& options) {
  if (options.streams == 0) {
    return Error{ErrorCode::bad_option, "option streams cannot be 0"}.help("legal values: 1..65535");
  }
  if (options.threads_per_op && *options.threads_per_op == 0) {
    return Error{ErrorCode::bad_option, "option threads_per_op cannot be 0"}.help("legal values: auto, 1..1024");
  }
  if (options.single_stream && options.strategy && options.strategy != Strategy::single) {
    return Error{ErrorCode::conflict, fmt::format("single_stream=true conflicts with strategy {}",
                                                  *options.strategy == Strategy::ge ? "ge" : "auto")}
        .help("drop one of the two");
  }
  if (target.cores == 0) {
    return Error{ErrorCode::bad_target, fmt::format("target {} has 0 cores", target.name)};
  }
  if (!graph.annotations().cost.empty()) {
    for (const NodeId n : graph.nodes()) {
      const auto& cost = graph.annotations().cost.get(n);
      if (cost && !(*cost >= 0 && *cost <= 1e15)) {
        return Error{ErrorCode::bad_attribute, fmt::format("@cost({}) on {} is not a duration", *cost, graph.name(n))}
            .help("microseconds, 0 or more");
      }
    }
  }
  return {};
}

}  // namespace

std::vector<StreamRule> rule_chain(Strategy strategy) {
  switch (strategy) {
    case Strategy::single:
      return {{"single", "single-stream mode: every node on stream 0", assign_single}};
    case Strategy::automatic:
      return {by_label(), {"auto", "predicted best among the plans weighed", assign_auto}};
    case Strategy::ge:
      break;  // chain/driver.cpp has its table
  }
  return {};
}

Strategy chosen_strategy(const Graph& graph, const Target& target, const AssignOptions& options) {
  if (options.single_stream) return Strategy::single;
  if (options.strategy) return *options.strategy;
  const bool engines = target.engines_in_input && !graph.annotations().engine.empty();
  return engines || graph.scope_count() > 1 || graph.dynamic() ? Strategy::ge : Strategy::automatic;
}

bool uses_chain(const Graph& graph, const Target& target, const AssignOptions& options) {
  if (chosen_strategy(graph, target, options) == Strategy::ge) return true;
  if (graph.scope_count() > 1 || graph.dynamic()) return true;
  const Annotations& notes = graph.annotations();
  if (target.engines_in_input && target.engines.size() > 1 && !notes.engine.empty()) return true;
  return chosen_strategy(graph, target, options) == Strategy::automatic &&
         (!notes.new_stream.empty() || !notes.parallel_group.empty() || !notes.inner_parallel.empty() ||
          !notes.batch.empty() || !notes.thread_scope.empty());
}

namespace {

Result<StreamAssignment> run_rules_of(const RuleInput& in, Strategy strategy) {
  if (!uses_chain(in.graph, in.target, in.options)) return apply_rules(in, rule_chain(strategy));
  const bool scoped = in.graph.scope_count() > 1;
  Result<chain::ChainResult> result =
      in.graph.dynamic() && strategy != Strategy::single
          ? chain::run_dynamic(in.graph, in.target, in.options, in.engines, std::nullopt)
          : chain::run_chain(in.graph, in.target, in.options, in.engines,
                             scoped && strategy == Strategy::automatic ? Strategy::ge : strategy, std::nullopt);
  if (!result.ok()) return std::move(result).error();
  if (strategy == Strategy::automatic && (scoped || in.graph.dynamic())) {
    result->on.warnings.push_back(
        Error{ErrorCode::no_effect, "auto does not predict control flow or dynamic shapes: the rules of strategy ge decide"}
            .help("strategy=ge says so without this warning"));
  }
  return std::move(result->on);
}

void warn_of_unknown_engines(const Target& target, const AssignOptions& options, StreamAssignment& on) {
  const auto look = [&](std::string_view option, std::string_view engine) {
    std::string names;
    for (const Engine& e : target.engines) {
      if (e.name == engine) return;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", e.name);
    }
    on.warnings.push_back(
        Error{ErrorCode::no_effect, fmt::format("{} names engine \"{}\", which target {} does not have", option, engine, target.name)}.help(
            "engines: " + names));
  };
  for (const MaxParallel& m : options.max_parallel) look("max_parallel", m.engine);
  if (!options.excluded_engine.empty()) look("excluded_engine or engine_type", options.excluded_engine);
}

}  // namespace

Result<StreamAssignment> apply_rules(const RuleInput& input, const std::vector<StreamRule>& rules) {
  const Graph& graph = input.graph;
  StreamAssignment on;
  on.placement = IdVec<NodeId, std::optional<Placement>>(graph.node_count());
  for (const StreamRule& rule : rules) {
    const IdVec<NodeId, std::optional<Placement>> before = on.placement;
    const RuleId id(on.rules.size());
    on.rules.push_back(rule.name);
    on.reasons.push_back(rule.reason);
    const auto start = std::chrono::steady_clock::now();
    MST_TRY(on, rule.apply(input, std::move(on)));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (on.placement.size() != graph.node_count()) {
      return Error{ErrorCode::graph_changed, fmt::format("rule {} returned {} nodes for a graph of {}", rule.name, on.placement.size(),
                                                         graph.node_count())}
          .help("a rule places and moves nodes, and leaves the graph alone");
    }
    for (const NodeId n : graph.nodes()) {
      if (!on.placement[n] || on.placement[n]->stream.index < on.streams.size()) continue;
      return Error{ErrorCode::graph_changed, fmt::format("rule {} put {} on stream {}, but the assignment has {} streams", rule.name, graph.name(n),
                                                         on.placement[n]->stream.index, on.streams.size())}
          .help("open a stream with new_stream before a node is put on it");
    }
    RuleReport report = compare(before, id, on);
    report.milliseconds = took.count();
    on.reports.push_back(std::move(report));
  }
  compact(on);
  return on;
}

Result<StreamAssignment> assign_streams(const Graph& graph, const Target& target, const AssignOptions& options) {
  MST_TRY_VOID(check_options(graph, target, options));
  MST_TRY(const auto engines, resolve_engines(graph, target, options.excluded_engine));
  MST_TRY(StreamAssignment on, run_rules_of({graph, target, options, engines}, chosen_strategy(graph, target, options)));
  warn_of_unknown_engines(target, options, on);
  if (!on.skips_engines) {
    const TaskTypes emits(graph);
    std::string missing;
    std::size_t count = 0;
    for (const NodeId n : graph.nodes()) {
      if (on.placement[n] || !emits(n)) continue;
      if (++count <= kMaxListed) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", graph.name(n));
    }
    if (count != 0) {
      return Error{ErrorCode::no_stream, fmt::format("{} nodes of graph {} got no stream: {}{}", count, graph.name(),
                                                     missing, count > kMaxListed ? ", ..." : "")};
    }
    if (!on.estimate) on.estimate = estimate(graph, target, on);
  }
  return assign_attached(graph, target, options, std::move(on));
}

}  // namespace millstream
