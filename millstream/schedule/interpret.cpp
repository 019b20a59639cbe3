// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/interpret.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "millstream/assign/tasks.h"
#include "millstream/graph/dependencies.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

using Kind = Interpretation::Finding::Kind;
constexpr std::size_t kMostRuns = 20000;  // of tasks in one execution: beyond it jumps circle for ever

// The decisions of one execution after another: counts like an odometer whose wheels appear when asked for.
class Decisions {
 public:
  // The decision number `which` of `who`; the same answer whenever it is asked again in this execution.
  std::uint32_t ask(std::uint64_t who, std::uint64_t which, std::uint32_t options) {
    const auto [at, fresh] = known_.try_emplace({who, which}, 0);
    if (!fresh) return at->second;
    if (next_ == wheels_.size()) wheels_.push_back({0, options});
    wheels_[next_].second = options;
    at->second = wheels_[next_++].first;
    return at->second;
  }
  // False when all have been tried.
  bool advance() {
    wheels_.resize(next_);
    known_.clear();
    next_ = 0;
    while (!wheels_.empty() && ++wheels_.back().first >= wheels_.back().second) wheels_.pop_back();
    return !wheels_.empty();
  }
  std::vector<std::uint32_t> so_far() const {
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < next_; ++i) out.push_back(wheels_[i].first);
    return out;
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> known_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wheels_;  // value, options
  std::size_t next_ = 0;
};

class Interpreter {
 public:
  Interpreter(const Graph& graph, const Schedule& schedule, const InterpretOptions& options)
      : graph_(graph), schedule_(schedule), options_(options), tasks_of_(graph.node_count()) {}

  Interpretation run() {
    read_tasks();
    if (!out_.ok()) return std::move(out_);
    find_requirements();
    for (bool more = true; more; more = decisions_.advance()) {
      if (out_.executions == options_.executions) {
        out_.complete = false;
        break;
      }
      execute();
    }
    return std::move(out_);
  }

 private:
  struct Instance {  // one run of one task
    std::size_t task = 0;
    std::uint32_t epoch = 0;  // passes of loop activations before
    std::vector<std::size_t> after;
  };
  struct Stream {
    bool running = false;
    std::size_t at = 0;
    std::uint32_t epoch = 0;
    std::optional<std::size_t> previous;  // instance: last task, or what started the stream
    std::optional<std::size_t> last;      // last instance of the latest run
  };

  std::string name(NodeId n) const { return quote_name(graph_.name(n)); }
  void find(Kind kind, std::string message, std::optional<NodeId> first = {}, std::optional<NodeId> second = {}) {
    for (const auto& f : out_.findings) {
      if (f.message == message) return;
    }
    out_.findings.push_back({kind, std::move(message), first, second, decisions_.so_far()});
  }

  // -- the schedule as one list of tasks

  bool is_loop(NodeId n) const {
    const auto& roles = graph_.annotations().roles.get(n);
    return roles && roles->loop_active;
  }
  NodeId node_of(std::size_t t) const { return task(t).is_control() ? schedule_.controls[task(t).index].node : task(t).node(); }
  bool has_node(std::size_t t) const { return task(t).kind != Task::Kind::record && task(t).kind != Task::Kind::wait; }
  const Task& task(std::size_t t) const { return tasks_[t]; }
  const std::vector<std::uint32_t>& targets(std::size_t t) const { return schedule_.controls[task(t).index].targets; }

