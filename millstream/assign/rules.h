// SPDX-License-Identifier: Apache-2.0
// The rules, one a file. The driver (pipeline.cpp) compares before and after, and names who decided.
#pragma once

#include "millstream/assign/assignment.h"

namespace millstream {

/// by_label.cpp: nodes with a stream label go to the label's stream.
Result<StreamAssignment> assign_by_label(const RuleInput& in, StreamAssignment on);

/// single.cpp: every node on one stream. Errors: E02 when a node has a label.
Result<StreamAssignment> assign_single(const RuleInput& in, StreamAssignment on);

/// single.cpp: E02 for a node whose label asks for a stream in single-stream mode.
Error label_on_one_stream(const Graph& graph, NodeId n, bool user, std::string_view label, const AssignOptions& options);

/// auto/choose.cpp: the nodes that no rule placed yet, by predicted cost.
Result<StreamAssignment> assign_auto(const RuleInput& in, StreamAssignment on);

/// The driver: runs the rules one behind the other on nothing placed, compares before and after each, and drops streams
/// that no node uses. Errors: those of the rules; E20 where a rule's result does not fit the graph.
Result<StreamAssignment> apply_rules(const RuleInput& input, const std::vector<StreamRule>& rules);

/// What decides the streams when the options leave it open: ge when the target takes the input's engines and the
/// input has some, or when the graph has scopes or dynamic shapes.
Strategy chosen_strategy(const Graph& graph, const Target& target, const AssignOptions& options);

/// Whether the chain for engines runs (assign/chain/): always for ge; for auto and single when the graph has
/// engines, scopes or annotations that only the chain obeys.
bool uses_chain(const Graph& graph, const Target& target, const AssignOptions& options);

}  // namespace millstream
