// SPDX-License-Identifier: Apache-2.0
// The executable: inputs, results, failures, shapes that only a run knows.
#include <gtest/gtest.h>

#include <stdexcept>

#include "millstream/graph/text.h"
#include "tests/exec_kernels.h"
#include "tests/hand_schedule.h"

namespace millstream::testing {
namespace {

struct Ready {
  Graph graph;
  Schedule schedule;
  MemoryPlan memory;
  std::unique_ptr<Backend> backend;
  std::optional<Executable> executable;

  Result<RunResult> run(const std::vector<Tensor>& inputs, ExecuteOptions options = {}) {
    return millstream::run(*executable, inputs, options);
  }
};

Result<std::unique_ptr<Ready>> make(const std::string& text, const std::vector<std::string>& lanes, std::uint32_t workers = 2) {
  auto ready = std::make_unique<Ready>();
  MST_TRY(ready->graph, parse_graph(text, "test"));
  ready->schedule = hand_schedule(ready->graph, lanes);
  MST_TRY(ready->memory, plan_memory(ready->graph, ready->schedule, {}));
  ready->backend = make_cpu_backend(workers, 1);
  MST_TRY(Executable executable, instantiate(ready->graph, ready->schedule, ready->memory, test_kernels(), *ready->backend, {}));
  ready->executable = std::move(executable);
  return ready;
}

std::unique_ptr<Ready> made(const std::string& text, const std::vector<std::string>& lanes, std::uint32_t workers = 2) {
  auto ready = make(text, lanes, workers);
  MST_CHECK(ready.ok(), to_string(ready.error()));
  return std::move(ready).value();
}

Tensor floats(std::vector<std::int64_t> shape, std::vector<float> values) {
  Tensor t(DType::f32, std::move(shape));
  std::copy(values.begin(), values.end(), t.as_mutable<float>().begin());
  return t;
}

Tensor words(std::size_t n) {
  Tensor t(DType::u32, {static_cast<std::int64_t>(n)});
  for (std::size_t i = 0; i < n; ++i) t.as_mutable<std::uint32_t>()[i] = static_cast<std::uint32_t>(i);
  return t;
}

constexpr const char* kDiamond =
    "graph\n"
    "  input x : u32[8]\n"
    "  a = Op(x) : u32[8]\n"
    "  b = Op(a) : u32[8]\n"
    "  c = Op(a) : u32[8]\n"
    "  d = Op(b, c) : u32[8]\n"
    "  output d\n";

TEST(Exec, ResultsOutliveTheNextRun) {
  const auto ready = made(kDiamond, {"a !e0 b ?e1 d", "?e0 c !e1"});
  const Tensor x = words(8), y = Tensor(DType::u32, {8});
  const auto first = ready->run({x});
  ASSERT_TRUE(first.ok()) << to_string(first.error());
  const Tensor kept = first->outputs[0];
  std::vector<std::uint32_t> before(kept.as<std::uint32_t>().begin(), kept.as<std::uint32_t>().end());
  const auto second = ready->run({y});
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->outputs[0], kept);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), kept.as<std::uint32_t>().begin()));
  EXPECT_EQ(ready->run({x})->outputs[0], kept);
}

TEST(Exec, WrongInputsAreNamed) {
  const auto ready = made(kDiamond, {"a b c d"});
  const auto message = [&](const std::vector<Tensor>& inputs) {
    const auto r = ready->run(inputs);
    MST_CHECK(!r.ok(), "wrong inputs are accepted");
    EXPECT_EQ(r.error().code, ErrorCode::usage);
    return r.error().message;
  };
  EXPECT_EQ(message({}), "0 inputs given, the graph has 1: \"x\"");
  EXPECT_EQ(message({words(9)}), "input \"x\" is u32[9], the graph wants u32[8]");
  EXPECT_EQ(message({Tensor(DType::i32, {8})}), "input \"x\" is i32[8], the graph wants u32[8]");
  EXPECT_EQ(message({Tensor(DType::u32, {8, 1})}), "input \"x\" is u32[8,1], the graph wants u32[8]");
  EXPECT_EQ(message({Tensor()}), "input \"x\" is empty, the graph wants u32[8]");
}

TEST(Exec, ASymbolHasOneValue) {
  const auto ready = made(
      "graph\n  input x : f32[N]\n  input y : f32[N]\n  s = Add(x, y) : f32[N]\n", {"s"});
  EXPECT_TRUE(ready->run({floats({2}, {1, 2}), floats({2}, {3, 4})}).ok());
  const auto r = ready->run({floats({2}, {1, 2}), floats({1}, {3})});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().message, "input \"y\" is f32[1], which makes N = 1; input \"x\" makes it 2");
}

TEST(Exec, AFailingKernelStopsTheRunAndIsNamed) {
  const auto ready = made(
      "graph\n  a = Op() : u32[8]\n  bad = Fail(a) : u32[8]\n  c = Op(bad) : u32[8]\n", {"a bad c"});
  const auto r = ready->run({});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kernel);
  EXPECT_EQ(r.error().message, "Fail \"bad\": out of luck");
  EXPECT_FALSE(ready->run({}).ok()) << "and again";
}

