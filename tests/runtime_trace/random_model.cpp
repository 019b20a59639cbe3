// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime_trace/random_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/runtime/objects.h"

namespace millstream::rt {
namespace {

constexpr std::uint32_t kConstants = 3;  // cells that hold their own number

}  // namespace

RandomModel::RandomModel(std::uint64_t seed, const ModelPlace& place) : random_{seed}, place_(place), straight_(random_.one_in(3)), memory_(*place.memory) {
  for (std::uint32_t i = 0; i < kConstants; ++i) new_cell(i);
}

Result<std::shared_ptr<RandomModel>> RandomModel::build(std::uint64_t seed, const ModelPlace& place) {
  auto made = std::make_shared<RandomModel>(seed, place);
  MST_TRY_VOID(made->record_all());
  return made;
}

std::uint32_t RandomModel::new_cell(std::uint64_t value) {
  memory_.push_back(value);
  expected_.push_back(value);
  return static_cast<std::uint32_t>(memory_.size() - 1);
}

Result<std::uint32_t> RandomModel::new_label() {
  MST_TRY(Label label, place_.context->create_label());
  labels_.push_back(std::move(label));
  label_at_.push_back({kNone, 0});
  return static_cast<std::uint32_t>(labels_.size() - 1);
}

Result<std::uint32_t> RandomModel::new_stream(StreamRole role, Stream* shared) {
  if (shared == nullptr) {
    StreamOptions options;
    options.persistent = options.huge = true;
    if (!straight_ && random_.one_in(3)) options.priority = static_cast<std::int32_t>(random_.below(8));
    MST_TRY(Stream stream, place_.context->create_stream(options));
    streams_.push_back(std::move(stream));
    shared = &streams_.back();
  }
  MST_TRY_VOID(model_->bind(*shared, role));
  bound_.push_back(shared);
  numbers_.push_back(new_cell());
  ops_.emplace_back();
  is_head_.push_back(role == StreamRole::head);
  return static_cast<std::uint32_t>(bound_.size() - 1);
}

Result<void> RandomModel::record_all() {
  MST_TRY(Model begun, place_.context->begin_model());
  model_.emplace(std::move(begun));
  heads_ = 1 + random_.below(3);
  for (std::uint32_t i = 0; i < heads_; ++i) {
    const bool shares = i == 0 && place_.shared != nullptr && random_.one_in(2);
    // Another thread may be building on it at this moment.
    const Result<std::uint32_t> first = shares ? new_stream(StreamRole::head, place_.shared) : new_stream(StreamRole::head);
    shares_ = shares_ || (shares && first.ok());
    if (first.ok()) continue;
    if (!shares || first.error().code != ErrorCode::bad_state) return first.error();
    MST_TRY_VOID(new_stream(StreamRole::head));
  }
  const std::uint32_t steps = 3 + random_.below(8);
  for (std::uint32_t i = 0; i < steps; ++i) {
    MST_TRY_VOID(step(any_head()));
    if (!place_.calm && random_.one_in(4)) MST_TRY_VOID(mischief(random_.below(static_cast<std::uint32_t>(bound_.size()))));
  }
  MST_TRY_VOID(update(0));
  for (std::uint32_t s = 0; s < heads_ && !straight_; ++s) {
    if (random_.one_in(2)) MST_TRY_VOID(ending(s));
  }
  MST_TRY_VOID(model_->end_tasks(*bound_[random_.below(heads_)]));
  return model_->finish();
}

// ---- what is recorded, with what it stands for

Result<void> RandomModel::update(std::uint32_t s, std::uint32_t read, std::uint32_t write) {
  const Update u{&memory_[numbers_[s]], random_.next(), read == kNone ? nullptr : &memory_[read], write == kNone ? nullptr : &memory_[write]};
  const bool alone = read == kNone && write == kNone;
  const KernelFunction& kernel = !place_.calm && !alone ? kLooseUpdate : random_.one_in(8) ? kSlowUpdate : random_.one_in(25) ? (random_.one_in(2) ? kFail : kThrow) : kUpdate;
  ops_[s].push_back({Op::What::update, read, write, u.id});
  return bound_[s]->launch(kernel, {}, std::as_bytes(std::span(&u, 1)).first(alone ? 16 : sizeof u));
}

Result<void> RandomModel::callback(std::uint32_t s) {
  Callback& c = callbacks_.emplace_back();
  c.update = {&memory_[numbers_[s]], random_.next(), nullptr, nullptr};
  c.context = place_.context;
  c.throws = random_.one_in(6);
  c.wrong_codes = place_.wrong_codes;
  ops_[s].push_back({Op::What::update, kNone, kNone, c.update.id});
  return bound_[s]->host_func(call_back, &c);
}

Result<void> RandomModel::count(std::uint32_t s, std::uint32_t cell, std::uint64_t bound) {
  const Count c{&memory_[cell], bound};
  ops_[s].push_back({Op::What::count, cell, 0, bound});
  return bound_[s]->launch(kCount, {}, std::as_bytes(std::span(&c, 1)));
}

Result<void> RandomModel::record(std::uint32_t s, Event& e) {
  const EventState* const event = e.state().get();
  MST_TRY_VOID(bound_[s]->record(e));
  std::erase_if(last_record_, [&](const Tie& t) { return t.event == event; });
  last_record_.push_back({event, s, records_});
  std::erase_if(open_waits_, [&](const Tie& t) {
    if (t.event != event) return false;
    ops_[t.stream][t.at].a = records_;
    return true;
  });
  ops_[s].push_back({Op::What::record, records_++});
  return {};
}

Result<void> RandomModel::wait(std::uint32_t s, Event& e) {
  const EventState* const event = e.state().get();
  MST_TRY_VOID(bound_[s]->wait(e));
  const auto last = std::find_if(last_record_.begin(), last_record_.end(), [&](const Tie& t) { return t.event == event; });
  if (last == last_record_.end()) open_waits_.push_back({event, s, static_cast<std::uint32_t>(ops_[s].size())});
  ops_[s].push_back({Op::What::wait, last == last_record_.end() ? kNone : last->at});
  return {};
}

Result<void> RandomModel::place_label(std::uint32_t s, std::uint32_t label) {
  label_at_[label] = {s, static_cast<std::uint32_t>(ops_[s].size())};
  ops_[s].push_back({Op::What::label});
  return tape(s).place(labels_[label]);
}

Result<void> RandomModel::activate(std::uint32_t s, std::uint32_t target) {
  ops_[s].push_back({Op::What::activate, target});
  return tape(s).activate(*bound_[target]);
}

Result<void> RandomModel::choose(std::uint32_t s, Comparison condition, std::uint32_t left, std::uint32_t right, std::uint32_t on_true, std::uint32_t on_false) {
  ops_[s].push_back({Op::What::choose, left, right, condition == Comparison::equal, {on_true, on_false}});
  return tape(s).switch_to(condition, &memory_[left], &memory_[right], random_.one_in(2) ? IntType::int32 : IntType::int64, *bound_[on_true],
                           on_false == kNone ? nullptr : bound_[on_false]);
}

Result<void> RandomModel::jump_by_index(std::uint32_t s, std::uint32_t cell, std::vector<std::uint32_t> labels) {
  std::vector<Label*> list;
  for (const std::uint32_t l : labels) list.push_back(&labels_[l]);
  ops_[s].push_back({Op::What::jump_by_index, cell, 0, 0, std::move(labels)});
  return tape(s).jump_by_index(reinterpret_cast<const std::uint32_t*>(&memory_[cell]), list);
}

Result<void> RandomModel::jump(std::uint32_t s, std::uint32_t label) {
  ops_[s].push_back({Op::What::jump, 0, 0, 0, {label}});
  return tape(s).jump(labels_[label]);
}

// ---- pieces of a model

Event& RandomModel::event(bool fresh) {
  // One that was recorded before may be recorded again: waits go to the record that is the last when they are recorded.
  if (fresh || events_.empty() || random_.one_in(2)) events_.push_back(new_event());
  return fresh ? events_.back() : events_[random_.below(static_cast<std::uint32_t>(events_.size()))];
}

Result<void> RandomModel::step(std::uint32_t s) {
  const std::uint32_t draw = random_.below(straight_ ? 5 : 10);
  if (draw < 2) return update(s);
  if (draw < 5) return hand_over(s, any_head());
  if (draw == 5) return callback(s);
  if (draw == 6) return loop(s);
  if (draw == 7) return paired_loop(s, any_head());
  if (draw == 8) return spawn(s);
  return await_outside(s);
}

// A number from one stream to another: by an event, recorded before or behind its wait, or by a notify.
Result<void> RandomModel::hand_over(std::uint32_t from, std::uint32_t to) {
  const std::uint32_t cell = new_cell();
  if (from != to && random_.one_in(4)) {
    Event& e = event(true);
    MST_TRY_VOID(wait(to, e));
    MST_TRY_VOID(update(to, cell));
    MST_TRY_VOID(update(from, kNone, cell));
    return record(from, e);
  }
  MST_TRY_VOID(update(from, kNone, cell));
  if (!straight_ && random_.one_in(3)) {
    MST_TRY(Notify made, place_.context->create_notify());
    notifies_.push_back(std::move(made));
    const auto n = static_cast<std::uint32_t>(notifies_.size() - 1);
    ops_[from].push_back({Op::What::notify, n});
    MST_TRY_VOID(bound_[from]->record(notifies_[n]));
    ops_[to].push_back({Op::What::notify_wait, n});
    MST_TRY_VOID(bound_[to]->wait(notifies_[n]));
  } else {
    Event& e = event(false);
    MST_TRY_VOID(record(from, e));
    MST_TRY_VOID(wait(to, e));
  }
  return update(to, cell);
}

// Back to the label until the count is over. An index beyond the list is the last.
Result<void> RandomModel::loop_end(std::uint32_t s, std::uint32_t label, std::uint64_t bound) {
  const std::uint32_t cell = new_cell();
  MST_TRY_VOID(count(s, cell, bound));
  MST_TRY(const std::uint32_t end, new_label());
  MST_TRY_VOID(jump_by_index(s, cell, {end, label}));
  return place_label(s, end);
}

Result<void> RandomModel::loop(std::uint32_t s) {
  MST_TRY(const std::uint32_t label, new_label());
  MST_TRY_VOID(place_label(s, label));
  MST_TRY_VOID(update(s));
  if (random_.one_in(3)) MST_TRY_VOID(callback(s));
  return loop_end(s, label, 2 + random_.below(3));
}

// Two loops that go round together: a number there, an answer back.
Result<void> RandomModel::paired_loop(std::uint32_t a, std::uint32_t b) {
  if (a == b) return loop(a);
  const std::uint32_t cell = new_cell();
  const std::uint64_t bound = 2 + random_.below(3);
  Event &there = event(true), &back = event(true);
  MST_TRY(const std::uint32_t at_a, new_label());
  MST_TRY(const std::uint32_t at_b, new_label());
  MST_TRY_VOID(place_label(a, at_a));
  MST_TRY_VOID(update(a, kNone, cell));
  MST_TRY_VOID(record(a, there));
  MST_TRY_VOID(place_label(b, at_b));
  MST_TRY_VOID(wait(b, there));
  MST_TRY_VOID(update(b, cell));
  MST_TRY_VOID(record(b, back));
  MST_TRY_VOID(wait(a, back));
  MST_TRY_VOID(loop_end(a, at_a, bound));
  return loop_end(b, at_b, bound);
}

// Another stream beside this one: it may run several times, and this one may wait for it.
Result<void> RandomModel::spawn(std::uint32_t s) {
  MST_TRY(const std::uint32_t t, new_stream(StreamRole::activated));
  const std::uint32_t given = new_cell(), taken = new_cell();
  MST_TRY_VOID(update(s, kNone, given));
  MST_TRY_VOID(activate(s, t));
  MST_TRY_VOID(update(t, given));
  if (random_.one_in(2)) {
    const std::uint32_t round = new_cell();
    MST_TRY_VOID(count(t, round, 2 + random_.below(3)));
    MST_TRY_VOID(choose(t, Comparison::not_equal, round, 0, t, kNone));
  }
  MST_TRY_VOID(update(t, kNone, taken));
  if (random_.one_in(2)) return {};
  Event& e = event(true);
  MST_TRY_VOID(record(t, e));
  MST_TRY_VOID(wait(s, e));
  return update(s, taken);
}

// What is recorded once, before the model is executed. Not by one that shares a stream: the home may stand behind an
// execution that this one keeps waiting.
Result<void> RandomModel::await_outside(std::uint32_t s) {
  if (shares_ && place_.calm) return update(s);
  Event& e = outside_.emplace_back(new_event());
  const std::uint32_t cell = new_cell(0x0707070707070707ull);  // as it is filled
  MST_TRY_VOID(place_.home->fill(&memory_[cell], 8, 7, 8));
  MST_TRY_VOID(place_.home->record(e));
  MST_TRY_VOID(wait(s, e));
  return update(s, cell);
}

Result<void> RandomModel::body(std::uint32_t s) {
  MST_TRY_VOID(update(s));
  if (random_.one_in(3)) MST_TRY_VOID(loop(s));
  return update(s);
}

// The stream's last choice: other streams go on for it, this execution or another.
Result<void> RandomModel::ending(std::uint32_t s) {
  const std::uint32_t which = new_cell();
  MST_TRY_VOID(count(s, which, 3));
  MST_TRY(const std::uint32_t t, new_stream(StreamRole::activated));
  const std::uint32_t draw = random_.below(4);
  if (draw < 2) {
    MST_TRY_VOID(body(t));
    std::uint32_t other = kNone;
    if (random_.one_in(2)) {
      MST_TRY(other, new_stream(StreamRole::activated));
      MST_TRY_VOID(body(other));
    }
    if (draw == 0) {
      MST_TRY_VOID(choose(s, Comparison::equal, which, 1, t, other));
    } else {
      std::vector<std::int64_t> values = {2};
      std::vector<Stream*> targets = {bound_[t]};
      Op op{Op::What::choose_n, which, 0, 0, {t}};
      if (other != kNone) {
        values.push_back(1);
        targets.push_back(bound_[other]);
        op.list.push_back(other);
      }
      ops_[s].push_back(std::move(op));
      MST_TRY_VOID(tape(s).switch_n(&memory_[which], IntType::int64, values, targets));
    }
    return update(s);
  }
  MST_TRY(const std::uint32_t there, new_label());
  MST_TRY_VOID(update(t));  // never run
  MST_TRY_VOID(place_label(t, there));
  MST_TRY_VOID(body(t));
  if (draw == 2) {
    MST_TRY_VOID(jump(s, there));
    return update(s);
  }
  MST_TRY(const std::uint32_t here, new_label());
  MST_TRY_VOID(jump_by_index(s, which, {here, there}));
  MST_TRY_VOID(update(s));  // never run
  MST_TRY_VOID(place_label(s, here));
  return update(s);
}

// What may go wrong: streams started too often, waits for what does not come, loops without an end.
Result<void> RandomModel::mischief(std::uint32_t s) {
  const std::uint32_t n = static_cast<std::uint32_t>(place_.events.size());
  Event& e = *place_.events[random_.below(n)];
  Notify& notify = *place_.notifies[random_.below(static_cast<std::uint32_t>(place_.notifies.size()))];
  const bool own_event = e.state()->context == place_.context->state();
  switch (random_.below(8)) {
    case 0:
      MST_TRY_VOID(update(s));  // a lone task could not be told from the run of it that fails before it begins
      return tape(s).activate(*bound_[random_.below(static_cast<std::uint32_t>(bound_.size()))]);
    case 1: return bound_[s]->wait(e);
    case 2: return own_event ? bound_[s]->record(e) : Result<void>();
    case 3: return own_event && e.state()->kind == Event::Kind::latch ? bound_[s]->reset(e) : Result<void>();
    case 4: return notify.state().context == place_.context->state() ? bound_[s]->record(notify) : Result<void>();
    case 5:
      return notify.state().context == place_.context->state() ? bound_[s]->wait(notify, std::chrono::microseconds(50 + random_.below(2000))) : Result<void>();
    case 6: {
      if (!random_.one_in(4)) return {};
      MST_TRY(const std::uint32_t label, new_label());
      MST_TRY_VOID(place_label(s, label));
      MST_TRY_VOID(update(s));
      return jump(s, label);
    }
    default: {
      if (labels_.empty()) return {};
      return tape(s).jump_by_index(reinterpret_cast<const std::uint32_t*>(&memory_[0]), std::vector<Label*>{&labels_[random_.below(static_cast<std::uint32_t>(labels_.size()))]});
    }
  }
}

// ---- the serial run

void RandomModel::expect_execution() {
  struct Place {
    std::uint32_t at = 0, starts = 0;
  };
  std::vector<Place> places(ops_.size());
  std::vector<std::uint64_t> made(records_, 0);
  std::vector<bool> set(notifies_.size(), false);
  std::vector<std::vector<std::uint64_t>> used(ops_.size());
  for (std::size_t s = 0; s < ops_.size(); ++s) {
    places[s].starts = is_head_[s];
    used[s].assign(ops_[s].size(), 0);
  }
  const auto start = [&](std::uint32_t s) { ++places[s].starts; };
  // One task; false: it waits.
  const auto run = [&](std::uint32_t s) {
    Place& p = places[s];
    const std::uint32_t at = p.at++;
    const Op& op = ops_[s][at];
    const auto leave = [&] { p.at = static_cast<std::uint32_t>(ops_[s].size()); };
    const auto go_to = [&](std::uint32_t label) {
      const auto [stream, index] = label_at_[label];
      if (stream != s) {
        start(stream);
        leave();
      }
      places[stream].at = index;
    };
    switch (op.what) {
      case Op::What::update:
        apply(Update{&expected_[numbers_[s]], op.id, op.a == kNone ? nullptr : &expected_[op.a], op.b == kNone ? nullptr : &expected_[op.b]});
        return true;
      case Op::What::count: return apply(Count{&expected_[op.a], op.id}), true;
      case Op::What::record: return ++made[op.a], true;
      case Op::What::wait:
        if (op.a != kNone && made[op.a] <= used[s][at]) return p.at = at, false;
        return ++used[s][at], true;
      case Op::What::notify: return set[op.a] = true, true;
      case Op::What::notify_wait:
        if (!set[op.a]) return p.at = at, false;
        return set[op.a] = false, true;
      case Op::What::activate: return start(op.a), true;
      case Op::What::choose: {
        const bool holds = (expected_[op.a] == expected_[op.b]) == (op.id != 0);
        const std::uint32_t next = op.list[holds ? 0 : 1];
        if (next == kNone) return true;
        leave();
        return start(next), true;
      }
      case Op::What::choose_n:
        for (std::size_t i = 0; i < op.list.size(); ++i) {
          if (expected_[op.a] != 2 - i) continue;
          leave();
          start(op.list[i]);
          break;
        }
        return true;
      case Op::What::label: return true;
      case Op::What::jump: return go_to(op.list[0]), true;
      case Op::What::jump_by_index: return go_to(op.list[std::min<std::size_t>(expected_[op.a], op.list.size() - 1)]), true;
    }
    return true;
  };
  for (bool any = true; any;) {
    any = false;
    for (std::uint32_t s = 0; s < ops_.size(); ++s) {
      while (places[s].starts != 0) {
        if (places[s].at == ops_[s].size()) {
          places[s].at = 0;
          --places[s].starts;
          continue;
        }
        if (!run(s)) break;
        any = true;
      }
    }
  }
  for (const Place& p : places) MST_CHECK(p.starts == 0, "the serial run comes to its end");
}

bool RandomModel::as_expected() const { return std::equal(memory_.begin(), memory_.end(), expected_.begin()); }

}  // namespace millstream::rt
