// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/split.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "millstream/assign/tasks.h"
#include "millstream/graph/text.h"
#include "millstream/schedule/control_types.h"
#include "millstream/schedule/split_bundles.h"

namespace millstream {
namespace {

// Where one stream is cut: positions on its lane, and the place in the walk that asked for the cut.
struct Cut {
  std::uint32_t asked = 0;  // index into the execution order
  std::uint32_t stream = 0;
  NodeId before;            // the last node of the piece that ends
  NodeId node;
  std::string reason;
};

class Splitter {
 public:
  explicit Splitter(const SplitInput& in)
      : in_(in), costs_(in.graph, in.target), control_(in.graph), limit_(in.target.limits.tasks_per_stream) {
    if (in.activation == nullptr) return;
    for (const Activator& a : in.activation->activators) {
      starts_.push_back({a.node, static_cast<std::uint32_t>(a.streams.size())});
    }
    std::sort(starts_.begin(), starts_.end());
  }

  Result<Splitting> run() {
    Splitting out;
    out.streams = static_cast<std::uint32_t>(in_.on.streams.size());
    if (out.streams == 0 || limit_ == 0xffffffffu) return out;
    measure();
    if (in_.options.single_stream) return single(std::move(out));
    std::vector<std::uint32_t> over;
    for (std::uint32_t s = 0; s < total_.size(); ++s) {
      if (total_[s] + in_.options.split_reserved <= roof()) continue;
      if (in_.on.streams[StreamId(s)].attached) {
        if (total_[s] > limit_) return attached_too_long(s);
        continue;
      }
      over.push_back(s);
    }
    if (over.empty()) return out;
    MST_TRY_VOID(cut_all(over));
    std::stable_sort(cuts_.begin(), cuts_.end(), [](const Cut& a, const Cut& b) { return a.asked < b.asked; });
    for (Cut& c : cuts_) {
      out.points.push_back({c.node, PhysicalStreamId(out.streams++), std::move(c.reason)});
      out.logical_of.push_back(StreamId(c.stream));
    }
    add_pairs(out);
    return out;
  }

 private:
  bool by_node() const { return in_.options.split_units == SplitUnits::node; }

  // The smallest limit any node of the graph can meet, in units counted.
  std::uint64_t roof() const { return by_node() ? std::max<std::uint64_t>(1, limit_ / dearest_) : limit_; }
  std::uint64_t limit_at(NodeId n) const {
    return by_node() ? std::max<std::uint64_t>(1, limit_ / std::max(1u, costs_.listed(n))) : limit_;
  }
  std::uint64_t own_cost(NodeId n) const {
    if (by_node()) return 1;
    const auto kind = control_.none() ? std::nullopt : control_.of(n);
    if (!kind) return costs_.of(n);
    if (*kind != Task::Kind::activate) return costs_.listed(n);
    const auto it = std::lower_bound(starts_.begin(), starts_.end(), std::pair<NodeId, std::uint32_t>(n, 0));
    return costs_.listed(n) + (it == starts_.end() || it->first != n ? 0 : it->second);
  }
  std::uint64_t cost(NodeId n) const { return own_cost(n) + (sync_.empty() ? 0 : sync_[n]); }

  void measure() {
    total_.assign(in_.on.streams.size(), 0);
    for (const NodeId n : in_.graph.nodes()) {
      if (!in_.on.placement[n]) continue;
      dearest_ = std::max(dearest_, costs_.listed(n));
      total_[in_.on.placement[n]->stream.index] += own_cost(n);
    }
    if (!in_.on.attached.empty()) {
      for (const NodeId n : in_.graph.nodes()) {
        if (const auto& list = in_.on.attached.get(n)) {
          for (const StreamId a : *list) total_[a.index] += std::max(1u, costs_.of(n));
        }
      }
    }
    if (!in_.charge_pairs) return;
    for (const SyncPair& p : in_.pairs) {
      if (p.from == p.to) {
        ++total_[p.stream.index];
        ++total_[in_.on.placement[p.from]->stream.index];
      } else {
        ++total_[in_.on.placement[p.from]->stream.index];
        ++total_[in_.on.placement[p.to]->stream.index];
      }
    }
  }

