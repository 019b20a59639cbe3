// SPDX-License-Identifier: Apache-2.0
// ONNX bytes to a Graph: scopes of names, nested graphs, inlined functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "millstream/import/import.h"
#include "millstream/import/messages.h"
#include "millstream/import/tensor_data.h"
#include "millstream/ops/missing.h"

namespace millstream::onnx_file {

/// A graph under construction and the names its nodes have used; the top level's or a body's.
struct GraphState {
  Graph graph;
  std::vector<std::uint8_t> node_names;                // by StringId: bit 0 taken, bit 1 wanted by a named node
  std::unordered_set<std::string_view> outputs;        // names that the top level must produce
  std::size_t unnamed = 0;
};

/// What the attributes of a function mean in one call of it.
struct Call {
  std::map<std::string_view, AttributeMessage> attributes;
};

/// The names that nodes of one graph, or of one call of a function, can read.
struct Scope {
  GraphState& state;
  Scope* outer = nullptr;  ///< of the enclosing graph, for a body; calls see nothing outside
  const Call* call = nullptr;
  /// "" at the top level and in its bodies, where values keep their names. In a call (and bodies in it),
  /// values are called PREFIX/NAME.
  std::string prefix;
  int opset = 0;
  std::unordered_map<std::string_view, InputRef> names;
  std::map<std::string_view, std::string> renamed = {};  ///< a call's outputs: the caller's names
};

class Reader {
 public:
  Reader(std::string_view bytes, std::string name, std::string folder, const ImportOptions& options)
      : bytes_(bytes), name_(std::move(name)), options_(options), tensors_(std::move(folder), options.max_memory) {}

  /// The finished graph; shapes are hints only. Errors: those of import_onnx except shape.
  Result<Graph> read();

 private:
  // onnx_graph.cpp
  Result<Graph> read_graph(std::string_view message, Scope* outer, const std::string& name, int depth);
  Result<void> add_initializers(std::string_view message, Scope& scope);
  Result<void> add_inputs(std::string_view message, Scope& scope, bool is_body);
  Result<void> add_outputs(std::string_view message, Scope& scope);
  Result<void> add_hints(std::string_view message, Scope& scope);
  Result<void> add_nodes(std::string_view message, std::uint32_t node_field, Scope& scope, int depth);
  /// With `name_dims`, unknown dimensions without a name are called VALUE.AXIS.
  Result<TensorDesc> read_desc(const ValueMessage& value, std::string_view what, bool name_dims = false);
  Result<InputRef> resolve(Scope& scope, std::string_view name);
  Result<void> define(Scope& scope, std::string_view name, InputRef value);
  Result<void> add_constant(Scope& scope, std::string_view name, Tensor tensor);
  std::string value_name(Scope& scope, std::string_view name);
  std::string unique_value_name(std::string base);
  std::string node_name(Scope& scope, std::string_view name, std::string_view type);

  // onnx_node.cpp
  Result<void> add_node(const NodeMessage& node, Scope& scope, int depth);
  Result<void> add_constant_node(const NodeMessage& node, Scope& scope);
  Result<std::optional<AttributeMessage>> resolve_attribute(std::string_view message, const Scope& scope);
  Result<std::vector<InputRef>> read_inputs(const NodeMessage& node, Scope& scope);

  // onnx_function.cpp
  /// Counts memory that inlining takes: a small file must not expand without bound.
  Result<void> spend(std::uint64_t bytes);
  Result<void> read_functions(const ModelMessage& model);
  const FunctionMessage* find_function(const NodeMessage& node) const;
  Result<void> inline_call(const FunctionMessage& function, const NodeMessage& node, Scope& scope, int depth);
  Result<void> collect_user_names(std::string_view graph, int depth);

  // onnx.cpp
  Result<void> check_versions(const ModelMessage& model);
  Result<void> check_dims() const;
  int domain_version(std::string_view domain) const;

  std::string_view bytes_;
  std::string name_;
  const ImportOptions& options_;
  TensorReader tensors_;
  std::string_view top_graph_;
  int opset_ = 0;
  std::map<std::string_view, std::int64_t> versions_;  // by domain; "ai.onnx" is ""
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload
  std::map<FunctionKey, FunctionMessage> functions_;
  std::vector<const FunctionMessage*> active_;  // calls being inlined, outermost first
  std::uint64_t spent_ = 0;     // by spend()
  std::set<std::string> symbols_;  // symbolic dimensions of the model
  MissingOperators missing_;
  std::optional<Error> unsupported_;  // the first value whose type we lack; told if no operator is missing
  bool user_names_known_ = false;
  std::unordered_set<std::string_view> user_names_;
  std::unordered_set<std::string> made_names_;
};

/// The graph's spelling of an operator: "Type", or "domain::Type".
std::string spelling(const NodeMessage& node);
std::string_view default_domain(std::string_view domain);  ///< "" for "ai.onnx"

inline constexpr int kMaxDepth = 32;      ///< nested graphs
inline constexpr int kMaxCallDepth = 64;  ///< functions calling functions
inline constexpr std::size_t kMaxListed = 100'000;  ///< symbols remembered for an error

}  // namespace millstream::onnx_file
