// SPDX-License-Identifier: Apache-2.0
// Expectation keys, one function each.
#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "tests/cases/case.h"

namespace millstream::cases {
namespace {

using Streams = std::map<std::string, std::int64_t>;

std::string text(const Pair& p) { return fmt::format("{}->{}", p.first, p.second); }
Pair pair_of(const Json& j) { return {j.at(0).get<std::string>(), j.at(1).get<std::string>()}; }

template <class Items, class Format>
std::string joined(const Items& items, Format format) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : " ") + format(item);
  return out.empty() ? "nothing" : out;
}

class Comparison {
 public:
  Comparison(const Case& c, const Json& block, const Outcome& outcome) : case_(c), block_(block), out_(outcome) {}

  std::vector<Mismatch> run() {
    const bool error_expected = block_.contains("error") && !block_.at("error").is_null() && block_.at("error") != false;
    if (out_.error && !error_expected) {
      miss("success", "success", fmt::format("{}: {}", error_code_info(out_.error->code).number, out_.error->message));
      return std::move(misses_);
    }
    for (const auto& [key, want] : block_.items()) check(key, want);
    return std::move(misses_);
  }

 private:
  void miss(const std::string& key, std::string expected, std::string got) { misses_.push_back({key, std::move(expected), std::move(got)}); }
  void absent(const std::string& key, const Json& want) { miss(key, want.dump(), "the run does not show it"); }

  template <class T>
  void equal(const std::string& key, const Json& want, const std::optional<T>& got) {
    if (!got) return absent(key, want);
    if (Json(*got) != want) miss(key, want.dump(), Json(*got).dump());
  }

  void check(const std::string& key, const Json& want) {
    if (key == "error") return error(want);
    if (key == "error_kind") return error_kind(want);
    if (key == "stream_num" || key == "stream_num_min") return number(key, want, out_.stream_num);
    if (key == "node_streams") return node_streams(want);
    if (key == "partition") return partition(want);
    if (key == "same_stream" || key == "different_stream") return pairs_of_streams(key, want);
    if (key == "unassigned") return unassigned(want);
    if (key == "node_streams_unchanged") return unchanged(want);
    if (key == "changed") return equal(key, want, out_.changed);
    if (key == "graph_unchanged") return equal(key, want, out_.graph_unchanged);
    if (key == "unassigned_end_on") return equal(key, want, out_.unassigned_end_on);
    if (key == "send_recv_balanced") return equal(key, want, out_.send_recv_balanced);
    if (key == "event_num" || key == "event_num_min" || key == "event_num_max") return number(key, want, out_.event_num);
    if (key == "event_num_after_optimize") return equal(key, want, out_.event_num_after_optimize);
    if (key == "event_num_2023") return equal(key, want, out_.event_num_2023);
    if (key == "notify_num") return equal(key, want, out_.notify_num);
    if (key == "sync_type") return equal(key, want, out_.sync_type);
    if (key == "total_nodes") return equal(key, want, out_.total_nodes);
    if (key == "syncs" || key == "syncs_absent") return syncs(key, want);
    if (key == "event_share") return event_share(want);
    if (key == "event_ids") return event_ids(want);
    if (key == "event_ids_continuous_from_zero") return continuous(want);
    if (key == "send_count" || key == "recv_count") return counts(key, want);
    if (key == "ordering") return ordering(want);
    if (key == "inserted") return inserted(want);
    if (key == "inserted_names") return inserted_names(want);
    if (key == "physical_stream_num" || key == "physical_stream_num_min") return number(key, want, out_.physical_stream_num);
    if (key == "node_physical") return node_physical(want);
    if (key == "split_map") return split_map(want);
    if (key == "split_syncs") return split_syncs(want);
    if (key == "nodes_per_physical") return nodes_per_physical(want);
    if (key == "max_nodes_per_physical") return max_nodes(want);
    if (key == "huge_streams") return equal(key, want, out_.huge_streams);
    if (key == "warning") return equal(key, want, out_.warning);
    if (key == "active_streams" || key == "active_streams_contains" || key == "active_streams_excludes") return active(key, want);
    if (key == "activated_streams") return activated(want);
    if (key == "loop_syncs") return loop_syncs(want);
    if (key == "attached") return attached(want);
    if (key == "attached_ids") return attached_ids(want);
    if (key == "attached_same" || key == "attached_different") return attached_pairs(key, want);
    if (key == "total_stream_num") return equal(key, want, out_.total_stream_num);
    if (key == "control_edges_present" || key == "control_edges_absent") return control_edges(key, want);
    if (key == "summary") return summary(want);
    if (key == "all_steps_ok") return steps(want);
    miss(key, want.dump(), "no check for this key");
  }

