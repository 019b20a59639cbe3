// SPDX-License-Identifier: Apache-2.0
// Which nodes a profile's records belong to: by name, never by stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millstream/core/id.h"
#include "millstream/graph/graph.h"
#include "millstream/profile/records.h"

namespace millstream {

struct Joined {
  /// By node: how long it took. Of several runs the median; the nodes of a fused operator share its time evenly, and a
  /// fused node takes as long as its parts together.
  IdVec<NodeId, std::optional<double>> duration_us;
  /// By record, the nodes it stands for; empty: none.
  std::vector<std::vector<NodeId>> nodes_of;
  std::uint64_t nodes = 0;          ///< with a duration
  std::uint64_t records = 0;        ///< that belong to a node
  std::uint64_t named_records = 0;  ///< that name an operator at all
  std::int64_t joined_ns = 0;       ///< time of the records that belong to a node
  std::int64_t named_ns = 0;
};

/// A name stands for a node of that name. A name that none has is taken apart into names of nodes, and a node whose name
/// no record has into names of records, where the parts, at most one separator ("/", "_", "+", ",", ";", "|") between them, make up
/// the whole; the fewest parts count. O(records log nodes) for plain names.
Joined join(const Graph& graph, const std::vector<ProfileRecord>& records);

/// "profile: 12 of 14 nodes measured, not \"a\", \"b\"; 24 of 30 records, 98.2 % of their 5.000 us, belong to nodes". At most
/// three nodes without a time are named.
std::string to_string(const Joined& joined, const Graph& graph);

}  // namespace millstream
