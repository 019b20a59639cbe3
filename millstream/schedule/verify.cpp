// SPDX-License-Identifier: Apache-2.0
// Checks any schedule, ours or not. Its clocks and its list of requirements are its own.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/tasks.h"
#include "millstream/graph/dependencies.h"
#include "millstream/graph/text.h"
#include "millstream/schedule/control_types.h"
#include "millstream/schedule/replay_control.h"

namespace millstream {
namespace {

using Kind = Violation::Kind;

// What a check holds at once: a clock row a stream, and a slot an event. Beyond it lie only broken files.
constexpr std::size_t kMaxStreams = 16384;
constexpr std::uint64_t kSpareEvents = std::uint64_t{1} << 20;

class Checker {
 public:
  Checker(const Graph& graph, const Schedule& schedule, const Target* target, std::span<const Requirement> extra)
      : graph_(graph), schedule_(schedule), target_(target), extra_(extra) {}

  CheckReport run(bool find_redundant) {
    if (!ids_in_range()) return std::move(report_);
    check_control_tasks();
    count_launches();
    count_attached();
    collect_requirements();
    if (needs_regions_) {
      check_control(find_redundant);
      return std::move(report_);
    }
    ReplayOptions options;
    options.classify_waits = find_redundant;
    const ReplayOutcome outcome = replay(graph_, schedule_, required_, options);
    explain_stuck(outcome);
    explain_races(outcome.races);
    for (const ReplayOutcome::Reuse& r : outcome.reuses) explain_reuse(r);
    check_limits();
    if (find_redundant && report_.ok()) report_.redundant = redundant_waits(graph_, schedule_, required_, outcome);
    return std::move(report_);
  }

 private:
  Violation& add(Kind kind, std::string message) {
    report_.violations.push_back({});
    report_.violations.back().kind = kind;
    report_.violations.back().message = std::move(message);
    return report_.violations.back();
  }
  std::string name(NodeId n) const { return quote_name(graph_.name(n)); }
  const std::vector<Task>& tasks(PhysicalStreamId s) const { return schedule_.streams[s].tasks; }

  // The last node at or before a task, or the first behind it.
  std::optional<NodeId> node_before(TaskRef t) const {
    for (std::size_t i = t.index + 1; i-- > 0;) {
      if (tasks(t.stream)[i].kind == Task::Kind::launch) return tasks(t.stream)[i].node();
    }
    return std::nullopt;
  }
  std::optional<NodeId> node_behind(TaskRef t) const {
    for (std::size_t i = t.index; i < tasks(t.stream).size(); ++i) {
      if (tasks(t.stream)[i].kind == Task::Kind::launch) return tasks(t.stream)[i].node();
    }
    return std::nullopt;
  }
  std::string behind(const std::optional<NodeId>& n) const { return n ? "behind " + name(*n) : "at its start"; }
  std::string before(const std::optional<NodeId>& n) const { return n ? "before " + name(*n) : "at its end"; }

  /// Another scheduler runs the node, or it belongs to an engine that runs nothing of its own: by the input, or
  /// by its type.
  bool runs_elsewhere(NodeId n) {
    if (graph_.annotations().thread_scope.get(n)) return true;
    const Engine* engine = target_ == nullptr ? nullptr : engine_of(n);
    return engine != nullptr && engine->skip;
  }
  // With a target; null where it cannot run every node.
  const Engine* engine_of(NodeId n) {
    if (!engines_asked_) {
      engines_asked_ = true;
      if (auto engines = resolve_engines(graph_, *target_); engines.ok()) engines_ = std::move(engines).value();
    }
    return engines_.empty() ? nullptr : &target_->engines[engines_[n]];
  }

