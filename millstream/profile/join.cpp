// SPDX-License-Identifier: Apache-2.0
#include "millstream/profile/join.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace millstream {
namespace {

/// Names in order, to take longer names apart.
class Names {
 public:
  void add(std::string_view name, std::uint32_t id) { names_.emplace_back(name, id); }
  void sort() { std::sort(names_.begin(), names_.end()); }

  /// The first id of that name.
  std::optional<std::uint32_t> find(std::string_view name) const {
    const auto at = std::lower_bound(names_.begin(), names_.end(), std::pair(name, std::uint32_t{0}));
    return at != names_.end() && at->first == name ? std::optional(at->second) : std::nullopt;
  }

  /// Ids of the fewest names, two at least, that make up the whole one behind the other; empty where none do.
  std::vector<std::uint32_t> parts_of(std::string_view whole) const {
    if (whole.size() > kLongest) return {};
    constexpr std::uint32_t kNever = ~0u;
    struct Step {
      std::uint32_t parts = kNever;
      std::size_t from = 0;
      std::uint32_t id = 0;
    };
    std::vector<Step> reach(whole.size() + 1);
    reach[0].parts = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      if (reach[at].parts == kNever) continue;
      const bool is_separator = std::string_view("/_+,;|").find(whole[at]) != std::string_view::npos;
      for (std::size_t begin = at; begin <= at + (at != 0 && is_separator ? 1u : 0u) && begin < whole.size(); ++begin) {
        // Of the names that begin as the text does: fewer with each letter.
        auto low = names_.begin(), high = names_.end();
        for (std::size_t end = begin; end < whole.size() && low != high; ++end) {
          const std::size_t k = end - begin;
          const auto letter = [k](const auto& entry) { return k < entry.first.size() ? static_cast<int>(static_cast<unsigned char>(entry.first[k])) : -1; };
          const int want = static_cast<unsigned char>(whole[end]);
          low = std::partition_point(low, high, [&](const auto& entry) { return letter(entry) < want; });
          high = std::partition_point(low, high, [&](const auto& entry) { return letter(entry) == want; });
          if (low == high || low->first.size() != k + 1) continue;
          Step& to = reach[end + 1];
          if (reach[at].parts + 1 < to.parts) to = {reach[at].parts + 1, at, low->second};
        }
      }
    }
    if (reach.back().parts == kNever || reach.back().parts < 2) return {};
    std::vector<std::uint32_t> out;
    for (std::size_t at = whole.size(); at != 0; at = reach[at].from) out.push_back(reach[at].id);
    std::reverse(out.begin(), out.end());
    return out;
  }

 private:
  static constexpr std::size_t kLongest = 4096;
  std::vector<std::pair<std::string_view, std::uint32_t>> names_;
};

double median_us(std::vector<std::int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  const std::size_t half = ns.size() / 2;
  const double middle = ns.size() % 2 == 1 ? static_cast<double>(ns[half]) : (static_cast<double>(ns[half - 1]) + static_cast<double>(ns[half])) / 2;
  return middle / 1000;
}

}  // namespace

Joined join(const Graph& graph, const std::vector<ProfileRecord>& records) {
  Joined out;
  out.duration_us.resize(graph.node_count());
  out.nodes_of.resize(records.size());
  Names nodes;
  for (const NodeId n : graph.nodes()) {
    if (!graph.name(n).empty()) nodes.add(graph.name(n), n.index);
  }
  nodes.sort();

  struct Operator {
    std::vector<std::int64_t> times;
    std::vector<std::uint32_t> records;
    std::vector<std::uint32_t> nodes;
  };
  std::map<std::string_view, Operator> operators;
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    if (records[i].op_name.empty()) continue;
    Operator& op = operators[records[i].op_name];
    op.times.push_back(records[i].dur_ns);
    op.records.push_back(i);
  }
  const auto give = [&](std::uint32_t n, double us) {
    auto& to = out.duration_us[NodeId(n)];
    to = to.value_or(0) + us;
  };
  for (auto& [name, op] : operators) {
    if (const auto n = nodes.find(name)) {
      op.nodes = {*n};
    } else {
      op.nodes = nodes.parts_of(name);
    }
    for (const std::uint32_t n : op.nodes) give(n, median_us(op.times) / static_cast<double>(op.nodes.size()));
  }
  // Nodes that are fused where the profile's operators are not.
  Names rest;
  std::vector<Operator*> by_id;
  for (auto& [name, op] : operators) {
    if (!op.nodes.empty()) continue;
    rest.add(name, static_cast<std::uint32_t>(by_id.size()));
    by_id.push_back(&op);
  }
  rest.sort();
  for (const NodeId n : graph.nodes()) {
    if (by_id.empty() || out.duration_us[n]) continue;
    for (const std::uint32_t id : rest.parts_of(graph.name(n))) {
      give(n.index, median_us(by_id[id]->times));
      by_id[id]->nodes.push_back(n.index);
    }
  }
  for (const auto& [name, op] : operators) {
    for (const std::uint32_t i : op.records) {
      ++out.named_records;
      out.named_ns += records[i].dur_ns;
      if (op.nodes.empty()) continue;
      ++out.records;
      out.joined_ns += records[i].dur_ns;
      for (const std::uint32_t n : op.nodes) out.nodes_of[i].push_back(NodeId(n));
    }
  }
  for (const auto& duration : out.duration_us) out.nodes += duration.has_value();
  return out;
}

std::string to_string(const Joined& j, const Graph& graph) {
  constexpr std::size_t kNamed = 3;
  const std::size_t unmeasured = j.duration_us.size() - j.nodes;
  std::string missing;
  if (j.nodes > 0) {
    std::size_t named = 0;
    for (const NodeId n : graph.nodes()) {
      if (named == kNamed) break;
      if (!j.duration_us[n]) missing += fmt::format("{} \"{}\"", named++ == 0 ? ", not" : ",", graph.name(n));
    }
    if (unmeasured > kNamed) missing += fmt::format(" and {} more", unmeasured - kNamed);
  }
  const double share = j.named_ns > 0 ? 100 * static_cast<double>(j.joined_ns) / static_cast<double>(j.named_ns) : 0;
  return fmt::format("profile: {} of {} nodes measured{}; {} of {} records, {:.1f} % of their {:.3f} us, belong to nodes", j.nodes, j.duration_us.size(), missing,
                     j.records, j.named_records, share, static_cast<double>(j.named_ns) / 1000);
}

}  // namespace millstream