  std::string stream_name(std::uint32_t s) const {
    const std::string label = in_.on.streams[StreamId(s)].label_text();
    return label.empty() ? fmt::format("stream {}", s) : fmt::format("stream {} (label {})", s, quote(label));
  }

  Error attached_too_long(std::uint32_t s) const {
    Error e{ErrorCode::task_limit, fmt::format("attached {} would hold {} tasks, a stream of target {} holds {}", stream_name(s),
                                               total_[s], in_.target.name, limit_)};
    std::string users;
    int named = 0;
    for (const NodeId n : in_.graph.order()) {
      const auto& list = in_.on.attached.get(n);
      if (!list || std::find(list->begin(), list->end(), StreamId(s)) == list->end()) continue;
      if (++named > 3) break;
      users += fmt::format("{}{}", users.empty() ? "" : ", ", quote_name(in_.graph.name(n)));
    }
    return std::move(e.note(fmt::format("its nodes: {}{}", users, named > 3 ? ", ..." : ""))
                         .note("an attached stream is never split")
                         .help(named > 1 ? "give the nodes several reuse keys instead of one" : "give the node fewer device tasks, or a device with longer streams"));
  }

  Result<Splitting> single(Splitting out) const {
    for (std::uint32_t s = 0; s < total_.size(); ++s) {
      if (total_[s] <= limit_) continue;
      const Limits& limits = in_.target.limits;
      if (limits.huge_streams == 0) {
        out.warnings.push_back(Error{ErrorCode::task_limit,
                                     fmt::format("estimated {} tasks of {} exceed {}; huge streams are not supported", total_[s],
                                                 stream_name(s), limit_)}
                                   .help("allow more than one stream, so that it can be split"));
      } else if (total_[s] > limits.tasks_per_huge_stream) {
        return Error{ErrorCode::task_limit, fmt::format("{} needs {} tasks, a huge stream of target {} holds {}", stream_name(s),
                                                        total_[s], in_.target.name, limits.tasks_per_huge_stream)}
            .help("allow more than one stream, so that it can be split");
      } else {
        out.huge.push_back(PhysicalStreamId(s));
      }
    }
    return out;
  }

  Result<void> cut_all(const std::vector<std::uint32_t>& over) {
    std::vector<std::uint32_t> slot(in_.on.streams.size(), kNone);
    for (std::uint32_t i = 0; i < over.size(); ++i) slot[over[i]] = i;
    std::vector<std::vector<NodeId>> lanes(over.size());
    std::vector<std::vector<std::uint32_t>> place(over.size());
    const std::vector<NodeId>& order = in_.graph.order();
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      if (!in_.on.placement[order[i]]) continue;
      const std::uint32_t at = slot[in_.on.placement[order[i]]->stream.index];
      if (at == kNone) continue;
      lanes[at].push_back(order[i]);
      place[at].push_back(i);
    }
    if (in_.charge_pairs && !in_.pairs.empty()) {
      sync_ = IdVec<NodeId, std::uint32_t>(in_.graph.node_count(), 0);
      for (const SyncPair& p : in_.pairs) {
        ++sync_[p.from];
        if (p.from != p.to) ++sync_[p.to];
      }
    }
    owns_scope_.assign(in_.graph.scope_count() > 1 ? in_.graph.node_count() : 0, 0);
    for (const ScopeId s : in_.graph.scopes()) {
      if (const auto parent = in_.graph.scope(s).parent_node) owns_scope_[parent->index] = 1;
    }
    for (std::uint32_t i = 0; i < over.size(); ++i) MST_TRY_VOID(cut(over[i], lanes[i], place[i]));
    return {};
  }

  bool exempt(NodeId n) const {
    if (!owns_scope_.empty() && owns_scope_[n.index] != 0) return true;
    const auto& roles = in_.graph.annotations().roles.get(n);
    return (roles && roles->first_active) || (!control_.none() && control_.moves_inside(n));
  }

