// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/event_phases.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

// Indices of uses that have a sender, by sender in execution order, then list order.
std::vector<std::uint32_t> by_sender(const Graph& graph, const Events& events) {
  IdVec<NodeId, std::uint32_t> rank(graph.node_count(), 0);
  for (std::uint32_t i = 0; i < graph.order().size(); ++i) rank[graph.order()[i]] = i;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < events.uses.size(); ++i) {
    if (events.uses[i].from) out.push_back(i);
  }
  std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
    return rank[*events.uses[a].from] < rank[*events.uses[b].from];
  });
  return out;
}

struct Entry {
  bool send = false;
  NodeId peer;
  std::uint32_t id = 0;
};

Result<Entry> parse_entry(const Graph& graph, const std::unordered_map<std::string_view, NodeId>& nodes, NodeId n, std::string_view text) {
  const auto bad = [&](std::string why) {
    return Error{ErrorCode::bad_attribute, fmt::format("event multiplexing of node {}: {} {}", quote_name(graph.name(n)), quote(text), why)}
        .help("write SendTo;PEER;K or RecvFrom;PEER;K with a node's name and a number from 0");
  };
  const std::size_t first = text.find(';');
  const std::size_t second = first == std::string_view::npos ? first : text.find(';', first + 1);
  if (second == std::string_view::npos || text.find(';', second + 1) != std::string_view::npos) return bad("does not have three parts");
  const std::string_view word = text.substr(0, first), peer = text.substr(first + 1, second - first - 1), number = text.substr(second + 1);
  if (word != "SendTo" && word != "RecvFrom") return bad("begins with neither SendTo nor RecvFrom");
  std::int64_t k = 0;
  const auto [stop, code] = std::from_chars(number.data(), number.data() + number.size(), k);
  if (code != std::errc() || stop != number.data() + number.size() || k < 0 || k > std::numeric_limits<std::int32_t>::max()) {
    return bad(fmt::format("has no number in 0..{}", std::numeric_limits<std::int32_t>::max()));
  }
  const auto it = nodes.find(peer);
  if (it == nodes.end()) return bad(fmt::format("names node {}, which the graph lacks", quote_name(peer)));
  return Entry{word == "SendTo", it->second, static_cast<std::uint32_t>(k)};
}

struct Sharing {
  NodeId named_at, from, to;
  std::uint32_t id = 0;
};

// What all nodes ask for: the senders first, then the receivers.
Result<std::vector<Sharing>> sharings(const Graph& graph) {
  const auto& entries = graph.annotations().multiplex;
  std::vector<Sharing> sends, receives;
  if (entries.empty()) return sends;
  std::unordered_map<std::string_view, NodeId> nodes;
  for (const NodeId n : graph.nodes()) nodes.try_emplace(graph.name(n), n);
  for (const NodeId n : graph.order()) {
    const auto& list = entries.get(n);
    if (!list) continue;
    for (const StringId text : *list) {
      MST_TRY(const Entry e, parse_entry(graph, nodes, n, graph.text(text)));
      (e.send ? sends : receives).push_back({n, e.send ? n : e.peer, e.send ? e.peer : n, e.id});
    }
  }
  sends.insert(sends.end(), receives.begin(), receives.end());
  return sends;
}

std::uint64_t ends(NodeId from, NodeId to) { return std::uint64_t{from.index} << 32 | to.index; }

}  // namespace