TEST(Exec, AnExceptionIsAnErrorOfItsNode) {
  const auto ready = made("graph\n  bad = Throw() : u32[8]\n", {"bad"});
  const auto r = ready->run({});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().message, "Throw \"bad\": thrown");
}

TEST(Exec, EveryNodeWithoutAKernelIsListed) {
  const auto r = make(
      "graph\n  a = Nothing() : u32[8]\n  b = Picky(a) : u32[8]\n  c = Picky(b) : u32[8]\n", {"a b c"});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::unsupported_operator);
  const std::string text = to_string(r.error());
  EXPECT_NE(text.find("Nothing (opset 23), 1 node, first \"a\": no CPU kernel"), std::string::npos) << text;
  EXPECT_NE(text.find("Picky (opset 23), 2 nodes, first \"b\": too plain"), std::string::npos) << text;
}

TEST(Exec, APlanOfAnotherGraphIsRefused) {
  const auto ready = made(kDiamond, {"a b c d"});
  MemoryPlan wrong = ready->memory;
  wrong.buffers.resize(2);
  const auto backend = make_cpu_backend(1, 1);
  const auto r = instantiate(ready->graph, ready->schedule, wrong, test_kernels(), *backend, {});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::plan_mismatch);
  const auto missing = instantiate(ready->graph, hand_schedule(ready->graph, {"a b c"}), ready->memory, test_kernels(), *backend, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("no stream launches node \"d\""), std::string::npos);
}

// Shapes bound at run time, a view of unknown shape, an operator that sizes its own output.
TEST(Exec, ShapesThatOnlyARunKnows) {
  const auto ready = made(
      "graph\n"
      "  input x : f32[N]\n"
      "  const one : i64[2] = [1, -1]\n"
      "  r = Relu(x) : f32[N]\n"
      "  z = NonZero(r) : i64[1,?]\n"
      "  v = Reshape(r, one) : f32[?,?]\n"
      "  w = Add(v, v) : f32[?,?]\n"
      "  output z, w, v\n",
      {"r !e0 z", "?e0 v w"});
  for (int round = 0; round < 3; ++round) {
    const auto r = ready->run({floats({3}, {-1, 2, 3})});
    ASSERT_TRUE(r.ok()) << to_string(r.error());
    Tensor indices(DType::i64, {1, 2});
    indices.as_mutable<std::int64_t>()[0] = 1;
    indices.as_mutable<std::int64_t>()[1] = 2;
    EXPECT_EQ(r->outputs[0], indices);
    EXPECT_EQ(r->outputs[1], floats({1, 3}, {0, 4, 6}));
    EXPECT_EQ(r->outputs[2], floats({1, 3}, {0, 2, 3}));
    const auto longer = ready->run({floats({4}, {1, 0, 0, 5})});
    ASSERT_TRUE(longer.ok());
    EXPECT_EQ(longer->outputs[1], floats({1, 4}, {2, 0, 0, 10}));
  }
}

// The view only passes bytes on; its source may not be overwritten while the view is read on another stream.
TEST(Exec, AViewAcrossStreamsReadsWhatItsSourceWrote) {
  const auto ready = made(
      "graph\n"
      "  a = Op() : u32[64]\n"
      "  v = Flatten(a) : u32[1,64]\n"
      "  b = Op() : u32[64]\n"
      "  c = Op(v) : u32[64]\n"
      "  output b, c\n",
      {"a v !e0 b", "?e0 c"});
  const auto want = made(
      "graph\n  a = Op() : u32[64]\n  v = Flatten(a) : u32[1,64]\n  b = Op() : u32[64]\n  c = Op(v) : u32[64]\n  output b, c\n",
      {"a v b c"})->run({});
  ASSERT_TRUE(want.ok());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ExecuteOptions options;
    options.delay_seed = seed;
    const auto r = ready->run({}, options);
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(r->outputs, want->outputs);
  }
}

TEST(Exec, InputsAndConstantsMayBeResults) {
  const auto ready = made(
      "graph\n  input x : u32[2]\n  const k : u32[2] = [7, 8]\n  v = Identity(x) : u32[2]\n  a = Op(v) : u32[2]\n  output x, k, v, a\n",
      {"v a"});
  const auto r = ready->run({words(2)});
  ASSERT_TRUE(r.ok()) << to_string(r.error());
  EXPECT_EQ(r->outputs[0], words(2));
  EXPECT_EQ(r->outputs[1].as<std::uint32_t>()[1], 8u);
  EXPECT_EQ(r->outputs[2], words(2));
}

TEST(Exec, AModelThatDeclaresAnotherShapeThanItsKernelGivesIsRefused) {
  const auto ready = made("graph\n  input x : f32[4]\n  z = NonZero(x) : i64[1,4]\n  o = Op(z) : u32[2]\n", {"z o"});
  const auto r = ready->run({floats({4}, {1, 0, 0, 0})});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::shape);
  EXPECT_EQ(r.error().message, "NonZero \"z\": output \"z\" is i64[1,1], the model declares i64[1,4]");
}

}  // namespace
}  // namespace millstream::testing
