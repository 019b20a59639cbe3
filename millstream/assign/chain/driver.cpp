// SPDX-License-Identifier: Apache-2.0
// The table of the chain, and the driver: it runs the rules scope by scope, compares before and after each, and
// names who placed and who moved a node.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"
#include "millstream/assign/estimate.h"
#include "millstream/assign/tasks.h"

namespace millstream::chain {
namespace {

constexpr ChainRule kMdeGroup = {"mde-group", "UpdateForMdeGroup", "nodes of one group number share a new stream and stay there", false, mde_group};
constexpr ChainRule kByLabel = {"by-label", "AssignByLabel", "clusters of one label share one stream", true, by_label};
constexpr ChainRule kIndependent = {"independent", "IndependentStream", "an independent engine has a stream for each of its labels", true, independent};
constexpr ChainRule kByDependency = {"by-dependency", "AssignByDependency", "a cluster follows a predecessor if it may, else it opens a stream of its engine", true, by_dependency};
constexpr ChainRule kByPrediction = {"auto", "", "predicted best among the plans weighed", true, by_prediction};
constexpr ChainRule kSingleStream = {"single-stream", "SingleStream", "single-stream mode: one stream for everything", true, single_stream};
constexpr ChainRule kNodeStream = {"node-stream", "NodeStreamUpdate", "a node runs where its cluster does; control flow labels on the caller's stream", false, node_stream};
constexpr ChainRule kParallelGroup = {"parallel-group", "UpdateForParallelGroup", "the nodes of a parallel group move to a stream of their own", false, parallel_group};
constexpr ChainRule kAllReduce = {"all-reduce", "AllReduceParallel", "what follows an all-reduce runs beside the rest", false, all_reduce};
constexpr ChainRule kSkippedEngine = {"skipped-engine", "UpdateForSkippedEngine", "nodes that run nothing leave their stream, or join their neighbours'", false, skipped_engine};
constexpr ChainRule kIneffective = {"ineffective", "OptimizeIneffectiveMultiStream", "a stream that only makes another wait is given up", false, ineffective};

constexpr ChainRule kAll[] = {kMdeGroup,      kByLabel,  kIndependent, kByDependency, kByPrediction, kSingleStream,
                              kNodeStream, kParallelGroup, kAllReduce, kSkippedEngine, kIneffective};

// Above this many nodes no estimate is made: it would take longer than the rules.
constexpr std::size_t kMaxEstimated = 200'000;

std::vector<std::vector<NodeId>> by_scope(const Graph& graph) {
  std::vector<std::vector<NodeId>> out(graph.scope_count());
  if (out.size() == 1) {
    out[0] = graph.order();
  } else {
    for (const NodeId n : graph.order()) out[graph.scope_of(n).index].push_back(n);
  }
  return out;
}

class Driver {
 public:
  Driver(ChainState& s, std::vector<ChainRule> rules) : s_(s), rules_(std::move(rules)), reports_(rules_.size()) {
    for (std::size_t r = 0; r < rules_.size(); ++r) reports_[r].rule = rules_[r].name;
  }

  Result<void> run(const ChainSeed& seed) {
    MST_TRY_VOID(s_.read_labels());
    std::vector<std::vector<NodeId>> scopes = by_scope(s_.graph);
    for (const ScopeId x : s_.graph.scopes()) {
      s_.enter(x, std::move(scopes[x.index]));
      if (x.index < seed.clusters.size() && !seed.clusters[x.index].empty()) {
        MST_TRY_VOID(s_.take_clusters(seed.clusters[x.index]));
      } else {
        s_.make_clusters();
      }
      for (std::size_t r = 0; r < rules_.size(); ++r) {
        const auto start = std::chrono::steady_clock::now();
        MST_TRY_VOID(rules_[r].on_clusters ? run_on_clusters(r) : run_on_nodes(r));
        reports_[r].milliseconds += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      }
    }
    return {};
  }

