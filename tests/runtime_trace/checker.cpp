// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime_trace/checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/runtime_trace/model_rules.h"

namespace millstream::rt {
namespace {

struct StreamTrace {
  std::vector<Life> tasks;  // by sequence
  std::vector<const TraceEvent*> dropping, in_force;
};

struct StopPeriod {
  const TraceEvent* failure = nullptr;
  Stamp in_force = kNever, recovering = kNever, recovered = kNever;
};

class Checker {
 public:
  Checker(std::span<const TraceEvent> trace, TraceAssumptions assume) : trace_(trace), assume_(assume), models_(trace, assume) {}

  void run() {
    index();
    for (const auto& [serial, stream] : streams_) order(stream);
    models_.check();
    executions();
    syncs();
    context_syncs();
    waits();
    latches();
    notifies();
    callbacks();
    stops();
    drops();
  }

 private:
  // The first event of the same host thread behind the stamp: what it did before has returned by then.
  Stamp returned(const TraceEvent& call) const {
    const auto& stamps = by_thread_.at(call.thread);
    const auto next = std::upper_bound(stamps.begin(), stamps.end(), call.stamp);
    return next == stamps.end() ? kNever : *next;
  }
  bool returned_before(const TraceEvent& call, const TraceEvent& later) const {
    return call.stamp < later.stamp && (call.thread == later.thread || returned(call) < later.stamp);
  }
  // The call may have looked at the world any time after its thread's event before it.
  bool returned_before_call(const TraceEvent& call, const TraceEvent& later) const {
    const auto& stamps = by_thread_.at(later.thread);
    const auto at = std::lower_bound(stamps.begin(), stamps.end(), later.stamp);
    if (call.thread == later.thread) return call.stamp < later.stamp;
    return at != stamps.begin() && returned(call) <= *std::prev(at);
  }
  const Life* before(const StreamTrace& s, std::uint64_t sequence) const { return sequence == 0 ? nullptr : &s.tasks[sequence - 1]; }
  // Not before this did the stream come to the task.
  Stamp arrival(const StreamTrace& s, const Life& t) const {
    const Life* const p = before(s, t.submitted->sequence);
    return std::max(t.submitted->stamp, p == nullptr ? 0 : p->over());
  }
  // By then the effect of a task that has ended is there for all: its stream has come to something else.
  Stamp known(const StreamTrace& s, const Life& t) const {
    if (assume_.one_thread) return t.ended->stamp;
    const std::size_t next = t.submitted->sequence + 1;
    return next < s.tasks.size() ? s.tasks[next].begin() : kNever;
  }
  template <class Visit>
  void each_task(Visit visit) const {
    for (const auto& [serial, stream] : streams_) {
      for (const Life& life : stream.tasks) visit(stream, life);
    }
  }

  Run run_of(const StreamTrace& s, const Life& t) const { return {t, arrival(s, t), t.ended != nullptr ? known(s, t) : kNever}; }
  // Of streams and of tapes.
  template <class Visit>
  void each_run(Visit visit) const {
    each_task([&](const StreamTrace& s, const Life& t) { visit(run_of(s, t)); });
    for (const Run& run : tape_runs_) visit(run);
  }

  void index() {
    Stamp last = 0;
    std::uint64_t last_time = 0;
    for (const TraceEvent& e : trace_) {
      if (e.stamp <= last) refuse("stamps", "stamp {} follows {}", e.stamp, last);
      if (e.time_ns < last_time) refuse("stamps", "time goes back from {} to {} at stamp {}", last_time, e.time_ns, e.stamp);
      last = e.stamp;
      last_time = e.time_ns;
      if (e.thread != 0) by_thread_[e.thread].push_back(e.stamp);
    }
    tape_runs_ = models_.runs();
    for (const TraceEvent& e : trace_) {
      if (e.execution != 0) continue;
      switch (e.kind) {
        case Kind::submitted: {
          auto& tasks = streams_[e.stream_serial].tasks;
          if (e.sequence != tasks.size()) refuse("O1", "{} is submitted where task {} is next", name(e), tasks.size());
          tasks.emplace_back().submitted = &e;
          break;
        }
        case Kind::began: mark(e, &Life::began); break;
        case Kind::ended: mark(e, &Life::ended); break;
        case Kind::dropped: mark(e, &Life::dropped); break;
        case Kind::failed: mark(e, &Life::failed); break;
        case Kind::parked: streams_[e.stream_serial].tasks[e.sequence].parked = &e; break;
        case Kind::dropping: streams_[e.stream_serial].dropping.push_back(&e); break;
        case Kind::drop_in_force: streams_[e.stream_serial].in_force.push_back(&e); break;
        default: break;
      }
    }
    each_task([&](const StreamTrace&, const Life& t) {
      const TraceEvent& e = *t.submitted;
      if (t.dropped != nullptr && (t.began != nullptr || t.ended != nullptr)) refuse("once", "{} was run and dropped", name(e));
      if (t.ended != nullptr && (t.began == nullptr || t.began->stamp > t.ended->stamp)) refuse("once", "{} ended and had not begun", name(e));
      if (assume_.complete && t.over() == kNever) refuse(t.failed != nullptr ? "O9" : "once", "{} is neither run nor dropped", name(e));
    });
  }

