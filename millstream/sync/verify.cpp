// SPDX-License-Identifier: Apache-2.0
// Checks a sync plan without trusting it or the code that made it. Paths are followed on points: the place before
// the i-th task of a stream is 3i-2 (waits, fork), the task 3i-1, the place behind it 3i (join, records). A path may
// follow its first stream as far as it likes; where it came to a stream over a step, it must not pass a label that
// is reached in other ways, unless by a start fact. Which pairs are required in a graph with scopes is read from
// insert_pairs; in others from the edges.
//
// Redundant pairs: where the reducer walks forwards and asks what is known complete, this walks backwards and asks
// what is reached first; with alternatives or attached streams forwards again, with clocks of its own.
#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/text.h"
#include "millstream/sync/conditions.h"
#include "millstream/sync/insert.h"
#include "millstream/sync/sync_plan.h"
#include "millstream/sync/task_pairs.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

std::uint64_t key(NodeId from, NodeId to) { return (std::uint64_t{from.index} << 32) | to.index; }

class PlanVerifier {
 public:
  PlanVerifier(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan)
      : graph_(graph), on_(on), plan_(plan) {}

  std::vector<Error> run() {
    if (on_.placement.size() != graph_.node_count()) {
      add(ErrorCode::plan_mismatch, fmt::format("the assignment has {} nodes, the graph {}", on_.placement.size(), graph_.node_count()));
      return std::move(errors_);
    }
    for (const NodeId n : graph_.nodes()) {
      if (on_.placement[n] && on_.placement[n]->stream.index >= on_.streams.size()) {
        add(ErrorCode::plan_mismatch, fmt::format("node {} is on stream {}, but there are {} streams", name(n), stream(n), on_.streams.size()));
        return std::move(errors_);
      }
    }
    Result<Activation> activation = plan_activation(graph_, on_);
    if (!activation.ok()) {
      errors_.push_back(activation.error());
      return std::move(errors_);
    }
    activation_ = std::move(activation).value();
    const ControlFlow flow(graph_);
    number_positions();
    find_ways();
    std::optional<Conditions> conditions;
    if (!ways_.empty()) conditions_ = &conditions.emplace(graph_, on_, activation_, flow);
    check_kept();
    if (!errors_.empty()) return std::move(errors_);  // what follows reads the pairs
    for (std::uint32_t f = 0; f < plan_.starts.size(); ++f) check_fact(f);
    for (const DroppedPair& d : plan_.dropped) check_certificate(d);
    check_requirements();
    if (!sort_walk()) return std::move(errors_);
    if (idle_) {
      const Insertion needs = task_pairs(graph_, on_, on_, activation_, flow, nodes_with_task(graph_, activation_));
      check_forwards(&needs);
    } else if (plan_.mode == SyncMode::exact) {
      if (ways_.empty() && part_.empty()) {
        check_irredundant();
      } else {
        check_forwards(nullptr);
      }
    }
    return std::move(errors_);
  }

 private:
  void add(ErrorCode code, std::string message) { errors_.push_back(Error{code, std::move(message)}); }
  std::uint32_t stream(NodeId n) const { return on_.placement[n]->stream.index; }
  bool placed(NodeId n) const { return n.index < graph_.node_count() && on_.placement[n].has_value(); }
  std::string name(NodeId n) const {
    return n.index < graph_.node_count() ? quote_name(graph_.name(n)) : fmt::format("#{}", n.index);
  }
  std::string arrow(const SyncPair& p) const { return fmt::format("{} -> {}", name(p.from), name(p.to)); }
  // A place on a stream.
  struct Point {
    std::uint32_t stream;
    std::uint32_t at;
  };
  Point before(NodeId n) const { return {stream(n), 3 * position_[n] - 2}; }
  Point behind(NodeId n) const { return {stream(n), 3 * position_[n]}; }
  bool is_fork_or_join(const SyncPair& p) const { return p.reason == PairReason::fork || p.reason == PairReason::join; }
  std::uint32_t part_position(NodeId n, StreamId a) const {
    const auto at = part_.find({n.index, a.index});
    return at == part_.end() ? 0 : at->second;
  }
  Point from(const SyncPair& p) const {
    if (p.reason == PairReason::fork) return before(p.from);
    if (p.reason == PairReason::join) return {p.stream.index, 3 * part_position(p.from, p.stream)};
    return behind(p.from);
  }
  Point to(const SyncPair& p) const {
    if (p.reason == PairReason::fork) return {p.stream.index, 3 * part_position(p.to, p.stream) - 2};
    if (p.reason == PairReason::join) return behind(p.to);
    return before(p.to);
  }

