// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/model.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "millstream/runtime/context.h"
#include "millstream/runtime/replay.h"
#include "millstream/runtime/step.h"
#include "millstream/runtime/submit.h"

namespace millstream {

using namespace rt;
using Phase = ModelState::Phase;

namespace rt {

ModelState::ModelState(std::shared_ptr<ContextState> c, std::uint32_t n)
    : context(std::move(c)), number(n), serial(context->device.trace.new_object()) {}

ModelState::~ModelState() = default;

namespace {

std::string name(const ModelState& model) { return fmt::format("model {}", model.number); }

const char* name(Phase phase) {
  switch (phase) {
    case Phase::building: return "building";
    case Phase::ready: return "ready";
    case Phase::unbound: return "unbound";
    case Phase::closed: return "destroyed";
  }
  return "";
}

Error wrong_phase(const char* call, const ModelState& model, const char* wanted) {
  return Error{ErrorCode::bad_state, fmt::format("{}: {} is {}, and must be {}", call, name(model), name(model.phase.load(std::memory_order_acquire)), wanted)};
}

Result<void> alive(const char* call, const ModelState& model) {
  MST_TRY_VOID(enter(call));
  if (model.phase.load(std::memory_order_acquire) == Phase::closed) return closed_handle(call, name(model));
  return {};
}

Result<std::unique_lock<std::mutex>> build_lock(const char* call, ModelState& model) {
  std::unique_lock lock(model.build, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  return Error{ErrorCode::bad_state, fmt::format("{}: another thread is building {}", call, name(model))}.help("build a model from one thread at a time");
}

Result<void> own_stream(const char* call, const ModelState& model, const StreamState& stream) {
  if (stream.closed.load(std::memory_order_acquire)) return closed_handle(call, stream.name());
  if (stream.context == model.context) return {};
  return Error{ErrorCode::wrong_model_context, fmt::format("{}: {} belongs to context {}, {} to context {}", call, name(model), model.context->number,
                                                           stream.name(), stream.context->number)};
}

// In the stream's list, which has a lock: the model's grows while it is built.
std::shared_ptr<BindingState> binding_of(const ModelState& model, StreamState& stream) {
  const std::lock_guard tapes(stream.tapes_mutex);
  for (const auto& b : stream.bindings) {
    if (b->model == &model) return b;
  }
  return nullptr;
}

Error not_bound(const char* call, const ModelState& model, const StreamState& stream) {
  return Error{ErrorCode::not_bound, fmt::format("{}: {} is not bound to {}", call, stream.name(), name(model))};
}

// Executions that were asked for are over. New ones are refused already.
void wait_for_executions(ModelState& model) {
  Ref<Completion> last;
  {
    const std::lock_guard lock(model.context->executions_mutex);
    last = model.last_asked;
  }
  if (last) wait_until_done(model.context->device, *last);
}

// The tape goes to the stream, which keeps it. The stream may end before the model does.
void let_go(const std::shared_ptr<BindingState>& binding) {
  const std::lock_guard lock(binding->stream.tapes_mutex);
  binding->model = nullptr;
  std::erase(binding->stream.bindings, binding);
  binding->stream.retired.push_back(binding);
}

bool jumps(const BindingState& binding) {
  return std::any_of(binding.tape.begin(), binding.tape.end(), [](const Task& t) { return t.kind == TaskKind::label; });
}

}  // namespace

Result<void> end_model(const char* call, ModelState& model) {
  MST_TRY_VOID(may_wait(call, model.context->device));
  const std::shared_ptr<ModelState> keep = model.shared_from_this();
  // What a thread is building at this moment it builds to the end, and changes no phase afterwards. Of two that end the model the
  // second returns when the first is done: nothing of the model is used any more then.
  const std::lock_guard builders(model.build);
  {
    const std::lock_guard lock(model.context->executions_mutex);
    if (model.phase.exchange(Phase::closed, std::memory_order_acq_rel) == Phase::closed) return closed_handle(call, name(model));
  }
  wait_for_executions(model);
  for (unsigned round = 0; model.replay && !model.replay->asleep(); ++round) RealAtomics::relax(round);
  // What is the model's goes here: whoever asked for its last execution may have the model itself for longer.
  std::vector<std::shared_ptr<BindingState>> bindings;
  {
    const std::lock_guard lock(model.context->executions_mutex);
    bindings.swap(model.bindings);
  }
  // Its last worker may still be leaving the tape.
  for (const auto& binding : bindings) {
    if (binding->model == nullptr) continue;
    for (unsigned round = 0; binding->lane.token.pending() != 0; ++round) RealAtomics::relax(round);
    let_go(binding);
  }
  for (const auto& label : model.labels) {
    const std::lock_guard place(label->lock);
    if (label->owner == &model) label->owner = nullptr, label->binding = nullptr;
  }
  model.labels.clear();
  model.events.clear();
  {
    const std::lock_guard lock(model.context->models_mutex);
    std::erase(model.context->models, keep);
  }
  model.context->device.model_numbers.give_back(model.number);
  return {};
}

}  // namespace rt

Result<Model> Context::begin_model() {
  constexpr const char* kCall = "Context::begin_model";
  MST_TRY_VOID(enter(kCall));
  if (state_->closed.load(std::memory_order_acquire)) return closed_handle(kCall, fmt::format("context {}", state_->number));
  return with_memory(kCall, [&]() -> Result<Model> {
    TakenNumber number(state_->device.model_numbers);
    if (!number) {
      return Error{ErrorCode::no_model, fmt::format("{}: device {} has {} models, and all are in use", kCall, state_->device.number,
                                                    state_->device.model_numbers.most())};
    }
    auto model = std::make_shared<ModelState>(state_, *number);
    const std::lock_guard lock(state_->models_mutex);
    // Under the lock: who ends the context ends the models that stand in the list after it has closed it.
    if (state_->closed.load(std::memory_order_seq_cst)) return closed_handle(kCall, fmt::format("context {}", state_->number));
    state_->models.push_back(model);
    number.keep();  // until the model ends
    return Model(std::move(model));
  });
}

Result<Label> Context::create_label() {
  constexpr const char* kCall = "Context::create_label";
  MST_TRY_VOID(enter(kCall));
  if (state_->closed.load(std::memory_order_acquire)) return closed_handle(kCall, fmt::format("context {}", state_->number));
  return with_memory(kCall, [&]() -> Result<Label> {
    TakenNumber number(state_->device.label_numbers);
    if (!number) {
      return Error{ErrorCode::over_limit, fmt::format("{}: device {} has {} labels, and all are in use", kCall, state_->device.number,
                                                      state_->device.label_numbers.most())};
    }
    auto label = std::make_shared<LabelState>(state_, *number);
    number.keep();
    return Label(std::move(label));
  });
}

Model& Model::operator=(Model&& other) noexcept {
  if (this != &other) {
    Model old(std::move(*this));
    state_ = std::move(other.state_);
  }
  return *this;
}

Model::~Model() {
  // In a host function it cannot wait; its context ends it.
  if (!state_ || in_callback()) return;
  Result<void> ended = end_model("Model::~Model", *state_);
  (void)ended;  // only that it was closed before
}

Result<void> Model::bind(Stream& stream, StreamRole role) {
  constexpr const char* kCall = "Model::bind";
  MST_TRY_VOID(alive(kCall, *state_));
  StreamState& s = *stream.state();
  MST_TRY_VOID(own_stream(kCall, *state_, s));
  MST_TRY(const auto lock, build_lock(kCall, *state_));
  if (state_->phase.load(std::memory_order_acquire) != Phase::building) return wrong_phase(kCall, *state_, "building");
  if (!s.persistent) {
    return Error{ErrorCode::bad_state, fmt::format("{}: {} is not persistent", kCall, s.name())}.help("create it with `persistent`, in acl with the flag ACL_STREAM_PERSISTENT");
  }
  const std::lock_guard tapes(s.tapes_mutex);
  if (s.closed.load(std::memory_order_acquire)) return closed_handle(kCall, s.name());
  for (const auto& b : s.bindings) {
    // A shared stream has a tape for each of its models, one at a time being built: this one, if it is bound already.
    if (s.shared && b->model->phase.load(std::memory_order_acquire) != Phase::building) continue;
    return Error{ErrorCode::bad_state, fmt::format("{}: {} is bound to model {} already", kCall, s.name(), b->model->number)};
  }
  return with_memory(kCall, [&]() -> Result<void> {
    auto binding = std::make_shared<BindingState>(stream.state(), *state_, role);
    make_room(s.bindings);
    make_room(s.retired, s.bindings.size() + 1);  // letting go fails for nothing
    make_room(state_->bindings);
    TraceRecorder& trace = state_->context->device.trace;
    if (trace.on()) trace.bound(binding->lane, role == StreamRole::head);
    s.bindings.push_back(binding);
    state_->bindings.push_back(std::move(binding));
    return {};
  });
}

Result<void> Model::end_tasks(Stream& stream) {
  constexpr const char* kCall = "Model::end_tasks";
  MST_TRY_VOID(alive(kCall, *state_));
  MST_TRY_VOID(own_stream(kCall, *state_, *stream.state()));
  MST_TRY(const auto lock, build_lock(kCall, *state_));
  const auto binding = binding_of(*state_, *stream.state());
  if (!binding || state_->phase.load(std::memory_order_acquire) == Phase::unbound) return not_bound(kCall, *state_, *stream.state());
  if (state_->phase.load(std::memory_order_acquire) != Phase::building) return wrong_phase(kCall, *state_, "building");
  if (binding->ended) return Error{ErrorCode::bad_state, fmt::format("{}: the tasks of {} are ended already", kCall, binding->stream.name())};
  binding->ended = true;
  return {};
}

namespace {

Result<void> finish_model(const char* call, ModelState& m) {
  MST_TRY(const auto lock, build_lock(call, m));
  if (m.phase.load(std::memory_order_acquire) != Phase::building) return wrong_phase(call, m, "building");
  const auto refuse = [&](std::string why) { return Error{ErrorCode::bad_state, fmt::format("{}: {} {}", call, name(m), why)}; };
  if (m.bindings.empty()) return refuse("has no stream").help("bind one");
  const auto is_head = [](const auto& b) { return b->role == StreamRole::head; };
  const auto is_ended = [](const auto& b) { return b->ended; };
  if (std::none_of(m.bindings.begin(), m.bindings.end(), is_head)) return refuse("has no head: nothing would start").help("bind a stream as head");
  if (std::none_of(m.bindings.begin(), m.bindings.end(), is_ended)) return refuse("has no stream whose tasks are ended").help("end_tasks of at least one");
  for (const auto& label : m.labels) {
    const std::lock_guard place(label->lock);
    if (label->owner == nullptr) return refuse(fmt::format("jumps to label {}, which is placed nowhere", label->number));
    if (label->owner != &m) return refuse(fmt::format("jumps to label {}, which is in model {}", label->number, label->owner->number));
  }
  std::map<const RecordSite*, std::size_t> waits;
  for (const auto& b : m.bindings) {
    const bool straight = !jumps(*b);
    std::set<const RecordSite*> recorded;
    for (const Task& task : b->tape) {
      if (task.kind == TaskKind::site_record) recorded.insert(task.site.site);
      if (task.kind != TaskKind::site_wait) continue;
      ++waits[task.site.site];
      // The first time it comes here nothing can have been recorded, unless a jump came from behind the record.
      const bool only_later = straight && &task.site.site->on() == b.get() && recorded.count(task.site.site) == 0;
      if (only_later) return refuse(fmt::format("waits at task {} of {} for what that stream records later", task.sequence, b->stream.name()));
    }
  }
  for (const auto& site : m.sites) site->reserve(waits[site.get()]);
  m.replay = Replay::compile(m, m.context->device.machine->replay_workers());
  for (const auto& b : m.bindings) b->ended = true;
  m.phase.store(Phase::ready, std::memory_order_release);
  return {};
}

Result<Ref<Completion>> ask_through(const char* call, ModelState& model, StreamState& stream, bool reports) {
  auto completion = Ref<Completion>::adopt(new Completion(Completion::What::execution, model.number));
  TraceRecorder& trace = stream.context->device.trace;
  if (trace.on()) completion->serial = trace.new_object();
  Task task;
  task.kind = TaskKind::execute;
  task.execute = {&model, new std::shared_ptr<ModelState>(model.shared_from_this()), Ref<Completion>(completion).release(), false, reports};
  MST_TRY_VOID(submit(call, stream, task));
  return completion;
}

Result<void> executable(const char* call, const ModelState& model) {
  if (model.phase.load(std::memory_order_acquire) != Phase::ready) return wrong_phase(call, model, "ready");
  return {};
}

}  // namespace

Result<void> Model::finish() {
  constexpr const char* kCall = "Model::finish";
  MST_TRY_VOID(alive(kCall, *state_));
  return with_memory(kCall, [&] { return finish_model(kCall, *state_); });
}

Result<void> Model::execute(Deadline deadline) {
  constexpr const char* kCall = "Model::execute";
  MST_TRY_VOID(alive(kCall, *state_));
  if (deadline && deadline->count() <= 0) return Error{ErrorCode::bad_value, fmt::format("{}: a wait of {} ns", kCall, deadline->count())};
  MST_TRY_VOID(executable(kCall, *state_));
  MST_TRY_VOID(may_wait(kCall, state_->context->device));
  const std::shared_ptr<StreamState> stream = state_->context->live_default_stream();
  if (!stream) return closed_handle(kCall, fmt::format("context {}", state_->context->number));
  MST_TRY(const Ref<Completion> completion, with_memory(kCall, [&] { return ask_through(kCall, *state_, *stream, false); }));
  MST_TRY_VOID(wait_host(kCall, *stream, *completion, deadline));
  if (completion->error) return *completion->error;
  return {};
}

Result<void> Model::execute_async(Stream& stream) {
  constexpr const char* kCall = "Model::execute_async";
  MST_TRY_VOID(alive(kCall, *state_));
  StreamState& s = *stream.state();
  MST_TRY_VOID(own_stream(kCall, *state_, s));
  if (s.persistent) {
    return Error{ErrorCode::bad_state, fmt::format("{}: {} is persistent", kCall, s.name())}.help("execute from a stream that runs its tasks at once");
  }
  MST_TRY_VOID(executable(kCall, *state_));
  MST_TRY_VOID(with_memory(kCall, [&] { return ask_through(kCall, *state_, s, true); }));
  return {};
}

Result<void> Model::unbind(Stream& stream) {
  constexpr const char* kCall = "Model::unbind";
  MST_TRY_VOID(alive(kCall, *state_));
  MST_TRY_VOID(own_stream(kCall, *state_, *stream.state()));
  MST_TRY_VOID(may_wait(kCall, state_->context->device));
  MST_TRY(const auto building, build_lock(kCall, *state_));
  const auto binding = binding_of(*state_, *stream.state());
  if (!binding) return not_bound(kCall, *state_, *stream.state());
  {
    const std::lock_guard lock(state_->context->executions_mutex);
    state_->phase.store(Phase::unbound, std::memory_order_release);
  }
  wait_for_executions(*state_);
  for (unsigned round = 0; state_->replay && !state_->replay->asleep(); ++round) RealAtomics::relax(round);
  for (unsigned round = 0; binding->lane.token.pending() != 0; ++round) RealAtomics::relax(round);
  let_go(binding);
  return {};
}

Result<void> Model::abort() {
  constexpr const char* kCall = "Model::abort";
  MST_TRY_VOID(alive(kCall, *state_));
  drop_execution(*state_, Error{ErrorCode::model_aborted, fmt::format("{} was aborted", name(*state_))});
  return {};
}

Result<void> Model::close() {
  constexpr const char* kCall = "Model::close";
  MST_TRY_VOID(alive(kCall, *state_));
  return end_model(kCall, *state_);
}

}  // namespace millstream
