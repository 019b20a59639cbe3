// SPDX-License-Identifier: Apache-2.0
// Which physical streams each activation starts once streams are split.
#pragma once

#include <cstdint>
#include <vector>

#include "millstream/schedule/split.h"
#include "millstream/sync/activation.h"

namespace millstream {

/// One StreamActive, StreamSwitch or StreamSwitchN.
struct StartList {
  NodeId node;
  std::vector<std::uint32_t> streams;  ///< physical; of a switch one a branch, in branch order
  bool loop = false;                   ///< starts the next iteration
  bool is_switch = false;
  friend bool operator==(const StartList&, const StartList&) = default;
};

/// A stream that only starts others: one branch of a switch whose label spans several streams.
struct RelayStream {
  NodeId switch_node;
  std::uint32_t branch = 0;
  std::uint32_t stream = 0;             ///< its physical id
  std::vector<std::uint32_t> targets;
  friend bool operator==(const RelayStream&, const RelayStream&) = default;
};

struct Starts {
  std::vector<StartList> lists;      ///< in execution order
  std::vector<RelayStream> relays;   ///< by stream
  std::vector<SyncPair> loop_pairs;  ///< last nodes of streams before the switch that closes their loop
  std::uint32_t streams = 0;         ///< physical streams, relays included
  /// Physical streams that a list or relay names, loop activations left out; ascending.
  std::vector<std::uint32_t> started;
};

struct StartInput {
  const Graph& graph;
  const StreamAssignment& on;
  const Activation& activation;
  const Splitting& splitting;
  SyncMode mode = SyncMode::exact;
};

/// Lists of StreamActives: their streams, then the pieces of these, then attached streams of these that no head
/// stream uses. `compat` names only pieces whose first node lies in
/// the StreamActive's own scope. A piece that begins in a scope, of a stream that nothing starts, is started by the
/// scope's first activation. Loop activations are left as planned.
Result<Starts> update_starts(const StartInput& input);
/// Switches: one stream a branch; a branch whose label is on several streams gets a relay.
/// Errors: control_flow (E22) for a label that no stream carries, for a StreamSwitch without exactly one target.
Result<Starts> expand_switches(const StartInput& input, Starts starts);
/// Loop activations without labels start every stream that nothing else starts. `compat`: also one pair from the last
/// node of each of them to the loop's switch, but for streams that hold a StreamSwitch or end in a scope.
/// Errors: control_flow (E22): no StreamSwitch at most two control edges before the activation.
Result<Starts> start_loops(const StartInput& input, Starts starts);
/// Errors: self_activation (E09); never_activated (E10): a stream that is started, but only from streams that never run.
Result<void> check_starts(const StartInput& input, const Starts& starts);
/// All of them in order.
Result<Starts> plan_starts(const StartInput& input);

}  // namespace millstream
