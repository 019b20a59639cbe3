// SPDX-License-Identifier: Apache-2.0
// plan_sync with a switch and a merge stream, with attached streams, in the modes compat and fewest; each against a
// small enumeration of what runs and what is ordered. MST_PROPERTY_COUNT sets how many graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "millstream/sync/compat.h"
#include "tests/random_graph.h"

namespace millstream::testing {
namespace {

// A graph under construction: nodes in list order, each on a stream, in a branch or always run.
struct Sketch {
  Graph graph{"sketch"};
  StreamAssignment on;
  std::vector<int> branch;  // by node: 0 and 1 run under that outcome only, -1 always

  explicit Sketch(std::size_t streams) {
    on.rules = {"test"};
    on.reasons = {"the test says so"};
    for (std::size_t s = 0; s < streams; ++s) on.new_stream();
  }
  NodeId add(std::string_view type, std::size_t stream, int when, std::vector<NodeId> inputs = {}) {
    std::vector<InputRef> refs;
    for (const NodeId p : inputs) refs.push_back(graph.outputs(p)[0]);
    const std::string name = fmt::format("n{}", graph.node_count());
    const std::string_view outputs[] = {name};
    Graph::NodeSpec spec;
    spec.type = type;
    spec.name = name;
    spec.inputs = refs;
    spec.outputs = outputs;
    const NodeId n = graph.add_node(spec);
    on.placement.push_back(Placement{StreamId(stream), RuleId(0)});
    graph.annotations().label.set(n, graph.intern(fmt::format("s{}", stream)));
    branch.push_back(when);
    return n;
  }
  void activates(NodeId n, std::vector<std::size_t> streams) {
    std::vector<StringId> labels;
    for (const std::size_t s : streams) labels.push_back(graph.intern(fmt::format("s{}", s)));
    graph.annotations().activates.set(n, labels);
  }
};

using Edge = std::pair<std::uint32_t, std::uint32_t>;

std::set<Edge> edges_of(const Graph& graph) {
  std::set<Edge> out;
  for (const NodeId n : graph.nodes()) {
    for (const InputRef in : graph.inputs(n)) out.insert({graph.producer(*in.get())->index, n.index});
  }
  for (const ControlEdge& e : graph.control_edges()) out.insert({e.from.index, e.to.index});
  return out;
}

// What is ordered when one branch runs: three points a node (before, itself, behind), and one for each part.
class Order {
 public:
  Order(const Sketch& s, const std::vector<SyncPair>& pairs, int outcome, const Activation& activation)
      : nodes_(s.graph.node_count()), reach_(4 * nodes_, std::vector<bool>(4 * nodes_, false)) {
    const auto runs = [&](NodeId n) { return s.branch[n.index] == -1 || s.branch[n.index] == outcome; };
    std::vector<std::optional<std::uint32_t>> last(s.on.streams.size());
    std::vector<std::optional<NodeId>> first(s.on.streams.size());
    for (const NodeId n : s.graph.nodes()) {
      if (!runs(n)) continue;
      const std::uint32_t stream = s.on.placement[n]->stream.index;
      link(before(n), itself(n));
      link(itself(n), behind(n));
      if (last[stream]) link(*last[stream], before(n));
      if (!first[stream]) first[stream] = n;
      last[stream] = behind(n);
      if (const auto& list = s.on.attached.get(n)) {
        const std::uint32_t a = list->front().index;
        if (last[a]) link(*last[a], part(n));
        last[a] = part(n);
      }
    }
    for (const Activator& a : activation.activators) {
      for (const StreamId t : a.streams) {
        if (runs(a.node) && first[t.index]) link(behind(a.node), before(*first[t.index]));
      }
    }
    for (const SyncPair& p : pairs) {
      if (!runs(p.from) || !runs(p.to)) continue;
      if (p.reason == PairReason::fork) {
        link(before(p.from), part(p.to));
      } else if (p.reason == PairReason::join) {
        link(part(p.from), behind(p.to));
      } else {
        link(behind(p.from), before(p.to));
      }
    }
    for (std::size_t k = 0; k < reach_.size(); ++k) {
      for (std::size_t i = 0; i < reach_.size(); ++i) {
        for (std::size_t j = 0; reach_[i][k] && j < reach_.size(); ++j) reach_[i][j] = reach_[i][j] || reach_[k][j];
      }
    }
    for (std::size_t i = 0; i < reach_.size(); ++i) circle_ = circle_ || reach_[i][i];
    for (const Edge& e : edges_of(s.graph)) {
      if (runs(NodeId(e.first)) && runs(NodeId(e.second)) && !reach_[itself(NodeId(e.first))][before(NodeId(e.second))]) lost_.push_back(e);
    }
    // A wait whose record is not sent never ends.
    for (const SyncPair& p : pairs) hang_ = hang_ || (runs(p.to) && !runs(p.from));
  }
  const std::vector<Edge>& lost() const { return lost_; }
  bool circle() const { return circle_; }
  bool hang() const { return hang_; }
  bool ordered(std::size_t a, std::size_t b) const { return reach_[itself(NodeId(a))][itself(NodeId(b))]; }

