// SPDX-License-Identifier: Apache-2.0
// Which logical stream each node runs on, and which rule said so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millstream/core/id.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/target/target.h"

namespace millstream {

using StreamId = Id<struct StreamTag>;  ///< logical
using RuleId = Id<struct RuleTag>;      ///< index into StreamAssignment::rules

struct Placement {
  StreamId stream;
  RuleId decided_by;
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct StreamInfo {
  std::string label;  ///< stream label, or user stream label; empty: none
  std::optional<EngineId> engine;
  std::int64_t priority = 0;
  bool attached = false;        ///< a stream beside a node's own; ids follow all main streams
  bool assigned_by_pass = false;  ///< a user's stream pass placed at least one node on it
  bool user = false;            ///< `label` is a user stream label
  /// For messages: of a user stream label "user:" and the label.
  std::string label_text() const { return user ? "user:" + label : label; }
  friend bool operator==(const StreamInfo&, const StreamInfo&) = default;
};

/// What one rule changed: the driver fills it by comparing before and after.
struct RuleReport {
  std::string rule;
  std::uint32_t nodes_placed = 0;
  std::uint32_t nodes_moved = 0;
  double milliseconds = 0;
};

/// One plan that `auto` weighed.
struct Candidate {
  std::uint32_t streams = 1;         ///< streams in use, label streams included
  std::uint32_t threads_per_op = 1;
  double span_us = 0;                ///< predicted, virtual microseconds
  std::uint64_t pairs = 0;           ///< waits after the exact reduction
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// What a plan is predicted to cost, beside what no plan can undercut. Virtual microseconds.
struct Estimate {
  double span_us = 0;           ///< of this plan
  double single_stream_us = 0;  ///< of the best one-stream plan on the same cores, labels ignored
  double lower_bound_us = 0;    ///< the largest of critical path, work / cores and bytes / bandwidth
  double overlap = 0;           ///< share of busy time with two or more operators running, in [0, 1]
  std::string limited_by;       ///< which bound is the largest: "critical path", "cores" or "memory bandwidth"
  std::uint32_t unknown_costs = 0;  ///< nodes that count as one launch because their cost is not known
};

struct StreamAssignment {
  IdVec<NodeId, std::optional<Placement>> placement;  ///< nullopt: the node emits no task
  IdVec<StreamId, StreamInfo> streams;
  /// Attached streams of a node, ascending.
  SideTable<NodeId, std::vector<StreamId>> attached;
  /// Nodes whose engine declares that their kernels order their parts on attached streams themselves; ascending.
  std::vector<NodeId> self_synchronising;
  std::uint32_t clusters = 0;        ///< over all scopes; 0 when no rule clustered
  /// Made by the chain for engines: a node of a skip engine, or of another scheduler, may have no stream although
  /// its operator emits a task.
  bool skips_engines = false;
  std::vector<std::string> rules;    ///< names; Placement::decided_by indexes it
  std::vector<std::string> reasons;  ///< one sentence a rule, by RuleId; for explain
  std::uint32_t threads_per_op = 1;  ///< chosen together with the streams
  std::vector<RuleReport> reports;
  std::vector<Error> warnings;
  std::vector<Candidate> considered;  ///< by auto, in the order tried
  std::optional<Estimate> estimate;   ///< set by assign_streams

  std::uint32_t attached_count() const;
  bool synchronises_itself(NodeId n) const { return std::binary_search(self_synchronising.begin(), self_synchronising.end(), n); }
  /// Attached streams that a fork and a join must order against the node.
  std::span<const StreamId> forked(NodeId n) const {
    const auto& list = attached.get(n);
    return list && !synchronises_itself(n) ? std::span<const StreamId>(*list) : std::span<const StreamId>();
  }
  /// Main and attached streams of the model: one where nothing runs.
  std::uint32_t stream_count() const;
  /// The id a node is reported under: stream 0 for one that emits no task.
  StreamId reported_stream(NodeId n) const { return stream_of(n).value_or(StreamId(0)); }
  StreamId new_stream(StreamInfo info = {}) { return streams.push_back(std::move(info)); }
  std::optional<StreamId> stream_of(NodeId n) const {
    return placement[n] ? std::optional<StreamId>(placement[n]->stream) : std::nullopt;
  }
};

enum class Strategy : std::uint8_t { ge, automatic, single };
enum class GroupScope : std::uint8_t { graph, stream };  ///< what a parallel group's new stream is shared over

/// At most `count` new streams of an engine; ge.streamMaxParallelNum.
struct MaxParallel {
  std::string engine;
  std::uint32_t count = 1;
  friend bool operator==(const MaxParallel&, const MaxParallel&) = default;
};

struct AssignOptions {
  std::optional<Strategy> strategy;  ///< nullopt: ge when the input carries engines, auto otherwise
  std::uint32_t streams = 8;         ///< at most this many (auto); labels count, and win
  bool streams_asked = false;        ///< the user gave `streams`: a plan that keeps to one says why
  /// auto: threads per operator x streams <= cores; nullopt lets auto choose the threads.
  std::optional<std::uint32_t> threads_per_op;
  bool single_stream = false;        ///< the option: with labels an error (E02)
  // Knobs of the rule chain; docs/options.md.
  std::vector<MaxParallel> max_parallel;
  bool hcom_parallel = true;              ///< rule all-reduce
  GroupScope parallel_group_scope = GroupScope::graph;
  std::uint32_t attached_per_node = 1;    ///< distinct attached streams a node may hold
  bool attached_in_single_stream = false;
  bool attached_in_dynamic = true;
  bool ineffective_chain = true;          ///< rule ineffective moves whole chains
  bool mdim_label_suffix = true;          ///< labels in a multi-dims branch get the branch's name
  bool dynamic_multi_stream = false;      ///< ENABLE_DYNAMIC_SHAPE_MULTI_STREAM
  bool ac_parallel = false;               ///< AC_PARALLEL_ENABLE
  bool newer_rules = true;                ///< rules mde-group and ineffective; off under compat=ge2023
  std::string excluded_engine;            ///< never chosen for a type: the core type that ge.engineType leaves out
  bool force_streams = false;        ///< auto: use exactly `streams` where the graph allows it, even if predicted slower (measurements, stress)
};

/// One rule of the chain, a value. It returns the assignment with its decisions added.
struct RuleInput {
  const Graph& graph;
  const Target& target;
  const AssignOptions& options;
  const IdVec<NodeId, EngineId>& engines;
};
struct StreamRule {
  std::string name;
  std::string reason;
  std::function<Result<StreamAssignment>(const RuleInput&, StreamAssignment)> apply;
};

/// The chain a strategy runs, in order: the table that can be read (assign/pipeline.cpp).
std::vector<StreamRule> rule_chain(Strategy strategy);

/// Every node that needs a stream has one afterwards; stream ids dense from 0. Errors: E02, E03.
Result<StreamAssignment> assign_streams(const Graph& graph, const Target& target,
                                        const AssignOptions& options);

/// Every node on one stream, labels ignored: the baseline of `--compare single` (not the option
/// single_stream, which refuses labels). Carries its estimate.
StreamAssignment one_stream(const Graph& graph, const Target& target, std::uint32_t threads_per_op);

/// Predicts any assignment on a target with `target.cores` cores.
Estimate estimate(const Graph& graph, const Target& target, const StreamAssignment& on);

/// Everything wrong with an assignment (ids out of range, unplaced nodes, unused ids).
std::vector<Error> verify(const Graph& graph, const StreamAssignment& on);

}  // namespace millstream
