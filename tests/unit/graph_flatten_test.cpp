// SPDX-License-Identifier: Apache-2.0
// Flattening beside the pictures in tests/golden/flatten: what is refused, and what holds for every tree.
#include <set>

#include <gtest/gtest.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/flatten.h"
#include "millstream/graph/text.h"
#include "tests/random_graph.h"

namespace millstream::testing {
namespace {

std::string failure_of(std::string_view text) {
  const auto g = parse_graph(text, "t.mst");
  if (!g.ok()) return to_string(g.error());
  const auto flat = flatten(*g);
  return flat.ok() ? "no error" : to_string(flat.error());
}

TEST(Flatten, AGraphWithoutBodiesComesBackAsItIs) {
  const auto g = parse_graph("graph\n  a = Op()\n  b = Op(a) @label(\"s\")\n  loopback b -> a\n", "t.mst");
  ASSERT_TRUE(g.ok());
  const auto flat = flatten(*g);
  ASSERT_TRUE(flat.ok());
  EXPECT_TRUE(same(*g, *flat));
}

TEST(Flatten, RefusesBodiesThatTheOperatorDoesNotHave) {
  EXPECT_EQ(failure_of("graph\n  a = Op() {f=body(b)}\nbody b\n  x = Op()\n"),
            "error: Op \"a\" has a nested graph; operators that may are If, Case, While, For, Loop, Scan and PartitionedCall [E22 control flow]");
  EXPECT_EQ(failure_of("graph\n  input c\n  a = If(c) {then_branch=body(b)}\nbody b\n  x = Op()\n"),
            "error: If \"a\" has no else_branch [E22 control flow]");
  EXPECT_EQ(failure_of("graph\n  input c\n  a = Case(c) {b0=body(b)}\nbody b\n  input p\n  x = Op(p)\n"),
            "error: Case \"a\" hands 0 inputs to its branches, \"b0\" has 1 [E22 control flow]");
  EXPECT_EQ(failure_of("graph\n  input c\n  a = Loop(c) {body=body(b)}\nbody b\n  x = Op()\n"),
            "error: Loop \"a\" has 1 inputs, needs at least 2 [E22 control flow]");
  EXPECT_EQ(failure_of("graph\n  input c\n  a = While(c) {cond=body(b)}\nbody b\n  input p\n  x = Op(p)\n"),
            "error: While \"a\" has no body [E22 control flow]");
  EXPECT_EQ(failure_of("graph\n  input c\n  a, b = PartitionedCall(c) {f=body(b)}\nbody b\n  input p\n  x = Op(p)\n"),
            "error: PartitionedCall \"a\" has 1 inputs and 2 outputs, its graph 1 and 1 [E22 control flow]");
}

TEST(Flatten, ABodyOfADumpKeepsItsOwnNetOutput) {
  const auto g = parse_graph("graph\n  x = Op()\n  y = PartitionedCall(x) {f=body(b)}\n  z = Op(y)\n"
                             "body b\n  input p\n  q = Op(p)\n  NetOutput(q) @name(\"out\")\n  output q\n", "t.mst");
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  const auto flat = flatten(*g);
  ASSERT_TRUE(flat.ok()) << to_string(flat.error());
  std::size_t outputs = 0;
  for (const NodeId n : flat->nodes()) outputs += flat->type(n) == "NetOutput";
  EXPECT_EQ(outputs, 1u);
  const NodeId out = *flat->find_node("y/f/out");
  ASSERT_TRUE(flat->annotations().roles.get(out));
  EXPECT_TRUE(flat->annotations().roles.get(out)->end_node);
}

TEST(Flatten, NotesOfBodiesSurvive) {
  const auto g = parse_graph(
      "graph\n  x = Op()\n  y = PartitionedCall(x) {f=body(b)}\n"
      "body b\n  input p\n  r = Op(p)\n  q = Op(p) @label(\"l\") @user_label(\"u\") @priority(3) @attached(1, \"k\") @continuous(\"c\") @batch(\"Batch_0\") "
      "@multiplex(\"SendTo;r;0\") @used_streams(2) @inner_parallel(false) @new_stream(4)\n  output q\n", "t.mst");
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  const auto flat = flatten(*g);
  ASSERT_TRUE(flat.ok());
  EXPECT_EQ(rare_notes(*flat, *flat->find_node("y/f/q")),
            " @scope(\"y/f\") @inner_parallel(false) @new_stream(4) @attached(1, \"k\") @continuous(\"c\") @batch(\"Batch_0\") "
            "@multiplex(\"SendTo;y/f/r;0\") @used_streams(2)");
}

// Random trees of control flow: every scope holds a few tasks and, above the last depth, an owner of scopes.
class Tree {
 public:
  explicit Tree(Random& random) : random_(random) {}