  void mark(const TraceEvent& e, const TraceEvent* Life::*field) {
    const auto it = streams_.find(e.stream_serial);
    if (it == streams_.end() || e.sequence >= it->second.tasks.size()) refuse("O3", "{} {} before it was submitted", name(e), to_string(e.kind));
    Life& life = it->second.tasks[e.sequence];
    if (life.*field != nullptr) refuse("once", "{} {} twice, at {} and {}", name(e), to_string(e.kind), (life.*field)->stamp, e.stamp);
    life.*field = &e;
  }

  void order(const StreamTrace& s) {
    for (std::size_t i = 1; i < s.tasks.size(); ++i) {
      const Life &a = s.tasks[i - 1], &b = s.tasks[i];
      if (b.begin() == kNever || a.over() < b.begin()) continue;
      refuse("O1", "{} begins at {}, before {} is over", name(*b.submitted), b.begin(), name(*a.submitted));
    }
  }

  void executions() {
    each_task([&](const StreamTrace& s, const Life& t) {
      if (t.submitted->task == TaskKind::execute) models_.check_execute(run_of(s, t));
    });
  }

  void syncs() {
    std::map<std::uint64_t, const TraceEvent*> begins;
    std::map<std::uint64_t, const TraceEvent*> queries;  // by thread
    std::map<std::uint64_t, const Life*> markers;
    std::map<std::uint64_t, std::vector<const Life*>> records;
    each_task([&](const StreamTrace&, const Life& t) {
      if (t.submitted->task == TaskKind::marker) markers[t.submitted->object] = &t;
      if (t.submitted->task == TaskKind::record) records[t.submitted->object].push_back(&t);
    });
    for (const TraceEvent& e : trace_) {
      if (e.kind == Kind::sync_begin) {
        begins[e.object] = &e;
      } else if (e.kind == Kind::sync_end) {
        const auto marker = markers.find(e.object);
        if (marker == markers.end() || !begins.count(e.object)) refuse("O4", "a sync of stream {} ends at {} and never began", e.stream, e.stamp);
        const TraceEvent& begin = *begins[e.object];
        for (const Life& t : streams_[e.stream_serial].tasks) {
          const bool covered = t.submitted->sequence <= marker->second->submitted->sequence;
          if (!covered && returned_before(*t.submitted, begin)) {
            refuse("O7", "{} was submitted before the sync at {}, which does not cover it", name(*t.submitted), begin.stamp);
          }
          if (covered && t.over() > e.stamp) refuse("O4", "a sync ends at {}, before {} is over", e.stamp, name(*t.submitted));
        }
      } else if (e.kind == Kind::query_begin) {
        queries[e.thread] = &e;
      } else if (e.kind == Kind::query_done) {
        const auto begin = queries.find(e.thread);
        if (begin == queries.end()) refuse("O4", "a query of stream {} says complete at {} and never began", e.stream, e.stamp);
        for (const Life& t : streams_[e.stream_serial].tasks) {
          if (returned_before(*t.submitted, *begin->second) && t.over() > e.stamp) {
            refuse("O4", "a query says complete at {}, before {} is over", e.stamp, name(*t.submitted));
          }
        }
      } else if (e.kind == Kind::event_done) {
        const auto r = records.find(e.object);
        const bool any = r != records.end() &&
                         std::any_of(r->second.begin(), r->second.end(), [&](const Life* t) { return t->over() < e.stamp; });
        if (!any) refuse("O4", "a host is told at {} that record {} is done, before it is", e.stamp, e.object);
      }
    }
  }