  // ---- errors
  void error(const Json& want) {
    const bool wanted = want.is_string() || (want.is_boolean() && want.get<bool>());
    if (!wanted) return;
    if (!out_.error) return miss("error", want.dump(), "success");
    if (!want.is_string()) return;
    const auto lower = [](std::string s) {
      std::transform(s.begin(), s.end(), s.begin(), [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
      return s;
    };
    if (lower(to_string(*out_.error)).find(lower(want.get<std::string>())) == std::string::npos) miss("error", want.dump(), to_string(*out_.error));
  }

  void error_kind(const Json& want) {
    const ErrorCode code = out_.error ? out_.error->code : ErrorCode::internal;
    const bool ok = want == "invalid_param" ? code == ErrorCode::bad_attribute || code == ErrorCode::bad_option : false;
    if (!ok) miss("error_kind", want.dump(), out_.error ? to_string(*out_.error) : "success");
  }

  void number(const std::string& key, const Json& want, const std::optional<std::int64_t>& got) {
    if (!got) return absent(key, want);
    const auto limit = want.get<std::int64_t>();
    const bool ok = key.ends_with("_min") ? *got >= limit : key.ends_with("_max") ? *got <= limit : *got == limit;
    if (!ok) miss(key, want.dump(), std::to_string(*got));
  }

  // ---- streams
  void node_streams(const Json& want) {
    if (!out_.node_streams) return absent("node_streams", want);
    // Numbers are the rule only where the origin asserts them; elsewhere `partition` compares.
    for (const auto& [node, stream] : want.items()) {
      const auto got = out_.node_streams->find(node);
      if (got == out_.node_streams->end() || got->second != stream) {
        miss("node_streams", fmt::format("{} on {}", node, stream.dump()), got == out_.node_streams->end() ? "no such node" : std::to_string(got->second));
      }
    }
  }

  std::int64_t stream(const std::string& node) const {
    const auto found = out_.node_streams->find(node);
    return found == out_.node_streams->end() ? -2 : found->second;
  }

  void partition(const Json& want) {
    if (!out_.node_streams) return absent("partition", want);
    std::map<std::int64_t, std::string> owner;
    for (const Json& group : want) {
      const std::string first = group.at(0).get<std::string>();
      for (const Json& node : group) {
        if (stream(node) != stream(first) || stream(node) < 0) miss("partition", fmt::format("{} with {}", node.dump(), first), fmt::format("{} and {}", stream(node), stream(first)));
      }
      const auto [at, fresh] = owner.emplace(stream(first), first);
      if (!fresh) miss("partition", fmt::format("{} apart from {}", first, at->second), fmt::format("both on {}", stream(first)));
    }
  }

  void pairs_of_streams(const std::string& key, const Json& want) {
    if (!out_.node_streams) return absent(key, want);
    for (const Json& p : want) {
      const auto [a, b] = pair_of(p);
      if ((stream(a) == stream(b)) != (key == "same_stream")) miss(key, p.dump(), fmt::format("{} and {}", stream(a), stream(b)));
    }
  }

  void unassigned(const Json& want) {
    if (!out_.node_streams) return absent("unassigned", want);
    for (const Json& node : want) {
      if (stream(node) != -1) miss("unassigned", node.dump(), std::to_string(stream(node)));
    }
  }

  void unchanged(const Json& want) {
    if (!out_.node_streams) return absent("node_streams_unchanged", want);
    for (const NodeId n : case_.graph.nodes()) {
      const std::string name(case_.graph.name(n));
      if (std::find(want.begin(), want.end(), name) != want.end() && stream(name) != case_.streams[n.index]) {
        miss("node_streams_unchanged", fmt::format("{} on {}", name, case_.streams[n.index]), std::to_string(stream(name)));
      }
    }
  }

  // ---- synchronisation
  void syncs(const std::string& key, const Json& want) {
    if (!out_.syncs) return absent(key, want);
    std::multiset<Pair> got;
    for (const Sync& s : *out_.syncs) got.insert(s.pair);
    std::multiset<Pair> wanted;
    for (const Json& p : want) wanted.insert(pair_of(p));
    if (key == "syncs" ? got == wanted : std::none_of(wanted.begin(), wanted.end(), [&](const Pair& p) { return got.count(p) != 0; })) return;
    miss(key, joined(wanted, text), joined(got, text));
  }

  std::map<Pair, std::int64_t> ids() const {
    std::map<Pair, std::int64_t> out;
    for (const Sync& s : *out_.syncs) out.emplace(s.pair, s.id);
    return out;
  }

  void event_share(const Json& want) {
    if (!out_.syncs) return absent("event_share", want);
    const auto id = ids();
    std::set<std::int64_t> used;
    for (const Json& group : want) {
      std::set<std::int64_t> of_group;
      for (const Json& p : group) {
        const auto found = id.find(pair_of(p));
        if (found == id.end()) {
          miss("event_share", "an event " + text(pair_of(p)), "none");
        } else {
          of_group.insert(found->second);
        }
      }
      if (of_group.size() > 1) miss("event_share", group.dump() + " on one id", joined(of_group, [](std::int64_t i) { return std::to_string(i); }));
      for (const std::int64_t i : of_group) {
        if (!used.insert(i).second) miss("event_share", group.dump() + " on an id of its own", std::to_string(i));
      }
    }
  }

  void event_ids(const Json& want) {
    if (!out_.syncs) return absent("event_ids", want);
    std::map<std::string, std::int64_t> got;
    for (const auto& [pair, i] : ids()) got[text(pair)] = i;
    for (const auto& [pair, i] : want.items()) {
      if (got.count(pair) == 0 || got[pair] != i) miss("event_ids", fmt::format("{}: {}", pair, i.dump()), got.count(pair) == 0 ? "none" : std::to_string(got[pair]));
    }
  }

  void continuous(const Json& want) {
    if (!out_.syncs) return absent("event_ids_continuous_from_zero", want);
    std::set<std::int64_t> used;
    for (const Sync& s : *out_.syncs) used.insert(s.id);
    const bool dense = used.empty() || (*used.begin() == 0 && *used.rbegin() + 1 == static_cast<std::int64_t>(used.size()));
    if (dense != want.get<bool>()) miss("event_ids_continuous_from_zero", want.dump(), joined(used, [](std::int64_t i) { return std::to_string(i); }));
  }

  void counts(const std::string& key, const Json& want) {
    if (!out_.syncs) return absent(key, want);
    for (const auto& [node, count] : want.items()) {
      std::int64_t got = 0;
      for (const Sync& s : *out_.syncs) got += (key == "send_count" ? s.pair.first : s.pair.second) == node ? 1 : 0;
      if (got != count) miss(key, fmt::format("{}: {}", node, count.dump()), std::to_string(got));
    }
  }

  // Happens-before by stream order and events, transitively.
  void ordering(const Json& want) {
    if (!out_.node_streams || !out_.syncs) return absent("ordering", want);
    std::map<std::string, std::vector<std::string>> next;
    std::map<std::int64_t, std::string> last;
    const Streams& on = out_.node_physical ? *out_.node_physical : *out_.node_streams;
    for (const NodeId n : case_.graph.order()) {
      const std::string name(case_.graph.name(n));
      const auto found = on.find(name);
      if (found == on.end() || found->second < 0) continue;
      if (last.count(found->second) != 0) next[last[found->second]].push_back(name);
      last[found->second] = name;
    }
    for (const Sync& s : *out_.syncs) next[s.pair.first].push_back(s.pair.second);
    if (out_.split_syncs) {
      for (const Pair& p : *out_.split_syncs) next[p.first].push_back(p.second);
    }
    for (const Json& p : want) {
      const auto [from, to] = pair_of(p);
      std::set<std::string> seen;
      std::deque<std::string> queue = next[from].empty() ? std::deque<std::string>() : std::deque<std::string>(next[from].begin(), next[from].end());
      while (!queue.empty()) {
        const std::string at = queue.front();
        queue.pop_front();
        if (!seen.insert(at).second) continue;
        queue.insert(queue.end(), next[at].begin(), next[at].end());
      }
      if (seen.count(to) == 0) miss("ordering", text({from, to}), "not ordered");
    }
  }

  void inserted(const Json& want) {
    if (!out_.inserted) return absent("inserted", want);
    std::string got = joined(*out_.inserted, [](const Inserted& i) { return fmt::format("{} {} after {}", i.type, i.name, i.after); });
    if (want.size() != out_.inserted->size()) return miss("inserted", want.dump(), std::move(got));
    for (const Json& w : want) {
      const bool found = std::any_of(out_.inserted->begin(), out_.inserted->end(), [&](const Inserted& i) {
        return (!w.contains("type") || w.at("type") == i.type) && (!w.contains("name") || w.at("name") == i.name) && (!w.contains("after") || w.at("after") == i.after) &&
               (!w.contains("active_streams") || w.at("active_streams").get<std::set<std::int64_t>>() == i.active_streams);
      });
      if (!found) miss("inserted", w.dump(), got);
    }
  }

  void inserted_names(const Json& want) {
    if (!out_.inserted) return absent("inserted_names", want);
    std::multiset<std::string> got;
    for (const Inserted& i : *out_.inserted) got.insert(i.name);
    if (want.get<std::multiset<std::string>>() != got) miss("inserted_names", want.dump(), joined(got, [](const std::string& s) { return s; }));
  }

  // ---- splitting
  void node_physical(const Json& want) {
    if (!out_.node_physical) return absent("node_physical", want);
    for (const auto& [node, stream] : want.items()) {
      const auto got = out_.node_physical->find(node);
      if (got == out_.node_physical->end() || got->second != stream) miss("node_physical", fmt::format("{} on {}", node, stream.dump()), got == out_.node_physical->end() ? "none" : std::to_string(got->second));
    }
  }

  void split_map(const Json& want) {
    if (!out_.split_map) return absent("split_map", want);
    std::map<std::int64_t, std::int64_t> wanted;
    for (const auto& [physical, logical] : want.items()) wanted[std::stoll(physical)] = logical.get<std::int64_t>();
    const auto show = [](const auto& m) { return joined(m, [](const auto& p) { return fmt::format("{}:{}", p.first, p.second); }); };
    if (wanted != *out_.split_map) miss("split_map", show(wanted), show(*out_.split_map));
  }

  void split_syncs(const Json& want) {
    if (!out_.split_syncs) return absent("split_syncs", want);
    std::set<Pair> wanted;
    for (const Json& p : want) wanted.insert(pair_of(p));
    const std::set<Pair> got(out_.split_syncs->begin(), out_.split_syncs->end());
    if (wanted != got) miss("split_syncs", joined(wanted, text), joined(got, text));
  }

  std::map<std::int64_t, std::int64_t> sizes() const {
    std::map<std::int64_t, std::int64_t> count;
    for (const auto& [node, stream] : *out_.node_physical) count[stream] += stream >= 0 ? 1 : 0;
    return count;
  }

  void nodes_per_physical(const Json& want) {
    if (!out_.node_physical) return absent("nodes_per_physical", want);
    auto count = sizes();
    for (const auto& [stream, nodes] : want.items()) {
      if (count[std::stoll(stream)] != nodes) miss("nodes_per_physical", fmt::format("{} on {}", nodes.dump(), stream), std::to_string(count[std::stoll(stream)]));
    }
  }

  void max_nodes(const Json& want) {
    if (!out_.node_physical) return absent("max_nodes_per_physical", want);
    std::int64_t most = 0;
    for (const auto& [stream, count] : sizes()) most = std::max(most, count);
    if (most != want) miss("max_nodes_per_physical", want.dump(), std::to_string(most));
  }

  // ---- activation
  void active(const std::string& key, const Json& want) {
    if (!out_.active_streams) return absent(key, want);
    for (const auto& [node, list] : want.items()) {
      const auto wanted = list.get<std::set<std::int64_t>>();
      const auto found = out_.active_streams->find(node);
      const std::set<std::int64_t> got = found == out_.active_streams->end() ? std::set<std::int64_t>() : found->second;
      const auto has = [&](std::int64_t s) { return got.count(s) != 0; };
      const bool ok = key == "active_streams"            ? got == wanted
                      : key == "active_streams_contains" ? std::all_of(wanted.begin(), wanted.end(), has)
                                                         : std::none_of(wanted.begin(), wanted.end(), has);
      if (!ok) miss(key, fmt::format("{}: {}", node, list.dump()), Json(got).dump());
    }
  }

  void activated(const Json& want) {
    if (!out_.activated_streams) return absent("activated_streams", want);
    for (const Json& s : want) {
      if (out_.activated_streams->count(s.get<std::int64_t>()) == 0) miss("activated_streams", s.dump(), Json(*out_.activated_streams).dump());
    }
  }

  void loop_syncs(const Json& want) {
    if (!out_.loop_syncs) return absent("loop_syncs", want);
    std::set<Pair> wanted;
    for (const Json& p : want) wanted.insert(pair_of(p));
    if (wanted != *out_.loop_syncs) miss("loop_syncs", joined(wanted, text), joined(*out_.loop_syncs, text));
  }

  // ---- attached streams
  std::vector<std::int64_t> attached_of(const std::string& node) const {
    const auto found = out_.attached->find(node);
    return found == out_.attached->end() ? std::vector<std::int64_t>() : found->second;
  }

  void attached(const Json& want) {
    if (!out_.attached) return absent("attached", want);
    for (const auto& [node, ids] : want.items()) {
      const auto wanted = ids.is_array() ? ids.get<std::vector<std::int64_t>>() : std::vector<std::int64_t>{ids.get<std::int64_t>()};
      if (attached_of(node) != wanted) miss("attached", fmt::format("{}: {}", node, ids.dump()), Json(attached_of(node)).dump());
    }
  }

  void attached_ids(const Json& want) {
    if (!out_.attached) return absent("attached_ids", want);
    std::set<std::int64_t> got;
    for (const auto& [node, ids] : *out_.attached) got.insert(ids.begin(), ids.end());
    if (want.get<std::set<std::int64_t>>() != got) miss("attached_ids", want.dump(), Json(got).dump());
  }

  void attached_pairs(const std::string& key, const Json& want) {
    if (!out_.attached) return absent(key, want);
    for (const Json& p : want) {
      const auto [a, b] = pair_of(p);
      const auto x = attached_of(a), y = attached_of(b);
      if (x.empty() || y.empty() || (x == y) != (key == "attached_same")) miss(key, p.dump(), fmt::format("{} and {}", Json(x).dump(), Json(y).dump()));
    }
  }

  // ---- the rest
  void control_edges(const std::string& key, const Json& want) {
    if (!out_.control_edges) return absent(key, want);
    for (const Json& p : want) {
      if ((out_.control_edges->count(pair_of(p)) != 0) != (key == "control_edges_present")) {
        miss(key, text(pair_of(p)), joined(*out_.control_edges, text));
      }
    }
  }

  void summary(const Json& want) {
    if (!out_.summary) return absent("summary", want);
    for (const auto& [key, value] : want.items()) {
      if (!out_.summary->contains(key)) {
        miss("summary." + key, value.dump(), "the run does not show it");
      } else if (out_.summary->at(key) != value) {
        miss("summary." + key, value.dump(), out_.summary->at(key).dump());
      }
    }
  }

  void steps(const Json& want) {
    if (!out_.ran_steps) return absent("all_steps_ok", want);
    for (const std::string& s : out_.failed_steps) miss("all_steps_ok", "every step as expected", s);
  }

  const Case& case_;
  const Json& block_;
  const Outcome& out_;
  std::vector<Mismatch> misses_;
};

}  // namespace

std::vector<Mismatch> compare(const Case& c, const Json& block, const Outcome& outcome) { return Comparison(c, block, outcome).run(); }

}  // namespace millstream::cases
