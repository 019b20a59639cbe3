// SPDX-License-Identifier: Apache-2.0
// What the rules of the chain read and change. Internal to assign/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/assign/chain.h"
#include "millstream/assign/chain/clusters.h"

namespace millstream::chain {

inline constexpr std::int32_t kNoStream = -1;
inline constexpr std::uint32_t kNoCluster = 0xffffffffu;
using ClusterId = Id<struct ClusterTag>;  ///< rank order within the scope at hand

struct Cluster {
  EngineId engine;
  std::uint32_t label = 0;  ///< into ChainState::labels; 0 = none
  std::uint32_t begin = 0, end = 0;  ///< into ChainState::members
  std::int32_t stream = kNoStream;
  bool pinned = false;  ///< no later rule moves it or shares its stream
  RuleId decided_by;
};

/// Whether a node of the type runs its body once, always: a PartitionedCall.
bool is_call(std::string_view type);

/// The label that counts for a node: its user label, else its stream label.
struct Label {
  std::string text;
  bool user = false;
};

/// The state of a chain run. Ids of streams are raw: they grow over rules and scopes and are compacted at the end.
class ChainState {
 public:
  ChainState(const Graph& graph, const Target& target, const AssignOptions& options,
             const IdVec<NodeId, EngineId>& engines);

  const Graph& graph;
  const Target& target;
  const AssignOptions& options;
  const IdVec<NodeId, EngineId>& engines;

  // -- over all scopes
  IdVec<NodeId, std::int32_t> stream;
  IdVec<NodeId, RuleId> decided_by;
  IdVec<NodeId, std::uint8_t> pinned;       ///< empty: none is
  IdVec<NodeId, std::uint32_t> label;       ///< into labels; empty: none has one
  std::vector<Label> labels = {Label{}};
  std::uint32_t next_stream = 0;
  std::vector<StreamInfo> infos;            ///< by raw id
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> user_streams;  ///< by region and label
  std::map<std::int32_t, NodeId> priority_from;  ///< by stream of a user label: whose priority it has
  std::uint32_t cluster_total = 0;
  std::vector<Error> warnings;
  bool hcom_parallel = true;

  // -- the scope at hand
  ScopeId scope;
  std::int32_t default_stream = kNoStream;  ///< of the scope's parent node
  std::vector<NodeId> nodes;                ///< in execution order; a position indexes it
  IdVec<NodeId, std::uint32_t> position;
  ClusterGraph edges;                       ///< in-scope edges by position: data by input, then control
  std::vector<std::uint32_t> succ_begin, succ;
  IdVec<ClusterId, Cluster> clusters;
  std::vector<NodeId> members;              ///< of the clusters, each in execution order
  IdVec<NodeId, std::uint32_t> cluster_of;  ///< kNoCluster: pooled input data, or another scope's

  // -- auto instead of by-dependency
  IdVec<NodeId, std::int32_t> predicted;    ///< stream of each node that auto placed; empty: it did not run
  std::optional<StreamAssignment> auto_result;  ///< threads, estimate and what was considered

  // -- why, for one node
  std::optional<NodeId> watch;
  std::vector<std::string> said;

  std::size_t size() const { return nodes.size(); }
  const Engine& engine(NodeId n) const { return target.engines[engines[n]]; }
  const Engine& engine(const Cluster& c) const { return target.engines[c.engine]; }
  std::int32_t new_stream(StreamInfo info = {});
  std::uint32_t label_of(NodeId n) const { return label.empty() ? 0 : label[n]; }
  bool is_pinned(NodeId n) const { return !pinned.empty() && pinned[n] != 0; }
  void pin(NodeId n);
  bool is_rts(NodeId n) const;
  /// An empty name is no group.
  std::optional<StringId> group_of(NodeId n) const;
  bool is_free(NodeId n) const { return stream[n] != kNoStream && !is_pinned(n) && !is_rts(n); }
  std::optional<ClusterId> cluster(NodeId n) const {
    return cluster_of[n] == kNoCluster ? std::nullopt : std::optional<ClusterId>(ClusterId(cluster_of[n]));
  }
  /// First node's name and how many more: "{a, 3 nodes}".
  std::string words(const Cluster& c) const;
  std::string words_label(std::uint32_t label) const;
  /// A raw stream id in a sentence; replaced by the final id.
  static std::string stream_word(std::int32_t raw);
  /// The user labels of nodes in one region share streams: the root and call bodies, or one body of control flow.
  std::uint32_t region() const;

  void say(NodeId n, const std::function<std::string()>& text) {
    if (watch && *watch == n) said.push_back(text());
  }
  void say(ClusterId c, const std::function<std::string()>& text) {
    if (watch && cluster_of[*watch] == c.index && graph.scope_of(*watch) == scope) said.push_back(text());
  }

  /// Lists the scope's nodes and edges. O(nodes + edges) of the scope.
  void enter(ScopeId s, std::vector<NodeId> scope_nodes);
  void make_clusters();
  Result<void> take_clusters(const std::vector<std::vector<NodeId>>& given);
  Result<void> read_labels();

 private:
  std::vector<std::uint32_t> control_begin_;
  std::vector<NodeId> control_;
};

/// What a rule says of itself, and what it does to the scope at hand.
struct ChainRule {
  std::string_view name;
  std::string_view ecosystem;
  std::string_view reason;
  bool on_clusters;  ///< changes the clusters' streams; others change the nodes'
  Result<void> (*apply)(ChainState&);
};

Result<void> mde_group(ChainState& s);
Result<void> by_label(ChainState& s);
Result<void> independent(ChainState& s);
Result<void> by_dependency(ChainState& s);
Result<void> by_prediction(ChainState& s);
Result<void> single_stream(ChainState& s);
Result<void> node_stream(ChainState& s);
Result<void> parallel_group(ChainState& s);
Result<void> all_reduce(ChainState& s);
Result<void> skipped_engine(ChainState& s);
Result<void> ineffective(ChainState& s);

/// The rules of a strategy in order.
std::vector<ChainRule> chain_of(Strategy strategy, const AssignOptions& options);
/// The whole chain, attached streams included. `watch` collects that node's reasons in `said`.
struct ChainResult {
  StreamAssignment on;
  std::vector<std::string> said;
};
Result<ChainResult> run_chain(const Graph& graph, const Target& target, const AssignOptions& options,
                              const IdVec<NodeId, EngineId>& engines, Strategy strategy,
                              std::optional<NodeId> watch);
/// Dynamic graphs: rules of their own (dynamic.cpp).
Result<ChainResult> run_dynamic(const Graph& graph, const Target& target, const AssignOptions& options,
                                const IdVec<NodeId, EngineId>& engines, std::optional<NodeId> watch);
/// Ids in the sentences become final ones; `to` by raw id.
void finish_words(std::vector<std::string>& said, const std::vector<std::int32_t>& to);
/// Labels that cannot help: more than the graph is wide, one a layer, no gain.
void warn_of_labels(const Graph& graph, const Target& target, StreamAssignment& on);

}  // namespace millstream::chain
