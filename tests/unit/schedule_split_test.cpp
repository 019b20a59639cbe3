// SPDX-License-Identifier: Apache-2.0
// Where long streams are cut, and what that adds.
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/stages.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

Target limited(std::uint32_t tasks, std::uint32_t per_node = 1) {
  Target t = no_limits();
  t.limits.tasks_per_stream = tasks;
  t.tasks_per_node = per_node;
  return t;
}

LowerOptions without_reserve() {
  LowerOptions o;
  o.split_reserved = 0;
  return o;
}

Splitting split(const Placed& p, const Target& target, const LowerOptions& options, std::span<const SyncPair> pairs = {}) {
  auto r = split_streams({p.graph, p.on, pairs, target, options});
  MST_CHECK(r.ok(), to_string(r.error()));
  return std::move(r).value();
}

// "n -> stream" of each split point.
std::vector<std::string> points(const Placed& p, const Splitting& s) {
  std::vector<std::string> out;
  for (const SplitPoint& x : s.points) out.push_back(fmt::format("{}:{}", p.graph.name(x.node), x.opened.index));
  return out;
}
using Strings = std::vector<std::string>;

void label_continuous(Placed& p, std::string_view label, const Strings& nodes) {
  for (const std::string& n : nodes) p.graph.annotations().continuous.set(p.node(n), p.graph.intern(label));
}

// One node a line: NAME or NAME:TYPE, in a chain on stream 0.
Placed chain(const Strings& nodes) {
  std::string text = "graph g\n  input in\n";
  std::string last = "in";
  for (const std::string& n : nodes) {
    const std::size_t colon = n.find(':');
    const std::string name = n.substr(0, colon), type = colon == std::string::npos ? "Op" : n.substr(colon + 1);
    text += fmt::format("  {} = {}({})\n", name, type, last);
    last = name;
  }
  Result<Graph> g = parse_graph(text, "chain");
  MST_CHECK(g.ok(), to_string(g.error()));
  Placed p{std::move(g).value(), {}};
  p.on = streams(p.graph.node_count(), 1);
  for (const NodeId n : p.graph.nodes()) p.on.placement[n] = Placement{StreamId(0), RuleId(0)};
  return p;
}

TEST(Split, AStreamAtItsLimitStaysWhole) {
  EXPECT_TRUE(split(chain({"a", "b", "c", "d"}), limited(4), without_reserve()).points.empty());
}

TEST(Split, NewStreamsFollowTheLastLogicalOneAndCountAnew) {
  const Placed p = placed({"a1 a2 a3 a4 a5", "b1 b2 b3 b4"}, {});
  const Splitting s = split(p, limited(4), without_reserve());
  EXPECT_EQ(points(p, s), Strings({"a5:2"}));
  EXPECT_EQ(arrows(p.graph, s.pairs), Strings({"a4 -> a5"}));
  EXPECT_EQ(s.streams, 3u);
  EXPECT_EQ(s.pieces_of(StreamId(0)), (std::vector<std::uint32_t>{0, 2}));
}

TEST(Split, ReservedTasksPayForThePairAndNodeUnitsDoNot) {
  const Placed p = chain({"n1", "n2", "n3", "n4", "n5", "n6", "n7"});
  LowerOptions ours;
  EXPECT_EQ(points(p, split(p, limited(9, 3), ours)), Strings({"n3:1", "n5:2", "n7:3"}));
  LowerOptions theirs = without_reserve();
  theirs.split_units = SplitUnits::node;
  const Splitting s = split(p, limited(9, 3), theirs);
  EXPECT_EQ(points(p, s), Strings({"n4:1", "n7:2"}));
  EXPECT_EQ(arrows(p.graph, s.pairs), Strings({"n3 -> n4", "n6 -> n7"}));
}

TEST(Split, TheFirstNodeOfAStreamStays) {
  EXPECT_TRUE(split(chain({"a"}), limited(2, 3), without_reserve()).points.empty());
}

TEST(Split, RecordsAndWaitsCount) {
  const Placed p = placed({"a1 a2 a3", "b1 b2"}, {{"a1", "b1"}, {"a2", "b2"}});
  const SyncPlan plan = plan_of(p);
  EXPECT_EQ(points(p, split(p, limited(4), without_reserve(), plan.kept)), Strings({"a3:2"}));
}

TEST(Split, LabelsAndNodesBehindThemDoNotOpenAStream) {
  const Placed p = chain({"n1", "n2", "n3", "n4", "n5:LabelSet", "n6:LabelGotoEx", "n7"});
  EXPECT_EQ(points(p, split(p, limited(4), without_reserve())), Strings({"n7:1"}));
}

TEST(Split, AContinuousLabelMovesTheCutBackToItsFirstNode) {
  Placed p = chain({"n1", "n2", "l1", "x", "l2", "n3"});
  label_continuous(p, "c", {"l1", "l2"});
  const Splitting s = split(p, limited(4), without_reserve());
  EXPECT_EQ(points(p, s), Strings({"l1:1"}));
  EXPECT_EQ(arrows(p.graph, s.pairs), Strings({"n2 -> l1"}));
  EXPECT_NE(s.points[0].reason.find("continuous label \"c\""), std::string::npos) << s.points[0].reason;
}