  void context_syncs() {
    std::map<std::uint64_t, const TraceEvent*> begins;
    for (const TraceEvent& e : trace_) {
      if (e.kind == Kind::context_sync_begin) begins[e.object] = &e;
      if (e.kind != Kind::context_sync_end) continue;
      if (!begins.count(e.object)) refuse("O8", "a sync of context {} ends at {} and never began", e.context, e.stamp);
      const TraceEvent& begin = *begins[e.object];
      each_task([&](const StreamTrace&, const Life& t) {
        if (t.submitted->context_serial != e.context_serial || t.over() < e.stamp || !returned_before(*t.submitted, begin)) return;
        refuse("O8", "a sync of context {} ends at {}, before {} is over", e.context, e.stamp, name(*t.submitted));
      });
    }
  }

  void waits() {
    std::map<std::uint64_t, const Life*> records;
    std::map<std::uint32_t, std::vector<const Life*>> by_event;
    each_task([&](const StreamTrace&, const Life& t) {
      if (t.submitted->task != TaskKind::record || t.submitted->latch) return;
      records[t.submitted->object] = &t;
      by_event[t.submitted->event].push_back(&t);
    });
    each_task([&](const StreamTrace&, const Life& t) {
      const TraceEvent& e = *t.submitted;
      if (e.task != TaskKind::wait || e.latch) return;
      const auto found = records.find(e.object);
      if (found == records.end()) refuse("O5", "{} waits for record {} of event {}, which nobody submitted", name(e), e.object, e.event);
      const Life& r = *found->second;
      if (r.submitted->stamp > e.stamp) refuse("O5", "{} waits for {}, a later record", name(e), name(*r.submitted));
      for (const Life* other : by_event[e.event]) {
        // Between the two, by everybody's clock: the wait should be for this one.
        if (other != &r && returned_before(*r.submitted, *other->submitted) && returned_before_call(*other->submitted, e)) {
          refuse("O5", "{} waits for {}, and {} came after that", name(e), name(*r.submitted), name(*other->submitted));
        }
      }
      if (t.began == nullptr) return;
      if (r.dropped != nullptr) refuse("O5", "{} passes {}, which was dropped", name(e), name(*r.submitted));
      if (r.over() > t.began->stamp) refuse("O5", "{} passes at {}, before {} is over", name(e), t.began->stamp, name(*r.submitted));
    });
    // A tape's looks at the event when its stream comes to it.
    for (const Run& run : tape_runs_) {
      const TraceEvent& e = *run.life.submitted;
      if (e.task != TaskKind::outside_wait || e.latch || run.life.began == nullptr || e.object == 0) continue;
      const auto found = records.find(e.object);
      if (found == records.end()) refuse("O5", "{} waits for record {} of event {}, which nobody submitted", name(e), e.object, e.event);
      const Life& r = *found->second;
      for (const Life* other : by_event[e.event]) {
        if (other != &r && returned_before(*r.submitted, *other->submitted) && returned(*other->submitted) < run.arrives) {
          refuse("O5", "{} waits for {}, and {} came after that", name(e), name(*r.submitted), name(*other->submitted));
        }
      }
      if (r.dropped != nullptr && run.life.failed == nullptr) refuse("O5", "{} passes {}, which was dropped", name(e), name(*r.submitted));
      if (r.over() > run.life.began->stamp) refuse("O5", "{} passes at {}, before {} is over", name(e), run.life.began->stamp, name(*r.submitted));
    }
  }

  void latches() {
    struct Change {
      Stamp from, to;
      const TraceEvent* task;
    };
    std::map<std::uint64_t, std::vector<Change>> sets, clears;
    each_run([&](const Run& run) {
      const Life& t = run.life;
      if (t.ended == nullptr || !t.submitted->latch) return;
      if (t.submitted->task == TaskKind::record) sets[t.submitted->object].push_back({t.ended->stamp, run.known, t.submitted});
      if (t.submitted->task == TaskKind::latch_reset) clears[t.submitted->object].push_back({t.began->stamp, run.known, t.submitted});
    });
    each_run([&](const Run& run) {
      const Life& t = run.life;
      const TraceEvent& e = *t.submitted;
      if ((e.task != TaskKind::wait && e.task != TaskKind::outside_wait) || !e.latch || t.began == nullptr) return;
      if (t.failed != nullptr) return;  // its record was dropped in another context
      const Stamp arrives = run.arrives;
      const TraceEvent* cleared = nullptr;
      bool any = false;
      for (const Change& set : sets[e.object]) {
        if (set.from > t.began->stamp) continue;
        any = true;
        cleared = nullptr;
        for (const Change& clear : clears[e.object]) {
          if (clear.from > set.to && clear.to < arrives) cleared = clear.task;
        }
        if (cleared == nullptr) return;
      }
      if (!any) refuse("latch", "{} passes event {} at {}, and nobody has set it", name(e), e.event, t.began->stamp);
      refuse("latch", "{} passes event {} at {}, though {} has cleared it", name(e), e.event, t.began->stamp, name(*cleared));
    });
  }

