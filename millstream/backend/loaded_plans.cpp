// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/loaded_plans.h"

namespace millstream {
namespace {

// A node that does not exist has an empty type: its plan is refused.
std::vector<std::string> control_types(const Graph& graph, const Schedule& schedule) {
  std::vector<std::string> types;
  for (const ControlTask& what : schedule.controls) types.emplace_back(what.node.index < graph.node_count() ? graph.type(what.node) : "");
  return types;
}

}  // namespace

Result<Program*> LoadedPlans::load(const Graph& graph, const Schedule& schedule) {
  std::vector<std::string> types = control_types(graph, schedule);
  for (auto plan = plans_.begin(); plan != plans_.end(); ++plan) {
    if (plan->nodes != graph.node_count() || plan->order != graph.order() || plan->control_types != types || !(plan->schedule == schedule)) continue;
    plans_.splice(plans_.begin(), plans_, plan);
    return plan->program.get();
  }
  while (plans_.size() >= kMost) unload_last();
  const std::uint32_t model = next_model_++;
  MST_TRY(std::vector<Stream*> streams, streams_.acquire(model, schedule));
  Result<std::unique_ptr<Program>> program = Program::record(context_, std::move(streams), graph, schedule);
  if (!program.ok()) {
    streams_.release(model);
    return std::move(program).error();
  }
  plans_.push_front({model, graph.node_count(), graph.order(), std::move(types), schedule, std::move(program).value()});
  return plans_.front().program.get();
}

void LoadedPlans::unload_last() {
  const std::uint32_t model = plans_.back().model;
  plans_.pop_back();
  streams_.release(model);
}

}  // namespace millstream
