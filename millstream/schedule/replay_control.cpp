// SPDX-License-Identifier: Apache-2.0
// Positions are 1 for "started" and i + 2 for "task i done", on physical streams and in the current iteration.
//
// A clock says less than is known: behind a branch, what only one arm ran has the other arm's minimum, 0. So a
// task whose region the reader lacks is looked up once more where the ways met (Join): it is done if it is on
// every way that it can have run on.
#include "millstream/schedule/replay_control.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/schedule/regions.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;
using Clock = std::vector<std::uint32_t>;

class ControlReplay {
 public:
  ControlReplay(const Graph& graph, const Schedule& schedule, const RequirementList& required, std::optional<TaskRef> ignore)
      : graph_(graph),
        schedule_(schedule),
        required_(required),
        ignore_(ignore),
        width_(static_cast<std::uint32_t>(schedule.streams.size())),
        rank_(graph.node_count(), 0),
        first_part_(graph.node_count(), kNone),
        parts_left_(graph.node_count(), 0),
        events_(schedule.event_count),
        lanes_(width_) {
    for (std::size_t i = 0; i < graph.order().size(); ++i) rank_[graph.order()[i]] = static_cast<std::uint32_t>(i);
  }

  ControlOutcome run() {
    read();
    if (!out_.violations.empty()) return std::move(out_);
    for (std::uint32_t s = 0; s < width_; ++s) {
      if (lanes_[s].starters == 0) begin(s, {{RegionId(0), Clock(width_, 0)}});
    }
    while (!ready_.empty()) {
      const std::uint32_t s = ready_.top().second;
      ready_.pop();
      advance(s);
    }
    explain_stuck();
    judge_unread();
    judge_restarts();
    judge_counts();
    return std::move(out_);
  }

 private:
  struct Way {  // one of the ways that lead to a label or start
    RegionId region;
    Clock clock;
  };
  struct Join {  // reached once `stream` is at `position`: all before the label is past, or the stream has started
    std::uint32_t stream = 0;
    std::uint32_t position = 0;
    std::vector<Way> ways;
  };
  struct Done {  // a task that has been walked
    std::uint32_t stream = 0;
    std::uint32_t position = 0;
    RegionId region;
  };
  struct Part {
    Done done;
    std::uint32_t next = kNone;
  };
  struct Open {
    Done record;
    Clock clock;
    std::vector<RegionId> takers;
  };
  struct Event {
    std::vector<Open> open;
    std::vector<Done> taken;
    std::vector<std::uint32_t> parked;
    bool reported = false;
  };
  struct Loop {
    std::uint32_t first = 0, last = 0;  // of a loop by jumps: indices on its stream
    std::set<std::uint32_t> exits;      // labels
    std::optional<NodeId> activator;    // of a loop by activation
    std::vector<bool> members;          // its streams
    std::vector<std::uint32_t> joins;
    std::vector<Way> ways;              // back, and out
    struct Back {
      Done at;
      Clock clock;
    };
    std::vector<Back> backs;
  };
  struct Lane {
    std::uint32_t starters = 0;  // not yet walked; loop activations do not count
    std::vector<Way> ways;
    std::vector<TaskRef> started_by;
    bool begun = false, alive = false;
    std::uint32_t at = 0;
    std::uint32_t next_node = 0;
    RegionId region;
    RegionId base;
    Clock now;
    std::vector<std::uint32_t> loops;     // by jumps, by first
    std::vector<RegionId> regions;        // by task; kDead where it never runs
  };
  static constexpr RegionId dead() { return RegionId(kNone); }

