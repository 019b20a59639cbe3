// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

using Arrows = std::vector<std::string>;

// Both the reducer's answer and the independent check of it.
SyncPlan checked_plan(const Placed& p) {
  SyncPlan plan = plan_of(p);
  for (const Error& e : verify(p.graph, p.on, plan)) ADD_FAILURE() << to_string(e);
  return plan;
}

TEST(SyncPlan, CrossedPairsNeedOneWait) {  // X1
  const Placed p = placed({"a1 a2", "b1 b2"}, {{"a2", "b1"}, {"a1", "b2"}});
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(plan.inserted, 2u);
  EXPECT_EQ(arrows(p.graph, plan.kept), Arrows({"a2 -> b1"}));
}

TEST(SyncPlan, AThirdStreamImpliesAPair) {  // X2
  const Placed p = placed({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}, {"a", "c"}});
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(plan.inserted, 3u);
  EXPECT_EQ(arrows(p.graph, plan.kept), Arrows({"a -> b", "b -> c"}));
  ASSERT_EQ(plan.dropped.size(), 1u);
  EXPECT_EQ(plan.dropped[0].path_length, 2u);
  EXPECT_EQ(print(p.graph, p.on, plan),
            "kept    a -> b  (data, stream 0 -> 1)\n"
            "kept    b -> c  (data, stream 1 -> 2)\n"
            "dropped a -> c  (data, stream 0 -> 2): implied by a -> b -> c\n"
            "3 pairs inserted, 2 kept, 1 dropped\n");
}

TEST(SyncPlan, OverlapOfComputeAndCommunicationNeedsFiveOfNine) {  // X3
  const Placed p = placed({"m0 m1 m2", "h0 h1", "v0 v1"},
                          {{"m0", "h0"}, {"m0", "v0"}, {"m0", "v1"}, {"m1", "h1"}, {"m1", "v1"},
                           {"h0", "v0"}, {"h1", "v1"}, {"h1", "m2"}, {"v1", "m2"}});
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(plan.inserted, 9u);
  Arrows kept = arrows(p.graph, plan.kept);
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, Arrows({"h0 -> v0", "h1 -> v1", "m0 -> h0", "m1 -> h1", "v1 -> m2"}));
}

TEST(SyncPlan, AnOptimalSetStaysAsItIs) {  // X6
  const Placed p = placed({"g q s o", "k", "v"}, {{"g", "k"}, {"g", "v"}, {"k", "s"}, {"v", "o"}, {"k", "o"}});
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(plan.inserted, 5u);
  EXPECT_EQ(plan.kept.size(), 4u);
}

TEST(SyncPlan, FanInNeedsFourOfEight) {  // X9
  const Placed p = placed({"a d", "b1 b2", "c1 c2"}, {{"a", "b1"}, {"a", "b2"}, {"a", "c1"}, {"b1", "d"},
                                                      {"b2", "d"}, {"c2", "d"}, {"b1", "c2"}, {"b2", "c2"}});
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(plan.inserted, 8u);
  Arrows kept = arrows(p.graph, plan.kept);
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, Arrows({"a -> b1", "a -> c1", "b2 -> c2", "c2 -> d"}));
}

TEST(SyncPlan, ParallelEdgesCountOnce) {
  Placed p = placed({"a", "b"}, {{"a", "b"}, {"a", "b"}}, {{"a", "b"}});
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(plan.inserted, 1u);
  EXPECT_EQ(plan.kept[0].reason, PairReason::data);
}

// Field report: control dependencies were dropped when streams ran at once.
TEST(SyncPlan, ControlEdgesSurvive) {
  const Placed p = placed({"a", "b"}, {}, {{"a", "b"}});
  const SyncPlan plan = checked_plan(p);
  ASSERT_EQ(plan.kept.size(), 1u);
  EXPECT_EQ(plan.kept[0].reason, PairReason::control);
  const Schedule s = schedule_of(p, plan);
  EXPECT_TRUE(HappensBefore(p.graph, s).before(p.node("a"), p.node("b")));
}

TEST(SyncPlan, ANodeWithoutTaskIsTransparent) {
  Placed p = placed({"a", "hole", "b"}, {{"a", "hole"}, {"hole", "b"}});
  p.on = streams(3, 2);
  p.on.placement[p.node("a")] = Placement{StreamId(0), RuleId(0)};
  p.on.placement[p.node("b")] = Placement{StreamId(1), RuleId(0)};
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(arrows(p.graph, plan.kept), Arrows({"a -> b"}));
}