TEST(Split, ACutBetweenNodesOfAContinuousLabelMovesBackToo) {
  Placed p = chain({"n1", "n2", "l1", "x", "l2"});
  label_continuous(p, "c", {"l1", "l2"});
  EXPECT_EQ(points(p, split(p, limited(3), without_reserve())), Strings({"l1:1"}));
}

TEST(Split, AContinuousLabelLongerThanAStreamIsAnError) {
  Placed p = chain({"n1", "l1", "l2", "l3", "l4", "n2"});
  label_continuous(p, "c", {"l1", "l2", "l3", "l4"});
  const auto r = split_streams({p.graph, p.on, {}, limited(3), without_reserve()});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(to_string(r.error()),
            "error: continuous label \"c\" at node l4 (stream 0) cannot be kept on one stream: 4 tasks, limit 3 [E11 continuous label]\n"
            "  note: it begins at l1\n"
            "  help: label fewer nodes, or raise limits.tasks_per_stream in the target's file if the device allows it");
}

TEST(Split, ABranchIsNeverCutFromItsLabels) {
  const char* text =
      "graph g\n  input x\n  n1 = Op(x)\n  n2 = Op(n1)\n  sw = LabelSwitchByIndex(n2) {label_list=[0, 1]}\n"
      "  l0 = LabelSet() {label_index=0} @after(sw)\n  t1 = Op() @after(l0)\n  end0 = LabelGotoEx() {label_index=2} @after(t1)\n"
      "  l1 = LabelSet() {label_index=1} @after(end0)\n  e1 = Op() @after(l1)\n  l2 = LabelSet() {label_index=2} @after(e1)\n"
      "  n3 = Op() @after(l2)\n";
  Result<Graph> g = parse_graph(text, "branch");
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  Placed p{std::move(g).value(), {}};
  p.on = streams(p.graph.node_count(), 1);
  for (const NodeId n : p.graph.nodes()) p.on.placement[n] = Placement{StreamId(0), RuleId(0)};
  const Splitting s = split(p, limited(7), without_reserve());
  EXPECT_EQ(points(p, s), Strings({"sw:1", "n3:2"}));
  const auto r = split_streams({p.graph, p.on, {}, limited(5), without_reserve()});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::task_limit);
  EXPECT_NE(r.error().message.find("the branches that begin at sw"), std::string::npos) << r.error().message;
}

TEST(Split, ABoundaryThatOtherPairsImplyNeedsNone) {
  const Placed p = placed({"a c", "b"}, {{"a", "b"}, {"b", "c"}});
  const SyncPlan plan = plan_of(p);
  const Splitting s = split(p, limited(3), without_reserve(), plan.kept);
  EXPECT_EQ(points(p, s), Strings({"c:2"}));
  EXPECT_TRUE(s.pairs.empty());
  const SyncPlan all = plan_of(p, SyncMode::none);
  auto r = split_streams({p.graph, p.on, all.kept, limited(3), without_reserve(), SyncMode::compat});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(arrows(p.graph, r->pairs), Strings({"a -> c"}));
}

TEST(Split, InSingleStreamModeALongStreamBecomesHugeOrIsWarnedOf) {
  const Placed p = chain({"a", "b", "c"});
  LowerOptions single;
  single.single_stream = true;
  Target t = limited(2);
  EXPECT_EQ(split(p, t, single).warnings.size(), 1u);
  t.limits.huge_streams = 1;
  t.limits.tasks_per_huge_stream = 8;
  const Splitting s = split(p, t, single);
  EXPECT_EQ(s.huge, std::vector<PhysicalStreamId>{PhysicalStreamId(0)});
  t.limits.tasks_per_huge_stream = 2;
  const auto r = split_streams({p.graph, p.on, {}, t, single});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().message, "stream 0 needs 3 tasks, a huge stream of target boundless holds 2");
}

TEST(Split, TooManyStreamsNamesTheLargestContributors) {
  const Placed p = placed({"a1 a2 a3 a4 a5 a6", "b1 b2 b3"}, {});
  Target t = limited(3);
  t.limits.streams = 3;
  const auto r = lower(p.graph, p.on, plan_of(p), t, {});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(to_string(r.error()),
            "error: the plan needs 9 streams, target boundless has 3 [E07 stream limit]\n"
            "  note: largest: stream 0: 6 physical streams; stream 1: 3 physical streams\n"
            "  help: each piece of a long stream is a stream of its own: raise limits.tasks_per_stream in the target's file if the device allows it, or use "
            "fewer streams where nothing overlaps");
}

TEST(Split, APieceWaitsForTheOneBeforeIt) {
  const Placed p = chain({"a", "b", "c", "d"});
  auto r = lower(p.graph, p.on, plan_of(p), limited(4), {});
  ASSERT_TRUE(r.ok()) << to_string(r.error());
  EXPECT_EQ(print(p.graph, *r), "stream 0: a  b  !e0\nstream 1 of 0: ?e0  c  d\n");
  EXPECT_TRUE(check(p.graph, *r, nullptr).ok());
  ASSERT_EQ(r->splits.size(), 1u);
  EXPECT_EQ(r->splits[0].reason, "2 tasks and 1 for c and 2 kept free are over the 4 that a stream holds");
}

}  // namespace
}  // namespace millstream::testing
