// SPDX-License-Identifier: Apache-2.0
// The synchronisation of Graph Engine, step by step: insertion edge by edge, three local rules, and what is
// added for loops. SyncMode::compat runs them all; tests and comparisons run some of them on events of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/sync/activation.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {

/// One record and one wait.
struct CompatEvent {
  std::uint32_t id = 0;
  NodeId from;
  NodeId to;
  PairReason reason = PairReason::data;
  friend bool operator==(const CompatEvent&, const CompatEvent&) = default;
};

/// Events in the order of their insertion: the order of each node's list of records and list of waits.
using CompatEvents = std::vector<CompatEvent>;

/// One event for each data edge (output, then consumer), then each control edge, in execution order, between
/// two streams; parallel edges one each; then the exits of scopes and what opens a shared stream in one. `next_id`
/// is the first id. An edge behind an activation of the receiver's label on the sender's stream needs none, nor
/// does an Enter before anything but a StreamActive. Errors: E04.
Result<CompatEvents> insert_events(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                                   std::uint32_t next_id = 0);

/// A node's later waits for the same sender on one stream go.
CompatEvents drop_by_send(const Graph& graph, const StreamAssignment& on, const CompatEvents& events);
/// Of several events from one stream to one node the last sender's stays.
CompatEvents drop_by_receive(const Graph& graph, const StreamAssignment& on, const CompatEvents& events);
/// Events that an activation of the receiver's stream seems to imply, looked up two hops above each activator;
/// not always right with several activators.
CompatEvents drop_by_activate(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                              const CompatEvents& events);
/// Events that a StreamSwitch sends go.
CompatEvents drop_switch_sends(const Graph& graph, const CompatEvents& events);

/// Events from the last node of each stream that a loop activation starts again to the switch before it; streams
/// that hold a StreamSwitch or end in a scope are left out. Ids continue after the largest of `events`.
CompatEvents loop_events(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                         const CompatEvents& events);

/// The whole chain without the loops' events: insert, the three rules, switches.
struct CompatResult {
  CompatEvents events;
  CompatCounts counts;
};
Result<CompatResult> compat_events(const Graph& graph, const StreamAssignment& on, const Activation& activation);

}  // namespace millstream