  void number_positions() {
    position_ = IdVec<NodeId, std::uint32_t>(graph_.node_count(), 0);
    nodes_on_.resize(on_.streams.size());
    parts_on_.resize(on_.streams.size());
    for (const NodeId n : graph_.order()) {
      if (!on_.placement[n]) continue;
      nodes_on_[stream(n)].push_back(n);
      position_[n] = static_cast<std::uint32_t>(nodes_on_[stream(n)].size());
      if (on_.attached.empty()) continue;
      for (const StreamId a : on_.forked(n)) {
        if (a.index >= on_.streams.size()) continue;
        parts_on_[a.index].push_back(n);
        part_[{n.index, a.index}] = static_cast<std::uint32_t>(parts_on_[a.index].size());
      }
    }
  }

  // What leads to a node beside the node before it on its stream; itself stands for falling through.
  void find_ways() {
    for (const StreamId s : ids<StreamId>(on_.streams.size())) {
      if (!activation_.head(s) && !nodes_on_[s.index].empty()) ways_[nodes_on_[s.index][0].index] = activation_.started_by[s];
    }
    if (!graph_.strings().find("LabelSet")) return;
    std::map<std::int64_t, std::vector<NodeId>> jumps;  // those met so far, by label
    IdVec<StreamId, std::uint8_t> left(on_.streams.size(), 0);
    for (const NodeId n : graph_.order()) {
      if (!on_.placement[n]) continue;
      const std::string_view type = graph_.type(n);
      std::uint8_t& gone = left[on_.placement[n]->stream];
      if (type == "LabelSet") {
        const auto found = jumps.find(graph_.attrs(n).get_int("label_index", -1));
        if (found != jumps.end() && position_[n] > 1) {
          std::vector<NodeId> list = found->second;
          if (gone == 0) list.insert(list.begin(), n);
          ways_[n.index] = std::move(list);
          labels_on_[stream(n)].push_back({position_[n], gone == 0});
        }
      }
      gone = type == "LabelGoto" || type == "LabelGotoEx" || type == "LabelSwitch" || type == "LabelSwitchByIndex" ? 1 : 0;
      if (gone == 0) continue;
      std::vector<std::int64_t> to = graph_.attrs(n).get_ints("label_list");
      if (graph_.attrs(n).has("label_index")) to.push_back(graph_.attrs(n).get_int("label_index", 0));
      for (const std::int64_t label : to) {
        if (jumps[label].empty() || jumps[label].back() != n) jumps[label].push_back(n);
      }
    }
  }

  // Whether a stream leads from one place to a later one without passing a label that is reached otherwise.
  bool leads(std::uint32_t s, std::uint32_t a, std::uint32_t b) const {
    if (a > b) return false;
    const auto found = labels_on_.find(s);
    if (found == labels_on_.end()) return true;
    for (const auto& [position, falls] : found->second) {
      const std::uint32_t gate = falls ? 3 * position - 2 : 3 * position - 3;  // passed when going beyond it
      if (a <= gate && b > gate) return false;
    }
    return true;
  }

