// SPDX-License-Identifier: Apache-2.0
// Sync and lowering on random graphs of every kind, judged by the interpreter and by check: no order is lost, no
// wait can go, equal output for equal input. MST_PROPERTY_COUNT sets how many graphs of each kind.
#include <gtest/gtest.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/interpret.h"
#include "tests/placed_graph.h"
#include "tests/tree_schedule.h"

namespace millstream::testing {
namespace {

struct Family {
  std::string name;
  TreeOptions tree;
  std::uint32_t limit = 0xffffffffu;  // tasks a stream
};

void PrintTo(const Family& f, std::ostream* out) { *out << f.name; }

std::vector<Family> families() {
  std::vector<Family> out;
  const auto add = [&](std::string name) -> Family& {
    out.push_back({std::move(name), {}, 0xffffffffu});
    return out.back();
  };
  add("plain").tree.nodes = 12;
  Family& attached = add("attached");
  attached.tree.nodes = 10;
  attached.tree.attached = 0.3;
  Family& split = add("split");
  split.tree.nodes = 14;
  split.limit = 10;
  add("conditional").tree.conditionals = 1;
  add("two_conditionals").tree.conditionals = 2;
  add("loop").tree.loops = 1;
  Family& loops = add("two_loops");
  loops.tree.loops = 2;
  loops.tree.nodes = 2;
  add("calls").tree.calls = 4;
  Family& all = add("everything");
  all.tree = {3, 1, 1, 2};
  Family& attached_tree = add("attached_tree");
  attached_tree.tree = {3, 1, 1, 1};
  attached_tree.tree.attached = 0.3;
  Family& split_tree = add("split_tree");
  split_tree.tree = {4, 1, 1, 1};
  split_tree.limit = 24;
  return out;
}

std::string text_of(const Interpretation& truth) {
  std::string out;
  for (const auto& f : truth.findings) {
    out += "  " + f.message + " [";
    for (const std::uint32_t d : f.decisions) out += fmt::format(" {}", d);
    out += " ]\n";
  }
  return out;
}

// The schedule with a launch where each placed node without a task stands, so that what must come before and
// behind it counts. Nothing when a gap does not hold what the plan says (a split fell into it).
std::optional<Schedule> with_positions(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, Schedule s) {
  IdVec<NodeId, std::size_t> waits(graph.node_count(), 0), records(graph.node_count(), 0);
  for (const SyncPair& p : plan.kept) {
    if (p.from == p.to) continue;
    ++waits[p.to];
    ++records[p.from];
  }
  std::vector<bool> has_task(graph.node_count(), false);
  const auto node_of = [&](const Task& t) -> std::optional<NodeId> {
    if (t.is_control()) return s.controls[t.index].node;
    return t.kind == Task::Kind::launch ? std::optional(t.node()) : std::nullopt;
  };
  for (const PhysicalStream& p : s.streams) {
    for (const Task& t : p.tasks) {
      if (const auto n = node_of(t)) has_task[n->index] = true;
    }
  }
  for (PhysicalStream& p : s.streams) {
    if (on.streams[p.logical].attached) continue;
    std::vector<NodeId> nodes;
    for (const NodeId n : graph.order()) {
      if (on.placement[n] && on.placement[n]->stream == p.logical) nodes.push_back(n);
    }
    std::vector<Task> out;
    std::size_t at = 0;
    const auto take = [&](Task::Kind kind, std::size_t count) {
      for (; count > 0 && at < p.tasks.size() && p.tasks[at].kind == kind; --count) out.push_back(p.tasks[at++]);
      return count == 0;
    };
    for (const NodeId n : nodes) {
      const std::size_t attached = on.attached.get(n) ? on.attached.get(n)->size() : 0;
      if (!take(Task::Kind::wait, waits[n]) || !take(Task::Kind::record, attached)) return std::nullopt;
      if (!has_task[n.index]) out.push_back(Task::launch(n));
      while (at < p.tasks.size() && node_of(p.tasks[at]) == n) out.push_back(p.tasks[at++]);
      if (!take(Task::Kind::wait, attached) || !take(Task::Kind::record, records[n])) return std::nullopt;
    }
    if (at != p.tasks.size()) return std::nullopt;
    p.tasks = std::move(out);
  }
  return s;
}

// The order of a logical stream goes on over its pieces.
std::vector<Requirement> along_pieces(const Schedule& s) {
  std::vector<Requirement> out;
  for (const StreamId l : ids<StreamId>(s.logical_streams)) {
    std::optional<NodeId> last;
    for (const PhysicalStream& p : s.streams) {
      if (p.logical != l) continue;
      for (const Task& t : p.tasks) {
        if (t.kind != Task::Kind::launch) continue;
        if (last) out.push_back({*last, t.node(), Requirement::Kind::control, ValueId()});
        last = t.node();
      }
    }
  }
  return out;
}

// Everything wrong with what the stages make of a placed graph; empty: nothing. `skipped`: refused for a
// limit, which is an answer.
struct Verdict {
  std::string wrong;
  bool refused = false;
  bool minimal = false;  // every wait was tried
  std::uint64_t executions = 0;
  std::string schedule;
};

Verdict judge(const Graph& graph, const StreamAssignment& on, std::uint32_t limit) {
  Verdict v;
  const auto plan = plan_sync(graph, on, {});
  if (!plan.ok()) {
    v.wrong = "plan_sync: " + to_string(plan.error());
    return v;
  }
  for (const Error& e : verify(graph, on, *plan)) v.wrong += "verify: " + to_string(e) + "\n";
  Target target = no_limits();
  target.limits.tasks_per_stream = limit;
  const auto schedule = lower(graph, on, *plan, target, {});
  if (!schedule.ok()) {
    v.refused = schedule.error().code == ErrorCode::task_limit || schedule.error().code == ErrorCode::stream_limit;
    if (!v.refused) v.wrong += "lower: " + to_string(schedule.error());
    return v;
  }
  v.schedule = print(graph, *schedule);
  const CheckReport report = check(graph, *schedule, &target, {}, false);
  for (const Violation& x : report.violations) v.wrong += "check: " + x.message + "\n";
  const bool split = schedule->streams.size() > on.streams.size();
  const auto whole = split ? *schedule : with_positions(graph, on, *plan, *schedule);
  if (whole && report.ok()) {
    const CheckReport minimal = check(graph, *whole, nullptr, along_pieces(*whole));
    for (const Violation& x : minimal.violations) v.wrong += "check with positions: " + x.message + "\n";
    // Behind a split some waits serve only positions without a task, which are not in the schedule.
    if (!split || graph.scope_count() == 1) {
      for (const auto& r : minimal.redundant) {
        v.wrong += fmt::format("the wait for e{} on stream {} can go\n", r.event.index, r.wait.stream.index);
      }
      v.minimal = true;
    }
  }
  const Interpretation truth = interpret(graph, *schedule, {2, 500});
  v.executions = truth.executions;
  if (!truth.ok()) v.wrong += "interpreter:\n" + text_of(truth);
  return v;
}

class SyncOnTrees : public ::testing::TestWithParam<Family> {};

TEST_P(SyncOnTrees, LosesNoOrderAndKeepsNoWaitThatCanGo) {
  std::uint64_t judged = 0, executions = 0, minimal = 0;
  std::optional<std::size_t> smallest;
  std::string example;
  std::uint64_t failures = 0;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    Random random(seed);
    const Graph graph = random_tree(random, GetParam().tree);
    const StreamAssignment on = TreeScheduler(random, graph).assignment();
    const Verdict v = judge(graph, on, GetParam().limit);
    if (v.wrong.empty()) {
      judged += !v.refused;
      executions += v.executions;
      minimal += v.minimal;
      continue;
    }
    ++failures;
    if (smallest && *smallest <= graph.node_count()) continue;
    smallest = graph.node_count();
    example = fmt::format("seed {}\n{}{}{}", seed, print(graph), v.schedule, v.wrong);
  }
  fmt::print("{} of {} graphs judged, {} for waits that can go\n", judged, property_count(200), minimal);
  EXPECT_EQ(failures, 0u) << "the smallest: " << example;
  EXPECT_GT(judged, property_count(200) / 2);
  EXPECT_GE(executions, judged);
  EXPECT_GE(minimal, judged / 2);
}

// The rule chain on the same kinds, with labels and engines besides.

std::vector<Family> chain_families() {
  std::vector<Family> out = families();
  for (Family& f : out) f.tree.engines = true;
  const auto add = [&](std::string name, TreeOptions tree) -> Family& {
    out.push_back({std::move(name), tree, 0xffffffffu});
    out.back().tree.engines = true;
    return out.back();
  };
  TreeOptions tree;
  tree.nodes = 12;
  tree.label = 0.3;
  add("labels", tree);
  tree.user_label = 0.2;
  tree.parallel_group = 0.1;
  add("all_labels", tree);
  tree = {4, 1, 1, 1};
  tree.label = 0.3;
  add("labels_in_trees", tree);
  tree.user_label = 0.2;
  tree.attached = 0.15;
  add("all_in_trees", tree);
  return out;
}

// The same graph, written with control edges and notes in another order.
Graph rewritten(Random& random, const Graph& graph) {
  std::string text = print(graph), out;
  const auto shuffle = [&](std::vector<std::string>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find(" @");
    if (first != std::string::npos && line.find("scope ") != 2) {
      std::vector<std::string> notes;
      for (std::size_t n = first; n != std::string::npos;) {
        const std::size_t next = line.find(" @", n + 1);
        std::string note = line.substr(n, next == std::string::npos ? next : next - n);
        if (note.rfind(" @after(", 0) == 0) {
          std::vector<std::string> names;
          const std::string list = note.substr(8, note.size() - 9);
          for (std::size_t k = 0; k < list.size();) {
            const std::size_t comma = std::min(list.find(", ", k), list.size());
            names.push_back(list.substr(k, comma - k));
            k = comma + 2;
          }
          shuffle(names);
          note = " @after(";
          for (std::size_t k = 0; k < names.size(); ++k) note += (k == 0 ? "" : ", ") + names[k];
          note += ")";
        }
        notes.push_back(std::move(note));
        n = next;
      }
      shuffle(notes);
      line.erase(first);
      for (const std::string& note : notes) line += note;
    }
    out += line + "\n";
  }
  auto again = parse_graph(out, "rewritten");
  MST_CHECK(again.ok(), to_string(again.error()) + "\n" + out);
  return std::move(*again);
}

// What the stages print for a graph, or what they refuse.
std::string everything(const Graph& graph, const Target& target) {
  AssignOptions options;
  options.strategy = Strategy::ge;
  const auto on = assign_streams(graph, target, options);
  if (!on.ok()) return to_string(on.error());
  std::string out;
  for (const NodeId n : graph.nodes()) {
    out += fmt::format("{} {}\n", graph.name(n), on->placement[n] ? std::to_string(on->placement[n]->stream.index) : "-");
  }
  const auto plan = plan_sync(graph, *on, {});
  if (!plan.ok()) return out + to_string(plan.error());
  out += print(graph, *on, *plan);
  const auto schedule = lower(graph, *on, *plan, target, {});
  return out + (schedule.ok() ? print(graph, *schedule) : to_string(schedule.error()));
}

class ChainOnTrees : public ::testing::TestWithParam<Family> {};

TEST_P(ChainOnTrees, LosesNoOrderKeepsNoWaitThatCanGoAndRepeats) {
  Result<Target> npu = load_target("npu");
  ASSERT_TRUE(npu.ok());
  std::uint64_t judged = 0, failures = 0, refused = 0, several = 0;
  std::optional<std::size_t> smallest;
  std::string example;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    Random random(seed + 7'000'000);
    const Graph graph = random_tree(random, GetParam().tree);
    Target target = *npu;
    target.limits.tasks_per_stream = GetParam().limit;
    AssignOptions options;
    options.strategy = Strategy::ge;
    for (const Engine& e : target.engines) options.max_parallel.push_back({e.name, 1 + static_cast<std::uint32_t>(seed % 3)});
    Verdict v;
    const auto on = assign_streams(graph, target, options);
    if (!on.ok()) {
      v.wrong = to_string(on.error());
    } else {
      v = judge(graph, *on, GetParam().limit);
      several += on->streams.size() > 1;
    }
    const std::string first = everything(graph, target);
    if (first != everything(graph, target)) v.wrong += "a second compilation differs\n";
    if (first != everything(rewritten(random, graph), target)) v.wrong += "the graph written in another order compiles to something else\n";
    if (v.wrong.empty()) {
      judged += !v.refused;
      refused += v.refused;
      continue;
    }
    ++failures;
    if (smallest && *smallest <= graph.node_count()) continue;
    smallest = graph.node_count();
    example = fmt::format("seed {}\n{}{}{}", seed, print(graph), v.schedule, v.wrong);
  }
  fmt::print("{} of {} graphs judged, {} refused for a limit, {} on several streams\n", judged, property_count(200), refused, several);
  EXPECT_EQ(failures, 0u) << "the smallest: " << example;
  EXPECT_GT(judged, property_count(200) / 2) << refused << " refused";
  EXPECT_GT(several, property_count(200) / 4);
}

INSTANTIATE_TEST_SUITE_P(Families, ChainOnTrees, ::testing::ValuesIn(chain_families()), [](const auto& family) { return family.param.name; });
INSTANTIATE_TEST_SUITE_P(Families, SyncOnTrees, ::testing::ValuesIn(families()), [](const auto& family) { return family.param.name; });

}  // namespace
}  // namespace millstream::testing
