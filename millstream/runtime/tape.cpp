// SPDX-License-Identifier: Apache-2.0
// Recording: what calls on a persistent stream put on its tape.
#include <fmt/format.h>

#include "millstream/runtime/model_state.h"
#include "millstream/runtime/submit.h"

namespace millstream::rt {

BindingState::BindingState(const std::shared_ptr<StreamState>& s, ModelState& m, StreamRole r)
    : stream(*s), model(&m), role(r), lane(*s, *s->context, s->lane.level) {
  lane.binding = this;
}

BindingState::~BindingState() {
  for (Task& task : tape) release(task);
}

LabelState::~LabelState() { context->device.label_numbers.give_back(number); }

namespace {

// The binding whose model is being built, and nothing else builds it at this moment.
struct Building {
  std::shared_ptr<BindingState> binding;
  std::shared_ptr<ModelState> model;  // another thread may unbind the stream
  std::unique_lock<std::mutex> lock;
};

Result<Building> building(const char* call, StreamState& stream) {
  MST_TRY_VOID(takes_tasks(call, stream));
  std::shared_ptr<BindingState> found;
  std::shared_ptr<ModelState> model;
  bool bound = false;
  {
    const std::lock_guard lock(stream.tapes_mutex);
    for (const auto& b : stream.bindings) {
      bound = true;
      if (b->model->phase.load(std::memory_order_acquire) != ModelState::Phase::building) continue;
      found = b;
      model = b->model->shared_from_this();
    }
  }
  if (!bound) {
    return Error{ErrorCode::not_bound, fmt::format("{}: {} is persistent and bound to no model", call, stream.name())}.help(
        "bind it to a model that is being built");
  }
  if (!found) {
    return Error{ErrorCode::bad_state, fmt::format("{}: the model of {} is finished", call, stream.name())}.help(
        "tasks are recorded while a model is being built");
  }
  std::unique_lock lock(model->build, std::try_to_lock);
  if (!lock.owns_lock()) {
    return Error{ErrorCode::bad_state, fmt::format("{}: another thread is building model {}", call, model->number)}.help(
        "build a model from one thread at a time");
  }
  if (found->ended || model->phase.load(std::memory_order_acquire) != ModelState::Phase::building) {
    return Error{ErrorCode::bad_state, fmt::format("{}: the tasks of {} are ended", call, stream.name())};
  }
  return Building{std::move(found), std::move(model), std::move(lock)};
}

// What `put` puts on the tape of the stream's building binding, or no_memory.
template <class Put>
Result<void> on_tape(const char* call, StreamState& stream, Put put) {
  return with_memory(call, [&]() -> Result<void> {
    MST_TRY(const Building b, building(call, stream));
    return put(b);
  });
}

// A failure leaves the tape as it was. What the task refers to has its room in the model before, and goes there afterwards.
Result<void> append_to(const char* call, BindingState& binding, Task& task) {
  StreamState& stream = binding.stream;
  if (binding.tape.size() >= stream.capacity) {
    return Error{ErrorCode::stream_full, fmt::format("{}: the tape of {} has {} tasks, as many as it takes", call, stream.name(), stream.capacity)}
        .help("make the stream huge, or use two");
  }
  task.sequence = binding.tape.size();
  make_room(binding.tape);
  TraceRecorder& trace = stream.context->device.trace;
  if (trace.on()) trace.recorded(binding.lane, task);
  binding.tape.push_back(task);
  return {};
}

Error elsewhere(const char* call, const std::string& what, const ModelState& model) {
  return Error{ErrorCode::not_bound, fmt::format("{}: {} is not bound to model {}", call, what, model.number)};
}

}  // namespace

Result<void> append(const char* call, StreamState& stream, Task& task) {
  return on_tape(call, stream, [&](const Building& b) { return append_to(call, *b.binding, task); });
}

Result<void> append_record(const char* call, StreamState& stream, const std::shared_ptr<EventState>& event) {
  return on_tape(call, stream, [&](const Building& b) -> Result<void> {
    ModelState& model = *b.model;
    make_room(model.events);
    make_room(model.sites);
    auto site = Ref<RecordSite>::adopt(new RecordSite(event->number, *b.binding, (model.serial << 32) + model.sites.size() + 1));
    // A node for the map, which goes there when nothing can fail any more.
    decltype(model.last_record) now = {{event.get(), site.get()}};
    Task task;
    task.kind = TaskKind::site_record;
    task.site = {site.get(), 0, 0};
    MST_TRY_VOID(append_to(call, *b.binding, task));
    model.last_record.erase(event.get());
    model.last_record.merge(now);
    // Waits that came before any record of the event are for this one.
    std::erase_if(model.forward, [&](const ModelState::Forward& f) {
      if (f.event != event.get()) return false;
      f.binding->tape[f.at].kind = TaskKind::site_wait;
      f.binding->tape[f.at].site = {site.get(), 0, 0};
      return true;
    });
    model.events.push_back(event);
    model.sites.push_back(std::move(site));
    return {};
  });
}

Result<void> append_wait(const char* call, StreamState& stream, const std::shared_ptr<EventState>& event) {
  return on_tape(call, stream, [&](const Building& b) -> Result<void> {
    ModelState& model = *b.model;
    make_room(model.events);
    make_room(model.forward);
    Task task;
    const auto record = model.last_record.find(event.get());
    if (record != model.last_record.end()) {
      task.kind = TaskKind::site_wait;
      task.site = {record->second, 0, 0};
      return append_to(call, *b.binding, task);
    }
    task.kind = TaskKind::outside_wait;
    task.outside = {event.get(), nullptr};
    MST_TRY_VOID(append_to(call, *b.binding, task));
    model.events.push_back(event);
    model.forward.push_back({event.get(), b.binding.get(), static_cast<std::uint32_t>(task.sequence)});
    return {};
  });
}

}  // namespace millstream::rt

