// SPDX-License-Identifier: Apache-2.0
// Sync and lowering on random graphs of every kind, judged by the interpreter and by check: no order is lost, no
// wait can go, equal output for equal input. MST_PROPERTY_COUNT sets how many graphs of each kind.
#include <gtest/gtest.h>

#include "millstream/compile/compile.h"
#include "millstream/graph/text.h"
#include "millstream/memory/plan_bytes.h"
#include "millstream/schedule/interpret.h"
#include "millstream/sync/insert.h"
#include "tests/along_pieces.h"
#include "tests/placed_graph.h"
#include "tests/random_nested.h"
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

// What a body reads from the graphs around it is there before the node that owns it, even what no stream makes; and all in
// a body has run before what follows its owner.
void add_around_bodies(const Graph& graph, std::vector<Requirement>& out) {
  if (graph.scope_count() == 1) return;
  const ControlFlow flow(graph);
  const auto after = [&](NodeId first, NodeId second) { out.push_back({first, second, Requirement::Kind::control, ValueId()}); };
  const Dependencies deps(graph);
  for (const NodeId n : graph.nodes()) {
    for (const NodeId p : deps.predecessors(n)) {
      if (const auto e = lifted(graph, flow, p, n); e && graph.scope_of(p) != graph.scope_of(n)) after(e->from, e->to);
    }
  }
  for (const NodeId inner : graph.nodes()) {
    if (graph.scope_of(inner).index == 0) continue;
    const NodeId owner = *graph.scope(graph.scope_of(inner)).parent_node;
    for (const NodeId n : deps.successors(owner)) {
      if (graph.scope_of(n) == graph.scope_of(owner)) after(inner, n);
    }
  }
}

// The interpreter knows no engines: check says whether a node may go without a stream.
Interpretation interpret_placed(const Graph& graph, const StreamAssignment& on, const Schedule& schedule) {
  Interpretation out = interpret(graph, schedule, {2, 500});
  std::erase_if(out.findings, [&](const Interpretation::Finding& f) {
    return f.kind == Interpretation::Finding::Kind::wrong_count && f.first && !on.placement[*f.first];
  });
  return out;
}

// Everything wrong with what the stages make of a placed graph; empty: nothing. `skipped`: refused for a
// limit, which is an answer.
struct Verdict {
  std::string wrong;
  bool refused = false;
  std::uint64_t executions = 0;
  std::string schedule;
};

Verdict judge(const Graph& graph, const StreamAssignment& on, std::uint32_t limit, Target target = no_limits()) {
  Verdict v;
  const auto plan = plan_sync(graph, on, {});
  if (!plan.ok()) {
    v.wrong = "plan_sync: " + to_string(plan.error());
    return v;
  }
  for (const Error& e : verify(graph, on, *plan)) v.wrong += "verify: " + to_string(e) + "\n";
  target.limits.tasks_per_stream = limit;
  const auto schedule = lower(graph, on, *plan, target, {});
  if (!schedule.ok()) {
    v.refused = schedule.error().code == ErrorCode::task_limit || schedule.error().code == ErrorCode::stream_limit;
    if (!v.refused) v.wrong += "lower: " + to_string(schedule.error());
    return v;
  }
  v.schedule = print(graph, *schedule);
  const bool split = schedule->streams.size() > on.streams.size();
  std::vector<Requirement> besides;
  if (split) besides = along_pieces(*schedule);
  add_around_bodies(graph, besides);
  const CheckReport report = check(graph, *schedule, &target, besides);
  for (const Violation& x : report.violations) v.wrong += "check: " + x.message + "\n";
  for (const auto& r : report.redundant) {
    v.wrong += fmt::format("the wait for e{} on stream {} can go\n", r.event.index, r.wait.stream.index);
  }
  const Interpretation truth = interpret_placed(graph, on, *schedule);
  v.executions = truth.executions;
  if (!truth.ok()) v.wrong += "interpreter:\n" + text_of(truth);
  return v;
}

class SyncOnTrees : public ::testing::TestWithParam<Family> {};

TEST_P(SyncOnTrees, LosesNoOrderAndKeepsNoWaitThatCanGo) {
  std::uint64_t judged = 0, executions = 0;
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
      continue;
    }
    ++failures;
    if (smallest && *smallest <= graph.node_count()) continue;
    smallest = graph.node_count();
    example = fmt::format("seed {}\n{}{}{}", seed, print(graph), v.schedule, v.wrong);
  }
  fmt::print("{} of {} graphs judged\n", judged, property_count(200));
  EXPECT_EQ(failures, 0u) << "the smallest: " << example;
  EXPECT_GT(judged, property_count(200) / 2);
  EXPECT_GE(executions, judged);
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
  add("split_labels_in_trees", tree).limit = 20;
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

// Graphs of unknown shapes: what compile makes of nested bodies in every mode, and what a plan file says of it.

struct NestedFamily {
  std::string name;
  NestedOptions nested;
  bool multi_stream = false;
};

void PrintTo(const NestedFamily& f, std::ostream* out) { *out << f.name; }

