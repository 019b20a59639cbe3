// SPDX-License-Identifier: Apache-2.0
// How many nodes could run at once at most.
#pragma once

#include <vector>

#include "millstream/assign/tasks.h"

namespace millstream {

struct Width {
  std::vector<NodeId> antichain;  ///< mutually independent nodes, ascending
  bool exact = false;             ///< no larger antichain exists; otherwise it is a lower bound
  std::uint32_t size() const { return static_cast<std::uint32_t>(antichain.size()); }
};

/// Largest antichain among the task nodes for which `counts` holds (empty = all). Up to kExactWidthNodes
/// of them exact, by Dilworth: n - maximum matching of the comparability graph, the antichain by Konig's
/// construction; above it the fuller of the levels from the entry and from the exit, O(nodes + edges).
Width width_of(const TaskGraph& tasks, const IdVec<NodeId, std::uint8_t>& counts);
inline constexpr std::size_t kExactWidthNodes = 1024;

}  // namespace millstream