namespace millstream {

using namespace rt;

namespace {

// What `put` puts on the stream's tape, after the checks of every call.
template <class Put>
Result<void> control_flow(const char* call, Stream& stream, Put put) {
  MST_TRY_VOID(enter(call));
  StreamState& s = *stream.state();
  if (!s.persistent) {
    return Error{ErrorCode::bad_state, fmt::format("{}: {} is not persistent", call, s.name())}.help("control flow is recorded on a model's streams");
  }
  return on_tape(call, s, put);
}

Result<BindingState*> target_of(const char* call, const ModelState& model, const Stream& target) {
  for (const auto& b : model.bindings) {
    if (&b->stream == target.state().get()) return b.get();
  }
  return elsewhere(call, target.state()->name(), model);
}

Result<void> usable(const char* call, const ModelState& model, const LabelState& label) {
  if (label.context == model.context) return {};
  return Error{ErrorCode::label_context, fmt::format("{}: label {} belongs to context {}, model {} to context {}", call, label.number,
                                                     label.context->number, model.number, model.context->number)};
}

}  // namespace

Result<void> Tape::activate(Stream& target) {
  constexpr const char* kCall = "Tape::activate";
  return control_flow(kCall, stream_, [&](const Building& b) -> Result<void> {
    Task task;
    task.kind = TaskKind::activate;
    MST_TRY(task.target, target_of(kCall, *b.model, target));
    return append_to(kCall, *b.binding, task);
  });
}

Result<void> Tape::switch_to(Comparison condition, const void* left, const void* right, IntType type, Stream& on_true, Stream* on_false) {
  constexpr const char* kCall = "Tape::switch_to";
  if (left == nullptr || right == nullptr) return null_argument(kCall, left == nullptr ? "the left operand" : "the right operand");
  return control_flow(kCall, stream_, [&](const Building& b) -> Result<void> {
    Task task;
    task.kind = TaskKind::switch_to;
    task.choice = {left, right, nullptr, nullptr, static_cast<std::uint8_t>(condition), static_cast<std::uint8_t>(type)};
    MST_TRY(task.choice.on_true, target_of(kCall, *b.model, on_true));
    if (on_false != nullptr) {
      MST_TRY(task.choice.on_false, target_of(kCall, *b.model, *on_false));
    }
    return append_to(kCall, *b.binding, task);
  });
}

Result<void> Tape::switch_n(const void* index, IntType type, std::span<const std::int64_t> values, std::span<Stream* const> targets) {
  constexpr const char* kCall = "Tape::switch_n";
  if (index == nullptr) return null_argument(kCall, "the index");
  if (values.empty() || values.size() != targets.size()) {
    return Error{ErrorCode::bad_value, fmt::format("{}: {} values for {} streams", kCall, values.size(), targets.size())};
  }
  return control_flow(kCall, stream_, [&](const Building& b) -> Result<void> {
    ModelState& model = *b.model;
    make_room(model.switches);
    auto cases = std::make_unique<SwitchN>();
    cases->values.assign(values.begin(), values.end());
    for (const Stream* target : targets) {
      if (target == nullptr) return null_argument(kCall, "a target");
      MST_TRY(BindingState* const binding, target_of(kCall, model, *target));
      cases->targets.push_back(binding);
    }
    Task task;
    task.kind = TaskKind::switch_n;
    task.choices = {index, cases.get(), static_cast<std::uint8_t>(type)};
    MST_TRY_VOID(append_to(kCall, *b.binding, task));
    model.switches.push_back(std::move(cases));
    return {};
  });
}

Result<void> Tape::place(Label& label) {
  constexpr const char* kCall = "Tape::place";
  return control_flow(kCall, stream_, [&](const Building& b) -> Result<void> {
    LabelState& l = *label.state();
    MST_TRY_VOID(usable(kCall, *b.model, l));
    make_room(b.model->labels);
    const std::lock_guard place(l.lock);
    if (l.owner != nullptr) return Error{ErrorCode::bad_state, fmt::format("{}: label {} is placed already", kCall, l.number)};
    Task task;
    task.kind = TaskKind::label;
    MST_TRY_VOID(append_to(kCall, *b.binding, task));
    b.model->labels.push_back(label.state());
    l.owner = b.model.get();
    l.binding = b.binding.get();
    l.at = static_cast<std::uint32_t>(task.sequence);
    return {};
  });
}

Result<void> Tape::jump(Label& label) {
  constexpr const char* kCall = "Tape::jump";
  return control_flow(kCall, stream_, [&](const Building& b) -> Result<void> {
    MST_TRY_VOID(usable(kCall, *b.model, *label.state()));
    make_room(b.model->labels);
    Task task;
    task.kind = TaskKind::jump;
    task.jump = {label.state().get(), nullptr, nullptr};
    MST_TRY_VOID(append_to(kCall, *b.binding, task));
    b.model->labels.push_back(label.state());
    return {};
  });
}

Result<void> Tape::jump_by_index(const std::uint32_t* index, std::span<Label* const> labels) {
  constexpr const char* kCall = "Tape::jump_by_index";
  if (index == nullptr) return null_argument(kCall, "the index");
  if (labels.empty()) return Error{ErrorCode::bad_value, fmt::format("{}: no labels", kCall)};
  return control_flow(kCall, stream_, [&](const Building& b) -> Result<void> {
    ModelState& model = *b.model;
    auto list = std::make_unique<std::vector<LabelState*>>();
    for (const Label* label : labels) {
      if (label == nullptr) return null_argument(kCall, "a label");
      MST_TRY_VOID(usable(kCall, model, *label->state()));
      list->push_back(label->state().get());
    }
    make_room(model.labels, labels.size());
    make_room(model.label_lists);
    Task task;
    task.kind = TaskKind::jump_by_index;
    task.jump = {nullptr, index, list.get()};
    MST_TRY_VOID(append_to(kCall, *b.binding, task));
    for (const Label* label : labels) model.labels.push_back(label->state());
    model.label_lists.push_back(std::move(list));
    return {};
  });
}

}  // namespace millstream