  Graph root() {
    Graph g("root");
    std::vector<ValueId> values = {g.add_input("x", {}), g.add_input("c", {})};
    fill(g, values, 0);
    MST_CHECK(g.finish().ok(), "random tree");
    return g;
  }

 private:
  void task(Graph& g, std::vector<ValueId>& values) {
    std::vector<InputRef> in;
    for (std::uint64_t k = random_.below(3); k > 0; --k) in.push_back(values[random_.below(values.size())]);
    const std::string name = random_.chance(0.2) ? fmt::format("n{}", random_.below(3)) : fmt::format("t{}", next_++);
    if (g.find_node(name) || g.find_value(name)) return;
    const std::string_view outputs[] = {name};
    values.push_back(g.outputs(g.add_node({"Op", name, in, outputs, {}}))[0]);
  }

  // A graph with `inputs` inputs and `outputs` outputs that may read values of those around it.
  Graph body(const Graph& around, std::size_t inputs, std::size_t outputs, int depth) {
    Graph g(fmt::format("g{}", next_++));
    std::vector<ValueId> values;
    for (std::size_t i = 0; i < inputs; ++i) values.push_back(g.add_input(fmt::format("p{}", i), {}));
    for (const ValueId v : around.values()) {
      if (random_.chance(0.2) && !g.find_value(around.name(v))) values.push_back(g.add_outer(around.name(v), {}));
    }
    if (values.empty()) values.push_back(g.add_outer(around.name(ValueId(0)), {}));
    fill(g, values, depth);
    for (std::size_t i = 0; i < outputs; ++i) g.add_output(values[random_.below(values.size())]);
    MST_CHECK(g.finish().ok(), "random body");
    return g;
  }

  void fill(Graph& g, std::vector<ValueId>& values, int depth) {
    for (std::uint64_t k = random_.below(4); k > 0; --k) task(g, values);
    if (depth < 3 && random_.chance(depth == 0 ? 1.0 : 0.6)) owner(g, values, depth);
    for (std::uint64_t k = random_.below(3); k > 0; --k) task(g, values);
  }

  void owner(Graph& g, std::vector<ValueId>& values, int depth) {
    static constexpr const char* kTypes[] = {"If", "Case", "While", "For", "Loop", "Scan", "PartitionedCall"};
    const std::string type = kTypes[random_.below(7)];
    const auto any = [&] { return InputRef(values[random_.below(values.size())]); };
    const std::string name = fmt::format("w{}", next_++);
    std::size_t inputs = 1, outputs = 1, body_inputs = 0, body_outputs = 1;
    std::vector<std::string> bodies = {"body"};
    if (type == "If") bodies = {"then_branch", "else_branch"};
    if (type == "Case") {
      bodies = {"b0", "b1", "b2"};
      inputs = 2;
      body_inputs = 1;
    }
    if (type == "While") {
      bodies = {"cond", "body"};
      body_inputs = 1;
    }
    if (type == "For") {
      inputs = 4;
      body_inputs = 2;
    }
    if (type == "Loop") {
      inputs = 3;
      outputs = 2;
      body_inputs = 3;
      body_outputs = 3;
    }
    if (type == "Scan") {
      inputs = 2;
      outputs = 1;
      body_inputs = 2;
    }
    if (type == "PartitionedCall") body_inputs = 1;
    std::vector<InputRef> in;
    for (std::size_t i = 0; i < inputs; ++i) in.push_back(any());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < outputs; ++i) names.push_back(fmt::format("{}_{}", name, i));
    const std::vector<std::string_view> views(names.begin(), names.end());
    Attrs attrs;
    if (type == "Scan") attrs.set("num_scan_inputs", std::int64_t{1});
    const Graph around = g;
    const NodeId n = g.add_node({type, name, in, views, attrs});
    for (const std::string& attribute : bodies) g.add_body(n, attribute, body(around, body_inputs, attribute == "cond" ? 1 : body_outputs, depth + 1));
    for (const ValueId v : g.outputs(n)) values.push_back(v);
  }

