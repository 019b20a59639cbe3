// SPDX-License-Identifier: Apache-2.0
// A model instance: tasks recorded once on persistent streams, executed many times without the host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "millstream/core/result.h"
#include "millstream/runtime/stream.h"

namespace millstream {

namespace rt {
class ModelState;
class LabelState;
}  // namespace rt

/// Whether a bound stream runs from the start of an execution or waits until it is activated.
enum class StreamRole : std::uint8_t { head, activated };
enum class Comparison : std::uint8_t { equal = 0, not_equal = 1, greater = 2, greater_equal = 3, less = 4, less_equal = 5 };
enum class IntType : std::uint8_t { int32 = 0, int64 = 1 };

/// A place on one tape that tasks may jump to. Move-only.
class Label {
 public:
  Label(Label&&) noexcept = default;
  Label& operator=(Label&&) noexcept = default;
  const std::shared_ptr<rt::LabelState>& state() const { return state_; }
  explicit Label(std::shared_ptr<rt::LabelState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<rt::LabelState> state_;
};

/// Building until `finish`, then ready; running while executions are under way. Move-only; the destructor waits for
/// executions and unbinds. Build-phase calls on one model must not overlap (detected: bad_state). Every call:
/// wrong_model_context for a stream of another context, bad_handle once closed. Calls that build or execute: no_memory, and
/// nothing has changed.
class Model {
 public:
  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// Building. Errors: bad_state (the stream is not persistent, is bound already, the model is finished).
  Result<void> bind(Stream& stream, StreamRole role);
  /// Closes one tape; at least one must be, the others are closed by `finish`. Errors: not_bound; bad_state twice.
  Result<void> end_tasks(Stream& stream);
  /// Checks and freezes. Errors (the model stays building): bad_state for no binding, no head, no ended tape, a label
  /// that is jumped to and not placed, a wait whose only record is later on its own tape.
  Result<void> finish();
  /// Behind what the default stream holds, and until this execution is over. Errors: bad_state before `finish` or after
  /// an unbind; sync_timeout (the execution goes on); the first error of a task of this execution.
  Result<void> execute(Deadline deadline = never);
  /// One task of the stream; its later tasks wait for it. Errors: bad_state for a persistent stream.
  Result<void> execute_async(Stream& stream);
  /// Waits for executions; the model cannot execute again. The tape lives until its stream ends. Errors: not_bound.
  Result<void> unbind(Stream& stream);
  /// Drops what the running execution has not begun; it ends with model_aborted.
  Result<void> abort();
  Result<void> close();

  const std::shared_ptr<rt::ModelState>& state() const { return state_; }
  explicit Model(std::shared_ptr<rt::ModelState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<rt::ModelState> state_;
};

/// Control flow on the tape of a bound stream, while its model is building. Operands are read at execution. Every
/// call: bad_state outside a building model, not_bound for a target of another model, no_memory.
class Tape {
 public:
  explicit Tape(Stream& stream) : stream_(stream) {}
  /// The target starts at its first task, beside what follows here. A target that runs is started again at its end,
  /// once; a second start before that fails the task. The stream itself: it restarts at its end.
  Result<void> activate(Stream& target);
  /// If `*left condition *right`: starts on_true and ends this stream; else starts on_false, if given, and ends this stream
  /// too, or goes on here.
  Result<void> switch_to(Comparison condition, const void* left, const void* right, IntType type, Stream& on_true, Stream* on_false = nullptr);
  /// Compares the index with each value in turn; the first equal one starts its stream and ends this one.
  Result<void> switch_n(const void* index, IntType type, std::span<const std::int64_t> values, std::span<Stream* const> targets);
  /// Errors: bad_state for a label that is placed already; label_context.
  Result<void> place(Label& label);
  Result<void> jump(Label& label);
  /// Goes to label `*index`, or to the last when it is larger. A label of another stream: that stream goes on there
  /// and this one ends.
  Result<void> jump_by_index(const std::uint32_t* index, std::span<Label* const> labels);

 private:
  Stream& stream_;
};

}  // namespace millstream
