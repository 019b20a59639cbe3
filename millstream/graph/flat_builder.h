// SPDX-License-Identifier: Apache-2.0
// The state of one flatten: the flat graph that grows, the names taken, the next label.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

class FlatBuilder {
 public:
  explicit FlatBuilder(const Graph& root);
  Result<Graph> build(const Graph& root);

 private:
  /// One graph of the tree while its nodes are copied.
  struct Level {
    const Graph& source;
    ScopeId scope;
    std::string prefix;
    IdVec<ValueId, std::optional<ValueId>> values;  ///< by the source's id: the flat value, once it exists
    IdVec<NodeId, std::optional<NodeId>> nodes;
    std::optional<std::int64_t> thread_scope;       ///< of the node that owns it: another scheduler's
    std::unordered_map<std::string_view, ValueId> by_name;  ///< the source's values; filled when a body asks
  };

  // -- copying (flatten.cpp)
  static std::string fresh(std::unordered_set<std::string>& taken, std::string wanted);
  NodeId add_node(ScopeId scope, std::string_view type, std::string name, std::vector<InputRef> inputs,
                  std::vector<TensorDesc> outputs, Attrs attrs = {});
  ValueId add_constant(std::string name, Tensor tensor);
  Level open(const Graph& source, ScopeId scope, std::string prefix) const;
  Result<void> add_values(Level& level, Level* outer);
  Result<NodeId> copy_node(Level& level, NodeId n);
  /// The flat nodes of the level and of the scopes in it, as they run.
  Result<std::vector<NodeId>> copy_nodes(Level& level);
  void rename_peers(const Level& level);

  // -- control flow (flatten_control.cpp). Each lowering gives the nodes of its scopes, as they run.
  struct Owner;
  struct Frame;
  Result<std::vector<NodeId>> lower_bodies(Level& level, NodeId n, NodeId flat);
  Result<void> lower_branches(Owner& owner);
  Result<void> lower_call(Owner& owner);
  Result<void> lower_while(Owner& owner);
  Result<void> lower_counted(Owner& owner);
  Result<void> keep_apart(Owner& owner);
  ScopeId add_scope(const Owner& owner, std::string_view attribute, bool dynamic);
  NodeId add_label_node(Owner& owner, ScopeId scope, std::string_view type, std::string name, std::vector<InputRef> inputs,
                        Attrs attrs, Roles roles = {});
  void open_frame(Owner& owner, Frame& frame, const std::string& label_name, std::optional<std::int64_t> label,
                  const std::string& active_name);
  ValueId add_data(Owner& owner, ScopeId scope, std::string name, std::int64_t index, TensorDesc desc);
  Result<Level> copy_body(Owner& owner, Frame& frame, const Body& body);
  Result<void> add_net_output(Owner& owner, Frame& frame, const Level& level, std::string_view attribute,
                              std::vector<InputRef> first = {});
  NodeId output_of(const Owner& owner, const Frame& frame) const;
  void close_frame(const Frame& frame, NodeId closing);
  void close_loop(Owner& owner, const Frame& turn, NodeId cond_label, std::int64_t again, std::int64_t leave);

  Graph graph_;
  std::unordered_set<std::string> node_names_, value_names_;  // looked up only, never walked
  std::vector<ControlEdge> control_;
  std::int64_t next_label_ = 0;
  bool order_fixed_ = false;
};

}  // namespace millstream