  Random& random_;
  std::size_t next_ = 0;
};

TEST(FlattenProperty, EveryTreeIsSoundReadsBackAndOrdersWhatItStarts) {
  for (std::uint64_t seed = 0; seed < property_count(500); ++seed) {
    Random random(seed);
    const Graph tree = Tree(random).root();
    const auto flat = flatten(tree);
    ASSERT_TRUE(flat.ok()) << "seed " << seed << "\n" << to_string(flat.error()) << "\n" << print(tree);
    ASSERT_TRUE(verify(*flat).empty()) << "seed " << seed << "\n" << to_string(verify(*flat).front());
    ASSERT_EQ(flat->body_count(), 0u);
    const std::string text = print(*flat);
    const auto again = parse_graph(text, "printed");
    ASSERT_TRUE(again.ok()) << "seed " << seed << "\n" << to_string(again.error()) << "\n" << text;
    ASSERT_EQ(print(*again), text) << "seed " << seed;
    ASSERT_EQ(hash_of(*again), hash_of(*flat)) << "seed " << seed;
    ASSERT_EQ(print(*flatten(tree)), text) << "seed " << seed;

    // Labels are dense, set once each, and every jump names one of its own owner's.
    std::set<std::int64_t> set, named;
    const Dependencies deps(*flat);
    std::vector<std::size_t> place(flat->node_count());
    for (std::size_t i = 0; i < flat->order().size(); ++i) place[flat->order()[i].index] = i;
    for (const NodeId n : flat->nodes()) {
      const auto type = flat->type(n);
      const std::int64_t label = flat->attrs(n).get_int("label_index", -1);
      if (type == "LabelSet") {
        ASSERT_TRUE(set.insert(label).second) << "seed " << seed;
      } else if (label >= 0) {
        named.insert(label);
      }
      for (const std::int64_t l : flat->attrs(n).get_ints("label_list")) named.insert(l);
      if (flat->scope_of(n).index == 0) continue;
      // Behind the node that owns the scope, and everything in between belongs to it.
      const NodeId owner = *flat->scope(flat->scope_of(n)).parent_node;
      for (std::size_t i = place[owner.index] + 1; i < place[n.index]; ++i) {
        ScopeId s = flat->scope_of(flat->order()[i]);
        while (s.index != 0 && flat->scope(s).parent_node != owner) s = flat->scope(s).parent;
        ASSERT_NE(s.index, 0u) << "seed " << seed;
      }
      // In its scope a task waits for the activation that opens it.
      if (type == "Data" || flat->annotations().roles.get(n).value_or(Roles{}).rts_label) continue;
      std::set<NodeId> seen;
      std::vector<NodeId> stack = {n};
      bool opened = false;
      while (!stack.empty()) {
        const NodeId at = stack.back();
        stack.pop_back();
        if (!seen.insert(at).second || flat->scope_of(at) != flat->scope_of(n)) continue;
        opened = opened || flat->annotations().roles.get(at).value_or(Roles{}).first_active;
        for (const NodeId p : deps.predecessors(at)) stack.push_back(p);
      }
      ASSERT_TRUE(opened) << "seed " << seed << " " << flat->name(n) << "\n" << text;
    }
    ASSERT_EQ(set.size(), set.empty() ? 0u : static_cast<std::size_t>(*set.rbegin()) + 1) << "seed " << seed;
    for (const std::int64_t l : named) ASSERT_EQ(set.count(l), 1u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace millstream::testing
