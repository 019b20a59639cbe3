// SPDX-License-Identifier: Apache-2.0
// Activations, what scopes and loops add to the required pairs, and waits that could stand for ever.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/compat.h"
#include "millstream/sync/sync_plan.h"

namespace millstream::testing {
namespace {

struct Written {
  Graph graph;
  StreamAssignment on;
  NodeId node(std::string_view name) const { return *graph.find_node(name); }
};

// Streams as the notes @stream say; nodes without one have none.
Written written(std::string text) {
  Result<Graph> graph = parse_graph("graph\n" + text, "test");
  MST_CHECK(graph.ok(), to_string(graph.error()));
  Written out{std::move(graph).value(), {}};
  out.on.rules = {"test"};
  out.on.reasons = {"the test says so"};
  out.on.placement = IdVec<NodeId, std::optional<Placement>>(out.graph.node_count());
  for (const NodeId n : out.graph.nodes()) {
    const auto& s = out.graph.annotations().preset_stream.get(n);
    if (!s) continue;
    while (out.on.streams.size() <= static_cast<std::size_t>(*s)) out.on.new_stream();
    out.on.placement[n] = Placement{StreamId(static_cast<std::size_t>(*s)), RuleId(0)};
  }
  return out;
}

using Numbers = std::vector<std::uint32_t>;
Numbers started(const Written& w, std::string_view name) {
  const auto activation = plan_activation(w.graph, w.on);
  MST_CHECK(activation.ok(), to_string(activation.error()));
  Numbers out;
  for (const Activator& a : activation->activators) {
    if (a.node != w.node(name)) continue;
    for (const StreamId s : a.streams) out.push_back(s.index);
  }
  return out;
}
std::string problem(const Written& w, SyncOptions options = {}) {
  const auto plan = plan_sync(w.graph, w.on, options);
  return plan.ok() ? "" : to_string(plan.error());
}
// "a -> b reason" of every kept and dropped pair, sorted.
std::vector<std::string> pairs(const Written& w, bool kept_only, SyncMode mode = SyncMode::exact) {
  const auto plan = plan_sync(w.graph, w.on, {mode});
  MST_CHECK(plan.ok(), to_string(plan.error()));
  for (const Error& e : verify(w.graph, w.on, *plan)) ADD_FAILURE() << to_string(e);
  std::vector<std::string> out;
  const auto add = [&](const SyncPair& p) {
    out.push_back(fmt::format("{} -> {} {}", w.graph.name(p.from), w.graph.name(p.to), to_string(p.reason)));
  };
  for (const SyncPair& p : plan->kept) add(p);
  for (const DroppedPair& d : plan->dropped) {
    if (!kept_only) add(d.pair);
  }
  std::sort(out.begin(), out.end());
  return out;
}
using Names = std::vector<std::string>;
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Activation, LabelsInListOrderEachWithItsStreamsAscending) {
  const Written w = written(R"(  act = StreamActive() @stream(0) @activates("M", "L")
  x = Op() @stream(3) @label("L") @after(act)
  y = Op() @stream(2) @label("M") @after(act)
  z = Op() @stream(1) @label("M") @after(act)
)");
  EXPECT_EQ(started(w, "act"), Numbers({1, 2, 3}));
}

TEST(Activation, StreamIdsOfADumpAreThoseItGivesItsNodes) {
  Written w = written(R"(  act = StreamActive() @stream(0) @activates_streams(2)
  x = Op() @stream(1) @after(act)
  y = Op() @stream(2) @after(act)
)");
  std::swap(*w.on.placement[w.node("x")], *w.on.placement[w.node("y")]);  // renumbered: dump stream 2 is stream 1 now
  EXPECT_EQ(started(w, "act"), Numbers({1}));
}

TEST(Activation, WhatCannotBeStartedIsAnError) {
  EXPECT_TRUE(has(problem(written("  act = StreamActive() @stream(1) @activates_streams(1)\n  p = Op() @stream(0)\n")),
                  "node act activates its own stream 1 [E09"));
  EXPECT_TRUE(has(problem(written("  sw = StreamSwitch() @stream(0) @activates(\"T\")\n  x = Op() @stream(1)\n")),
                  "switch sw: no stream carries label \"T\" [E22"));
  EXPECT_TRUE(has(problem(written("  sw = StreamSwitchN() @stream(0)\n  x = Op() @stream(1)\n")), "switch sw names no stream that it starts [E22"));
  EXPECT_TRUE(has(problem(written("  a = StreamActive() @stream(0) @role(loop_active)\n  x = Op() @stream(1)\n")), "no switch before loop-active a [E22"));
  EXPECT_TRUE(has(problem(written("  a = StreamActive() @stream(0) @activates_streams(7)\n  x = Op() @stream(1)\n")), "a starts stream 7, but there are 2 streams"));
}

TEST(Activation, StreamsThatOnlyStartEachOtherNeverRun) {
  const std::string why = problem(written(R"(  a = Op() @stream(0)
  s = StreamActive() @stream(1) @label("l") @activates("m") @after(a)
  t = StreamActive() @stream(2) @label("m") @activates("l") @after(a)
)"));
  EXPECT_TRUE(has(why, "stream 1 is never activated; its first node is s [E10")) << why;
  EXPECT_TRUE(has(why, "t would start it, but stands on stream 2, which never runs")) << why;
}

TEST(Activation, ALoopWarnsOfAStreamWhoseEndIsNotSure) {
  const Written w = written(R"(  sw = StreamSwitch() @stream(0) @activates("la")
  la = StreamActive() @stream(1) @label("la") @role(loop_active) @after(sw)
  p = Op() @stream(2)
  other = StreamSwitch(p) @stream(2) @activates("T")
  t = Op() @stream(3) @label("T") @after(other)
)");
  const auto plan = plan_sync(w.graph, w.on, {});
  ASSERT_TRUE(plan.ok()) << to_string(plan.error());
  ASSERT_EQ(plan->warnings.size(), 1u);
  EXPECT_TRUE(has(plan->warnings[0].message, "stream 2 may still run when la starts it again: it ends at switch other or behind it"));
}

constexpr const char* kLoop = R"(  sw = StreamSwitch() @stream(0) @activates("la")
  la = StreamActive() @stream(1) @label("la") @role(loop_active) @after(sw)
  p = Op() @stream(2)
  q = Op(p) @stream(3)
  act = StreamActive() @stream(2) @activates("L") @after(p)
  x = Op() @stream(4) @label("L") @after(act)
)";

TEST(Activation, ALoopStartsWhatNothingElseStartsAndWaitsForItsEnd) {
  const Written w = written(kLoop);
  EXPECT_EQ(started(w, "la"), Numbers({0, 2, 3}));
  const auto activation = plan_activation(w.graph, w.on);
  const auto events = compat_events(w.graph, w.on, *activation);
  ASSERT_TRUE(events.ok());
  Names loops;
  for (const CompatEvent& e : loop_events(w.graph, w.on, *activation, events->events)) loops.push_back(fmt::format("{} -> {}", w.graph.name(e.from), w.graph.name(e.to)));
  EXPECT_EQ(loops, Names({"act -> sw", "q -> sw"}));
  EXPECT_EQ(pairs(w, true), Names({"act -> sw loop", "p -> q data", "q -> sw loop"}));
  EXPECT_EQ(pairs(w, true, SyncMode::compat), Names({"act -> sw loop", "p -> q data", "q -> sw loop"}));
}

// The body of a call: stream 3 is its own, stream 2 the caller's, stream 0 that of the call.
constexpr const char* kCall = R"(  a = Op() @stream(2)
  c = PartitionedCall(a) @stream(0)
  first = StreamActive() @scope("body") @stream(0) @role(rts_label, first_active)
  own = Op() @scope("body") @stream(3) @after(first)
  shared = Op() @scope("body") @stream(2) @after(first)
  end = NetOutput(own, shared) @scope("body") @stream(0) @role(end_node)
  b = Op(c) @stream(2)
  scope body of c
)";

