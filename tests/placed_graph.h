// SPDX-License-Identifier: Apache-2.0
// Graphs placed on streams, written down or random, for tests of sync and schedules.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millstream/assign/assignment.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/sync_plan.h"
#include "tests/random_graph.h"

namespace millstream::testing {

struct Placed {
  Graph graph;
  StreamAssignment on;

  NodeId node(std::string_view name) const {
    const auto n = graph.find_node(name);
    MST_CHECK(n.has_value(), name);
    return *n;
  }
};

inline StreamAssignment streams(std::size_t nodes, std::size_t count) {
  StreamAssignment on;
  on.rules = {"test"};
  on.reasons = {"the test says so"};
  on.placement = IdVec<NodeId, std::optional<Placement>>(nodes);
  for (std::size_t s = 0; s < count; ++s) on.new_stream();
  return on;
}

/// `lanes` in stream order, names apart by spaces; `edges` from, to. Nodes are listed in a topological order:
/// round by round, the first name of each lane whose predecessors are all listed. A name "hole" emits no task.
inline Placed placed(const std::vector<std::string>& lanes,
                     const std::vector<std::pair<std::string, std::string>>& edges,
                     const std::vector<std::pair<std::string, std::string>>& control = {}) {
  std::vector<std::vector<std::string>> names;
  for (const std::string& lane : lanes) {
    names.emplace_back();
    for (std::size_t at = 0; at < lane.size();) {
      const std::size_t end = std::min(lane.find(' ', at), lane.size());
      if (end > at) names.back().push_back(lane.substr(at, end - at));
      at = end + 1;
    }
  }
  Placed out{Graph("placed"), {}};
  std::map<std::string, NodeId> made;
  std::vector<std::size_t> next(names.size(), 0), stream;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < names.size(); ++s) {
      if (next[s] == names[s].size()) continue;
      const std::string& name = names[s][next[s]];
      std::vector<InputRef> inputs;
      bool ready = true;
      for (const auto& list : {edges, control}) {
        for (const auto& [from, to] : list) ready = ready && (to != name || made.count(from) != 0);
      }
      if (!ready) continue;
      for (const auto& [from, to] : edges) {
        if (to == name) inputs.push_back(out.graph.outputs(made.at(from))[0]);
      }
      const std::string_view outputs[] = {name};
      Graph::NodeSpec spec;
      spec.type = name == "hole" ? "NetOutput" : "Op";
      spec.name = name;
      spec.inputs = inputs;
      spec.outputs = outputs;
      made[name] = out.graph.add_node(spec);
      for (const auto& [from, to] : control) {
        if (to == name) out.graph.add_control_edge(made.at(from), made.at(name));
      }
      stream.push_back(s);
      ++next[s];
      moved = true;
    }
  }
  for (std::size_t s = 0; s < names.size(); ++s) MST_CHECK(next[s] == names[s].size(), "the lanes contradict the edges");
  MST_CHECK(out.graph.finish().ok(), "a sound graph");
  out.on = streams(out.graph.node_count(), names.size());
  for (const NodeId n : out.graph.nodes()) out.on.placement[n] = Placement{StreamId(stream[n.index]), RuleId(0)};
  return out;
}

/// A random graph on random streams; with `holes` some nodes emit no task and have none.
inline Placed random_placed(Random& random, std::size_t nodes, std::size_t count, double edge, double holes = 0) {
  RandomGraphOptions options;
  options.nodes = nodes;
  options.edge = edge;
  options.window = 25;
  options.control = 0.1;
  options.holes = holes;
  Placed out{random_graph(random, options), {}};
  out.on = streams(nodes, count);
  for (const NodeId n : out.graph.nodes()) {
    if (out.graph.type(n) != "NetOutput") out.on.placement[n] = Placement{StreamId(random.below(count)), RuleId(0)};
  }
  return out;
}

/// A target without limits.
inline Target no_limits() {
  Target t;
  t.name = "boundless";
  t.limits = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
  return t;
}

inline SyncPlan plan_of(const Placed& p, SyncMode mode = SyncMode::exact) {
  Result<SyncPlan> plan = plan_sync(p.graph, p.on, {mode});
  MST_CHECK(plan.ok(), to_string(plan.error()));
  return std::move(plan).value();
}

inline Schedule schedule_of(const Placed& p, const SyncPlan& plan, EventIds how = EventIds::minimal) {
  Result<Schedule> s = lower(p.graph, p.on, plan, no_limits(), {how});
  MST_CHECK(s.ok(), to_string(s.error()));
  return std::move(s).value();
}

/// "a -> b" of each pair, in order.
inline std::vector<std::string> arrows(const Graph& graph, const std::vector<SyncPair>& pairs) {
  std::vector<std::string> out;
  for (const SyncPair& p : pairs) out.push_back(fmt::format("{} -> {}", graph.name(p.from), graph.name(p.to)));
  return out;
}

}  // namespace millstream::testing