  Result<void> cut(std::uint32_t stream, const std::vector<NodeId>& lane, const std::vector<std::uint32_t>& place) {
    const std::vector<Bundle> bundles = bundles_of(in_.graph, lane, !by_node());
    std::uint64_t count = 0;
    std::uint32_t begin = 0;
    std::size_t bundle = 0;
    for (std::uint32_t i = 0; i < lane.size();) {
      const std::uint64_t c = cost(lane[i]);
      const std::uint64_t limit = limit_at(lane[i]);
      while (bundle < bundles.size() && bundles[bundle].last < i) ++bundle;
      if (i > begin && count + c + in_.options.split_reserved > limit) {
        const bool inside = bundle < bundles.size() && bundles[bundle].first < i;
        const std::uint32_t at = inside ? bundles[bundle].first : i;
        if (at > begin && (inside || !exempt(lane[i]))) {
          cuts_.push_back({place[i], stream, lane[at - 1], lane[at], reason(lane[i], count, c, limit, inside ? &bundles[bundle] : nullptr)});
          begin = at;
          count = 0;
          for (std::uint32_t k = at; k < i; ++k) count += cost(lane[k]);
          continue;
        }
        if (at <= begin && count + c > limit) return too_long(stream, bundles[bundle], lane[i], count + c, limit);
      }
      count += c;
      ++i;
    }
    return {};
  }

  std::string reason(NodeId n, std::uint64_t count, std::uint64_t c, std::uint64_t limit, const Bundle* bundle) const {
    std::string out = fmt::format("{} {} and {} for {}{} are over the {} that a stream holds", count,
                                  by_node() ? "nodes and sync tasks" : "tasks", c, quote_name(in_.graph.name(n)),
                                  in_.options.split_reserved == 0 ? "" : fmt::format(" and {} kept free", in_.options.split_reserved), limit);
    if (bundle == nullptr) return out;
    return out + (bundle->continuous.empty() ? fmt::format("; moved back before {}, whose branches stay together", quote_name(in_.graph.name(bundle->node))) :
                                               fmt::format("; moved back to keep continuous label {} together", quote(bundle->continuous)));
  }

  Error too_long(std::uint32_t stream, const Bundle& bundle, NodeId n, std::uint64_t count, std::uint64_t limit) const {
    if (!bundle.continuous.empty()) {
      return Error{ErrorCode::continuous_label,
                   fmt::format("continuous label {} at node {} ({}) cannot be kept on one stream: {} {}, limit {}", quote(bundle.continuous),
                               quote_name(in_.graph.name(n)), stream_name(stream), count, by_node() ? "nodes" : "tasks", limit)}
          .note(fmt::format("it begins at {}", quote_name(in_.graph.name(bundle.node))))
          .help("label fewer nodes, or raise limits.tasks_per_stream in the target's file if the device allows it");
    }
    return Error{ErrorCode::task_limit,
                 fmt::format("the branches that begin at {} need more than the {} tasks a stream of target {} holds: {} up to {} on {}",
                             quote_name(in_.graph.name(bundle.node)), limit, in_.target.name, count, quote_name(in_.graph.name(n)),
                             stream_name(stream))}
        .note("jumps stay inside one stream, so a branch and its labels are never split")
        .help("give part of the branch a stream label of its own");
  }

  void add_pairs(Splitting& out) const {
    const bool plain = control_.none() && (in_.activation == nullptr || in_.activation->empty()) && in_.graph.scope_count() == 1;
    const bool reduce = (in_.mode == SyncMode::exact || in_.mode == SyncMode::fewest) && plain && !in_.graph.order_is_fixed() && in_.charge_pairs;
    std::vector<std::uint32_t> begin, list;
    IdVec<NodeId, std::uint32_t> rank;
    if (reduce && !in_.pairs.empty()) {
      begin.assign(in_.graph.node_count() + 1, 0);
      for (const SyncPair& p : in_.pairs) ++begin[p.to.index + 1];
      std::partial_sum(begin.begin(), begin.end(), begin.begin());
      list.resize(in_.pairs.size());
      std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
      for (std::uint32_t i = 0; i < in_.pairs.size(); ++i) list[next[in_.pairs[i].to.index]++] = i;
      rank = IdVec<NodeId, std::uint32_t>(in_.graph.node_count(), 0);
      for (std::uint32_t i = 0; i < in_.graph.order().size(); ++i) rank[in_.graph.order()[i]] = i;
    }
    for (const Cut& c : cuts_) {
      if (!begin.empty() && implied(c, begin, list, rank)) continue;
      out.pairs.push_back({c.before, c.node, PairReason::split});
    }
  }

