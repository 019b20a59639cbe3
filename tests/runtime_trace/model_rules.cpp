// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime_trace/model_rules.h"

#include <algorithm>

namespace millstream::rt {
namespace {

bool jumps(TaskKind kind) { return kind == TaskKind::jump || kind == TaskKind::jump_by_index; }
bool leaves(TaskKind kind) { return kind == TaskKind::switch_to || kind == TaskKind::switch_n; }

}  // namespace

ModelRules::ModelRules(std::span<const TraceEvent> trace, TraceAssumptions assume) : assume_(assume) {
  for (const TraceEvent& e : trace) index(e);
  find_arrivals();
}

ModelRules::Execution& ModelRules::execution_of(const TraceEvent& e) {
  auto& list = models_[e.model_serial].executions;
  if (e.execution == 0 || e.execution > list.size()) refuse("O10", "execution {} of model {} is spoken of at {}, before it begins", e.execution, e.model, e.stamp);
  return list[e.execution - 1];
}
const ModelRules::Execution& ModelRules::execution_of(const TraceEvent& e) const { return models_.at(e.model_serial).executions[e.execution - 1]; }

void ModelRules::index(const TraceEvent& e) {
  switch (e.kind) {
    case Kind::bound: {
      Tape& tape = tapes_[{e.model_serial, e.stream_serial}];
      tape.stream = e.stream;
      tape.head = e.event == 1;
      return;
    }
    case Kind::recorded: {
      auto& tasks = tapes_[{e.model_serial, e.stream_serial}].tasks;
      if (e.sequence != tasks.size()) refuse("O1", "{} is recorded where task {} is next", name(e), tasks.size());
      return tasks.push_back(&e);
    }
    case Kind::execution_asked:
      if (!asked_.emplace(e.object, &e).second) refuse("once", "execution {} of model {} is asked for twice", e.object, e.model);
      return models_[e.model_serial].asked.push_back(&e);
    case Kind::execution_refused:
      refused_[e.object] = &e;
      return;
    case Kind::execution_begin: {
      Model& model = models_[e.model_serial];
      if (e.execution != model.executions.size() + 1) refuse("O10", "execution {} of model {} begins where {} is next", e.execution, e.model, model.executions.size() + 1);
      const auto asked = asked_.find(e.object);
      if (asked == asked_.end()) refuse("O10", "execution {} of model {} begins at {}, and nobody has asked for it", e.execution, e.model, e.stamp);
      model.executions.push_back({e.execution, asked->second, &e});
      return;
    }
    case Kind::execution_end:
      execution_of(e).end = &e;
      ended_[e.object] = &e;
      return;
    case Kind::execution_dropping:
      if (execution_of(e).dropping == nullptr) execution_of(e).dropping = &e;
      return;
    case Kind::execution_drop_in_force:
      if (execution_of(e).in_force == nullptr) execution_of(e).in_force = &e;
      return;
    case Kind::execution_done:
      if (!ended_.count(e.object) && !refused_.count(e.object)) refuse("O4", "a host is told at {} that execution {} is over, before it is", e.stamp, e.object);
      return;
    case Kind::dropped:
      if (e.task == TaskKind::execute && !asked_.count(e.object)) refused_[e.object] = &e;
      [[fallthrough]];
    case Kind::began:
    case Kind::ended:
    case Kind::failed:
    case Kind::activates:
    case Kind::parked:
      if (e.execution != 0) add_to_run(e);
      return;
    default:
      return;
  }
}

// A lane's events come one after the other: what follows a begin is of the run that began.
void ModelRules::add_to_run(const TraceEvent& e) {
  const Execution& execution = execution_of(e);
  if (execution.end != nullptr) refuse("O10", "{} {} at {}, after its execution has ended", name(e), to_string(e.kind), e.stamp);
  Tape& tape = tapes_[{e.model_serial, e.stream_serial}];
  auto& runs = tape.runs;
  const bool open = !runs.empty() && runs.back().life.over() == kNever;
  TapeRun* const last = runs.empty() ? nullptr : &runs.back();
  if (e.sequence >= tape.tasks.size()) refuse("O3", "{} {} and was never recorded", name(e), to_string(e.kind));
  if (last != nullptr && last->activates != nullptr && last->sent == kNever) {
    last->sent = e.stamp;
    last->refused = e.kind == Kind::failed && e.sequence == last->life.submitted->sequence;
  }
  if (open && last->life.began != nullptr && (e.kind == Kind::began || e.kind == Kind::dropped || e.sequence != last->life.submitted->sequence)) {
    refuse("O1", "{} {} at {}, before {} is over", name(e), to_string(e.kind), e.stamp, name(*last->life.submitted));
  }
  // A wait that parks or fails has not begun yet.
  const bool waiting = open && last->life.began == nullptr;
  switch (e.kind) {
    case Kind::began:
    case Kind::dropped:
      if (!waiting) runs.emplace_back().life.submitted = &e;
      (e.kind == Kind::began ? runs.back().life.began : runs.back().life.dropped) = &e;
      runs.back().life.submitted = &e;
      return;
    case Kind::ended:
      if (!open) refuse("once", "{} ended and had not begun", name(e));
      last->life.ended = &e;
      return;
    case Kind::activates:
      if (last == nullptr || last->life.began == nullptr || e.sequence != last->life.submitted->sequence) refuse("activation", "{} activates and had not begun", name(e));
      last->activates = &e;
      return;
    case Kind::parked:
      if (!waiting) runs.emplace_back().life.submitted = &e;
      runs.back().life.parked = &e;
      return;
    default: {  // failed: while it ran, right at its virtual end, or before it was let run, as waits only do
      const bool waits = e.task == TaskKind::outside_wait || e.task == TaskKind::site_wait || e.task == TaskKind::notify_wait;
      const bool ran = !waits && last != nullptr && last->life.began != nullptr && last->life.submitted->sequence == e.sequence &&
                       last->life.submitted->execution == e.execution && (open || last->life.failed == nullptr);
      if (!ran && !waiting) runs.emplace_back().life.submitted = &e;
      runs.back().life.failed = &e;
      failed_[&e] = {{e.model_serial, e.stream_serial}, runs.size() - 1};
      return;
    }
  }
}

void ModelRules::find_arrivals() {
  for (auto& [place, tape] : tapes_) {
    for (std::size_t first = 0; first < tape.runs.size();) {
      const std::uint64_t number = tape.runs[first].life.submitted->execution;
      std::size_t last = first;
      while (last < tape.runs.size() && tape.runs[last].life.submitted->execution == number) ++last;
      follow(place, tape, execution_of(*tape.runs[first].life.submitted), first, last);
      first = last;
    }
  }
}

std::vector<ModelRules::Activation> ModelRules::activations(const Place& place, const Execution& execution) const {
  std::vector<Activation> out;
  if (tapes_.at(place).head) out.push_back({execution.begin->stamp, execution.begin->stamp, 0, nullptr});
  for (const auto& [other, tape] : tapes_) {
    if (other.first != place.first) continue;
    for (const TapeRun& run : tape.runs) {
      if (run.activates == nullptr || run.activates->execution != execution.number || run.activates->object != place.second) continue;
      if (jumps(run.life.submitted->task) && other == place) continue;  // goes on there
      out.push_back({run.activates->stamp, run.sent, run.activates->event, &run, run.refused});
    }
  }
  std::sort(out.begin(), out.end(), [](const Activation& a, const Activation& b) { return a.from < b.from; });
  return out;
}

// The runs of one execution on one tape: each pass has its start, and goes from task to task.
void ModelRules::follow(const Place& place, Tape& tape, const Execution& execution, std::size_t first, std::size_t last) {
  std::vector<Activation> starts = activations(place, execution);
  std::vector<Pass> passes;
  const std::uint64_t size = tape.tasks.size();
  std::uint64_t next = size;
  for (std::size_t i = first; i < last; ++i) {
    TapeRun& run = tape.runs[i];
    const TraceEvent& e = *run.life.submitted;
    if (run.life.begin() == kNever && run.life.failed == nullptr && run.life.parked == nullptr) continue;
    Stamp before = i == first ? execution.begin->stamp : tape.runs[i - 1].life.over();
    if (next == size) {
      const auto start = std::find_if(starts.begin(), starts.end(), [&](const Activation& a) {
        return !a.used && !a.refused && a.from < run.life.begin() && a.place == e.sequence;
      });
      if (start == starts.end()) refuse("activation", "{} begins at {}, and nothing started its stream there", name(e), run.life.begin());
      start->used = true;
      before = std::max(before, start->from);
      passes.push_back({run.life.begin(), kNever});
    } else if (e.sequence != next) {
      refuse("O1", "{} begins at {}, where task {} is next", name(e), run.life.begin(), next);
    }
    run.arrives = before;
    if (assume_.one_thread) {
      run.known = run.life.over();
    } else {
      run.known = i + 1 < last ? tape.runs[i + 1].life.begin() : execution.end != nullptr ? execution.end->stamp : kNever;
    }
    next = run.life.dropped != nullptr ? size : e.sequence + 1;
    if (run.activates != nullptr && jumps(e.task) && !run.refused) {
      const bool own = run.activates->object == place.second;
      next = own ? run.activates->event : size;
      if (own && (next >= size || tape.tasks[next]->task != TaskKind::label)) refuse("label", "{} goes to task {}, which is no label", name(e), next);
    } else if (jumps(e.task) && run.life.ended != nullptr && run.activates == nullptr) {
      refuse("label", "{} ends and goes nowhere", name(e));
    } else if (leaves(e.task) && run.activates != nullptr) {
      next = size;
    }
    if (next == size) passes.back().over = run.life.over();
  }
  if (next != size && execution.end != nullptr) refuse("once", "task {} of stream {} in execution {} of a model is neither run nor dropped", next, tape.stream, execution.number);
  if (size == 0) return;
  for (const Activation& a : starts) {
    if (!a.used && !a.refused && execution.end != nullptr) {
      refuse("activation", "stream {} was started at {} in execution {} of a model and did not run", tape.stream, a.from, execution.number);
    }
  }
  check_starts(tape, starts, passes);
}

// One start is kept while the stream runs, a second is refused; a jump needs a stream that does not run. What a start
// sees lies between what is certain on each side.
void ModelRules::check_starts(const Tape& tape, const std::vector<Activation>& starts, const std::vector<Pass>& passes) const {
  for (const Activation& a : starts) {
    if (a.by == nullptr) continue;
    const TraceEvent& e = *a.by->life.submitted;
    const std::size_t most = jumps(e.task) ? 1 : 2;
    std::size_t surely = 0, perhaps = 0, surely_over = 0, perhaps_over = 0;
    for (const Activation& b : starts) {
      if (&b == &a || b.refused) continue;
      surely += b.sure < a.from;
      perhaps += b.from < a.sure;
    }
    for (std::size_t i = 0; i < passes.size(); ++i) {
      perhaps_over += passes[i].over < a.sure;
      surely_over += i + 1 < passes.size() && passes[i + 1].begin < a.from;
    }
    if (!a.refused && surely >= most + perhaps_over) {
      refuse("activation", "{} starts stream {} at {}, though it runs and is to start again", name(e), tape.stream, a.from);
    }
    if (a.refused && perhaps < most + surely_over) {
      refuse("activation", "{} is refused to start stream {} at {}, and might", name(e), tape.stream, a.from);
    }
  }
}

std::vector<Run> ModelRules::runs() const {
  std::vector<Run> out;
  for (const auto& [place, tape] : tapes_) out.insert(out.end(), tape.runs.begin(), tape.runs.end());
  return out;
}

const Run& ModelRules::run_of_failed(const TraceEvent& failed) const {
  const auto& [place, at] = failed_.at(&failed);
  return tapes_.at(place).runs[at];
}

void ModelRules::check() const {
  check_order();
  check_drops();
  check_sites();
}

// O10, and its like for models that share a stream: in the order in which they were asked for, one after the other.
void ModelRules::check_order() const {
  std::map<std::uint64_t, std::vector<const Execution*>> by_stream;
  for (const auto& [place, tape] : tapes_) {
    const auto model = models_.find(place.first);
    if (model == models_.end()) continue;
    for (const Execution& e : model->second.executions) by_stream[place.second].push_back(&e);
  }
  for (auto& [stream, list] : by_stream) {
    std::sort(list.begin(), list.end(), [](const Execution* a, const Execution* b) { return a->begin->stamp < b->begin->stamp; });
    for (std::size_t i = 1; i < list.size(); ++i) {
      const Execution &a = *list[i - 1], &b = *list[i];
      if (a.end == nullptr || a.end->stamp > b.begin->stamp) {
        refuse("O10", "execution {} of model {} begins at {}, before execution {} of model {} has ended", b.number, b.begin->model, b.begin->stamp, a.number,
               a.begin->model);
      }
      if (a.asked->stamp > b.asked->stamp) {
        refuse("O10", "execution {} of model {} begins at {}, though execution {} of model {} was asked for before it", a.number, a.begin->model,
               a.begin->stamp, b.number, b.begin->model);
      }
    }
  }
  if (!assume_.complete) return;
  for (const auto& [serial, model] : models_) {
    for (const Execution& e : model.executions) {
      if (e.end == nullptr) refuse("once", "execution {} of model {} has no end", e.number, e.begin->model);
      for (const auto& [place, tape] : tapes_) {
        const bool none = std::none_of(tape.runs.begin(), tape.runs.end(), [&](const TapeRun& r) { return r.life.submitted->execution == e.number; });
        if (place.first == serial && tape.head && none && !tape.tasks.empty()) {
          refuse("activation", "stream {} is a head and does not run in execution {} of model {}", tape.stream, e.number, e.begin->model);
        }
      }
    }
    if (model.executions.size() != model.asked.size()) {
      refuse("once", "model {} was asked for {} executions, and {} began", model.asked.front()->model, model.asked.size(), model.executions.size());
    }
  }
}

void ModelRules::check_drops() const {
  for (const auto& [place, tape] : tapes_) {
    for (const TapeRun& run : tape.runs) {
      const Execution& execution = execution_of(*run.life.submitted);
      if (run.life.began == nullptr || execution.in_force == nullptr) continue;
      const Stamp moment = execution.in_force->stamp;
      const bool admitted_before = !assume_.one_thread && run.arrives < moment;
      if (run.life.began->stamp > moment && !admitted_before) {
        refuse("stop", "{} begins at {}, and was to be dropped from {} on", name(*run.life.began), run.life.began->stamp, moment);
      }
    }
  }
}

bool ModelRules::given_up(const Run& run) const {
  const Execution& execution = execution_of(*run.life.submitted);
  return execution.dropping != nullptr && execution.dropping->stamp < run.life.dropped->stamp;
}

// Waits of a tape are for the last record of their event that was recorded before, else the first after, else for what
// the event is outside; the n-th time that one passes, the record has been made n times in the same execution.
void ModelRules::check_sites() const {
  std::map<std::uint64_t, std::vector<const TraceEvent*>> recorded;  // by model, as recorded
  for (const auto& [place, tape] : tapes_) recorded[place.first].insert(recorded[place.first].end(), tape.tasks.begin(), tape.tasks.end());
  for (auto& [model, list] : recorded) std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->stamp < b->stamp; });
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const TapeRun*>> made;  // by record and execution
  for (const auto& [place, tape] : tapes_) {
    for (const TapeRun& run : tape.runs) {
      if (run.life.submitted->task == TaskKind::site_record && run.life.ended != nullptr) made[{run.life.submitted->object, run.life.submitted->execution}].push_back(&run);
    }
  }
  for (const auto& [place, tape] : tapes_) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> passed;  // by task and execution
    for (const TapeRun& run : tape.runs) {
      const TraceEvent& e = *run.life.submitted;
      if (run.life.began == nullptr || (e.task != TaskKind::site_wait && e.task != TaskKind::outside_wait)) continue;
      const TraceEvent* record = nullptr;
      for (const TraceEvent* r : recorded[place.first]) {
        if (r->task != TaskKind::site_record || r->event != e.event) continue;
        const bool later = r->stamp > tape.tasks[e.sequence]->stamp;
        if (!later || record == nullptr) record = r;
        if (later) break;
      }
      if (e.task == TaskKind::outside_wait) {
        if (record != nullptr) refuse("O5", "{} waits outside its model for event {}, which {} records", name(e), e.event, name(*record));
        continue;
      }
      if (record == nullptr || record->object != e.object) refuse("O5", "{} waits for record {} of event {}, which is not the one recorded before it", name(e), e.object, e.event);
      const std::size_t pass = ++passed[{e.sequence, e.execution}];
      const auto& records = made[{e.object, e.execution}];
      const auto before = std::count_if(records.begin(), records.end(), [&](const TapeRun* r) { return r->life.ended->stamp < run.life.began->stamp; });
      if (static_cast<std::size_t>(before) < pass) {
        refuse("O5", "{} passes for the {}. time at {}, and its record was made {} times", name(e), pass, run.life.began->stamp, before);
      }
    }
  }
}

void ModelRules::check_execute(const Run& task) const {
  const TraceEvent& e = *task.life.submitted;
  const auto asked = asked_.find(e.object);
  if (asked != asked_.end()) {
    if (asked->second->model_serial != e.model_serial) refuse("O10", "{} executes model {}, and model {} was asked", name(e), e.model, asked->second->model);
    if (asked->second->stamp < task.arrives) refuse("O1", "{} asks for its execution at {}, before its stream comes to it", name(e), asked->second->stamp);
  }
  if (task.life.began == nullptr) return;
  const auto end = ended_.find(e.object), refused = refused_.find(e.object);
  const bool over = (end != ended_.end() && end->second->stamp < task.life.began->stamp) || (refused != refused_.end() && refused->second->stamp < task.life.began->stamp);
  if (!over) refuse("O4", "{} passes at {}, before its execution is over", name(e), task.life.began->stamp);
}

}  // namespace millstream::rt
