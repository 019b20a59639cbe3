// SPDX-License-Identifier: Apache-2.0
// Nodes whose outputs are known become constants; copies that only pass a value on, and nodes that nothing
// reads, go. The rest keeps its names and its order.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "millstream/graph/notes.h"
#include "millstream/ops/known.h"
#include "millstream/ops/op.h"

namespace millstream {
namespace {

/// What happens to each node and value of one graph.
struct Fate {
  enum class Node : std::uint8_t { keep, drop };
  std::vector<Node> node;
  std::vector<bool> needed;                  // by value: read by what stays, or an output
  std::vector<std::optional<ValueId>> same;  // by value: the value it repeats (of a removed Identity)
  std::unordered_map<std::uint32_t, Tensor> value;  // by value: becomes a constant; looked up only
};

// In inference both only pass on their first input.
bool only_passes_on(const Graph& graph, NodeId n, const KnownValues& known) {
  const auto inputs = graph.inputs(n);
  if (inputs.empty() || inputs[0].absent()) return false;
  if (graph.type(n) == "Identity") return true;
  if (graph.type(n) != "Dropout") return false;
  if (graph.outputs(n).size() > 1 && !graph.name(graph.outputs(n)[1]).empty()) return false;  // the mask
  if (graph.opset() < 7) return false;
  if (inputs.size() < 3 || inputs[2].absent()) return true;
  const Tensor* training = known.find(*inputs[2].get());
  return training != nullptr && training->byte_size() == 1 && training->bytes()[0] == std::byte{0};
}

class Folding {
 public:
  /// True when anything changed in `graph` or a body of it.
  Result<bool> fold(Graph& graph, const KnownValues* outer) {
    // A fixed order is part of the input's meaning, as is what device tasks a flat graph lists; without outputs,
    // nothing says what is needed.
    if (graph.order_is_fixed() || graph.scope_count() > 1 || graph.outputs().empty()) return false;
    KnownValues known(graph, outer);
    Fate fate = decide(graph, known);
    bool changed = std::find(fate.node.begin(), fate.node.end(), Fate::Node::drop) != fate.node.end();
    // Bodies see the values that fold here.
    for (std::size_t i = 0; i < graph.body_count(); ++i) {
      MST_TRY(const bool inside, fold(graph.mutable_body(BodyId(i)), &known));
      changed = changed || inside;
    }
    if (!changed) return false;
    MST_TRY(graph, rebuild(graph, fate));
    return true;
  }

 private:
  static Fate decide(const Graph& graph, KnownValues& known) {
    Fate fate;
    fate.node.resize(graph.node_count(), Fate::Node::keep);
    fate.same.resize(graph.value_count());
    std::vector<bool> pinned_node(graph.node_count(), false);
    std::vector<bool> is_output(graph.value_count(), false), captured(graph.value_count(), false);
    for (const ValueId v : graph.outputs()) is_output[v.index] = true;
    for (const auto edges : {graph.control_edges(), graph.loop_back_edges()}) {
      for (const ControlEdge& e : edges) pinned_node[e.from.index] = pinned_node[e.to.index] = true;
    }
    TypeCache types;
    for (const NodeId n : graph.nodes()) {
      for (const ValueId v : graph.captures(n)) captured[v.index] = true;
    }
    for (const NodeId n : graph.order()) {
      const auto outputs = graph.outputs(n);
      pinned_node[n.index] = pinned_node[n.index] || has_notes(graph, n) || outputs.empty();
      if (!graph.bodies(n).empty()) continue;
      const NodeView view(graph, n, known);
      std::vector<TensorDesc> descs;
      bool reaches_output = false;
      for (const ValueId v : outputs) {
        descs.push_back(graph.desc(v));
        reaches_output = reaches_output || is_output[v.index];
      }
      auto values = evaluate_node(view, types.of(graph, n), descs);
      if (values) {
        for (std::size_t i = 0; i < outputs.size(); ++i) known.set(outputs[i], (*values)[i]);
        // An output of the graph stays some node's: what binds output buffers need not know constants.
        if (reaches_output || pinned_node[n.index]) continue;
        for (std::size_t i = 0; i < outputs.size(); ++i) fate.value.emplace(outputs[i].index, std::move((*values)[i]));
        fate.node[n.index] = Fate::Node::drop;
        continue;
      }
      if (!reaches_output && !pinned_node[n.index] && !captured[outputs[0].index] && only_passes_on(graph, n, known)) {
        const ValueId from = *graph.inputs(n)[0].get();
        fate.same[outputs[0].index] = fate.same[from.index] ? *fate.same[from.index] : from;
        fate.node[n.index] = Fate::Node::drop;
      }
    }
    mark_needed(graph, fate, pinned_node);
    return fate;
  }

