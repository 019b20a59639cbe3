// SPDX-License-Identifier: Apache-2.0
// ineffective: a chain that runs on a stream of its own while the stream it comes from and returns to would only
// wait moves there. Nothing is lost: the chain starts after the last of its inputs, and what follows it there starts
// after the chain, so between the two that stream stands still. Each move saves two waits or more.
#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

constexpr std::uint32_t kNowhere = 0xffffffffu;

class Ineffective {
 public:
  explicit Ineffective(ChainState& s) : s_(s), next_(s.size(), kNowhere), before_(s.size(), kNowhere) {
    const std::size_t streams = s.next_stream;
    closed_.assign(streams, 0);
    std::vector<std::uint32_t> last(streams, kNowhere);
    for (std::uint32_t i = 0; i < s.size(); ++i) {
      const std::int32_t t = stream(i);
      if (t == kNoStream) continue;
      const auto at = static_cast<std::size_t>(t);
      used_ += last[at] == kNowhere;
      if (last[at] != kNowhere) next_[last[at]] = i;
      before_[i] = last[at];
      last[at] = i;
      const NodeId n = s.nodes[i];
      if (s.label_of(n) != 0 || s.is_pinned(n) || s.engine(n).independent) closed_[at] = 1;
    }
    for (std::size_t t = 0; t < streams; ++t) {
      if (!s.infos[t].label.empty()) closed_[t] = 1;
    }
    if (s.graph.scope_count() > 1) {
      owns_.assign(s.graph.node_count(), 0);
      for (const ScopeId x : s.graph.scopes()) {
        if (x.index != 0) owns_[s.graph.scope(x).parent_node->index] = 1;
      }
    }
  }

  void run() {
    if (used_ < 2) return;
    std::vector<std::uint32_t> chain;
    for (std::uint32_t i = 0; i < s_.size(); ++i) {
      if (!may_move(i) || only_on(s_.edges.pred_begin, s_.edges.pred, i, stream(i)) != kNowhere) continue;
      chain.assign(1, i);
      while (extend(chain)) {
      }
      if (chain.size() == 1 || s_.options.ineffective_chain) weigh(chain);
    }
  }

 private:
  std::int32_t stream(std::uint32_t i) const { return s_.stream[s_.nodes[i]]; }

  bool may_move(std::uint32_t i) const {
    const NodeId n = s_.nodes[i];
    if (!s_.is_free(n) || s_.label_of(n) != 0 || s_.engine(n).independent) return false;
    const Annotations& notes = s_.graph.annotations();
    if (s_.group_of(n) || notes.attached.get(n) || notes.activates.get(n) || notes.activates_streams.get(n)) return false;
    if (!notes.roles.empty() && notes.roles.get(n)) return false;
    if (!owns_.empty() && owns_[n.index] != 0) return false;
    const std::string_view type = s_.graph.type(n);
    return type.substr(0, 6) != "Stream" && type.substr(0, 5) != "Label" && s_.graph.bodies(n).empty();
  }

  // The one neighbour in a list that is on stream t; kNowhere for none, i itself for several.
  std::uint32_t only_on(const std::vector<std::uint32_t>& begin, const std::vector<std::uint32_t>& list, std::uint32_t i,
                        std::int32_t t) const {
    std::uint32_t found = kNowhere;
    for (std::uint32_t e = begin[i]; e < begin[i + 1]; ++e) {
      if (stream(list[e]) != t || list[e] == found) continue;
      if (found != kNowhere) return i;
      found = list[e];
    }
    return found;
  }

  bool extend(std::vector<std::uint32_t>& chain) const {
    const std::uint32_t tail = chain.back();
    const std::uint32_t to = only_on(s_.succ_begin, s_.succ, tail, stream(tail));
    if (to == kNowhere || to == tail || !may_move(to)) return false;
    if (only_on(s_.edges.pred_begin, s_.edges.pred, to, stream(tail)) != tail) return false;
    chain.push_back(to);
    return true;
  }

  void weigh(const std::vector<std::uint32_t>& chain) {
    const std::int32_t from = stream(chain.front());
    std::uint32_t last_in = kNowhere, first_out = kNowhere;
    std::int32_t to = kNoStream;
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const std::uint32_t i = chain[k];
      for (std::uint32_t e = s_.edges.pred_begin[i]; e < s_.edges.pred_begin[i + 1]; ++e) {
        const std::uint32_t p = s_.edges.pred[e];
        if (stream(p) == kNoStream || (k > 0 && p == chain[k - 1])) continue;
        if (to != kNoStream && stream(p) != to) return;
        to = stream(p);
        if (last_in == kNowhere || p > last_in) last_in = p;
      }
      for (std::uint32_t e = s_.succ_begin[i]; e < s_.succ_begin[i + 1]; ++e) {
        const std::uint32_t q = s_.succ[e];
        if (stream(q) == kNoStream || (k + 1 < chain.size() && q == chain[k + 1])) continue;
        if (to != kNoStream && stream(q) != to) return;
        to = stream(q);
        if (first_out == kNowhere || q < first_out) first_out = q;
      }
    }
    if (last_in == kNowhere || first_out == kNowhere || to == from) return;
    if (closed_[static_cast<std::size_t>(to)] != 0 || next_[last_in] != first_out) return;
    const std::string& scheduler = s_.engine(s_.nodes[last_in]).scheduler;
    for (const std::uint32_t i : chain) {
      if (s_.engine(s_.nodes[i]).scheduler != scheduler) return;
    }
    std::uint32_t at = last_in;
    for (const std::uint32_t i : chain) {
      if (before_[i] != kNowhere) next_[before_[i]] = next_[i];
      if (next_[i] != kNowhere) before_[next_[i]] = before_[i];
      next_[i] = first_out;
      before_[i] = at;
      next_[at] = i;
      before_[first_out] = i;
      at = i;
      s_.stream[s_.nodes[i]] = to;
      s_.say(s_.nodes[i], [&] {
        return fmt::format("ineffective: {} would only wait between {} and {}, so the node moves there from {}", s_.stream_word(to),
                           s_.graph.name(s_.nodes[last_in]), s_.graph.name(s_.nodes[first_out]), s_.stream_word(from));
      });
    }
  }

  ChainState& s_;
  std::vector<std::uint32_t> next_, before_;  // by position: neighbours on the same stream
  std::vector<std::uint8_t> closed_;          // by raw stream: a label's, a pinned group's or an independent engine's
  std::vector<std::uint8_t> owns_;
  std::size_t used_ = 0;
};

}  // namespace

Result<void> ineffective(ChainState& s) {
  Ineffective(s).run();
  return {};
}

}  // namespace millstream::chain
