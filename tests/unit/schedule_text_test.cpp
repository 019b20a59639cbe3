// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

std::string error_of(const Graph& graph, std::string_view text) {
  const auto s = parse_schedule(text, graph, "t.mst", 5);
  if (s.ok()) return "ok";
  EXPECT_TRUE(s.error().where.has_value());
  return fmt::format("{}:{}: {}", s.error().where->line, s.error().where->column, s.error().message);
}

TEST(ScheduleText, ReadsWhatItPrints) {
  const Placed p = placed({"a b", "c"}, {{"a", "c"}, {"c", "b"}});
  const Schedule s = schedule_of(p, plan_of(p));
  const auto again = parse_schedule(print(p.graph, s), p.graph, "t");
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(*again, s);
}

TEST(ScheduleText, APieceNamesItsLogicalStream) {
  const Placed p = placed({"a b", "c"}, {});
  const std::string text = "stream 0: a\nstream 1: c\nstream 2 of 0: b\n";
  const auto s = parse_schedule(text, p.graph, "t");
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  EXPECT_EQ(s->logical_streams, 2u);
  EXPECT_EQ(s->streams[PhysicalStreamId(2)].logical, StreamId(0));
  EXPECT_EQ(print(p.graph, *s), text);
}

TEST(ScheduleText, OddNamesAreQuoted) {
  Graph g("odd");
  std::vector<std::string> names = {"has space", "!e0", "?e1", "#no", "quote\"", "back\\slash", "line\nend", "1st", "_", "stream"};
  for (const std::string& name : names) {
    const std::string_view outputs[] = {name};
    Graph::NodeSpec spec;
    spec.type = "Op";
    spec.name = name;
    spec.outputs = outputs;
    g.add_node(spec);
  }
  ASSERT_TRUE(g.finish().ok());
  Schedule s;
  s.logical_streams = 1;
  s.streams.push_back({StreamId(0), {}});
  for (const NodeId n : g.nodes()) s.streams[PhysicalStreamId(0)].tasks.push_back(Task::launch(n));
  EXPECT_EQ(print(g, s),
            "stream 0: \"has space\"  \"!e0\"  \"?e1\"  \"#no\"  \"quote\\\"\"  \"back\\\\slash\"  \"line\\nend\"  \"1st\"  \"_\"  stream\n");
  const auto again = parse_schedule(print(g, s), g, "t");
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(*again, s);
}

TEST(ScheduleText, EmptyLanesAndCommentsAndAnyOrderOfLines) {
  const Placed p = placed({"a", ""}, {});
  const auto s = parse_schedule("# lanes\nstream 1:   # nothing\n\nstream 0: a\n", p.graph, "t");
  ASSERT_TRUE(s.ok()) << to_string(s.error());
  EXPECT_EQ(print(p.graph, *s), "stream 0: a\nstream 1:\n");
}

TEST(ScheduleText, ErrorsNameLineAndColumn) {
  const Placed p = placed({"a", "b"}, {});
  EXPECT_EQ(error_of(p.graph, "stream 0: a\nstream 1: c\n"), "6:11: the graph has no node c");
  EXPECT_EQ(error_of(p.graph, "lane 0: a\n"), "5:1: expected \"stream\", found \"lane\"");
  EXPECT_EQ(error_of(p.graph, "stream 0 a\n"), "5:10: expected \":\", found \"a\"");
  EXPECT_EQ(error_of(p.graph, "stream 0: !x\n"), "5:12: expected an event such as e0 behind ! or ?");
  EXPECT_EQ(error_of(p.graph, "stream 0: !e99999999999\n"), "5:12: expected an event such as e0 behind ! or ?");
  EXPECT_EQ(error_of(p.graph, "stream 0: !e4000000000\n"), "5:12: event e4000000000 is too large; number events from 0");
  EXPECT_EQ(error_of(p.graph, "stream 0: a\nstream 0: b\n"), "6:8: stream 0 is given twice");
  EXPECT_EQ(error_of(p.graph, "stream 0: a\nstream 4000000000: b\n"),
            "6:8: stream 4000000000 is given but stream 1 is not; number streams from 0 without a gap");
  EXPECT_EQ(error_of(p.graph, "stream 0 of 7: a\n"),
            "5:8: stream 0 is a piece of logical stream 7, but 1 streams hold at most 1 logical ones");
  EXPECT_EQ(error_of(p.graph, "stream -1: a\n"), "5:8: the stream's number lies outside 0..4294967294");
  EXPECT_EQ(error_of(p.graph, "stream 0: \"a\n"), "5:11: this string has no closing quote");
  EXPECT_EQ(error_of(p.graph, "stream 0: a ;\n"), "5:13: unexpected character ';'");
  EXPECT_EQ(error_of(p.graph, "stream 0: 12\n"), "5:11: expected a node, !eN or ?eN (a word or a quoted name)");
}

}  // namespace
}  // namespace millstream::testing
