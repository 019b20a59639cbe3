// SPDX-License-Identifier: Apache-2.0
// The computation graph: nodes, values, edges, nested graphs, rare annotations. A value; no stage after
// import edits it to say something about streams.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "millstream/core/error.h"
#include "millstream/core/id.h"
#include "millstream/core/result.h"
#include "millstream/core/strings.h"
#include "millstream/graph/attrs.h"
#include "millstream/graph/tensor.h"

namespace millstream {

using NodeId = Id<struct NodeTag>;    ///< dense, in list order
using ValueId = Id<struct ValueTag>;  ///< a tensor: graph input, constant, outer value or node output
using BodyId = Id<struct BodyTag>;    ///< a nested graph
using DescId = Id<struct DescTag>;
using ScopeId = Id<struct ScopeTag>;  ///< a graph of the tree whose nodes stand in one list: 0 is the root

enum class ValueKind : std::uint8_t {
  input,     ///< bound by the caller for each run
  constant,  ///< holds a Tensor
  outer,     ///< in a body: a value of the enclosing graph, by name
  output,    ///< produced by a node
};

/// One input slot of a node; ONNX lets an optional input be left out.
class InputRef {
 public:
  InputRef() = default;
  InputRef(ValueId value) : raw_(value.index) {}  // NOLINT: implicit by design
  std::optional<ValueId> get() const {
    return raw_ == kAbsent ? std::nullopt : std::optional<ValueId>(ValueId(raw_));
  }
  bool absent() const { return raw_ == kAbsent; }
  friend bool operator==(InputRef, InputRef) = default;

 private:
  static constexpr std::uint32_t kAbsent = 0xffffffffu;
  std::uint32_t raw_ = kAbsent;
};

/// A rare fact about few nodes: costs nothing until the first is set, then one slot a node.
template <class IdT, class T>
class SideTable {
 public:
  const std::optional<T>& get(IdT id) const {
    static const std::optional<T> none;
    return id.index < items_.size() ? items_[id] : none;
  }
  void set(IdT id, T value) {
    if (id.index >= items_.size()) items_.resize(id.index + 1);
    items_[id] = std::move(value);
  }
  bool empty() const { return items_.empty(); }
  friend bool operator==(const SideTable& a, const SideTable& b) {
    const std::size_t n = std::max(a.items_.size(), b.items_.size());
    for (std::size_t i = 0; i < n; ++i) {
      if (a.get(IdT(i)) != b.get(IdT(i))) return false;
    }
    return true;
  }

 private:
  IdVec<IdT, std::optional<T>> items_;
};

struct Body {
  std::string attribute;  ///< "then_branch", "body", ...
  BodyId body;
};

struct ControlEdge {
  NodeId from;
  NodeId to;
  friend bool operator==(const ControlEdge&, const ControlEdge&) = default;
};

/// A graph whose nodes stand in the same list as those of the graph that owns it, so that streams can be
/// shared over the tree. Parents stand before children. A plain graph has the root scope only.
struct Scope {
  std::string name;
  std::optional<NodeId> parent_node;  ///< the node that runs it; the root has none
  ScopeId parent;                     ///< scope of the parent node; the root's is itself
  bool dynamic = false;               ///< shapes known only at run time: rules of their own decide its streams
  friend bool operator==(const Scope&, const Scope&) = default;
};

/// Streams beside its own that a node's kernel uses. Nodes with one non-empty key share them.
struct AttachedRequest {
  std::int64_t count = 1;
  std::string reuse_key;
  friend bool operator==(const AttachedRequest&, const AttachedRequest&) = default;
};

/// What a node of lowered control flow is for.
struct Roles {
  bool rts_label = false;     ///< label or activation of control flow: stays on the parent's stream
  bool first_active = false;  ///< the StreamActive that opens a scope
  bool end_node = false;      ///< closes a scope: consumers of the parent node wait for it
  bool loop_active = false;   ///< the StreamActive that starts the next iteration
  bool true_branch = false;   ///< side of a StreamSwitch
  friend bool operator==(const Roles&, const Roles&) = default;
};

/// Rare annotations, by node. Text format: `@label("s1")`, `@cost(3)`, ... docs/ge-map.md has the names they
/// carry in dumps.
struct Annotations {
  SideTable<NodeId, StringId> label;           ///< stream label
  SideTable<NodeId, StringId> user_label;      ///< user stream label
  SideTable<NodeId, std::int64_t> priority;    ///< of the user label's stream; smaller is more urgent
  SideTable<NodeId, StringId> parallel_group;
  SideTable<NodeId, StringId> engine;          ///< engine fixed by the input
  SideTable<NodeId, double> cost;              ///< microseconds (virtual time units) on one worker
  SideTable<NodeId, bool> inner_parallel;      ///< of a user label; false: one stream whatever the engines
  SideTable<NodeId, std::int64_t> new_stream;  ///< nodes with one number share a new stream, before all rules
  SideTable<NodeId, std::int64_t> preset_stream;  ///< stream that the input (a dump) already gives the node
  SideTable<NodeId, std::vector<AttachedRequest>> attached;
  SideTable<NodeId, std::vector<StringId>> activates;  ///< stream labels that a StreamActive or StreamSwitch starts
  SideTable<NodeId, std::vector<std::int64_t>> activates_streams;  ///< the same as stream ids (dumps)
  SideTable<NodeId, Roles> roles;
  SideTable<NodeId, StringId> continuous;      ///< nodes of one label stay on one physical stream
  SideTable<NodeId, StringId> batch;           ///< branch of a multi-dims model
  SideTable<NodeId, std::vector<StringId>> multiplex;  ///< "SendTo;peer;id" or "RecvFrom;peer;id", as written
  SideTable<NodeId, std::int64_t> thread_scope;  ///< handled by another scheduler: no stream
  SideTable<NodeId, std::int64_t> used_streams;  ///< slave streams that a communication operator needs
  friend bool operator==(const Annotations&, const Annotations&) = default;
};

/// The text that a graph was read from, for messages.
struct SourceText {
  std::string file;
  std::string text;  ///< empty when the file is large
  std::uint32_t first_line = 1;
};

class Graph {
 public:
  explicit Graph(std::string name = "graph") : name_(std::move(name)) {}
  Graph(const Graph& other);
  Graph& operator=(const Graph& other);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  // -- whole graph
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  /// Version of the default ONNX operator set whose semantics the nodes follow.
  int opset() const { return opset_; }
  void set_opset(int version) { opset_ = version; }
  std::size_t node_count() const { return node_type_.size(); }
  std::size_t value_count() const { return value_name_.size(); }
  IdRange<NodeId> nodes() const { return ids<NodeId>(node_count()); }
  IdRange<ValueId> values() const { return ids<ValueId>(value_count()); }
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  const StringPool& strings() const { return strings_; }
  StringId intern(std::string_view text) { return strings_.intern(text); }
  std::string_view text(StringId id) const { return strings_[id]; }

