// SPDX-License-Identifier: Apache-2.0
// The worker pool: order, hangs, failures, delays. Nodes do nothing but leave marks.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include <fmt/format.h>

#include "millstream/backend/backend.h"
#include "millstream/graph/text.h"
#include "tests/hand_schedule.h"

namespace millstream::testing {
namespace {

// n0, n1, ... without edges.
Graph loose_nodes(std::size_t count) {
  std::string text = "graph\n";
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("  n{} = Op()\n", i);
  Result<Graph> g = parse_graph(text, "test");
  MST_CHECK(g.ok(), to_string(g.error()));
  return std::move(g).value();
}

// Plain memory on purpose: only the schedule's order makes it safe to read.
class Marks final : public Launcher {
 public:
  explicit Marks(std::size_t nodes) : done(nodes, 0) {}
  Result<void> launch(NodeId node, PhysicalStreamId) override {
    launches.fetch_add(1);
    if (fail_at == node) return Error{ErrorCode::kernel, fmt::format("node #{} failed", node.index)};
    if (then) then(node);
    ++done[node.index];
    return {};
  }
  std::vector<int> done;
  std::optional<NodeId> fail_at;
  std::function<void(NodeId)> then;
  std::atomic<int> launches{0};
};

TEST(CpuBackend, EightStreamsOnOneWorkerFinish) {
  const Graph g = loose_nodes(16);
  // Stream k waits for stream k + 1: every stream but the last is blocked at its start.
  std::vector<std::string> lanes;
  for (int s = 0; s < 8; ++s) {
    lanes.push_back(fmt::format("{} n{} n{} {}", s < 7 ? fmt::format("?e{}", s) : "", 2 * s, 2 * s + 1, s > 0 ? fmt::format("!e{}", s - 1) : ""));
  }
  const Schedule s = hand_schedule(g, lanes);
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    const auto backend = make_cpu_backend(workers, 1);
    for (int round = 0; round < 20; ++round) {
      Marks marks(g.node_count());
      marks.then = [&](NodeId n) {
        if (n.index < 14 && n.index % 2 == 0) {
          EXPECT_EQ(marks.done[n.index + 3], 1);
        }
      };
      ExecuteOptions options;
      options.trace = round % 2 == 0;
      const Result<Trace> trace = backend->execute(g, s, marks, options);
      ASSERT_TRUE(trace.ok()) << to_string(trace.error());
      EXPECT_EQ(marks.done, std::vector<int>(16, 1));
      if (!options.trace) continue;
      const auto wrong = verify(g, s, *trace);
      EXPECT_TRUE(wrong.empty()) << wrong.front().message;
      for (const Span& span : trace->spans) EXPECT_LT(span.worker, workers);
    }
  }
}

TEST(CpuBackend, DelaysChangeNoOrder) {
  const Graph g = loose_nodes(6);
  const Schedule s = hand_schedule(g, {"n0 !e0 n1 ?e1 n2", "?e0 n3 !e1 !e2 n4", "?e2 n5"});
  const auto backend = make_cpu_backend(3, 1);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Marks marks(g.node_count());
    marks.then = [&](NodeId n) {
      if (n.index == 3) {
        EXPECT_EQ(marks.done[0], 1);
      }
      if (n.index == 2 || n.index == 5) {
        EXPECT_EQ(marks.done[3], 1);
      }
    };
    ExecuteOptions options;
    options.trace = true;
    options.delay_seed = seed;
    const Result<Trace> trace = backend->execute(g, s, marks, options);
    ASSERT_TRUE(trace.ok()) << to_string(trace.error());
    const auto wrong = verify(g, s, *trace);
    EXPECT_TRUE(wrong.empty()) << "seed " << seed << ": " << wrong.front().message;
  }
}

TEST(CpuBackend, AReusedEventPairsAsTheScheduleMeansIt) {
  const Graph g = loose_nodes(6);
  // e0 serves twice; without fixed pairs the second record could wake the wrong wait.
  const Schedule s = hand_schedule(g, {"n0 !e0 n1 ?e1 n2 !e0", "?e0 n3 !e1 n4 ?e0 n5"});
  const auto backend = make_cpu_backend(2, 1);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Marks marks(g.node_count());
    marks.then = [&](NodeId n) {
      if (n.index == 5) {
        EXPECT_EQ(marks.done[2], 1);
      }
    };
    ExecuteOptions options;
    options.delay_seed = seed;
    ASSERT_TRUE(backend->execute(g, s, marks, options).ok());
  }
}

