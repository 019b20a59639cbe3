// SPDX-License-Identifier: Apache-2.0
// Seeded random graphs for property tests. The generator is our own (splitmix64), so that a seed means the
// same graph on every machine.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "millstream/graph/graph.h"

namespace millstream::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

 private:
  std::uint64_t state_;
};

/// How many random cases a property test runs: MST_PROPERTY_COUNT raises it in campaigns.
inline std::uint64_t property_count(std::uint64_t otherwise) {
  const char* text = std::getenv("MST_PROPERTY_COUNT");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct RandomGraphOptions {
  std::size_t nodes = 12;
  double edge = 0.25;         ///< chance of an edge from each of the last `window` nodes
  std::size_t window = 12;
  double control = 0.05;      ///< chance that a node also gets a control edge
  std::size_t labels = 0;     ///< 0 = no labels
  double holes = 0;           ///< chance of a node that emits no task
};

/// A DAG of "Op" nodes, data edges to any number of inputs; finished and verified.
inline Graph random_graph(Random& random, const RandomGraphOptions& options) {
  Graph graph("random");
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < options.nodes; ++i) {
    std::vector<InputRef> inputs;
    const std::size_t first = i > options.window ? i - options.window : 0;
    for (std::size_t j = first; j < i; ++j) {
      if (random.chance(options.edge)) inputs.push_back(graph.outputs(nodes[j])[0]);
    }
    const std::string name = fmt::format("n{}", i);
    const std::string_view outputs[] = {name};
    Graph::NodeSpec spec;
    spec.type = random.chance(options.holes) ? "NetOutput" : "Op";
    spec.name = name;
    spec.inputs = inputs;
    spec.outputs = outputs;
    nodes.push_back(graph.add_node(spec));
    if (i > 0 && random.chance(options.control)) {
      graph.add_control_edge(nodes[first + random.below(i - first)], nodes[i]);
    }
    if (options.labels != 0 && random.chance(0.5)) {
      graph.annotations().label.set(nodes[i], graph.intern(fmt::format("l{}", random.below(options.labels))));
    }
  }
  const Result<void> finished = graph.finish();
  MST_CHECK(finished.ok(), to_string(finished.error()));
  return graph;
}

}  // namespace millstream::testing
