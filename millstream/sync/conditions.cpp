// SPDX-License-Identifier: Apache-2.0
#include "millstream/sync/conditions.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;
constexpr std::size_t kMostProducts = 64;
constexpr std::uint32_t kBudget = 20'000;  // steps of one question

}  // namespace

Conditions::Conditions(const Graph& graph, const StreamAssignment& on, const Activation& activation, const ControlFlow& flow)
    : graph_(graph), on_(on), activation_(activation), flow_(flow), place_(graph.node_count()), switches_(on.streams.size()), open_(on.streams.size(), 0) {
  for (std::size_t i = 0; i < graph.order().size(); ++i) place_[graph.order()[i].index] = static_cast<std::uint32_t>(i);
  for (const Activator& a : activation.activators) {
    if (!is_stream_switch(graph.type(a.node)) || !on.placement[a.node]) continue;
    // One target: the rest of the stream runs only if it is not taken.
    if (graph.type(a.node) == "StreamSwitch") switches_[on.placement[a.node]->stream.index].push_back({place_[a.node.index], a.node});
  }
  if (!flow.scoped()) return;
  scope_variable_.assign(graph.scope_count(), kNone);
  scope_value_.assign(graph.scope_count(), 0);
  std::map<std::uint32_t, std::uint32_t> variable;  // by parent node
  for (std::size_t s = 1; s < graph.scope_count(); ++s) {
    if (!flow.scope(ScopeId(s)).conditional) continue;
    const std::uint32_t parent = graph.scope(ScopeId(s)).parent_node->index;
    const auto [at, fresh] = variable.try_emplace(parent, static_cast<std::uint32_t>(values_.size()));
    if (fresh) values_.push_back(flow.scope(ScopeId(s)).repeats ? 1 : 0);  // a loop's body may be left out
    scope_variable_[s] = at->second;
    scope_value_[s] = values_[at->second]++;
  }
}

std::uint32_t Conditions::variable_of_switch(NodeId n) {
  std::uint32_t key = n.index;
  const auto& roles = graph_.annotations().roles.get(n);
  const auto inputs = graph_.inputs(n);
  if (graph_.type(n) == "StreamSwitch" && roles && !inputs.empty() && inputs[0].get()) {
    key = static_cast<std::uint32_t>(graph_.node_count()) + inputs[0].get()->index;
  }
  const auto [at, fresh] = by_node_.try_emplace(key, static_cast<std::uint32_t>(values_.size()));
  if (fresh) {
    const auto& labels = graph_.annotations().activates.get(n);
    const auto& ids = graph_.annotations().activates_streams.get(n);
    const std::size_t targets = std::max(labels ? labels->size() : 0, ids ? ids->size() : 0);
    values_.push_back(graph_.type(n) == "StreamSwitchN" ? static_cast<std::uint32_t>(std::max<std::size_t>(targets, 1)) : 2);
  }
  return at->second;
}

std::optional<Conditions::Product> Conditions::both(const Product& a, const Product& b) {
  Product out;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  out.erase(std::unique(out.begin(), out.end()), out.end());
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (out[i].variable == out[i - 1].variable) return std::nullopt;
  }
  return out;
}

Conditions::Sum Conditions::conjoin(const Sum& a, const Sum& b) const {
  Sum out;
  out.unknown = a.unknown || b.unknown;
  for (const Product& p : a.products) {
    for (const Product& q : b.products) {
      if (auto r = both(p, q)) out.products.push_back(std::move(*r));
    }
  }
  return simplify(std::move(out));
}