TEST(CpuBackend, AScheduleThatCannotFinishIsReportedWithItsCycle) {
  const Graph g = loose_nodes(4);
  const Schedule s = hand_schedule(g, {"n0 ?e1 n1 !e0", "n2 ?e0 n3 !e1"});
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    Marks marks(g.node_count());
    const Result<Trace> trace = make_cpu_backend(workers, 1)->execute(g, s, marks, {});
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.error().code, ErrorCode::deadlock);
    const std::string text = to_string(trace.error());
    EXPECT_NE(text.find("stream 0 waits for event 1 after node \"n0\", which stream 1 records"), std::string::npos) << text;
    EXPECT_NE(text.find("stream 1 waits for event 0 after node \"n2\", which stream 0 records"), std::string::npos) << text;
    EXPECT_NE(text.find("the cycle: stream 0 waits for stream 1 waits for stream 0"), std::string::npos) << text;
    EXPECT_EQ(marks.launches.load(), 0) << "told before anything runs";
  }
}

TEST(CpuBackend, AWaitWithoutRecordIsReported) {
  const Graph g = loose_nodes(2);
  Marks marks(g.node_count());
  const Result<Trace> trace = make_cpu_backend(2, 1)->execute(g, hand_schedule(g, {"n0 ?e0 n1"}), marks, {});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, ErrorCode::deadlock);
  EXPECT_NE(to_string(trace.error()).find("which no stream records any more"), std::string::npos) << to_string(trace.error());
}

TEST(CpuBackend, AFailureStopsTheRunAndTheBackendGoesOn) {
  const Graph g = loose_nodes(40);
  std::string first = "n0 !e0", second = "?e0";
  for (int i = 1; i < 20; ++i) first += fmt::format(" n{}", i);
  for (int i = 20; i < 40; ++i) second += fmt::format(" n{}", i);
  const Schedule s = hand_schedule(g, {first, second});
  const auto backend = make_cpu_backend(2, 1);
  for (int round = 0; round < 10; ++round) {
    Marks marks(g.node_count());
    marks.fail_at = NodeId(0);
    const Result<Trace> trace = backend->execute(g, s, marks, {});
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.error().message, "node #0 failed");
    EXPECT_EQ(marks.launches.load(), 1) << "nothing starts behind a failure";
    marks.fail_at.reset();
    EXPECT_TRUE(backend->execute(g, s, marks, {}).ok());
  }
}

TEST(CpuBackend, IdsThatDoNotExistAreRefused) {
  const Graph g = loose_nodes(1);
  Schedule s = hand_schedule(g, {"n0"});
  s.streams[PhysicalStreamId(0)].tasks.push_back(Task::launch(NodeId(5)));
  Marks marks(g.node_count());
  const Result<Trace> trace = make_cpu_backend(1, 1)->execute(g, s, marks, {});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, ErrorCode::plan_mismatch);
}

TEST(CpuBackend, AnEmptyScheduleFinishes) {
  const Graph g = loose_nodes(1);
  Marks marks(g.node_count());
  EXPECT_TRUE(make_cpu_backend(2, 1)->execute(g, Schedule{}, marks, {}).ok());
}

// Many short runs on one pool: sleeping and waking loses nobody.
TEST(CpuBackend, ManyShortRuns) {
  const Graph g = loose_nodes(4);
  const Schedule s = hand_schedule(g, {"n0 !e0 ?e1 n1", "?e0 n2 !e1", "n3"});
  const auto backend = make_cpu_backend(4, 1);
  for (int round = 0; round < 500; ++round) {
    Marks marks(g.node_count());
    ASSERT_TRUE(backend->execute(g, s, marks, {}).ok());
    ASSERT_EQ(marks.done, std::vector<int>(4, 1));
  }
}

}  // namespace
}  // namespace millstream::testing