  // -- nodes
  StringId type_id(NodeId n) const { return node_type_[n]; }
  std::string_view type(NodeId n) const { return strings_[node_type_[n]]; }
  std::string_view name(NodeId n) const { return strings_[node_name_[n]]; }
  std::span<const InputRef> inputs(NodeId n) const {
    return {input_pool_.data() + input_begin_[n.index],
            input_begin_[n.index + 1] - input_begin_[n.index]};
  }
  /// Output values, consecutive. An output left out in the source has an empty name.
  IdRange<ValueId> outputs(NodeId n) const {
    return IdRange<ValueId>(output_begin_[n.index], output_begin_[n.index] + output_count_[n.index]);
  }
  const Attrs& attrs(NodeId n) const;
  /// Nested graphs of this node, in attribute order.
  std::span<const Body> bodies(NodeId n) const;
  const Graph& body(BodyId id) const { return *bodies_[id.index]; }
  std::size_t body_count() const { return bodies_.size(); }
  /// Values of this graph that the node's bodies (at any depth) read by name; data edges like inputs.
  std::span<const ValueId> captures(NodeId n) const;

  // -- values
  std::string_view name(ValueId v) const { return strings_[value_name_[v]]; }
  ValueKind kind(ValueId v) const { return value_kind_[v]; }
  std::optional<NodeId> producer(ValueId v) const {
    return value_kind_[v] == ValueKind::output ? std::optional<NodeId>(NodeId(value_origin_[v]))
                                               : std::nullopt;
  }
  const TensorDesc& desc(ValueId v) const { return descs_[value_desc_[v].index]; }
  /// The constant's tensor, or null.
  const Tensor* constant(ValueId v) const {
    return value_kind_[v] == ValueKind::constant ? &constants_[value_origin_[v]] : nullptr;
  }

  // -- edges and order
  std::span<const ControlEdge> control_edges() const { return control_edges_; }
  /// Edges that close a loop; not part of the DAG.
  std::span<const ControlEdge> loop_back_edges() const { return loop_back_edges_; }
  /// Execution order: a permutation of the nodes that respects edges (list order unless set).
  const std::vector<NodeId>& order() const { return order_; }
  /// True when the input fixed the order although edges disagree; then `order` is taken as it is.
  bool order_is_fixed() const { return order_fixed_; }

  const Annotations& annotations() const { return annotations_; }
  Annotations& annotations() { return annotations_; }

  // -- scopes: the graphs of a flattened tree
  std::size_t scope_count() const { return scopes_.empty() ? 1 : scopes_.size(); }
  IdRange<ScopeId> scopes() const { return ids<ScopeId>(scope_count()); }
  const Scope& scope(ScopeId s) const;
  ScopeId scope_of(NodeId n) const { return n.index < node_scope_.size() ? node_scope_[n] : ScopeId(0); }
  /// Scopes whose parent node is n, ascending. Linear in the scopes.
  std::vector<ScopeId> scopes_under(NodeId n) const;
  ScopeId add_scope(Scope scope);
  void set_scope(NodeId n, ScopeId s);
  bool dynamic() const { return !scopes_.empty() && scopes_[ScopeId(0)].dynamic; }
  void set_dynamic(bool dynamic);

