// SPDX-License-Identifier: Apache-2.0
// Executions of models: when one may begin, what its tapes' own tasks do, when it is over.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/runtime/replay.h"

namespace millstream::rt {

Waiter* RecordSite::record(std::uint64_t execution) {
  const std::lock_guard lock(lock_);
  if (std::exchange(execution_, execution) != execution) made_ = 0;
  ++made_;
  Waiter* list = nullptr;
  for (auto it = waiting_.rbegin(); it != waiting_.rend(); ++it) {
    (*it)->next = list;
    list = *it;
  }
  waiting_.clear();
  return list;
}

bool RecordSite::park(Waiter& waiter, std::uint64_t execution, std::uint64_t used) {
  const std::lock_guard lock(lock_);
  if (execution_ == execution && made_ > used) return false;
  waiting_.push_back(&waiter);
  return true;
}

Signal::Removal RecordSite::remove(Waiter& waiter) {
  const std::lock_guard lock(lock_);
  const auto it = std::find(waiting_.begin(), waiting_.end(), &waiter);
  if (it == waiting_.end()) return {};
  waiting_.erase(it);
  return {true, nullptr};
}

std::string RecordSite::describe() const { return fmt::format("a record of event {} on {}", event_, on_.stream.name()); }

bool shares_stream(const ModelState& a, const ModelState& b) {
  for (const auto& x : a.bindings) {
    for (const auto& y : b.bindings) {
      if (&x->stream == &y->stream) return true;
    }
  }
  return false;
}

namespace {

void begin(ModelState& model) {
  // In a trace records and waits are tasks of their own: the lanes run it.
  if (model.replay && !model.context->device.trace.on()) return model.replay->begin();
  std::vector<BindingState*> heads;
  for (const auto& binding : model.bindings) {
    if (binding->role == StreamRole::head) heads.push_back(binding.get());
  }
  model.live.begin(heads.size());
  // All before the first may run: it may activate another, which then starts again at its end.
  for (BindingState* head : heads) head->lane.token.add();
  for (BindingState* head : heads) head->lane.context.device.machine->make_ready(head->lane);
}

// Those that may begin now, in the order in which they were asked for.
void begin_what_may(ContextState& context) {
  std::vector<std::shared_ptr<ModelState>> now;
  {
    const std::lock_guard lock(context.executions_mutex);
    std::vector<const ModelState*> blocked;  // that run, or were asked for earlier and wait
    for (const auto& model : context.running) blocked.push_back(model.get());
    for (auto it = context.executions.begin(); it != context.executions.end();) {
      ModelState& model = *it->model;
      const bool waits = std::any_of(blocked.begin(), blocked.end(), [&](const ModelState* b) { return shares_stream(*b, model); });
      blocked.push_back(&model);
      if (waits) {
        ++it;
        continue;
      }
      model.current = std::move(it->completion);
      ++model.executions;
      model.dropping.store(false, std::memory_order_seq_cst);
      model.dirty.store(false, std::memory_order_relaxed);
      model.tasks_run.store(0, std::memory_order_relaxed);
      if (context.device.trace.on()) context.device.trace.execution(TraceEvent::Kind::execution_begin, model, model.current->serial);
      context.running.push_back(it->model);
      now.push_back(it->model);
      it = context.executions.erase(it);
    }
  }
  for (const auto& model : now) begin(*model);
}

}  // namespace

void end_of_execution(ModelState& model) {
  ContextState& context = *model.context;
  std::shared_ptr<ModelState> keep;
  Ref<Completion> completion;
  {
    const std::lock_guard lock(context.executions_mutex);
    const auto it = std::find_if(context.running.begin(), context.running.end(), [&](const auto& m) { return m.get() == &model; });
    keep = std::move(*it);
    context.running.erase(it);
    completion = std::move(model.current);
    // While the next execution cannot begin: it has errors of its own.
    {
      const std::lock_guard errors(model.error_mutex);
      completion->error = std::move(model.error);
    }
    if (!completion->error && context.stopped.load(std::memory_order_seq_cst) && model.dirty.load(std::memory_order_relaxed)) {
      completion->error = std::make_unique<Error>(Error{ErrorCode::context_stopped, fmt::format("model {}: its context stopped", model.number)});
    }
    if (context.device.trace.on()) context.device.trace.execution(TraceEvent::Kind::execution_end, model, completion->serial);
  }
  const std::shared_ptr<ContextState> keep_context = model.context;
  begin_what_may(context);
  wake_all(completion->signal.publish());
}

namespace {

bool holds(Comparison condition, std::int64_t left, std::int64_t right) {
  switch (condition) {
    case Comparison::equal: return left == right;
    case Comparison::not_equal: return left != right;
    case Comparison::greater: return left > right;
    case Comparison::greater_equal: return left >= right;
    case Comparison::less: return left < right;
    case Comparison::less_equal: return left <= right;
  }
  return false;
}

std::int64_t operand(const void* at, std::uint8_t type) {
  return static_cast<IntType>(type) == IntType::int32 ? *static_cast<const std::int32_t*>(at) : *static_cast<const std::int64_t*>(at);
}

void start(Lane& lane, Task& task, BindingState& target) {
  ModelState& model = *target.model;
  TraceRecorder& trace = lane.context.device.trace;
  if (trace.on()) trace.activates(lane, task, target.lane, 0);
  switch (model.live.start(target.lane.token, 2)) {
    case RunToken::Added::first:
      target.lane.context.device.machine->make_ready(target.lane);
      return;
    case RunToken::Added::yes:
      return;  // it starts again at its end
    case RunToken::Added::no:
      return fail(lane, task, Error{ErrorCode::bad_state, fmt::format("{} runs and will be started again already", target.stream.name())});
  }
}

// What follows on this tape is skipped.
void leave_tape(Lane& lane) { lane.place = static_cast<std::uint32_t>(lane.binding->tape.size()) - 1; }

void jump(Lane& lane, Task& task, const LabelState& label) {
  BindingState& target = *label.binding;
  TraceRecorder& trace = lane.context.device.trace;
  if (trace.on()) trace.activates(lane, task, target.lane, label.at);
  // retire moves the place on by one.
  if (&target == lane.binding) {
    lane.place = label.at - 1;
    return;
  }
  // The token first: of two streams that jump to it at once one goes there.
  if (target.model->live.start(target.lane.token, 1) == RunToken::Added::no) {
    return fail(lane, task, Error{ErrorCode::bad_state, fmt::format("a jump to a label of {}, which runs", target.stream.name())});
  }
  target.lane.place = label.at;
  target.lane.context.device.machine->make_ready(target.lane);
  leave_tape(lane);
}

}  // namespace

void ask(const std::shared_ptr<ModelState>& model, Ref<Completion> completion) {
  ContextState& context = *model->context;
  std::optional<Error> refused;
  {
    const std::lock_guard lock(context.executions_mutex);
    if (model->phase.load(std::memory_order_acquire) != ModelState::Phase::ready) {
      refused = Error{ErrorCode::bad_state, fmt::format("model {} was unbound or destroyed before its execution began", model->number)};
    } else {
      model->last_asked = completion;
      context.executions.push_back({model, completion});
      if (context.device.trace.on()) context.device.trace.execution(TraceEvent::Kind::execution_asked, *model, completion->serial);
    }
  }
  if (refused) {
    if (context.device.trace.on()) context.device.trace.execution(TraceEvent::Kind::execution_refused, *model, completion->serial);
    completion->error = std::make_unique<Error>(std::move(*refused));
    wake_all(completion->signal.publish());
    return;
  }
  begin_what_may(context);
}

void drop_execution(ModelState& model, Error why) {
  std::vector<std::shared_ptr<BindingState>> bindings;  // the model may end meanwhile
  {
    const std::lock_guard running(model.context->executions_mutex);
    if (!model.current) return;
    bindings = model.bindings;
    {
      const std::lock_guard lock(model.error_mutex);
      if (!model.error) model.error = std::make_unique<Error>(std::move(why));
    }
    TraceRecorder& trace = model.context->device.trace;
    if (trace.on()) trace.execution(TraceEvent::Kind::execution_dropping, model, model.current->serial);
    model.dropping.store(true, std::memory_order_seq_cst);
    if (trace.on()) trace.execution(TraceEvent::Kind::execution_drop_in_force, model, model.current->serial);
  }
  for (const auto& binding : bindings) unpark(binding->lane, Wake::aborted);
}

bool end_of_tape(Lane& lane) {
  ModelState& model = *lane.binding->model;
  lane.place = 0;
  const auto end = model.live.end(lane.token);
  if (end.over) end_of_execution(model);
  return !end.idle;
}

Task* first_task(Lane& lane) {
  if (lane.binding == nullptr) return &lane.queue.front();
  std::vector<Task>& tape = lane.binding->tape;
  return lane.place == tape.size() ? nullptr : &tape[lane.place];
}

Admission admit_on_tape(Lane& lane, Task& task) {
  lane.woken = false;
  if (task.kind == TaskKind::site_wait) {
    RecordSite& site = *task.site.site;
    // Only lanes of the execution that runs read its number.
    const std::uint64_t execution = lane.binding->model->executions;
    if (std::exchange(task.site.execution, execution) != execution) task.site.used = 0;
    const std::uint64_t used = task.site.used;
    return wait_for(lane, task, site, 0, [&](Lane& l) { return site.park(l, execution, used); });
  }
  if (task.outside.seen == nullptr) {
    EventState& event = *task.outside.event;
    const std::lock_guard lock(event.lock);
    task.outside.seen = Ref<Completion>(event.last).release();
  }
  if (task.outside.seen == nullptr) return Admission::run;
  Completion& completion = *task.outside.seen;
  if (!completion.signal.done()) {
    const Admission a = wait_for(lane, task, completion, 0, [&](Lane& l) { return completion.signal.park(l); });
    if (a != Admission::run) return a;
  }
  const auto failure = completion.failure();
  if (!failure) return Admission::run;
  Error error{ErrorCode::context_stopped, fmt::format("{} was never recorded: {}", completion.describe(), failure->error.message)};
  if (failure->context != lane.context.id) {
    fail(lane, task, std::move(error));
    return Admission::run;
  }
  // In the same context what waits goes with the record.
  error.code = failure->error.code;
  drop_execution(*lane.binding->model, error);
  fail(lane, task, std::move(error));
  return Admission::drop;
}

void perform_on_tape(Lane& lane, Task& task) {
  switch (task.kind) {
    case TaskKind::site_record:
      return wake_all(task.site.site->record(lane.binding->model->executions));
    case TaskKind::site_wait:
      ++task.site.used;
      return;
    case TaskKind::outside_wait:
      if (task.outside.seen != nullptr) task.outside.seen->drop();
      task.outside.seen = nullptr;
      return;
    case TaskKind::activate:
      return start(lane, task, *task.target);
    case TaskKind::switch_to: {
      const Task::Switch& s = task.choice;
      BindingState* const next =
          holds(static_cast<Comparison>(s.condition), operand(s.left, s.type), operand(s.right, s.type)) ? s.on_true : s.on_false;
      if (next == nullptr) return;
      start(lane, task, *next);
      return leave_tape(lane);
    }
    case TaskKind::switch_n: {
      const std::int64_t index = operand(task.choices.index, task.choices.type);
      const SwitchN& cases = *task.choices.cases;
      for (std::size_t i = 0; i < cases.values.size(); ++i) {
        if (cases.values[i] != index) continue;
        start(lane, task, *cases.targets[i]);
        return leave_tape(lane);
      }
      return;
    }
    case TaskKind::jump:
      return jump(lane, task, *task.jump.label);
    case TaskKind::jump_by_index: {
      const auto& labels = *task.jump.labels;
      return jump(lane, task, *labels[std::min<std::size_t>(*task.jump.index, labels.size() - 1)]);
    }
    default:
      return;  // a label: only a place
  }
}

}  // namespace millstream::rt