 private:
  std::size_t before(NodeId n) const { return n.index; }
  std::size_t itself(NodeId n) const { return nodes_ + n.index; }
  std::uint32_t behind(NodeId n) const { return static_cast<std::uint32_t>(2 * nodes_ + n.index); }
  std::uint32_t part(NodeId n) const { return static_cast<std::uint32_t>(3 * nodes_ + n.index); }
  void link(std::size_t a, std::size_t b) { reach_[a][b] = true; }

  std::size_t nodes_;
  std::vector<std::vector<bool>> reach_;
  std::vector<Edge> lost_;
  bool circle_ = false, hang_ = false;
};

// One two-way choice (StreamSwitchN, or a StreamSwitch and what it falls through to), two branch streams, a merge
// stream, and streams that always run. Edges lead from what runs at least whenever their end does; those into the
// merge stream also from the branches.
Sketch switched(Random& random) {
  const bool falls = random.chance(0.5);
  Sketch s(6);  // 0, 5: always; 4: switch (and branch 1 when it falls through); 1, 2: branches; 3: merge
  std::vector<NodeId> always, branch[2], merge;
  const double density = 0.1 + 0.4 * static_cast<double>(random.below(100)) / 100;
  const auto pick = [&](std::vector<NodeId> from) {
    std::vector<NodeId> out;
    for (const NodeId p : from) {
      if (random.chance(density)) out.push_back(p);
    }
    return out;
  };
  const auto always_node = [&] { always.push_back(s.add("Op", random.chance(0.5) ? 0 : 5, -1, pick(always))); };
  for (std::size_t i = 1 + random.below(3); i > 0; --i) always_node();
  if (random.chance(0.7)) always.push_back(s.add("Op", 4, -1, pick(always)));
  const NodeId sw = s.add(falls ? "StreamSwitch" : "StreamSwitchN", 4, -1, pick(always));
  s.activates(sw, falls ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2});
  if (random.chance(0.5)) always_node();
  NodeId starts[2];
  for (int b = 0; b < 2; ++b) {
    const std::size_t stream = b == 0 ? 1 : falls ? 4 : 2;
    for (std::size_t i = 1 + random.below(3); i > 0; --i) {
      std::vector<NodeId> from = always;
      from.insert(from.end(), branch[b].begin(), branch[b].end());
      branch[b].push_back(s.add("Op", stream, b, pick(from)));
      if (random.chance(0.2)) always_node();
    }
    starts[b] = s.add("StreamActive", stream, b);
    s.activates(starts[b], {3});
    if (random.chance(0.5)) branch[b].push_back(s.add("Op", stream, b, pick(always)));
    if (random.chance(0.7)) s.graph.add_control_edge(sw, branch[b].front());
  }
  for (std::size_t i = 1 + random.below(4); i > 0; --i) {
    std::vector<NodeId> from = always;
    from.insert(from.end(), merge.begin(), merge.end());
    merge.push_back(s.add("Op", 3, -1, pick(from)));
    if (random.chance(0.5)) {
      // Data that a branch hands over comes before its activation.
      const int b = static_cast<int>(random.below(2));
      if (branch[b].front() < starts[b]) s.graph.add_control_edge(branch[b].front(), merge.back());
    }
    if (random.chance(0.3)) s.graph.add_control_edge(starts[random.below(2)], merge.back());
    if (random.chance(0.3)) always.push_back(s.add("Op", random.chance(0.5) ? 0 : 5, -1, pick(from)));
  }
  MST_CHECK(s.graph.finish().ok(), "a sound graph");
  return s;
}

TEST(SyncControlProperty, BothOutcomesOfASwitchKeepEveryOrderAndNeedEveryPair) {
  std::size_t kept = 0, facts = 0;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Sketch s = switched(random);
    const auto activation = plan_activation(s.graph, s.on);
    ASSERT_TRUE(activation.ok()) << to_string(activation.error());
    const auto plan = plan_sync(s.graph, s.on, {});
    ASSERT_TRUE(plan.ok()) << to_string(plan.error());
    for (const Error& e : verify(s.graph, s.on, *plan)) ADD_FAILURE() << to_string(e) << print(s.graph, s.on, *plan);
    for (int outcome = 0; outcome < 2; ++outcome) {
      const Order order(s, plan->kept, outcome, *activation);
      ASSERT_TRUE(order.lost().empty()) << "outcome " << outcome << ": n" << order.lost()[0].first << " -> n" << order.lost()[0].second << "\n" << print(s.graph, s.on, *plan);
      ASSERT_FALSE(order.circle());
      ASSERT_FALSE(order.hang()) << print(s.graph, s.on, *plan);
    }
    for (std::size_t i = 0; i < plan->kept.size(); ++i) {
      std::vector<SyncPair> fewer = plan->kept;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_FALSE(Order(s, fewer, 0, *activation).lost().empty() && Order(s, fewer, 1, *activation).lost().empty())
          << "pair " << i << " is not needed\n" << print(s.graph, s.on, *plan);
    }
    kept += plan->kept.size();
    facts += plan->starts.size();
  }
  EXPECT_GT(kept, 0u);
  EXPECT_GT(facts, 0u);
}

