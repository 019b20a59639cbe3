// SPDX-License-Identifier: Apache-2.0
// What the summary says of a split, labelled graph with slave and attached streams.
#include <gtest/gtest.h>

#include "millstream/schedule/summary.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

TEST(Summary, TellsEachLogicalStream) {
  Placed p = placed({"a1 a2 a3 a4 a5", "b1", "h1 h2"}, {{"a1", "b1"}, {"a1", "h1"}});
  p.graph.set_name("g");
  p.on.streams[StreamId(1)].label = "11";
  p.on.streams[StreamId(1)].user = true;
  p.on.streams[StreamId(2)].assigned_by_pass = true;
  p.on.new_stream({"", std::nullopt, 0, true});
  p.on.attached.set(p.node("h1"), {StreamId(3)});
  p.graph.annotations().used_streams.set(p.node("h1"), 2);
  p.graph.annotations().used_streams.set(p.node("h2"), 5);
  const SyncPlan plan = plan_of(p);
  Target t = no_limits();
  t.limits.tasks_per_stream = 7;
  const auto s = lower(p.graph, p.on, plan, t, {});
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  const AllocationSummary summary = summarize(p.graph, p.on, plan, *s);
  ASSERT_EQ(summary.graphs.size(), 1u);
  ASSERT_EQ(summary.graphs[0].streams.size(), 4u);
  EXPECT_EQ(summary.find("g"), &summary.graphs[0]);
  EXPECT_EQ(summary.find("h"), nullptr);
  EXPECT_EQ(summary.graphs[0].streams[0].physical, static_cast<std::uint32_t>(s->splits.size()) + 1);
  EXPECT_EQ(summary.graphs[0].streams[0].nodes.size(), 5u);
  EXPECT_EQ(summary.graphs[0].streams[1].to_string_info(),
            "logic_stream_id: 1, user_stream_label: 11, is_assigned_by_user_stream_pass: false, attached_stream_ids: , "
            "physical_model_stream_num: 1, hccl_followed_stream_num: 0.");
  EXPECT_EQ(summary.graphs[0].streams[2].to_string_info(),
            "logic_stream_id: 2, user_stream_label: , is_assigned_by_user_stream_pass: true, attached_stream_ids: 3, "
            "physical_model_stream_num: 1, hccl_followed_stream_num: 5.");
  EXPECT_EQ(summary.streams, s->streams.size());
  EXPECT_EQ(summary.events, s->event_count);
  EXPECT_EQ(summary.splits.size(), s->splits.size());
}

TEST(Summary, SlaveStreamsAddUpOverPieces) {
  Placed p = placed({"a1 a2 a3 a4"}, {});
  p.graph.annotations().used_streams.set(p.node("a1"), 4);
  p.graph.annotations().used_streams.set(p.node("a4"), 3);
  Target t = no_limits();
  t.limits.tasks_per_stream = 4;
  const SyncPlan plan = plan_of(p);
  const auto s = lower(p.graph, p.on, plan, t, {});
  ASSERT_TRUE(s.ok());
  ASSERT_EQ(s->splits.size(), 1u);
  EXPECT_EQ(summarize(p.graph, p.on, plan, *s).graphs[0].streams[0].followed, 7u);
}

TEST(Summary, AModelWithoutStreamsReportsOne) {
  Graph graph("empty");
  graph.add_input("x", TensorDesc());
  ASSERT_TRUE(graph.finish().ok());
  EXPECT_EQ(summarize(graph, streams(0, 0), {}, {}).streams, 1u);
}

}  // namespace
}  // namespace millstream::testing