  void check_kept() {
    kept_keys_.reserve(plan_.kept.size());
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sides;  // forks 1, joins 2
    for (const SyncPair& p : plan_.kept) {
      if (!placed(p.from) || !placed(p.to)) {
        add(ErrorCode::plan_mismatch, fmt::format("pair {} names a node without a stream", arrow(p)));
      } else if (is_fork_or_join(p)) {
        std::uint32_t& side = sides[{p.from.index, p.stream.index}];
        const std::uint32_t bit = p.reason == PairReason::fork ? 1 : 2;
        if (p.from != p.to || part_position(p.from, p.stream) == 0 || (side & bit) != 0) {
          add(ErrorCode::plan_mismatch, fmt::format("{} {} on stream {} does not belong to an attached stream, or stands twice", to_string(p.reason), arrow(p), p.stream.index));
        }
        side |= bit;
      } else if (stream(p.from) == stream(p.to)) {
        add(ErrorCode::plan_mismatch, fmt::format("pair {} stays on stream {}", arrow(p), stream(p.from)));
      } else {
        kept_keys_.push_back(key(p.from, p.to));
      }
    }
    for (const auto& [at, position] : part_) {
      if (sides[at] != 3) add(ErrorCode::race, fmt::format("{} lacks a fork or a join with its attached stream {}", name(NodeId(at.first)), at.second));
    }
    std::sort(kept_keys_.begin(), kept_keys_.end());
    const auto twice = std::adjacent_find(kept_keys_.begin(), kept_keys_.end());
    if (twice != kept_keys_.end() && plan_.mode != SyncMode::compat) {  // compat adds loops' events unseen
      add(ErrorCode::plan_mismatch, fmt::format("pair {} -> {} is kept twice", name(NodeId(*twice >> 32)), name(NodeId(*twice & kNever))));
    }
  }

  // Follows steps from `at`; facts from `facts` on are not proved yet. What is wrong, or nothing.
  std::optional<std::string> follow(Point at, std::uint32_t begin, std::uint32_t length, std::uint32_t facts, Point end) const {
    if (begin > plan_.path_pool.size() || length > plan_.path_pool.size() - begin) return "its path lies outside the plan";
    bool first = true;
    const auto reaches = [&](Point next) {
      return at.stream == next.stream && (first ? at.at <= next.at : leads(at.stream, at.at, next.at));
    };
    for (std::uint32_t i = begin; i < begin + length; ++i) {
      const std::uint32_t step = plan_.path_pool[i].index;
      Point source{}, target{};
      if ((step & kStartStep) != 0) {
        const std::uint32_t f = step & ~kStartStep;
        if (f >= facts) return fmt::format("its path names fact {} of {}", f, facts);
        source = source_of(plan_.starts[f]);
        target = landing(plan_.starts[f].start);
      } else {
        if (step >= plan_.kept.size()) return fmt::format("its path names pair {} of {}", step, plan_.kept.size());
        source = from(plan_.kept[step]);
        target = to(plan_.kept[step]);
      }
      if (!reaches(source)) return fmt::format("its path breaks at step {}", i - begin + 1);
      at = target;
      first = false;
    }
    if (!reaches(end)) return fmt::format("its path ends on stream {}, too late or elsewhere", at.stream);
    return std::nullopt;
  }

  Point source_of(const StartFact& f) const {
    if (f.stream.index == stream(f.source)) return behind(f.source);
    return {f.stream.index, 3 * part_position(f.source, f.stream)};
  }
  // Where a fact about a node takes hold: before it, but of a label that is also fallen into behind its waits.
  Point landing(NodeId start) const {
    const auto found = ways_.find(start.index);
    const bool falls = found != ways_.end() && !found->second.empty() && found->second.front() == start;
    return {stream(start), 3 * position_[start] - (falls ? 1 : 2)};
  }

