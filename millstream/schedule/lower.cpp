// SPDX-License-Identifier: Apache-2.0
// Writes out what each stream runs: split, then start lists, then event ids, then tasks.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "millstream/assign/tasks.h"
#include "millstream/graph/text.h"
#include "millstream/schedule/activate.h"
#include "millstream/schedule/control_types.h"
#include "millstream/schedule/event_ids.h"
#include "millstream/schedule/event_phases.h"
#include "millstream/schedule/limits.h"
#include "millstream/schedule/needed_cuts.h"
#include "millstream/schedule/schedule.h"
#include "millstream/schedule/split.h"
#include "millstream/sync/activation.h"
#include "millstream/sync/control.h"
#include "millstream/sync/insert.h"

namespace millstream {
namespace {

constexpr std::uint32_t kEnd = 0xffffffffu;

Result<void> check_pairs(const Graph& graph, const StreamAssignment& on, std::span<const SyncPair> pairs, const std::vector<NodeId>& walk) {
  IdVec<NodeId, std::uint32_t> rank(graph.node_count(), 0);
  for (std::size_t i = 0; i < walk.size(); ++i) rank[walk[i]] = static_cast<std::uint32_t>(i);
  for (const SyncPair& p : pairs) {
    const auto bad = [&](std::string_view why) {
      const auto name = [&](NodeId n) {
        return n.index < graph.node_count() ? quote_name(graph.name(n)) : fmt::format("#{}", n.index);
      };
      return Error{ErrorCode::plan_mismatch, fmt::format("pair {} -> {} {}", name(p.from), name(p.to), why)};
    };
    if (p.from.index >= graph.node_count() || p.to.index >= graph.node_count()) return bad("names a node the graph lacks");
    if (!on.placement[p.from] || !on.placement[p.to]) return bad("names a node without a stream");
    if (p.from == p.to) {
      const auto attached = on.forked(p.from);
      const bool known = std::find(attached.begin(), attached.end(), p.stream) != attached.end();
      if (!known || (p.reason != PairReason::fork && p.reason != PairReason::join)) return bad("names no attached stream that the node forks to");
      continue;
    }
    if (on.placement[p.from]->stream == on.placement[p.to]->stream && p.reason != PairReason::split) return bad("stays on one stream");
    if (rank[p.from] >= rank[p.to]) return bad("runs against the execution order");
  }
  return {};
}

bool has_activations(const Graph& graph) {
  const Annotations& a = graph.annotations();
  return !a.activates.empty() || !a.activates_streams.empty() || !a.roles.empty();
}

class Lowering {
 public:
  Lowering(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const Target& target, const LowerOptions& options)
      : graph_(graph), on_(on), plan_(plan), target_(target), options_(options), control_(graph) {}

  Result<Schedule> run() {
    if (on_.placement.size() != graph_.node_count()) {
      return Error{ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on_.placement.size(),
                                                         graph_.node_count())};
    }
    MST_TRY(const std::vector<NodeId> fixed_walk, walk_order(graph_, on_));
    const std::vector<NodeId>& walk = fixed_walk.empty() ? graph_.order() : fixed_walk;
    MST_TRY_VOID(check_pairs(graph_, on_, plan_.kept, walk));
    MST_TRY_VOID(cut_and_start());
    if (!more_.empty()) MST_TRY_VOID(check_pairs(graph_, on_, more_, walk));
    place();
    MST_TRY(events_, number(walk));
    open_streams();
    MST_TRY_VOID(emit());
    if (!out_.controls.empty() || starts_.streams > splitting_.streams) MST_TRY_VOID(finish_control());
    out_.warnings.insert(out_.warnings.begin(), std::make_move_iterator(splitting_.warnings.begin()), std::make_move_iterator(splitting_.warnings.end()));
    MST_TRY(std::vector<Error> warnings, hold_limits(graph_, on_, out_, target_, options_));
    out_.warnings.insert(out_.warnings.end(), std::make_move_iterator(warnings.begin()), std::make_move_iterator(warnings.end()));
    return std::move(out_);
  }

