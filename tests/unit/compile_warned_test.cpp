// SPDX-License-Identifier: Apache-2.0
// What compat warns of passes our own check; nothing else does.
#include <gtest/gtest.h>

#include "millstream/compile/compile.h"
#include "millstream/compile/warned.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

TEST(Warned, OfTheWaitsInOtherBranchesOnlyTheOneThatAWarningNamesPasses) {
  auto graph = parse_graph(R"(graph
  i = Fill()
  StreamSwitch(i) @name("w") @label("m") @activates("s0")
  u = Relu(i) @label("s0") @after(w)
  x = Relu(i) @label("s0") @after(w)
  b = Relu(u) @label("t")
  c = Relu(b) @label("t")
)", "test");
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const auto target = load_target("npu");
  ASSERT_TRUE(target.ok());
  CompileOptions options;
  options.assign.strategy = Strategy::ge;
  options.sync.mode = SyncMode::compat;
  const auto prepared = prepare(*graph, *target, options);
  ASSERT_TRUE(prepared.ok());
  auto made = compile(*prepared, *target, options);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  ASSERT_EQ(made->sync.unmet.size(), 1u);
  // One more wait of the same kind, which no warning names.
  const auto node = [&](std::string_view name) { return *prepared->find_node(name); };
  const auto insert = [&](NodeId n, Task task, bool before) {
    for (PhysicalStream& s : made->schedule.streams) {
      const auto at = std::find(s.tasks.begin(), s.tasks.end(), Task::launch(n));
      if (at != s.tasks.end()) {
        s.tasks.insert(before ? at : at + 1, task);
        return;
      }
    }
  };
  const EventId fresh(made->schedule.event_count++);
  insert(node("x"), Task::record(fresh), false);
  insert(node("c"), Task::wait(fresh), true);
  const CheckReport report = check(*prepared, made->schedule, nullptr, {}, false);
  std::vector<std::string> passed, stopped;
  for (const Violation& v : report.violations) (warned_of(*prepared, *made, v) ? passed : stopped).push_back(v.message);
  ASSERT_EQ(passed.size(), 1u) << print(*prepared, made->schedule);
  ASSERT_EQ(stopped.size(), 1u);
  EXPECT_NE(passed[0].find("behind u, before"), std::string::npos) << passed[0];
  EXPECT_NE(stopped[0].find("behind x"), std::string::npos) << stopped[0];
}

}  // namespace
}  // namespace millstream
