// SPDX-License-Identifier: Apache-2.0
#include "millstream/assign/chain/state.h"

#include <algorithm>

#include <fmt/format.h>

namespace millstream::chain {
namespace {

// Their outputs are bound before the run: they need no stream and pull nothing together.
bool is_data_type(std::string_view type) {
  return type == "Const" || type == "Constant" || type == "Data" || type == "AippData" || type == "Variable";
}

// Whether a label names the branch: in any case, and whole, since L_Batch_10 says nothing of Batch_1.
bool names_branch(std::string_view label, std::string_view branch) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto goes_on = [&](char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  for (auto at = label.begin();; ++at) {
    at = std::search(at, label.end(), branch.begin(), branch.end(), [&](char a, char b) { return lower(a) == lower(b); });
    if (at == label.end()) return false;
    const auto behind = at + static_cast<std::ptrdiff_t>(branch.size());
    if (behind == label.end() || !goes_on(*behind)) return true;
  }
}

}  // namespace

bool is_call(std::string_view type) {
  return type == "PartitionedCall" || type == "StatefulPartitionedCall" || type == "StatelessPartitionedCall";
}

ChainState::ChainState(const Graph& g, const Target& t, const AssignOptions& o, const IdVec<NodeId, EngineId>& e)
    : graph(g), target(t), options(o), engines(e), stream(g.node_count(), kNoStream), decided_by(g.node_count()),
      hcom_parallel(o.hcom_parallel), position(g.node_count(), 0), cluster_of(g.node_count(), kNoCluster) {
  if (graph.control_edges().empty()) return;
  control_begin_.assign(g.node_count() + 1, 0);
  for (const ControlEdge& c : graph.control_edges()) ++control_begin_[c.to.index + 1];
  for (std::size_t i = 0; i < g.node_count(); ++i) control_begin_[i + 1] += control_begin_[i];
  control_.resize(graph.control_edges().size());
  std::vector<std::uint32_t> next(control_begin_.begin(), control_begin_.end() - 1);
  for (const ControlEdge& c : graph.control_edges()) control_[next[c.to.index]++] = c.from;
  // Equal graphs give equal streams: how the input lists a node's control edges does not count.
  IdVec<NodeId, std::uint32_t> place(g.node_count(), 0);
  for (std::size_t i = 0; i < g.order().size(); ++i) place[g.order()[i]] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < g.node_count(); ++i) {
    std::sort(control_.begin() + control_begin_[i], control_.begin() + control_begin_[i + 1],
              [&](NodeId a, NodeId b) { return place[a] < place[b]; });
  }
}

std::int32_t ChainState::new_stream(StreamInfo info) {
  if (infos.size() <= next_stream) infos.resize(next_stream + 1);
  infos[next_stream] = std::move(info);
  return static_cast<std::int32_t>(next_stream++);
}

void ChainState::pin(NodeId n) {
  if (pinned.empty()) pinned.resize(graph.node_count(), 0);
  pinned[n] = 1;
}

bool ChainState::is_rts(NodeId n) const {
  if (graph.annotations().roles.empty()) return false;
  const auto& roles = graph.annotations().roles.get(n);
  return roles && roles->rts_label;
}

std::optional<StringId> ChainState::group_of(NodeId n) const {
  const auto& group = graph.annotations().parallel_group.get(n);
  return group && !graph.text(*group).empty() ? group : std::nullopt;
}

std::string ChainState::words(const Cluster& c) const {
  const std::uint32_t count = c.end - c.begin;
  const std::string_view first = graph.name(members[c.begin]);
  return count == 1 ? std::string(first) : fmt::format("the cluster of {} and {} more", first, count - 1);
}

std::string ChainState::words_label(std::uint32_t l) const {
  return fmt::format("{} \"{}\"", labels[l].user ? "user label" : "label", labels[l].text);
}

std::string ChainState::stream_word(std::int32_t raw) { return fmt::format("\x01{}\x02", raw); }

void finish_words(std::vector<std::string>& said, const std::vector<std::int32_t>& to) {
  for (std::string& text : said) {
    for (std::size_t at = text.find('\x01'); at != std::string::npos; at = text.find('\x01', at)) {
      const std::size_t end = text.find('\x02', at);
      const std::size_t raw = std::stoul(text.substr(at + 1, end - at - 1));
      const std::string word = raw < to.size() && to[raw] != kNoStream ? fmt::format("stream {}", to[raw])
                                                                       : "a stream that no node kept";
      text.replace(at, end - at + 1, word);
    }
  }
}

std::uint32_t ChainState::region() const {
  ScopeId s = scope;
  while (s.index != 0) {
    if (!is_call(graph.type(*graph.scope(s).parent_node))) return s.index;
    s = graph.scope(s).parent;
  }
  return 0;
}

