// SPDX-License-Identifier: Apache-2.0
// Dynamic graphs: one stream unless more are asked for, and then by label and engine. Scopes share one id space;
// stream 0 is the main stream. A body that labels and jumps may leave out or repeat has streams of its own, and its
// caller's as main stream: what runs on a stream of the graphs around it would run there whenever they do.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

enum Rule : std::uint32_t { kMain, kByLabel, kIndependent, kAiCpu, kFollow, kEngine, kRules };
constexpr std::string_view kNames[kRules] = {"dynamic-main", "dynamic-label", "dynamic-independent", "dynamic-aicpu", "dynamic-follow", "dynamic-engine"};
constexpr std::string_view kReasons[kRules] = {
    "dynamic shapes: everything that nothing else decides runs on the main stream",
    "dynamic shapes: nodes of one label share one stream",
    "dynamic shapes: an independent engine has a stream of its own",
    "dynamic shapes: an AI CPU engine runs beside the AI Core where it can overlap it",
    "dynamic shapes: what attaches follows a neighbour",
    "dynamic shapes: each engine has one stream, the AI Core the main one"};

bool named(std::string_view name, std::string_view part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [&](char a, char b) { return lower(a) == b; }) != name.end();
}
bool is_ai_core(const Engine& e) { return named(e.name, "aicore"); }
bool is_ai_cpu(const Engine& e) { return named(e.name, "aicpu"); }
bool on_main(std::string_view type) { return type == "Data" || type == "Variable" || type == "NetOutput" || type == "FileConstant"; }

class Dynamic {
 public:
  explicit Dynamic(ChainState& s) : s_(s), region_of_(s.graph.scope_count(), 0), main_of_(s.graph.scope_count(), 0) {
    s_.new_stream();
    find_regions();
  }

  bool multi() const {
    bool user = false;
    for (const Label& l : s_.labels) user = user || l.user;
    return s_.options.dynamic_multi_stream || s_.options.ac_parallel || user;
  }

  Result<void> run_scope(bool multi) {
    if (!multi) {
      for (const NodeId n : s_.nodes) {
        if (!elsewhere(n) && (on_main(s_.graph.type(n)) || s_.cluster(n))) put(n, 0, kMain, "one stream: neither AC_PARALLEL_ENABLE, multi-stream for dynamic shapes nor a user label asks for more");
      }
      return {};
    }
    region_ = region_of_[s_.scope.index];
    if (region_ == s_.scope.index) main_of_[region_] = std::max(s_.default_stream, 0);
    main_ = main_of_[region_];
    for (const ClusterId c : ids<ClusterId>(s_.clusters.size())) decide(c);
    follow();
    return write_down();
  }

 private:
  // By scope the smallest one around it, or itself, that jumps decide about; 0: none. Bodies of unknown shapes, and those
  // that stand in a graph of unknown shapes, have no jumps: others run them, and the plan has their nodes once.
  void find_regions() {
    const Graph& g = s_.graph;
    std::vector<std::uint8_t> labels(g.node_count(), 0), unknown(g.node_count(), 0);  // by owner
    for (const NodeId n : g.nodes()) {
      if (g.scope_of(n).index != 0 && g.type(n).substr(0, 5) == "Label") labels[g.scope(g.scope_of(n)).parent_node->index] = 1;
    }
    for (std::size_t s = 1; s < region_of_.size(); ++s) {
      if (g.scope(ScopeId(s)).dynamic) unknown[g.scope(ScopeId(s)).parent_node->index] = 1;
    }
    for (std::size_t s = 1; s < region_of_.size(); ++s) {
      const NodeId owner = *g.scope(ScopeId(s)).parent_node;
      const ScopeId around = g.scope(ScopeId(s)).parent;
      const bool apart = g.scope(around).dynamic || unknown[owner.index] != 0;
      region_of_[s] = is_call(g.type(owner)) || (apart && labels[owner.index] == 0) ? region_of_[around.index] : static_cast<std::uint32_t>(s);
    }
  }

