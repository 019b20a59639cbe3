// SPDX-License-Identifier: Apache-2.0
// Random graphs on random streams, workers and delays give the bits of one stream. MST_PROPERTY_COUNT sets how
// many graphs.
#include <gtest/gtest.h>

#include "millstream/graph/dependencies.h"
#include "tests/exec_kernels.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

void give_shapes(Graph& graph, Random& random) {
  for (const NodeId n : graph.nodes()) {
    for (const ValueId v : graph.outputs(n)) {
      graph.set_desc(v, TensorDesc::of(DType::u32, {static_cast<std::int64_t>(1 + random.below(random.chance(0.7) ? 64 : 3000))}));
    }
  }
}

std::vector<Tensor> outputs_of(const Graph& g, const Schedule& s, std::uint32_t workers, const std::vector<std::optional<std::uint64_t>>& seeds) {
  const Result<MemoryPlan> plan = plan_memory(g, s, {});
  MST_CHECK(plan.ok(), to_string(plan.error()));
  const auto backend = make_cpu_backend(workers, 1);
  Result<Executable> executable = instantiate(g, s, *plan, test_kernels(), *backend, {});
  MST_CHECK(executable.ok(), to_string(executable.error()));
  std::optional<std::vector<Tensor>> first;
  for (const auto& seed : seeds) {
    ExecuteOptions options;
    options.delay_seed = seed;
    options.trace = seed.has_value();
    Result<RunResult> result = run(*executable, {}, options);
    MST_CHECK(result.ok(), to_string(result.error()));
    if (options.trace) {
      const auto wrong = verify(g, s, result->trace);
      MST_CHECK(wrong.empty(), wrong.front().message);
    }
    if (first) {
      EXPECT_EQ(*first, result->outputs) << "run with seed " << seed.value_or(0);
    } else {
      first = std::move(result->outputs);
    }
  }
  return *std::move(first);
}

TEST(ExecProperty, AnyStreamsWorkersAndDelaysGiveTheBitsOfOneStream) {
  for (std::uint64_t seed = 1; seed <= property_count(40); ++seed) {
    Random random(seed);
    const std::size_t nodes = 4 + random.below(60);
    Placed p = random_placed(random, nodes, 1 + random.below(8), 0.02 + 0.002 * static_cast<double>(random.below(100)));
    give_shapes(p.graph, random);
    const Schedule s = schedule_of(p, plan_of(p), random.chance(0.5) ? EventIds::minimal : EventIds::sequential);
    Placed single{p.graph, streams(nodes, 1)};
    for (const NodeId n : p.graph.nodes()) single.on.placement[n] = Placement{StreamId(0), RuleId(0)};
    const std::vector<Tensor> want = outputs_of(p.graph, schedule_of(single, plan_of(single)), 1, {std::nullopt});
    const auto workers = static_cast<std::uint32_t>(1 + random.below(4));
    EXPECT_EQ(want, outputs_of(p.graph, s, workers, {std::nullopt, std::nullopt, seed})) << "seed " << seed << ", workers " << workers;
  }
}

// The bits of every value stay when nodes that do not depend on each other change places in the list.
TEST(ExecProperty, PermutingIndependentNodesChangesNoBit) {
  for (std::uint64_t seed = 1; seed <= property_count(25); ++seed) {
    Random random(seed);
    Placed p = random_placed(random, 4 + random.below(40), 1 + random.below(6), 0.1);
    give_shapes(p.graph, random);
    Graph permuted = p.graph;
    std::vector<NodeId> order = p.graph.order();
    const Dependencies deps(p.graph);
    for (int swaps = 0; swaps < 200; ++swaps) {
      const std::size_t i = random.below(order.size() - 1);
      bool linked = false;
      for (const NodeId q : deps.predecessors(order[i + 1])) linked = linked || q == order[i];
      if (!linked) std::swap(order[i], order[i + 1]);
    }
    permuted.set_order(order, false);
    ASSERT_TRUE(permuted.finish().ok());
    ASSERT_EQ(permuted.order(), order);
    Placed q{permuted, p.on};
    EXPECT_EQ(outputs_of(p.graph, schedule_of(p, plan_of(p)), 2, {std::nullopt}),
              outputs_of(q.graph, schedule_of(q, plan_of(q)), 2, {std::nullopt}))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace millstream::testing
