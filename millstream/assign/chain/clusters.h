// SPDX-License-Identifier: Apache-2.0
// Which nodes of a scope form one cluster: neighbours of one engine and label, merged where that closes no cycle.
#pragma once

#include <cstdint>
#include <vector>

namespace millstream::chain {

/// A DAG by position in execution order: predecessors stand before their node, and may repeat.
struct ClusterGraph {
  std::vector<std::uint64_t> key;          ///< only nodes of one key merge
  std::vector<std::uint32_t> pred_begin = {0};
  std::vector<std::uint32_t> pred;
  std::size_t size() const { return key.size(); }
};

/// By position: the first position of the node's cluster. For each node in order: it merges with every parent cluster
/// of its key from which no second path leads to it. The order in which the parents are tried does not matter: two
/// neighbouring clusters of one key that did not merge have a path through a third key between them, and keep it, so
/// a parent merges exactly if it reaches no other parent. Each such question is a search from both sides that ends
/// with the smaller one; edges between two clusters are kept once, so it visits at most the clusters that are open
/// side by side in graphs like lanes: O(edges x width). A graph made for it can cost more.
std::vector<std::uint32_t> merge_clusters(const ClusterGraph& graph);

}  // namespace millstream::chain
