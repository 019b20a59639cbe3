// SPDX-License-Identifier: Apache-2.0
// Stream switches by hand: what the interpreter and check say of them.
#include "millstream/schedule/interpret.h"

#include <gtest/gtest.h>

#include "millstream/graph/text.h"

namespace millstream::testing {
namespace {

struct Both {
  Interpretation truth;
  CheckReport report;
};

Both judge(std::string_view graph_text, std::string_view lanes) {
  const auto graph = parse_graph(graph_text, "t");
  MST_CHECK(graph.ok(), to_string(graph.error()));
  const auto schedule = parse_schedule(lanes, *graph, "t");
  MST_CHECK(schedule.ok(), to_string(schedule.error()));
  return {interpret(*graph, *schedule), check(*graph, *schedule, nullptr)};
}

// Two branches of one predicate start the stream on which they meet.
constexpr std::string_view kTwoWays = R"(graph
  c = Op()
  p = Op()
  StreamSwitch(p) @name("on_true") @role(true_branch)
  StreamSwitch(p) @name("on_false")
  t = Op() @after(c, on_true)
  f = Op() @after(on_false)
  StreamActive() @name("from_t") @after(t)
  StreamActive() @name("from_f") @after(f)
  j = Op()
  w = Op(j) @after(c)
)";

TEST(StreamSwitches, OneWayThatKnowsIsNotEnoughWhereTwoMeet) {
  const Both with = judge(kTwoWays, "stream 0: p on_true?>s1 on_false?>s2\nstream 1: ?e0 t from_t>s3\nstream 2: f from_f>s3\n"
                                    "stream 3: j ?e1 w\nstream 4: c !e0 !e1");
  EXPECT_TRUE(with.truth.ok()) << with.truth.findings[0].message;
  EXPECT_EQ(with.truth.executions, 2u);
  EXPECT_TRUE(with.report.ok()) << with.report.violations[0].message;
  EXPECT_TRUE(with.report.redundant.empty());
  const Both without = judge(kTwoWays, "stream 0: p on_true?>s1 on_false?>s2\nstream 1: ?e0 t from_t>s3\nstream 2: f from_f>s3\n"
                                       "stream 3: j w\nstream 4: c !e0");
  ASSERT_EQ(without.truth.findings.size(), 1u);
  EXPECT_EQ(without.truth.findings[0].message, "w may run before c");
  ASSERT_EQ(without.report.violations.size(), 1u);
  EXPECT_EQ(without.report.violations[0].kind, Violation::Kind::race);
}

TEST(StreamSwitches, WhereBothWaysKnowTheWaitCanGo) {
  const Both both = judge(kTwoWays, "stream 0: p on_true?>s1 on_false?>s2\nstream 1: ?e0 t from_t>s3\nstream 2: ?e2 f from_f>s3\n"
                                    "stream 3: j ?e1 w\nstream 4: c !e0 !e1 !e2");
  EXPECT_TRUE(both.truth.ok());
  EXPECT_TRUE(both.report.ok());
  ASSERT_EQ(both.report.redundant.size(), 2u);  // before w; and before f, which does not need c itself
}

constexpr std::string_view kTraining = R"(graph
  a = Op()
  b = Op(a)
  StreamSwitch(a) @name("more") @role(true_branch) @after(b)
  n = Op() @after(more)
  StreamActive() @name("next") @role(loop_active) @after(n)
)";

TEST(StreamSwitches, AnIterationStartsWhenTheStreamsOfTheLastHaveEnded) {
  const Both good = judge(kTraining, "stream 0: a !e0 ?e1 more?>s2\nstream 1: ?e0 b !e1\nstream 2: n next>s0 next>s1");
  EXPECT_TRUE(good.truth.ok()) << good.truth.findings[0].message;
  EXPECT_GT(good.truth.executions, 2u);
  EXPECT_TRUE(good.report.ok()) << good.report.violations[0].message;
  const Both early = judge(kTraining, "stream 0: a !e0 more?>s2\nstream 1: ?e0 b\nstream 2: n next>s0 next>s1");
  EXPECT_FALSE(early.truth.ok());
  EXPECT_FALSE(early.report.ok());
}

}  // namespace
}  // namespace millstream::testing