TEST(Scopes, ACallStartsItsOwnStreamsAndWaitsOnThoseItShares) {
  const Written w = written(kCall);
  EXPECT_EQ(started(w, "first"), Numbers({3}));
  const Names all = pairs(w, false, SyncMode::none);
  EXPECT_EQ(all, Names({"a -> c data", "c -> b data", "end -> b exit", "first -> own control", "first -> shared control", "own -> end data", "shared -> end data"}));
  // No task runs at `end`, and what follows it there or on stream 2 is behind `shared` without the wait.
  EXPECT_EQ(pairs(w, true, SyncMode::exact), Names({"a -> c data", "end -> b exit", "first -> shared control", "own -> end data"}));
}

TEST(Scopes, AWaitWithoutATaskIsMissedWhereATaskBehindItNeedsIt) {
  const Written w = written(kCall);
  auto plan = plan_sync(w.graph, w.on, {});
  ASSERT_TRUE(plan.ok());
  std::erase_if(plan->kept, [&](const SyncPair& p) { return p.from == w.node("own") && p.to == w.node("end"); });
  std::string errors;
  for (const Error& e : verify(w.graph, w.on, *plan)) errors += to_string(e);
  EXPECT_TRUE(has(errors, "b needs own, and no kept pair orders the two")) << errors;
}

TEST(Scopes, WhatALoopStartsHasEndedBeforeItJumpsBack) {
  const Written w = written(R"(  w = While() @stream(0)
  head = LabelSet() {label_index=0} @scope("cond") @stream(0) @role(rts_label)
  test = Op() @scope("cond") @stream(0) @after(head)
  choose = LabelSwitch(test) {label_list=[2, 1]} @scope("cond") @stream(0) @role(rts_label)
  enter = LabelSet() {label_index=1} @scope("body") @stream(0) @role(rts_label)
  first = StreamActive() @scope("body") @stream(0) @role(rts_label, first_active) @after(enter)
  side = Op() @scope("body") @stream(1) @after(first)
  out = NetOutput() @scope("body") @stream(0) @after(first)
  back = LabelGoto() {label_index=0} @scope("body") @stream(0) @role(rts_label) @after(out)
  leave = LabelSet() {label_index=2} @scope("body") @stream(0) @role(rts_label, end_node) @after(back)
  next = Op(w) @stream(2)
  scope cond of w
  scope body of w
)");
  EXPECT_EQ(started(w, "first"), Numbers({1}));
  EXPECT_EQ(pairs(w, true), Names({"leave -> next exit", "side -> back loop"}));
}