// Nodes on random streams; some hold an attached stream, shared or their own.
Sketch with_parts(Random& random, bool parts) {
  const std::size_t streams = 2 + random.below(3), count = 5 + random.below(8);
  Sketch s(streams);
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<NodeId> from;
    for (const NodeId p : nodes) {
      if (random.chance(0.2)) from.push_back(p);
    }
    nodes.push_back(s.add("Op", random.below(streams), -1, from));
    if (i > 0 && random.chance(0.1)) s.graph.add_control_edge(nodes[random.below(i)], nodes[i]);
  }
  if (parts) {
    StreamInfo side;
    side.attached = true;
    const StreamId shared = s.on.new_stream(side);
    for (const NodeId n : nodes) {
      if (random.chance(0.3)) s.on.attached.set(n, {shared});
      if (random.chance(0.1)) s.on.attached.set(n, {s.on.new_stream(side)});
    }
  }
  MST_CHECK(s.graph.finish().ok(), "a sound graph");
  return s;
}

TEST(SyncControlProperty, AttachedPartsOrderAndAreNeverOrderedTwice) {
  std::size_t spared = 0;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Sketch s = with_parts(random, true);
    const auto plan = plan_sync(s.graph, s.on, {});
    ASSERT_TRUE(plan.ok()) << to_string(plan.error());
    for (const Error& e : verify(s.graph, s.on, *plan)) ADD_FAILURE() << to_string(e) << print(s.graph, s.on, *plan);
    const Order order(s, plan->kept, 0, {});
    ASSERT_TRUE(order.lost().empty()) << print(s.graph, s.on, *plan);
    ASSERT_FALSE(order.circle());
    for (std::size_t i = 0; i < plan->kept.size(); ++i) {
      if (plan->kept[i].from == plan->kept[i].to) continue;
      std::vector<SyncPair> fewer = plan->kept;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_FALSE(Order(s, fewer, 0, {}).lost().empty()) << "pair " << i << " is not needed\n" << print(s.graph, s.on, *plan);
    }
    StreamAssignment alone = s.on;
    alone.attached = {};
    const auto without = plan_sync(s.graph, alone, {});
    const auto waits = static_cast<std::size_t>(std::count_if(plan->kept.begin(), plan->kept.end(), [](const SyncPair& p) { return p.from != p.to; }));
    ASSERT_LE(waits, without->kept.size());
    spared += without->kept.size() - waits;
  }
  EXPECT_GT(spared, 0u);
}

