// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "millstream/graph/graph.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

// 64-bit FNV-1a over 8-byte little-endian words; lengths are hashed, so fields cannot run together.
class Hasher {
 public:
  void word(std::uint64_t w) {
    state_ ^= w;
    state_ *= 1099511628211ull;
    state_ ^= state_ >> 29;  // words, not bytes: spread the high bits as well
  }
  void bytes(const void* data, std::size_t size) {
    word(size);
    const auto* p = static_cast<const unsigned char*>(data);
    for (; size >= 8; size -= 8, p += 8) {
      std::uint64_t w = 0;
      for (int i = 0; i < 8; ++i) w |= std::uint64_t{p[i]} << (8 * i);
      word(w);
    }
    std::uint64_t w = 0;
    for (std::size_t i = 0; i < size; ++i) w |= std::uint64_t{p[i]} << (8 * i);
    word(w);
  }
  void text(std::string_view s) { bytes(s.data(), s.size()); }
  void tensor(const Tensor& t) {
    word(static_cast<std::uint64_t>(t.dtype()));
    word(t.shape().size());
    for (const std::int64_t d : t.shape()) word(static_cast<std::uint64_t>(d));
    bytes(t.bytes(), t.byte_size());
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 1469598103934665603ull;
};

void hash_attr(Hasher& h, const Attr& attr) {
  h.word(attr.index());
  std::visit(
      [&h](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::int64_t>) {
          h.word(static_cast<std::uint64_t>(value));
        } else if constexpr (std::is_same_v<T, float>) {
          h.word(std::bit_cast<std::uint32_t>(value));
        } else if constexpr (std::is_same_v<T, std::string>) {
          h.text(value);
        } else if constexpr (std::is_same_v<T, Tensor>) {
          h.tensor(value);
        } else {
          h.word(value.size());
          for (const auto& item : value) {
            if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
              h.word(static_cast<std::uint64_t>(item));
            } else if constexpr (std::is_same_v<T, std::vector<float>>) {
              h.word(std::bit_cast<std::uint32_t>(item));
            } else {
              h.text(item);
            }
          }
        }
      },
      attr);
}

void hash_graph(Hasher& h, const Graph& graph) {
  h.word(static_cast<std::uint64_t>(graph.opset()));
  h.word(graph.node_count());
  h.word(graph.value_count());
  for (const ValueId v : graph.values()) {
    h.text(graph.name(v));
    h.word(static_cast<std::uint64_t>(graph.kind(v)));
    h.text(to_string(graph.desc(v)));
    if (const Tensor* t = graph.constant(v)) h.tensor(*t);
  }
  const Annotations& notes = graph.annotations();
  for (const NodeId n : graph.nodes()) {
    h.text(graph.type(n));
    h.text(graph.name(n));
    h.word(graph.inputs(n).size());
    for (const InputRef in : graph.inputs(n)) h.word(in.absent() ? ~std::uint64_t{0} : in.get()->index);
    h.word(graph.outputs(n).size());
    for (const ValueId v : graph.outputs(n)) h.word(v.index);
    for (const auto& [name, value] : graph.attrs(n).items()) {
      h.text(name);
      hash_attr(h, value);
    }
    for (const Body& b : graph.bodies(n)) {
      h.text(b.attribute);
      hash_graph(h, graph.body(b.body));
    }
    for (const auto* table : {&notes.label, &notes.user_label, &notes.parallel_group, &notes.engine}) {
      h.text(table->get(n) ? graph.text(*table->get(n)) : std::string_view());
    }
    h.word(notes.priority.get(n) ? static_cast<std::uint64_t>(*notes.priority.get(n)) : ~std::uint64_t{0});
    h.word(notes.cost.get(n) ? std::bit_cast<std::uint64_t>(*notes.cost.get(n)) : ~std::uint64_t{0});
    if (const std::string rare = rare_notes(graph, n); !rare.empty()) h.text(rare);
  }
  for (const auto edges : {graph.control_edges(), graph.loop_back_edges()}) {
    h.word(edges.size());
    for (const ControlEdge& e : edges) {
      h.word(e.from.index);
      h.word(e.to.index);
    }
  }
  for (const NodeId n : graph.order()) h.word(n.index);
  for (const ValueId v : graph.inputs()) h.word(v.index);
  for (const ValueId v : graph.outputs()) h.word(v.index);
  if (graph.scope_count() > 1 || graph.dynamic()) {
    for (const ScopeId s : graph.scopes()) {
      const Scope& scope = graph.scope(s);
      h.text(scope.name);
      h.word(scope.parent_node ? scope.parent_node->index : ~std::uint64_t{0});
      h.word(scope.parent.index);
      h.word(scope.dynamic ? 1 : 0);
    }
    for (const NodeId n : graph.nodes()) h.word(graph.scope_of(n).index);
  }
}

}  // namespace

std::uint64_t hash_of(const Graph& graph) {
  Hasher h;
  hash_graph(h, graph);
  return h.value();
}

}  // namespace millstream
