// SPDX-License-Identifier: Apache-2.0
// Memory plans of random graphs on random streams: no two buffers share bytes unless the oracle orders all uses of
// one before the other's writer; the verifier finds what breaks when a wait goes.
#include <gtest/gtest.h>

#include "millstream/memory/memory_plan.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

// Sizes from nothing to kilobytes.
void give_shapes(Graph& graph, Random& random) {
  for (const NodeId n : graph.nodes()) {
    for (const ValueId v : graph.outputs(n)) {
      const auto elements = static_cast<std::int64_t>(random.chance(0.05) ? 0 : 1 + random.below(random.chance(0.5) ? 40 : 900));
      graph.set_desc(v, TensorDesc::of(DType::f32, {elements}));
    }
  }
}

std::vector<NodeId> uses(const Graph& g, ValueId v) {
  std::vector<NodeId> out = {*g.producer(v)};
  for (const NodeId n : g.nodes()) {
    for (const InputRef in : g.inputs(n)) {
      if (in.get() == v) out.push_back(n);
    }
  }
  return out;
}

// Pair by pair, against the brute-force oracle.
void expect_safe(const Graph& g, const Schedule& s, const MemoryPlan& plan, std::uint64_t seed) {
  const HappensBefore oracle(g, s);
  std::vector<bool> result(g.value_count(), false);
  for (const ValueId v : g.outputs()) result[v.index] = true;
  const auto behind = [&](ValueId old, ValueId v) {
    if (result[old.index]) return false;
    for (const NodeId u : uses(g, old)) {
      if (!oracle.before(u, *g.producer(v))) return false;
    }
    return true;
  };
  for (const ValueId a : g.values()) {
    if (!plan.buffers[a] || plan.buffers[a]->size == 0) continue;
    for (const ValueId b : g.values()) {
      if (b <= a || !plan.buffers[b] || plan.buffers[b]->size == 0) continue;
      const Buffer& x = *plan.buffers[a];
      const Buffer& y = *plan.buffers[b];
      if (x.offset >= y.offset + y.size || y.offset >= x.offset + x.size) continue;
      EXPECT_TRUE(behind(a, b) || behind(b, a)) << "seed " << seed << ": " << g.name(a) << " and " << g.name(b);
    }
  }
  for (const Requirement& r : plan.reuse) EXPECT_TRUE(oracle.before(r.first, r.second)) << "seed " << seed;
}

TEST(MemoryProperty, BuffersThatOverlapAreOrderedAndTheVerifierAgrees) {
  std::uint64_t broken = 0, shared = 0;
  for (std::uint64_t seed = 1; seed <= property_count(150); ++seed) {
    Random random(seed);
    Placed p = random_placed(random, 4 + random.below(50), 1 + random.below(8), 0.02 + 0.002 * static_cast<double>(random.below(100)));
    give_shapes(p.graph, random);
    const SyncPlan sync = testing::plan_of(p);
    const Schedule s = schedule_of(p, sync, random.chance(0.5) ? EventIds::sequential : EventIds::minimal);
    const Result<MemoryPlan> plan = plan_memory(p.graph, s, {});
    ASSERT_TRUE(plan.ok()) << to_string(plan.error());
    expect_safe(p.graph, s, *plan, seed);
    for (const Violation& v : verify(p.graph, s, *plan)) ADD_FAILURE() << "seed " << seed << ": " << v.message;
    const CheckReport report = check(p.graph, s, nullptr, plan->reuse);
    EXPECT_TRUE(report.ok()) << "seed " << seed << ": " << report.violations.front().message;
    EXPECT_LE(plan->lower_bound_bytes, plan->single_stream_bytes) << "seed " << seed;
    EXPECT_LE(plan->lower_bound_bytes, plan->peak_bytes) << "seed " << seed;
    shared += plan->reuse.size();

    // One wait less: where the verifier is content, the oracle must be too.
    Schedule cut = s;
    std::vector<TaskRef> waits;
    for (const PhysicalStreamId t : ids<PhysicalStreamId>(cut.streams.size())) {
      for (std::uint32_t i = 0; i < cut.streams[t].tasks.size(); ++i) {
        if (cut.streams[t].tasks[i].kind == Task::Kind::wait) waits.push_back({t, i});
      }
    }
    if (waits.empty() || s.event_count != sync.kept.size()) continue;  // a shared id would pair anew
    const TaskRef gone = waits[random.below(waits.size())];
    auto& tasks = cut.streams[gone.stream].tasks;
    tasks.erase(tasks.begin() + gone.index);
    const HappensBefore oracle(p.graph, cut);
    bool lost = false;
    for (const Requirement& r : plan->reuse) lost = lost || !oracle.before(r.first, r.second);
    const bool found = !verify(p.graph, cut, *plan).empty();
    EXPECT_TRUE(found || !lost) << "seed " << seed;
    broken += found ? 1 : 0;
  }
  EXPECT_GT(shared, 50u) << "no buffer was ever reused across streams";
  EXPECT_GT(broken, 3u) << "no cut wait was ever found";
}

TEST(MemoryProperty, LongListsPlanInOneSweep) {
  Random random(7);
  Placed p = random_placed(random, 20'000, 8, 0.04);
  give_shapes(p.graph, random);
  const Schedule s = schedule_of(p, testing::plan_of(p));
  const Result<MemoryPlan> plan = plan_memory(p.graph, s, {});
  ASSERT_TRUE(plan.ok()) << to_string(plan.error());
  EXPECT_TRUE(verify(p.graph, s, *plan).empty());
  MemoryOptions none;
  none.reuse = false;
  const Result<MemoryPlan> apart = plan_memory(p.graph, s, none);
  ASSERT_TRUE(apart.ok());
  EXPECT_LT(plan->peak_bytes, apart->peak_bytes / 2);
  EXPECT_LT(plan->single_stream_bytes, plan->lower_bound_bytes * 5 / 4);
  EXPECT_LT(plan->peak_bytes, plan->lower_bound_bytes * 3 / 2);
}

}  // namespace
}  // namespace millstream::testing
