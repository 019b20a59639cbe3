// SPDX-License-Identifier: Apache-2.0
// A plan from a file against a graph: nothing in it is believed.
#include <fmt/format.h>

#include "millstream/memory/left_out.h"

namespace millstream {
namespace {

ErrorCode code_of(Violation::Kind kind) {
  switch (kind) {
    case Violation::Kind::race:
    case Violation::Kind::memory:
      return ErrorCode::race;
    case Violation::Kind::deadlock:
      return ErrorCode::deadlock;
    case Violation::Kind::start:
      return ErrorCode::never_activated;
    case Violation::Kind::region:
      return ErrorCode::conditional_wait;
    case Violation::Kind::unmatched_wait:
      return ErrorCode::wait_without_record;
    case Violation::Kind::event_reuse:
      return ErrorCode::shared_event_id;
    case Violation::Kind::limit:
      return ErrorCode::stream_limit;
    case Violation::Kind::missing_node:
    case Violation::Kind::repeated_node:
      return ErrorCode::plan_mismatch;
  }
  return ErrorCode::plan_mismatch;
}

Error refuse(ErrorCode code, std::string_view part, const std::vector<std::string>& messages) {
  Error error{code, fmt::format("the plan's {} is wrong: {}", part, messages.front())};
  for (std::size_t i = 1; i < messages.size() && i < 10; ++i) error.note(messages[i]);
  if (messages.size() > 10) error.note(fmt::format("and {} more", messages.size() - 10));
  return std::move(error).help("compile the model again");
}

Result<void> accept(const std::vector<Error>& errors, std::string_view part) {
  if (errors.empty()) return {};
  std::vector<std::string> messages;
  for (const Error& e : errors) messages.push_back(e.message);
  return refuse(errors.front().code, part, messages);
}

Result<void> accept(const std::vector<Violation>& violations, std::string_view part) {
  if (violations.empty()) return {};
  std::vector<std::string> messages;
  for (const Violation& v : violations) messages.push_back(v.message);
  return refuse(code_of(violations.front().kind), part, messages);
}

// Each stream launches its own nodes.
Result<void> check_placement(const Graph& graph, const Plan& plan) {
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(plan.schedule.streams.size())) {
    const PhysicalStream& stream = plan.schedule.streams[s];
    for (const Task& t : stream.tasks) {
      if (t.kind != Task::Kind::launch) continue;
      const auto on = plan.assignment.stream_of(t.node());
      if (on == stream.logical) continue;
      return Error{ErrorCode::plan_mismatch,
                   fmt::format("the plan's schedule launches \"{}\" on stream {}, its assignment says {}", graph.name(t.node()),
                               stream.logical.index, on ? fmt::format("stream {}", on->index) : std::string("no stream"))}
          .help("compile the model again");
    }
  }
  return {};
}

}  // namespace

bool left_out(const Graph& graph, const Plan& plan, const Violation& v) {
  if (v.kind != Violation::Kind::missing_node || !v.first || !plan.assignment.skips_engines) return false;
  if (plan.assignment.placement[*v.first]) return false;
  for (const InputRef in : graph.inputs(*v.first)) {
    const auto value = in.get();
    const auto from = value ? graph.producer(*value) : std::nullopt;
    // What a body reads from the graphs around it orders the node that owns the body.
    if (from && plan.assignment.placement[*from] && graph.scope_of(*from) == graph.scope_of(*v.first)) return false;
  }
  return true;
}

Result<void> verify_plan(const Graph& graph, const Plan& plan, const Target* target) {
  const std::uint64_t hash = hash_of(graph);
  if (hash != plan.graph_hash || plan.assignment.placement.size() != graph.node_count() ||
      plan.memory.buffers.size() != graph.value_count()) {
    return Error{ErrorCode::plan_mismatch, fmt::format("the plan was made for a graph with hash {:016x}, this one has {:016x}",
                                                       plan.graph_hash, hash)}
        .note(fmt::format("the plan has {} nodes and {} values, the graph {} and {}", plan.assignment.placement.size(),
                          plan.memory.buffers.size(), graph.node_count(), graph.value_count()))
        .help("give the plan's own model with --graph MODEL, or compile this model again");
  }
  MST_TRY_VOID(accept(verify(graph, plan.assignment), "assignment"));
  MST_TRY_VOID(accept(verify(graph, plan.assignment, plan.sync), "list of waits"));
  MST_TRY_VOID(check_placement(graph, plan));
  CheckReport report = check(graph, plan.schedule, target, plan.memory.reuse, false);
  std::erase_if(report.violations, [&](const Violation& v) { return left_out(graph, plan, v); });
  MST_TRY_VOID(accept(report.violations, "schedule"));
  if (!plan.schedule.has_control()) MST_TRY_VOID(accept(verify(graph, plan.schedule, plan.memory), "memory"));
  return {};
}

}  // namespace millstream