  void check_fact(std::uint32_t f) {
    const StartFact& fact = plan_.starts[f];
    const auto bad = [&](std::string why) {
      add(ErrorCode::plan_mismatch, fmt::format("start fact {} (before {}): {}", f, name(fact.start), why));
      broken_facts_ = true;
    };
    if (!placed(fact.start) || !placed(fact.source)) return bad("names a node without a stream");
    if (fact.stream.index != stream(fact.source) && part_position(fact.source, fact.stream) == 0) return bad("its source is not on its stream");
    const auto found = ways_.find(fact.start.index);
    if (found == ways_.end()) return bad("nothing but its stream leads to the node");
    if (fact.ways != found->second.size() || fact.ways_begin > plan_.start_ways.size() || fact.ways > plan_.start_ways.size() - fact.ways_begin) {
      return bad(fmt::format("it proves {} ways of {}", fact.ways, found->second.size()));
    }
    const Point source = source_of(fact);
    for (std::uint32_t w = 0; w < fact.ways; ++w) {
      const StartWay& way = plan_.start_ways[fact.ways_begin + w];
      if (way.through != found->second[w]) return bad(fmt::format("way {} is not {}", w, name(found->second[w])));
      if (!placed(way.through)) return bad(fmt::format("{} has no stream", name(way.through)));
      const Point end = way.through == fact.start ? before(fact.start) : behind(way.through);
      if (way.idle) {
        // What stands before the idle node precedes; the node itself and what follows it do not run.
        const bool on_main = placed(*way.idle) && stream(*way.idle) == fact.stream.index;
        const std::uint32_t position = on_main ? position_[*way.idle] : placed(*way.idle) ? part_position(*way.idle, fact.stream) : 0;
        if (position == 0) return bad(fmt::format("way {} names an idle node that is not on the stream", w));
        if (!conditions_->excludes(fact.start, way.through, *way.idle)) return bad(fmt::format("{} may run when {} leads there", name(*way.idle), name(way.through)));
        if (position == 1 || 3 * (position - 1) >= source.at) continue;
        if (const auto why = follow({source.stream, 3 * (position - 1) - 1}, way.path_begin, way.path_length, f, end)) return bad(*why);
        continue;
      }
      if (const auto why = follow({source.stream, source.at - 1}, way.path_begin, way.path_length, f, end)) return bad(*why);
    }
  }

  void check_certificate(const DroppedPair& d) {
    const auto bad = [&](std::string why) {
      add(ErrorCode::plan_mismatch, fmt::format("dropped pair {}: {}", arrow(d.pair), why));
    };
    if (!placed(d.pair.from) || !placed(d.pair.to)) return bad("names a node without a stream");
    if (d.path_length == 0) return bad("has no path that implies it");
    const Point source = behind(d.pair.from);
    const auto facts = broken_facts_ ? 0 : static_cast<std::uint32_t>(plan_.starts.size());
    if (const auto why = follow({source.stream, source.at - 1}, d.path_begin, d.path_length, facts, before(d.pair.to))) return bad(*why);
    dropped_keys_.push_back(key(d.pair.from, d.pair.to));
  }

  // Nearest placed predecessors, through nodes without a stream.
  void collect(const Dependencies& direct, NodeId n) {
    found_.clear();
    todo_.clear();
    std::vector<NodeId> passed;
    const auto reach = [&](NodeId m) {
      for (const NodeId p : direct.predecessors(m)) {
        // What an Enter feeds is started by an activation behind it.
        if (!is_enter(graph_.type(p)) || graph_.type(m) == "StreamActive") todo_.push_back(p);
      }
    };
    reach(n);
    while (!todo_.empty()) {
      const NodeId p = todo_.back();
      todo_.pop_back();
      if (on_.placement[p]) {
        found_.push_back(p);
      } else if (!std::binary_search(passed.begin(), passed.end(), p)) {
        passed.insert(std::upper_bound(passed.begin(), passed.end(), p), p);
        reach(p);
      }
    }
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  }

