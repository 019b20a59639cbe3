// SPDX-License-Identifier: Apache-2.0
// Where buffers lie: reuse only behind happens-before, through views, across three streams.
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "millstream/memory/memory_plan.h"
#include "tests/hand_schedule.h"

namespace millstream::testing {
namespace {

Graph graph_of(const std::string& text) {
  Result<Graph> g = parse_graph(text, "test");
  MST_CHECK(g.ok(), to_string(g.error()));
  return std::move(g).value();
}

MemoryPlan plan_of(const Graph& g, const Schedule& s, MemoryOptions options = {}) {
  Result<MemoryPlan> plan = plan_memory(g, s, options);
  MST_CHECK(plan.ok(), to_string(plan.error()));
  for (const Violation& v : verify(g, s, *plan)) ADD_FAILURE() << v.message;
  return std::move(plan).value();
}

bool overlap(const Graph& g, const MemoryPlan& plan, std::string_view a, std::string_view b) {
  const auto& x = plan.buffers[*g.find_value(a)];
  const auto& y = plan.buffers[*g.find_value(b)];
  MST_CHECK(x && y, "both have buffers");
  return x->offset < y->offset + y->size && y->offset < x->offset + x->size;
}

constexpr const char* kChain =
    "graph\n"
    "  input x : f32[256]\n"
    "  a = Op(x) : f32[256]\n"
    "  b = Op(a) : f32[256]\n"
    "  c = Op(b) : f32[256]\n"
    "  d = Op(c) : f32[256]\n"
    "  output d\n";

TEST(Memory, AChainOnOneStreamNeedsTwoBuffers) {
  const Graph g = graph_of(kChain);
  const MemoryPlan plan = plan_of(g, hand_schedule(g, {"a b c d"}));
  EXPECT_EQ(plan.peak_bytes, 2 * 1024u);
  EXPECT_EQ(plan.single_stream_bytes, plan.peak_bytes);
  EXPECT_EQ(plan.lower_bound_bytes, 2 * 1024u);
  EXPECT_TRUE(overlap(g, plan, "a", "c"));
  EXPECT_FALSE(overlap(g, plan, "a", "b"));
  EXPECT_FALSE(plan.buffers[*g.find_value("x")].has_value());
}

TEST(Memory, WithoutReuseEveryValueHasItsOwnBytes) {
  const Graph g = graph_of(kChain);
  MemoryOptions options;
  options.reuse = false;
  const MemoryPlan plan = plan_of(g, hand_schedule(g, {"a b c d"}), options);
  EXPECT_EQ(plan.peak_bytes, 4 * 1024u);
  EXPECT_TRUE(plan.reuse.empty());
}

// The order of nodes says c comes long after a; only the streams say whether it does.
TEST(Memory, ReuseFollowsHappensBeforeAndNotTheOrderOfNodes) {
  const Graph g = graph_of(
      "graph\n"
      "  a = Op() : f32[256]\n"
      "  b = Op(a) : f32[16]\n"
      "  c = Op() : f32[256]\n"
      "  d = Op(c) : f32[16]\n"
      "  output b, d\n");
  EXPECT_FALSE(overlap(g, plan_of(g, hand_schedule(g, {"a b", "c d"})), "a", "c"));
  EXPECT_TRUE(overlap(g, plan_of(g, hand_schedule(g, {"a b c d"})), "a", "c"));
  const MemoryPlan ordered = plan_of(g, hand_schedule(g, {"a b !e0", "?e0 c d"}));
  EXPECT_TRUE(overlap(g, ordered, "a", "c"));
  ASSERT_EQ(ordered.reuse.size(), 1u);
  EXPECT_EQ(g.name(ordered.reuse[0].first), "b");
  EXPECT_EQ(g.name(ordered.reuse[0].second), "c");
  EXPECT_EQ(ordered.reuse[0].kind, Requirement::Kind::buffer);
}

// Three streams: the writer waits for the second reader, a third one still reads.
TEST(Memory, ABlockIsFreeOnlyWhenEveryStreamThatUsesItIsDone) {
  const Graph g = graph_of(
      "graph\n"
      "  a = Op() : f32[256]\n"
      "  r1 = Op(a) : f32[16]\n"
      "  r2 = Op(a) : f32[16]\n"
      "  w = Op() : f32[256]\n"
      "  output r1, r2, w\n");
  // w knows that r1 is done (stream 1) but not r2 (stream 2).
  EXPECT_FALSE(overlap(g, plan_of(g, hand_schedule(g, {"a !e0 !e1 ?e2 w", "?e0 r1 !e2", "?e1 r2"})), "a", "w"));
  EXPECT_TRUE(overlap(g, plan_of(g, hand_schedule(g, {"a !e0 !e1 ?e2 ?e3 w", "?e0 r1 !e2", "?e1 r2 !e3"})), "a", "w"));
}

// Blocks of two streams that lie side by side: a third that waits for one of them may not have both.
TEST(Memory, MergedBlocksKeepTheOrdersOfBoth) {
  const Graph g = graph_of(
      "graph\n"
      "  a = Op() : f32[256]\n"
      "  b = Op() : f32[256]\n"
      "  c = Op() : f32[512]\n"
      "  ra = Op(a) : f32[16]\n"
      "  rb = Op(b) : f32[16]\n"
      "  output c, ra, rb\n");
  const MemoryPlan stale = plan_of(g, hand_schedule(g, {"a ra !e0", "b rb", "?e0 c"}));
  EXPECT_FALSE(overlap(g, stale, "b", "c"));
  const MemoryPlan both = plan_of(g, hand_schedule(g, {"a ra !e0", "b rb !e1", "?e0 ?e1 c"}));
  EXPECT_LE(both.peak_bytes, stale.peak_bytes);
}

// A value nobody reads, and one that no event concerns, still belong to their stream.
TEST(Memory, ABufferWithoutReadersIsNotFreeForOtherStreams) {
  const Graph g = graph_of(
      "graph\n"
      "  a = Op() : f32[256]\n"
      "  b = Op() : f32[256]\n"
      "  c = Op() : f32[256]\n"
      "  output c\n");
  const MemoryPlan plan = plan_of(g, hand_schedule(g, {"a", "b c"}));
  EXPECT_FALSE(overlap(g, plan, "a", "b"));
  EXPECT_FALSE(overlap(g, plan, "a", "c"));
  EXPECT_TRUE(overlap(g, plan, "b", "c"));  // its own stream may have it
}

TEST(Memory, AViewKeepsItsSourceAlive) {
  const Graph g = graph_of(
      "graph\n"
      "  a = Op() : f32[256]\n"
      "  v = Flatten(a) : f32[1,256]\n"
      "  b = Op() : f32[256]\n"
      "  c = Op(v) : f32[16]\n"
      "  output b, c\n");
  const MemoryPlan plan = plan_of(g, hand_schedule(g, {"a v b c"}));
  EXPECT_EQ(plan.buffers[*g.find_value("a")], plan.buffers[*g.find_value("v")]);
  EXPECT_FALSE(overlap(g, plan, "v", "b"));
}

TEST(Memory, ResultsAreNeverOverwritten) {
  const Graph g = graph_of(
      "graph\n"
      "  a = Op() : f32[256]\n"
      "  b = Op(a) : f32[256]\n"
      "  c = Op(b) : f32[256]\n"
      "  output a, c\n");
  const MemoryPlan plan = plan_of(g, hand_schedule(g, {"a b c"}));
  EXPECT_FALSE(overlap(g, plan, "a", "b"));
  EXPECT_FALSE(overlap(g, plan, "a", "c"));
}

// What a kernel sizes itself, and what only a run knows, is not in the arena.
TEST(Memory, UnknownSizesStayOutsideTheArena) {
  const Graph g = graph_of(
      "graph\n"
      "  input x : f32[N]\n"
      "  a = Op(x) : f32[N]\n"
      "  b = NonZero(a) : i64[1,4]\n"
      "  c = Op(b) : f32[0]\n"
      "  output c\n");
  const MemoryPlan plan = plan_of(g, hand_schedule(g, {"a b c"}));
  EXPECT_FALSE(plan.buffers[*g.find_value("a")].has_value());
  EXPECT_FALSE(plan.buffers[*g.find_value("b")].has_value());
  ASSERT_TRUE(plan.buffers[*g.find_value("c")].has_value());
  EXPECT_EQ(plan.peak_bytes, 0u);
}

TEST(Memory, AnArenaOverTheLimitIsRefusedByName) {
  const Graph g = graph_of(kChain);
  MemoryOptions options;
  options.max_bytes = 2047;
  const Result<MemoryPlan> plan = plan_memory(g, hand_schedule(g, {"a b c d"}), options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::memory_limit);
  EXPECT_NE(to_string(plan.error()).find("\"a\" takes 1024 bytes"), std::string::npos) << to_string(plan.error());
}

TEST(Memory, AScheduleThatHangsHasNoPlan) {
  const Graph g = graph_of(kChain);
  const Result<MemoryPlan> plan = plan_memory(g, hand_schedule(g, {"?e0 a b !e1", "?e1 c d !e0"}), {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::deadlock);
}

TEST(MemoryVerify, FindsEveryKindOfWrongBuffer) {
  const Graph g = graph_of(kChain);
  const Schedule s = hand_schedule(g, {"a b !e0", "?e0 c d"});
  const MemoryPlan good = plan_of(g, s);
  const ValueId a = *g.find_value("a"), b = *g.find_value("b"), d = *g.find_value("d");
  const auto first = [&](MemoryPlan plan) {
    const auto found = verify(g, s, plan);
    return found.empty() ? std::string("nothing") : found.front().message;
  };
  MemoryPlan plan = good;
  plan.buffers[b]->offset = plan.buffers[a]->offset;
  EXPECT_NE(first(plan).find("which b uses"), std::string::npos) << first(plan);
  plan = good;
  plan.buffers[b]->offset = 1 << 20;
  EXPECT_NE(first(plan).find("leaves the arena"), std::string::npos);
  plan = good;
  plan.buffers[b]->offset += 8;
  EXPECT_NE(first(plan).find("not aligned"), std::string::npos);
  plan = good;
  plan.buffers[d]->size = 64;
  EXPECT_NE(first(plan).find("takes 1024 bytes"), std::string::npos);
  plan = good;
  plan.buffers[*g.find_value("x")] = Buffer{0, 1024};
  EXPECT_NE(first(plan).find("do not live in the arena"), std::string::npos);
  // Without the wait the reuse of a's bytes by c is a race.
  const auto races = verify(g, hand_schedule(g, {"a b", "c d"}), good);
  ASSERT_FALSE(races.empty());
  EXPECT_EQ(races.front().kind, Violation::Kind::memory);
  EXPECT_TRUE(races.front().missing_from.has_value());
}

// The part of a node on an attached stream uses the node's buffers too, before or behind the launch.
TEST(Memory, AttachedPartsUseTheBuffersOfTheirNode) {
  const Graph g = graph_of(kChain);
  const auto lanes = [&](const std::string& text) {
    Result<Schedule> s = parse_schedule(text, g, "test");
    MST_CHECK(s.ok(), to_string(s.error()));
    return std::move(s).value();
  };
  const MemoryPlan plan = plan_of(g, lanes("stream 0: a !e0 b ?e1 c d\nstream 1: ?e0 +b !e1\n"));
  ASSERT_TRUE(overlap(g, plan, "a", "c"));
  const auto first = [&](const std::string& text) {
    const auto found = verify(g, lanes(text), plan);
    return found.empty() ? std::string() : found.front().message;
  };
  EXPECT_EQ(first("stream 0: a b !e0 c d\nstream 1: ?e0 +d\n"), "d on stream 1 writes d over b, which c uses on stream 0, and nothing orders them");
  EXPECT_EQ(first("stream 0: a !e0 b c d\nstream 1: ?e0 +b\n"), "c on stream 0 writes c over a, which b uses on stream 1, and nothing orders them");
  EXPECT_EQ(first("stream 0: +c\nstream 1: a b c d\n"), "c on stream 0 writes c over a, which a uses on stream 1, and nothing orders them");
}

// Each bigger than all before and freed at once: the arena's last block grows in place.
TEST(Memory, TheLastFreeBlockGrows) {
  const Graph g = graph_of(
      "graph\n"
      "  a = Op() : f32[256]\n"
      "  b = Op() : f32[512]\n"
      "  c = Op() : f32[1024]\n"
      "  output c\n");
  EXPECT_EQ(plan_of(g, hand_schedule(g, {"a b c"})).peak_bytes, 4096u);
}

}  // namespace
}  // namespace millstream::testing