  void notifies() {
    struct Set {
      Stamp from, to;
    };
    struct Pass {
      Stamp arrives, began, parked;
      const TraceEvent* task;
    };
    std::map<std::uint64_t, std::vector<Set>> sets;
    std::map<std::uint64_t, std::vector<Pass>> passes;
    each_run([&](const Run& run) {
      const Life& t = run.life;
      if (t.submitted->task == TaskKind::notify_record && t.ended != nullptr) sets[t.submitted->object].push_back({t.ended->stamp, run.known});
      if (t.submitted->task == TaskKind::notify_wait && t.began != nullptr) {
        passes[t.submitted->object].push_back({run.arrives, t.began->stamp, t.parked == nullptr ? 0 : t.parked->stamp, t.submitted});
      }
    });
    for (auto& entry : passes) {
      std::vector<Pass>& list = entry.second;
      std::sort(list.begin(), list.end(), [](const Pass& a, const Pass& b) { return a.began < b.began; });
      const auto& records = sets[entry.first];
      for (std::size_t k = 0; k < list.size(); ++k) {
        const auto made = std::count_if(records.begin(), records.end(), [&](const Set& r) { return r.from < list[k].began; });
        if (static_cast<std::size_t>(made) <= k) refuse("notify", "{} is pass {} of a notify that was recorded {} times", name(*list[k].task), k + 1, made);
      }
      // It holds one record at most: those that came after a moment, and one from before.
      for (const Set& moment : records) {
        if (moment.to == kNever) continue;
        std::size_t later_passes = 0;
        for (const Pass& p : list) {
          if (p.arrives <= moment.to) continue;
          ++later_passes;
          const auto later = std::count_if(records.begin(), records.end(), [&](const Set& r) { return r.to > moment.to && r.from < p.began; });
          if (later_passes > static_cast<std::size_t>(later) + 1) {
            refuse("notify", "{} passes a notify that was set once and recorded {} times since {}", name(*p.task), later, moment.to);
          }
        }
      }
      // First come, first served: who passes before one that stood in front of it did so by a later record than that one,
      // and all between them had theirs. Whoever stands in the queue has not been recorded for yet.
      for (const Pass& front : list) {
        for (const Pass& behind : list) {
          if (front.parked == 0 || behind.parked <= front.parked || behind.began > front.began) continue;
          const auto served = std::count_if(list.begin(), list.end(), [&](const Pass& p) { return p.parked >= front.parked && p.parked <= behind.parked; });
          const auto made = std::count_if(records.begin(), records.end(), [&](const Set& record) { return record.to > front.parked && record.from < behind.began; });
          if (made < served) {
            refuse("notify", "{} passes at {}, before {}, which waited from {} on and longer", name(*behind.task), behind.began, name(*front.task), front.parked);
          }
        }
      }
    }
  }

  void callbacks() {
    if (!assume_.callback_pool) return;
    std::set<std::uint32_t> pool;
    for (const TraceEvent& e : trace_) {
      if (e.kind == Kind::began && e.task == TaskKind::host_func) pool.insert(e.worker);
    }
    for (const TraceEvent& e : trace_) {
      if (e.kind == Kind::began && e.task != TaskKind::host_func && pool.count(e.worker)) {
        refuse("O6", "{} runs on worker {}, which runs host functions", name(e), e.worker);
      }
    }
  }