 private:
  std::span<const SyncPair> pairs() const { return more_.empty() ? std::span<const SyncPair>(plan_.kept) : all_; }

  Result<void> cut_and_start() {
    Activation activation;
    if (has_activations(graph_)) {
      MST_TRY(activation, plan_activation(graph_, on_));
    }
    MST_TRY(splitting_, split_streams({graph_, on_, plan_.kept, target_, options_, plan_.mode, activation.empty() ? nullptr : &activation}));
    starts_.streams = splitting_.streams;
    if (!activation.empty()) {
      MST_TRY(starts_, plan_starts({graph_, on_, activation, splitting_, plan_.mode}));
      for (std::uint32_t i = 0; i < starts_.lists.size(); ++i) list_of_.push_back({starts_.lists[i].node, i});
      std::sort(list_of_.begin(), list_of_.end());
    }
    const bool exact = plan_.mode == SyncMode::exact || plan_.mode == SyncMode::fewest;
    if (exact && !splitting_.pairs.empty() && (!activation.empty() || !control_.none() || graph_.scope_count() > 1)) {
      MST_TRY(splitting_.pairs, needed_cuts({graph_, on_, activation, splitting_, plan_.mode}, starts_, plan_.kept));
    }
    more_ = splitting_.pairs;
    for (const SyncPair& p : starts_.loop_pairs) {
      const bool known = std::any_of(plan_.kept.begin(), plan_.kept.end(), [&](const SyncPair& k) { return k.from == p.from && k.to == p.to; });
      if (!known) more_.push_back(p);
    }
    if (!more_.empty()) {
      all_ = plan_.kept;
      all_.insert(all_.end(), more_.begin(), more_.end());
    }
    return {};
  }

  void place() {
    lane_ = IdVec<NodeId, std::uint32_t>(graph_.node_count(), kEnd);
    PieceWalk pieces(on_, splitting_);
    for (const NodeId n : graph_.order()) {
      if (on_.placement[n]) lane_[n] = pieces.next(n);
    }
  }

  // Nodes that run exactly once in every run: outside branches and loops, before any StreamSwitch of their stream, on
  // streams that nothing starts or that one such node does. Jumps outside branches, and loops made of
  // activations, leave none.
  std::vector<std::uint8_t> always() const {
    if (control_.none() && starts_.lists.empty() && graph_.scope_count() == 1) return {};
    std::vector<std::uint8_t> out(graph_.node_count(), 1);
    bool any = std::none_of(starts_.lists.begin(), starts_.lists.end(), [](const StartList& l) { return l.loop; });
    const ControlFlow flow(graph_);
    std::vector<std::uint8_t> once(graph_.scope_count(), 1);  // by scope; parents stand before children
    for (std::size_t s = 1; s < once.size(); ++s) {
      const ScopeInfo& info = flow.scope(ScopeId(s));
      once[s] = once[graph_.scope(ScopeId(s)).parent.index] != 0 && !info.conditional && !info.repeats ? 1 : 0;
    }
    std::vector<std::uint32_t> starters(starts_.streams, 0);
    for (const StartList& list : starts_.lists) {
      for (const std::uint32_t s : list.streams) ++starters[s];
    }
    std::vector<std::uint8_t> runs(starts_.streams, 1);
    for (const std::uint32_t s : starts_.started) runs[s] = 0;
    for (const NodeId n : graph_.order()) {
      if (lane_[n] == kEnd) continue;
      const auto kind = control_.of(n);
      const bool here = once[graph_.scope_of(n).index] != 0;
      if (here && (kind == Task::Kind::jump || kind == Task::Kind::branch)) any = false;
      out[n.index] = here && runs[lane_[n]] != 0 ? 1 : 0;
      if (kind == Task::Kind::stream_switch) runs[lane_[n]] = out[n.index] = 0;
      if (kind != Task::Kind::activate || out[n.index] == 0) continue;
      const auto it = std::lower_bound(list_of_.begin(), list_of_.end(), std::pair<NodeId, std::uint32_t>(n, 0));
      if (it == list_of_.end() || it->first != n) continue;
      for (const std::uint32_t s : starts_.lists[it->second].streams) {
        if (starters[s] == 1) runs[s] = 1;
      }
    }
    if (!any) std::fill(out.begin(), out.end(), std::uint8_t{0});
    return out;
  }

