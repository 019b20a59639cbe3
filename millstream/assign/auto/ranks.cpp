// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "millstream/assign/auto/list_schedule.h"

namespace millstream {

IdVec<NodeId, double> upward_ranks(const TaskGraph& tasks, const IdVec<NodeId, double>& durations,
                                   double sync_us) {
  IdVec<NodeId, double> rank(tasks.node_count(), 0);
  const auto order = tasks.order();
  // `rank` first gathers the longest way behind a node; its own duration is added when it is reached.
  for (std::size_t i = order.size(); i-- > 0;) {
    const NodeId v = order[i];
    rank[v] += durations[v];
    const auto preds = tasks.predecessors(v);
    for (const NodeId u : preds) {
      const bool chain = preds.size() == 1 && tasks.successors(u).size() == 1;
      rank[u] = std::max(rank[u], rank[v] + (chain ? 0 : sync_us));
    }
  }
  return rank;
}

}  // namespace millstream
