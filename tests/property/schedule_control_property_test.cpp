// SPDX-License-Identifier: Apache-2.0
// Random graphs with branches, loops and calls, from placement to schedule: every execution runs to its end and keeps
// every order; streams are cut and event ids shared without harm, and no wait can go.
#include <gtest/gtest.h>

#include "millstream/schedule/interpret.h"
#include "millstream/graph/text.h"
#include "millstream/schedule/stages.h"
#include "tests/along_pieces.h"
#include "tests/placed_graph.h"
#include "tests/random_tree.h"

namespace millstream::testing {
namespace {

TreeOptions some_tree(Random& random) {
  TreeOptions o;
  switch (random.below(6)) {
    case 0: o.conditionals = 1; break;
    case 1: o.conditionals = 2; break;
    case 2: o.loops = 1; break;
    case 3: o.calls = 2; break;
    case 4: o.conditionals = 1, o.loops = 1; break;
    default: o.conditionals = 1, o.loops = 1, o.calls = 1; break;
  }
  return o;
}

// Each scope has its parent's stream and some of its own; Data has none.
StreamAssignment place(Random& random, const Graph& graph) {
  StreamAssignment on = streams(graph.node_count(), 0);
  std::vector<std::vector<StreamId>> of_scope(graph.scope_count());
  for (std::size_t i = 1 + random.below(3); i > 0; --i) of_scope[0].push_back(on.new_stream());
  for (const NodeId n : graph.order()) {
    auto& mine = of_scope[graph.scope_of(n).index];
    if (mine.empty()) {
      mine.push_back(on.placement[*graph.scope(graph.scope_of(n)).parent_node]->stream);
      for (std::size_t i = random.below(3); i > 0; --i) mine.push_back(on.new_stream());
    }
    if (graph.type(n) == "Data") continue;
    const auto& roles = graph.annotations().roles.get(n);
    on.placement[n] = Placement{roles && roles->rts_label ? mine[0] : mine[random.below(mine.size())], RuleId(0)};
  }
  return on;
}

std::string findings(const Interpretation& truth) {
  std::string out;
  for (const auto& f : truth.findings) out += "  " + f.message + "\n";
  return out;
}

void hold(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const Target& target, const LowerOptions& options, std::size_t& cut) {
  const auto s = lower(graph, on, plan, target, options);
  if (!s.ok() && s.error().code == ErrorCode::task_limit) return;
  ASSERT_TRUE(s.ok()) << to_string(s.error()) << "\n" << print(graph);
  cut += s->splits.size();
  const auto again = parse_schedule(print(graph, *s), graph, "again");
  ASSERT_TRUE(again.ok()) << to_string(again.error()) << print(graph, *s);
  ASSERT_EQ(*again, *s) << print(graph, *s);
  const Interpretation truth = interpret(graph, *s, {2, 2000});
  ASSERT_TRUE(truth.ok()) << print(graph) << print(graph, on, plan) << print(graph, *s) << findings(truth);
  const CheckReport report = check(graph, *s, nullptr, s->splits.empty() ? std::vector<Requirement>() : along_pieces(*s));
  ASSERT_TRUE(report.ok()) << print(graph) << print(graph, *s) << report.violations.front().message;
  ASSERT_TRUE(report.redundant.empty()) << print(graph) << print(graph, *s) << "e" << report.redundant.front().event.index;
}

TEST(ControlProperty, EveryExecutionOfALoweredTreeIsSound) {
  std::size_t cut = 0, lowered = 0;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Graph graph = random_tree(random, some_tree(random));
    const StreamAssignment on = place(random, graph);
    const auto plan = plan_sync(graph, on, {});
    if (!plan.ok()) {
      ASSERT_EQ(plan.error().code, ErrorCode::conditional_wait) << to_string(plan.error());
      continue;
    }
    ++lowered;
    Target t = no_limits();
    for (const std::uint32_t limit : {0xffffffffu, 12u, 20u}) {
      t.limits.tasks_per_stream = limit;
      for (const EventIds how : {EventIds::minimal, EventIds::sequential}) {
        LowerOptions options;
        options.event_ids = how;
        hold(graph, on, *plan, t, options, cut);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(lowered, property_count(200) / 2);
  EXPECT_GT(cut, 0u);
}

}  // namespace
}  // namespace millstream::testing
