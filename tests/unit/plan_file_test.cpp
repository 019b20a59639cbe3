// SPDX-License-Identifier: Apache-2.0
// Plan files: what is written is read, what is damaged or foreign is refused.
#include <gtest/gtest.h>

#include <cstdio>

#include "millstream/memory/plan_bytes.h"
#include "tests/placed_graph.h"

namespace millstream::testing {
namespace {

struct Planned {
  Placed placed;
  Plan plan;
};

Planned planned(std::uint64_t seed) {
  Random random(seed);
  Planned out{random_placed(random, 30, 4, 0.15), {}};
  Graph& g = out.placed.graph;
  for (const NodeId n : g.nodes()) g.set_desc(g.outputs(n)[0], TensorDesc::of(DType::f32, {static_cast<std::int64_t>(1 + random.below(500))}));
  Plan& p = out.plan;
  p.graph_hash = hash_of(g);
  p.model_path = "../models/net \xc3\xa4.onnx";
  p.dims = {{"N", 4}, {"M", -1}};
  p.assignment = out.placed.on;
  p.assignment.threads_per_op = 2;
  p.assignment.streams[StreamId(1)] = StreamInfo{"label", EngineId(3), -5, false, false, true};
  p.assignment.skips_engines = true;
  p.assignment.considered = {{2, 1, 12.5, 7}};
  p.assignment.estimate = Estimate{1, 2, 0.5, 0.25, "cores", 3};
  p.sync = plan_of(out.placed);
  p.schedule = schedule_of(out.placed, p.sync);
  Result<MemoryPlan> memory = plan_memory(g, p.schedule, {});
  MST_CHECK(memory.ok(), "a memory plan");
  p.memory = std::move(memory).value();
  return out;
}

TEST(PlanFile, WhatIsWrittenIsRead) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Planned made = planned(seed);
    const std::string bytes = plan_bytes(made.plan);
    const Result<Plan> read = parse_plan(bytes, "x.plan");
    ASSERT_TRUE(read.ok()) << to_string(read.error());
    EXPECT_EQ(plan_bytes(*read), bytes);
    EXPECT_EQ(read->model_path, made.plan.model_path);
    EXPECT_EQ(read->dims, made.plan.dims);
    EXPECT_EQ(read->schedule, made.plan.schedule);
    EXPECT_EQ(read->memory.buffers, made.plan.memory.buffers);
    EXPECT_EQ(read->memory.reuse.size(), made.plan.memory.reuse.size());
    EXPECT_EQ(read->assignment.placement, made.plan.assignment.placement);
    EXPECT_EQ(read->assignment.streams, made.plan.assignment.streams);
    EXPECT_EQ(read->assignment.skips_engines, made.plan.assignment.skips_engines);
    EXPECT_EQ(read->sync.kept, made.plan.sync.kept);
    const Result<void> good = verify_plan(made.placed.graph, *read, nullptr);
    EXPECT_TRUE(good.ok()) << to_string(good.error());
  }
}

TEST(PlanFile, AFileIsReplacedAtOnce) {
  const Planned made = planned(3);
  const std::string path = ::testing::TempDir() + "plan_file_test.plan";
  ASSERT_TRUE(write_plan(path, made.plan).ok());
  ASSERT_TRUE(write_plan(path, made.plan).ok());
  const Result<Plan> read = read_plan(path);
  ASSERT_TRUE(read.ok()) << to_string(read.error());
  EXPECT_EQ(plan_bytes(*read), plan_bytes(made.plan));
  std::remove(path.c_str());
  EXPECT_EQ(read_plan(path).error().code, ErrorCode::io);
  EXPECT_EQ(write_plan("/nonexistent/folder/x.plan", made.plan).error().code, ErrorCode::io);
}

TEST(PlanFile, EveryCutAndEveryFlippedBitIsRefused) {
  const std::string bytes = plan_bytes(planned(5).plan);
  for (std::size_t n = 0; n < bytes.size(); n += n < 100 ? 1 : 37) EXPECT_FALSE(parse_plan(bytes.substr(0, n), "x").ok()) << n;
  for (std::size_t i = 0; i < bytes.size(); i += i < 100 ? 1 : 13) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(parse_plan(bad, "x").ok()) << i;
  }
}

// With the checksum put right, whatever is read is in range, and the verifier refuses it or it is sound.
TEST(PlanFile, DamageBehindAGoodChecksumDoesNoHarm) {
  const Planned made = planned(6);
  const std::string bytes = plan_bytes(made.plan);
  Random random(9);
  std::size_t refused = 0, verified = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = bytes.substr(0, bytes.size() - 8);
    for (std::uint64_t k = 1 + random.below(3); k > 0; --k) bad[16 + random.below(bad.size() - 16)] = static_cast<char>(random.below(256));
    PlanWriter sum;
    sum.u64(plan_checksum(bad));
    const Result<Plan> read = parse_plan(bad + sum.bytes(), "x");
    if (!read.ok()) {
      ++refused;
      continue;
    }
    ++verified;
    (void)verify_plan(made.placed.graph, *read, nullptr).ok();
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(verified, 100u);
}

TEST(PlanFile, ForeignAndNewerFilesAreRefusedByName) {
  EXPECT_EQ(parse_plan("graph\n", "x.plan").error().code, ErrorCode::bad_model);
  std::string newer = plan_bytes(planned(1).plan);
  newer[8] = 9;
  EXPECT_NE(parse_plan(newer, "x.plan").error().message.find("version 9, this millstream reads version 4"), std::string::npos);
}

TEST(PlanFile, APlanOfAnotherGraphNamesBothHashesAndTheOption) {
  const Planned one = planned(1), two = planned(2);
  const Result<void> r = verify_plan(two.placed.graph, one.plan, nullptr);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::plan_mismatch);
  const std::string text = to_string(r.error());
  EXPECT_NE(text.find(fmt::format("{:016x}", hash_of(one.placed.graph))), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("{:016x}", hash_of(two.placed.graph))), std::string::npos);
  EXPECT_NE(text.find("--graph"), std::string::npos);
}

// The hash is right, the content is not: each part is checked.
TEST(PlanFile, EachPartIsVerified) {
  const Planned made = planned(4);
  const auto message = [&](const Plan& p) {
    const Result<void> r = verify_plan(made.placed.graph, p, nullptr);
    return r.ok() ? std::string("accepted") : r.error().message;
  };
  ASSERT_EQ(message(made.plan), "accepted");
  Plan p = made.plan;
  ASSERT_FALSE(p.sync.kept.empty());
  p.sync.kept.pop_back();
  EXPECT_NE(message(p).find("list of waits"), std::string::npos) << message(p);
  p = made.plan;
  for (auto& stream : p.schedule.streams) {
    std::erase_if(stream.tasks, [](const Task& t) { return t.kind == Task::Kind::wait; });
  }
  EXPECT_NE(message(p).find("schedule"), std::string::npos) << message(p);
  p = made.plan;
  for (auto& b : p.memory.buffers) {
    if (b) b->offset = 0;
  }
  EXPECT_NE(message(p).find("memory"), std::string::npos) << message(p);
}

}  // namespace
}  // namespace millstream::testing
