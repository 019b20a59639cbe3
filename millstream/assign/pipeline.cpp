// SPDX-License-Identifier: Apache-2.0
// The table of rules, and the driver: it runs a chain, compares before and after each rule, and from that
// knows who placed and who moved a node.
#include <chrono>

#include <fmt/format.h>

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
  if (options.strategy == Strategy::ge) {
    return Error{ErrorCode::bad_option, "strategy ge, the rule chain for graphs with engines, is not in this version"}
        .help("use strategy auto, which honours labels, or single");
  }
  if (options.single_stream && options.strategy && options.strategy != Strategy::single) {
    return Error{ErrorCode::conflict, "single_stream=true conflicts with strategy auto"}.help(
        "drop one of the two");
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
      // The place of the whole chain: mde-group, by-label, independent, by-dependency, node-stream,
      // parallel-group, all-reduce, skipped-engine, ineffective. assign_streams refuses it until then.
      return {by_label()};
  }
  return {};
}

Result<StreamAssignment> assign_streams(const Graph& graph, const Target& target, const AssignOptions& options) {
  MST_TRY_VOID(check_options(graph, target, options));
  MST_TRY(const auto engines, resolve_engines(graph, target));
  const RuleInput input{graph, target, options, engines};
  const Strategy strategy =
      options.single_stream ? Strategy::single : options.strategy.value_or(Strategy::automatic);

  StreamAssignment on;
  on.placement = IdVec<NodeId, std::optional<Placement>>(graph.node_count());
  if (!options.strategy && !options.single_stream && target.engines_in_input && !graph.annotations().engine.empty()) {
    on.warnings.push_back(
        Error{ErrorCode::no_effect, "the input's engines do not decide streams in this version: strategy auto is used"}
            .help("strategy=auto says so without this warning"));
  }
  for (const StreamRule& rule : rule_chain(strategy)) {
    const IdVec<NodeId, std::optional<Placement>> before = on.placement;
    const RuleId id(on.rules.size());
    on.rules.push_back(rule.name);
    on.reasons.push_back(rule.reason);
    const auto start = std::chrono::steady_clock::now();
    MST_TRY(on, rule.apply(input, std::move(on)));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (on.placement.size() != graph.node_count()) {
      return Error{ErrorCode::graph_changed, fmt::format("rule {} returned {} nodes for a graph of {}", rule.name,
                                                         on.placement.size(), graph.node_count())};
    }
    RuleReport report = compare(before, id, on);
    report.milliseconds = took.count();
    on.reports.push_back(std::move(report));
  }
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
  compact(on);
  if (!on.estimate) on.estimate = estimate(graph, target, on);
  return on;
}

}  // namespace millstream
