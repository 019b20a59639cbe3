// SPDX-License-Identifier: Apache-2.0
#include "millstream/pass/exclusive_engines.h"

#include <algorithm>

#include <fmt/format.h>

namespace millstream {

ExclusiveEngines::ExclusiveEngines(const Graph& graph, const Target& target) : graph_(graph), target_(target) {
  if (std::none_of(target.engines.begin(), target.engines.end(), [](const Engine& e) { return e.independent; })) return;
  if (auto engines = resolve_engines(graph, target); engines.ok()) engine_ = *std::move(engines);
}

std::vector<std::optional<ExclusiveEngines::Shared>> ExclusiveEngines::shared(const StreamAssignment& on) const {
  std::vector<std::optional<NodeId>> first(on.streams.size()), other(on.streams.size());  // by stream; `other` is of another engine
  for (const NodeId n : graph_.nodes()) {
    if (!on.placement[n]) continue;
    auto& begins = first[on.placement[n]->stream.index];
    if (!begins) begins = n;
    if (engine_[n] != engine_[*begins] && !other[on.placement[n]->stream.index]) other[on.placement[n]->stream.index] = n;
  }
  std::vector<std::optional<Shared>> out(target_.engines.size());
  for (const NodeId n : graph_.nodes()) {
    const EngineId e = engine_[n];
    if (!on.placement[n] || !target_.engines[e].independent || out[e.index]) continue;
    const StreamId s = on.placement[n]->stream;
    if (other[s.index]) out[e.index] = Shared{e, s, n, engine_[*first[s.index]] == e ? *other[s.index] : *first[s.index]};
  }
  return out;
}

std::optional<Error> ExclusiveEngines::newly_shared(const StreamAssignment& before, const StreamAssignment& after) const {
  if (engine_.empty()) return std::nullopt;
  const auto was = shared(before), is = shared(after);
  for (std::size_t e = 0; e < is.size(); ++e) {
    if (!is[e] || was[e]) continue;
    return Error{ErrorCode::stream_pass, fmt::format("engine {} works beside the others and had streams of its own; now \"{}\" shares stream {} with \"{}\" of engine {}",
                                                     target_.engines[is[e]->engine].name, graph_.name(is[e]->own), is[e]->stream.index,
                                                     graph_.name(is[e]->other), target_.engines[engine_[is[e]->other]].name)};
  }
  return std::nullopt;
}

}  // namespace millstream
