// SPDX-License-Identifier: Apache-2.0
// The rule chain for graphs with engines: a list of rules on a given state (what a recorded case needs), and
// why a node stands where it stands.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/assign/assignment.h"

namespace millstream {

/// Where a chain starts.
struct ChainSeed {
  /// By scope, in rank order: the nodes of each cluster, in execution order. A scope without an entry, or with an
  /// empty one, is clustered as usual. Nodes in no cluster stay without a stream.
  std::vector<std::vector<std::vector<NodeId>>> clusters;
  std::uint32_t next_stream = 0;  ///< the first id that a rule may hand out
  /// Streams that nodes have before the first rule; empty = none has one. Ids count towards `next_stream`.
  IdVec<NodeId, std::optional<StreamId>> preset;
  bool compact = true;  ///< renumber the used ids to 0, 1, ... afterwards, keeping their order
};

/// Runs exactly these rules, scope by scope, parents first. Names are ours ("by-label") or the ecosystem's
/// ("AssignByLabel", with or without "Pass"): mde-group UpdateForMdeGroup, by-label AssignByLabel, independent
/// IndependentStream, by-dependency AssignByDependency, node-stream NodeStreamUpdate, parallel-group
/// UpdateForParallelGroup, all-reduce AllReduceParallel, skipped-engine UpdateForSkippedEngine, ineffective
/// OptimizeIneffectiveMultiStream, single-stream SingleStream. Attached streams are not assigned, nodes may stay
/// without a stream, and an assignment may be sparse without `compact`. Errors: bad_option for an unknown rule;
/// those of the rules.
Result<StreamAssignment> run_rules(const Graph& graph, const Target& target, const AssignOptions& options,
                                   std::span<const std::string> rules, const ChainSeed& seed);

/// Attached streams behind the main ones, for every node that asks for them. Errors: E14, E16.
Result<StreamAssignment> assign_attached(const Graph& graph, const Target& target, const AssignOptions& options, StreamAssignment on);

/// One sentence for each decision about the node, in the order they were made: "by-dependency: ...". Runs the rules
/// again, so it costs what assign_streams costs and keeps nothing for the others.
Result<std::vector<std::string>> explain_placement(const Graph& graph, const Target& target,
                                                   const AssignOptions& options, NodeId node);

/// "engine:count,engine:count", blanks around the parts allowed; ge.streamMaxParallelNum. Errors: E21 naming the piece.
Result<std::vector<MaxParallel>> parse_max_parallel(std::string_view text);

}  // namespace millstream