// Drops what another product contains, and joins products that differ in all outcomes of one variable.
Conditions::Sum Conditions::simplify(Sum sum) const {
  std::vector<Product>& list = sum.products;
  for (bool changed = true; changed;) {
    changed = false;
    std::sort(list.begin(), list.end(), [](const Product& a, const Product& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (list.size() > kMostProducts * 4) {
      sum.unknown = true;
      list.clear();
      return sum;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (std::size_t j = list.size(); j-- > i + 1;) {
        if (std::includes(list[j].begin(), list[j].end(), list[i].begin(), list[i].end())) list.erase(list.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
    for (std::size_t i = 0; i < list.size() && !changed; ++i) {
      for (std::size_t k = 0; k < list[i].size() && !changed; ++k) {
        std::uint32_t found = 0;
        for (std::uint32_t v = 0; v < values_[list[i][k].variable]; ++v) {
          Product other = list[i];
          other[k].value = v;
          found += std::find(list.begin(), list.end(), other) != list.end() ? 1 : 0;
        }
        if (found < values_[list[i][k].variable]) continue;
        Product rest = list[i];
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
        list.push_back(std::move(rest));
        changed = true;
      }
    }
  }
  if (list.size() > kMostProducts) {
    sum.unknown = true;
    list.clear();
  }
  return sum;
}

Conditions::Sum Conditions::within_scopes(Sum sum, ScopeId region) const {
  Product scopes;
  for (; !scope_variable_.empty() && region.index != 0; region = graph_.scope(region).parent) {
    if (scope_variable_[region.index] != kNone) scopes.push_back({scope_variable_[region.index], scope_value_[region.index]});
  }
  if (scopes.empty()) return sum;
  std::sort(scopes.begin(), scopes.end());
  return conjoin(sum, Sum{{std::move(scopes)}});
}

Conditions::Sum Conditions::of_stream(StreamId s) {
  if (activation_.head(s)) return Sum{{Product{}}};
  if (const auto at = stream_sum_.find(s.index); at != stream_sum_.end()) return at->second;
  if (open_[s.index] != 0) return Sum{};  // a circle of activations adds no way to start
  open_[s.index] = 1;
  Sum out;
  for (const NodeId a : activation_.started_by[s]) {
    if (!on_.placement[a]) continue;
    const Sum way = of_start(s, a);
    out.unknown = out.unknown || way.unknown;
    out.products.insert(out.products.end(), way.products.begin(), way.products.end());
  }
  out = simplify(std::move(out));
  open_[s.index] = 0;
  stream_sum_[s.index] = out;
  return out;
}

// Whether a node with this stream label runs on the stream or beside it; a branch may span several. Linear.
bool Conditions::carries(StreamId s, StringId label) const {
  for (const NodeId n : graph_.nodes()) {
    const auto& own = graph_.annotations().label.get(n);
    if (!own || *own != label || !on_.placement[n]) continue;
    const auto& attached = on_.attached.get(n);
    if (on_.placement[n]->stream == s || (attached && std::find(attached->begin(), attached->end(), s) != attached->end())) return true;
  }
  return false;
}

// Whether `s` is attached to a node of stream `main`. Linear.
bool Conditions::beside(StreamId s, StreamId main) const {
  if (!on_.streams[s].attached) return false;
  for (const NodeId n : graph_.nodes()) {
    const auto& attached = on_.attached.get(n);
    if (attached && on_.placement[n] && on_.placement[n]->stream == main && std::find(attached->begin(), attached->end(), s) != attached->end()) return true;
  }
  return false;
}

Conditions::Sum Conditions::of_start(StreamId s, NodeId a) {
  if (!is_stream_switch(graph_.type(a))) return of_task(a, true);
  const std::uint32_t variable = variable_of_switch(a);
  Sum taken;
  if (graph_.type(a) == "StreamSwitch") {
    const auto& roles = graph_.annotations().roles.get(a);
    taken.products.push_back({{variable, roles && !roles->true_branch && !graph_.inputs(a).empty() ? 0u : 1u}});
  } else {
    const auto& labels = graph_.annotations().activates.get(a);
    const bool by_label = labels && !labels->empty();
    for (std::uint32_t i = 0; by_label && i < labels->size(); ++i) {
      if (carries(s, (*labels)[i])) taken.products.push_back({{variable, i}});
    }
    for (const Activator& k : activation_.activators) {
      if (k.node != a || by_label) continue;
      for (std::uint32_t i = 0; i < k.by_index.size(); ++i) {
        if (k.by_index[i] == s || beside(s, k.by_index[i])) taken.products.push_back({{variable, i}});
      }
    }
  }
  return conjoin(of_task(a, false), taken);
}

std::optional<std::array<std::uint32_t, 3>> Conditions::key_of(NodeId n) const {
  const StreamId s = on_.placement[n]->stream;
  std::uint32_t passed = 0;
  for (const SwitchAt& w : switches_[s.index]) passed += w.position < place_[n.index] ? 1 : 0;
  ScopeId scope = flow_.scoped() ? graph_.scope_of(n) : ScopeId(0);
  while (scope.index != 0 && scope_variable_[scope.index] == kNone) scope = graph_.scope(scope).parent;
  if (passed == 0 && scope.index == 0 && activation_.head(s)) return std::nullopt;
  return std::array<std::uint32_t, 3>{activation_.head(s) ? kNone : s.index, passed, scope.index};
}

bool Conditions::excludes(NodeId start, NodeId through, NodeId task) {
  const auto key = key_of(task);
  if (!key || !on_.placement[start] || !on_.placement[through]) return false;
  const auto [at, fresh] = excludes_.try_emplace({start.index, through.index, (*key)[0], (*key)[1], (*key)[2]}, false);
  if (!fresh) return at->second;
  const StreamId here = on_.placement[start]->stream;
  const bool starts = on_.placement[through]->stream != here;
  const Sum way = starts ? of_start(here, through) : of_task(through, false);
  const Sum other = of_task(task, false);
  if (way.unknown || other.unknown) return false;
  const Sum common = conjoin(way, other);
  return excludes_[{start.index, through.index, (*key)[0], (*key)[1], (*key)[2]}] = common.products.empty() && !common.unknown;
}

// Of the place before a node, or behind it, where its records stand.
Conditions::Sum Conditions::of_task(NodeId n, bool behind) {
  const StreamId s = on_.placement[n]->stream;
  Sum sum = of_stream(s);
  for (const SwitchAt& w : switches_[s.index]) {
    if (w.position > place_[n.index] || (w.node == n && !behind)) break;
    const auto& roles = graph_.annotations().roles.get(w.node);
    const bool false_side = roles && !roles->true_branch && !graph_.inputs(w.node).empty();
    sum = conjoin(sum, Sum{{Product{{variable_of_switch(w.node), false_side ? 1u : 0u}}}});
  }
  if (!flow_.scoped()) return sum;
  // A label that ends a scope is reached from everywhere; waits before it belong to what falls through.
  const ScopeId own = graph_.scope_of(n);
  const bool ends = behind && own.index != 0 && flow_.scope(own).end == n;
  return within_scopes(std::move(sum), ends ? graph_.scope(own).parent : own);
}

bool Conditions::always(std::vector<Product> products, std::uint32_t& budget) const {
  for (const Product& p : products) {
    if (p.empty()) return true;
  }
  if (products.empty()) return false;
  const std::uint32_t variable = products[0][0].variable;
  for (std::uint32_t value = 0; value < values_[variable]; ++value) {
    if (budget == 0) return true;
    --budget;
    std::vector<Product> rest;
    for (const Product& p : products) {
      Product q;
      bool out = false;
      for (const Literal& l : p) {
        if (l.variable != variable) q.push_back(l);
        out = out || (l.variable == variable && l.value != value);
      }
      if (!out) rest.push_back(std::move(q));
    }
    if (!always(std::move(rest), budget)) return false;
  }
  return true;
}

bool Conditions::implies(const Sum& a, const Sum& b) const {
  if (a.unknown || b.unknown) return true;
  std::uint32_t budget = kBudget;
  for (const Product& p : a.products) {
    std::vector<Product> rest;
    for (const Product& q : b.products) {
      const auto r = both(p, q);
      if (!r) continue;
      Product left;
      std::set_difference(q.begin(), q.end(), p.begin(), p.end(), std::back_inserter(left));
      rest.push_back(std::move(left));
    }
    if (!always(std::move(rest), budget)) return false;
  }
  return true;
}

bool Conditions::together(NodeId a, NodeId b) {
  if (repeated_scope(a, false) != repeated_scope(b, false)) return false;
  const Sum x = of_task(a, false), y = of_task(b, false);
  return !x.unknown && !y.unknown && implies(x, y) && implies(y, x);
}

ScopeId Conditions::repeated_scope(NodeId n, bool behind) const {
  if (!flow_.scoped()) return ScopeId(0);
  ScopeId s = graph_.scope_of(n);
  if (behind && s.index != 0 && flow_.scope(s).end == n) s = graph_.scope(s).parent;
  while (s.index != 0 && !flow_.scope(s).repeats) s = graph_.scope(s).parent;
  return s;
}

std::string Conditions::describe(NodeId n) const {
  const std::string who = fmt::format("{} on stream {}", quote_name(graph_.name(n)), on_.placement[n]->stream.index);
  std::string region;
  for (const Activator& a : activation_.activators) {
    if (a.loop || std::find(a.streams.begin(), a.streams.end(), on_.placement[n]->stream) == a.streams.end()) continue;
    region += fmt::format("{}{}", region.empty() ? "started by " : " or ", quote_name(graph_.name(a.node)));
  }
  for (const SwitchAt& w : switches_[on_.placement[n]->stream.index]) {
    if (w.position <= place_[n.index]) region += fmt::format("{}behind switch {}", region.empty() ? "" : ", ", quote_name(graph_.name(w.node)));
  }
  const ScopeId scope = flow_.scoped() ? flow_.region_of(n) : ScopeId(0);
  if (scope.index != 0) region += fmt::format("{}in scope \"{}\"", region.empty() ? "" : ", ", graph_.scope(scope).name);
  if (const auto& dim = graph_.annotations().batch.get(n)) {
    region += fmt::format("{}of batch {}", region.empty() ? "" : ", ", quote(graph_.text(*dim)));
  }
  return who + (region.empty() ? ", which always runs" : ", " + region);
}

std::optional<Error> Conditions::conditional_wait(const SyncPair& pair) {
  if (pair.from == pair.to || !on_.placement[pair.from] || !on_.placement[pair.to]) return std::nullopt;
  const auto error = [&](std::string why, std::string_view help = "let what joins the branches stand between the two, or put both into one branch") {
    return Error{ErrorCode::conditional_wait, fmt::format("{} cannot wait for {}: {}", quote_name(graph_.name(pair.to)), quote_name(graph_.name(pair.from)), why)}
        .note("sender: " + describe(pair.from))
        .note("receiver: " + describe(pair.to))
        .help(std::string(help));
  };
  const auto& a = graph_.annotations().batch.get(pair.from);
  const auto& b = graph_.annotations().batch.get(pair.to);
  if (a && b && *a != *b) {
    return error("the two run for different dims, never both", "take the edge between them out, or give both the same batch label, or none to what always runs");
  }
  if (flow_.leaves(pair.from)) return error("what stands behind a jump never runs");
  if (repeated_scope(pair.from, true) != repeated_scope(pair.to, false)) return error("the two run a different number of times");
  if (!implies(of_task(pair.to, false), of_task(pair.from, true))) {
    return error("the sender's branch may not run when the receiver does");
  }
  return std::nullopt;
}

}  // namespace millstream
