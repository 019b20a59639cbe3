// SPDX-License-Identifier: Apache-2.0
#include "millstream/schedule/split_bundles.h"

#include <algorithm>
#include <map>

#include "millstream/schedule/control_types.h"

namespace millstream {

std::vector<Bundle> bundles_of(const Graph& graph, const std::vector<NodeId>& lane, bool jumps) {
  std::vector<Bundle> all;
  const ControlTypes control(graph);
  if (jumps && !control.none()) {
    std::map<std::int64_t, std::size_t> of_label;
    const auto ends_stream = graph.strings().find("StreamSwitch");
    for (std::uint32_t i = 0; i < lane.size(); ++i) {
      // What a taken switch skips would wait for ever on a stream of its own.
      if (ends_stream && graph.type_id(lane[i]) == *ends_stream) all.push_back({i, static_cast<std::uint32_t>(lane.size() - 1), "", lane[i]});
      if (!control.moves_inside(lane[i])) continue;
      for (const std::int64_t label : label_numbers(graph, lane[i])) {
        const auto [it, fresh] = of_label.try_emplace(label, all.size());
        if (fresh) all.push_back({i, i, "", lane[i]});
        all[it->second].last = i;
      }
    }
  }
  const auto& continuous = graph.annotations().continuous;
  if (!continuous.empty()) {
    std::map<std::uint32_t, std::size_t> of_label;
    for (std::uint32_t i = 0; i < lane.size(); ++i) {
      const auto& label = continuous.get(lane[i]);
      if (!label || graph.text(*label).empty()) continue;
      const auto [it, fresh] = of_label.try_emplace(label->index, all.size());
      if (fresh) all.push_back({i, i, std::string(graph.text(*label)), lane[i]});
      all[it->second].last = i;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Bundle& a, const Bundle& b) { return a.first < b.first; });
  std::vector<Bundle> merged;
  for (Bundle& b : all) {
    if (b.first == b.last) continue;
    if (!merged.empty() && b.first <= merged.back().last) {
      merged.back().last = std::max(merged.back().last, b.last);
      if (merged.back().continuous.empty()) merged.back().continuous = b.continuous;
    } else {
      merged.push_back(std::move(b));
    }
  }
  return merged;
}

}  // namespace millstream