  void read_tasks() {
    const std::size_t width = schedule_.streams.size();
    first_.push_back(0);
    head_.assign(width, true);
    for (const PhysicalStreamId s : ids<PhysicalStreamId>(width)) {
      for (const Task& t : schedule_.streams[s].tasks) {
        if (t.kind == Task::Kind::self_attached) continue;  // its kernel orders it
        const std::size_t id = tasks_.size();
        tasks_.push_back(t);
        stream_of_.push_back(s.index);
        // What a relay does is the switch at work: nothing waits for the rest of it.
        if (has_node(id) && !schedule_.streams[s].relay) tasks_of_[node_of(id)].push_back(id);
        switches_ = switches_ || t.kind == Task::Kind::stream_switch;
        if (t.kind == Task::Kind::label) {
          for (const std::uint32_t l : targets(id)) {
            if (!labels_.try_emplace(l, id).second) find(Kind::malformed, fmt::format("label L{} stands twice", l));
          }
        }
        if (t.kind == Task::Kind::activate || t.kind == Task::Kind::stream_switch) {
          for (const std::uint32_t target : targets(id)) {
            if (target >= width) {
              find(Kind::malformed, fmt::format("{} starts stream {} of {}", name(node_of(id)), target, width));
            } else if (!is_loop(node_of(id))) {
              head_[target] = false;
            }
          }
        }
      }
      first_.push_back(tasks_.size());
    }
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (task(t).kind != Task::Kind::jump && task(t).kind != Task::Kind::branch) continue;
      for (const std::uint32_t l : targets(t)) {
        const auto at = labels_.find(l);
        if (at == labels_.end() || stream_of_[at->second] != stream_of_[t]) {
          find(Kind::malformed, fmt::format("{} goes to label L{}, which its stream does not have", name(node_of(t)), l));
        }
      }
    }
    const TaskTypes emits(graph_);
    std::set<NodeId> owners;  // what they do is done by their scopes
    for (const ScopeId s : graph_.scopes()) {
      if (const auto& n = graph_.scope(s).parent_node) owners.insert(*n);
    }
    for (const NodeId n : graph_.nodes()) {
      std::size_t launches = 0;
      for (const std::size_t t : tasks_of_[n]) launches += task(t).kind == Task::Kind::launch;
      const bool activates = graph_.type(n) == "StreamActive";
      if ((emits(n) && tasks_of_[n].empty() && !activates && owners.count(n) == 0) || launches > 1) {
        find(Kind::wrong_count, fmt::format("node {} has {} tasks", name(n), launches), n);
      }
    }
  }

  // -- what the graph asks for

  // Nodes with tasks that come directly before one with tasks, through nodes without.
  void find_requirements() {
    const Dependencies direct(graph_);
    before_ = IdVec<NodeId, std::set<NodeId>>(graph_.node_count());
    for (const NodeId n : graph_.nodes()) {
      if (tasks_of_[n].empty()) continue;
      std::set<NodeId> seen;
      std::vector<NodeId> todo(direct.predecessors(n).begin(), direct.predecessors(n).end());
      while (!todo.empty()) {
        const NodeId p = todo.back();
        todo.pop_back();
        if (p == n || !seen.insert(p).second) continue;
        if (!tasks_of_[p].empty()) {
          before_[n].insert(p);
        } else {
          todo.insert(todo.end(), direct.predecessors(p).begin(), direct.predecessors(p).end());
        }
      }
    }
  }

  // Which target a branch takes. The one that lies furthest ahead leaves a loop: it is option 0 here, and the
  // only one after `iterations` others in a row.
  std::uint32_t decide(NodeId n, const std::vector<std::uint32_t>& labels, const std::map<std::uint32_t, std::size_t>& place,
                       std::uint64_t which, std::map<NodeId, std::uint32_t>& in_a_row) {
    std::vector<std::uint32_t> ahead = labels;
    if (graph_.type(n) == "LabelSwitch") {
      std::stable_sort(ahead.begin(), ahead.end(), [&](std::uint32_t a, std::uint32_t b) { return place.at(a) > place.at(b); });
      const std::uint32_t most = in_a_row[n] < options_.iterations ? static_cast<std::uint32_t>(ahead.size()) : 1;
      const std::uint32_t choice = decisions_.ask(n.index, which, most);
      in_a_row[n] = choice == 0 ? 0 : in_a_row[n] + 1;
      return ahead[choice];
    }
    return ahead[decisions_.ask(n.index, which, static_cast<std::uint32_t>(ahead.size()))];
  }

  // The nodes one by one in execution order, jumps obeyed: node and how often it ran before.
  using Trace = std::vector<std::pair<NodeId, std::uint32_t>>;
  Trace one_by_one() {
    const std::vector<NodeId>& order = graph_.order();
    std::map<std::uint32_t, std::size_t> place;  // of labels in the order
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const std::size_t t : tasks_of_[order[i]]) {
        if (task(t).kind == Task::Kind::label) {
          for (const std::uint32_t l : targets(t)) place[l] = i;
        }
      }
    }
    Trace out;
    std::map<NodeId, std::uint32_t> in_a_row;
    std::vector<std::uint32_t> ran(graph_.node_count(), 0);
    for (std::size_t i = 0; i < order.size() && out.size() < kMostRuns;) {
      const NodeId n = order[i++];
      if (tasks_of_[n].empty()) continue;
      const std::uint32_t count = ran[n.index]++;
      out.push_back({n, count});
      const std::size_t t = tasks_of_[n].front();
      if (task(t).kind == Task::Kind::jump) i = place.at(targets(t).front());
      if (task(t).kind == Task::Kind::branch) i = place.at(went_[{n, count}] = decide(n, targets(t), place, count, in_a_row));
    }
    return out;
  }

  // -- one execution

  bool before(std::size_t a, std::size_t b) const { return reach_[b][a]; }

  std::size_t add_instance(std::size_t task, Stream& s) {
    Instance i;
    i.task = task;
    i.epoch = s.epoch;
    if (s.previous) i.after.push_back(*s.previous);
    instances_.push_back(std::move(i));
    runs_[task].push_back(instances_.size() - 1);
    return instances_.size() - 1;
  }
  // Closes an instance: everything before it is what it comes directly after and what is before that.
  void settle(std::size_t i) {
    reach_.emplace_back(i + 1, false);
    for (const std::size_t u : instances_[i].after) {
      reach_[i][u] = true;
      for (std::size_t k = 0; k < u; ++k) {
        if (reach_[u][k]) reach_[i][k] = true;
      }
    }
  }

  void start(std::uint32_t target, std::size_t by, std::uint32_t epoch) {
    Stream& s = streams_[target];
    if (s.running || (s.last && !before(*s.last, by))) {
      find(Kind::lost_start, fmt::format("stream {} may still run when {} starts it", target, name(node_of(instances_[by].task))));
      failed_ = true;
      return;
    }
    if (started_[target] && !s.last) s.last = by;  // an empty stream
    started_[target] = true;
    s.running = first_[target] != first_[target + 1];
    s.at = first_[target];
    s.previous = by;
    s.epoch = epoch;
  }

  // One task of stream s; false when it must wait.
  bool step(std::uint32_t index) {
    Stream& s = streams_[index];
    const std::size_t t = s.at;
    const Task::Kind kind = task(t).kind;
    if (kind == Task::Kind::wait && records_[task(t).index].size() <= waits_[task(t).index].size()) return false;
    const std::size_t i = add_instance(t, s);
    if (kind == Task::Kind::wait) instances_[i].after.push_back(records_[task(t).index][waits_[task(t).index].size()]);
    settle(i);
    if (kind == Task::Kind::wait) taken(i, s.previous);
    if (kind == Task::Kind::record) recorded(i);
    s.previous = s.last = i;
    ++s.at;
    bool ends = false;
    const auto runs = static_cast<std::uint64_t>(runs_[t].size() - 1);
    if (kind == Task::Kind::jump) s.at = labels_.at(targets(t).front());
    if (kind == Task::Kind::branch) {
      const auto known = went_.find({node_of(t), static_cast<std::uint32_t>(runs)});
      if (known == went_.end()) {
        find(Kind::wrong_count, fmt::format("{} branches more often than the graph says", name(node_of(t))), node_of(t));
        failed_ = true;
        return true;
      }
      s.at = labels_.at(known->second);
    }
    if (kind == Task::Kind::activate) {
      const bool loop = is_loop(node_of(t));
      if (loop && ++passes_[t] > options_.iterations * targets(t).size()) {
        abandoned_ = true;
        return true;
      }
      for (const std::uint32_t target : targets(t)) {
        if (target == index) {
          find(Kind::lost_start, fmt::format("{} starts its own stream {}", name(node_of(t)), index));
          failed_ = true;
          return true;
        }
        start(target, i, s.epoch + (loop ? 1 : 0));
      }
    }
    if (kind == Task::Kind::stream_switch) {
      const NodeId n = node_of(t);
      if (targets(t).size() > 1 || graph_.type(n) == "StreamSwitchN") {
        start(targets(t)[decisions_.ask(n.index, runs, static_cast<std::uint32_t>(targets(t).size()))], i, s.epoch);
      } else if (holds(n, s.epoch)) {
        start(targets(t).front(), i, s.epoch);
        ends = true;
      }
    }
    if (ends || s.at == first_[index + 1]) s.running = false;
    return true;
  }

  // The two switches of one predicate are two sides of one decision an iteration.
  bool holds(NodeId n, std::uint32_t epoch) {
    std::uint64_t who = n.index;
    for (const NodeId other : graph_.nodes()) {
      if (graph_.type(other) != graph_.type(n)) continue;
      const auto a = graph_.inputs(n), b = graph_.inputs(other);
      if (!a.empty() && std::equal(a.begin(), a.end(), b.begin(), b.end())) {
        who = other.index;
        break;
      }
    }
    const auto& roles = graph_.annotations().roles.get(n);
    return (decisions_.ask((std::uint64_t{1} << 32) + who, epoch, 2) == 1) == (roles && roles->true_branch);
  }

  void recorded(std::size_t i) {
    const std::uint32_t e = task(instances_[i].task).index;
    const auto& waits = waits_[e];
    if (records_[e].size() > waits.size() || (!waits.empty() && !before(waits.back(), i))) {
      find(Kind::stale_event, fmt::format("event e{} is recorded again on stream {} perhaps before a wait has taken its last record", e,
                                          stream_of_[instances_[i].task]));
      failed_ = true;
    }
    records_[e].push_back(i);
  }
  void taken(std::size_t i, std::optional<std::size_t> previous) {
    const std::uint32_t e = task(instances_[i].task).index;
    auto& waits = waits_[e];
    if (!waits.empty() && !(previous && (*previous == waits.back() || before(waits.back(), *previous)))) {
      find(Kind::stale_event, fmt::format("the wait for event e{} on stream {} may take another wait's record", e,
                                          stream_of_[instances_[i].task]));
      failed_ = true;
    }
    waits.push_back(i);
  }

  void execute() {
    went_.clear();
    Trace trace;
    if (!switches_) trace = one_by_one();
    instances_.clear();
    reach_.clear();
    runs_.assign(tasks_.size(), {});
    records_.assign(schedule_.event_count, {});
    waits_.assign(schedule_.event_count, {});
    passes_.clear();
    failed_ = abandoned_ = false;
    const auto width = static_cast<std::uint32_t>(schedule_.streams.size());
    streams_.assign(width, {});
    started_.assign(width, false);
    for (std::uint32_t s = 0; s < width; ++s) {
      streams_[s].at = first_[s];
      streams_[s].running = started_[s] = head_[s];
      if (first_[s] == first_[s + 1]) streams_[s].running = false;
    }
    for (bool moved = true; moved && !failed_ && !abandoned_;) {
      moved = false;
      for (std::uint32_t s = 0; s < width && !failed_ && !abandoned_; ++s) {
        while (streams_[s].running && !failed_ && !abandoned_ && instances_.size() < kMostRuns && step(s)) moved = true;
      }
    }
    if (abandoned_) return;
    ++out_.executions;
    if (failed_) return;
    for (std::uint32_t s = 0; s < width; ++s) {
      if (streams_[s].running) {
        find(Kind::deadlock, fmt::format("stream {} waits for ever at task {} for event e{}", s, streams_[s].at - first_[s],
                                         task(streams_[s].at).index));
      }
    }
    for (std::uint32_t e = 0; e < schedule_.event_count; ++e) {
      if (records_[e].size() == waits_[e].size() || runs_[instances_[records_[e].back()].task].size() < 2) continue;
      find(Kind::stale_event, fmt::format("event e{} of a loop is recorded once more than it is waited for", e));
    }
    if (switches_) {
      check_iterations();
    } else {
      check_trace(trace);
    }
  }

  // Run `which_u` of u before run `which_v` of v, all their tasks; of a StreamActive, the task that leads to v.
  void need(NodeId u, std::size_t which_u, NodeId v, std::size_t which_v) {
    for (const std::size_t b : tasks_of_[v]) {
      const std::size_t k = runs_[b][which_v];
      bool all = true, any = false;
      for (const std::size_t a : tasks_of_[u]) {
        const std::size_t i = runs_[a][which_u];
        const bool good = i < k && before(i, k);
        all = all && good;
        any = any || good;
      }
      const bool activates = task(tasks_of_[u].front()).kind == Task::Kind::activate;
      if (!(activates ? any : all)) find(Kind::lost_order, fmt::format("{} may run before {}", name(v), name(u)), u, v);
    }
  }

  void check_trace(const Trace& trace) {
    std::vector<std::uint32_t> ran(graph_.node_count(), 0);
    for (const auto& [n, count] : trace) ++ran[n.index];
    for (const NodeId n : graph_.nodes()) {
      for (const std::size_t t : tasks_of_[n]) {
        if (runs_[t].size() == ran[n.index]) continue;
        find(Kind::wrong_count, fmt::format("{} runs {} times where the graph asks for {}", name(n), runs_[t].size(), ran[n.index]), n);
        return;
      }
    }
    std::vector<std::optional<std::uint32_t>> latest(graph_.node_count());
    for (const auto& [v, count] : trace) {
      for (const NodeId u : before_[v]) {
        if (!latest[u.index]) continue;
        need(u, *latest[u.index], v, count);
      }
      latest[v.index] = count;
    }
  }

  void check_iterations() {
    for (const NodeId v : graph_.nodes()) {
      for (const NodeId u : before_[v]) {
        // The runs of one iteration, task by task: the tasks of a switch and of its relay do not all run.
        for (const std::size_t b : tasks_of_[v]) {
          for (const std::size_t k : runs_[b]) {
            bool all = true, any = false, some = false;
            for (const std::size_t a : tasks_of_[u]) {
              for (const std::size_t i : runs_[a]) {
                if (instances_[i].epoch != instances_[k].epoch) continue;
                some = true;
                all = all && i < k && before(i, k);
                any = any || (i < k && before(i, k));
              }
            }
            const bool activates = task(tasks_of_[u].front()).kind == Task::Kind::activate;
            if (some && !(activates ? any : all)) find(Kind::lost_order, fmt::format("{} may run before {}", name(v), name(u)), u, v);
          }
        }
      }
    }
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const InterpretOptions options_;
  std::vector<Task> tasks_;
  std::vector<std::uint32_t> stream_of_;
  std::vector<std::size_t> first_;  // by stream: its first task; one more at the end
  std::vector<bool> head_;
  std::map<std::uint32_t, std::size_t> labels_;
  IdVec<NodeId, std::vector<std::size_t>> tasks_of_;
  bool switches_ = false;
  IdVec<NodeId, std::set<NodeId>> before_;
  Decisions decisions_;

  std::map<std::pair<NodeId, std::uint32_t>, std::uint32_t> went_;  // branch, run: label
  std::vector<Instance> instances_;
  std::vector<std::vector<bool>> reach_;
  std::vector<std::vector<std::size_t>> runs_;  // by task: its instances
  std::vector<std::vector<std::size_t>> records_, waits_;  // by event
  std::map<std::size_t, std::size_t> passes_;
  std::vector<Stream> streams_;
  std::vector<bool> started_;
  bool failed_ = false, abandoned_ = false;
  Interpretation out_;
};

}  // namespace

Interpretation interpret(const Graph& graph, const Schedule& schedule, const InterpretOptions& options) {
  return Interpreter(graph, schedule, options).run();
}

}  // namespace millstream
