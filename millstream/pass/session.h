// SPDX-License-Identifier: Apache-2.0
// What a pass sees and may do while it runs: the table of functions of mst_pass_abi.h over one graph and one assignment.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millstream/pass/pass.h"

namespace millstream {

const mst_host_api& host_api();

/// From construction to destruction its handles live; calls with others fail. Calls may come from any thread.
class PassSession {
 public:
  /// `rule` is what moved nodes are decided by. The graph and the values must outlive the session.
  PassSession(const Graph& graph, ScopeId scope, StreamAssignment on, RuleId rule,
              const std::vector<std::pair<std::string, std::string>>& values);
  ~PassSession();
  PassSession(const PassSession&) = delete;
  PassSession& operator=(const PassSession&) = delete;

  const mst_graph* graph() const;
  mst_stream_ctx* context() const;

  /// Ends the session's handles and hands over what the pass decided.
  StreamAssignment take();
  const std::vector<std::string>& messages() const { return messages_; }  ///< of SetErrorMessage
  const std::vector<std::string>& refused() const { return refused_; }    ///< calls that changed nothing, the first few
  std::size_t refused_count() const { return refused_count_; }

 private:
  friend struct HostCalls;
  /// The nodes of one Graph: the root's, or those of a body that the host drives.
  struct Tree {
    const Graph* graph;
    std::uint64_t first;  ///< number of its node 0
    std::size_t first_view;
    // Made when they are first asked for.
    std::vector<std::uint32_t> consumer_begin;  ///< by value
    std::vector<std::pair<NodeId, std::uint32_t>> consumers;
    std::vector<std::uint32_t> control_begin[2];  ///< by node; MST_INPUTS, MST_OUTPUTS
    std::vector<NodeId> control[2];
  };
  /// One graph as the interface shows it.
  struct View {
    std::size_t tree;
    ScopeId scope;
    bool listed[2] = {false, false};
    std::vector<std::uint64_t> nodes[2];  ///< numbers; MST_DIRECT_NODES, MST_ALL_NODES
  };
  struct Place {
    Tree* tree = nullptr;
    NodeId node;
  };

  void end();
  void add_tree(const Graph& graph);
  Place place(std::uint64_t number);
  std::size_t view_of(const Place& at) const { return at.tree->first_view + at.tree->graph->scope_of(at.node).index; }
  const std::vector<std::uint64_t>& nodes_of(std::size_t view, bool all);
  std::vector<std::size_t> views_under(const Place& at);
  static void index_consumers(Tree& tree);
  static void index_control(Tree& tree);
  void refuse(std::string text);
  std::int32_t set_stream(std::uint64_t number, std::int64_t id);

  std::uint64_t id_ = 0;
  std::vector<Tree> trees_;
  std::vector<View> views_;
  std::uint64_t node_count_ = 0;
  std::size_t own_view_;
  StreamAssignment on_;
  RuleId rule_;
  const std::vector<std::pair<std::string, std::string>>& values_;
  std::vector<std::string> messages_;
  std::vector<std::string> refused_;
  std::size_t refused_count_ = 0;
};

}  // namespace millstream
