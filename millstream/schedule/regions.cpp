// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/regions.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace millstream {
namespace {

bool disjoint(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i] == b[k]) return false;
    a[i] < b[k] ? ++i : ++k;
  }
  return true;
}

}  // namespace

RegionId Regions::intern(Region region) {
  const auto [at, fresh] = known_.try_emplace(region, RegionId(list_.size()));
  if (fresh) list_.push_back(std::move(region));
  return at->second;
}

std::optional<RegionId> Regions::narrow(RegionId r, std::uint32_t decision, std::uint32_t outcome) {
  Region region = list_[r];
  const auto at = std::lower_bound(region.when.begin(), region.when.end(), decision,
                                   [](const Condition& c, std::uint32_t d) { return c.decision < d; });
  if (at == region.when.end() || at->decision != decision) {
    if (options_[decision] > 1) region.when.insert(at, {decision, {outcome}});
  } else {
    if (disjoint(at->outcomes, {outcome})) return std::nullopt;
    at->outcomes = {outcome};
  }
  return intern(std::move(region));
}

RegionId Regions::enter_loop(RegionId r, std::uint32_t loop) {
  Region region = list_[r];
  if (std::find(region.loops.begin(), region.loops.end(), loop) == region.loops.end()) region.loops.push_back(loop);
  return intern(std::move(region));
}

RegionId Regions::leave_loop(RegionId r, std::uint32_t loop) {
  Region region = list_[r];
  region.loops.erase(std::remove(region.loops.begin(), region.loops.end(), loop), region.loops.end());
  region.when.erase(std::remove_if(region.when.begin(), region.when.end(),
                                   [&](const Condition& c) {
                                     const auto& in = made_in_[c.decision];
                                     return std::find(in.begin(), in.end(), loop) != in.end();
                                   }),
                    region.when.end());
  return intern(std::move(region));
}

bool Regions::exclusive(RegionId a, RegionId b) const {
  if (a == b) return false;
  const auto &x = list_[a].when, &y = list_[b].when;
  for (std::size_t i = 0, k = 0; i < x.size() && k < y.size();) {
    if (x[i].decision == y[k].decision) {
      if (disjoint(x[i].outcomes, y[k].outcomes)) return true;
      ++i, ++k;
    } else {
      x[i].decision < y[k].decision ? ++i : ++k;
    }
  }
  return false;
}

bool Regions::implies(RegionId a, RegionId b) const {
  if (a == b) return true;
  const auto &x = list_[a], &y = list_[b];
  if (x.loops != y.loops) return false;
  for (const Condition& need : y.when) {
    const auto at = std::lower_bound(x.when.begin(), x.when.end(), need.decision,
                                     [](const Condition& c, std::uint32_t d) { return c.decision < d; });
    if (at == x.when.end() || at->decision != need.decision) return false;
    if (!std::includes(need.outcomes.begin(), need.outcomes.end(), at->outcomes.begin(), at->outcomes.end())) return false;
  }
  return true;
}

RegionId Regions::join(std::vector<RegionId> parts) {
  // Two parts that differ in one condition, or of which one holds the other, become one.
  const auto merge = [&](RegionId a, RegionId b) -> std::optional<RegionId> {
    if (implies(a, b)) return b;
    if (implies(b, a)) return a;
    const Region &x = list_[a], &y = list_[b];
    if (x.loops != y.loops || x.when.size() != y.when.size()) return std::nullopt;
    std::optional<std::size_t> differs;
    for (std::size_t i = 0; i < x.when.size(); ++i) {
      if (x.when[i] == y.when[i]) continue;
      if (x.when[i].decision != y.when[i].decision || differs) return std::nullopt;
      differs = i;
    }
    Region out = x;
    Condition& c = out.when[*differs];
    std::vector<std::uint32_t> both;
    std::set_union(c.outcomes.begin(), c.outcomes.end(), y.when[*differs].outcomes.begin(), y.when[*differs].outcomes.end(),
                   std::back_inserter(both));
    c.outcomes = std::move(both);
    if (c.outcomes.size() == options_[c.decision]) out.when.erase(out.when.begin() + static_cast<std::ptrdiff_t>(*differs));
    return intern(std::move(out));
  };
  for (bool again = true; again && parts.size() > 1;) {
    again = false;
    for (std::size_t i = 0; i + 1 < parts.size() && !again; ++i) {
      for (std::size_t k = i + 1; k < parts.size() && !again; ++k) {
        if (const auto one = merge(parts[i], parts[k])) {
          parts[i] = *one;
          parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(k));
          again = true;
        }
      }
    }
  }
  if (parts.size() == 1) return parts.front();
  Region common = list_[parts.front()];
  for (const RegionId p : parts) {
    const Region& other = list_[p];
    common.when.erase(std::remove_if(common.when.begin(), common.when.end(),
                                     [&](const Condition& c) {
                                       return std::find(other.when.begin(), other.when.end(), c) == other.when.end();
                                     }),
                      common.when.end());
    std::size_t same = 0;
    while (same < common.loops.size() && same < other.loops.size() && common.loops[same] == other.loops[same]) ++same;
    common.loops.resize(same);
  }
  common.when.push_back({add_decision(2, common.loops), {1}});
  return intern(std::move(common));
}

}  // namespace millstream