  bool ids_in_range() {
    std::uint64_t total = 0;
    for (const PhysicalStream& s : schedule_.streams) total += s.tasks.size();
    if (schedule_.streams.size() > kMaxStreams) {
      add(Kind::limit, fmt::format("{} streams; check handles at most {}", schedule_.streams.size(), kMaxStreams));
    }
    if (schedule_.event_count > std::max(total, kSpareEvents)) {
      add(Kind::limit, fmt::format("{} events for {} tasks; number events from 0 without gaps", schedule_.event_count, total));
    }
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      for (const Task& t : tasks(s)) {
        const bool names_node = t.names_node();
        needs_regions_ = needs_regions_ || t.is_control() || t.kind == Task::Kind::attached;
        if (names_node && t.index >= graph_.node_count()) {
          add(Kind::missing_node, fmt::format("stream {} launches node #{}, but the graph has {} nodes", s.index, t.index,
                                              graph_.node_count())).streams = {s};
        } else if (t.is_control()) {
          if (t.index >= schedule_.controls.size() || schedule_.controls[t.index].node.index >= graph_.node_count() ||
              (schedule_.controls[t.index].targets.empty() && t.kind != Task::Kind::activate)) {
            add(Kind::missing_node, fmt::format("stream {} has a control task without a node or target that exists", s.index)).streams = {s};
          }
        } else if (!names_node && t.index >= schedule_.event_count) {
          add(Kind::limit, fmt::format("stream {} names event e{}, but the schedule has {} events", s.index, t.index,
                                       schedule_.event_count)).streams = {s};
        }
      }
    }
    for (const Requirement& r : extra_) {
      if (r.first.index >= graph_.node_count() || r.second.index >= graph_.node_count() || r.value.index >= graph_.value_count()) {
        add(Kind::memory, "a buffer requirement names a node or value that the graph does not have");
      }
    }
    return report_.ok();
  }

  // A task of control flow does what its node says: a label, jump or branch names the labels of the node's attributes,
  // and only a StreamActive or a switch starts streams. A relay stream acts for its switch.
  void check_control_tasks() {
    const ControlTypes types(graph_);
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      for (const Task& t : tasks(s)) {
        const bool launches = t.kind == Task::Kind::launch;
        if (!launches && !t.is_control()) continue;
        const NodeId n = launches ? t.node() : schedule_.controls[t.index].node;
        const auto kind = types.of(n);
        if (launches ? !kind || *kind == Task::Kind::activate : kind == t.kind) {
          if (!launches) check_labels(s, t, n);
          continue;
        }
        if (kind == Task::Kind::stream_switch && t.kind == Task::Kind::activate && schedule_.streams[s].relay) continue;
        Violation& v = launches ? add(Kind::region, fmt::format("stream {} launches {}, a {}, which must {}", s.index, name(n), graph_.type(n), deed(*kind)))
                                : add(t.kind == Task::Kind::activate || t.kind == Task::Kind::stream_switch ? Kind::start : Kind::region,
                                      fmt::format("a task of {} on stream {} is to {}, but its node is a {}", name(n), s.index, deed(t.kind), graph_.type(n)));
        v.first = n;
        v.streams = {s};
      }
    }
  }

  static std::string_view deed(Task::Kind kind) {
    switch (kind) {
      case Task::Kind::activate: return "start a stream";
      case Task::Kind::stream_switch: return "choose a stream to start";
      case Task::Kind::label: return "set a label";
      case Task::Kind::jump: return "jump to a label";
      case Task::Kind::branch: return "choose a label to jump to";
      default: return "run";
    }
  }

  void check_labels(PhysicalStreamId s, const Task& t, NodeId n) {
    if (t.kind != Task::Kind::label && t.kind != Task::Kind::jump && t.kind != Task::Kind::branch) return;
    const std::vector<std::int64_t> wanted = label_numbers(graph_, n);
    const std::vector<std::uint32_t>& named = schedule_.controls[t.index].targets;
    if (std::equal(named.begin(), named.end(), wanted.begin(), wanted.end())) return;
    const auto list = [](const auto& labels) {
      std::string out;
      for (const auto l : labels) out += fmt::format("{}L{}", out.empty() ? "" : "|", l);
      return out.empty() ? std::string("no label") : out;
    };
    Violation& v = add(Kind::region, fmt::format("{} on stream {} names {}, but the graph says {}", name(n), s.index, list(named), list(wanted)));
    v.first = n;
    v.streams = {s};
  }

