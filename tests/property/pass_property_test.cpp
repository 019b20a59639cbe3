// SPDX-License-Identifier: Apache-2.0
// A pass that moves nodes at random, on graphs with and without control flow: the result is a sound plan or an error that
// names the pass, and with rollback always a plan. MST_PROPERTY_COUNT sets how many graphs.
#include <gtest/gtest.h>

#include "millstream/compile/compile.h"
#include "tests/random_graph.h"
#include "tests/random_tree.h"

namespace millstream::testing {
namespace {

std::int32_t move_some(void* self, const mst_host_api* api, const mst_graph* graph, mst_stream_ctx* context) {
  Random& random = *static_cast<Random*>(self);
  const std::size_t nodes = api->graph_node_count(graph, MST_DIRECT_NODES);
  for (std::uint64_t fresh = random.below(4); fresh != 0; --fresh) api->ctx_next_stream(context);
  for (std::size_t i = 0; i < nodes; ++i) {
    if (!random.chance(0.3)) continue;
    const auto streams = static_cast<std::uint64_t>(api->ctx_max_stream(context) + 1);
    if (streams != 0) api->ctx_set_stream(context, api->graph_node(graph, MST_DIRECT_NODES, i), static_cast<std::int64_t>(random.below(streams)));
  }
  return 0;
}

void check(const Graph& source, const Target& target, Random& random, std::uint64_t seed, std::size_t& planned, std::size_t& refused) {
  CompileOptions options;
  options.assign.force_streams = random.chance(0.5);
  const auto graph = prepare(source, target, options);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  if (!compile(*graph, target, options).ok()) return;
  options.passes.passes.push_back({"random", "", "random", &random, move_some});
  const auto made = compile(*graph, target, options);
  if (made.ok()) {
    EXPECT_TRUE(verify(*graph, made->assignment).empty()) << "seed " << seed;
    ++planned;
  } else {
    EXPECT_EQ(made.error().code, ErrorCode::stream_pass) << "seed " << seed << "\n" << to_string(made.error());
    ++refused;
  }
  options.passes.policy = PassPolicy::rollback;
  const auto always = compile(*graph, target, options);
  EXPECT_TRUE(always.ok()) << "seed " << seed << "\n" << to_string(always.error());
}

TEST(PassProperty, WhatAPassDoesToAPlainGraphIsPlanned) {
  const auto target = load_target("cpu");
  ASSERT_TRUE(target.ok());
  std::size_t planned = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < property_count(100); ++seed) {
    Random random(seed);
    RandomGraphOptions o;
    o.nodes = 1 + random.below(30);
    o.labels = random.below(3);
    o.holes = 0.1;
    check(random_graph(random, o), *target, random, seed, planned, refused);
  }
  EXPECT_GT(planned, 0u);
  EXPECT_EQ(refused, 0u);
}

TEST(PassProperty, OnATreeWithControlFlowItIsPlannedOrRefused) {
  const auto target = load_target("npu");
  ASSERT_TRUE(target.ok());
  std::size_t planned = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < property_count(100); ++seed) {
    Random random(seed);
    TreeOptions o;
    o.nodes = 2 + random.below(5);
    o.conditionals = random.below(3);
    o.loops = random.below(2);
    o.calls = random.below(3);
    o.label = random.chance(0.3) ? 0.3 : 0;
    o.attached = random.chance(0.3) ? 0.3 : 0;
    o.engines = random.chance(0.5);
    check(random_tree(random, o), *target, random, seed, planned, refused);
  }
  EXPECT_GT(planned, 0u);
}

}  // namespace
}  // namespace millstream::testing
