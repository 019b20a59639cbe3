// SPDX-License-Identifier: Apache-2.0
#include "millstream/compile/warned.h"

#include <algorithm>

#include "millstream/graph/dependencies.h"

namespace millstream {
namespace {

// Between the two nodes of a pair that compat loses, or where no stream runs one of them between what leads to it, or to
// a node that owns a body around it.
bool lost(const Graph& graph, const Compiled& made, const Violation& v) {
  if (!v.first || !v.second || made.sync.lost.empty()) return false;
  for (const SyncPair& p : made.sync.lost) {
    if (p.from == *v.first && p.to == *v.second) return true;
  }
  IdVec<NodeId, std::uint8_t> runs(graph.node_count(), 0);
  for (const PhysicalStream& s : made.schedule.streams) {
    for (const Task& t : s.tasks) {
      if (t.kind == Task::Kind::launch) runs[t.node()] = 1;
      if (t.is_control()) runs[made.schedule.controls[t.index].node] = 1;
    }
  }
  const Dependencies direct(graph);
  std::vector<NodeId> between = {*v.second};
  // What a body reads from outside is a pair of the node that owns the body.
  for (ScopeId s = graph.scope_of(*v.second); s.index != 0; s = graph.scope(s).parent) between.push_back(*graph.scope(s).parent_node);
  for (std::size_t i = 0; i < between.size(); ++i) {
    for (const NodeId p : direct.predecessors(between[i])) {
      if (runs[p] == 0 && std::find(between.begin(), between.end(), p) == between.end()) between.push_back(p);
    }
  }
  const auto among = [&](NodeId n) { return std::find(between.begin(), between.end(), n) != between.end(); };
  return std::any_of(made.sync.lost.begin(), made.sync.lost.end(), [&](const SyncPair& p) {
    return among(p.to) && (p.from == *v.first || (p.from != *v.second && among(p.from)));
  });
}

// The violation names the last task before the record and the first behind the wait, as far as there are any.
bool unmet(const Graph& graph, const Compiled& made, const Violation& v) {
  IdVec<NodeId, std::uint8_t> runs(graph.node_count(), 0);
  for (const PhysicalStream& s : made.schedule.streams) {
    for (const Task& t : s.tasks) {
      if (t.kind == Task::Kind::launch) runs[t.node()] = 1;
      if (t.is_control()) runs[made.schedule.controls[t.index].node] = 1;
    }
  }
  const auto& on = made.assignment;
  for (const SyncPair& p : made.sync.unmet) {
    std::optional<NodeId> before, behind;
    bool passed_from = false, passed_to = false;
    for (const NodeId n : graph.order()) {
      passed_to = passed_to || n == p.to;
      if (runs[n] != 0 && !passed_from && on.stream_of(n) == on.stream_of(p.from)) before = n;
      if (runs[n] != 0 && passed_to && !behind && on.stream_of(n) == on.stream_of(p.to)) behind = n;
      passed_from = passed_from || n == p.from;
    }
    if (before == v.first && behind == v.second) return true;
  }
  return false;
}

}  // namespace

bool warned_of(const Graph& graph, const Compiled& made, const Violation& v) {
  if (v.kind == Violation::Kind::race) return lost(graph, made, v);
  return v.kind == Violation::Kind::region && !made.sync.unmet.empty() && unmet(graph, made, v);
}

}  // namespace millstream
