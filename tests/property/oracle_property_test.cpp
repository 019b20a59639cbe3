// SPDX-License-Identifier: Apache-2.0
// The fast verifier against the interpreter, on schedules with control flow, sound ones and damaged ones.
// MST_PROPERTY_COUNT sets how many.
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/interpret.h"
#include "tests/tree_schedule.h"

namespace millstream::testing {
namespace {

TreeOptions some_tree(Random& random) {
  TreeOptions o;
  o.nodes = 2 + random.below(3);
  switch (random.below(5)) {
    case 0: o.conditionals = 1 + random.below(2); break;
    case 1: o.loops = 1; break;
    case 2: o.calls = 1 + random.below(3); break;
    case 3: o.conditionals = 1, o.loops = 1; break;
    default: o.conditionals = 1, o.loops = 1, o.calls = 1; break;
  }
  return o;
}

std::string findings(const Interpretation& truth) {
  std::string out;
  for (const auto& f : truth.findings) {
    out += "  " + f.message + " [";
    for (const std::uint32_t d : f.decisions) out += fmt::format(" {}", d);
    out += " ]\n";
  }
  return out.empty() ? "  nothing\n" : out;
}
std::string violations(const CheckReport& report) {
  std::string out;
  for (const Violation& v : report.violations) out += "  " + v.message + "\n";
  return out.empty() ? "  nothing\n" : out;
}

std::size_t task_count(const Schedule& s) {
  std::size_t n = 0;
  for (const PhysicalStream& p : s.streams) n += p.tasks.size();
  return n;
}

// Deletes a wait, or a pair, moves or swaps tasks, gives an event another id, adds a pair, deletes a start.
void damage(Random& random, Schedule& s) {
  std::vector<PhysicalStreamId> full;
  for (const PhysicalStreamId p : ids<PhysicalStreamId>(s.streams.size())) {
    if (!s.streams[p].tasks.empty()) full.push_back(p);
  }
  if (full.empty()) return;
  auto& lane = s.streams[full[random.below(full.size())]].tasks;
  const std::size_t i = random.below(lane.size());
  const bool sync = lane[i].kind == Task::Kind::wait || lane[i].kind == Task::Kind::record;
  switch (random.below(6)) {
    case 0:
    case 1:
      if (lane[i].kind == Task::Kind::wait || lane[i].kind == Task::Kind::activate) lane.erase(lane.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    case 2:
      if (i > 0) std::swap(lane[i], lane[i - 1]);
      break;
    case 3:
      if (sync && s.event_count > 1) lane[i].index = static_cast<std::uint32_t>(random.below(s.event_count));
      break;
    case 4: {
      auto& to = s.streams[full[random.below(full.size())]].tasks;
      const EventId e(s.event_count++);
      lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(i), Task::record(e));
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(random.below(to.size() + 1)), Task::wait(e));
      break;
    }
    default:
      if (sync) {
        const Task t = lane[i];
        lane.erase(lane.begin() + static_cast<std::ptrdiff_t>(i));
        lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(random.below(lane.size() + 1)), t);
      }
  }
}

TEST(OracleProperty, CheckAcceptsPlainSchedulesWithControlFlow) {
  std::uint64_t controls = 0, executions = 0;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    Random random(seed);
    const Graph graph = random_tree(random, some_tree(random));
    const Schedule s = TreeScheduler(random, graph).build();
    const Interpretation truth = interpret(graph, s, {2, 3000});
    ASSERT_TRUE(truth.ok()) << "seed " << seed << "\n" << print(graph) << print(graph, s) << findings(truth);
    const CheckReport report = check(graph, s, nullptr, {}, false);
    ASSERT_TRUE(report.ok()) << "seed " << seed << "\n" << print(graph) << print(graph, s) << violations(report);
    controls += s.controls.size();
    executions += truth.executions;
  }
  EXPECT_GT(controls, 2 * property_count(200));
  EXPECT_GT(executions, 2 * property_count(200));
}

TEST(OracleProperty, CheckAgreesWithTheInterpreterOnDamagedSchedules) {
  std::uint64_t sound = 0, broken = 0;
  for (std::uint64_t seed = 0; seed < property_count(1000); ++seed) {
    Random random(seed + 1'000'000);
    const Graph graph = random_tree(random, some_tree(random));
    Schedule s = TreeScheduler(random, graph).build();
    if (task_count(s) > 90) continue;
    for (std::uint64_t n = 1 + random.below(2); n > 0; --n) damage(random, s);
    const Interpretation truth = interpret(graph, s, {2, 3000});
    if (!truth.complete) continue;
    const CheckReport report = check(graph, s, nullptr, {}, false);
    ASSERT_EQ(truth.ok(), report.ok()) << "seed " << seed << "\n" << print(graph) << print(graph, s) << "interpreter:\n" << findings(truth)
                                       << "check:\n" << violations(report);
    ++(truth.ok() ? sound : broken);
  }
  EXPECT_GT(sound, property_count(1000) / 20);
  EXPECT_GT(broken, property_count(1000) / 10);
}

// Each wait taken out alone: redundant iff every execution keeps what it needs.
TEST(OracleProperty, RedundantWaitsOfControlFlowAreExact) {
  std::uint64_t redundant = 0, needed = 0;
  for (std::uint64_t seed = 0; seed < property_count(60); ++seed) {
    Random random(seed + 2'000'000);
    const Graph graph = random_tree(random, some_tree(random));
    const Schedule s = TreeScheduler(random, graph).build();
    if (task_count(s) > 70) continue;
    const CheckReport report = check(graph, s, nullptr);
    for (const PhysicalStreamId p : ids<PhysicalStreamId>(s.streams.size())) {
      for (std::uint32_t i = 0; i < s.streams[p].tasks.size(); ++i) {
        const Task t = s.streams[p].tasks[i];
        if (t.kind != Task::Kind::wait) continue;
        Schedule without = s;
        auto& lane = without.streams[p].tasks;
        lane.erase(lane.begin() + static_cast<std::ptrdiff_t>(i));
        for (PhysicalStream& other : without.streams) std::erase(other.tasks, Task::record(t.event()));
        const Interpretation truth = interpret(graph, without, {2, 3000});
        if (!truth.complete) continue;
        const bool listed = std::any_of(report.redundant.begin(), report.redundant.end(), [&](const auto& r) { return r.wait == TaskRef{p, i}; });
        ASSERT_EQ(truth.ok(), listed) << "seed " << seed << " event " << t.index << "\n" << print(graph) << print(graph, s) << findings(truth);
        ++(listed ? redundant : needed);
      }
    }
  }
  EXPECT_GT(redundant, 10u);
  EXPECT_GT(needed, 10u);
}

}  // namespace
}  // namespace millstream::testing
