// SPDX-License-Identifier: Apache-2.0
// Seeded random graphs of all that a dump can say: odd names, attributes of every kind, annotations, streams, bodies.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/random_graph.h"

namespace millstream::testing {

inline std::string odd_dump_name(Random& random, std::size_t i) {
  switch (random.below(8)) {
    case 0: return fmt::format("{}", i);
    case 1: return fmt::format("a b\\{}\"'", i);
    case 2: return fmt::format("/layer.{}/x", i);
    case 3: return fmt::format("tab\t{}\n\x01\xff", i);
    case 4: return fmt::format("n{}:{}", i / 2, i % 2);
    case 5: return fmt::format("gr\xc3\xbc\xc3\x9f{}", i);
    default: return fmt::format("n{}", i);
  }
}

inline Attr random_dump_attr(Random& random) {
  const auto real = [&] { return static_cast<float>(static_cast<double>(random.below(2000)) / 7 - 100); };
  switch (random.below(8)) {
    case 0: return static_cast<std::int64_t>(random.next());
    case 1: return real();
    case 2: return odd_dump_name(random, random.below(9));
    case 3: return std::vector<std::int64_t>(random.below(3), -5);
    case 4: return std::vector<float>(random.below(3), real());
    case 5: return std::vector<std::string>(random.below(3), odd_dump_name(random, 1));
    case 6: return random.chance(0.5) ? Attr(std::int64_t{0}) : random.chance(0.5) ? Attr(0.0f) : Attr(std::string());
    default: {
      Tensor t(random.chance(0.5) ? DType::f32 : DType::f16, {static_cast<std::int64_t>(random.below(20)), 1});
      for (std::size_t i = 0; i < t.byte_size(); ++i) t.mutable_bytes()[i] = static_cast<std::byte>(random.below(256));
      return t;
    }
  }
}

inline void random_dump_notes(Random& random, Graph& g, NodeId n, bool streams) {
  Annotations& a = g.annotations();
  const auto text = [&] { return g.intern(odd_dump_name(random, random.below(7))); };
  for (const auto table : {&Annotations::label, &Annotations::user_label, &Annotations::parallel_group, &Annotations::engine,
                           &Annotations::continuous, &Annotations::batch}) {
    if (random.chance(0.15)) (a.*table).set(n, text());
  }
  for (const auto table : {&Annotations::priority, &Annotations::new_stream, &Annotations::thread_scope, &Annotations::used_streams}) {
    if (random.chance(0.1)) (a.*table).set(n, static_cast<std::int64_t>(random.next()));
  }
  if (streams && random.chance(0.8)) a.preset_stream.set(n, static_cast<std::int64_t>(random.below(5)));
  for (const auto table : {&Annotations::activates, &Annotations::multiplex}) {
    std::vector<StringId> out;
    for (std::uint64_t k = random.below(3); k > 0; --k) out.push_back(text());
    if (random.chance(0.1)) (a.*table).set(n, std::move(out));
  }
  if (random.chance(0.2)) a.cost.set(n, static_cast<double>(random.below(1000)) / (random.chance(0.5) ? 8 : 7));
  if (random.chance(0.1)) a.inner_parallel.set(n, random.chance(0.5));
  if (random.chance(0.1)) {
    std::vector<AttachedRequest> list;
    for (std::uint64_t k = 1 + random.below(2); k > 0; --k) list.push_back({static_cast<std::int64_t>(random.next()), odd_dump_name(random, 3)});
    a.attached.set(n, std::move(list));
  }
  if (random.chance(0.1)) {
    Roles roles;
    roles.rts_label = random.chance(0.4);
    roles.end_node = random.chance(0.4);
    roles.true_branch = !roles.rts_label && !roles.end_node;
    a.roles.set(n, roles);
  } else if (!a.activates.get(n) && random.chance(0.1)) {
    a.activates_streams.set(n, {static_cast<std::int64_t>(random.below(5)), 3});
  }
}

/// `streams`: nodes of the root stand on streams, at random.
inline Graph random_dump_graph(Random& random, bool streams, int depth = 0, int opset = 0) {
  Graph g(odd_dump_name(random, 77));
  if (opset == 0) opset = random.chance(0.5) ? 23 : static_cast<int>(7 + random.below(17));
  g.set_opset(opset);
  std::vector<ValueId> values;
  std::vector<std::string> used;
  std::size_t next = 0;
  const auto fresh = [&] {
    for (;;) {
      std::string name = odd_dump_name(random, next++);
      if (std::find(used.begin(), used.end(), name) != used.end()) continue;
      used.push_back(name);
      return name;
    }
  };
  if (random.chance(0.7)) values.push_back(g.add_input(fresh(), TensorDesc::of(DType::f32, {2, 3})));
  if (random.chance(0.5)) {
    TensorDesc d;
    d.dtype = DType::i64;
    d.shape = std::vector<Dim>{Dim{}, Dim::of(0), Dim::of(1 << 20)};
    values.push_back(g.add_input(fresh(), d));
  }
  while (random.chance(0.3)) values.push_back(g.add_constant(fresh(), Tensor(DType::f64, {2})));
  std::vector<NodeId> nodes;
  std::vector<std::string> node_names;
  const std::size_t count = 1 + random.below(8);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<InputRef> inputs;
    while (random.chance(0.6)) inputs.push_back(values.empty() || random.chance(0.2) ? InputRef() : InputRef(values[random.below(values.size())]));
    std::vector<std::string> outputs;
    for (std::size_t o = 0; o < 1 + random.below(3); ++o) outputs.push_back(o > 0 && random.chance(0.2) ? "" : fresh());
    std::vector<std::string_view> views(outputs.begin(), outputs.end());
    std::string name = random.chance(0.3) ? odd_dump_name(random, 1000 + next) : outputs[0];
    if (std::find(node_names.begin(), node_names.end(), name) != node_names.end()) name = outputs[0];
    node_names.push_back(name);
    Graph::NodeSpec spec;
    spec.type = random.chance(0.2) ? "com.x::Odd Type" : "Op";
    spec.name = name;
    spec.inputs = inputs;
    spec.outputs = views;
    for (std::size_t a = random.below(3); a > 0; --a) spec.attrs.set("attr " + odd_dump_name(random, a), random_dump_attr(random));
    const NodeId n = g.add_node(spec);
    for (const ValueId v : g.outputs(n)) {
      if (!g.name(v).empty()) values.push_back(v);
      if (random.chance(0.4)) g.set_desc(v, TensorDesc::of(DType::bf16, {static_cast<std::int64_t>(random.below(5))}));
    }
    if (!nodes.empty() && random.chance(0.3)) g.add_control_edge(nodes[random.below(nodes.size())], n);
    random_dump_notes(random, g, n, streams);
    nodes.push_back(n);
    if (depth < 3 && random.chance(0.15)) g.add_body(n, "body", random_dump_graph(random, false, depth + 1, opset));
  }
  if (random.chance(0.2)) g.add_loop_back_edge(nodes.back(), nodes.front());
  for (std::uint64_t k = random.below(4); k > 0 && !values.empty(); --k) g.add_output(values[random.below(values.size())]);
  const Result<void> finished = g.finish();
  MST_CHECK(finished.ok(), to_string(finished.error()));
  return g;
}

}  // namespace millstream::testing