  void check_requirements() {
    std::sort(dropped_keys_.begin(), dropped_keys_.end());
    const auto in = [](const std::vector<std::uint64_t>& keys, std::uint64_t k) {
      return std::binary_search(keys.begin(), keys.end(), k);
    };
    std::vector<std::uint64_t> lost_keys;
    if (plan_.mode == SyncMode::compat) {
      for (const SyncPair& p : plan_.lost) lost_keys.push_back(key(p.from, p.to));
      std::sort(lost_keys.begin(), lost_keys.end());
    }
    const Dependencies direct(graph_);
    std::size_t required = 2 * part_.size();  // forks and joins
    std::vector<std::uint64_t> required_keys;
    const bool may_idle = plan_.mode == SyncMode::exact || plan_.mode == SyncMode::fewest;
    const auto tasks = nodes_with_task(graph_, activation_);
    const ControlFlow flow(graph_);
    std::optional<Insertion> inserted;
    if (flow.scoped() || !activation_.empty()) {
      Result<Insertion> pairs = insert_pairs(graph_, on_, activation_, flow);
      if (!pairs.ok()) return errors_.push_back(pairs.error());
      inserted = std::move(pairs).value();
    }
    for (const NodeId n : graph_.nodes()) {
      if (!on_.placement[n]) continue;
      if (inserted) {
        found_.clear();
        for (const ForeignSource& s : inserted->of(n)) found_.push_back(s.node());
      } else {
        collect(direct, n);
      }
      for (const NodeId p : found_) {
        if (stream(p) == stream(n)) {
          if (position_[p] > position_[n]) {
            add(ErrorCode::deadlock, fmt::format("stream {} runs {} before {}, which it needs", stream(n), name(n), name(p)));
          }
          continue;
        }
        ++required;
        const std::uint64_t k = key(p, n);
        required_keys.push_back(k);
        const bool kept = in(kept_keys_, k), dropped = in(dropped_keys_, k);
        if (!kept && !dropped && may_idle && (tasks[p] == 0 || tasks[n] == 0)) {
          idle_ = true;
          continue;
        }
        if (!kept && !dropped && !in(lost_keys, k)) add(ErrorCode::race, fmt::format("{} -> {} is neither kept nor dropped with a proof", name(p), name(n)));
        if (kept && dropped && plan_.mode != SyncMode::compat) add(ErrorCode::plan_mismatch, fmt::format("{} -> {} is both kept and dropped", name(p), name(n)));
      }
    }
    std::sort(required_keys.begin(), required_keys.end());
    for (const SyncPair& p : plan_.kept) {
      const bool dependency = p.reason == PairReason::data || p.reason == PairReason::control || p.reason == PairReason::exit ||
                              p.reason == PairReason::entry || (p.reason == PairReason::loop && plan_.mode == SyncMode::exact);
      if (dependency && !in(required_keys, key(p.from, p.to))) {
        add(ErrorCode::plan_mismatch, fmt::format("kept pair {} is no {} dependency", arrow(p), to_string(p.reason)));
      }
    }
    if (plan_.inserted != required) {
      add(ErrorCode::plan_mismatch, fmt::format("the plan counts {} pairs, the graph has {}", plan_.inserted, required));
    }
  }

