// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

using Kind = Violation::Kind;

CheckReport checked(const Placed& p, std::string_view lanes, std::span<const Requirement> extra = {}, const Target* target = nullptr) {
  const auto s = parse_schedule(lanes, p.graph, "t");
  MST_CHECK(s.ok(), to_string(s.error()));
  return check(p.graph, *s, target, extra);
}

std::vector<Kind> kinds(const CheckReport& report) {
  std::vector<Kind> out;
  for (const Violation& v : report.violations) out.push_back(v.kind);
  return out;
}

TEST(Check, ARaceNamesBothAccessesTheValueTheStreamsAndTheWait) {
  const Placed p = placed({"a", "b"}, {{"a", "b"}});
  EXPECT_TRUE(checked(p, "stream 0: a !e0\nstream 1: ?e0 b").ok());
  const CheckReport report = checked(p, "stream 0: a !e0\nstream 1: b");
  ASSERT_EQ(kinds(report), std::vector{Kind::race});
  const Violation& v = report.violations[0];
  EXPECT_EQ(v.message, "b on stream 1 reads a, which a writes on stream 0, and nothing orders them");
  EXPECT_EQ(v.first, p.node("a"));
  EXPECT_EQ(v.second, p.node("b"));
  EXPECT_EQ(v.streams, (std::vector{PhysicalStreamId(0), PhysicalStreamId(1)}));
  EXPECT_EQ(v.missing_from, p.node("a"));
  EXPECT_EQ(v.missing_to, p.node("b"));
}

TEST(Check, ControlEdgesAreRequired) {
  const Placed p = placed({"a", "b"}, {}, {{"a", "b"}});
  const CheckReport report = checked(p, "stream 0: a\nstream 1: b");
  ASSERT_EQ(kinds(report), std::vector{Kind::race});
  EXPECT_EQ(report.violations[0].message, "b on stream 1 must run after a on stream 0, and nothing orders them");
}

TEST(Check, ARecordBeforeItsNodeOrdersNothing) {
  const Placed p = placed({"a", "b"}, {{"a", "b"}});
  EXPECT_EQ(kinds(checked(p, "stream 0: !e0 a\nstream 1: ?e0 b")), std::vector{Kind::race});
  EXPECT_EQ(kinds(checked(p, "stream 0: a !e0\nstream 1: b ?e0")), std::vector{Kind::race});
}

TEST(Check, TheSmallestCounterExampleComesFirst) {
  const Placed p = placed({"a c e", "b d f"}, {{"a", "f"}, {"c", "d"}, {"a", "d"}});
  const CheckReport report = checked(p, "stream 0: a !e0 c e\nstream 1: b d f");
  ASSERT_EQ(report.violations.size(), 3u);
  EXPECT_EQ(report.violations[0].first, p.node("c"));
  EXPECT_EQ(report.violations[0].second, p.node("d"));
}

TEST(Check, WrongOrderOnOneStreamHasNoMissingWait) {
  const Placed p = placed({"a b"}, {{"a", "b"}});
  const CheckReport report = checked(p, "stream 0: b a");
  ASSERT_EQ(kinds(report), std::vector{Kind::race});
  EXPECT_EQ(report.violations[0].message, "b on stream 0 reads a, which a writes on stream 0, but the schedule runs it earlier");
  EXPECT_FALSE(report.violations[0].missing_from.has_value());
}

TEST(Check, MissingAndRepeatedNodes) {
  const Placed p = placed({"a b"}, {});
  EXPECT_EQ(kinds(checked(p, "stream 0: a")), std::vector{Kind::missing_node});
  EXPECT_EQ(kinds(checked(p, "stream 0: a b\nstream 1: a")), std::vector{Kind::repeated_node});
}

TEST(Check, IdsOutOfRangeAreRefused) {
  const Placed p = placed({"a b"}, {});
  Schedule s;
  s.streams.push_back({StreamId(0), {Task::launch(NodeId(9)), Task::wait(EventId(4))}});
  EXPECT_EQ(kinds(check(p.graph, s, nullptr)), (std::vector{Kind::missing_node, Kind::limit}));
  // A broken file must not make us claim unbounded memory.
  Schedule huge;
  huge.event_count = 0xfffffff0u;
  huge.streams.resize(20'000);
  EXPECT_EQ(kinds(check(p.graph, huge, nullptr)), (std::vector{Kind::limit, Kind::limit}));
}

// Field report: the only symptom of a hang was a timeout. The message names stream, last task and event.
TEST(Check, ADeadlockNamesStreamsLastNodesAndEvents) {
  const Placed p = placed({"a c", "b d"}, {});
  const CheckReport report = checked(p, "stream 0: a ?e1 c !e0\nstream 1: b ?e0 d !e1");
  ASSERT_EQ(kinds(report), std::vector{Kind::deadlock});
  EXPECT_EQ(report.violations[0].message,
            "stream 0 waits behind a, before c, for event e1 of stream 1; stream 1 waits behind b, before d, for event e0 of stream 0");
  EXPECT_EQ(report.violations[0].streams.size(), 2u);
}

TEST(Check, AStreamCanWaitForItself) {
  const Placed p = placed({"a"}, {});
  const CheckReport report = checked(p, "stream 0: ?e0 a !e0");
  ASSERT_EQ(kinds(report), std::vector{Kind::deadlock});
  EXPECT_EQ(report.violations[0].message, "stream 0 waits at its start, before a, for event e0 of stream 0");
}

TEST(Check, AWaitWithoutRecord) {
  const Placed p = placed({"a", "b", "c"}, {{"a", "b"}, {"a", "c"}});
  CheckReport report = checked(p, "stream 0: a\nstream 1: ?e0 b\nstream 2: c");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.violations[0].kind, Kind::unmatched_wait);
  EXPECT_EQ(report.violations[0].message, "stream 1 waits for event e0 at its start, before b, and it is never sent [E05]");
  // Consume semantics: a record serves one wait.
  report = checked(p, "stream 0: a !e0\nstream 1: ?e0 b\nstream 2: ?e0 c");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.violations[0].kind, Kind::unmatched_wait);
  EXPECT_NE(report.violations[0].message.find("the last one went to the wait of stream 1 before b"), std::string::npos)
      << report.violations[0].message;
}

