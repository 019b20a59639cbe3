// SPDX-License-Identifier: Apache-2.0
// Runs schedules on the runtime's cpu device, where each is loaded once and executed as often as it is asked for.
#include <chrono>
#include <mutex>

#include <omp.h>

#include "millstream/backend/loaded_plans.h"

namespace millstream {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::uint32_t workers, std::uint32_t threads_per_op) : threads_per_op_(static_cast<int>(threads_per_op)) {
    Profile profile;
    profile.workers = workers;
    profile.host_helps = true;  // the caller is one of the workers
    profile.callback_threads = 0;
    profile.max_streams = profile.max_events = profile.tasks_per_huge_stream = Profile::kUnlimited;
    Result<Device> device = Device::open_private(BackendId::cpu, profile, [n = threads_per_op_] {
      if (n != 0) omp_set_num_threads(n);
    });
    MST_CHECK(device.ok(), "a device without limits opens");
    device_.emplace(std::move(*device));
    context_.emplace(device_->primary());
    plans_.emplace(*context_);
  }

  std::string_view name() const override { return "cpu"; }

  Result<Trace> execute(const Graph& graph, const Schedule& schedule, Launcher& launcher, const ExecuteOptions& options) override {
    const std::lock_guard one(one_run_);
    MST_TRY(Program* const program, plans_->load(graph, schedule));
    ProgramRun run;
    run.launcher = &launcher;
    for (std::uint32_t s = 0; s < schedule.streams.size(); ++s) run.delays.emplace_back(options.delay_seed, s + 1);
    Trace trace;
    const std::size_t most = Program::most_moments(schedule);
    if (options.trace) device_->start_trace(most);
    const auto begin = std::chrono::steady_clock::now();
    const int callers = omp_get_max_threads();
    if (threads_per_op_ != 0) omp_set_num_threads(threads_per_op_);
    Result<void> done = program->execute(run);
    if (threads_per_op_ != 0) omp_set_num_threads(callers);
    trace.total_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
    if (options.trace) {
      device_->stop_trace();
      const std::vector<rt::TraceEvent> moments = device_->take_trace();
      trace.cut = moments.size() == most;
      trace.spans = program->spans(schedule, moments);
    }
    if (!done.ok()) return std::move(done).error();
    return trace;
  }

 private:
  const int threads_per_op_;
  std::mutex one_run_;
  std::optional<Device> device_;
  std::optional<Context> context_;
  std::optional<LoadedPlans> plans_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(std::uint32_t workers, std::uint32_t threads_per_op) {
  return std::make_unique<CpuBackend>(workers, threads_per_op);
}

}  // namespace millstream
