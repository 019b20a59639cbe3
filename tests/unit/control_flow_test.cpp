// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan, with captures and bodies within bodies: driven by the host, then where the device's streams decide.
#include <gtest/gtest.h>

#include "millstream/compile/compile.h"
#include "millstream/exec/executable.h"
#include "millstream/graph/text.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/ops/op.h"

namespace millstream {
namespace {

/// A plan of strategy ge with what it refers to; not moved.
struct OnDevice {
  Graph graph;
  Compiled plan;
  std::unique_ptr<Backend> backend = make_cpu_backend(2, 1);
  std::optional<Executable> executable;

  Result<void> make(const Graph& source, const InstantiateOptions& how = {}) {
    MST_TRY(const Target target, load_target("npu"));
    CompileOptions options;
    options.assign.strategy = Strategy::ge;
    MST_TRY(graph, prepare(source, target, options));
    MST_TRY(plan, compile(graph, target, options));
    MST_TRY(Executable made, instantiate(graph, plan.schedule, plan.memory, all_kernels(), *backend, how));
    executable.emplace(std::move(made));
    return {};
  }
};

Result<std::vector<Tensor>> run_text(const std::string& text, const std::vector<Tensor>& inputs) {
  MST_TRY(Graph parsed, parse_graph(text, "test"));
  MST_TRY(const Graph graph, infer_shapes(std::move(parsed), {}));
  Schedule schedule;
  schedule.logical_streams = 1;
  PhysicalStream stream;
  for (const NodeId n : graph.order()) stream.tasks.push_back(Task::launch(n));
  schedule.streams.push_back(std::move(stream));
  MST_TRY(const MemoryPlan memory, plan_memory(graph, schedule, {}));
  const auto backend = make_cpu_backend(1, 1);
  MST_TRY(Executable executable, instantiate(graph, schedule, memory, all_kernels(), *backend, {}));
  MST_TRY(RunResult first, run(executable, inputs, {}));
  MST_TRY(RunResult second, run(executable, inputs, {}));
  MST_CHECK(first.outputs == second.outputs, "two runs agree");
  OnDevice device;
  MST_TRY_VOID(device.make(graph));
  MST_CHECK(device.plan.schedule.has_control(), "the device decides");
  for (int i = 0; i < 2; ++i) {
    MST_TRY(const RunResult there, run(*device.executable, inputs, {}));
    EXPECT_EQ(there.outputs, first.outputs) << "on the device";
  }
  return std::move(second.outputs);
}

std::vector<Tensor> outputs(const std::string& text, const std::vector<Tensor>& inputs) {
  auto r = run_text(text, inputs);
  MST_CHECK(r.ok(), to_string(r.error()));
  return std::move(r).value();
}

Tensor floats(std::vector<std::int64_t> shape, std::vector<float> values) {
  Tensor t(DType::f32, std::move(shape));
  std::copy(values.begin(), values.end(), t.as_mutable<float>().begin());
  return t;
}
Tensor flag(bool value) {
  Tensor t(DType::boolean, {});
  t.as_mutable<std::uint8_t>()[0] = value;
  return t;
}
Tensor number(std::int64_t value) {
  Tensor t(DType::i64, {});
  t.as_mutable<std::int64_t>()[0] = value;
  return t;
}

constexpr const char* kIf =
    "graph\n"
    "  input c : bool[]\n"
    "  input x : f32[2]\n"
    "  y = Add(x, x)\n"
    "  r = If(c) {then_branch=body(yes), else_branch=body(no)}\n"
    "  z = Add(r, y)\n"
    "  output z, r\n"
    "body yes\n"
    "  outer y : f32[2]\n"
    "  a = Neg(y)\n"
    "  output a\n"
    "body no\n"
    "  outer y : f32[2]\n"
    "  output y\n";

TEST(ControlFlow, IfTakesOneBranchAndReadsOuterValues) {
  const auto yes = outputs(kIf, {flag(true), floats({2}, {1, 2})});
  EXPECT_EQ(yes[0], floats({2}, {0, 0}));
  EXPECT_EQ(yes[1], floats({2}, {-2, -4}));
}

// The branch hands an outer value through: its bytes are in the arena, the result's may not be.
TEST(ControlFlow, ABranchMayPassAnOuterValueOn) {
  const auto no = outputs(kIf, {flag(false), floats({2}, {1, 2})});
  EXPECT_EQ(no[0], floats({2}, {4, 8}));
  EXPECT_EQ(no[1], floats({2}, {2, 4}));
}

constexpr const char* kLoop =
    "graph\n"
    "  input m : i64[]\n"
    "  input c : bool[]\n"
    "  input x : f32[1]\n"
    "  const k : f32[1] = [10]\n"
    "  s, h = Loop(m, c, x) {body=body(turn)}\n"
    "  output s, h\n"
    "body turn\n"
    "  input i : i64[]\n"
    "  input go : bool[]\n"
    "  input v : f32[1]\n"
    "  outer k : f32[1]\n"
    "  const limit : f32[] = [35]\n"
    "  w = Add(v, k)\n"
    "  less = Less(w, limit)\n"
    "  const none : i64[0] = []\n"
    "  again = Reshape(less, none)\n"
    "  out = Identity(w)\n"
    "  output again, w, out\n";

TEST(ControlFlow, LoopEndsAtTheTripCountOrTheCondition) {
  auto r = outputs(kLoop, {number(2), flag(true), floats({1}, {1})});
  EXPECT_EQ(r[0], floats({1}, {21}));
  EXPECT_EQ(r[1], floats({2, 1}, {11, 21}));
  r = outputs(kLoop, {number(100), flag(true), floats({1}, {1})});
  EXPECT_EQ(r[0], floats({1}, {41}));
  EXPECT_EQ(r[1], floats({4, 1}, {11, 21, 31, 41}));
}

TEST(ControlFlow, ALoopWithoutTurnsPassesItsStateOnAndStacksNothing) {
  auto r = outputs(kLoop, {number(0), flag(true), floats({1}, {1})});
  EXPECT_EQ(r[0], floats({1}, {1}));
  EXPECT_EQ(r[1], floats({0, 1}, {}));
  r = outputs(kLoop, {number(5), flag(false), floats({1}, {1})});
  EXPECT_EQ(r[0], floats({1}, {1}));
}

// A carried value that grows with each turn; the trip count alone decides.
TEST(ControlFlow, ACarriedShapeMayGrow) {
  const auto r = outputs(
      "graph\n"
      "  input m : i64[]\n"
      "  input x : f32[1]\n"
      "  s = Loop(m, _, x) {body=body(turn)}\n"
      "  output s\n"
      "body turn\n"
      "  input i : i64[]\n"
      "  input go : bool[]\n"
      "  input v : f32[?]\n"
      "  w = Concat(v, v) {axis=0}\n"
      "  stop = Not(go)\n"
      "  output stop, w\n",
      {number(3), floats({1}, {5})});
  EXPECT_EQ(r[0], floats({8}, std::vector<float>(8, 5)));
}

// A loop within a branch reads the outermost value.
TEST(ControlFlow, BodiesNest) {
  const auto r = outputs(
      "graph\n"
      "  input c : bool[]\n"
      "  input x : f32[1]\n"
      "  const m : i64[] = [3]\n"
      "  r = If(c) {then_branch=body(yes), else_branch=body(no)}\n"
      "  output r\n"
      "body yes\n"
      "  outer x : f32[1]\n"
      "  outer m : i64[]\n"
      "  s = Loop(m, _, x) {body=body(turn)}\n"
      "  output s\n"
      "body turn\n"
      "  input i : i64[]\n"
      "  input go : bool[]\n"
      "  input v : f32[1]\n"
      "  outer x : f32[1]\n"
      "  w = Add(v, x)\n"
      "  output go, w\n"
      "body no\n"
      "  outer x : f32[1]\n"
      "  n = Neg(x)\n"
      "  output n\n",
      {flag(true), floats({1}, {2})});
  EXPECT_EQ(r[0], floats({1}, {8}));
}

constexpr const char* kScan =
    "graph\n"
    "  input s : f32[2]\n"
    "  input x : f32[3,2]\n"
    "  t, sums = Scan(s, x) {body=body(turn), num_scan_inputs=1DIRECTIONS}\n"
    "  output t, sums\n"
    "body turn\n"
    "  input a : f32[2]\n"
    "  input b : f32[2]\n"
    "  c = Add(a, b)\n"
    "  d = Identity(c)\n"
    "  output c, d\n";

std::string scan_with(const std::string& attributes) {
  std::string text = kScan;
  text.replace(text.find("DIRECTIONS"), 10, attributes);
  return text;
}

TEST(ControlFlow, ScanSlicesAndStacks) {
  const Tensor s = floats({2}, {0, 0}), x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  auto r = outputs(scan_with(""), {s, x});
  EXPECT_EQ(r[0], floats({2}, {9, 12}));
  EXPECT_EQ(r[1], floats({3, 2}, {1, 2, 4, 6, 9, 12}));
  r = outputs(scan_with(", scan_input_directions=[1]"), {s, x});
  EXPECT_EQ(r[1], floats({3, 2}, {5, 6, 8, 10, 9, 12}));
  r = outputs(scan_with(", scan_output_directions=[1]"), {s, x});
  EXPECT_EQ(r[1], floats({3, 2}, {9, 12, 4, 6, 1, 2}));
  r = outputs(scan_with(", scan_output_axes=[-1]"), {s, x});
  EXPECT_EQ(r[1], floats({2, 3}, {1, 4, 9, 2, 6, 12}));
}

TEST(ControlFlow, ScanAlongAnotherAxis) {
  std::string text = scan_with(", scan_input_axes=[1]");
  text.replace(text.find("f32[3,2]"), 8, "f32[2,3]");
  const auto r = outputs(text, {floats({2}, {0, 0}), floats({2, 3}, {1, 3, 5, 2, 4, 6})});
  EXPECT_EQ(r[0], floats({2}, {9, 12}));
  EXPECT_EQ(r[1], floats({3, 2}, {1, 2, 4, 6, 9, 12}));
}

// Models write i64[1] and bool[1] for what steers a loop, and bodies declare their counter and condition so.
TEST(ControlFlow, WhatSteersALoopMayHaveOneElementOfAnyRank) {
  for (const std::string own : {"[]", "[1]"}) {
    for (const std::string given : {"[]", "[1]", "[?]", "[1,1]"}) {
      SCOPED_TRACE(own + " " + given);
      const std::string text =
          "graph\n"
          "  input m : i64" + given + "\n"
          "  input k : bool" + given + "\n"
          "  input x : f32[1]\n"
          "  y, s = Loop(m, k, x) {body=body(turn)}\n"
          "  output y, s\n"
          "body turn\n"
          "  input i : i64" + own + "\n"
          "  input c : bool" + own + "\n"
          "  input v : f32[1]\n"
          "  const one : i64[1] = [1]\n"
          "  const limit : f32[1] = [4]\n"
          "  f = Cast(i) {to=1}\n"
          "  r = Reshape(f, one)\n"
          "  w = Add(v, r)\n"
          "  go = Less(w, limit)\n"
          "  output go, w, i\n";
      const std::vector<std::int64_t> dims(given == "[]" ? 0 : given == "[1,1]" ? 2 : 1, 1);
      for (const std::int64_t trips : {0, 3, 9}) {
        const std::int64_t turns = std::min<std::int64_t>(trips, 4);  // 0, 0 + 1, 1 + 2, 3 + 3
        const auto r = outputs(text, {number(trips).reshaped(dims), flag(true).reshaped(dims), floats({1}, {0})});
        EXPECT_EQ(r[0], floats({1}, {static_cast<float>(turns * (turns - 1) / 2)}));
        Tensor counted(DType::i64, own == "[]" ? std::vector<std::int64_t>{turns} : std::vector<std::int64_t>{turns, 1});
        for (std::int64_t i = 0; i < turns; ++i) counted.as_mutable<std::int64_t>()[static_cast<std::size_t>(i)] = i;
        EXPECT_EQ(r[1], counted);
      }
    }
  }
}

TEST(ControlFlow, WhatSteersALoopWithSeveralElementsIsRefused) {
  const auto parsed = parse_graph(
      "graph\n"
      "  input m : i64[M]\n"
      "  input k : bool[K]\n"
      "  input n : i64[1]\n"
      "  y = Loop(m, k, n) {body=body(turn)}\n"
      "  output y\n"
      "body turn\n"
      "  input i : i64[]\n"
      "  input c : bool[]\n"
      "  input v : i64[1]\n"
      "  many = Expand(c, v)\n"
      "  w = Neg(v)\n"
      "  output many, w\n",
      "loop");
  ASSERT_TRUE(parsed.ok()) << to_string(parsed.error());
  OnDevice device;
  const auto made = device.make(*parsed);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  const auto said = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
    Tensor length(DType::i64, {1});
    length.as_mutable<std::int64_t>()[0] = n;
    Tensor trips(DType::i64, {m}), go(DType::boolean, {k});
    for (std::int64_t i = 0; i < m; ++i) trips.as_mutable<std::int64_t>()[static_cast<std::size_t>(i)] = 1;
    for (std::int64_t i = 0; i < k; ++i) go.as_mutable<std::uint8_t>()[static_cast<std::size_t>(i)] = 1;
    const auto done = run(*device.executable, std::vector<Tensor>{trips, go, length}, {});
    return done.ok() ? "" : done.error().message;
  };
  EXPECT_EQ(said(2, 1, 1), "Loop \"y\": its trip count is i64[2], needs one i64");
  EXPECT_EQ(said(0, 1, 1), "Loop \"y\": its trip count is i64[0], needs one i64");
  EXPECT_EQ(said(1, 2, 1), "Loop \"y\": its condition is bool[2], needs one bool");
  EXPECT_EQ(said(1, 1, 3), "Loop \"y\": its body's condition is bool[3], needs one bool");
  EXPECT_EQ(said(1, 1, 1), "");
}

// The way a For compares is fixed before it runs.
TEST(ControlFlow, AForWhoseStepNeverGetsThereIsRefused) {
  const auto parsed = parse_graph(
      "graph\n"
      "  input from : i64[]\n"
      "  input to : i64[]\n"
      "  input step : i64[]\n"
      "  input x : f32[1]\n"
      "  const back : i64[] = [-2]\n"
      "  y = For(from, to, step, x) {body=body(up)}\n"
      "  z = For(to, from, back, x) {body=body(down)}\n"
      "  output y, z\n"
      "body up\n"
      "  input i : i64[]\n"
      "  input v : f32[1]\n"
      "  w = Add(v, v)\n"
      "  output w\n"
      "body down\n"
      "  input k : i64[]\n"
      "  input u : f32[1]\n"
      "  t = Add(u, u)\n"
      "  output t\n",
      "for");
  ASSERT_TRUE(parsed.ok()) << to_string(parsed.error());
  OnDevice device;
  const auto made = device.make(*parsed);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  const auto with = [&](std::int64_t step) { return run(*device.executable, std::vector<Tensor>{number(0), number(6), number(step), floats({1}, {1})}, {}); };
  const auto good = with(3);
  ASSERT_TRUE(good.ok()) << to_string(good.error());
  EXPECT_EQ(good->outputs[0], floats({1}, {4}));
  EXPECT_EQ(good->outputs[1], floats({1}, {8}));
  const auto still = with(0), down = with(-1);
  ASSERT_FALSE(still.ok());
  EXPECT_EQ(still.error().message, "For \"y\": its step is 0, needs another than 0");
  ASSERT_FALSE(down.ok());
  EXPECT_EQ(down.error().message, "For \"y\": its step is -1, needs to be a constant where it is below 0");
}

// With a trip count and no condition what the body says is nobody's: it neither ends the loop nor comes back to the body.
TEST(ControlFlow, AConditionThatDoesNotCountStaysTrue) {
  const auto r = outputs(
      "graph\n"
      "  input m : i64[]\n"
      "  input x : f32[2]\n"
      "  y, s = Loop(m, _, x) {body=body(turn)}\n"
      "  output y, s\n"
      "body turn\n"
      "  input i : i64[]\n"
      "  input c : bool[]\n"
      "  input v : f32[2]\n"
      "  const zero : f32[2] = [0, 0]\n"
      "  never = Not(c)\n"
      "  w = Where(c, v, zero)\n"
      "  output never, v, w\n",
      {number(2), floats({2}, {1, 2})});
  EXPECT_EQ(r[1], floats({2, 2}, {1, 2, 1, 2}));
}

TEST(ControlFlow, AScanCountsTurnsThatOnlyARunTells) {
  const std::string text =
      "graph\n"
      "  input s : f32[2]\n"
      "  input x : f32[2,L]\n"
      "  t, sums = Scan(s, x) {body=body(turn), num_scan_inputs=1, scan_input_axes=[-1]}\n"
      "  output t, sums\n"
      "body turn\n"
      "  input a : f32[2]\n"
      "  input row : f32[2]\n"
      "  b = Add(a, row)\n"
      "  output b, b\n";
  auto r = outputs(text, {floats({2}, {1, 2}), floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(r[0], floats({2}, {7, 17}));
  EXPECT_EQ(r[1], floats({3, 2}, {2, 6, 4, 11, 7, 17}));
  r = outputs(text, {floats({2}, {1, 2}), floats({2, 0}, {})});
  EXPECT_EQ(r[0], floats({2}, {1, 2}));
  EXPECT_EQ(r[1], floats({0, 2}, {}));
}

// The third turn fails, on a stream beside the one that jumps back: the loop ends, the error names the node, and the next
// run is a new one.
TEST(ControlFlow, ALoopOnTheDeviceEndsWithTheLaunchThatFails) {
  const auto parsed = parse_graph(
      "graph\n"
      "  input n : i64[]\n"
      "  input x : f32[2]\n"
      "  input shapes : i64[4]\n"
      "  y = Loop(n, _, x) {body=body(turn)} : f32[2]\n"
      "  output y\n"
      "body turn\n"
      "  input i : i64[]\n"
      "  input c : bool[]\n"
      "  input v : f32[2]\n"
      "  outer shapes : i64[4]\n"
      "  const axis : i64[1] = [0]\n"
      "  at = Unsqueeze(i, axis) : i64[1]\n"
      "  size = Gather(shapes, at) : i64[1]\n"
      "  r = Reshape(v, size) : f32[?] @user_label(\"side\")\n"
      "  w = Neg(v) : f32[2]\n"
      "  s = Add(w, r) : f32[2]\n"
      "  output c, s\n",
      "loop");
  ASSERT_TRUE(parsed.ok()) << to_string(parsed.error());
  OnDevice device;
  const auto made = device.make(*parsed);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  ASSERT_GT(device.plan.schedule.streams.size(), 1u);
  Tensor shapes(DType::i64, {4});
  const std::int64_t sizes[] = {2, 2, 3, 2};
  std::copy(std::begin(sizes), std::end(sizes), shapes.as_mutable<std::int64_t>().begin());
  for (int i = 0; i < 3; ++i) {
    const auto failed = run(*device.executable, std::vector<Tensor>{number(1000), floats({2}, {1, 2}), shapes}, {});
    ASSERT_FALSE(failed.ok());
    EXPECT_NE(failed.error().message.find("Reshape \"y/body/r\""), std::string::npos) << to_string(failed.error());
    const auto good = run(*device.executable, std::vector<Tensor>{number(2), floats({2}, {1, 2}), shapes}, {});
    ASSERT_TRUE(good.ok()) << to_string(good.error());
    EXPECT_EQ(good->outputs[0], floats({2}, {0, 0}));
  }
}

TEST(ControlFlow, ACarriedValueThatDoesNotFitItsBodyIsRefusedInItsTurn) {
  const auto parsed = parse_graph(
      "graph\n"
      "  input n : i64[]\n"
      "  input x : f32[?]\n"
      "  y = Loop(n, _, x) {body=body(turn)} : f32[?]\n"
      "  output y\n"
      "body turn\n"
      "  input i : i64[]\n"
      "  input c : bool[]\n"
      "  input v : f32[2]\n"
      "  w = Concat(v, v) {axis=0} : f32[4]\n"
      "  output c, w\n",
      "loop");
  ASSERT_TRUE(parsed.ok()) << to_string(parsed.error());
  OnDevice device;
  const auto made = device.make(*parsed);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  const auto once = run(*device.executable, std::vector<Tensor>{number(0), floats({2}, {1, 2})}, {});
  ASSERT_TRUE(once.ok()) << to_string(once.error());
  const auto twice = run(*device.executable, std::vector<Tensor>{number(2), floats({2}, {1, 2})}, {});
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(to_string(twice.error()).find("\"y/body/v\" is f32[4], the body wants f32[2]"), std::string::npos) << to_string(twice.error());
}

TEST(ControlFlow, WhatALoopStacksUpIsRefusedWhereItPassesTheMemoryAllowed) {
  const auto parsed = parse_graph(kLoop, "loop");
  ASSERT_TRUE(parsed.ok()) << to_string(parsed.error());
  OnDevice device;
  InstantiateOptions how;
  how.max_bytes = 8;
  const auto made = device.make(*parsed, how);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  const auto two = run(*device.executable, std::vector<Tensor>{number(2), flag(true), floats({1}, {1})}, {});
  ASSERT_TRUE(two.ok()) << to_string(two.error());
  EXPECT_EQ(two->outputs[1], floats({2, 1}, {11, 21}));
  const auto four = run(*device.executable, std::vector<Tensor>{number(9), flag(true), floats({1}, {1})}, {});
  ASSERT_FALSE(four.ok());
  EXPECT_EQ(four.error().code, ErrorCode::memory_limit);
  EXPECT_EQ(four.error().message, "Loop \"s\": output \"h\" takes 12 bytes after turn 3, allowed are 8");
}

// A million turns would fill the memory.
TEST(ControlFlow, ATraceHoldsTheBeginningOfALongLoop) {
  const auto parsed = parse_graph(
      "graph\n"
      "  input n : i64[]\n"
      "  input x : f32[1]\n"
      "  y = Loop(n, _, x) {body=body(turn)}\n"
      "  output y\n"
      "body turn\n"
      "  input i : i64[]\n"
      "  input c : bool[]\n"
      "  input v : f32[1]\n"
      "  const one : f32[1] = [1]\n"
      "  w = Add(v, one)\n"
      "  output c, w\n",
      "loop");
  ASSERT_TRUE(parsed.ok()) << to_string(parsed.error());
  OnDevice device;
  const auto made = device.make(*parsed);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  ExecuteOptions traced;
  traced.trace = true;
  for (const bool longer : {false, true}) {
    const std::int64_t turns = longer ? 20000 : 1000;
    const auto done = run(*device.executable, std::vector<Tensor>{number(turns), floats({1}, {0})}, traced);
    ASSERT_TRUE(done.ok()) << to_string(done.error());
    EXPECT_EQ(done->outputs[0], floats({1}, {static_cast<float>(turns)}));
    EXPECT_EQ(done->trace.cut, longer);
    EXPECT_LT(done->trace.spans.size(), 120000u);
    EXPECT_GT(done->trace.spans.size(), longer ? 60000u : 5000u);
  }
}

TEST(ControlFlow, WithoutValuesADeviceCannotDecide) {
  const auto parsed = parse_graph(kIf, "if");
  ASSERT_TRUE(parsed.ok());
  OnDevice device;
  ASSERT_TRUE(device.make(*parsed).ok());
  const auto target = load_target("npu");
  const auto sim = make_sim_backend(*target, IdVec<NodeId, double>(device.graph.node_count(), 1), false);
  struct Nothing : Launcher {
    Result<void> launch(NodeId, PhysicalStreamId) override { return {}; }
  } nothing;
  const auto trace = sim->execute(device.graph, device.plan.schedule, nothing, {});
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.error().message.find("only values tell"), std::string::npos);
}

}  // namespace
}  // namespace millstream