  const std::vector<Task>& tasks(std::uint32_t s) const { return schedule_.streams[PhysicalStreamId(s)].tasks; }
  static TaskRef ref(std::uint32_t s, std::uint32_t i) { return {PhysicalStreamId(s), i}; }
  const std::vector<std::uint32_t>& targets(const Task& t) const { return schedule_.controls[t.index].targets; }
  // A part that its kernel orders has ended when the kernel has.
  static bool has_node(const Task& t) { return t.kind != Task::Kind::record && t.kind != Task::Kind::wait && t.kind != Task::Kind::self_attached; }
  NodeId node_of(const Task& t) const { return t.is_control() ? schedule_.controls[t.index].node : t.node(); }
  std::string name(NodeId n) const { return quote_name(graph_.name(n)); }
  bool is_loop(NodeId n) const {
    const auto& roles = graph_.annotations().roles.get(n);
    return roles && roles->loop_active;
  }
  Violation& add(Violation::Kind kind, std::string message, std::uint32_t stream) {
    out_.violations.push_back({});
    Violation& v = out_.violations.back();
    v.kind = kind;
    v.message = std::move(message);
    v.streams = {PhysicalStreamId(stream)};
    return v;
  }
  std::optional<NodeId> node_before(std::uint32_t s, std::uint32_t i) const {
    while (i > 0 && !has_node(tasks(s)[i])) --i;
    return has_node(tasks(s)[i]) ? std::optional(node_of(tasks(s)[i])) : std::nullopt;
  }
  std::optional<NodeId> node_behind(std::uint32_t s, std::uint32_t i) const {
    while (i < tasks(s).size() && !has_node(tasks(s)[i])) ++i;
    return i < tasks(s).size() ? std::optional(node_of(tasks(s)[i])) : std::nullopt;
  }
  // "behind a, before b" of a task of stream s.
  std::string place(std::uint32_t s, std::uint32_t i) const {
    std::string out = "at its start";
    for (std::uint32_t k = std::min<std::uint32_t>(i + 1, static_cast<std::uint32_t>(tasks(s).size())); k-- > 0;) {
      if (!has_node(tasks(s)[k])) continue;
      out = "behind " + name(node_of(tasks(s)[k]));
      break;
    }
    for (std::uint32_t k = i + 1; k < tasks(s).size(); ++k) {
      if (has_node(tasks(s)[k])) return out + ", before " + name(node_of(tasks(s)[k]));
    }
    return out;
  }

  // -- labels, starts and loops

  void read() {
    std::map<std::uint32_t, std::vector<std::uint32_t>> loop_targets;  // by node of a loop activation
    for (std::uint32_t s = 0; s < width_; ++s) {
      lanes_[s].regions.assign(tasks(s).size(), dead());
      for (std::uint32_t i = 0; i < tasks(s).size(); ++i) {
        const Task& t = tasks(s)[i];
        if (has_node(t)) ++parts_left_[node_of(t)];
        if (t.kind == Task::Kind::stream_switch) switches_ = true;
        if (t.kind == Task::Kind::label) {
          for (const std::uint32_t l : targets(t)) {
            if (!labels_.try_emplace(l, ref(s, i)).second) {
              add(Violation::Kind::limit, fmt::format("label L{} stands twice, again on stream {} at {}", l, s, name(node_of(t))), s);
            }
          }
        }
        if (t.kind != Task::Kind::activate && t.kind != Task::Kind::stream_switch) continue;
        for (const std::uint32_t target : targets(t)) {
          if (target >= width_) {
            add(Violation::Kind::limit, fmt::format("{} starts stream {}, but there are {}", name(node_of(t)), target, width_), s);
          } else if (target == s) {
            add(Violation::Kind::start, fmt::format("{} activates its own stream {}", name(node_of(t)), s), s).first = node_of(t);
          } else if (is_loop(node_of(t))) {
            loop_targets[node_of(t).index].push_back(target);
          } else {
            ++lanes_[target].starters;
            lanes_[target].started_by.push_back(ref(s, i));
          }
        }
      }
    }
    for (std::uint32_t s = 0; s < width_; ++s) {
      for (std::uint32_t i = 0; i < tasks(s).size(); ++i) {
        const Task& t = tasks(s)[i];
        if (t.kind != Task::Kind::jump && t.kind != Task::Kind::branch) continue;
        for (const std::uint32_t l : targets(t)) {
          const auto at = labels_.find(l);
          if (at == labels_.end() || at->second.stream.index != s) {
            add(Violation::Kind::start, fmt::format("{} goes to label L{}, which stream {} does not have", name(node_of(t)), l, s), s)
                .first = node_of(t);
          } else if (at->second.index <= i) {
            add_jump_loop(s, at->second.index, i);
          }
        }
      }
    }
    if (!out_.violations.empty()) return;
    for (std::uint32_t s = 0; s < width_; ++s) find_exits(s);
    for (const auto& [node, list] : loop_targets) add_active_loop(NodeId(node), list);
    find_unreachable();
  }

  // Ways back to one label are one loop.
  void add_jump_loop(std::uint32_t s, std::uint32_t first, std::uint32_t last) {
    for (const std::uint32_t l : lanes_[s].loops) {
      if (loops_[l].first == first) {
        loops_[l].last = std::max(loops_[l].last, last);
        return;
      }
    }
    loops_.emplace_back();
    loops_.back().first = first;
    loops_.back().last = last;
    lanes_[s].loops.push_back(static_cast<std::uint32_t>(loops_.size() - 1));
  }
  static bool holds(const Loop& loop, std::uint32_t i) { return loop.first <= i && i <= loop.last; }

