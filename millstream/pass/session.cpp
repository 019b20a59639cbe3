// SPDX-License-Identifier: Apache-2.0
#include "millstream/pass/session.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/core/check.h"

namespace millstream {

namespace {

constexpr std::size_t kListed = 20;

// One number each: dense lists by counting, then filling.
template <class Visit>
void fill_lists(std::size_t keys, std::vector<std::uint32_t>& begin, Visit visit) {
  begin.assign(keys + 1, 0);
  visit([&](std::size_t key, auto) { ++begin[key + 1]; });
  for (std::size_t k = 0; k < keys; ++k) begin[k + 1] += begin[k];
  std::vector<std::uint32_t> at(begin.begin(), begin.end() - 1);
  visit([&](std::size_t key, auto put) { put(at[key]++); });
}

}  // namespace

void PassSession::add_tree(const Graph& graph) {
  const std::size_t tree = trees_.size();
  trees_.push_back(Tree{&graph, node_count_, views_.size(), {}, {}, {}, {}});
  node_count_ += graph.node_count();
  for (const ScopeId s : graph.scopes()) views_.push_back(View{tree, s, {false, false}, {}});
  for (std::size_t b = 0; b < graph.body_count(); ++b) add_tree(graph.body(BodyId(b)));
}

PassSession::Place PassSession::place(std::uint64_t number) {
  if (number >= node_count_) return {};
  auto after = std::upper_bound(trees_.begin(), trees_.end(), number, [](std::uint64_t n, const Tree& t) { return n < t.first; });
  Tree& tree = *std::prev(after);
  return {&tree, NodeId(static_cast<std::size_t>(number - tree.first))};
}

std::vector<std::size_t> PassSession::views_under(const Place& at) {
  std::vector<std::size_t> out;
  if (at.tree->graph->scope_count() > 1) {
    for (const ScopeId s : at.tree->graph->scopes_under(at.node)) out.push_back(at.tree->first_view + s.index);
  }
  for (const Body& body : at.tree->graph->bodies(at.node)) {
    const Graph* inner = &at.tree->graph->body(body.body);
    for (const Tree& t : trees_) {
      if (t.graph == inner) out.push_back(t.first_view);
    }
  }
  return out;
}

const std::vector<std::uint64_t>& PassSession::nodes_of(std::size_t view, bool all) {
  View& v = views_[view];
  const int which = all ? MST_ALL_NODES : MST_DIRECT_NODES;
  if (v.listed[which]) return v.nodes[which];
  v.listed[which] = true;
  Tree& tree = trees_[v.tree];
  std::vector<std::uint64_t> out;
  for (const NodeId n : tree.graph->order()) {
    if (tree.graph->scope_of(n) != v.scope) continue;
    out.push_back(tree.first + n.index);
    if (!all) continue;
    for (const std::size_t under : views_under({&tree, n})) {
      const std::vector<std::uint64_t>& inner = nodes_of(under, true);
      out.insert(out.end(), inner.begin(), inner.end());
    }
  }
  v.nodes[which] = std::move(out);
  return v.nodes[which];
}

void PassSession::index_consumers(Tree& tree) {
  if (!tree.consumer_begin.empty()) return;
  const Graph& graph = *tree.graph;
  std::vector<std::pair<NodeId, std::uint32_t>> list;
  std::size_t inputs = 0;
  for (const NodeId n : graph.nodes()) inputs += graph.inputs(n).size();
  list.resize(inputs);
  fill_lists(graph.value_count(), tree.consumer_begin, [&](auto add) {
    for (const NodeId n : graph.order()) {
      std::uint32_t port = 0;
      for (const InputRef in : graph.inputs(n)) {
        const std::uint32_t at = port++;
        if (const auto v = in.get()) add(v->index, [&list, n, at](std::uint32_t i) { list[i] = {n, at}; });
      }
    }
  });
  tree.consumers = std::move(list);
}

void PassSession::index_control(Tree& tree) {
  if (!tree.control_begin[0].empty()) return;
  const Graph& graph = *tree.graph;
  for (const int side : {MST_INPUTS, MST_OUTPUTS}) {
    std::vector<NodeId> list(graph.control_edges().size());
    fill_lists(graph.node_count(), tree.control_begin[side], [&](auto add) {
      for (const ControlEdge& e : graph.control_edges()) {
        const NodeId key = side == MST_INPUTS ? e.to : e.from;
        const NodeId other = side == MST_INPUTS ? e.from : e.to;
        add(key.index, [&list, other](std::uint32_t i) { list[i] = other; });
      }
    });
    tree.control[side] = std::move(list);
  }
}

void PassSession::refuse(std::string text) {
  if (++refused_count_ <= kListed) refused_.push_back(std::move(text));
}

std::int32_t PassSession::set_stream(std::uint64_t number, std::int64_t id) {
  const Place at = place(number);
  if (at.tree == nullptr) {
    refuse(fmt::format("SetStreamId of no node, to stream {}: the node is not of this graph, or was made by GNode()", id));
    return -1;
  }
  const std::string_view name = at.tree->graph->name(at.node);
  if (view_of(at) != own_view_) {
    const View& own = views_[own_view_];
    const Graph& root = *trees_[own.tree].graph;
    refuse(fmt::format("SetStreamId of node \"{}\", to stream {}: it is in a subgraph; only direct nodes of graph {} can move (GetDirectNode)",
                       name, id, own.scope.index == 0 ? root.name() : root.scope(own.scope).name));
    return -1;
  }
  if (id < 0) {
    refuse(fmt::format("SetStreamId of node \"{}\", to stream {}: ids count from 0", name, id));
    return -1;
  }
  const std::int64_t max = static_cast<std::int64_t>(on_.streams.size()) - 1;
  if (id > max) {
    refuse(fmt::format("SetStreamId of node \"{}\", to stream {}: the largest id is {}; AllocateNextStreamId gives a new one", name, id, max));
    return -1;
  }
  const StreamId stream(static_cast<std::size_t>(id));
  if (on_.streams[stream].attached) {
    refuse(fmt::format("SetStreamId of node \"{}\", to stream {}: it is an attached stream, which runs parts of nodes only", name, id));
    return -1;
  }
  auto& placement = on_.placement[at.node];
  if (!placement || placement->stream != stream) placement = Placement{stream, rule_};
  return 0;
}

StreamAssignment PassSession::take() {
  end();
  return std::move(on_);
}

}  // namespace millstream