TEST(Check, AnUnreadRecordAloneIsFine) {
  const Placed p = placed({"a", "b"}, {{"a", "b"}});
  EXPECT_TRUE(checked(p, "stream 0: a !e0 !e1\nstream 1: ?e0 b").ok());
}

// Field report: an event id was reused while lifetimes overlapped.
TEST(Check, ReusedEventsMustPairAlikeInEveryRun) {
  const Placed p = placed({"a1 a2", "b1 b2"}, {{"a1", "b1"}, {"a2", "b2"}});
  CheckReport report = checked(p, "stream 0: a1 !e0 a2 !e0\nstream 1: ?e0 b1 ?e0 b2");
  ASSERT_EQ(kinds(report), std::vector{Kind::event_reuse});
  EXPECT_EQ(report.violations[0].message,
            "event e0 is recorded again by stream 0 behind a2, perhaps before the wait of stream 1 before b1 has taken the record before it");
  const Placed q = placed({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}});
  report = checked(q, "stream 0: a !e0\nstream 1: ?e0 b !e0\nstream 2: ?e0 c");
  ASSERT_EQ(kinds(report), std::vector{Kind::event_reuse});
  EXPECT_EQ(report.violations[0].message,
            "the wait for event e0 of stream 2 before c may take the record meant for the wait of stream 1 before b");
  report = checked(q, "stream 0: a !e0 !e0\nstream 1: ?e0 b !e1\nstream 2: ?e1 c");
  ASSERT_EQ(kinds(report), std::vector{Kind::event_reuse});
  EXPECT_EQ(report.violations[0].message,
            "event e0 is recorded again by stream 0 behind a while no wait has taken the record of stream 0 behind a");
}

// Field report: two writers of one output were reordered.
TEST(Check, TwoWritersOfOneBufferKeepTheirOrder) {
  const Placed p = placed({"a", "b"}, {});
  const ValueId v = p.graph.outputs(p.node("b"))[0];
  const std::vector<Requirement> extra = {{p.node("a"), p.node("b"), Requirement::Kind::buffer, v}};
  EXPECT_TRUE(checked(p, "stream 0: a !e0\nstream 1: ?e0 b", extra).ok());
  const CheckReport report = checked(p, "stream 0: a\nstream 1: b", extra);
  ASSERT_EQ(kinds(report), std::vector{Kind::race});
  EXPECT_EQ(report.violations[0].message, "b on stream 1 writes b over a buffer that a uses on stream 0, and nothing orders them");
  const CheckReport reversed = checked(p, "stream 0: ?e0 a\nstream 1: b !e0", extra);
  ASSERT_EQ(kinds(reversed), std::vector{Kind::race});
  EXPECT_NE(reversed.violations[0].message.find("but the schedule runs it earlier"), std::string::npos);
  const std::vector<Requirement> foreign = {{NodeId(77), p.node("b"), Requirement::Kind::buffer, v}};
  EXPECT_EQ(kinds(checked(p, "stream 0: a\nstream 1: b", foreign)), std::vector{Kind::memory});
}

TEST(Check, LimitsOfTheTarget) {
  const Placed p = placed({"a", "b"}, {{"a", "b"}});
  Target t = no_limits();
  t.limits.streams = 1;
  t.limits.events = 0;
  t.limits.tasks_per_stream = 1;
  EXPECT_EQ(kinds(checked(p, "stream 0: a !e0\nstream 1: ?e0 b", {}, &t)), (std::vector{Kind::limit, Kind::limit, Kind::limit, Kind::limit}));
}

TEST(Check, RedundantWaitsAreListed) {
  const Placed p = placed({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}, {"a", "c"}});
  const CheckReport report = checked(p, "stream 0: a !e0 !e1\nstream 1: ?e0 b !e2\nstream 2: ?e1 ?e2 c");
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report.redundant.size(), 1u);
  EXPECT_EQ(report.redundant[0].event, EventId(1));
  EXPECT_EQ(report.redundant[0].wait, (TaskRef{PhysicalStreamId(2), 0}));
}

TEST(Check, AWaitThatOrdersWhatNobodyNeedsIsRedundant) {
  const Placed p = placed({"a x", "b y"}, {{"a", "y"}});
  EXPECT_EQ(checked(p, "stream 0: a x\nstream 1: b y").violations.size(), 1u);
  const CheckReport report = checked(p, "stream 0: a !e0 x !e1\nstream 1: ?e0 b y ?e1");
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report.redundant.size(), 1u);  // e0 carries a -> y, earlier than it had to be
  EXPECT_EQ(report.redundant[0].event, EventId(1));
}

TEST(Check, AnEmptyScheduleOfAnEmptyGraph) {
  Graph g("none");
  ASSERT_TRUE(g.finish().ok());
  EXPECT_TRUE(check(g, Schedule{}, nullptr).ok());
}

}  // namespace
}  // namespace millstream::testing