  void find_exits(std::uint32_t s) {
    if (lanes_[s].loops.empty()) return;
    std::sort(lanes_[s].loops.begin(), lanes_[s].loops.end(),
              [&](std::uint32_t a, std::uint32_t b) { return loops_[a].first < loops_[b].first; });
    // Per jump the loops around it: a stack, so that the cost is that of the nesting.
    std::vector<std::uint32_t> around;
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < tasks(s).size(); ++i) {
      while (!around.empty() && loops_[around.back()].last < i) around.pop_back();
      while (next < lanes_[s].loops.size() && loops_[lanes_[s].loops[next]].first <= i) around.push_back(lanes_[s].loops[next++]);
      const Task& t = tasks(s)[i];
      if (t.kind != Task::Kind::jump && t.kind != Task::Kind::branch) continue;
      for (const std::uint32_t l : targets(t)) {
        for (const std::uint32_t loop : around) {
          if (!holds(loops_[loop], labels_.at(l).index)) loops_[loop].exits.insert(l);
        }
      }
    }
  }

  void add_active_loop(NodeId activator, const std::vector<std::uint32_t>& list) {
    Loop loop;
    loop.activator = activator;
    loop.members.assign(width_, false);
    std::vector<std::uint32_t> todo = list;
    while (!todo.empty()) {
      const std::uint32_t s = todo.back();
      todo.pop_back();
      if (loop.members[s]) continue;
      loop.members[s] = true;
      for (const Task& t : tasks(s)) {
        if (t.kind == Task::Kind::activate || t.kind == Task::Kind::stream_switch) todo.insert(todo.end(), targets(t).begin(), targets(t).end());
      }
    }
    active_loops_.push_back(static_cast<std::uint32_t>(loops_.size()));
    loops_.push_back(std::move(loop));
  }

  void find_unreachable() {
    std::vector<bool> reached(width_, false);
    std::vector<std::uint32_t> todo;
    for (std::uint32_t s = 0; s < width_; ++s) {
      if (lanes_[s].starters == 0) todo.push_back(s);
    }
    while (!todo.empty()) {
      const std::uint32_t s = todo.back();
      todo.pop_back();
      if (reached[s]) continue;
      reached[s] = true;
      for (const Task& t : tasks(s)) {
        if (t.kind == Task::Kind::activate || t.kind == Task::Kind::stream_switch) todo.insert(todo.end(), targets(t).begin(), targets(t).end());
      }
    }
    for (std::uint32_t s = 0; s < width_; ++s) {
      if (!reached[s]) report_never_started(s);
    }
  }
  void report_never_started(std::uint32_t s) {
    std::string by;
    for (const TaskRef& r : lanes_[s].started_by) {
      by += fmt::format("{}{} on stream {}", by.empty() ? "" : ", ", name(node_of(tasks(r.stream.index)[r.index])), r.stream.index);
    }
    std::string first = "empty";
    std::optional<NodeId> node;
    for (const Task& t : tasks(s)) {
      if (!has_node(t)) continue;
      node = node_of(t);
      first = "first node " + name(*node);
      break;
    }
    add(Violation::Kind::start, fmt::format("stream {} ({}) is never started; it waits for {}, which no stream that starts with the model reaches",
                                            s, first, by), s).first = node;
  }

  // -- the walk

  std::uint32_t key(std::uint32_t s) {
    Lane& lane = lanes_[s];
    const std::vector<Task>& list = tasks(s);
    if (lane.at < list.size() && list[lane.at].kind == Task::Kind::record) return 0;
    lane.next_node = std::max(lane.next_node, lane.at);
    while (lane.next_node < list.size() && !has_node(list[lane.next_node])) ++lane.next_node;
    return lane.next_node == list.size() ? kNone : rank_[node_of(list[lane.next_node])];
  }
  void enqueue(std::uint32_t s) { ready_.push({key(s), s}); }

  static Clock lowest(const std::vector<Way>& ways) {
    Clock out = ways.front().clock;
    for (std::size_t w = 1; w < ways.size(); ++w) {
      for (std::size_t s = 0; s < out.size(); ++s) out[s] = std::min(out[s], ways[w].clock[s]);
    }
    return out;
  }
  // The way that falls through is at the join already; it must not lead there again.
  void add_join(std::uint32_t s, std::uint32_t position, std::vector<Way> ways) {
    for (Way& w : ways) w.clock[s] = std::min(w.clock[s], position - 1);
    joins_.push_back({s, position, std::move(ways)});
  }
  RegionId meet(std::uint32_t s, std::uint32_t position, std::vector<Way> ways) {
    std::vector<RegionId> parts;
    for (const Way& w : ways) parts.push_back(w.region);
    const RegionId region = regions_.join(parts);
    if (ways.size() < 2) return region;
    const auto id = static_cast<std::uint32_t>(joins_.size());
    std::set<std::uint32_t> gone;
    for (const RegionId p : parts) {
      for (const Condition& c : regions_[p].when) {
        const auto& when = regions_[region].when;
        if (std::find(when.begin(), when.end(), c) == when.end()) gone.insert(c.decision);
      }
    }
    for (const std::uint32_t d : gone) joins_of_[d].push_back(id);
    add_join(s, position, std::move(ways));
    return region;
  }

  void begin(std::uint32_t s, std::vector<Way> ways) {
    Lane& lane = lanes_[s];
    if (ways.empty()) return;  // nothing that starts it ever runs
    for (std::size_t a = 0; a < ways.size(); ++a) {
      for (std::size_t b = a + 1; b < ways.size(); ++b) {
        if (regions_.exclusive(ways[a].region, ways[b].region)) continue;
        out_.unsafe_start = true;
        add(Violation::Kind::start, fmt::format("stream {} is started twice, {}", s, starters_text(s)), s);
        a = b = ways.size();  // once is enough
      }
    }
    lane.now = lowest(ways);
    lane.region = meet(s, 1, std::move(ways));
    for (const std::uint32_t l : active_loops_) {
      if (loops_[l].members[s]) lane.region = regions_.enter_loop(lane.region, l);
    }
    lane.base = lane.region;
    lane.now[s] = 1;
    lane.begun = lane.alive = true;
    enqueue(s);
  }
  std::string starters_text(std::uint32_t s) const {
    std::string out;
    for (const TaskRef& r : lanes_[s].started_by) {
      out += fmt::format("{}by {} on stream {}", out.empty() ? "" : " and ", name(node_of(tasks(r.stream.index)[r.index])), r.stream.index);
    }
    return out;
  }
  // A starter of t has been walked; it runs in `region` or never.
  void started(std::uint32_t t, std::optional<RegionId> region, const Clock& clock) {
    Lane& lane = lanes_[t];
    if (region) lane.ways.push_back({*region, clock});
    if (--lane.starters != 0) return;
    begin(t, std::move(lane.ways));
    if (!lane.begun) kill(t);
  }
  // Nothing of stream t ever runs: what it would start is not started by it either.
  void kill(std::uint32_t t) {
    lanes_[t].begun = true;
    enqueue(t);
  }

  void advance(std::uint32_t s) {
    Lane& lane = lanes_[s];
    while (lane.at < tasks(s).size()) {
      const std::uint32_t i = lane.at;
      const Task task = tasks(s)[i];
      if (task.kind == Task::Kind::label) arrive(s, i, task);
      if (!lane.alive) {
        if (task.kind == Task::Kind::activate || task.kind == Task::Kind::stream_switch) {
          if (!is_loop(node_of(task))) {
            for (const std::uint32_t t : targets(task)) started(t, std::nullopt, lane.now);
          }
        }
        ++lane.at;
        continue;
      }
      lane.regions[i] = lane.region;
      if (task.kind == Task::Kind::wait && !wait(s, i, task.event())) return;
      if (task.kind == Task::Kind::record) record(s, i, task.event());
      if (has_node(task)) need(s, i, node_of(task));
      ++lane.at;
      lane.now[s] = i + 2;
      switch (task.kind) {
        case Task::Kind::jump: go(s, i, targets(task).front(), lane.region); lane.alive = false; break;
        case Task::Kind::branch: branch(s, i, task); break;
        case Task::Kind::activate: activate(s, i, task); break;
        case Task::Kind::stream_switch: decide(s, task); break;
        default: break;
      }
      if (lane.at < tasks(s).size() && !ready_.empty() && ready_.top() < std::pair(key(s), s)) {
        enqueue(s);
        return;
      }
    }
  }

  void arrive(std::uint32_t s, std::uint32_t i, const Task& task) {
    Lane& lane = lanes_[s];
    std::vector<Way> ways;
    if (lane.alive) ways.push_back({lane.region, lane.now});
    for (const std::uint32_t l : targets(task)) {
      const auto at = ways_to_.find(l);
      if (at == ways_to_.end()) continue;
      for (Way& w : at->second) ways.push_back(std::move(w));
      ways_to_.erase(at);
    }
    if (ways.empty()) return;
    lane.now = lowest(ways);
    lane.region = meet(s, i + 1, std::move(ways));
    lane.now[s] = i + 1;
    lane.alive = true;
    for (const std::uint32_t l : lane.loops) {
      if (loops_[l].first == i) lane.region = regions_.enter_loop(lane.region, l);
      // Behind a loop: where its last iteration is known.
      for (const std::uint32_t label : targets(task)) {
        if (loops_[l].exits.count(label) == 0) continue;
        loops_[l].joins.push_back(static_cast<std::uint32_t>(joins_.size()));
        add_join(s, i + 1, loops_[l].ways);
      }
    }
  }

  // The way from task i to a label in a region.
  void go(std::uint32_t s, std::uint32_t i, std::uint32_t label, RegionId region) {
    Lane& lane = lanes_[s];
    const std::uint32_t to = labels_.at(label).index;
    for (const std::uint32_t l : lane.loops) {
      Loop& loop = loops_[l];
      if (!holds(loop, i)) continue;
      if (holds(loop, to) && !(to == loop.first && to <= i)) continue;
      loop.ways.push_back({region, lane.now});
      if (to == loop.first) {
        loop.backs.push_back({{s, i + 2, region}, lane.now});
        continue;
      }
      if (loop.exits.size() > 1) {  // which of them, nobody knows before
        const std::uint32_t which = regions_.add_decision(2, {});
        region = *regions_.narrow(regions_.leave_loop(region, l), which, 1);
      } else {
        region = regions_.leave_loop(region, l);
      }
    }
    if (to > i) ways_to_[label].push_back({region, lane.now});
  }

  void branch(std::uint32_t s, std::uint32_t i, const Task& task) {
    Lane& lane = lanes_[s];
    const std::vector<std::uint32_t>& list = targets(task);
    const std::uint32_t d = regions_.add_decision(static_cast<std::uint32_t>(list.size()), regions_[lane.region].loops);
    for (std::uint32_t k = 0; k < list.size(); ++k) go(s, i, list[k], *regions_.narrow(lane.region, d, k));
    lane.alive = false;
  }

  void activate(std::uint32_t s, std::uint32_t i, const Task& task) {
    Lane& lane = lanes_[s];
    const NodeId n = node_of(task);
    if (!is_loop(n)) {
      for (const std::uint32_t t : targets(task)) started(t, lane.region, lane.now);
      return;
    }
    for (const std::uint32_t l : active_loops_) {
      if (loops_[l].activator != n) continue;
      // Its tasks, one a stream, are one way back: what starts again waits for all that do (the loop pairs).
      auto& backs = loops_[l].backs;
      if (!backs.empty() && backs.back().at.stream == s && backs.back().at.position + 1 == i + 2) backs.pop_back();
      backs.push_back({{s, i + 2, lane.region}, lane.now});
    }
  }

  void decide(std::uint32_t s, const Task& task) {
    Lane& lane = lanes_[s];
    const std::vector<std::uint32_t>& list = targets(task);
    const NodeId n = node_of(task);
    if (list.size() != 1 || graph_.type(n) == "StreamSwitchN") {  // always goes to one of them
      const std::uint32_t d = regions_.add_decision(static_cast<std::uint32_t>(list.size()), regions_[lane.region].loops);
      for (std::uint32_t k = 0; k < list.size(); ++k) started(list[k], regions_.narrow(lane.region, d, k), lane.now);
      return;
    }
    // The two sides of one predicate are one decision in an iteration.
    std::vector<std::uint32_t> predicate = regions_[lane.region].loops;
    predicate.push_back(kNone);
    for (const InputRef in : graph_.inputs(n)) predicate.push_back(in.get() ? in.get()->index : kNone);
    if (graph_.inputs(n).empty()) predicate.insert(predicate.end(), {kNone, n.index});
    const auto [at, fresh] = predicates_.try_emplace(std::move(predicate), 0);
    if (fresh) at->second = regions_.add_decision(2, regions_[lane.region].loops);
    const auto& roles = graph_.annotations().roles.get(n);
    const std::uint32_t side = roles && roles->true_branch ? 1 : 0;
    started(list.front(), regions_.narrow(lane.region, at->second, side), lane.now);
    const auto rest = regions_.narrow(lane.region, at->second, 1 - side);
    lane.alive = rest.has_value();
    if (rest) lane.region = *rest;
  }

  // -- what is known

  bool known(const Done& u, const Clock& clock, RegionId at) const {
    if (clock[u.stream] >= u.position) return true;
    if (joins_.empty()) return false;
    const Region& region = regions_[u.region];
    const auto through = [&](std::uint32_t id) {
      const Join& join = joins_[id];
      if (clock[join.stream] < join.position) return false;
      bool met = false;
      for (const Way& w : join.ways) {
        if (regions_.exclusive(u.region, w.region)) continue;
        met = true;
        if (!known(u, w.clock, w.region)) return false;
      }
      return met;
    };
    const auto& loops = regions_[at].loops;
    for (const std::uint32_t l : region.loops) {
      if (std::find(loops.begin(), loops.end(), l) != loops.end()) continue;
      if (std::any_of(loops_[l].joins.begin(), loops_[l].joins.end(), through)) return true;
    }
    const auto& when = regions_[at].when;
    for (const Condition& c : region.when) {
      if (std::find(when.begin(), when.end(), c) != when.end()) continue;
      const auto found = joins_of_.find(c.decision);
      if (found != joins_of_.end() && std::any_of(found->second.begin(), found->second.end(), through)) return true;
    }
    return false;
  }

  bool is_activation(const Done& d) const { return tasks(d.stream)[d.position - 2].kind == Task::Kind::activate; }
  // A StreamActive has a task a stream: the one that leads here counts.
  bool led_by_activation(NodeId first, const Lane& lane) const {
    for (std::uint32_t p = first_part_[first]; p != kNone; p = parts_[p].next) {
      if (is_activation(parts_[p].done) && known(parts_[p].done, lane.now, lane.region)) return true;
    }
    return false;
  }

  void need(std::uint32_t s, std::uint32_t i, NodeId n) {
    const Lane& lane = lanes_[s];
    const Done here{s, i + 2, lane.region};
    for (std::uint32_t r = required_.begin[n.index]; r < required_.begin[n.index + 1]; ++r) {
      const NodeId first = required_.items[r].first;
      if (led_by_activation(first, lane)) continue;
      if (parts_left_[first] != 0) unseen_[first.index].push_back({r, here});
      for (std::uint32_t p = first_part_[first]; p != kNone; p = parts_[p].next) {
        const Done& u = parts_[p].done;
        if (known(u, lane.now, lane.region) || regions_.exclusive(u.region, lane.region)) continue;
        out_.races.push_back({r, ref(u.stream, u.position - 2), ref(s, i), false});
      }
    }
    parts_.push_back({here, first_part_[n]});
    first_part_[n] = static_cast<std::uint32_t>(parts_.size() - 1);
    --parts_left_[n];
    // A part that comes late, as on an attached stream, must still precede what has been walked.
    const auto late = unseen_.find(n.index);
    if (late == unseen_.end()) return;
    for (const auto& [r, second] : late->second) {
      if (regions_.exclusive(second.region, lane.region)) continue;
      out_.races.push_back({r, ref(s, i), ref(second.stream, second.position - 2), known(second, lane.now, lane.region)});
    }
  }

  void report_reuse(EventId e, std::string message, std::uint32_t s) {
    if (events_[e].reported) return;
    events_[e].reported = true;
    add(Violation::Kind::event_reuse, std::move(message), s);
  }

  bool wait(std::uint32_t s, std::uint32_t i, EventId e) {
    Lane& lane = lanes_[s];
    Event& event = events_[e];
    const auto fits = [&](const Open& o) {
      return !regions_.exclusive(o.record.region, lane.region) &&
             std::all_of(o.takers.begin(), o.takers.end(), [&](RegionId r) { return regions_.exclusive(r, lane.region); });
    };
    const auto found = std::find_if(event.open.begin(), event.open.end(), fits);
    if (found == event.open.end()) {
      event.parked.push_back(s);
      return false;
    }
    const Done here{s, i + 2, lane.region};
    for (const Done& w : event.taken) {
      if (regions_.exclusive(w.region, lane.region) || known(w, lane.now, lane.region)) continue;
      report_reuse(e, fmt::format("the wait for event e{} of stream {} {} may take the record meant for the wait of stream {} {}", e.index, s,
                                  place(s, i), w.stream, place(w.stream, w.position - 2)), s);
    }
    judge_regions(e, found->record, here);
    std::erase_if(event.taken, [&](const Done& w) { return regions_.implies(w.region, lane.region); });
    event.taken.push_back(here);
    if (ignore_ == ref(s, i)) {
      ignored_record_ = ref(found->record.stream, found->record.position - 2);
    } else {
      for (std::uint32_t t = 0; t < width_; ++t) lane.now[t] = std::max(lane.now[t], found->clock[t]);
    }
    const std::uint32_t rs = found->record.stream, ri = found->record.position - 2;
    const bool forks = i + 1 < tasks(s).size() && next_is_attached(s, i);
    const bool joins = ri > 0 && previous_is_attached(rs, ri);
    if (!forks && !joins) out_.waits.push_back(ref(s, i));
    found->takers.push_back(lane.region);
    if (regions_.implies(found->record.region, lane.region)) event.open.erase(found);
    return true;
  }
  // The waits directly before an attached part, the records directly behind one.
  bool next_is_attached(std::uint32_t s, std::uint32_t i) const {
    while (++i < tasks(s).size() && tasks(s)[i].kind == Task::Kind::wait) {}
    return i < tasks(s).size() && tasks(s)[i].kind == Task::Kind::attached;
  }
  bool previous_is_attached(std::uint32_t s, std::uint32_t i) const {
    while (i > 0 && tasks(s)[i].kind == Task::Kind::record) --i;
    return tasks(s)[i].kind == Task::Kind::attached;
  }

  // A wait must not be reached where its record is not; in loops both are reached equally often.
  void judge_regions(EventId e, const Done& record, const Done& wait) {
    const bool same = record.region == wait.region;
    const bool inside = regions_[record.region].loops.empty() && regions_.implies(wait.region, record.region);
    if (same || inside) return;
    const bool loops = regions_[record.region].loops != regions_[wait.region].loops;
    Violation& v = add(Violation::Kind::region,
                       fmt::format("the wait for event e{} of stream {} {} and its record on stream {} {} {}", e.index, wait.stream,
                                   place(wait.stream, wait.position - 2), record.stream, place(record.stream, record.position - 2),
                                   loops ? "are not in the same loop" : "do not run under the same conditions"),
                       wait.stream);
    v.streams = {PhysicalStreamId(record.stream), PhysicalStreamId(wait.stream)};
    v.first = node_before(record.stream, record.position - 2);
    v.second = node_behind(wait.stream, wait.position - 2);
  }

  void record(std::uint32_t s, std::uint32_t i, EventId e) {
    Lane& lane = lanes_[s];
    Event& event = events_[e];
    for (const Open& o : event.open) {
      const bool taken = std::any_of(o.takers.begin(), o.takers.end(), [&](RegionId r) { return regions_.implies(lane.region, r); });
      if (taken || regions_.exclusive(o.record.region, lane.region)) continue;
      report_reuse(e, fmt::format("event e{} is recorded again by stream {} {} while no wait has taken the record of stream {} {}", e.index, s,
                                  place(s, i), o.record.stream, place(o.record.stream, o.record.position - 2)), s);
    }
    for (const Done& w : event.taken) {
      if (regions_.exclusive(w.region, lane.region) || known(w, lane.now, lane.region)) continue;
      report_reuse(e, fmt::format("event e{} is recorded again by stream {} {}, perhaps before the wait of stream {} {} has taken the record "
                                  "before it", e.index, s, place(s, i), w.stream, place(w.stream, w.position - 2)), s);
    }
    Open open{{s, i + 2, lane.region}, lane.now, {}};
    open.clock[s] = i + 2;
    event.open.push_back(std::move(open));
    for (const std::uint32_t waiter : event.parked) enqueue(waiter);
    event.parked.clear();
  }

  // -- at the end

  void explain_stuck() {
    for (std::uint32_t s = 0; s < width_; ++s) {
      const Lane& lane = lanes_[s];
      if (!lane.begun || lane.at == tasks(s).size()) continue;
      const EventId e = tasks(s)[lane.at].event();
      std::optional<std::uint32_t> recorder;
      for (std::uint32_t r = 0; r < width_ && !recorder; ++r) {
        for (std::size_t k = lanes_[r].at; k < tasks(r).size(); ++k) {
          if (tasks(r)[k] == Task::record(e)) recorder = r;
        }
      }
      std::string message = fmt::format("stream {} waits for event e{} {}", s, e.index, place(s, lane.at));
      if (recorder) {
        message += fmt::format(", and stream {}, which records it, never comes that far", *recorder);
      } else {
        message += recorded(e) ? ", and no record of it is left" : ", and it is never sent [E05]";
      }
      add(recorder ? Violation::Kind::deadlock : Violation::Kind::unmatched_wait, std::move(message), s);
    }
  }

  bool recorded(EventId e) const {
    for (std::uint32_t s = 0; s < width_; ++s) {
      if (std::find(tasks(s).begin(), tasks(s).end(), Task::record(e)) != tasks(s).end()) return true;
    }
    return false;
  }

  // A record in a loop that no wait takes meets itself in the next iteration.
  void judge_unread() {
    for (const EventId e : ids<EventId>(events_.size())) {
      for (const Open& o : events_[e].open) {
        if (!o.takers.empty() || regions_[o.record.region].loops.empty()) continue;
        report_reuse(e, fmt::format("event e{} is recorded in every iteration by stream {} {}, and no wait takes it", e.index, o.record.stream,
                                    place(o.record.stream, o.record.position - 2)), o.record.stream);
      }
    }
  }

  // Everything a loop starts has ended where it goes back.
  void judge_restarts() {
    if (!out_.violations.empty()) return;
    for (std::uint32_t l = 0; l < loops_.size(); ++l) {
      for (const auto& back : loops_[l].backs) {
        for (std::uint32_t t = 0; t < width_; ++t) {
          const Lane& lane = lanes_[t];
          if (!lane.begun || tasks(t).empty()) continue;
          const auto& around = regions_[lane.base].loops;
          if (std::find(around.begin(), around.end(), l) == around.end()) continue;
          for (auto i = static_cast<std::uint32_t>(tasks(t).size()); i-- > 0;) {
            if (back.clock[t] >= i + 2) break;
            if (tasks(t)[i].kind == Task::Kind::self_attached) continue;
            if (ignored_record_ == ref(t, i)) continue;  // goes with its wait
            if (lane.regions[i] == dead() || regions_.exclusive(lane.regions[i], back.at.region)) continue;
            if (known({t, i + 2, lane.regions[i]}, back.clock, back.at.region)) continue;
            const Task& from = tasks(back.at.stream)[back.at.position - 2];
            out_.unsafe_start = true;
            Violation& v = add(Violation::Kind::start,
                               fmt::format("stream {} may still run ({}) when {} on stream {} starts the next iteration; that start is lost", t,
                                           place(t, i), name(node_of(from)), back.at.stream), t);
            v.first = node_of(from);
            break;
          }
        }
      }
    }
  }

  // Every node of a scope runs as often as the scope does. With stream switches the graph does not say how often.
  void judge_counts() {
    if (switches_ || !out_.violations.empty()) return;
    IdVec<ScopeId, std::optional<RegionId>> of_scope(graph_.scope_count());
    of_scope[ScopeId(0)] = RegionId(0);
    // What stands before a scope's first label, or closes it, runs as often as what is around the scope.
    std::vector<bool> around(graph_.node_count(), false);
    if (graph_.scope_count() > 1) {
      IdVec<NodeId, RegionId> label(graph_.node_count(), dead());
      for (std::uint32_t s = 0; s < width_; ++s) {
        for (std::uint32_t i = 0; i < tasks(s).size(); ++i) {
          if (tasks(s)[i].kind == Task::Kind::label) label[node_of(tasks(s)[i])] = lanes_[s].regions[i];
        }
      }
      for (const NodeId n : graph_.order()) {
        auto& scope = of_scope[graph_.scope_of(n)];
        if (!scope && label[n] != dead()) scope = label[n];
        const auto& roles = graph_.annotations().roles.get(n);
        around[n.index] = graph_.scope_of(n).index != 0 && ((!scope && graph_.type(n) == "LabelSwitchByIndex") || (roles && roles->end_node));
      }
      for (const ScopeId s : graph_.scopes()) {
        if (!of_scope[s]) of_scope[s] = of_scope[graph_.scope(s).parent];
      }
    }
    for (std::uint32_t s = 0; s < width_; ++s) {
      for (std::uint32_t i = 0; i < tasks(s).size(); ++i) {
        const Task& t = tasks(s)[i];
        if (!has_node(t)) continue;
        const NodeId n = node_of(t);
        const ScopeId scope = graph_.scope_of(n);
        const bool outside = around[n.index] && graph_.type(n) != "NetOutput";
        if (lanes_[s].regions[i] == *of_scope[outside ? graph_.scope(scope).parent : scope]) continue;
        Violation& v = add(Violation::Kind::region,
                           lanes_[s].regions[i] == dead()
                               ? fmt::format("{} on stream {} is never reached", name(n), s)
                               : fmt::format("{} on stream {} does not run whenever, and as often as, its graph {} runs", name(n), s,
                                             quote_name(graph_.scope(graph_.scope_of(n)).name)),
                           s);
        v.first = n;
        return;
      }
    }
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const RequirementList& required_;
  const std::optional<TaskRef> ignore_;
  std::optional<TaskRef> ignored_record_;
  const std::uint32_t width_;
  IdVec<NodeId, std::uint32_t> rank_;
  IdVec<NodeId, std::uint32_t> first_part_;
  IdVec<NodeId, std::uint32_t> parts_left_;  // tasks of the node that have not been walked
  std::vector<Part> parts_;
  IdVec<EventId, Event> events_;
  std::vector<Lane> lanes_;
  std::map<std::uint32_t, TaskRef> labels_;
  std::map<std::uint32_t, std::vector<Way>> ways_to_;  // by label
  bool switches_ = false;
  Regions regions_;
  std::vector<Join> joins_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> joins_of_;  // by decision
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> active_loops_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> predicates_;
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, Done>>> unseen_;  // by first node
  std::priority_queue<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<std::uint32_t, std::uint32_t>>, std::greater<>> ready_;
  ControlOutcome out_;
};

}  // namespace

ControlOutcome replay_control(const Graph& graph, const Schedule& schedule, const RequirementList& required,
                              std::optional<TaskRef> ignore) {
  return ControlReplay(graph, schedule, required, ignore).run();
}

}  // namespace millstream