  StreamAssignment finish(bool compact, std::vector<std::string>& said) {
    StreamAssignment on;
    const Graph& graph = s_.graph;
    std::vector<std::int32_t> to(s_.next_stream, compact ? kNoStream : 0);
    if (compact) {
      for (const NodeId n : graph.nodes()) {
        if (s_.stream[n] != kNoStream) to[static_cast<std::size_t>(s_.stream[n])] = 0;
      }
    }
    s_.infos.resize(s_.next_stream);
    for (std::size_t raw = 0; raw < to.size(); ++raw) {
      if (to[raw] != kNoStream) to[raw] = static_cast<std::int32_t>(on.new_stream(std::move(s_.infos[raw])).index);
    }
    on.placement = IdVec<NodeId, std::optional<Placement>>(graph.node_count());
    for (const NodeId n : graph.nodes()) {
      if (s_.stream[n] == kNoStream) continue;
      on.placement[n] = Placement{StreamId(static_cast<std::size_t>(to[static_cast<std::size_t>(s_.stream[n])])), s_.decided_by[n]};
    }
    for (const ChainRule& rule : rules_) {
      on.rules.emplace_back(rule.name);
      on.reasons.emplace_back(rule.reason);
    }
    on.reports = std::move(reports_);
    on.warnings = std::move(s_.warnings);
    on.clusters = s_.cluster_total;
    on.skips_engines = true;
    if (s_.auto_result) {
      on.threads_per_op = s_.auto_result->threads_per_op;
      on.considered = std::move(s_.auto_result->considered);
      for (std::size_t r = 0; r < rules_.size(); ++r) {
        if (rules_[r].name == kByPrediction.name) on.reasons[r] = s_.auto_result->reasons.back();
      }
    }
    finish_words(said, to);
    return on;
  }

 private:
  // A cluster rule places or moves all nodes of a cluster at once; node-stream then writes it down.
  Result<void> run_on_clusters(std::size_t r) {
    std::vector<std::int32_t> before;
    before.reserve(s_.clusters.size());
    for (const Cluster& c : s_.clusters) before.push_back(c.stream);
    const bool predicted = !s_.predicted.empty();
    MST_TRY_VOID(rules_[r].apply(s_));
    for (const ClusterId id : ids<ClusterId>(s_.clusters.size())) {
      Cluster& c = s_.clusters[id];
      if (c.stream == before[id.index]) continue;
      (before[id.index] == kNoStream ? reports_[r].nodes_placed : reports_[r].nodes_moved) += c.end - c.begin;
      c.decided_by = RuleId(r);
    }
    if (!predicted && !s_.predicted.empty()) {
      for (Cluster& c : s_.clusters) {
        if (c.stream == kNoStream) c.decided_by = RuleId(r);
        if (c.stream == kNoStream) reports_[r].nodes_placed += c.end - c.begin;
      }
    }
    return {};
  }

  Result<void> run_on_nodes(std::size_t r) {
    std::vector<std::int32_t> before;
    before.reserve(s_.size());
    for (const NodeId n : s_.nodes) before.push_back(s_.stream[n]);
    const bool from_clusters = rules_[r].name == kNodeStream.name;
    MST_TRY_VOID(rules_[r].apply(s_));
    for (std::size_t i = 0; i < s_.size(); ++i) {
      const NodeId n = s_.nodes[i];
      const std::int32_t now = s_.stream[n];
      if (now == before[i]) {
        // A pin that a label set: by-label decided it.
        if (s_.is_pinned(n) && s_.cluster(n) && s_.clusters[*s_.cluster(n)].stream == now &&
            s_.clusters[*s_.cluster(n)].decided_by != RuleId()) {
          s_.decided_by[n] = s_.clusters[*s_.cluster(n)].decided_by;
        }
        continue;
      }
      if (from_clusters && now != kNoStream && s_.cluster(n)) {
        const Cluster& c = s_.clusters[*s_.cluster(n)];
        const std::int32_t of_cluster = c.stream != kNoStream || s_.predicted.empty() ? c.stream : s_.predicted[n];
        if (now == of_cluster) {
          s_.decided_by[n] = c.decided_by;
          continue;
        }
      }
      if (now != kNoStream) {
        ++(before[i] == kNoStream && !from_clusters ? reports_[r].nodes_placed : reports_[r].nodes_moved);
        s_.decided_by[n] = RuleId(r);
      } else {
        ++reports_[r].nodes_moved;
      }
    }
    // Pooled data and skipped nodes had no stream before and have none now: nothing to tell.
    return {};
  }

