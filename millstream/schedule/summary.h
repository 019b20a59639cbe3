// SPDX-License-Identifier: Apache-2.0
// What the allocation of streams came to, graph by graph and stream by stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millstream/schedule/schedule.h"

namespace millstream {

/// One logical stream as one graph of the tree sees it.
struct StreamSummary {
  std::uint32_t id = 0;
  std::string user_label;                ///< empty: none
  bool assigned_by_pass = false;         ///< a user's stream pass placed at least one node on it
  std::vector<std::uint32_t> attached;   ///< attached streams of its nodes, ascending
  std::uint32_t physical = 0;            ///< 1 + splits; 0 when the graph has no node on it
  std::uint64_t followed = 0;            ///< slave streams: over its physical streams, the most that one node needs
  std::vector<NodeId> nodes;             ///< in execution order

  /// "logic_stream_id: 0, user_stream_label: 11, is_assigned_by_user_stream_pass: false, attached_stream_ids: ,
  /// physical_model_stream_num: 1, hccl_followed_stream_num: 0." in one line; several ids apart by ",".
  std::string to_string_info() const;
};

struct GraphSummary {
  std::string name;
  bool dynamic = false;
  std::vector<StreamSummary> streams;  ///< by logical id, attached streams included
};

struct AllocationSummary {
  std::vector<GraphSummary> graphs;  ///< the root, then the scopes in their order
  std::uint32_t streams = 0;         ///< physical streams of the model, at least 1
  std::uint32_t events = 0;
  std::uint32_t notifies = 0;
  std::uint32_t pairs = 0;                       ///< kept, boundaries of splits not counted
  std::optional<CompatCounts> compat;            ///< what Graph Engine would keep, when it was counted
  std::vector<std::string> splits;               ///< "stream 3 goes on from stream 0 at NODE: REASON"

  /// Null when there is no such graph.
  const GraphSummary* find(std::string_view graph) const;
};

/// A dynamic root reports one physical stream each. O(nodes + scopes x streams).
AllocationSummary summarize(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const Schedule& schedule);

/// By graph, as in AllocationSummary: the lanes. Of the root all of them; of another graph the tasks of its nodes, with
/// the waits before and the records behind those.
std::vector<std::string> print_by_graph(const Graph& graph, const Schedule& schedule);

/// One line a stream that has nodes, a heading a graph when there are several, then the counts.
std::string print(const AllocationSummary& summary);

}  // namespace millstream