  void stops() {
    std::map<std::uint64_t, std::vector<const TraceEvent*>> modes;
    for (const TraceEvent& e : trace_) {
      auto& periods = stops_[e.context_serial];
      const bool open = !periods.empty() && periods.back().recovered == kNever;
      if (e.kind == Kind::stop_mode) modes[e.context_serial].push_back(&e);
      if (e.kind == Kind::recover_begin && open) periods.back().recovering = e.stamp;
      if (e.kind == Kind::recover_end && open) periods.back().recovered = e.stamp;
      if (e.kind != Kind::failed) continue;
      const Run run = e.execution != 0 ? models_.run_of_failed(e) : run_of(streams_[e.stream_serial], streams_[e.stream_serial].tasks[e.sequence]);
      const Life& t = run.life;
      if (e.stops) {
        if (modes[e.context_serial].empty()) refuse("mode", "{} stops context {}, which does not stop", name(e), e.context);
        if (open && periods.back().recovering == kNever) refuse("mode", "{} stops context {} again", name(e), e.context);
        const Stamp over = t.over();
        periods.push_back({&e, over == kNever ? kNever : std::max(e.stamp, over), kNever, kNever});
      } else if (!open) {
        // A wait or an execution that answers with a failure fails before it begins.
        const Stamp decided_after = t.began != nullptr && t.began->stamp < e.stamp ? t.began->stamp : run.arrives;
        for (const TraceEvent* mode : modes[e.context_serial]) {
          if (returned(*mode) < decided_after) refuse("mode", "{} failed and context {} goes on, though it stops on failure", name(e), e.context);
        }
      }
    }
    // Let run before, and begun after: at most the first one of each stream.
    const auto admitted_before = [&](const Run& run, Stamp moment) { return !assume_.one_thread && run.arrives < moment; };
    each_run([&](const Run& run) {
      const TraceEvent& e = *run.life.submitted;
      for (const StopPeriod& period : stops_[e.context_serial]) {
        if (period.in_force == kNever) continue;
        const auto in = [&](Stamp at) { return at > period.in_force && at < period.recovering; };
        if (run.life.began != nullptr && in(run.life.began->stamp) && !admitted_before(run, period.in_force)) {
          refuse("stop", "{} begins at {}, after {} stopped its context", name(e), run.life.began->stamp, name(*period.failure));
        }
        if (assume_.one_thread && e.kind == Kind::submitted && e.task != TaskKind::marker && in(e.stamp)) {
          refuse("stop", "{} is submitted at {}, after {} stopped its context", name(e), e.stamp, name(*period.failure));
        }
      }
    });
    each_task([&](const StreamTrace& s, const Life& t) {
      const TraceEvent& e = *t.submitted;
      if (assume_.complete && s.dropping.size() != s.in_force.size()) refuse("stop", "stream {} drops {} times, and it is in force {} times", e.stream, s.dropping.size(), s.in_force.size());
      for (const TraceEvent* d : s.in_force) {
        if (e.sequence < d->sequence && t.began != nullptr && t.began->stamp > d->stamp && !admitted_before(run_of(s, t), d->stamp)) {
          refuse("stop", "{} begins at {}, and was to be dropped from {} on", name(e), t.began->stamp, d->stamp);
        }
      }
    });
  }

  void drops() {
    each_task([&](const StreamTrace& s, const Life& t) {
      if (t.dropped == nullptr || t.failed != nullptr) return;
      for (const TraceEvent* d : s.dropping) {
        if (d->stamp < t.dropped->stamp && t.submitted->sequence < d->sequence) return;
      }
      dropped_by_a_stop(run_of(s, t));
    });
    for (const Run& run : tape_runs_) {
      if (run.life.dropped != nullptr && run.life.failed == nullptr && !models_.given_up(run)) dropped_by_a_stop(run);
    }
  }

  void dropped_by_a_stop(const Run& run) {
    const Stamp at = run.life.dropped->stamp;
    for (const StopPeriod& period : stops_[run.life.submitted->context_serial]) {
      // Decided before the context went on, though stamped after.
      const Stamp decided_after = assume_.one_thread ? at : run.arrives;
      if (period.failure->stamp < at && decided_after < period.recovered) return;
    }
    refuse("drop", "{} is dropped at {} and nothing stopped it", name(*run.life.submitted), at);
  }

  const std::span<const TraceEvent> trace_;
  const TraceAssumptions assume_;
  const ModelRules models_;
  std::vector<Run> tape_runs_;
  std::map<std::uint64_t, StreamTrace> streams_;             // by serial
  std::map<std::uint32_t, std::vector<Stamp>> by_thread_;
  std::map<std::uint64_t, std::vector<StopPeriod>> stops_;   // by context serial
};

}  // namespace

std::optional<std::string> check_trace(std::span<const TraceEvent> trace, TraceAssumptions assume) {
  try {
    Checker(trace, assume).run();
    return std::nullopt;
  } catch (const Broken& broken) {
    return broken.text;
  }
}

}  // namespace millstream::rt
