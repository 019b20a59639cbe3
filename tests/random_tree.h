// SPDX-License-Identifier: Apache-2.0
// Seeded random graphs with scopes: If, While and calls as label, jump and activation nodes of one flat graph,
// the form that flatten gives. Also plain ones with labels, engines and attached streams.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/graph.h"
#include "tests/random_graph.h"

namespace millstream::testing {

struct TreeOptions {
  std::size_t nodes = 4;  ///< operators in one scope, at most
  std::size_t conditionals = 0, loops = 0, calls = 0;  ///< at most, in the whole tree
  std::size_t depth = 3;
  double edge = 0.35;
  double control = 0.1;
  double label = 0, user_label = 0;  ///< chance that an operator has one
  double attached = 0;
  double parallel_group = 0;
  bool engines = false;
};

class TreeBuilder {
 public:
  TreeBuilder(Random& random, const TreeOptions& options) : random_(random), left_(options), graph_("tree") {}

  Graph build() {
    const ValueId x = graph_.add_input("x", TensorDesc());
    fill(ScopeId(0), {x}, 0);
    graph_.set_order(order_, false);
    const Result<void> finished = graph_.finish();
    MST_CHECK(finished.ok(), to_string(finished.error()));
    return std::move(graph_);
  }

 private:
  struct Item {
    NodeId node;
    bool root = true, read = false;
  };

  NodeId add(ScopeId scope, std::string_view type, std::vector<InputRef> inputs, bool output, Attrs attrs = {}) {
    const std::string name = fmt::format("{}{}", type == "Op" ? "n" : type == "StreamActive" ? "act" : std::string(type), graph_.node_count());
    const std::string_view outputs[] = {name};
    Graph::NodeSpec spec;
    spec.type = type;
    spec.name = name;
    spec.inputs = inputs;
    if (output) spec.outputs = outputs;
    spec.attrs = std::move(attrs);
    const NodeId n = graph_.add_node(spec);
    if (scope.index != 0) graph_.set_scope(n, scope);
    order_.push_back(n);
    return n;
  }
  NodeId add_rts(ScopeId scope, std::string_view type, std::optional<std::vector<std::int64_t>> labels, std::vector<InputRef> inputs = {},
                 bool first_active = false, bool end = false) {
    Attrs attrs;
    if (labels && labels->size() == 1) attrs.set("label_index", labels->front());
    if (labels && labels->size() > 1) attrs.set("label_list", *labels);
    const NodeId n = add(scope, type, std::move(inputs), false, std::move(attrs));
    Roles roles;
    roles.rts_label = true;
    roles.first_active = first_active;
    roles.end_node = end;
    graph_.annotations().roles.set(n, roles);
    return n;
  }
  void then(NodeId a, NodeId b) { graph_.add_control_edge(a, b); }

  void annotate(NodeId n) {
    Annotations& notes = graph_.annotations();
    if (random_.chance(left_.label)) notes.label.set(n, graph_.intern(fmt::format("l{}", random_.below(3))));
    if (random_.chance(left_.user_label)) notes.user_label.set(n, graph_.intern(fmt::format("u{}", random_.below(2))));
    if (random_.chance(left_.parallel_group)) notes.parallel_group.set(n, graph_.intern(fmt::format("g{}", random_.below(2))));
    if (random_.chance(left_.attached)) {
      AttachedRequest request;
      if (random_.chance(0.5)) request.reuse_key = fmt::format("k{}", random_.below(2));
      notes.attached.set(n, {request});
    }
    if (left_.engines && random_.chance(0.5)) {
      static constexpr std::string_view kEngines[] = {"AIcoreEngine", "VectorEngine", "DNN_VM_AICPU", "DNN_HCCL", "DNN_VM_RTS"};
      notes.engine.set(n, graph_.intern(kEngines[random_.below(5)]));
    }
  }

  // What a scope holds; returns its items. `given`: values it may read that wait for nothing.
  std::vector<Item> fill(ScopeId scope, std::vector<ValueId> given, std::size_t depth) {
    std::vector<Item> items;
    const std::size_t count = 1 + random_.below(left_.nodes);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<InputRef> inputs;
      std::vector<std::size_t> from;
      for (std::size_t k = 0; k < items.size(); ++k) {
        if (random_.chance(left_.edge)) from.push_back(k);
      }
      std::size_t* budget = nullptr;
      std::string_view type = "Op";
      const std::size_t total = left_.conditionals + left_.loops + left_.calls;
      if (depth < left_.depth && total > 0 && random_.chance(0.45)) {
        std::size_t which = random_.below(total);
        if (which < left_.conditionals) {
          budget = &left_.conditionals;
          type = random_.chance(0.8) ? "If" : "Case";
        } else if (which < left_.conditionals + left_.loops) {
          budget = &left_.loops;
          type = "While";
        } else {
          budget = &left_.calls;
          type = "PartitionedCall";
        }
      }
      for (const std::size_t k : from) {
        inputs.push_back(graph_.outputs(items[k].node)[0]);
        items[k].read = true;
      }
      if (inputs.empty() || random_.chance(0.2)) {
        if (!given.empty() && (budget != nullptr || random_.chance(0.5))) inputs.push_back(given[random_.below(given.size())]);
      }
      const NodeId n = add(scope, type, inputs, true);
      Item item{n, from.empty(), false};
      if (!items.empty() && random_.chance(left_.control)) {
        const std::size_t k = random_.below(items.size());
        then(items[k].node, n);
        items[k].read = true;
        item.root = false;
      }
      if (budget != nullptr) {
        --*budget;
        bodies(scope, n, type, depth + 1);
      } else {
        annotate(n);
      }
      items.push_back(item);
    }
    return items;
  }