  ChainState& s_;
  std::vector<ChainRule> rules_;
  std::vector<RuleReport> reports_;
};

}  // namespace

std::vector<ChainRule> chain_of(Strategy strategy, const AssignOptions& options) {
  if (strategy == Strategy::single) return {kSingleStream, kNodeStream, kSkippedEngine};
  std::vector<ChainRule> out;
  if (options.newer_rules) out.push_back(kMdeGroup);
  out.insert(out.end(), {kByLabel, kIndependent, strategy == Strategy::automatic ? kByPrediction : kByDependency, kNodeStream,
                         kParallelGroup, kAllReduce, kSkippedEngine});
  if (options.newer_rules) out.push_back(kIneffective);
  return out;
}

Result<ChainResult> run_chain(const Graph& graph, const Target& target, const AssignOptions& options,
                              const IdVec<NodeId, EngineId>& engines, Strategy strategy, std::optional<NodeId> watch) {
  ChainState state(graph, target, options, engines);
  state.watch = watch;
  Driver driver(state, chain_of(strategy, options));
  MST_TRY_VOID(driver.run({}));
  ChainResult out;
  out.said = std::move(state.said);
  out.on = driver.finish(true, out.said);
  StreamAssignment& on = out.on;
  if (!state.auto_result) {
    on.threads_per_op = options.threads_per_op.value_or(
        std::max(1u, target.cores / static_cast<std::uint32_t>(std::max<std::size_t>(1, on.streams.size()))));
  }
  if (graph.scope_count() == 1 && graph.node_count() <= kMaxEstimated) on.estimate = estimate(graph, target, on);
  if (strategy == Strategy::ge) warn_of_labels(graph, target, on);
  return out;
}

}  // namespace millstream::chain

namespace millstream {

Result<StreamAssignment> run_rules(const Graph& graph, const Target& target, const AssignOptions& options,
                                   std::span<const std::string> rules, const ChainSeed& seed) {
  std::vector<chain::ChainRule> list;
  for (const std::string& name : rules) {
    std::string_view stem = name;
    if (stem.size() > 4 && stem.substr(stem.size() - 4) == "Pass") stem.remove_suffix(4);
    const chain::ChainRule* found = nullptr;
    std::string known;
    for (const chain::ChainRule& rule : chain::kAll) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", rule.name);
      if (rule.name == name || (!stem.empty() && rule.ecosystem == stem)) found = &rule;
    }
    if (found == nullptr) return Error{ErrorCode::bad_option, fmt::format("there is no rule \"{}\"", name)}.help("rules: " + known);
    list.push_back(*found);
  }
  MST_TRY(const auto engines, resolve_engines(graph, target, options.excluded_engine));
  chain::ChainState state(graph, target, options, engines);
  state.next_stream = seed.next_stream;
  if (!seed.preset.empty()) {
    MST_CHECK(seed.preset.size() == graph.node_count(), "a preset stream for every node, or for none");
    for (const NodeId n : graph.nodes()) {
      if (!seed.preset[n]) continue;
      state.stream[n] = static_cast<std::int32_t>(seed.preset[n]->index);
      state.next_stream = std::max(state.next_stream, seed.preset[n]->index + 1);
    }
  }
  state.infos.resize(state.next_stream);
  chain::Driver driver(state, std::move(list));
  MST_TRY_VOID(driver.run(seed));
  return driver.finish(seed.compact, state.said);
}

}  // namespace millstream
