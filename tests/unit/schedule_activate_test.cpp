// SPDX-License-Identifier: Apache-2.0
// Which streams each activation starts once streams are split.
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/interpret.h"
#include "millstream/schedule/stages.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

using Ids = std::vector<std::uint32_t>;

// Nodes carry @stream(N); without it they have none.
Placed read(const std::string& text) {
  Result<Graph> g = parse_graph(text, "test");
  MST_CHECK(g.ok(), to_string(g.error()));
  Placed p{std::move(g).value(), {}};
  std::int64_t most = -1;
  for (const NodeId n : p.graph.nodes()) most = std::max(most, p.graph.annotations().preset_stream.get(n).value_or(-1));
  p.on = streams(p.graph.node_count(), static_cast<std::size_t>(most + 1));
  for (const NodeId n : p.graph.nodes()) {
    const auto& s = p.graph.annotations().preset_stream.get(n);
    if (s && *s >= 0) p.on.placement[n] = Placement{StreamId(static_cast<std::size_t>(*s)), RuleId(0)};
  }
  return p;
}

Target limited(std::uint32_t tasks) {
  Target t = no_limits();
  t.limits.tasks_per_stream = tasks;
  return t;
}

struct Started {
  Activation activation;
  Splitting splitting;
  Result<Starts> starts = Starts{};
};

Started start(const Placed& p, std::uint32_t limit, SyncMode mode = SyncMode::exact) {
  Started r;
  auto a = plan_activation(p.graph, p.on);
  MST_CHECK(a.ok(), to_string(a.error()));
  r.activation = *a;
  LowerOptions o;
  o.split_reserved = 0;
  const Target t = limited(limit);
  auto s = split_streams({p.graph, p.on, {}, t, o, mode});
  MST_CHECK(s.ok(), to_string(s.error()));
  r.splitting = *s;
  r.starts = plan_starts({p.graph, p.on, r.activation, r.splitting, mode});
  return r;
}

Ids list_of(const Placed& p, const Started& r, std::string_view node) {
  MST_CHECK(r.starts.ok(), to_string(r.starts.error()));
  for (const StartList& l : r.starts->lists) {
    if (l.node == p.node(node)) return l.streams;
  }
  return {};
}

TEST(Starts, PiecesJoinTheListOfTheirStream) {
  const Placed p = read(
      "graph g\n  input in\n  act = StreamActive(in) @stream(0) @activates(\"L\")\n"
      "  x1 = Op() @after(act) @label(\"L\") @stream(1)\n  x2 = Op(x1) @label(\"L\") @stream(1)\n  x3 = Op(x2) @label(\"L\") @stream(1)\n"
      "  x4 = Op(x3) @label(\"L\") @stream(1)\n  x5 = Op(x4) @label(\"L\") @stream(1)\n");
  const Started r = start(p, 4);
  EXPECT_EQ(list_of(p, r, "act"), (Ids{1, 2}));
  EXPECT_EQ(r.starts->started, (Ids{1, 2}));
  const auto s = lower(p.graph, p.on, plan_of(p), limited(6), {});
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  EXPECT_EQ(print(p.graph, *s), "stream 0: act>s1  act>s2\nstream 1: x1  x2  x3  x4  !e0\nstream 2 of 1: ?e0  x5\n");
}

TEST(Starts, ABranchOnSeveralStreamsGetsARelay) {
  std::string text =
      "graph g\n  input in\n  sw = StreamSwitchN(in) @stream(0) @activates(\"b0\", \"b1\")\n"
      "  y = Op() @after(sw) @label(\"b0\") @stream(1)\n  x1 = Op() @after(sw) @label(\"b1\") @stream(2)\n";
  for (int i = 2; i <= 5; ++i) text += fmt::format("  x{} = Op(x{}) @label(\"b1\") @stream(2)\n", i, i - 1);
  const Placed p = read(text);
  const Started r = start(p, 4);
  EXPECT_EQ(list_of(p, r, "sw"), (Ids{1, 4}));
  ASSERT_EQ(r.starts->relays.size(), 1u);
  EXPECT_EQ(r.starts->relays[0], (RelayStream{p.node("sw"), 1, 4, {2, 3}}));
  const auto s = lower(p.graph, p.on, plan_of(p), limited(6), {});
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  EXPECT_EQ(print(p.graph, *s),
            "stream 0: sw?>s1|s4\nstream 1: y\nstream 2: x1  x2  x3  x4  !e0\nstream 3 of 2: ?e0  x5\nstream 4 of 0 relay: sw>s2  sw>s3\n");
  const auto again = parse_schedule(print(p.graph, *s), p.graph, "again");
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(*again, *s);
  EXPECT_EQ(task_names(p.graph, *s)[PhysicalStreamId(4)], (std::vector<std::string>{"sw_StreamActive_1", "sw_StreamActive_1"}));
}

