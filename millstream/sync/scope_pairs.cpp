// SPDX-License-Identifier: Apache-2.0
// What scopes and loops need beside the graph's edges.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/text.h"
#include "millstream/sync/insert.h"

namespace millstream {
namespace {

class ScopePairs {
 public:
  ScopePairs(const Graph& graph, const StreamAssignment& on, const Activation& activation, const ControlFlow& flow)
      : graph_(graph), on_(on), activation_(activation), flow_(flow) {}

  std::vector<SyncPair> run() {
    if (flow_.scoped()) {
      entries();
      entries_without_activation();
    }
    if (!activation_.empty()) {
      loops();
      if (flow_.scoped()) scope_loops();
    }
    std::stable_sort(out_.begin(), out_.end(), [](const SyncPair& a, const SyncPair& b) {
      return a.to != b.to ? a.to < b.to : a.from < b.from;
    });
    return std::move(out_);
  }

  // Streams that loops() leaves out, but that of the switch itself, which ends there.
  std::vector<Error> warnings() {
    std::vector<Error> out;
    for (const Activator& a : activation_.activators) {
      if (!a.loop || !a.loop_switch || !on_.placement[*a.loop_switch]) continue;
      for (const StreamId s : a.streams) {
        if (s == on_.placement[*a.loop_switch]->stream) continue;
        std::optional<NodeId> last, choice;
        for (const NodeId n : graph_.order()) {
          if (!on_.placement[n] || on_.placement[n]->stream != s) continue;
          last = n;
          if (graph_.type(n) == "StreamSwitch") choice = n;
        }
        if (!last || (!choice && flow_.region_of(*last).index == 0)) continue;
        out.push_back(Error{ErrorCode::control_flow,
                            fmt::format("stream {} may still run when {} starts it again: {}", s.index, quote_name(graph_.name(a.node)),
                                        choice ? fmt::format("it ends at switch {} or behind it", quote_name(graph_.name(*choice)))
                                               : fmt::format("its last node {} is in a branch", quote_name(graph_.name(*last))))}
                          .help("let a node that always runs wait for its end before the loop's switch"));
      }
    }
    return out;
  }

 private:
  // The first node of a scope on a stream that runs already when the scope opens.
  void entries() {
    std::vector<std::vector<StreamId>> seen(graph_.scope_count());
    for (const NodeId n : graph_.order()) {
      const ScopeId s = graph_.scope_of(n);
      const auto& first = flow_.scope(s).first_active;
      if (s.index == 0 || !first || !on_.placement[n] || !on_.placement[*first]) continue;
      const StreamId stream = on_.placement[n]->stream;
      if (stream == on_.placement[*first]->stream) continue;
      if (std::find(seen[s.index].begin(), seen[s.index].end(), stream) != seen[s.index].end()) continue;
      seen[s.index].push_back(stream);
      bool outside = activation_.head(stream);
      if (!outside) {
        for (const NodeId a : activation_.started_by[stream]) outside = outside || !flow_.inside(graph_.scope_of(a), s);
      }
      if (outside) out_.push_back({*first, n, PairReason::entry});
    }
  }

  // Nothing opens a scope without a first activation, so the first nodes in it follow the node that owns it.
  void entries_without_activation() {
    bool any = false;
    for (std::size_t s = 1; s < graph_.scope_count(); ++s) any = any || !flow_.scope(ScopeId(s)).first_active;
    if (!any) return;
    const Dependencies direct(graph_);
    IdVec<NodeId, std::uint8_t> follows(graph_.node_count(), 0);  // a node of its own scope that has a stream
    for (const NodeId n : graph_.order()) {
      const ScopeId s = graph_.scope_of(n);
      for (const NodeId p : direct.predecessors(n)) {
        if (graph_.scope_of(p) == s && (on_.placement[p] || follows[p] != 0)) follows[n] = 1;
      }
      if (s.index == 0 || flow_.scope(s).first_active || !on_.placement[n] || follows[n] != 0) continue;
      NodeId owner = *graph_.scope(s).parent_node;
      for (ScopeId above = graph_.scope_of(owner); above.index != 0 && !on_.placement[owner] && follows[owner] == 0;) {
        owner = *graph_.scope(above).parent_node;
        above = graph_.scope_of(owner);
      }
      out_.push_back({owner, n, PairReason::entry});
    }
  }