std::vector<NestedFamily> dynamic_families() {
  std::vector<NestedFamily> out;
  const auto add = [&](std::string name, const NestedOptions& nested) {
    out.push_back({name, nested, false});
    if (nested.root_dynamic > 0) out.push_back({name + "_multi_stream", nested, true});
  };
  NestedOptions bodies;
  bodies.root_dynamic = 0;
  add("dynamic_bodies", bodies);
  NestedOptions roots;
  roots.root_dynamic = 1;
  add("dynamic_roots", roots);
  roots.user_label = 0.25;
  roots.elsewhere = 0.15;
  add("dynamic_elsewhere", roots);
  NestedOptions labels;
  labels.user_label = 0.25;
  labels.label = 0.1;
  add("dynamic_labels", labels);
  NestedOptions all;
  all.nested = 6;
  all.dynamic = 0.3;
  all.user_label = 0.15;
  all.label = 0.1;
  all.attached = 0.15;
  all.skipped = 0.3;
  add("dynamic_everything", all);
  return out;
}

// What is wrong with the plan that a file holds.
std::string reread(const Graph& graph, const Compiled& made, const Target& target) {
  Plan plan;
  plan.graph_hash = hash_of(graph);
  plan.assignment = made.assignment;
  plan.sync = made.sync;
  plan.schedule = made.schedule;
  plan.memory = made.memory;
  const std::string bytes = plan_bytes(plan);
  const Result<Plan> again = parse_plan(bytes, "plan");
  if (!again.ok()) return "read: " + to_string(again.error());
  std::string wrong;
  if (plan_bytes(*again) != bytes) wrong += "the plan is written otherwise than it was read\n";
  if (const auto loaded = verify_plan(graph, *again, nullptr); !loaded.ok()) wrong += "load: " + to_string(loaded.error());
  if (const auto checked = verify_plan(graph, *again, &target); !checked.ok()) wrong += "check: " + to_string(checked.error());
  return wrong;
}

class DynamicGraphs : public ::testing::TestWithParam<NestedFamily> {};

TEST_P(DynamicGraphs, CompileInEveryModeLoseNoOrderAndLoadAgain) {
  Result<Target> npu = load_target("npu");
  ASSERT_TRUE(npu.ok());
  npu->limits = no_limits().limits;
  std::uint64_t failures = 0, several = 0;
  std::optional<std::size_t> smallest;
  std::string example;
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    Random random(seed + 9'000'000);
    const Graph source = random_nested(random, GetParam().nested);
    CompileOptions options;
    options.assign.strategy = Strategy::ge;
    options.assign.dynamic_multi_stream = GetParam().multi_stream;
    options.assign.ac_parallel = random.chance(0.3);
    const auto graph = prepare(source, *npu, options);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error()) << print(source);
    std::string wrong;
    for (const auto& [mode, name] : {std::pair(SyncMode::exact, "exact"), std::pair(SyncMode::compat, "compat"),
                                     std::pair(SyncMode::fewest, "fewest"), std::pair(SyncMode::none, "none")}) {
      // Compat loses pairs behind nodes without a stream; not every race of these is told from one that it does not name.
      if (mode == SyncMode::compat && GetParam().nested.elsewhere > 0) continue;
      options.sync.mode = mode;
      const auto made = compile(*graph, *npu, options);
      if (!made.ok()) {
        wrong += fmt::format("sync={}: {}\n", name, to_string(made.error()));
        continue;
      }
      if (!made->sync.lost.empty()) continue;  // compat loses pairs behind nodes without a stream, says so, and check refuses the plan
      if (const std::string again = reread(*graph, *made, *npu); !again.empty()) wrong += fmt::format("sync={}: {}\n", name, again);
      if (mode == SyncMode::exact) {
        several += made->assignment.streams.size() > 1;
        wrong += judge(*graph, made->assignment, 0xffffffffu, *npu).wrong;
      } else if (made->sync.warnings.empty()) {
        const Interpretation truth = interpret_placed(*graph, made->assignment, made->schedule);
        if (!truth.ok()) wrong += fmt::format("sync={}, interpreter:\n{}", name, text_of(truth));
      }
    }
    if (wrong.empty()) continue;
    ++failures;
    if (smallest && *smallest <= graph->node_count()) continue;
    smallest = graph->node_count();
    example = fmt::format("seed {}, ac_parallel={}\n{}{}", seed, options.assign.ac_parallel, print(source), wrong);
  }
  fmt::print("{} graphs, {} on several streams\n", property_count(200), several);
  EXPECT_EQ(failures, 0u) << "the smallest: " << example;
  EXPECT_GT(several, property_count(200) / 20);
}

INSTANTIATE_TEST_SUITE_P(Families, DynamicGraphs, ::testing::ValuesIn(dynamic_families()), [](const auto& family) { return family.param.name; });
INSTANTIATE_TEST_SUITE_P(Families, ChainOnTrees, ::testing::ValuesIn(chain_families()), [](const auto& family) { return family.param.name; });
INSTANTIATE_TEST_SUITE_P(Families, SyncOnTrees, ::testing::ValuesIn(families()), [](const auto& family) { return family.param.name; });

}  // namespace
}  // namespace millstream::testing
