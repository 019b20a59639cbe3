// SPDX-License-Identifier: Apache-2.0
// Plays schedules on a sim device of the runtime: a device of its own for each run, so that time begins at 0.
#include <fmt/format.h>

#include "millstream/backend/plan_streams.h"
#include "millstream/backend/program.h"

namespace millstream {
namespace {

class SimBackend final : public Backend {
 public:
  SimBackend(const Target& target, IdVec<NodeId, double> durations, bool functional)
      : profile_(device_of(target)), durations_(std::move(durations)), functional_(functional) {
    // What a plan may need, `lower` has checked.
    profile_.max_streams = profile_.max_events = profile_.tasks_per_huge_stream = Profile::kUnlimited;
    profile_.launch_us = 0;  // the durations hold it
  }

  std::string_view name() const override { return "sim"; }

  Result<Trace> execute(const Graph& graph, const Schedule& schedule, Launcher& launcher, const ExecuteOptions& options) override {
    if (durations_.size() != graph.node_count()) {
      return Error{ErrorCode::plan_mismatch, fmt::format("the simulation has durations of {} nodes, graph {} has {}", durations_.size(),
                                                         graph.name(), graph.node_count())};
    }
    Profile profile = profile_;
    if (options.delay_seed) profile.delay_seed = options.delay_seed;
    MST_TRY(Device device, Device::open_private(BackendId::sim, profile));
    Context context = device.primary();
    PlanStreams streams(context, PlanStreams::Plans::one);
    MST_TRY(std::vector<Stream*> taken, streams.acquire(0, schedule));
    MST_TRY(const std::unique_ptr<Program> program, Program::record(context, std::move(taken), graph, schedule, &durations_));
    ProgramRun run;
    run.launcher = functional_ ? &launcher : nullptr;
    for (std::uint32_t s = 0; s < schedule.streams.size(); ++s) run.delays.emplace_back(std::nullopt);
    const std::size_t most = Program::most_moments(schedule);
    if (options.trace) device.start_trace(most);
    MST_TRY_VOID(program->execute(run));
    Trace trace;
    trace.virtual_time = true;
    trace.total_ns = device.now_ns();
    if (options.trace) {
      const std::vector<rt::TraceEvent> moments = device.take_trace();
      trace.cut = moments.size() == most;
      trace.spans = program->spans(schedule, moments);
    }
    return trace;
  }

 private:
  Profile profile_;
  IdVec<NodeId, double> durations_;
  bool functional_;
};

}  // namespace

std::unique_ptr<Backend> make_sim_backend(const Target& target, IdVec<NodeId, double> durations_us, bool functional) {
  return std::make_unique<SimBackend>(target, std::move(durations_us), functional);
}

}  // namespace millstream