  // The inner of one scope between its opening and its closing node.
  struct Inner {
    ScopeId scope;
    std::vector<Item> items;
    NodeId output;
  };
  Inner inner(ScopeId scope, NodeId head, std::size_t depth, bool net_output) {
    std::vector<ValueId> given;
    if (random_.chance(0.6)) given.push_back(graph_.outputs(add(scope, "Data", {}, true))[0]);
    Inner out{scope, fill(scope, given, depth), {}};
    for (const Item& i : out.items) {
      if (i.root) then(head, i.node);
    }
    if (!net_output) return out;
    std::vector<InputRef> results;
    for (Item& i : out.items) {
      if (!i.read && (results.empty() || random_.chance(0.5))) {
        results.push_back(graph_.outputs(i.node)[0]);
        i.read = true;
      }
    }
    out.output = add(scope, "NetOutput", results, false);
    out.items.push_back({out.output, false, false});
    return out;
  }
  void close(const Inner& inner, NodeId closing) {
    for (const Item& i : inner.items) {
      if (!i.read && i.node != closing) then(i.node, closing);
    }
  }
  NodeId open(ScopeId scope, std::optional<NodeId> before, std::optional<std::int64_t> label) {
    if (label) {
      const NodeId l = add_rts(scope, "LabelSet", {{*label}});
      if (before) then(*before, l);
      before = l;
    }
    const NodeId active = add_rts(scope, "StreamActive", {}, {}, true);
    if (before) then(*before, active);
    return active;
  }

  void bodies(ScopeId parent, NodeId owner, std::string_view type, std::size_t depth) {
    const std::vector<InputRef> inputs(graph_.inputs(owner).begin(), graph_.inputs(owner).end());
    const auto scope = [&](std::string_view what) {
      return graph_.add_scope(Scope{fmt::format("{}/{}", graph_.name(owner), what), owner, parent, false});
    };
    if (type == "PartitionedCall") {
      const ScopeId s = scope("f");
      const Inner in = inner(s, open(s, {}, {}), depth, true);
      Roles roles;
      roles.end_node = true;
      graph_.annotations().roles.set(in.output, roles);
      close(in, in.output);
    } else if (type == "While") {
      const std::int64_t again = label_, enter = label_ + 1, leave = label_ + 2;
      label_ += 3;
      const ScopeId test = scope("cond"), turn = scope("body");
      const NodeId head = open(test, {}, again);
      Inner in = inner(test, head, depth, false);
      const std::size_t decides = random_.below(in.items.size());
      const NodeId decide = add_rts(test, "LabelSwitch", {{leave, enter}}, {graph_.outputs(in.items[decides].node)[0]});
      in.items[decides].read = true;
      close(in, decide);
      const Inner body = inner(turn, open(turn, {}, enter), depth, true);
      const NodeId jump = add_rts(turn, "LabelGoto", {{again}});
      const NodeId end = add_rts(turn, "LabelSet", {{leave}}, {}, false, true);
      close(body, jump);
      then(jump, end);
    } else {
      const std::int64_t count = type == "If" ? 2 : 2 + static_cast<std::int64_t>(random_.below(2));
      const std::int64_t first = label_;
      label_ += count + 1;
      std::vector<std::int64_t> labels;
      for (std::int64_t i = 0; i < count; ++i) labels.push_back(first + i);
      if (type == "If") std::swap(labels[0], labels[1]);
      for (std::int64_t i = 0; i < count; ++i) {
        const ScopeId s = scope(fmt::format("b{}", i));
        std::optional<NodeId> head;
        if (i == 0) head = add_rts(s, "LabelSwitchByIndex", labels, {inputs.empty() ? InputRef(graph_.inputs()[0]) : inputs[0]});
        const Inner in = inner(s, open(s, head, first + i), depth, true);
        const bool last = i + 1 == count;
        close(in, add_rts(s, last ? "LabelSet" : "LabelGotoEx", {{first + count}}, {}, false, last));
      }
    }
  }

  Random& random_;
  TreeOptions left_;  // what may still come
  Graph graph_;
  std::vector<NodeId> order_;
  std::int64_t label_ = 0;
};

inline Graph random_tree(Random& random, const TreeOptions& options) { return TreeBuilder(random, options).build(); }

}  // namespace millstream::testing
