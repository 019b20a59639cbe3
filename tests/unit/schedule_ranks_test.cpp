// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/ranks.h"

#include <gtest/gtest.h>

#include "millstream/graph/text.h"

namespace millstream::testing {
namespace {

struct One {
  Graph graph;
  Schedule schedule;
};

One rank(std::string_view text, std::string_view lanes) {
  auto graph = parse_graph(text, "t");
  MST_CHECK(graph.ok(), to_string(graph.error()));
  auto schedule = parse_schedule(lanes, *graph, "t");
  MST_CHECK(schedule.ok(), to_string(schedule.error()));
  return {std::move(*graph), std::move(*schedule)};
}

constexpr std::string_view kTwo = R"(graph
  a = Op()
  r1 = HcomAllReduce(a) {group="g"}
  r2 = HcomAllReduce(a) {group="g"}
)";

std::vector<RankConflict> conflicts(const One& a, const One& b) {
  const RankPlan plans[] = {{"rank 0", &a.graph, &a.schedule}, {"rank 1", &b.graph, &b.schedule}};
  const auto out = check_ranks(plans);
  MST_CHECK(out.ok(), to_string(out.error()));
  return *out;
}

TEST(Ranks, OneOrderOnAllRanksIsFine) {
  EXPECT_TRUE(conflicts(rank(kTwo, "stream 0: a r1 r2"), rank(kTwo, "stream 0: a !e0 r1 !e1\nstream 1: ?e0 ?e1 r2")).empty());
}

TEST(Ranks, DifferentOrdersNameThePairAndTheRanks) {
  const auto found = conflicts(rank(kTwo, "stream 0: a r1 r2"), rank(kTwo, "stream 0: a r2 r1"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, RankConflict::Kind::order);
  EXPECT_EQ(found[0].message, "rank 0 runs r1 before r2, rank 1 runs r2 before r1: each waits for the other");
  EXPECT_EQ(found[0].ranks, (std::vector<std::size_t>{0, 1}));
}

TEST(Ranks, TwoStreamsWithoutAnOrderMayStartEitherWay) {
  const auto found = conflicts(rank(kTwo, "stream 0: a r1 r2"), rank(kTwo, "stream 0: a !e0 r1\nstream 1: ?e0 r2"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, RankConflict::Kind::unordered);
  EXPECT_EQ(found[0].message, "nothing orders r1 and r2 on rank 1, which shares both with other ranks and may start them either way");
}

TEST(Ranks, ACollectiveThatOneRankOfItsGroupLacksHangs) {
  const One other = rank("graph\n  r1 = HcomAllReduce() {group=\"g\"}\n", "stream 0: r1");
  const auto found = conflicts(rank(kTwo, "stream 0: a r1 r2"), other);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, RankConflict::Kind::missing);
  EXPECT_EQ(found[0].message, "rank 0 runs collective r2 of group g, rank 1 never does: it waits for ever");
}

TEST(Ranks, ACollectiveOfNoNamedGroupIsEveryRanks) {
  const One first = rank("graph\n  r1 = HcomAllReduce()\n", "stream 0: r1");
  const One none = rank("graph\n  a = Op()\n", "stream 0: a");
  const auto found = conflicts(first, none);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message, "rank 0 runs collective r1, rank 1 never does: it waits for ever");
}

TEST(Ranks, RanksThatShareOneCollectiveMayOrderTheRestAsTheyLike) {
  const One other = rank("graph\n  r3 = HcomAllReduce() {group=\"h\"}\n  r1 = HcomAllReduce() {group=\"g\"}\n", "stream 0: r3\nstream 1: r1");
  const One first = rank("graph\n  r1 = HcomAllReduce() {group=\"g\"}\n", "stream 0: r1");
  EXPECT_TRUE(conflicts(first, other).empty());
}

}  // namespace
}  // namespace millstream::testing
