// SPDX-License-Identifier: Apache-2.0
// The graph that a pass is given. Header only.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "gnode.h"

namespace ge __attribute__((visibility("hidden"))) {

enum class DumpFormat : std::uint32_t { kOnnx = 0, kTxt = 1, kReadable = 2 };

/// Valid while the pass runs; afterwards, and of Graph(), it has no nodes.
class Graph {
 public:
  Graph() = default;
  /// A graph of that name without nodes.
  explicit Graph(const std::string& name) : name_(name) {}

  graphStatus GetName(AscendString& name) const {
    name = AscendString(name_);
    return GRAPH_SUCCESS;
  }
  const std::string& GetName() const { return name_; }
  bool IsValid() const {
    mst_str name = {nullptr, 0};
    return api_ != nullptr && api_->graph_name(graph_, &name) == 0;
  }
  /// The nodes of this graph alone, in execution order. Only these may get another stream.
  std::vector<GNode> GetDirectNode() const { return nodes(MST_DIRECT_NODES); }
  /// The nodes of its subgraphs as well.
  std::vector<GNode> GetAllNodes() const { return nodes(MST_ALL_NODES); }

  // Of newer versions of the interface; not offered here: GRAPH_FAILED.
  graphStatus Dump(DumpFormat, std::ostream&) const { return GRAPH_FAILED; }
  graphStatus DumpToFile(DumpFormat, const AscendString&) const { return GRAPH_FAILED; }
  graphStatus GetAttr(const AscendString&, AttrValue&) const { return GRAPH_FAILED; }

  // Editing. A stream pass has a const graph, on which these do not compile.
  graphStatus AddDataEdge(GNode&, std::int32_t, GNode&, std::int32_t) { return GRAPH_FAILED; }
  graphStatus AddControlEdge(GNode&, GNode&) { return GRAPH_FAILED; }
  graphStatus RemoveEdge(GNode&, std::int32_t, GNode&, std::int32_t) { return GRAPH_FAILED; }
  graphStatus RemoveNode(GNode&) { return GRAPH_FAILED; }
  graphStatus RemoveNode(GNode&, bool) { return GRAPH_FAILED; }

 private:
  friend class GNode;
  friend class StreamPassContext;
  Graph(const mst_host_api* api, const mst_graph* graph) : api_(api), graph_(graph) {
    mst_str name = {nullptr, 0};
    if (api_->graph_name(graph_, &name) == 0) name_.assign(name.data, name.size);
  }
  std::vector<GNode> nodes(std::int32_t which) const {
    std::vector<GNode> out;
    const std::size_t count = api_ == nullptr ? 0 : api_->graph_node_count(graph_, which);
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i) out.push_back(GNode(api_, api_->graph_node(graph_, which, i)));
    return out;
  }

  std::string name_;
  const mst_host_api* api_ = nullptr;
  const mst_graph* graph_ = nullptr;
};

inline graphStatus GNode::GetSubgraph(std::uint32_t index, GraphPtr& graph) const {
  if (api_ == nullptr || index >= api_->node_subgraph_count(node_)) return GRAPH_FAILED;
  graph = GraphPtr(new Graph(api_, api_->node_subgraph(node_, index)));
  return GRAPH_SUCCESS;
}

inline graphStatus GNode::GetALLSubgraphs(std::vector<GraphPtr>& graphs) const {
  graphs.clear();
  if (api_ == nullptr) return GRAPH_FAILED;
  const std::size_t count = api_->node_subgraph_count(node_);
  for (std::size_t i = 0; i < count; ++i) graphs.push_back(GraphPtr(new Graph(api_, api_->node_subgraph(node_, i))));
  return GRAPH_SUCCESS;
}

}  // namespace ge
