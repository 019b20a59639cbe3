// SPDX-License-Identifier: Apache-2.0
// Compilation has no state of its own: many threads at once give the bytes that one alone gives. What a race in it
// would be, the thread sanitizer says.
#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "millstream/compile/compile.h"
#include "millstream/graph/text.h"
#include "tests/random_graph.h"

namespace millstream::testing {
namespace {

constexpr std::string_view kControl = R"(graph
  input n
  x = Op()
  c = Op(x)
  r = If(c) {then_branch=body(yes), else_branch=body(no)}
  m = Loop(n, c, r) {body=body(turn)}
  y = Op(m) @attached(1, "k")
body yes
  outer x
  a = Op(x) @user_label("side")
  b = Op(a)
  output b
body no
  outer x
  output x
body turn
  input i
  input c
  input v
  a = Op(v) @label("l")
  b = Op(v, a)
  output c, b
)";

struct Job {
  Graph graph;
  CompileOptions options;
  Target target;
};

std::string plan_of(const Job& job) {
  const auto graph = prepare(job.graph, job.target, job.options);
  if (!graph.ok()) return to_string(graph.error());
  const auto compiled = compile(*graph, job.target, job.options);
  if (!compiled.ok()) return to_string(compiled.error());
  std::string out = print(*graph, compiled->schedule) + print(*graph, compiled->assignment, compiled->sync);
  for (const NodeId n : graph->nodes()) {
    if (const auto& p = compiled->assignment.placement[n]) out += compiled->assignment.rules[p->decided_by.index] + "\n";
  }
  return out + fmt::format("{}\n", compiled->memory.peak_bytes);
}

std::vector<Job> jobs() {
  std::vector<Job> out;
  for (const std::string_view target : {"unit", "npu"}) {
    for (const std::string_view strategy : {"ge", "auto"}) {
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        Random random(seed);
        Job job;
        RandomGraphOptions shape;
        shape.nodes = 60;
        shape.labels = seed % 3;
        job.graph = random_graph(random, shape);
        job.target = *load_target(target);
        EXPECT_TRUE(set_option(job.options, "strategy", strategy).ok());
        EXPECT_TRUE(set_option(job.options, "sync", seed % 2 == 0 ? "exact" : "compat").ok());
        out.push_back(std::move(job));
      }
    }
  }
  auto graph = parse_graph(kControl, "control.mst");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  Job job;
  job.graph = std::move(*graph);
  job.target = *load_target("npu");
  EXPECT_TRUE(set_option(job.options, "strategy", "ge").ok());
  out.push_back(std::move(job));
  return out;
}

TEST(CompileThreads, EightThreadsGiveWhatOneGives) {
  const std::vector<Job> all = jobs();
  std::vector<std::string> alone;
  for (const Job& job : all) alone.push_back(plan_of(job));
  EXPECT_EQ(alone.back().find("error"), std::string::npos) << alone.back();

  constexpr std::size_t kThreads = 8;
  std::atomic<std::size_t> started{0};
  std::array<std::vector<std::string>, kThreads> got;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ++started;
      while (started < kThreads) std::this_thread::yield();
      // The first half of the threads walks alike, so that equal graphs meet; the others begin elsewhere.
      for (std::size_t i = 0; i < all.size(); ++i) got[t].push_back(plan_of(all[(i + (t < kThreads / 2 ? 0 : t * 3)) % all.size()]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < kThreads; ++t) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(got[t][i], alone[(i + (t < kThreads / 2 ? 0 : t * 3)) % all.size()]) << "thread " << t << ", job " << i;
    }
  }
}

}  // namespace
}  // namespace millstream::testing