  // What a loop activation starts again has ended before the switch above it.
  void loops() {
    std::vector<std::optional<NodeId>> last;
    std::vector<std::uint8_t> has_switch;
    for (const Activator& a : activation_.activators) {
      if (!a.loop || !a.loop_switch || !on_.placement[*a.loop_switch]) continue;
      if (last.empty()) {
        last.resize(on_.streams.size());
        has_switch.resize(on_.streams.size(), 0);
        for (const NodeId n : graph_.order()) {
          if (!on_.placement[n]) continue;
          last[on_.placement[n]->stream.index] = n;
          if (graph_.type(n) == "StreamSwitch") has_switch[on_.placement[n]->stream.index] = 1;
        }
      }
      for (const StreamId s : a.streams) {
        if (!last[s.index] || has_switch[s.index] != 0 || flow_.region_of(*last[s.index]).index != 0) continue;
        if (s != on_.placement[*a.loop_switch]->stream) out_.push_back({*last[s.index], *a.loop_switch, PairReason::loop});
      }
    }
  }

  // What a scope inside a loop starts has ended before the scope closes.
  void scope_loops() {
    struct Started {
      ScopeId scope;
      StreamId stream;
      std::optional<NodeId> last = std::nullopt;
    };
    std::vector<std::vector<Started>> by_stream(on_.streams.size());
    bool any = false;
    for (const Activator& a : activation_.activators) {
      const ScopeId s = graph_.scope_of(a.node);
      if (a.loop || !flow_.scope(s).in_loop) continue;
      for (const StreamId stream : a.streams) {
        auto& list = by_stream[stream.index];
        const bool known = std::any_of(list.begin(), list.end(), [&](const Started& k) { return k.scope == s; });
        if (!known) list.push_back({s, stream});
        any = true;
      }
    }
    if (!any) return;
    for (const NodeId n : graph_.order()) {
      if (!on_.placement[n]) continue;
      for (Started& k : by_stream[on_.placement[n]->stream.index]) {
        if (flow_.inside(graph_.scope_of(n), k.scope)) k.last = n;
      }
    }
    for (const auto& list : by_stream) {
      for (const Started& k : list) {
        if (!k.last) continue;
        // A scope that closes on the stream itself, or nowhere, leaves the end to the one around it.
        for (ScopeId s = k.scope; flow_.scope(s).in_loop; s = graph_.scope(s).parent) {
          const auto& closing = flow_.scope(s).closing;
          if (!closing || !on_.placement[*closing] || on_.placement[*closing]->stream == k.stream) continue;
          if (*k.last != *closing) out_.push_back({*k.last, *closing, PairReason::loop});
          break;
        }
      }
    }
  }

  const Graph& graph_;
  const StreamAssignment& on_;
  const Activation& activation_;
  const ControlFlow& flow_;
  std::vector<SyncPair> out_;
};

}  // namespace

std::vector<SyncPair> scope_pairs(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                                  const ControlFlow& flow) {
  if (!flow.scoped() && activation.empty()) return {};
  return ScopePairs(graph, on, activation, flow).run();
}

std::vector<Error> loop_warnings(const Graph& graph, const StreamAssignment& on, const Activation& activation,
                                 const ControlFlow& flow) {
  const bool any = std::any_of(activation.activators.begin(), activation.activators.end(), [](const Activator& a) { return a.loop; });
  if (!any) return {};
  return ScopePairs(graph, on, activation, flow).warnings();
}

}  // namespace millstream