  // Backwards from the outputs and the nodes that must stay.
  static void mark_needed(const Graph& graph, Fate& fate, const std::vector<bool>& pinned_node) {
    fate.needed.resize(graph.value_count(), false);
    const auto need = [&](ValueId v) { fate.needed[(fate.same[v.index] ? *fate.same[v.index] : v).index] = true; };
    for (const ValueId v : graph.outputs()) need(v);
    const auto& order = graph.order();
    for (std::size_t i = order.size(); i-- > 0;) {
      const NodeId n = order[i];
      if (fate.node[n.index] == Fate::Node::drop) continue;
      bool live = pinned_node[n.index];
      for (const ValueId v : graph.outputs(n)) live = live || fate.needed[v.index];
      if (!live) {
        fate.node[n.index] = Fate::Node::drop;
        continue;
      }
      for (const InputRef in : graph.inputs(n)) {
        if (const auto v = in.get()) need(*v);
      }
      for (const ValueId v : graph.captures(n)) need(v);
    }
  }

  static Result<Graph> rebuild(Graph& old, Fate& fate) {
    Graph out(old.name());
    out.set_opset(old.opset());
    out.set_dynamic(old.dynamic());
    std::vector<std::optional<ValueId>> moved(old.value_count());
    std::vector<std::optional<NodeId>> moved_node(old.node_count());
    for (const ValueId v : old.inputs()) moved[v.index] = out.add_input(old.name(v), old.desc(v));
    for (const ValueId v : old.values()) {
      if (moved[v.index]) continue;
      const auto value = fate.value.find(v.index);
      if (value != fate.value.end() && fate.needed[v.index]) {
        moved[v.index] = out.add_constant(old.name(v), std::move(value->second));
      } else if (old.kind(v) == ValueKind::constant && fate.needed[v.index]) {
        moved[v.index] = out.add_constant(old.name(v), *old.constant(v));
        out.set_desc(*moved[v.index], old.desc(v));
      } else if (old.kind(v) == ValueKind::outer && fate.needed[v.index]) {
        moved[v.index] = out.add_outer(old.name(v), old.desc(v));
      }
    }
    // In execution order, since a node's inputs need their ids first.
    for (const NodeId n : old.order()) {
      if (fate.node[n.index] == Fate::Node::drop) continue;
      std::vector<InputRef> inputs;
      for (const InputRef in : old.inputs(n)) {
        const auto v = in.get();
        if (!v) {
          inputs.push_back({});
          continue;
        }
        const auto to = moved[(fate.same[v->index] ? *fate.same[v->index] : *v).index];
        if (!to) {
          return Error{ErrorCode::bad_graph, fmt::format("\"{}\" reads \"{}\" before it is produced", old.name(n), old.name(*v))};
        }
        inputs.push_back(*to);
      }
      std::vector<std::string_view> outputs;
      for (const ValueId v : old.outputs(n)) outputs.push_back(old.name(v));
      const NodeId m = out.add_node({old.type(n), old.name(n), inputs, outputs, old.attrs(n)});
      moved_node[n.index] = m;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ValueId v = old.outputs(n)[i];
        moved[v.index] = out.outputs(m)[i];
        out.set_desc(out.outputs(m)[i], old.desc(v));
      }
      for (const Body& b : old.bodies(n)) out.add_body(m, b.attribute, std::move(old.mutable_body(b.body)));
      copy_notes(old, n, out, m);
      out.copy_place(old, n, m);
    }
    for (const ValueId v : old.outputs()) out.add_output(*moved[v.index]);
    for (const ControlEdge& e : old.control_edges()) {
      out.add_control_edge(*moved_node[e.from.index], *moved_node[e.to.index]);
    }
    for (const ControlEdge& e : old.loop_back_edges()) {
      out.add_loop_back_edge(*moved_node[e.from.index], *moved_node[e.to.index]);
    }
    MST_TRY_VOID(out.finish());
    return out;
  }
};

}  // namespace

Result<Graph> fold_constants(Graph graph) {
  MST_TRY_VOID(Folding().fold(graph, nullptr));
  return graph;
}

}  // namespace millstream