  // Whether the pair before -> node follows from the kept pairs and the order of the other streams: what `before`
  // reaches is a suffix of each stream, found in one pass over the nodes between the two. (Their own stream has
  // nothing there.) Orders across other cuts may be used: a circle of such uses would be a circle of orders.
  bool implied(const Cut& c, const std::vector<std::uint32_t>& begin, const std::vector<std::uint32_t>& list,
               const IdVec<NodeId, std::uint32_t>& rank) const {
    if (begin[c.node.index] == begin[c.node.index + 1]) return false;
    std::vector<std::uint8_t> reached(in_.on.streams.size(), 0);
    std::vector<NodeId> hit = {c.before};  // nodes behind which a wait is behind `before`; ascending by rank
    const auto is_hit = [&](NodeId n) {
      return std::binary_search(hit.begin(), hit.end(), n, [&](NodeId a, NodeId b) { return rank[a] < rank[b]; });
    };
    for (std::uint32_t i = rank[c.before];; ++i) {
      const NodeId n = in_.graph.order()[i];
      if (!in_.on.placement[n]) continue;
      const std::uint32_t s = in_.on.placement[n]->stream.index;
      bool here = n != c.node && reached[s] != 0;
      for (std::uint32_t k = begin[n.index]; k < begin[n.index + 1] && !here; ++k) {
        const SyncPair& p = in_.pairs[list[k]];
        here = p.from != p.to && is_hit(p.from);
      }
      if (n == c.node) return here;
      for (const StreamId a : in_.on.forked(n)) {
        const bool before = here;
        here = here || reached[a.index] != 0;
        reached[a.index] = reached[a.index] != 0 || before ? 1 : 0;
      }
      if (here && n != c.before) {
        reached[s] = 1;
        hit.push_back(n);
      }
    }
  }

  static constexpr std::uint32_t kNone = 0xffffffffu;
  const SplitInput& in_;
  TaskCosts costs_;
  ControlTypes control_;
  std::uint64_t limit_;
  std::uint32_t dearest_ = 1;
  std::vector<std::uint64_t> total_;       // by stream, in units counted
  IdVec<NodeId, std::uint32_t> sync_;      // records and waits of a node
  std::vector<std::uint8_t> owns_scope_;
  std::vector<std::pair<NodeId, std::uint32_t>> starts_;  // node, streams it starts; by node
  std::vector<Cut> cuts_;
};

}  // namespace

TaskCosts::TaskCosts(const Graph& graph, const Target& target) : graph_(graph) {
  constexpr std::uint32_t kUnasked = 0xffffffffu;
  cost_.assign(graph.strings().size(), 0);
  listed_.assign(graph.strings().size(), kUnasked);
  const TaskTypes emits(graph);
  for (const NodeId n : graph.nodes()) {
    const std::uint32_t type = graph.type_id(n).index;
    if (listed_[type] != kUnasked) continue;
    listed_[type] = target.tasks_of(graph.type(n));
    cost_[type] = emits(n) ? listed_[type] : 0;
  }
}

std::vector<std::uint32_t> Splitting::pieces_of(StreamId s) const {
  std::vector<std::uint32_t> out = {s.index};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (logical_of[i] == s) out.push_back(points[i].opened.index);
  }
  return out;
}

PieceWalk::PieceWalk(const StreamAssignment& on, const Splitting& splitting) : on_(on), current_(on.streams.size()) {
  std::iota(current_.begin(), current_.end(), 0u);
  if (splitting.points.empty()) return;
  opens_ = IdVec<NodeId, std::uint32_t>(on.placement.size(), 0);
  for (const SplitPoint& p : splitting.points) opens_[p.node] = p.opened.index;
}

Result<Splitting> split_streams(const SplitInput& input) { return Splitter(input).run(); }

}  // namespace millstream