  // Kept pairs by source and a walk over all placed nodes. False when they close a circle.
  bool sort_walk() {
    const std::size_t n = graph_.node_count();
    exits_begin_.assign(n + 1, 0);
    entries_.assign(n, 0);
    std::vector<std::pair<NodeId, NodeId>> more;  // started streams, jumps, parts on one attached stream
    for (const auto& [to, list] : ways_) {
      for (const NodeId w : list) {
        if (w.index != to && placed(w)) more.push_back({w, NodeId(to)});
      }
    }
    for (const auto& list : parts_on_) {
      for (std::size_t i = 1; i < list.size(); ++i) more.push_back({list[i - 1], list[i]});
    }
    const auto each = [&](auto&& f) {
      for (const SyncPair& p : plan_.kept) {
        if (!is_fork_or_join(p)) f(p.from, p.to);
      }
      for (const auto& [from, to] : more) f(from, to);
    };
    std::size_t count = 0;
    each([&](NodeId from, NodeId to) {
      ++exits_begin_[from.index + 1];
      ++entries_[to.index];
      ++count;
    });
    for (std::size_t i = 0; i < n; ++i) exits_begin_[i + 1] += exits_begin_[i];
    exits_.resize(count);
    std::vector<std::uint32_t> next(exits_begin_.begin(), exits_begin_.end() - 1);
    each([&](NodeId from, NodeId to) { exits_[next[from.index]++] = to; });

    std::vector<std::uint32_t> open = entries_;
    std::size_t total = 0;
    std::vector<NodeId> ready;
    for (const auto& list : nodes_on_) {
      total += list.size();
      for (std::size_t i = 1; i < list.size(); ++i) ++open[list[i].index];
      if (!list.empty() && open[list[0].index] == 0) ready.push_back(list[0]);
    }
    while (!ready.empty()) {
      const NodeId at = ready.back();
      ready.pop_back();
      walk_.push_back(at);
      const auto release = [&](NodeId m) {
        if (--open[m.index] == 0) ready.push_back(m);
      };
      const auto& list = nodes_on_[stream(at)];
      if (position_[at] < list.size()) release(list[position_[at]]);
      for (std::uint32_t i = exits_begin_[at.index]; i < exits_begin_[at.index + 1]; ++i) release(exits_[i]);
    }
    if (walk_.size() == total) return true;
    for (const NodeId m : graph_.order()) {
      if (!on_.placement[m] || open[m.index] == 0) continue;
      add(ErrorCode::deadlock, fmt::format("the kept pairs and the streams' orders close a circle through {}", name(m)));
      return false;
    }
    return false;
  }

  // reach(n)[s]: the first position on stream s that n or something behind n reaches. A pair u -> w can go
  // if another exit of u reaches w's stream at or before w.
  void check_irredundant() {
    const std::size_t width = nodes_on_.size();
    std::vector<std::vector<std::uint32_t>> now(width);                 // of the node last walked on each stream
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> held;  // of nodes with entries; looked up only
    for (std::size_t i = walk_.size(); i-- > 0;) {
      const NodeId u = walk_[i];
      std::vector<std::uint32_t>& along_stream = now[stream(u)];
      if (along_stream.empty()) along_stream.assign(width, kNever);
      const std::span<const NodeId> out(exits_.data() + exits_begin_[u.index], exits_begin_[u.index + 1] - exits_begin_[u.index]);
      for (const NodeId w : out) {
        bool other = along_stream[stream(w)] <= position_[w];
        for (const NodeId x : out) other = other || (x != w && held.at(x.index)[stream(w)] <= position_[w]);
        if (other) add(ErrorCode::plan_mismatch, fmt::format("kept pair {} is implied by the others", arrow({u, w})));
      }
      for (const NodeId w : out) {
        const auto row = held.find(w.index);
        for (std::size_t s = 0; s < width; ++s) along_stream[s] = std::min(along_stream[s], row->second[s]);
        if (--entries_[w.index] == 0) held.erase(row);
      }
      along_stream[stream(u)] = position_[u];
      if (entries_[u.index] != 0) held.emplace(u.index, along_stream);
    }
  }