void ChainState::enter(ScopeId s, std::vector<NodeId> scope_nodes) {
  scope = s;
  nodes = std::move(scope_nodes);
  default_stream = kNoStream;
  if (s.index != 0) default_stream = stream[*graph.scope(s).parent_node];
  const std::size_t n = nodes.size();
  for (std::uint32_t i = 0; i < n; ++i) position[nodes[i]] = i;
  edges.key.clear();
  edges.pred.clear();
  edges.pred_begin.assign(1, 0);
  edges.pred_begin.reserve(n + 1);
  const bool one_scope = graph.scope_count() == 1;
  for (std::uint32_t i = 0; i < n; ++i) {
    const NodeId v = nodes[i];
    const auto add = [&](NodeId u) {
      if ((one_scope || graph.scope_of(u) == s) && position[u] < i) edges.pred.push_back(position[u]);
    };
    for (const InputRef in : graph.inputs(v)) {
      const auto value = in.get();
      if (!value) continue;
      if (const auto p = graph.producer(*value)) add(*p);
    }
    if (graph.body_count() != 0) {
      for (const ValueId value : graph.captures(v)) {
        if (const auto p = graph.producer(value)) add(*p);
      }
    }
    if (!control_begin_.empty()) {
      for (std::uint32_t c = control_begin_[v.index]; c < control_begin_[v.index + 1]; ++c) add(control_[c]);
    }
    edges.pred_begin.push_back(static_cast<std::uint32_t>(edges.pred.size()));
  }
  succ_begin.assign(n + 1, 0);
  for (const std::uint32_t p : edges.pred) ++succ_begin[p + 1];
  for (std::size_t i = 0; i < n; ++i) succ_begin[i + 1] += succ_begin[i];
  succ.resize(edges.pred.size());
  std::vector<std::uint32_t> next(succ_begin.begin(), succ_begin.end() - 1);
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t e = edges.pred_begin[i]; e < edges.pred_begin[i + 1]; ++e) succ[next[edges.pred[e]]++] = i;
  }
  clusters = IdVec<ClusterId, Cluster>();
  members.clear();
}

// A cluster's number is the rank of its first node; members are sorted by counting.
void ChainState::make_clusters() {
  const std::size_t n = nodes.size();
  edges.key.resize(n);
  std::vector<std::uint8_t> pooled(n, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    const NodeId v = nodes[i];
    pooled[i] = edges.pred_begin[i] == edges.pred_begin[i + 1] && graph.inputs(v).empty() && is_data_type(graph.type(v));
    // Pooled nodes have no predecessors: no node merges into one whose key is its own.
    edges.key[i] = pooled[i] ? (std::uint64_t{1} << 63) | i
                             : (static_cast<std::uint64_t>(label_of(v)) << 32) | engines[v].index;
  }
  const std::vector<std::uint32_t> first = merge_clusters(edges);
  std::vector<std::uint32_t> rank(n, kNoCluster);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (pooled[i]) continue;
    if (first[i] == i) {
      Cluster c;
      c.engine = engines[nodes[i]];
      c.label = label_of(nodes[i]);
      rank[i] = clusters.push_back(c).index;
    }
    cluster_of[nodes[i]] = rank[first[i]];
    ++clusters[ClusterId(rank[first[i]])].end;
  }
  std::uint32_t at = 0;
  for (Cluster& c : clusters) {
    c.begin = at;
    at += c.end;
    c.end = c.begin;
  }
  members.resize(at);
  for (const NodeId v : nodes) {
    if (cluster_of[v] != kNoCluster) members[clusters[ClusterId(cluster_of[v])].end++] = v;
  }
  cluster_total += static_cast<std::uint32_t>(clusters.size());
}

Result<void> ChainState::take_clusters(const std::vector<std::vector<NodeId>>& given) {
  for (const std::vector<NodeId>& list : given) {
    if (list.empty()) continue;
    Cluster c;
    c.engine = engines[list.front()];
    c.label = label_of(list.front());
    c.begin = static_cast<std::uint32_t>(members.size());
    for (const NodeId v : list) {
      if (graph.scope_of(v) != scope || cluster_of[v] != kNoCluster || engines[v] != c.engine || label_of(v) != c.label) {
        return Error{ErrorCode::bad_graph, fmt::format("{} cannot be in the given cluster of {}: another scope, engine, "
                                                       "label or cluster has it", graph.name(v), graph.name(list.front()))};
      }
      cluster_of[v] = static_cast<std::uint32_t>(clusters.size());
      members.push_back(v);
    }
    c.end = static_cast<std::uint32_t>(members.size());
    clusters.push_back(c);
  }
  cluster_total += static_cast<std::uint32_t>(clusters.size());
  return {};
}

Result<void> ChainState::read_labels() {
  const Annotations& notes = graph.annotations();
  if (notes.label.empty() && notes.user_label.empty()) return {};
  label = IdVec<NodeId, std::uint32_t>(graph.node_count(), 0);
  std::vector<std::uint32_t> user_index(graph.strings().size(), 0), stream_index(graph.strings().size(), 0);
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::uint32_t> in_branch;
  for (const NodeId n : graph.order()) {
    const auto& user_note = notes.user_label.get(n);
    const bool user = user_note && !graph.text(*user_note).empty();
    const auto& note = user ? user_note : notes.label.get(n);
    if (!note || graph.text(*note).empty()) continue;
    const std::string_view text = graph.text(*note);
    const auto& batch = notes.batch.get(n);
    if (batch && !graph.text(*batch).empty() && !names_branch(text, graph.text(*batch))) {
      if (!options.mdim_label_suffix) {
        return Error{ErrorCode::label_without_dim,
                     fmt::format("label \"{}\" on {} does not contain its branch \"{}\"", text, graph.name(n), graph.text(*batch))}
            .note("branches of a multi-dims model would share the label's stream")
            .help("put the branch into the label, or set mdim_label_suffix=true");
      }
      std::uint32_t& index = in_branch[{user, note->index, batch->index}];
      if (index == 0) {
        index = static_cast<std::uint32_t>(labels.size());
        labels.push_back({fmt::format("{}|{}", text, graph.text(*batch)), user});
      }
      label[n] = index;
      continue;
    }
    std::uint32_t& index = (user ? user_index : stream_index)[note->index];
    if (index == 0) {
      index = static_cast<std::uint32_t>(labels.size());
      labels.push_back({std::string(text), user});
    }
    label[n] = index;
  }
  return {};
}

}  // namespace millstream::chain