  void decide(ClusterId id) {
    Cluster& c = s_.clusters[id];
    const Engine& engine = s_.engine(c);
    const auto set = [&](std::int32_t stream, Rule rule) {
      c.stream = stream;
      c.decided_by = RuleId(rule);
    };
    if (c.label != 0) {
      bool inner = true;
      for (std::uint32_t i = c.begin; i < c.end; ++i) {
        const auto& note = s_.graph.annotations().inner_parallel.get(s_.members[i]);
        inner = inner && !(note && !*note);
      }
      const bool apart = engine.independent && inner;
      const auto [at, fresh] = label_stream_.try_emplace({region_, c.label, apart ? c.engine.index + 1 : 0}, kNoStream);
      if (fresh) {
        StreamInfo info;
        info.label = s_.labels[c.label].text;
        info.user = s_.labels[c.label].user;
        if (apart) info.engine = c.engine;
        at->second = s_.new_stream(std::move(info));
      }
      for (std::uint32_t i = c.begin; i < c.end && s_.labels[c.label].user; ++i) {
        const auto& priority = s_.graph.annotations().priority.get(s_.members[i]);
        StreamInfo& info = s_.infos[static_cast<std::size_t>(at->second)];
        if (priority) info.priority = has_priority_.insert({at->second, true}).second ? *priority : std::min(info.priority, *priority);
      }
      return set(at->second, apart ? kIndependent : kByLabel);
    }
    const bool env = s_.options.dynamic_multi_stream;
    if (env && engine.independent) return set(stream_of(c.engine), kIndependent);
    if (is_ai_cpu(engine) && s_.options.ac_parallel && overlaps_ai_core(c)) return set(stream_of(c.engine), kAiCpu);
    if (engine.attach || engine.skip || is_ai_cpu(engine)) return;  // follow
    if (env && !is_ai_core(engine)) return set(stream_of(c.engine), kEngine);
    set(main_, env ? kEngine : kMain);
  }

  std::int32_t stream_of(EngineId e) {
    const auto [at, fresh] = engine_stream_.try_emplace({region_, e.index}, kNoStream);
    if (fresh) {
      StreamInfo info;
      info.engine = e;
      at->second = s_.new_stream(std::move(info));
    }
    return at->second;
  }

  // Some AI Core node is neither before nor behind the cluster. O(edges) for each cluster of such an engine.
  bool overlaps_ai_core(const Cluster& c) {
    std::vector<std::uint8_t> ordered(s_.size(), 0);
    const auto reach = [&](const std::vector<std::uint32_t>& begin, const std::vector<std::uint32_t>& list) {
      std::vector<std::uint8_t> seen(s_.size(), 0);
      std::vector<std::uint32_t> todo;
      for (std::uint32_t i = c.begin; i < c.end; ++i) todo.push_back(s_.position[s_.members[i]]);
      while (!todo.empty()) {
        const std::uint32_t at = todo.back();
        todo.pop_back();
        if (seen[at] != 0) continue;
        seen[at] = ordered[at] = 1;
        for (std::uint32_t e = begin[at]; e < begin[at + 1]; ++e) todo.push_back(list[e]);
      }
    };
    reach(s_.edges.pred_begin, s_.edges.pred);
    reach(s_.succ_begin, s_.succ);
    for (std::uint32_t i = 0; i < s_.size(); ++i) {
      if (ordered[i] == 0 && is_ai_core(s_.engine(s_.nodes[i]))) return true;
    }
    return false;
  }

  bool may_lend(std::uint32_t c, ClusterId to) const {
    if (c == kNoCluster || c == to.index) return false;
    const Cluster& other = s_.clusters[ClusterId(c)];
    return other.stream != kNoStream && other.label == 0 && !s_.engine(other).independent;
  }

  bool follow_one(ClusterId id, const std::vector<std::uint32_t>& begin, const std::vector<std::uint32_t>& list) {
    Cluster& c = s_.clusters[id];
    for (std::uint32_t m = c.begin; m < c.end; ++m) {
      const std::uint32_t i = s_.position[s_.members[m]];
      for (std::uint32_t e = begin[i]; e < begin[i + 1]; ++e) {
        const std::uint32_t other = s_.cluster_of[s_.nodes[list[e]]];
        if (!may_lend(other, id)) continue;
        c.stream = s_.clusters[ClusterId(other)].stream;
        c.decided_by = RuleId(kFollow);
        s_.say(id, [&] { return fmt::format("dynamic-follow: runs where {} does, {}", s_.words(s_.clusters[ClusterId(other)]), s_.stream_word(c.stream)); });
        return true;
      }
    }
    return false;
  }

  void follow() {
    const std::size_t n = s_.clusters.size();
    for (std::size_t i = 0; i < n; ++i) {
      if (s_.clusters[ClusterId(i)].stream == kNoStream) follow_one(ClusterId(i), s_.edges.pred_begin, s_.edges.pred);
    }
    for (std::size_t i = n; i-- > 0;) {
      Cluster& c = s_.clusters[ClusterId(i)];
      if (c.stream != kNoStream || follow_one(ClusterId(i), s_.succ_begin, s_.succ)) continue;
      c.stream = main_;
      c.decided_by = RuleId(kMain);
    }
  }

  bool elsewhere(NodeId n) const { return s_.graph.annotations().thread_scope.get(n).has_value(); }