  // -- where a node stands in the text it was read from; no part of what the graph means
  std::optional<Where> where(NodeId n) const;
  void set_source(std::shared_ptr<const SourceText> source) { source_ = std::move(source); }
  void set_place(NodeId n, std::uint32_t line, std::uint32_t column);
  /// The place of a node of another graph, and that graph's text.
  void copy_place(const Graph& from, NodeId a, NodeId b);

  // -- look-up by name: linear; build an index for many.
  std::optional<NodeId> find_node(std::string_view name) const;
  std::optional<ValueId> find_value(std::string_view name) const;

  // -- building (GraphBuilder-level calls: names are checked by verify, not here)
  ValueId add_input(std::string_view name, TensorDesc desc);
  ValueId add_constant(std::string_view name, Tensor tensor);
  ValueId add_outer(std::string_view name, TensorDesc desc);
  struct NodeSpec {
    std::string_view type;
    std::string_view name;  ///< empty: the first output's name
    std::span<const InputRef> inputs;
    std::span<const std::string_view> outputs;
    Attrs attrs = {};
  };
  NodeId add_node(const NodeSpec& spec);
  /// Appends a nested graph to a node and returns its id; captures are computed by `finish`.
  BodyId add_body(NodeId node, std::string attribute, Graph body);
  Graph& mutable_body(BodyId id) { return *bodies_[id.index]; }
  void add_output(ValueId v) { outputs_.push_back(v); }
  void add_control_edge(NodeId from, NodeId to) { control_edges_.push_back({from, to}); }
  void add_loop_back_edge(NodeId from, NodeId to) { loop_back_edges_.push_back({from, to}); }
  void set_desc(ValueId v, TensorDesc desc);
  void set_attrs(NodeId n, Attrs attrs);
  void set_order(std::vector<NodeId> order, bool fixed) {
    order_ = std::move(order);
    order_fixed_ = fixed;
  }
  /// Sets order (a deterministic topological one if list order does not respect the edges and none is
  /// fixed), default outputs (values no node reads, when none are declared) and captures; then verify.
  /// Errors: bad_graph (duplicate names, cycle, dangling ids), with the first offenders named.
  Result<void> finish();

 private:
  void compute_captures();
  Result<void> compute_order();
  DescId intern_desc(TensorDesc desc);
  ValueId add_value(std::string_view name, ValueKind kind, std::uint32_t origin, TensorDesc desc);

  std::string name_;
  int opset_ = 23;
  StringPool strings_;

  IdVec<NodeId, StringId> node_type_;
  IdVec<NodeId, StringId> node_name_;
  std::vector<std::uint32_t> input_begin_ = {0};
  std::vector<InputRef> input_pool_;
  std::vector<std::uint32_t> output_begin_;
  std::vector<std::uint16_t> output_count_;
  std::vector<std::uint32_t> node_attrs_;  // index into attrs_pool_ + 1, 0 = none; may be shorter than the nodes
  std::vector<Attrs> attrs_pool_;
  std::vector<std::unique_ptr<Graph>> bodies_;
  std::vector<std::pair<NodeId, std::vector<Body>>> node_bodies_;       // sorted by node
  std::vector<std::pair<NodeId, std::vector<ValueId>>> node_captures_;  // sorted by node

  IdVec<ValueId, StringId> value_name_;
  IdVec<ValueId, ValueKind> value_kind_;
  IdVec<ValueId, std::uint32_t> value_origin_;  // node, index into constants_, or 0
  IdVec<ValueId, DescId> value_desc_;
  std::vector<TensorDesc> descs_ = {TensorDesc{}};
  std::vector<Tensor> constants_;

  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<ControlEdge> control_edges_;
  std::vector<ControlEdge> loop_back_edges_;
  std::vector<NodeId> order_;
  bool order_fixed_ = false;
  Annotations annotations_;
  IdVec<ScopeId, Scope> scopes_;        // empty: the root alone, static
  IdVec<NodeId, ScopeId> node_scope_;   // may be shorter than the nodes: the rest is in the root
  std::shared_ptr<const SourceText> source_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places_;  // line and column by node; may be shorter
  std::unordered_map<std::string, std::uint32_t> desc_index_;  // by text; looked up only, never iterated
};

/// Everything wrong with a graph: unique names, edges in range, acyclic without loop-back edges, order a
/// permutation that respects edges unless fixed, bodies alike. Empty = sound.
std::vector<Error> verify(const Graph& graph);

/// Structural hash of nodes, values, edges, attributes, constants' bytes, bodies and annotations, equal
/// on every machine (64-bit FNV-1a over a canonical byte stream).
std::uint64_t hash_of(const Graph& graph);

}  // namespace millstream
