// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "tests/random_graph.h"

namespace millstream::testing {
namespace {

std::string odd_name(Random& random, std::size_t i) {
  switch (random.below(5)) {
    case 0: return fmt::format("{}", i);
    case 1: return fmt::format("a b\\{}\"", i);
    case 2: return fmt::format("/layer.{}/x", i);
    case 3: return fmt::format("tab\t{}\n\x01", i);
    default: return fmt::format("n{}", i);
  }
}

Attr random_attr(Random& random) {
  const auto real = [&] { return static_cast<float>(static_cast<double>(random.below(2000)) / 7 - 100); };
  switch (random.below(7)) {
    case 0: return static_cast<std::int64_t>(random.next());
    case 1: return real();
    case 2: return odd_name(random, random.below(9));
    case 3: return std::vector<std::int64_t>(random.below(3), -5);
    case 4: return std::vector<float>(random.below(3), real());
    case 5: return std::vector<std::string>(random.below(3), odd_name(random, 1));
    default: {
      Tensor t(random.chance(0.5) ? DType::f32 : DType::f16, {static_cast<std::int64_t>(random.below(100))});
      for (std::size_t i = 0; i < t.byte_size(); ++i) t.mutable_bytes()[i] = static_cast<std::byte>(random.below(120));
      return t;
    }
  }
}

// Any of the notes that few nodes carry.
void random_notes(Random& random, Graph& g, NodeId n) {
  Annotations& a = g.annotations();
  const auto text = [&] { return g.intern(odd_name(random, random.below(7))); };
  const auto number = [&] { return static_cast<std::int64_t>(random.next()); };
  const auto texts = [&] {
    std::vector<StringId> out;
    for (std::uint64_t k = random.below(3); k > 0; --k) out.push_back(text());
    return out;
  };
  for (const auto table : {&Annotations::label, &Annotations::user_label, &Annotations::parallel_group, &Annotations::engine,
                           &Annotations::continuous, &Annotations::batch}) {
    if (random.chance(0.15)) (a.*table).set(n, text());
  }
  for (const auto table : {&Annotations::priority, &Annotations::new_stream, &Annotations::preset_stream, &Annotations::thread_scope,
                           &Annotations::used_streams}) {
    if (random.chance(0.1)) (a.*table).set(n, number());
  }
  for (const auto table : {&Annotations::activates, &Annotations::multiplex}) {
    if (random.chance(0.1)) (a.*table).set(n, texts());
  }
  if (random.chance(0.2)) a.cost.set(n, static_cast<double>(random.below(1000)) / 8);
  if (random.chance(0.1)) a.inner_parallel.set(n, random.chance(0.5));
  if (random.chance(0.1)) {
    std::vector<AttachedRequest> list;
    for (std::uint64_t k = 1 + random.below(2); k > 0; --k) list.push_back({number(), odd_name(random, 3)});
    a.attached.set(n, std::move(list));
  }
  if (random.chance(0.1)) {
    std::vector<std::int64_t> list;
    for (std::uint64_t k = random.below(3); k > 0; --k) list.push_back(number());
    a.activates_streams.set(n, std::move(list));
  }
  if (random.chance(0.15)) {
    Roles roles;
    for (bool Roles::*role : {&Roles::rts_label, &Roles::first_active, &Roles::end_node, &Roles::loop_active, &Roles::true_branch}) {
      roles.*role = random.chance(0.4);
    }
    a.roles.set(n, roles);
  }
}

Graph random_text_graph(Random& random, int depth) {
  Graph g(odd_name(random, 77));
  if (random.chance(0.2)) g.set_dynamic(true);
  std::vector<ScopeId> scopes = {ScopeId(0)};
  g.set_opset(static_cast<int>(7 + random.below(17)));
  std::vector<ValueId> values;
  std::size_t next = 0;
  if (random.chance(0.7)) values.push_back(g.add_input(odd_name(random, next++), TensorDesc::of(DType::f32, {2, 3})));
  if (random.chance(0.5)) {
    TensorDesc d;
    d.dtype = DType::i64;
    d.shape = std::vector<Dim>{Dim::named("N"), Dim{}, Dim::of(0), Dim::named("odd name")};
    values.push_back(g.add_input(odd_name(random, next++), d));
  }
  std::vector<NodeId> nodes;
  const std::size_t count = 1 + random.below(8);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<InputRef> inputs;
    while (random.chance(0.6)) {
      inputs.push_back(values.empty() || random.chance(0.2) ? InputRef() : InputRef(values[random.below(values.size())]));
    }
    std::vector<std::string> outputs;
    for (std::size_t o = 0; o < 1 + random.below(3); ++o) outputs.push_back(o > 0 && random.chance(0.2) ? "" : odd_name(random, next++));
    std::vector<std::string_view> views(outputs.begin(), outputs.end());
    const std::string name = random.chance(0.3) ? odd_name(random, 1000 + next) : outputs[0];
    Graph::NodeSpec spec;
    spec.type = random.chance(0.2) ? "com.x::Odd Type" : "Op";
    spec.name = name;
    spec.inputs = inputs;
    spec.outputs = views;
    for (std::size_t a = random.below(3); a > 0; --a) spec.attrs.set(odd_name(random, a), random_attr(random));
    const NodeId n = g.add_node(spec);
    for (const ValueId v : g.outputs(n)) {
      if (!g.name(v).empty()) values.push_back(v);
      if (random.chance(0.4)) g.set_desc(v, TensorDesc::of(DType::bf16, {static_cast<std::int64_t>(random.below(5))}));
    }
    if (!nodes.empty() && random.chance(0.3)) g.add_control_edge(nodes[random.below(nodes.size())], n);
    random_notes(random, g, n);
    const ScopeId scope = scopes[random.below(scopes.size())];
    if (scope.index != 0) {
      g.set_scope(n, scope);
      // What closes a scope comes before whatever follows its owner, which edges at random would contradict.
      if (auto roles = g.annotations().roles.get(n)) {
        roles->end_node = false;
        g.annotations().roles.set(n, *roles);
      }
    }
    if (depth == 0 && random.chance(0.15)) {
      scopes.push_back(g.add_scope(Scope{fmt::format("{}{}", odd_name(random, 8), scopes.size()), n, scope, random.chance(0.3)}));
    }
    nodes.push_back(n);
    if (depth < 3 && random.chance(0.15)) g.add_body(n, "body", random_text_graph(random, depth + 1));
    if (random.chance(0.1)) {
      Tensor t(DType::f64, {2});
      values.push_back(g.add_constant(odd_name(random, next++), t));
    }
  }
  if (random.chance(0.2)) g.add_loop_back_edge(nodes.back(), nodes.front());
  if (!values.empty()) g.add_output(values[random.below(values.size())]);
  const Result<void> finished = g.finish();
  EXPECT_TRUE(finished.ok()) << (finished.ok() ? "" : to_string(finished.error()));
  return g;
}

TEST(GraphTextProperty, ParsingWhatWasPrintedGivesTheSameGraph) {
  for (std::uint64_t seed = 0; seed < property_count(2000); ++seed) {
    Random random(seed);
    const Graph g = random_text_graph(random, 0);
    const std::string text = print(g);
    const Result<Graph> again = parse_graph(text, "printed");
    ASSERT_TRUE(again.ok()) << "seed " << seed << "\n" << to_string(again.error()) << "\n" << text;
    ASSERT_EQ(text, print(*again)) << "seed " << seed;
    ASSERT_EQ(hash_of(g), hash_of(*again)) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace millstream::testing
