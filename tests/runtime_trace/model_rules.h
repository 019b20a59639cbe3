// SPDX-License-Identifier: Apache-2.0
// The rules of executions and of the tapes that they run.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "tests/runtime_trace/checker.h"
#include "tests/runtime_trace/lives.h"

namespace millstream::rt {

class ModelRules {
 public:
  ModelRules(std::span<const TraceEvent> trace, TraceAssumptions assume);

  /// Every run of a tape's task, tape by tape in the order of their begins.
  std::vector<Run> runs() const;
  /// Of a tape's task that failed.
  const Run& run_of_failed(const TraceEvent& failed) const;

  /// The order of executions, tapes from task to task, records and waits inside a model, drops of an execution.
  void check() const;
  /// `task` of a stream executes a model.
  void check_execute(const Run& task) const;
  /// Whether the run was dropped because its execution was given up.
  bool given_up(const Run& run) const;

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // serials of a model and of a stream
  struct TapeRun : Run {
    const TraceEvent* activates = nullptr;  // where it sends a stream
    bool refused = false;                   // and may not
    Stamp sent = kNever;                    // by then that is done
  };
  struct Tape {
    std::uint32_t stream = 0;
    bool head = false;
    std::vector<const TraceEvent*> tasks;  // as recorded
    std::vector<TapeRun> runs;
  };
  struct Execution {
    std::uint64_t number = 0;
    const TraceEvent* asked = nullptr;
    const TraceEvent* begin = nullptr;
    const TraceEvent* end = nullptr;
    const TraceEvent* dropping = nullptr;
    const TraceEvent* in_force = nullptr;
  };
  struct Model {
    std::vector<const TraceEvent*> asked;
    std::vector<Execution> executions;  // by number
  };
  struct Activation {
    Stamp from = 0, sure = 0;
    std::uint64_t place = 0;
    const TapeRun* by = nullptr;  // null: a head
    bool refused = false;
    bool used = false;
  };
  struct Pass {
    Stamp begin = 0, over = kNever;
  };

  void index(const TraceEvent& e);
  void add_to_run(const TraceEvent& e);
  Execution& execution_of(const TraceEvent& e);
  const Execution& execution_of(const TraceEvent& e) const;
  void find_arrivals();
  std::vector<Activation> activations(const Place& place, const Execution& execution) const;
  void follow(const Place& place, Tape& tape, const Execution& execution, std::size_t first, std::size_t last);
  void check_starts(const Tape& tape, const std::vector<Activation>& starts, const std::vector<Pass>& passes) const;
  void check_order() const;
  void check_drops() const;
  void check_sites() const;

  const TraceAssumptions assume_;
  std::map<std::uint64_t, Model> models_;
  std::map<Place, Tape> tapes_;
  std::map<const TraceEvent*, std::pair<Place, std::size_t>> failed_;
  // By the execution's serial. Refused: by a model that has ended, or dropped with the task that was to ask.
  std::map<std::uint64_t, const TraceEvent*> asked_, refused_, ended_;
};

}  // namespace millstream::rt
