// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

std::string lanes(const Placed& p, EventIds how = EventIds::minimal) { return print(p.graph, schedule_of(p, plan_of(p), how)); }

TEST(Lower, WaitsBeforeRecordsBehindTheirNode) {
  const Placed p = placed({"a", "x b out"}, {{"x", "a"}, {"x", "b"}, {"a", "out"}, {"b", "out"}});
  EXPECT_EQ(lanes(p),
            "stream 0: ?e0  a  !e1\n"
            "stream 1: x  !e0  b  ?e1  out\n");
}

// With one id c's wait could take what b's wait is there for: waits consume whatever record they find.
TEST(Lower, ATransitChainNeedsTwoIds) {  // X2
  const Placed p = placed({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}, {"a", "c"}});
  EXPECT_EQ(lanes(p), "stream 0: a  !e0\nstream 1: ?e0  b  !e1\nstream 2: ?e1  c\n");
  const auto one = parse_schedule("stream 0: a !e0\nstream 1: ?e0 b !e0\nstream 2: ?e0 c\n", p.graph, "t");
  const CheckReport report = check(p.graph, *one, nullptr);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.violations[0].kind, Violation::Kind::event_reuse);
}

// Field report: an event id was reused while lifetimes overlapped.
TEST(Lower, AnIdIsUsedAgainOnlyWhenItsOldWaitIsPast) {
  // There and back: the next crossing in the same direction comes behind both waits.
  const Placed p = placed({"a1 a2 a3", "b1 b2 b3"}, {{"a1", "b1"}, {"b1", "a2"}, {"a2", "b2"}, {"b2", "a3"}, {"a3", "b3"}});
  EXPECT_EQ(lanes(p),
            "stream 0: a1  !e0  ?e1  a2  !e0  ?e1  a3  !e0\n"
            "stream 1: ?e0  b1  !e1  ?e0  b2  !e1  ?e0  b3\n");
  EXPECT_TRUE(check(p.graph, schedule_of(p, plan_of(p)), nullptr).ok());
  // One direction only: the record of a2 may come before the wait of b1.
  const Placed q = placed({"a1 a2", "b1 b2"}, {{"a1", "b1"}, {"a2", "b2"}});
  EXPECT_EQ(lanes(q), "stream 0: a1  !e0  a2  !e1\nstream 1: ?e0  b1  ?e1  b2\n");
}

TEST(Lower, SequentialIdsCountRecords) {
  const Placed p = placed({"a1 a2 a3", "b1 b2 b3"}, {{"a1", "b1"}, {"b1", "a2"}, {"a2", "b2"}, {"b2", "a3"}, {"a3", "b3"}});
  EXPECT_EQ(schedule_of(p, plan_of(p), EventIds::sequential).event_count, 5u);
}

// Field report: a graph was emitted as a chain because stream-order edges were added.
TEST(Lower, EmittedWidthEqualsPlanWidth) {
  const Placed p = placed({"root l0 join", "l1", "l2", "l3"}, {{"root", "l0"}, {"root", "l1"}, {"root", "l2"}, {"root", "l3"},
                                                                {"l0", "join"}, {"l1", "join"}, {"l2", "join"}, {"l3", "join"}});
  const HappensBefore order(p.graph, schedule_of(p, plan_of(p)));
  const std::vector<NodeId> middle = {p.node("l0"), p.node("l1"), p.node("l2"), p.node("l3")};
  for (const NodeId a : middle) {
    for (const NodeId b : middle) EXPECT_FALSE(order.before(a, b));
    EXPECT_TRUE(order.before(p.node("root"), a));
    EXPECT_TRUE(order.before(a, p.node("join")));
  }
}

// Field report: a stream was not joined to the origin. Every stream that the result depends on reaches its
// last node; a stream nothing depends on has no wait, and a run ends only when its tasks ran, too.
TEST(Lower, EveryForkedStreamReachesTheEnd) {
  const Placed p = placed({"a out", "b", "c leaf"}, {{"a", "b"}, {"a", "c"}, {"b", "out"}, {"c", "out"}, {"c", "leaf"}});
  const Schedule s = schedule_of(p, plan_of(p));
  const HappensBefore order(p.graph, s);
  for (const char* n : {"a", "b", "c"}) EXPECT_TRUE(order.before(p.node(n), p.node("out"))) << n;
  EXPECT_FALSE(order.before(p.node("leaf"), p.node("out")));
  EXPECT_EQ(s.streams[PhysicalStreamId(2)].tasks.back(), Task::launch(p.node("leaf")));
  // The join forgotten: the message names the leaf that does not reach the end.
  const auto broken = parse_schedule("stream 0: a !e0 !e1 ?e3 out\nstream 1: ?e0 b\nstream 2: ?e1 c !e3 leaf\n", p.graph, "t");
  const CheckReport report = check(p.graph, *broken, nullptr);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].message, "out on stream 0 reads b, which b writes on stream 1, and nothing orders them");
}

TEST(Lower, LimitsNameNeededAndAllowed) {
  const Placed p = placed({"a1 a2", "b1 b2"}, {{"a1", "b1"}, {"a2", "b2"}});
  const SyncPlan plan = plan_of(p);
  const auto limited = [&](auto set) {
    Target t = no_limits();
    set(t.limits);
    const auto s = lower(p.graph, p.on, plan, t, {});
    return s.ok() ? Error{} : s.error();
  };
  const Error streams = limited([](Limits& l) { l.streams = 1; });
  EXPECT_EQ(streams.code, ErrorCode::stream_limit);
  EXPECT_NE(streams.message.find("needs 2 streams, target boundless has 1"), std::string::npos) << streams.message;
  EXPECT_EQ(limited([](Limits& l) { l.events = 1; }).code, ErrorCode::allocation_limit);
  EXPECT_EQ(limited([](Limits& l) { l.tasks_per_stream = 1; }).code, ErrorCode::task_limit);
}

TEST(Lower, APairAgainstTheOrderIsRefused) {
  const Placed p = placed({"a", "b"}, {{"a", "b"}});
  SyncPlan plan = plan_of(p);
  std::swap(plan.kept[0].from, plan.kept[0].to);
  EXPECT_EQ(lower(p.graph, p.on, plan, no_limits(), {}).error().code, ErrorCode::plan_mismatch);
}

}  // namespace
}  // namespace millstream::testing