TEST(SyncPlan, NoneKeepsEveryPair) {
  const Placed p = placed({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}, {"a", "c"}});
  const SyncPlan plan = plan_of(p, SyncMode::none);
  EXPECT_EQ(arrows(p.graph, plan.kept), Arrows({"a -> b", "a -> c", "b -> c"}));
  EXPECT_TRUE(verify(p.graph, p.on, plan).empty());
  SyncPlan claimed = plan;
  claimed.mode = SyncMode::exact;
  ASSERT_EQ(verify(p.graph, p.on, claimed).size(), 1u);
  EXPECT_NE(verify(p.graph, p.on, claimed)[0].message.find("a -> c is implied"), std::string::npos);
}

// A node listed before what it needs: legal on two streams, not on one.
TEST(SyncPlan, AFixedOrderAgainstTheEdges) {
  Placed p = placed({"a x", "b"}, {{"a", "b"}});
  p.graph.set_order({p.node("b"), p.node("a"), p.node("x")}, true);
  const SyncPlan plan = checked_plan(p);
  EXPECT_EQ(arrows(p.graph, plan.kept), Arrows({"a -> b"}));
  const Schedule s = schedule_of(p, plan);
  EXPECT_TRUE(check(p.graph, s, nullptr).ok());
  p.on = streams(3, 1);
  for (const NodeId n : p.graph.nodes()) p.on.placement[n] = Placement{StreamId(0), RuleId(0)};
  const auto one = plan_sync(p.graph, p.on, {});
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.error().code, ErrorCode::deadlock);
  EXPECT_NE(one.error().message.find("runs b before a on stream 0"), std::string::npos) << one.error().message;
}

TEST(SyncPlan, AnAssignmentOfAnotherGraphIsRefused) {
  Placed p = placed({"a", "b"}, {{"a", "b"}});
  p.on.placement.resize(1);
  EXPECT_EQ(plan_sync(p.graph, p.on, {}).error().code, ErrorCode::plan_mismatch);
  p.on.placement.resize(2, Placement{StreamId(9), RuleId(0)});
  EXPECT_EQ(plan_sync(p.graph, p.on, {}).error().code, ErrorCode::plan_mismatch);
}

TEST(SyncVerify, SeesEveryKindOfDamage) {
  const Placed p = placed({"a a2", "b", "c c2"}, {{"a", "b"}, {"b", "c"}, {"a", "c"}, {"a", "c2"}});
  const SyncPlan good = checked_plan(p);
  ASSERT_EQ(good.kept.size(), 2u);
  ASSERT_EQ(good.dropped.size(), 2u);
  const auto bad = [&](const char* what, auto damage) {
    SyncPlan plan = good;
    damage(plan);
    EXPECT_FALSE(verify(p.graph, p.on, plan).empty()) << what;
  };
  bad("a kept pair is gone", [](SyncPlan& s) { s.kept.pop_back(); });
  bad("a kept pair is there twice", [](SyncPlan& s) { s.kept.push_back(s.kept[0]); });
  bad("a pair out of range", [](SyncPlan& s) { s.kept[0].from = NodeId(77); });
  bad("a pair on one stream", [&](SyncPlan& s) { s.kept.push_back({p.node("a"), p.node("a2")}); });
  bad("a pair nobody needs", [&](SyncPlan& s) { s.kept.push_back({p.node("a2"), p.node("c2")}); });
  bad("a circle", [&](SyncPlan& s) { s.kept.push_back({p.node("c"), p.node("a"), PairReason::user}); });
  bad("a dropped pair is forgotten", [](SyncPlan& s) { s.dropped.pop_back(); });
  bad("a path outside the pool", [](SyncPlan& s) { s.dropped[0].path_begin = 0xfffffff0u; });
  bad("a path past the end", [](SyncPlan& s) { s.dropped[0].path_length = 0xffffffffu; });
  bad("an empty path", [](SyncPlan& s) { s.dropped[0].path_length = 0; });
  bad("a broken path", [](SyncPlan& s) { std::swap(s.path_pool[0], s.path_pool[1]); });
  bad("a path to a pair that is not there", [](SyncPlan& s) { s.path_pool[0] = PairId(99); });
  bad("a path that ends too early", [](SyncPlan& s) { s.dropped[0].path_length = 1; });
  bad("a wrong count", [](SyncPlan& s) { ++s.inserted; });
}

}  // namespace
}  // namespace millstream::testing
