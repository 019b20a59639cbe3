// SPDX-License-Identifier: Apache-2.0
// What the summary says of a split, labelled graph with slave and attached streams.
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/names.h"
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

struct Made {
  Graph graph;
  StreamAssignment on;
  SyncPlan sync;
  Schedule schedule;
  AllocationSummary summary() const { return summarize(graph, on, sync, schedule); }
};

Made made(const std::string& text) {
  Made out;
  const auto must = [](auto result) {
    MST_CHECK(result.ok(), to_string(result.error()));
    return std::move(result).value();
  };
  out.graph = must(parse_graph(text, "m.mst"));
  const Target npu = must(load_target("npu"));
  AssignOptions options;
  options.strategy = Strategy::ge;
  out.on = must(assign_streams(out.graph, npu, options));
  out.sync = must(plan_sync(out.graph, out.on, {}));
  out.schedule = must(lower(out.graph, out.on, out.sync, npu, {EventIds::sequential}));
  return out;
}

TEST(Summary, OfAnEndToEndExampleHasTheNumbersOfItsDescription) {
  const Made m = made(
      "graph g\n  d = Data() @engine(\"DNN_VM_GE_LOCAL\")\n  a = Relu(d) @engine(\"AIcoreEngine\")\n"
      "  b = HcomAllReduce(a) @engine(\"DNN_HCCL\") @used_streams(4)\n  e = Relu(a) @engine(\"AIcoreEngine\") @user_label(\"1\")\n"
      "  c = Add(b, e) @engine(\"AIcoreEngine\")\n  out = NetOutput(c) @engine(\"DNN_VM_GE_LOCAL\")\n");
  EXPECT_EQ(print(m.summary()),
            "logic_stream_id: 0, user_stream_label: 1, is_assigned_by_user_stream_pass: false, attached_stream_ids: , physical_model_stream_num: 1, hccl_followed_stream_num: 0.\n"
            "logic_stream_id: 1, user_stream_label: , is_assigned_by_user_stream_pass: false, attached_stream_ids: , physical_model_stream_num: 1, hccl_followed_stream_num: 4.\n"
            "logic_stream_id: 2, user_stream_label: , is_assigned_by_user_stream_pass: false, attached_stream_ids: , physical_model_stream_num: 1, hccl_followed_stream_num: 0.\n"
            "streams 3, events 4\n");
  const auto names = task_names(m.graph, m.schedule);
  EXPECT_EQ(names[PhysicalStreamId(0)], (std::vector<std::string>{"g_Recv_1", "e", "g_Send_3"}));
  EXPECT_EQ(names[PhysicalStreamId(1)], (std::vector<std::string>{"g_Recv_0", "b", "g_Send_2"}));
  EXPECT_EQ(names[PhysicalStreamId(2)], (std::vector<std::string>{"a", "g_Send_0", "g_Send_1", "g_Recv_2", "g_Recv_3", "c"}));
}

TEST(Summary, AStreamLabelIsNoUserStreamLabelWhateverItsText) {
  const AllocationSummary s = made("graph g\n  a = Relu()\n  b = Relu(a) @label(\"user:1\")\n  c = Relu(a) @user_label(\"user:2\")\n").summary();
  std::vector<std::string> labels;
  for (const StreamSummary& stream : s.graphs[0].streams) labels.push_back(stream.user_label);
  EXPECT_EQ(labels, (std::vector<std::string>{"", "user:2", ""}));
}

TEST(Summary, PiecesOfAllStreamsAddUp) {
  Placed p = placed({"a1 a2 a3 a4 a5", "b1"}, {});
  p.on.streams[StreamId(1)].label = "1";
  p.on.streams[StreamId(1)].user = true;
  Target t = no_limits();
  t.limits.tasks_per_stream = 4;
  const SyncPlan plan = plan_of(p);
  const auto s = lower(p.graph, p.on, plan, t, {});
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  const AllocationSummary summary = summarize(p.graph, p.on, plan, *s);
  EXPECT_EQ(summary.graphs[0].streams[0].physical, 3u);
  EXPECT_EQ(summary.graphs[0].streams[1].physical, 1u);
  EXPECT_EQ(summary.graphs[0].streams[0].user_label, "");
  EXPECT_EQ(summary.graphs[0].streams[1].user_label, "1");
  EXPECT_EQ(summary.streams, 4u);
}

TEST(Summary, ADynamicRootReportsOnePhysicalStreamEach) {
  Placed p = placed({"a1 a2 a3 a4 a5", "b1"}, {});
  p.graph.set_dynamic(true);
  Target t = no_limits();
  const SyncPlan plan = plan_of(p);
  auto s = lower(p.graph, p.on, plan, t, {});
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  s->streams.push_back({StreamId(0), {}});  // as if the stream were split
  const AllocationSummary summary = summarize(p.graph, p.on, plan, *s);
  EXPECT_TRUE(summary.graphs[0].dynamic);
  EXPECT_EQ(summary.graphs[0].streams[0].physical, 1u);
  EXPECT_EQ(summary.graphs[0].streams[1].physical, 1u);
}

TEST(Summary, AModelWithoutStreamsReportsOne) {
  Graph graph("empty");
  graph.add_input("x", TensorDesc());
  ASSERT_TRUE(graph.finish().ok());
  EXPECT_EQ(summarize(graph, streams(0, 0), {}, {}).streams, 1u);
}

}  // namespace
}  // namespace millstream::testing
