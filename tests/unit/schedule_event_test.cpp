// SPDX-License-Identifier: Apache-2.0
// How events get their numbers, and their names.
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/stages.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

using Uses = std::vector<std::string>;

EventUse use(const Placed& p, std::string_view from, std::string_view to, std::uint32_t id) { return {p.node(from), p.node(to), id}; }

Uses text(const Placed& p, const Events& events) {
  Uses out;
  for (const EventUse& u : events.uses) out.push_back(fmt::format("{}->{}:{}", p.graph.name(*u.from), p.graph.name(*u.to), u.id));
  return out;
}

void set_batch(Placed& p, std::string_view batch, const std::vector<std::string>& nodes) {
  for (const std::string& n : nodes) p.graph.annotations().batch.set(p.node(n), p.graph.intern(batch));
}

void set_multiplex(Placed& p, std::string_view node, const std::vector<std::string>& entries) {
  std::vector<StringId> ids;
  for (const std::string& e : entries) ids.push_back(p.graph.intern(e));
  p.graph.annotations().multiplex.set(p.node(node), ids);
}

TEST(EventPhases, BranchesOfAMultiDimsModelShareIds) {
  Placed p = placed({"s0 s1 s2 t0 t1 c0", "r0 r1 r2 u0 u1 d0"}, {});
  set_batch(p, "Batch_0", {"s0", "r0", "s1", "r1", "s2", "r2"});
  set_batch(p, "Batch_1", {"t0", "u0", "t1", "u1"});
  const Events in{{use(p, "s0", "r0", 0), use(p, "s1", "r1", 1), use(p, "s2", "r2", 2), use(p, "t0", "u0", 3), use(p, "t1", "u1", 4), use(p, "c0", "d0", 5)}, 6};
  const auto out = reuse_across_dims(p.graph, in);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(text(p, *out), Uses({"s0->r0:1", "s1->r1:2", "s2->r2:3", "t0->u0:1", "t1->u1:2", "c0->d0:0"}));
  EXPECT_EQ(out->count, 4u);
  const auto bad = reuse_across_dims(p.graph, {{use(p, "s0", "u0", 0)}, 1});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::conditional_wait);
}

TEST(EventPhases, MultiplexingReplacesTheFirstEventOfBothNodes) {
  Placed p = placed({"a c", "b d"}, {});
  set_multiplex(p, "a", {"SendTo;b;0", "SendTo;d;7"});
  set_multiplex(p, "d", {"RecvFrom;c;0"});
  const Events in{{use(p, "a", "b", 0), use(p, "a", "b", 1), use(p, "c", "d", 2)}, 6};
  auto out = multiplex(p.graph, in, 0);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(text(p, *out), Uses({"a->b:6", "a->b:1", "c->d:6"}));
  out = make_continuous(p.graph, *out);
  EXPECT_EQ(text(p, *out), Uses({"a->b:0", "a->b:1", "c->d:0"}));
  EXPECT_EQ(out->count, 2u);
  EXPECT_EQ(*multiplex(p.graph, in, 6), in) << "not above the threshold";
  const auto warnings = multiplex_warnings(p.graph, in, 0);
  ASSERT_TRUE(warnings.ok());
  ASSERT_EQ(warnings->size(), 1u);
  EXPECT_EQ(warnings->front().message, "event multiplexing of node a: 2 events lead from a to b; only the first takes the number 0");
}

TEST(EventPhases, BadMultiplexingTextIsQuoted) {
  for (const char* entry : {"SendTo;b", "SendTo;b;0;1", "GiveTo;b;0", "SendTo;b;-1", "SendTo;b;x", "SendTo;b;6666666666666", "SendTo;nobody;0"}) {
    Placed p = placed({"a", "b"}, {});
    set_multiplex(p, "a", {entry});
    const auto out = multiplex(p.graph, {}, 65500);
    ASSERT_FALSE(out.ok()) << entry;
    EXPECT_EQ(out.error().code, ErrorCode::bad_attribute);
    EXPECT_NE(out.error().message.find(fmt::format("node a: \"{}\"", entry)), std::string::npos) << out.error().message;
  }
}