TEST(ConditionalWaits, ABranchCannotBeWaitedForFromOutside) {
  const char* text = R"(  sw = StreamSwitch() @stream(0) @activates("T")
  t = Op() @stream(1) @label("T") @after(sw)
  out = Op(t) @stream(2)
)";
  const Written w = written(text);
  const std::string why = problem(w);
  EXPECT_TRUE(has(why, "out cannot wait for t: the sender's branch may not run when the receiver does [E17")) << why;
  EXPECT_TRUE(has(why, "sender: t on stream 1, started by sw")) << why;
  EXPECT_TRUE(has(why, "receiver: out on stream 2, which always runs")) << why;
  const auto compat = plan_sync(w.graph, w.on, {SyncMode::compat});
  ASSERT_TRUE(compat.ok());
  ASSERT_EQ(compat->warnings.size(), 1u);
  EXPECT_EQ(compat->warnings[0].code, ErrorCode::conditional_wait);
}

TEST(ConditionalWaits, TwoSidesOfOnePredicateAlwaysRunOneOfThem) {
  // Both sides start the merge stream, so that it always runs: what waits for it waits for something that comes.
  EXPECT_EQ(problem(written(R"(  p = Op() @stream(0)
  swt = StreamSwitch(p) @stream(0) @activates("T") @role(true_branch)
  swf = StreamSwitch(p) @stream(0) @activates("F") @role(rts_label)
  t = StreamActive() @stream(1) @label("T") @activates("M") @after(swt)
  f = StreamActive() @stream(2) @label("F") @activates("M") @after(swf)
  m = Op() @stream(3) @label("M") @after(t, f)
  out = Op(m) @stream(4)
)")), "");
}

TEST(ConditionalWaits, DimsDoNotWaitForEachOther) {
  const std::string why = problem(written("  a = Op() @stream(0) @batch(\"Batch_0\")\n  b = Op(a) @stream(1) @batch(\"Batch_1\")\n"));
  EXPECT_TRUE(has(why, "the two run for different dims, never both [E17")) << why;
}

TEST(Insertion, AReaderWithoutAStreamIsAnError) {
  const std::string why = problem(written("  a = Op() @stream(0)\n  b = Op(a)\n  c = Op() @stream(1)\n"));
  EXPECT_TRUE(has(why, "node b (Op) reads a, which is on stream 0, but has no stream itself [E04")) << why;
}

TEST(Insertion, WhatAnEnterFeedsIsLeftToItsActivation) {
  EXPECT_EQ(pairs(written("  e = Enter() @stream(0)\n  x = Op(e) @stream(1)\n  act = StreamActive() @stream(2) @after(e)\n"), false, SyncMode::none), Names({"e -> act control"}));
}

TEST(Compat, EventsSentByASwitchGo) {
  const Written w = written("  sw = StreamSwitch() @stream(0)\n  b = Op() @stream(1) @after(sw)\n");
  const auto events = compat_events(w.graph, w.on, {});
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->counts.inserted, 1u);
  EXPECT_EQ(events->counts.after_activate, 1u);
  EXPECT_TRUE(events->events.empty());
}

TEST(Compat, AChainOfActivationsNeedsNoEvent) {
  const Written w = written(R"(  a = Op() @stream(0)
  act1 = StreamActive() @stream(0) @activates("L1") @after(a)
  b = Op() @stream(1) @label("L1") @after(act1)
  act2 = StreamActive() @stream(1) @label("L1") @activates("L2") @after(b)
  c = Op(a) @stream(2) @label("L2") @after(act2)
)");
  for (const SyncMode mode : {SyncMode::exact, SyncMode::compat}) EXPECT_EQ(pairs(w, true, mode), Names({}));
}

TEST(Compat, ParallelEdgesCountOneByOne) {
  const Written w = written("  a = Op() @stream(0)\n  b = Op(a, a) @stream(1) @after(a)\n");
  SyncOptions options;
  options.count_compat = true;
  const auto plan = plan_sync(w.graph, w.on, options);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->inserted, 1u);
  EXPECT_EQ(plan->compat->inserted, 3u);
  EXPECT_EQ(plan->compat->kept(), 1u);
}

TEST(Kind, ADynamicGraphKeepsEvents) {
  Written w = written("  a = Op() @stream(0)\n  b = Op(a) @stream(1)\n");
  SyncOptions options;
  options.kind = EventKind::notify;
  EXPECT_EQ(plan_sync(w.graph, w.on, options)->kind, EventKind::notify);
  w.graph.set_dynamic(true);
  const auto plan = plan_sync(w.graph, w.on, options);
  EXPECT_EQ(plan->kind, EventKind::event);
  ASSERT_EQ(plan->warnings.size(), 1u);
}

}  // namespace
}  // namespace millstream::testing
