// SPDX-License-Identifier: Apache-2.0
// A schedule as a model instance of the runtime: a tape for each physical stream, with a task for each of the
// schedule's, and before those of control flow one that asks which way they go.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "millstream/backend/backend.h"
#include "millstream/backend/event_pairs.h"
#include "millstream/runtime/delays.h"
#include "millstream/runtime/device.h"
#include "millstream/runtime/trace_recorder.h"

namespace millstream {

/// One run: what its launches need and what they leave.
struct ProgramRun {
  Launcher* launcher = nullptr;  ///< null: launches only take their time
  std::atomic<bool> stop{false};
  std::vector<std::optional<Error>> errors;  ///< by physical stream
  std::vector<rt::Delays> delays;            ///< by physical stream
};

class Program {
 public:
  /// `streams`: persistent ones of the context, one for each of the schedule's; they outlive the program.
  /// `durations_us`: of launches, on a device of virtual time; none on real ones. Errors: those of pair_events and the
  /// device's limits.
  static Result<std::unique_ptr<Program>> record(Context& context, std::vector<Stream*> streams, const Graph& graph,
                                                 const Schedule& schedule, const IdVec<NodeId, double>* durations_us = nullptr);
  ~Program();

  /// The first error by stream, else the execution's.
  Result<void> execute(ProgramRun& run);
  /// How many moments of one execution a trace may hold: once through all tasks fits, a loop may go on for long.
  static std::size_t most_moments(const Schedule& schedule);
  /// The spans of one execution, by stream, then as they ran; from its first moment on. A wait begins when its stream comes
  /// to it.
  std::vector<Span> spans(const Schedule& schedule, const std::vector<rt::TraceEvent>& events) const;

 private:
  class Recorder;
  static Result<void> launch_node(const KernelCall& call);
  static Result<void> steer_node(const KernelCall& call);
  static const KernelFunction kLaunch, kSteer;
  Program() = default;
  void fail(std::uint32_t stream, Error error);

  ProgramRun* run_ = nullptr;
  std::vector<KernelFunction> timed_;  // by node, in virtual time
  bool control_ = false;
  std::vector<std::uint32_t> ways_;    // by entry of Schedule::controls: what the launcher said
  std::vector<Stream*> streams_;
  std::vector<std::vector<std::uint32_t>> tasks_;  // by stream, place on its tape: the schedule's task, or kNoTask
  static constexpr std::uint32_t kNoTask = 0xffffffffu;
  std::vector<Label> labels_;          // by the schedule's numbers, then what a StreamSwitchN jumps to
  std::vector<Event> events_;          // by slot
  std::optional<Model> model_;
};

}  // namespace millstream