TEST(EventPhases, ContinuityNumbersBySenderAndMissesNone) {
  const Placed p = placed({"n0 n1 n2", "m0 m1 m2"}, {});
  const auto out = make_continuous(p.graph, {{use(p, "n0", "m0", 3), use(p, "n2", "m2", 9), use(p, "n1", "m1", 5)}, 10});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(text(p, *out), Uses({"n0->m0:0", "n2->m2:2", "n1->m1:1"}));
  const auto bad = make_continuous(p.graph, {{{std::nullopt, p.node("m1"), 4}}, 5});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(to_string(bad.error()), "error: event 4 is waited on before m1 but never sent [E05 never sent]");
}

TEST(EventIds, AForcedIdMustBeOrdered) {
  // x waits for a, then y for x on another stream and z again for y: the first wait is over before both.
  Placed p = placed({"a c", "b", "d"}, {{"a", "b"}, {"b", "c"}, {"c", "d"}});
  set_multiplex(p, "a", {"SendTo;b;0"});
  set_multiplex(p, "c", {"SendTo;d;0"});
  const SyncPlan plan = plan_of(p);
  const auto refused = lower(p.graph, p.on, plan, no_limits(), {EventIds::sequential});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::shared_event_id);
  EXPECT_NE(refused.error().message.find("a -> b and c -> d"), std::string::npos) << refused.error().message;

  Placed q = placed({"a c", "b d"}, {{"a", "b"}, {"b", "c"}, {"c", "d"}});
  set_multiplex(q, "a", {"SendTo;b;0"});
  set_multiplex(q, "c", {"SendTo;d;0"});
  const auto shared = lower(q.graph, q.on, plan_of(q), no_limits(), {EventIds::sequential});
  ASSERT_TRUE(shared.ok()) << to_string(shared.error());
  EXPECT_EQ(shared->event_count, 2u);
  EXPECT_EQ(print(q.graph, *shared), "stream 0: a  !e0  ?e1  c  !e0\nstream 1: ?e0  b  !e1  ?e0  d\n");
}

TEST(TaskNames, CarryTheGraphTheIdAndHowOftenTheNameWasUsed) {
  Placed p = placed({"a c", "b d"}, {{"a", "b"}, {"b", "c"}, {"c", "d"}});
  p.graph.set_name("g");
  set_multiplex(p, "a", {"SendTo;b;0"});
  set_multiplex(p, "c", {"SendTo;d;0"});
  auto s = lower(p.graph, p.on, plan_of(p), no_limits(), {EventIds::sequential});
  ASSERT_TRUE(s.ok());
  auto names = task_names(p.graph, *s);
  EXPECT_EQ(names[PhysicalStreamId(0)], Uses({"a", "g_Send_0", "g_Recv_1", "c", "g_Send_0_Reuse_1"}));
  EXPECT_EQ(names[PhysicalStreamId(1)], Uses({"g_Recv_0", "b", "g_Send_1", "g_Recv_0_Reuse_1", "d"}));
  s->event_kind = EventKind::notify;
  names = task_names(p.graph, *s);
  EXPECT_EQ(names[PhysicalStreamId(1)], Uses({"g_NotifyWait_0", "b", "g_NotifyRecord_1", "g_NotifyWait_0_Reuse_1", "d"}));
}

TEST(Notify, OverTheLimitNamesTheStreamThatRecordsMost) {
  Placed p = placed({"a b c", "x", "y", "z"}, {{"a", "x"}, {"b", "y"}, {"c", "z"}});
  SyncPlan plan = plan_of(p);
  plan.kind = EventKind::notify;
  Target t = no_limits();
  t.limits.notifies = 2;
  const auto r = lower(p.graph, p.on, plan, t, {});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(to_string(r.error()),
            "error: the plan needs 3 notifies, target boundless has 2 [E06 notify limit]\n"
            "  note: most are recorded on stream 0: 3 records\n"
            "  help: use events (EVENT without notify), fewer streams (--streams N); sync=fewest merges waits, event_ids=minimal shares ids");
  t.limits.notifies = 3;
  const auto s = lower(p.graph, p.on, plan, t, {});
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(print(p.graph, *s).substr(0, 20), "stream 0: a  !n0  b ");
  const auto again = parse_schedule(print(p.graph, *s), p.graph, "n");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *s);
}

}  // namespace
}  // namespace millstream::testing
