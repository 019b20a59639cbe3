// SPDX-License-Identifier: Apache-2.0
// Stages logical (a list of rules on given clusters and streams), dynamic and attached.
#include "millstream/assign/chain.h"
#include "tests/cases/case.h"

namespace millstream::cases {
namespace {

ChainSeed seed_of(const Case& c) {
  ChainSeed seed;
  seed.clusters.resize(c.graph.scope_count());
  for (const Case::Cluster& cluster : c.clusters) seed.clusters[cluster.scope.index].push_back(cluster.nodes);
  if (c.has_option("next_stream")) seed.next_stream = c.option("next_stream").get<std::uint32_t>();
  seed.preset = IdVec<NodeId, std::optional<StreamId>>(c.graph.node_count());
  for (const NodeId n : c.graph.nodes()) {
    if (c.streams[n.index] >= 0) seed.preset[n] = StreamId(static_cast<std::size_t>(c.streams[n.index]));
  }
  return seed;
}

Result<void> logical(const Case& c, const CompileOptions& options, Outcome& outcome) {
  const std::uint64_t before = hash_of(c.graph);
  StreamAssignment on;
  if (c.stage == "logical") {
    const auto rules = c.option("passes").get<std::vector<std::string>>();
    MST_TRY(on, run_rules(c.graph, c.target, options.assign, rules, seed_of(c)));
  } else if (c.stage == "attached") {
    const std::size_t main = c.has_option("main_stream_num") ? c.option("main_stream_num").get<std::size_t>() : 1;
    MST_TRY(on, assign_attached(c.graph, c.target, options.assign, given_streams(c, main)));
  } else {
    AssignOptions assign = options.assign;
    assign.strategy = Strategy::ge;
    MST_TRY(on, assign_streams(c.graph, c.target, assign));
  }
  show_streams(c, on, outcome);
  outcome.graph_unchanged = hash_of(c.graph) == before && verify(c.graph).empty();
  bool changed = false;
  for (const NodeId n : c.graph.nodes()) {
    const auto s = on.stream_of(n);
    changed = changed || (s ? static_cast<std::int64_t>(s->index) : -1) != c.streams[n.index];
  }
  outcome.changed = changed;
  // A list of single rules may leave nodes without a stream, which is no matter of synchronisation then.
  if (const auto plan = plan_sync(c.graph, on, options.sync); plan.ok()) show_syncs(c, *plan, outcome);
  return {};
}

}  // namespace

Outcome run_logical(const Case& c, const CompileOptions& options) {
  Outcome outcome;
  if (auto done = logical(c, options, outcome); !done.ok()) outcome.error = done.error();
  return outcome;
}

}  // namespace millstream::cases
