// SPDX-License-Identifier: Apache-2.0
// The dependencies of a graph as adjacency lists: what every later stage reads instead of edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millstream/graph/graph.h"

namespace millstream {

/// Direct predecessors and successors of each node over data edges (inputs and captures) and control
/// edges, each neighbour once, ascending by id. Loop-back edges are left out. In a graph with scopes, a node
/// without predecessors in its own scope comes after the scope's parent node, and what comes after a
/// parent node comes after the end nodes of its scopes as well (NetOutput where none is marked).
/// O(nodes + edges).
class Dependencies {
 public:
  explicit Dependencies(const Graph& graph);
  std::span<const NodeId> predecessors(NodeId n) const { return list(pred_begin_, pred_, n); }
  std::span<const NodeId> successors(NodeId n) const { return list(succ_begin_, succ_, n); }
  std::size_t node_count() const { return pred_begin_.size() - 1; }
  std::size_t edge_count() const { return pred_.size(); }

 private:
  static std::span<const NodeId> list(const std::vector<std::uint32_t>& begin,
                                      const std::vector<NodeId>& pool, NodeId n) {
    return {pool.data() + begin[n.index], begin[n.index + 1] - begin[n.index]};
  }
  std::vector<std::uint32_t> pred_begin_, succ_begin_;
  std::vector<NodeId> pred_, succ_;
};

}  // namespace millstream