TEST(SyncControlProperty, CompatKeepsEveryOrderOfAPlainGraphWithAtLeastAsManyPairs) {
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Sketch s = with_parts(random, false);
    SyncOptions options;
    options.count_compat = true;
    const auto exact = plan_sync(s.graph, s.on, options);
    options.mode = SyncMode::compat;
    const auto compat = plan_sync(s.graph, s.on, options);
    ASSERT_TRUE(exact.ok() && compat.ok());
    ASSERT_TRUE(verify(s.graph, s.on, *compat).empty()) << to_string(verify(s.graph, s.on, *compat)[0]);
    ASSERT_TRUE(compat->warnings.empty());
    ASSERT_LE(exact->kept.size(), compat->kept.size());
    ASSERT_EQ(exact->compat, compat->compat);
    ASSERT_EQ(compat->compat->kept(), compat->kept.size());
    ASSERT_GE(compat->compat->inserted, compat->inserted);
    ASSERT_TRUE(Order(s, compat->kept, 0, {}).lost().empty());
  }
}

TEST(SyncControlProperty, FewestMeetsTheCapOrSaysSoAndKeepsEveryOrder) {
  std::size_t met = 0;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Sketch s = with_parts(random, random.chance(0.3));
    const auto exact = plan_sync(s.graph, s.on, {});
    ASSERT_TRUE(exact.ok());
    if (exact->kept.empty()) continue;
    SyncOptions options;
    options.mode = SyncMode::fewest;
    options.max_pairs = static_cast<std::uint32_t>(exact->kept.size());
    ASSERT_EQ(plan_sync(s.graph, s.on, options)->kept, exact->kept);  // no cap is exceeded: exact
    options.max_pairs -= 1;
    const auto fewer = plan_sync(s.graph, s.on, options);
    ASSERT_TRUE(fewer.ok());
    const Order order(s, fewer->kept, 0, {});
    ASSERT_TRUE(order.lost().empty()) << print(s.graph, s.on, *fewer);
    ASSERT_FALSE(order.circle());
    for (const Error& e : verify(s.graph, s.on, *fewer)) ADD_FAILURE() << to_string(e) << print(s.graph, s.on, *fewer);
    ASSERT_LE(fewer->kept.size(), exact->kept.size());
    met += fewer->kept.size() <= options.max_pairs ? 1 : 0;
    ASSERT_EQ(fewer->warnings.empty(), fewer->kept == exact->kept);
  }
  EXPECT_GT(met, 0u);
}

TEST(SyncControlProperty, TheOrderOfTheEdgeListDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Sketch s = switched(random);
    Graph other("sketch");
    for (const NodeId n : s.graph.nodes()) {  // every edge a control edge, in another order
      const std::string_view outputs[] = {s.graph.name(n)};
      Graph::NodeSpec spec;
      spec.type = s.graph.type(n);
      spec.name = s.graph.name(n);
      spec.outputs = outputs;
      other.add_node(spec);
    }
    Graph reversed = other;
    const std::set<Edge> edges = edges_of(s.graph);
    for (auto e = edges.begin(); e != edges.end(); ++e) other.add_control_edge(NodeId(e->first), NodeId(e->second));
    for (auto e = edges.rbegin(); e != edges.rend(); ++e) reversed.add_control_edge(NodeId(e->first), NodeId(e->second));
    for (Graph* g : {&other, &reversed}) {
      for (const NodeId n : s.graph.nodes()) {
        g->annotations().label.set(n, g->intern(s.graph.text(*s.graph.annotations().label.get(n))));
        const auto& labels = s.graph.annotations().activates.get(n);
        if (!labels) continue;
        std::vector<StringId> mine;
        for (const StringId l : *labels) mine.push_back(g->intern(s.graph.text(l)));
        g->annotations().activates.set(n, mine);
      }
      ASSERT_TRUE(g->finish().ok());
    }
    for (const SyncMode mode : {SyncMode::exact, SyncMode::compat}) {
      const auto a = plan_sync(other, s.on, {mode}), b = plan_sync(reversed, s.on, {mode});
      ASSERT_TRUE(a.ok() && b.ok());
      ASSERT_EQ(print(other, s.on, *a), print(reversed, s.on, *b));
    }
  }
}

}  // namespace
}  // namespace millstream::testing