  // Forwards: clock(n)[s] is the last place of stream s that is passed for certain when n has ended. A pair can go if
  // the clock before its receiver, without it, has passed its sender. `needs`: what tasks need, which must have been passed.
  void check_forwards(const Insertion* needs) {
    const std::size_t width = nodes_on_.size();
    using Clock = std::vector<std::uint32_t>;
    const auto raise = [](Clock& a, const Clock& b) {
      for (std::size_t s = 0; s < a.size(); ++s) a[s] = std::max(a[s], b[s]);
    };
    std::map<std::uint32_t, std::vector<NodeId>> senders;  // by receiver
    for (const SyncPair& p : plan_.kept) {
      if (!is_fork_or_join(p)) senders[p.to.index].push_back(p.from);
    }
    std::vector<std::uint32_t> readers(graph_.node_count(), 0);
    for (const auto& [to, list] : senders) {
      for (const NodeId u : list) ++readers[u.index];
    }
    for (const auto& [to, list] : ways_) {
      for (const NodeId w : list) ++readers[w.index];
    }
    std::vector<Clock> now(width, Clock(width, 0));
    std::unordered_map<std::uint32_t, Clock> held;  // looked up only
    const auto read = [&](NodeId n) {
      if (--readers[n.index] == 0) held.erase(n.index);
    };
    for (const NodeId n : walk_) {
      Clock& clock = now[stream(n)];
      const auto found = ways_.find(n.index);
      const bool falls = found != ways_.end() && !found->second.empty() && found->second.front() == n;
      const auto arrive = [&] {
        if (found == ways_.end()) return;
        Clock least(width, kNever), lowest(width, kNever);
        for (const NodeId w : found->second) {
          const auto row = held.find(w.index);
          for (std::uint32_t s = 0; s < width; ++s) {
            const std::uint32_t known = w == n ? clock[s] : row == held.end() ? 0 : row->second[s];
            lowest[s] = std::min(lowest[s], known);
            const auto& list = nodes_on_[s].empty() ? parts_on_[s] : nodes_on_[s];
            if (known / 3 >= list.size() || !conditions_->excludes(n, w, list[known / 3])) least[s] = std::min(least[s], known);
          }
          if (w != n) read(w);
        }
        if (falls) --readers[n.index];
        for (std::size_t s = 0; s < width; ++s) least[s] = least[s] == kNever ? lowest[s] : least[s];
        least[stream(n)] = clock[stream(n)];
        clock = least;
      };
      if (!falls) arrive();
      if (const auto list = senders.find(n.index); list != senders.end()) {
        for (const NodeId u : list->second) {
          bool covered = clock[stream(u)] >= 3 * position_[u] - 1;
          for (const NodeId x : list->second) covered = covered || (x != u && held.at(x.index)[stream(u)] >= 3 * position_[u] - 1);
          if (covered && plan_.mode == SyncMode::exact) add(ErrorCode::plan_mismatch, fmt::format("kept pair {} is implied by the others", arrow({u, n})));
        }
        for (const NodeId u : list->second) raise(clock, held.at(u.index));
        for (const NodeId u : list->second) read(u);
      }
      if (needs != nullptr) {
        for (const ForeignSource& u : needs->of(n)) {
          if (clock[stream(u.node())] >= 3 * position_[u.node()] - 1) continue;
          add(ErrorCode::race, fmt::format("{} needs {}, and no kept pair orders the two", name(n), name(u.node())));
        }
      }
      if (falls) arrive();
      clock[stream(n)] = 3 * position_[n] - 2;
      if (!on_.attached.empty()) {
        for (const StreamId a : on_.forked(n)) {
          raise(now[a.index], clock);
          now[a.index][a.index] = 3 * part_position(n, a);
        }
        for (const StreamId a : on_.forked(n)) raise(clock, now[a.index]);
      }
      clock[stream(n)] = 3 * position_[n];
      if (readers[n.index] != 0) held[n.index] = clock;
    }
  }

  const Graph& graph_;
  const StreamAssignment& on_;
  const SyncPlan& plan_;
  Activation activation_;
  Conditions* conditions_ = nullptr;  // with ways only
  std::vector<Error> errors_;
  bool broken_facts_ = false;
  bool idle_ = false;  // some pair of nodes without a task is neither kept nor dropped
  std::vector<std::vector<NodeId>> parts_on_;                                           // by attached stream
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> part_;               // node, attached stream: position from 1
  std::map<std::uint32_t, std::vector<NodeId>> ways_;                                   // by node
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, bool>>> labels_on_;      // by stream: position, fallen into
  IdVec<NodeId, std::uint32_t> position_;  // on its stream, from 1
  std::vector<std::vector<NodeId>> nodes_on_;
  std::vector<std::uint64_t> kept_keys_, dropped_keys_;
  std::vector<NodeId> found_, todo_;
  std::vector<std::uint32_t> exits_begin_, entries_;
  std::vector<NodeId> exits_;
  std::vector<NodeId> walk_;
};

}  // namespace

std::vector<Error> verify(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan) {
  return PlanVerifier(graph, on, plan).run();
}

}  // namespace millstream