  Result<std::vector<EventId>> number(const std::vector<NodeId>& walk) {
    const PairLanes lanes{graph_, on_, pairs(), walk, lane_, starts_.streams, always()};
    std::vector<EventId> ids = colour_events(lanes, options_.event_ids);
    const Annotations& a = graph_.annotations();
    const bool dims = !a.batch.empty() && graph_.strings().find("StreamSwitchN").has_value();
    if (!dims && a.multiplex.empty()) return ids;
    Events events;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      events.uses.push_back({pairs()[i].from, pairs()[i].to, ids[i].index});
      events.count = std::max(events.count, ids[i].index + 1);
    }
    if (dims) {
      MST_TRY(events, reuse_across_dims(graph_, std::move(events)));
    }
    const std::uint32_t own = events.count;
    MST_TRY(out_.warnings, multiplex_warnings(graph_, events, options_.multiplex_threshold));
    MST_TRY(events, multiplex(graph_, std::move(events), options_.multiplex_threshold));
    std::vector<std::uint32_t> group(ids.size(), kEnd);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (events.uses[i].id >= own) group[i] = events.uses[i].id;
    }
    if (events.count > own) MST_TRY_VOID(check_shared(lanes, group));
    MST_TRY(events, make_continuous(graph_, std::move(events)));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = EventId(events.uses[i].id);
    return ids;
  }

  void open_streams() {
    out_.logical_streams = static_cast<std::uint32_t>(on_.streams.size());
    out_.streams.resize(starts_.streams);
    for (const StreamId s : ids<StreamId>(on_.streams.size())) out_.streams[PhysicalStreamId(s.index)].logical = s;
    for (std::size_t i = 0; i < splitting_.points.size(); ++i) out_.streams[splitting_.points[i].opened].logical = splitting_.logical_of[i];
    for (const RelayStream& r : starts_.relays) {
      PhysicalStream& stream = out_.streams[PhysicalStreamId(r.stream)];
      stream.relay = true;
      stream.logical = on_.placement[r.switch_node]->stream;
    }
    for (const PhysicalStreamId s : splitting_.huge) out_.streams[s].huge = true;
    out_.splits = std::move(splitting_.points);
    for (const EventId e : events_) out_.event_count = std::max(out_.event_count, e.index + 1);
    if (out_.event_count > 0) out_.event_kind = plan_.kind;
  }

  Result<void> emit() {
    // Pairs by either end, as chains in list order: four bytes a node and pair.
    const std::span<const SyncPair> all = pairs();
    std::vector<std::uint32_t> first_wait(graph_.node_count(), kEnd), first_record(graph_.node_count(), kEnd);
    std::vector<std::uint32_t> next_wait(all.size()), next_record(all.size());
    std::vector<std::size_t> tasks(out_.streams.size(), 0);
    for (std::uint32_t i = static_cast<std::uint32_t>(all.size()); i-- > 0;) {
      const SyncPair& p = all[i];
      ++tasks[lane_[p.from]];
      ++tasks[lane_[p.to]];
      next_record[i] = first_record[p.from.index];
      first_record[p.from.index] = i;
      if (p.from == p.to) continue;  // fork and join: only behind first_record
      next_wait[i] = first_wait[p.to.index];
      first_wait[p.to.index] = i;
    }
    for (const NodeId n : graph_.nodes()) {
      if (lane_[n] != kEnd) ++tasks[lane_[n]];
    }
    for (std::size_t s = 0; s < tasks.size(); ++s) out_.streams[PhysicalStreamId(s)].tasks.reserve(tasks[s]);

    const TaskNodes emits(graph_);
    const auto record_each = [&](NodeId n, auto visit) {
      for (std::uint32_t i = first_record[n.index]; i != kEnd; i = next_record[i]) visit(i, all[i]);
    };
    for (const NodeId n : graph_.order()) {
      if (lane_[n] == kEnd) continue;
      std::vector<Task>& lane = out_.streams[PhysicalStreamId(lane_[n])].tasks;
      for (std::uint32_t i = first_wait[n.index]; i != kEnd; i = next_wait[i]) lane.push_back(Task::wait(events_[i]));
      const auto& attached = on_.attached.get(n);
      if (attached) {
        record_each(n, [&](std::uint32_t i, const SyncPair& p) {
          if (p.from == p.to && p.reason == PairReason::fork) lane.push_back(Task::record(events_[i]));
        });
      }
      const auto kind = control_.none() ? std::nullopt : control_.of(n);
      if (kind) {
        MST_TRY_VOID(emit_control(n, *kind, lane));
      } else if (emits(n)) {
        lane.push_back(Task::launch(n));
      }
      if (attached) {
        for (const StreamId a : *attached) attached_part(n, a, record_each);
        record_each(n, [&](std::uint32_t i, const SyncPair& p) {
          if (p.from == p.to && p.reason == PairReason::join) lane.push_back(Task::wait(events_[i]));
        });
      }
      record_each(n, [&](std::uint32_t i, const SyncPair& p) {
        if (p.from != p.to) lane.push_back(Task::record(events_[i]));
      });
    }
    return {};
  }

  template <class RecordEach>
  void attached_part(NodeId n, StreamId a, RecordEach record_each) {
    std::vector<Task>& lane = out_.streams[PhysicalStreamId(a.index)].tasks;
    record_each(n, [&](std::uint32_t i, const SyncPair& p) {
      if (p.from == p.to && p.stream == a && p.reason == PairReason::fork) lane.push_back(Task::wait(events_[i]));
    });
    lane.push_back(on_.synchronises_itself(n) ? Task::self_attached(n) : Task::attached(n));
    record_each(n, [&](std::uint32_t i, const SyncPair& p) {
      if (p.from == p.to && p.stream == a && p.reason == PairReason::join) lane.push_back(Task::record(events_[i]));
    });
  }

  void push_control(std::vector<Task>& lane, Task::Kind kind, ControlTask task) {
    lane.push_back({kind, static_cast<std::uint32_t>(out_.controls.size())});
    out_.controls.push_back(std::move(task));
  }

  Result<void> emit_control(NodeId n, Task::Kind kind, std::vector<Task>& lane) {
    if (kind == Task::Kind::activate || kind == Task::Kind::stream_switch) {
      const auto it = std::lower_bound(list_of_.begin(), list_of_.end(), std::pair<NodeId, std::uint32_t>(n, 0));
      const bool found = it != list_of_.end() && it->first == n;
      if (kind == Task::Kind::activate) {
        if (!found) return {};
        for (const std::uint32_t s : starts_.lists[it->second].streams) push_control(lane, kind, {n, {s}});
        return {};
      }
      if (!found || starts_.lists[it->second].streams.empty()) {
        return Error{ErrorCode::control_flow, fmt::format("switch {} names no stream or label to start", quote_name(graph_.name(n)))};
      }
      push_control(lane, kind, {n, starts_.lists[it->second].streams});
      return {};
    }
    ControlTask task{n, {}};
    for (const std::int64_t label : label_numbers(graph_, n)) {
      if (label < 0 || label >= kMostLabels) {
        return Error{ErrorCode::bad_attribute, fmt::format("{} of node {} holds {}, a label is a number in 0..{}",
                                                           graph_.attrs(n).has("label_list") ? "label_list" : "label_index",
                                                           quote_name(graph_.name(n)), label, kMostLabels - 1)};
      }
      task.targets.push_back(static_cast<std::uint32_t>(label));
    }
    if (task.targets.empty() || (kind != Task::Kind::branch && task.targets.size() != 1)) {
      return Error{ErrorCode::bad_attribute, fmt::format("node {} ({}) has no {}", quote_name(graph_.name(n)), graph_.type(n),
                                                         kind == Task::Kind::branch ? "label_list" : "label_index")};
    }
    push_control(lane, kind, std::move(task));
    return {};
  }

  // Relay streams, control tasks in the order of streams, and what labels must hold.
  Result<void> finish_control() {
    for (const RelayStream& r : starts_.relays) {
      for (const std::uint32_t s : r.targets) {
        push_control(out_.streams[PhysicalStreamId(r.stream)].tasks, Task::Kind::activate, {r.switch_node, {s}});
      }
    }
    std::vector<ControlTask> ordered;
    ordered.reserve(out_.controls.size());
    std::map<std::uint32_t, std::pair<std::uint32_t, NodeId>> labels;  // stream and node
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(out_.streams.size())) {
      for (Task& t : out_.streams[s].tasks) {
        if (!t.is_control()) continue;
        ordered.push_back(std::move(out_.controls[t.index]));
        t.index = static_cast<std::uint32_t>(ordered.size() - 1);
        if (t.kind != Task::Kind::label) continue;
        const std::uint32_t label = ordered.back().targets[0];
        out_.label_count = std::max(out_.label_count, label + 1);
        const auto [it, fresh] = labels.try_emplace(label, s.index, ordered.back().node);
        if (!fresh) {
          return Error{ErrorCode::control_flow, fmt::format("label {} is set twice: by {} and by {}", label, quote_name(graph_.name(it->second.second)),
                                                            quote_name(graph_.name(ordered.back().node)))};
        }
      }
    }
    out_.controls = std::move(ordered);
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(out_.streams.size())) {
      for (const Task& t : out_.streams[s].tasks) {
        if (t.kind != Task::Kind::jump && t.kind != Task::Kind::branch) continue;
        for (const std::uint32_t label : out_.controls[t.index].targets) {
          const auto it = labels.find(label);
          if (it != labels.end() && it->second.first == s.index) continue;
          return Error{ErrorCode::control_flow,
                       fmt::format("{} on stream {} goes to label {}, which {}", quote_name(graph_.name(out_.controls[t.index].node)), s.index, label,
                                   it == labels.end() ? "no LabelSet sets"
                                                      : fmt::format("{} sets on stream {}", quote_name(graph_.name(it->second.second)), it->second.first))}
              .note("control moves only inside its own stream")
              .help("keep a branch and its labels on one stream; split_units=task never splits between them");
        }
      }
    }
    return {};
  }

  static constexpr std::int64_t kMostLabels = 1 << 20;
  const Graph& graph_;
  const StreamAssignment& on_;
  const SyncPlan& plan_;
  const Target& target_;
  const LowerOptions& options_;
  ControlTypes control_;
  Splitting splitting_;
  Starts starts_;
  std::vector<std::pair<NodeId, std::uint32_t>> list_of_;  // node, index into starts_.lists
  std::vector<SyncPair> more_;                             // boundary and loop pairs
  std::vector<SyncPair> all_;                              // kept, then more_; empty without more_
  IdVec<NodeId, std::uint32_t> lane_;                      // physical stream
  std::vector<EventId> events_;                            // by pair
  Schedule out_;
};

}  // namespace

Result<Schedule> lower(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const Target& target,
                       const LowerOptions& options) {
  return Lowering(graph, on, plan, target, options).run();
}

}  // namespace millstream