TEST(Starts, ALoopStartsWhatNothingElseStarts) {
  const Placed p = read(
      "graph g\n  input in\n  p = Op(in) @stream(2)\n  q = Op(p) @stream(3)\n  act = StreamActive(p) @stream(2) @activates(\"L\")\n"
      "  x = Op() @after(act) @label(\"L\") @stream(4)\n  sw = StreamSwitch(in) @label(\"swl\") @stream(0) @activates(\"la\")\n"
      "  la = StreamActive() @after(sw) @label(\"la\") @stream(1) @role(loop_active)\n");
  const Started r = start(p, 100, SyncMode::compat);
  EXPECT_EQ(list_of(p, r, "la"), (Ids{0, 2, 3}));
  EXPECT_EQ(arrows(p.graph, r.starts->loop_pairs), (std::vector<std::string>{"act -> sw", "q -> sw"}));
}

TEST(Starts, StreamsThatOnlyStartEachOtherNeverRun) {
  const Placed p = read(
      "graph g\n  input in\n  h = Op(in) @stream(0)\n  a = StreamActive() @stream(1) @label(\"A\") @activates(\"B\")\n"
      "  b = StreamActive() @stream(2) @label(\"B\") @activates(\"A\")\n");
  Activation activation;
  activation.activators = {{p.node("a"), {StreamId(2)}}, {p.node("b"), {StreamId(1)}}};
  activation.started_by = IdVec<StreamId, std::vector<NodeId>>(3);
  activation.started_by[StreamId(2)] = {p.node("a")};
  activation.started_by[StreamId(1)] = {p.node("b")};
  Splitting whole;
  whole.streams = 3;
  const auto starts = plan_starts({p.graph, p.on, activation, whole});
  ASSERT_FALSE(starts.ok());
  EXPECT_EQ(to_string(starts.error()),
            "error: stream 1 is never activated; its first node is a [E10 never activated]\n"
            "  note: b would start it, but stands on stream 2, which never runs\n"
            "  help: start one of these streams from a stream that begins with the model");
}

std::string findings(const Interpretation& truth) {
  std::string out;
  for (const auto& f : truth.findings) out += f.message + "\n";
  return out;
}

TEST(Starts, WhatATakenSwitchSkipsStaysBehindIt) {
  const Placed p = read(
      "graph g\n  input in\n  a = Op(in) @stream(0)\n  b = Op(a) @stream(0)\n  sw = StreamSwitch(b) @stream(0) @activates(\"T\")\n"
      "  c = Op() @after(sw) @stream(0)\n  d = Op(c) @stream(0)\n  t = Op() @after(sw) @label(\"T\") @stream(1)\n");
  LowerOptions o;
  o.split_reserved = 1;
  const auto s = lower(p.graph, p.on, plan_of(p), limited(4), o);
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  EXPECT_EQ(print(p.graph, *s), "stream 0: a  b  !e0\nstream 1: t\nstream 2 of 0: ?e0  sw?>s1  c  d\n");
  const Interpretation truth = interpret(p.graph, *s);
  EXPECT_TRUE(truth.ok()) << findings(truth);
  o.split_reserved = 2;
  const auto refused = lower(p.graph, p.on, plan_of(p), limited(3), o);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::task_limit);
}

TEST(Starts, BranchesOfAMultiDimsModelShareEventIds) {
  std::string text = "graph g\n  input in\n  sw = StreamSwitchN(in) @stream(0) @activates(\"b0\", \"b1\")\n";
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 2 + b; ++i) {
      text += fmt::format("  s{0}{1} = Op() @after({2}) @label(\"b{0}\") @batch(\"Batch_{0}\") @stream({3})\n", b, i, i == 0 ? "sw" : fmt::format("s{}{}", b, i - 1), 1 + 2 * b);
      text += fmt::format("  r{0}{1} = Op(s{0}{1}) @label(\"b{0}\") @batch(\"Batch_{0}\") @stream({2})\n", b, i, 2 + 2 * b);
    }
  }
  const Placed p = read(text);
  for (const EventIds how : {EventIds::minimal, EventIds::sequential}) {
    const auto s = lower(p.graph, p.on, plan_of(p), no_limits(), {how});
    ASSERT_TRUE(s.ok()) << to_string(s.error());
    EXPECT_EQ(s->event_count, 3u) << print(p.graph, *s);
    const Interpretation truth = interpret(p.graph, *s);
    EXPECT_TRUE(truth.ok()) << print(p.graph, *s) << findings(truth);
    const CheckReport report = check(p.graph, *s, nullptr, {}, false);
    EXPECT_TRUE(report.ok()) << print(p.graph, *s) << report.violations.front().message;
  }
}

}  // namespace
}  // namespace millstream::testing
