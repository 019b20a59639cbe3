// SPDX-License-Identifier: Apache-2.0
// The state behind Model: bindings with their tapes, records and waits inside it, and its executions.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "millstream/runtime/activations.h"
#include "millstream/runtime/model.h"
#include "millstream/runtime/objects.h"
#include "millstream/runtime/step.h"

namespace millstream::rt {

class ModelState;
class Replay;
struct BindingState;

/// One record on a tape. It counts: a wait on a tape passes when more records have been made in this execution than that
/// wait has used in it. Both know the execution that their count is of, so nothing is reset between executions.
class RecordSite final : public Awaited {
 public:
  /// `serial`: what traces call it; never 0, and no other site's.
  RecordSite(std::uint32_t event, const BindingState& on, std::uint64_t serial) : event_(event), on_(on), serial_(serial) {}
  std::uint64_t serial() const { return serial_; }
  std::uint32_t event() const { return event_; }
  const BindingState& on() const { return on_; }

  /// Who waited, in order of arrival; they look again.
  Waiter* record(std::uint64_t execution);
  /// False: there is a record in this execution that `used` has not seen.
  bool park(Waiter& waiter, std::uint64_t execution, std::uint64_t used);
  Signal::Removal remove(Waiter& waiter) override;
  std::string describe() const override;
  /// Room for so many waiters, so that running allocates nothing.
  void reserve(std::size_t waiters) { waiting_.reserve(waiters); }

 private:
  const std::uint32_t event_;
  const BindingState& on_;
  const std::uint64_t serial_;
  SpinLock lock_;
  std::uint64_t made_ = 0;
  std::uint64_t execution_ = 0;  // that made_ is of
  std::vector<Waiter*> waiting_;
};

class LabelState {
 public:
  LabelState(std::shared_ptr<ContextState> c, std::uint32_t n) : context(std::move(c)), number(n) {}
  ~LabelState();
  const std::shared_ptr<ContextState> context;
  const std::uint32_t number;
  /// Of the place, once there is one: two models that are built at once may use one label. Those of a finished model stand still.
  SpinLock lock;
  const ModelState* owner = nullptr;  ///< the model of the tape; the label is placed nowhere again when it ends
  BindingState* binding = nullptr;
  std::uint32_t at = 0;               ///< index on the tape
};

/// A stream on a model: the tape that the model runs there. Belongs to the stream, which may outlive the model.
struct BindingState : std::enable_shared_from_this<BindingState> {
  BindingState(const std::shared_ptr<StreamState>& s, ModelState& m, StreamRole r);
  ~BindingState();
  StreamState& stream;
  ModelState* model;  ///< null once unbound
  const StreamRole role;
  bool ended = false;
  std::vector<Task> tape;
  Lane lane;          ///< its token counts activations
};

/// Larger than a task holds.
struct SwitchN {
  std::vector<std::int64_t> values;
  std::vector<BindingState*> targets;
};

class ModelState : public std::enable_shared_from_this<ModelState> {
 public:
  enum class Phase : std::uint8_t { building, ready, unbound, closed };
  ModelState(std::shared_ptr<ContextState> c, std::uint32_t n);
  ~ModelState();
  const std::shared_ptr<ContextState> context;
  const std::uint32_t number;
  const std::uint64_t serial;  ///< in traces

  /// Held for every build call; a second one at the same time is refused.
  std::mutex build;
  std::atomic<Phase> phase{Phase::building};
  /// None once it is closed; taken out under context->executions_mutex.
  std::vector<std::shared_ptr<BindingState>> bindings;

  // While building.
  std::vector<Ref<RecordSite>> sites;
  std::map<const EventState*, RecordSite*> last_record;
  struct Forward {  // a wait before any record of its event
    const EventState* event;
    BindingState* binding;
    std::uint32_t at;
  };
  std::vector<Forward> forward;
  std::vector<std::shared_ptr<LabelState>> labels;      ///< that a task refers to or that are placed
  std::vector<std::shared_ptr<EventState>> events;      ///< that tapes refer to
  std::vector<std::unique_ptr<SwitchN>> switches;
  std::vector<std::unique_ptr<std::vector<LabelState*>>> label_lists;

  std::unique_ptr<Replay> replay;  ///< set when finished, for models that it can run

  // One execution, under context->executions_mutex.
  Ref<Completion> current;
  Ref<Completion> last_asked;
  std::uint64_t executions = 0;  ///< begun so far: the number of the one that runs

  /// Tapes that are active or will be: heads at the start, an activation before its task completes.
  BasicActivations<RealAtomics> live;
  std::atomic<std::uint64_t> tasks_run{0};
  std::atomic<bool> dropping{false};
  std::mutex error_mutex;
  std::unique_ptr<Error> error;      ///< the first of this execution
  std::atomic<bool> dirty{false};    ///< this execution dropped tasks
};

/// Room for so many more, so that adding them fails for nothing. Grows as adding does.
template <class T>
void make_room(std::vector<T>& list, std::size_t more = 1) {
  if (list.capacity() - list.size() < more) list.reserve(std::max(2 * list.size(), list.size() + more));
}

/// Asks for one execution; the completion is published when it is over. Executions of one model, and of models that
/// share a stream, run one after the other in the order in which they were asked for.
void ask(const std::shared_ptr<ModelState>& model, Ref<Completion> completion);
/// Whether they have a stream in common: then their executions exclude each other.
bool shares_stream(const ModelState& a, const ModelState& b);
/// By whoever ran its last task.
void end_of_execution(ModelState& model);
/// Gives the execution that runs, if one does, up: what has not begun is dropped, `why` is its error.
void drop_execution(ModelState& model, Error why);
/// By the lane's holder when its tape is over: false when the lane is no longer held, true when it was activated again.
bool end_of_tape(Lane& lane);
/// The lane's next task, for queues and tapes. A tape: null at its end.
Task* first_task(Lane& lane);
/// The effect of a task that only tapes have. Jumps move the lane's place.
void perform_on_tape(Lane& lane, Task& task);
/// Waits of a tape.
Admission admit_on_tape(Lane& lane, Task& task);
/// A task onto the tape of the stream's building binding. Errors: not_bound, bad_state, stream_full, no_memory.
Result<void> append(const char* call, StreamState& stream, Task& task);
Result<void> append_record(const char* call, StreamState& stream, const std::shared_ptr<EventState>& event);
Result<void> append_wait(const char* call, StreamState& stream, const std::shared_ptr<EventState>& event);
/// Ends a model: executions waited for, streams unbound.
Result<void> end_model(const char* call, ModelState& model);

}  // namespace millstream::rt