  Result<void> write_down() {
    const bool while_body = s_.scope.index != 0 && !s_.graph.scope(s_.scope).dynamic &&
                            s_.graph.type(*s_.graph.scope(s_.scope).parent_node) == "While";
    for (const NodeId n : s_.nodes) {
      const auto id = s_.cluster(n);
      if (elsewhere(n)) {
        s_.say(n, [] { return std::string("another scheduler runs this node, so it has no stream"); });
      } else if (on_main(s_.graph.type(n))) {
        if (while_body && s_.graph.type(n) == "NetOutput" && s_.label_of(n) != 0) {
          const Scope& body = s_.graph.scope(s_.scope);
          return Error{ErrorCode::while_body,
                       fmt::format("NetOutput {} of body {} of While {} is on stream {} by its {}, but must be on stream {}", s_.graph.name(n), body.name,
                                   s_.graph.name(*body.parent_node), id ? s_.clusters[*id].stream : main_, s_.words_label(s_.label_of(n)), main_)}
              .help("drop the label of the body's NetOutput");
        }
        put(n, main_, kMain, "data and outputs of a dynamic graph belong to the main stream");
      } else if (s_.is_rts(n) && s_.default_stream != kNoStream) {
        put(n, s_.default_stream, kMain, "labels and activations of control flow stand on the caller's stream");
      } else if (id) {
        const Cluster& c = s_.clusters[*id];
        put(n, c.stream, static_cast<Rule>(c.decided_by.index), kReasons[c.decided_by.index]);
      }
    }
    return {};
  }

  void put(NodeId n, std::int32_t stream, Rule rule, std::string_view why) {
    s_.stream[n] = stream;
    s_.decided_by[n] = RuleId(rule);
    s_.say(n, [&] { return fmt::format("{}: {}: {}", kNames[rule], s_.stream_word(stream), why); });
  }

  ChainState& s_;
  std::vector<std::uint32_t> region_of_;  // by scope
  std::vector<std::int32_t> main_of_;     // by region: its main stream
  std::uint32_t region_ = 0;              // of the scope at hand
  std::int32_t main_ = 0;
  std::map<std::array<std::uint32_t, 3>, std::int32_t> label_stream_;                 // by region, label and engine + 1
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> engine_stream_;     // by region and engine
  std::map<std::int32_t, bool> has_priority_;
};

}  // namespace

Result<ChainResult> run_dynamic(const Graph& graph, const Target& target, const AssignOptions& options,
                                const IdVec<NodeId, EngineId>& engines, std::optional<NodeId> watch) {
  ChainState s(graph, target, options, engines);
  s.watch = watch;
  MST_TRY_VOID(s.read_labels());
  Dynamic rules(s);
  const bool multi = rules.multi();
  std::vector<std::vector<NodeId>> scopes(graph.scope_count());
  for (const NodeId n : graph.order()) scopes[graph.scope_of(n).index].push_back(n);
  for (const ScopeId x : graph.scopes()) {
    s.enter(x, std::move(scopes[x.index]));
    s.make_clusters();
    MST_TRY_VOID(rules.run_scope(multi));
  }
  ChainResult out;
  out.said = std::move(s.said);
  std::vector<std::int32_t> to(s.next_stream, kNoStream);
  to[0] = 0;
  for (const NodeId n : graph.nodes()) {
    if (s.stream[n] != kNoStream) to[static_cast<std::size_t>(s.stream[n])] = 0;
  }
  bool any = false;
  for (const NodeId n : graph.nodes()) any = any || s.stream[n] == 0;
  if (!any) to[0] = kNoStream;  // ids stay dense; the main stream exists as soon as something runs on it
  StreamAssignment& on = out.on;
  for (std::size_t raw = 0; raw < to.size(); ++raw) {
    if (to[raw] != kNoStream) to[raw] = static_cast<std::int32_t>(on.new_stream(std::move(s.infos[raw])).index);
  }
  finish_words(out.said, to);
  on.placement = IdVec<NodeId, std::optional<Placement>>(graph.node_count());
  for (std::uint32_t r = 0; r < kRules; ++r) {
    on.rules.emplace_back(kNames[r]);
    on.reasons.emplace_back(kReasons[r]);
    on.reports.push_back({std::string(kNames[r]), 0, 0, 0});
  }
  for (const NodeId n : graph.nodes()) {
    if (s.stream[n] == kNoStream) continue;
    on.placement[n] = Placement{StreamId(static_cast<std::size_t>(to[static_cast<std::size_t>(s.stream[n])])), s.decided_by[n]};
    ++on.reports[s.decided_by[n].index].nodes_placed;
  }
  on.warnings = std::move(s.warnings);
  on.clusters = s.cluster_total;
  on.skips_engines = true;
  on.threads_per_op = options.threads_per_op.value_or(
      std::max(1u, target.cores / static_cast<std::uint32_t>(std::max<std::size_t>(1, on.streams.size()))));
  return out;
}

}  // namespace millstream::chain