Result<Events> reuse_across_dims(const Graph& graph, Events events) {
  const auto& batch = graph.annotations().batch;
  if (batch.empty()) return events;
  std::vector<std::optional<StringId>> dim(events.uses.size());
  for (std::size_t i = 0; i < events.uses.size(); ++i) {
    const EventUse& u = events.uses[i];
    if (!u.from || !u.to) continue;
    const auto& a = batch.get(*u.from);
    const auto& b = batch.get(*u.to);
    if (!a || !b) continue;
    if (*a != *b) {
      return Error{ErrorCode::conditional_wait,
                   fmt::format("{} waits for {}, but they are in two branches of which only one runs: {} and {}", quote_name(graph.name(*u.to)),
                               quote_name(graph.name(*u.from)), quote(graph.text(*b)), quote(graph.text(*a)))};
    }
    dim[i] = *a;
  }
  const std::vector<std::uint32_t> order = by_sender(graph, events);
  std::unordered_map<std::uint64_t, std::uint32_t> seen;  // dim + 1 and old id -> new id
  std::unordered_map<std::uint32_t, std::uint32_t> next;  // by dim
  std::vector<std::uint32_t> id(events.uses.size(), kNone);
  std::uint32_t common = 0;
  for (std::uint32_t i = 0; i < events.uses.size(); ++i) {
    if (dim[i]) continue;
    const auto [it, fresh] = seen.try_emplace(events.uses[i].id, common);
    if (fresh) ++common;
    id[i] = it->second;
  }
  std::uint32_t most = 0;
  for (const std::uint32_t i : order) {
    if (!dim[i]) continue;
    std::uint32_t& n = next.try_emplace(dim[i]->index, 0).first->second;
    const auto [it, fresh] = seen.try_emplace((std::uint64_t{dim[i]->index} + 1) << 32 | events.uses[i].id, common + n);
    if (fresh) ++n;
    id[i] = it->second;
    most = std::max(most, n);
  }
  for (std::size_t i = 0; i < events.uses.size(); ++i) events.uses[i].id = id[i];
  events.count = common + most;
  return events;
}

Result<Events> multiplex(const Graph& graph, Events events, std::uint32_t threshold) {
  MST_TRY(const std::vector<Sharing> asked, sharings(graph));
  if (asked.empty() || events.count <= threshold) return events;
  std::unordered_map<std::uint64_t, std::uint32_t> first;  // event of each pair of nodes
  for (std::uint32_t i = 0; i < events.uses.size(); ++i) {
    const EventUse& u = events.uses[i];
    if (u.from && u.to) first.try_emplace(ends(*u.from, *u.to), i);
  }
  std::uint32_t count = events.count;
  for (const Sharing& s : asked) {
    const auto it = first.find(ends(s.from, s.to));
    if (it == first.end()) continue;  // reduced away
    events.uses[it->second].id = events.count + s.id;
    count = std::max(count, events.count + s.id + 1);
  }
  events.count = count;
  return events;
}

Result<std::vector<Error>> multiplex_warnings(const Graph& graph, const Events& events, std::uint32_t threshold) {
  std::vector<Error> out;
  MST_TRY(const std::vector<Sharing> asked, sharings(graph));
  if (asked.empty() || events.count <= threshold) return out;
  std::unordered_map<std::uint64_t, std::uint32_t> between;
  for (const EventUse& u : events.uses) {
    if (u.from && u.to) ++between[ends(*u.from, *u.to)];
  }
  for (const Sharing& s : asked) {
    const auto it = between.find(ends(s.from, s.to));
    if (it == between.end() || it->second < 2) continue;
    out.push_back(Error{ErrorCode::no_effect,
                        fmt::format("event multiplexing of node {}: {} events lead from {} to {}; only the first takes the number {}",
                                    quote_name(graph.name(s.named_at)), it->second, quote_name(graph.name(s.from)), quote_name(graph.name(s.to)), s.id)}
                      .help("sync=exact keeps one event for two nodes"));
  }
  return out;
}

Result<Events> make_continuous(const Graph& graph, Events events) {
  std::unordered_map<std::uint32_t, std::uint32_t> fresh;
  for (const std::uint32_t i : by_sender(graph, events)) {
    fresh.try_emplace(events.uses[i].id, static_cast<std::uint32_t>(fresh.size()));
  }
  for (EventUse& u : events.uses) {
    const auto it = fresh.find(u.id);
    if (it == fresh.end()) {
      return Error{ErrorCode::wait_without_record,
                   fmt::format("event {} is waited on{} but never sent", u.id,
                               u.to ? fmt::format(" before {}", quote_name(graph.name(*u.to))) : std::string())};
    }
    u.id = it->second;
  }
  events.count = static_cast<std::uint32_t>(fresh.size());
  return events;
}

}  // namespace millstream
