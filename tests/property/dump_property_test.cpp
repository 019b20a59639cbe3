// SPDX-License-Identifier: Apache-2.0
// reader(writer(graph)) == graph, for graphs and for what their streams run, in both formats.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "millstream/compile/compile.h"
#include "millstream/dump/dump.h"
#include "millstream/graph/flatten.h"
#include "millstream/graph/text.h"
#include "tests/random_dump_graph.h"
#include "tests/random_nested.h"
#include "tests/random_tree.h"
#include "tests/torch_dump.h"

namespace millstream::testing {
namespace {

constexpr DumpFormat kFormats[] = {DumpFormat::onnx, DumpFormat::proto};
constexpr DumpDetail kDetails[] = {DumpDetail::full, DumpDetail::no_weights, DumpDetail::links};

TEST(DumpProperty, ReadingWhatWasWrittenGivesTheSameGraph) {
  for (std::uint64_t seed = 0; seed < property_count(2000); ++seed) {
    Random random(seed);
    const Graph g = random_dump_graph(random, random.chance(0.7));
    for (const DumpFormat format : kFormats) {
      const std::string text = write_dump(g, {}, format, DumpDetail::full);
      const Result<Dump> again = read_dump(text, "written");
      ASSERT_TRUE(again.ok()) << "seed " << seed << "\n" << to_string(again.error()) << "\n" << print(g) << "\n" << text;
      ASSERT_EQ(print(g), print(again->graph)) << "seed " << seed << "\n" << text;
      ASSERT_EQ(hash_of(g), hash_of(again->graph)) << "seed " << seed << "\n" << text;
      ASSERT_FALSE(again->schedule.has_value()) << "seed " << seed;
      ASSERT_EQ(text, write_dump(again->graph, {}, format, DumpDetail::full)) << "seed " << seed;
    }
  }
}

// A line for each node and value that enters the graph: its stream, how much it reads, and how many nodes it runs behind.
std::multiset<std::string> nodes_and_edges(const Graph& g) {
  std::map<NodeId, std::size_t> behind;
  for (const auto& edge : g.control_edges()) ++behind[edge.to];
  std::multiset<std::string> lines;
  for (const NodeId n : g.nodes()) {
    if (g.type(n) == "Data" || g.type(n) == "Const") continue;
    lines.insert(fmt::format("{} on {}: {} {}", g.type(n), g.annotations().preset_stream.get(n).value_or(-1), g.inputs(n).size(), behind[n]));
  }
  return lines;
}

// TorchAir's two forms say what Graph Engine's say, but for descs, attributes of more than one value and subgraphs.
TEST(DumpProperty, TorchAirsFormsOfAGraphAreTheSameGraph) {
  for (std::uint64_t seed = 0; seed < property_count(500); ++seed) {
    Random random(seed);
    const Graph g = random_dump_graph(random, true, 3);
    const std::string proto = write_dump(g, {}, DumpFormat::proto, DumpDetail::full), onnx = write_dump(g, {}, DumpFormat::onnx, DumpDetail::full);
    const Result<Dump> text = read_dump(torch_txt(proto), "text"), pbtxt = read_dump(torch_pbtxt(onnx), "pbtxt");
    if (g.node_count() + g.inputs().size() == 0) continue;
    ASSERT_TRUE(text.ok()) << "seed " << seed << "\n" << to_string(text.error()) << "\n" << torch_txt(proto);
    ASSERT_TRUE(pbtxt.ok()) << "seed " << seed << "\n" << to_string(pbtxt.error()) << "\n" << torch_pbtxt(onnx);
    ASSERT_EQ(text->kind, DumpKind::torch_txt) << "seed " << seed;
    ASSERT_EQ(pbtxt->kind, DumpKind::torch_pbtxt) << "seed " << seed;
    // The version of the operators stands in a ModelDef only.
    Result<Dump> same = read_dump(proto, "proto");
    same->graph.set_opset(text->graph.opset());
    ASSERT_EQ(print(same->graph), print(text->graph)) << "seed " << seed << "\n" << torch_txt(proto);
    // Inputs and constants of the graph are nodes there.
    ASSERT_EQ(nodes_and_edges(pbtxt->graph), nodes_and_edges(g)) << "seed " << seed << "\n" << torch_pbtxt(onnx);
  }
}

// Of less detail, what stays is the same: nodes and edges, and streams where they are written.
TEST(DumpProperty, LessDetailKeepsNodesAndEdges) {
  for (std::uint64_t seed = 0; seed < property_count(300); ++seed) {
    Random random(seed);
    RandomGraphOptions options;
    options.nodes = 1 + random.below(20);
    options.control = 0.3;
    Graph g = random_graph(random, options);
    for (const NodeId n : g.nodes()) g.annotations().preset_stream.set(n, static_cast<std::int64_t>(random.below(3)));
    for (const DumpFormat format : kFormats) {
      for (const DumpDetail detail : kDetails) {
        const Result<Dump> again = read_dump(write_dump(g, {}, format, detail), "written");
        ASSERT_TRUE(again.ok()) << "seed " << seed << "\n" << to_string(again.error());
        Graph expected = g;
        if (format == DumpFormat::onnx && detail == DumpDetail::links) {
          expected.annotations().preset_stream = {};
        }
        ASSERT_EQ(again->graph.node_count(), g.node_count());
        ASSERT_EQ(again->graph.control_edges().size(), g.control_edges().size());
        for (const NodeId n : g.nodes()) {
          ASSERT_EQ(again->graph.inputs(n).size(), g.inputs(n).size());
          for (std::size_t i = 0; i < g.inputs(n).size(); ++i) {
            ASSERT_EQ(again->graph.name(*again->graph.inputs(n)[i].get()), g.name(*g.inputs(n)[i].get())) << "seed " << seed;
          }
        }
        ASSERT_EQ(again->graph.annotations().preset_stream, expected.annotations().preset_stream) << "seed " << seed;
      }
    }
  }
}

// The compiled graph: what every stream runs comes back task by task.
void same_lanes(const Graph& g, const Schedule& schedule, std::uint64_t seed) {
  DumpStreams streams;
  streams.schedule = &schedule;
  bool sync = false;
  for (const PhysicalStream& s : schedule.streams) {
    for (const Task& t : s.tasks) sync = sync || t.kind == Task::Kind::record;
  }
  for (const DumpFormat format : kFormats) {
    for (const DumpDetail detail : {DumpDetail::full, DumpDetail::no_weights}) {
      // Below full detail onnx holds no texts, and roles and labels of nodes are no part of lanes.
      const std::string text = write_dump(g, streams, format, detail);
      const Result<Dump> again = read_dump(text, "written");
      ASSERT_TRUE(again.ok()) << "seed " << seed << "\n" << to_string(again.error()) << "\n" << text;
      ASSERT_EQ(again->schedule.has_value(), sync) << "seed " << seed << "\n" << text;
      if (!sync) continue;
      Schedule expected = schedule;
      for (const PhysicalStreamId s : ids<PhysicalStreamId>(expected.streams.size())) {
        expected.streams[s].huge = false;
        if (!expected.streams[s].relay) expected.streams[s].logical = StreamId(s.index);
      }
      Schedule actual = *again->schedule;
      for (const PhysicalStreamId s : ids<PhysicalStreamId>(expected.streams.size())) {
        if (s.index < actual.streams.size() && expected.streams[s].relay) actual.streams[s].logical = expected.streams[s].logical;
      }
      // A stream that nothing runs on and nothing starts is not seen.
      while (expected.streams.size() > actual.streams.size() && expected.streams.raw().back().tasks.empty()) expected.streams.raw().pop_back();
      ASSERT_EQ(print(g, expected), print(again->graph, actual)) << "seed " << seed << "\n" << print(g) << "\n" << text;
    }
  }
}

TEST(DumpProperty, WhatStreamsRunComesBack) {
  const Result<Target> target = load_target("cpu");
  ASSERT_TRUE(target.ok());
  for (std::uint64_t seed = 0; seed < property_count(300); ++seed) {
    Random random(seed);
    RandomGraphOptions options;
    options.nodes = 1 + random.below(30);
    options.control = 0.2;
    options.labels = random.below(5);
    options.holes = 0.1;
    const Graph g = random_graph(random, options);
    CompileOptions compile_options;
    compile_options.assign.force_streams = true;
    const Result<Compiled> compiled = compile(g, *target, compile_options);
    ASSERT_TRUE(compiled.ok()) << to_string(compiled.error());
    same_lanes(g, compiled->schedule, seed);
  }
}

TEST(DumpProperty, WhatStreamsRunComesBackWithControlFlow) {
  const Result<Target> target = load_target("npu");
  ASSERT_TRUE(target.ok());
  std::size_t compiled_graphs = 0;
  for (std::uint64_t seed = 0; seed < property_count(300); ++seed) {
    Random random(seed);
    TreeOptions options;
    options.conditionals = random.below(3);
    options.loops = random.below(2);
    options.calls = random.below(2);
    options.label = 0.2;
    options.attached = random.chance(0.5) ? 0.3 : 0;
    options.engines = true;
    const Graph g = TreeBuilder(random, options).build();
    CompileOptions compile_options;
    compile_options.assign.strategy = Strategy::ge;
    const Result<Compiled> compiled = compile(g, *target, compile_options);
    if (!compiled.ok()) continue;
    ++compiled_graphs;
    same_lanes(g, compiled->schedule, seed);
  }
  EXPECT_GT(compiled_graphs, property_count(300) / 2);
}

// Constants stand first in a dump, wherever they stood between nodes.
std::vector<std::string> sorted_lines(const Graph& g) {
  std::vector<std::string> lines;
  std::istringstream in(print(g));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(DumpProperty, FlattenedGraphsComeBackWithTheirScopes) {
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    Random random(seed);
    NestedOptions options;
    options.root_dynamic = 0;
    options.label = 0.2;
    Result<Graph> nested = parse_graph(NestedBuilder(random, options).build(), "nested");
    ASSERT_TRUE(nested.ok()) << to_string(nested.error());
    Result<Graph> flat = flatten(*nested);
    if (!flat.ok()) continue;
    for (const NodeId n : flat->nodes()) flat->annotations().preset_stream.set(n, static_cast<std::int64_t>(random.below(4)));
    for (const DumpFormat format : kFormats) {
      const std::string text = write_dump(*flat, {}, format, DumpDetail::full);
      const Result<Dump> again = read_dump(text, "written");
      ASSERT_TRUE(again.ok()) << "seed " << seed << "\n" << to_string(again.error()) << "\n" << print(*flat) << "\n" << text;
      ASSERT_EQ(sorted_lines(*flat), sorted_lines(again->graph)) << "seed " << seed << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace millstream::testing