  void count_launches() {
    launched_ = IdVec<NodeId, std::uint8_t>(graph_.node_count(), 0);
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      for (const Task& t : tasks(s)) {
        if (t.is_control()) launched_[schedule_.controls[t.index].node] |= kOther;
        if (t.kind == Task::Kind::attached || t.kind == Task::Kind::self_attached) launched_[t.node()] |= kOther;
        if (t.kind != Task::Kind::launch) continue;
        if ((launched_[t.node()] & 3) == 0) {
          launched_[t.node()] |= 1;
          continue;
        }
        launched_[t.node()] |= 2;
        Violation& v = add(Kind::repeated_node, fmt::format("node {} runs more than once, again on stream {}", name(t.node()), s.index));
        v.first = t.node();
        v.streams = {s};
      }
    }
    const TaskTypes emits(graph_);
    std::vector<bool> owns(graph_.scope_count() > 1 ? graph_.node_count() : 0, false);
    for (const ScopeId s : graph_.scopes()) {
      if (const auto& parent = graph_.scope(s).parent_node) owns[parent->index] = true;
    }
    for (const NodeId n : graph_.nodes()) {
      if (launched_[n] != 0 || !emits(n)) continue;
      if (!owns.empty() && owns[n.index]) continue;              // what it does is done by its scopes
      if (graph_.type(n) == "StreamActive") continue;             // of no stream
      if (runs_elsewhere(n)) continue;
      add(Kind::missing_node, fmt::format("no stream runs node {}", name(n))).first = n;
    }
  }

  // A kernel that asks for streams beside its own needs a part on each. Options may leave them out of dynamic graphs.
  void count_attached() {
    const auto& wanted = graph_.annotations().attached;
    std::vector<std::pair<NodeId, PhysicalStreamId>> parts;
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      for (const Task& t : tasks(s)) {
        if (t.kind == Task::Kind::attached || t.kind == Task::Kind::self_attached) parts.push_back({t.node(), s});
        if (t.kind == Task::Kind::self_attached) hold_engine(t.node(), s);
      }
    }
    if (wanted.empty() && parts.empty()) return;
    std::sort(parts.begin(), parts.end());
    hold_parts_apart(parts);
    for (const NodeId n : graph_.nodes()) {
      const auto& requests = wanted.get(n);
      if (!requests) continue;
      const auto first = std::lower_bound(parts.begin(), parts.end(), std::pair(n, PhysicalStreamId(0)));
      const auto last = std::find_if(first, parts.end(), [&](const auto& p) { return p.first != n; });
      std::int64_t needed = 0;
      std::vector<std::string> keys;
      for (const AttachedRequest& r : *requests) {
        if (!r.reuse_key.empty() && std::find(keys.begin(), keys.end(), r.reuse_key) != keys.end()) continue;
        keys.push_back(r.reuse_key);
        needed += r.count;
      }
      const std::int64_t found = last - first;
      if (found == needed || launched_[n] == 0 || (found == 0 && graph_.dynamic())) continue;
      Violation& v = add(Kind::missing_node, fmt::format("{} asks for {} beside its own, {} a part of it", name(n), needed == 1 ? "1 stream" : fmt::format("{} streams", needed),
                                                         found == 0 ? "no stream runs" : found == 1 ? "1 stream runs" : fmt::format("{} streams run", found)));
      v.first = n;
    }
  }

  // Only kernels of engines that say so order their parts themselves. Without a target nothing says which do.
  void hold_engine(NodeId n, PhysicalStreamId s) {
    if (target_ == nullptr) return;
    const Engine* engine = engine_of(n);
    if (engine == nullptr || engine->self_synchronising) return;
    Violation& v = add(Kind::race, fmt::format("the part of {} on stream {} has no fork and join, but engine {} of target {} does not declare self_synchronising",
                                               name(n), s.index, quote_name(engine->name), target_->name));
    v.first = n;
    v.streams = {s};
  }

  // A part runs beside its node's kernel, on a stream of its own, once.
  void hold_parts_apart(const std::vector<std::pair<NodeId, PhysicalStreamId>>& parts) {
    std::vector<std::pair<NodeId, PhysicalStreamId>> kernels;
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      for (const Task& t : tasks(s)) {
        if (t.kind == Task::Kind::launch) kernels.push_back({t.node(), s});
      }
    }
    std::sort(kernels.begin(), kernels.end());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto [n, s] = parts[i];
      const auto kernel = std::lower_bound(kernels.begin(), kernels.end(), std::pair(n, PhysicalStreamId(0)));
      std::string wrong;
      if (kernel == kernels.end() || kernel->first != n) {
        wrong = fmt::format("stream {} runs a part of {}, but no stream launches its kernel", s.index, name(n));
      } else if (kernel->second == s) {
        wrong = fmt::format("stream {} runs a part of {} beside its kernel, which is on that stream itself", s.index, name(n));
      } else if (i > 0 && parts[i - 1] == parts[i]) {
        wrong = fmt::format("stream {} runs a part of {} more than once", s.index, name(n));
      }
      if (wrong.empty()) continue;
      Violation& v = add(Kind::missing_node, std::move(wrong));
      v.first = n;
      v.streams = {s};
    }
  }

  // Every launched node's nearest launched predecessors: over edges, and through nodes that no stream runs.
  void collect_requirements() {
    const Dependencies direct(graph_);
    std::vector<std::uint32_t> extras(graph_.node_count() + 1, 0);
    for (const Requirement& r : extra_) ++extras[r.second.index + 1];
    for (std::size_t i = 1; i < extras.size(); ++i) extras[i] += extras[i - 1];
    std::vector<std::uint32_t> by_second(extra_.size());
    {
      std::vector<std::uint32_t> next(extras.begin(), extras.end() - 1);
      for (std::uint32_t i = 0; i < extra_.size(); ++i) by_second[next[extra_[i].second.index]++] = i;
    }
    required_.begin.reserve(graph_.node_count() + 1);
    required_.begin.push_back(0);
    required_.items.reserve(direct.edge_count() + extra_.size());
    std::vector<NodeId> firsts, todo;
    std::vector<NodeId> passed;
    for (const NodeId n : graph_.nodes()) {
      if (launched_[n] != 0) {
        firsts.clear();
        passed.clear();
        todo.assign(direct.predecessors(n).begin(), direct.predecessors(n).end());
        while (!todo.empty()) {
          const NodeId p = todo.back();
          todo.pop_back();
          if (launched_[p] != 0) {
            firsts.push_back(p);
            continue;
          }
          const auto place = std::lower_bound(passed.begin(), passed.end(), p);
          if (place != passed.end() && *place == p) continue;
          passed.insert(place, p);
          todo.insert(todo.end(), direct.predecessors(p).begin(), direct.predecessors(p).end());
        }
        std::sort(firsts.begin(), firsts.end());
        firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
        for (const NodeId p : firsts) required_.items.push_back(dependency(p, n));
        for (std::uint32_t i = extras[n.index]; i < extras[n.index + 1]; ++i) {
          const Requirement& r = extra_[by_second[i]];
          if (launched_[r.first] != 0) required_.items.push_back(r);
        }
      }
      required_.begin.push_back(static_cast<std::uint32_t>(required_.items.size()));
    }
  }

  // The value that second reads of first, if it reads one.
  Requirement dependency(NodeId first, NodeId second) const {
    Requirement r{first, second, Requirement::Kind::control, ValueId()};
    const auto reads = [&](ValueId v) {
      if (graph_.producer(v) != first) return false;
      r.kind = Requirement::Kind::data;
      r.value = v;
      return true;
    };
    for (const InputRef in : graph_.inputs(second)) {
      if (const auto v = in.get(); v && reads(*v)) return r;
    }
    for (const ValueId v : graph_.captures(second)) {
      if (reads(v)) return r;
    }
    return r;
  }

  void explain_stuck(const ReplayOutcome& outcome) {
    // Which stuck stream would record each event that one waits for.
    std::vector<std::pair<std::uint32_t, PhysicalStreamId>> recorders;
    for (const ReplayOutcome::Stuck& stuck : outcome.stuck) {
      const PhysicalStreamId s = stuck.wait.stream;
      for (std::size_t i = outcome.done[s.index]; i < tasks(s).size(); ++i) {
        if (tasks(s)[i].kind == Task::Kind::record) recorders.push_back({tasks(s)[i].index, s});
      }
    }
    std::sort(recorders.begin(), recorders.end());
    const std::size_t count = schedule_.streams.size();
    std::vector<const ReplayOutcome::Stuck*> stuck_at(count, nullptr);
    std::vector<std::optional<PhysicalStreamId>> waits_for(count);
    for (const ReplayOutcome::Stuck& stuck : outcome.stuck) {
      const PhysicalStreamId s = stuck.wait.stream;
      stuck_at[s.index] = &stuck;
      const auto first = std::lower_bound(recorders.begin(), recorders.end(), std::pair(stuck.event.index, PhysicalStreamId(0)));
      if (first != recorders.end() && first->first == stuck.event.index) {
        waits_for[s.index] = first->second;
        continue;
      }
      std::string message = fmt::format("stream {} waits for event e{} {}, {}, and {}", s.index, stuck.event.index,
                                        behind(node_before(stuck.wait)), before(node_behind(stuck.wait)),
                                        stuck.taken_by ? "no record of it is left" : "it is never sent [E05]");
      if (stuck.taken_by) {
        message += fmt::format("; the last one went to the wait of stream {} {}", stuck.taken_by->stream.index,
                               before(node_behind(*stuck.taken_by)));
      }
      Violation& v = add(Kind::unmatched_wait, std::move(message));
      v.first = node_before(stuck.wait);
      v.second = node_behind(stuck.wait);
      v.streams = {s};
    }
    // Each stream waits for one other: follow to the circles.
    std::vector<std::uint8_t> state(count, 0);  // 1 on the way, 2 done
    for (std::size_t start = 0; start < count; ++start) {
      std::vector<PhysicalStreamId> way;
      std::optional<PhysicalStreamId> at = PhysicalStreamId(start);
      while (at && state[at->index] == 0 && stuck_at[at->index] != nullptr) {
        state[at->index] = 1;
        way.push_back(*at);
        at = waits_for[at->index];
      }
      if (at && state[at->index] == 1) {
        const auto first = std::find(way.begin(), way.end(), *at);
        explain_circle(stuck_at, {first, way.end()});
      }
      for (const PhysicalStreamId s : way) state[s.index] = 2;
    }
  }

  void explain_circle(const std::vector<const ReplayOutcome::Stuck*>& stuck_at, std::vector<PhysicalStreamId> circle) {
    std::string message;
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const ReplayOutcome::Stuck& stuck = *stuck_at[circle[i].index];
      message += fmt::format("{}stream {} waits {}, {}, for event e{} of stream {}", i == 0 ? "" : "; ", circle[i].index,
                             behind(node_before(stuck.wait)), before(node_behind(stuck.wait)), stuck.event.index,
                             circle[(i + 1) % circle.size()].index);
      if (stuck.taken_by) {
        message += fmt::format(" (an earlier record went to the wait of stream {} {})", stuck.taken_by->stream.index,
                               before(node_behind(*stuck.taken_by)));
      }
    }
    Violation& v = add(Kind::deadlock, std::move(message));
    v.first = node_before(stuck_at[circle[0].index]->wait);
    v.second = node_behind(stuck_at[circle[0].index]->wait);
    v.streams = std::move(circle);
  }

  // A schedule with control flow or attached streams.
  void check_control(bool find_redundant) {
    ControlOutcome outcome = replay_control(graph_, schedule_, required_);
    for (Violation& v : outcome.violations) report_.violations.push_back(std::move(v));
    std::vector<ReplayOutcome::Race> races;
    for (const ControlOutcome::Race& r : outcome.races) races.push_back({r.requirement, r.second, r.reversed});
    explain_races(races);
    check_limits();
    if (find_redundant && report_.ok()) report_.redundant = redundant_waits(graph_, schedule_, required_, outcome);
  }

  void explain_races(std::vector<ReplayOutcome::Race> races) {
    if (races.empty()) return;
    IdVec<NodeId, std::uint32_t> rank(graph_.node_count(), 0);
    for (std::size_t i = 0; i < graph_.order().size(); ++i) rank[graph_.order()[i]] = static_cast<std::uint32_t>(i);
    IdVec<NodeId, std::uint32_t> stream_of(graph_.node_count(), 0);
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      for (const Task& t : tasks(s)) {
        if (t.kind == Task::Kind::launch) stream_of[t.node()] = s.index;
        if (t.is_control()) stream_of[schedule_.controls[t.index].node] = s.index;
      }
    }
    const auto between = [&](const ReplayOutcome::Race& r) {
      const std::uint32_t a = rank[required_.items[r.requirement].first], b = rank[required_.items[r.requirement].second];
      return a < b ? b - a : a - b;
    };
    std::stable_sort(races.begin(), races.end(), [&](const ReplayOutcome::Race& a, const ReplayOutcome::Race& b) {
      return std::pair(between(a), a.requirement) < std::pair(between(b), b.requirement);
    });
    for (const ReplayOutcome::Race& race : races) {
      const Requirement& r = required_.items[race.requirement];
      const PhysicalStreamId from(stream_of[r.first]), to = race.second.stream;
      std::string what;
      switch (r.kind) {
        case Requirement::Kind::data:
          what = fmt::format("{} on stream {} reads {}, which {} writes on stream {}", name(r.second), to.index,
                             quote_name(graph_.name(r.value)), name(r.first), from.index);
          break;
        case Requirement::Kind::control:
          what = fmt::format("{} on stream {} must run after {} on stream {}", name(r.second), to.index, name(r.first), from.index);
          break;
        case Requirement::Kind::buffer:
          what = fmt::format("{} on stream {} writes {} over a buffer that {} uses on stream {}", name(r.second), to.index,
                             quote_name(graph_.name(r.value)), name(r.first), from.index);
          break;
      }
      Violation& v = add(Kind::race, what + (race.reversed ? ", but the schedule runs it earlier" : ", and nothing orders them"));
      v.first = r.first;
      v.second = r.second;
      v.streams = from == to ? std::vector{from} : std::vector{from, to};
      if (race.reversed) continue;  // no wait can repair that
      v.missing_from = r.first;
      v.missing_to = r.second;
    }
  }

  void explain_reuse(const ReplayOutcome::Reuse& r) {
    std::string message;
    switch (r.kind) {
      case ReplayOutcome::Reuse::Kind::record_unread:
        message = fmt::format("event e{} is recorded again by stream {} {} while no wait has taken the record of stream {} {}", r.event.index,
                              r.later.stream.index, behind(node_before(r.later)), r.earlier.stream.index, behind(node_before(r.earlier)));
        break;
      case ReplayOutcome::Reuse::Kind::record_early:
        message = fmt::format("event e{} is recorded again by stream {} {}, perhaps before the wait of stream {} {} has taken the record before it",
                              r.event.index, r.later.stream.index, behind(node_before(r.later)), r.earlier.stream.index,
                              before(node_behind(r.earlier)));
        break;
      case ReplayOutcome::Reuse::Kind::waits_unordered:
        message = fmt::format("the wait for event e{} of stream {} {} may take the record meant for the wait of stream {} {}", r.event.index,
                              r.later.stream.index, before(node_behind(r.later)), r.earlier.stream.index, before(node_behind(r.earlier)));
        break;
    }
    Violation& v = add(Kind::event_reuse, std::move(message));
    const bool records = r.kind == ReplayOutcome::Reuse::Kind::record_unread;
    v.first = records ? node_before(r.earlier) : node_behind(r.earlier);
    v.second = r.kind == ReplayOutcome::Reuse::Kind::waits_unordered ? node_behind(r.later) : node_before(r.later);
    v.streams = r.earlier.stream == r.later.stream ? std::vector{r.later.stream} : std::vector{r.earlier.stream, r.later.stream};
  }

  void check_limits() {
    if (target_ == nullptr) return;
    const Limits& limits = target_->limits;
    if (schedule_.streams.size() > limits.streams) {
      add(Kind::limit, fmt::format("{} streams, target {} has {}", schedule_.streams.size(), target_->name, limits.streams));
    }
    const bool notify = schedule_.event_kind == EventKind::notify;
    const std::uint32_t most = notify ? limits.notifies : limits.events;
    if (schedule_.event_count > most) {
      add(Kind::limit, fmt::format("{} {}, target {} has {}", schedule_.event_count, notify ? "notifies" : "events", target_->name, most));
    }
    if (limits.tasks_per_stream == 0xffffffffu) return;
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(schedule_.streams.size())) {
      const std::uint32_t room = schedule_.streams[s].huge ? limits.tasks_per_huge_stream : limits.tasks_per_stream;
      std::uint64_t held = 0;
      for (const Task& t : tasks(s)) held += t.kind == Task::Kind::launch ? device_tasks(t.node()) : 1;
      if (held <= room) continue;
      add(Kind::limit, fmt::format("stream {} holds {} tasks, a {}stream of target {} holds {}", s.index, held,
                                   schedule_.streams[s].huge ? "huge " : "", target_->name, room)).streams = {s};
    }
  }

  // What a kernel becomes on the device: the target's first row for its type.
  std::uint32_t device_tasks(NodeId n) {
    if (tasks_of_type_.empty()) tasks_of_type_.assign(graph_.strings().size(), 0);
    std::uint32_t& count = tasks_of_type_[graph_.type_id(n).index];
    if (count != 0) return count;
    return count = std::max(1u, target_->tasks_of(graph_.type(n)));
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Target* target_;
  const std::span<const Requirement> extra_;
  static constexpr std::uint8_t kOther = 4;  // a control task or an attached part
  std::vector<std::uint32_t> tasks_of_type_;  // by type id; 0 until asked, empty without limits
  bool engines_asked_ = false;
  IdVec<NodeId, EngineId> engines_;  // empty until a node is missing
  IdVec<NodeId, std::uint8_t> launched_;     // 1, 2 = more than once, kOther: flags
  bool needs_regions_ = false;               // control flow or attached streams
  RequirementList required_;
  CheckReport report_;
};

}  // namespace

CheckReport check(const Graph& graph, const Schedule& schedule, const Target* target, std::span<const Requirement> extra,
                  bool find_redundant) {
  return Checker(graph, schedule, target, extra).run(find_redundant);
}

}  // namespace millstream
