// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime_trace/checker.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace millstream::rt {
namespace {

using Kind = TraceEvent::Kind;
using Stamp = std::uint64_t;
constexpr Stamp kNever = std::numeric_limits<Stamp>::max();

struct Broken {
  std::string text;
};

struct Life {
  const TraceEvent* submitted = nullptr;
  const TraceEvent* began = nullptr;
  const TraceEvent* ended = nullptr;
  const TraceEvent* dropped = nullptr;
  const TraceEvent* failed = nullptr;

  Stamp begin() const { return began != nullptr ? began->stamp : dropped != nullptr ? dropped->stamp : kNever; }
  Stamp over() const { return ended != nullptr ? ended->stamp : dropped != nullptr ? dropped->stamp : kNever; }
};

std::string name(const TraceEvent& e) { return fmt::format("task {} ({}) of stream {}", e.sequence, e.name.empty() ? to_string(e.task) : e.name, e.stream); }

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
  Checker(std::span<const TraceEvent> trace, TraceAssumptions assume) : trace_(trace), assume_(assume) {}

  void run() {
    index();
    for (const auto& [serial, stream] : streams_) order(stream);
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
  template <class... Args>
  [[noreturn]] static void refuse(std::string_view rule, fmt::format_string<Args...> text, Args&&... args) {
    throw Broken{std::string(rule) + ": " + fmt::format(text, std::forward<Args>(args)...)};
  }

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
    for (const TraceEvent& e : trace_) {
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
  }

  void latches() {
    struct Change {
      Stamp from, to;
      const TraceEvent* task;
    };
    std::map<std::uint64_t, std::vector<Change>> sets, clears;
    each_task([&](const StreamTrace& s, const Life& t) {
      if (t.ended == nullptr || !t.submitted->latch) return;
      if (t.submitted->task == TaskKind::record) sets[t.submitted->object].push_back({t.ended->stamp, known(s, t), t.submitted});
      if (t.submitted->task == TaskKind::latch_reset) clears[t.submitted->object].push_back({t.began->stamp, known(s, t), t.submitted});
    });
    each_task([&](const StreamTrace& s, const Life& t) {
      const TraceEvent& e = *t.submitted;
      if (e.task != TaskKind::wait || !e.latch || t.began == nullptr) return;
      const Stamp arrives = arrival(s, t);
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
      Stamp arrives, began;
      const TraceEvent* task;
    };
    std::map<std::uint64_t, std::vector<Set>> sets;
    std::map<std::uint64_t, std::vector<Pass>> passes;
    each_task([&](const StreamTrace& s, const Life& t) {
      if (t.submitted->task == TaskKind::notify_record && t.ended != nullptr) sets[t.submitted->object].push_back({t.ended->stamp, known(s, t)});
      if (t.submitted->task == TaskKind::notify_wait && t.began != nullptr) {
        passes[t.submitted->object].push_back({arrival(s, t), t.began->stamp, t.submitted});
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
      const Life& t = streams_[e.stream_serial].tasks[e.sequence];
      if (e.stops) {
        if (modes[e.context_serial].empty()) refuse("mode", "{} stops context {}, which does not stop", name(e), e.context);
        if (open && periods.back().recovering == kNever) refuse("mode", "{} stops context {} again", name(e), e.context);
        const Stamp over = t.over();
        periods.push_back({&e, over == kNever ? kNever : std::max(e.stamp, over), kNever, kNever});
      } else if (!open) {
        const Stamp decided_after = t.began != nullptr ? t.began->stamp : arrival(streams_[e.stream_serial], t);
        for (const TraceEvent* mode : modes[e.context_serial]) {
          if (returned(*mode) < decided_after) refuse("mode", "{} failed and context {} goes on, though it stops on failure", name(e), e.context);
        }
      }
    }
    each_task([&](const StreamTrace& s, const Life& t) {
      const TraceEvent& e = *t.submitted;
      const Life* const p = before(s, e.sequence);
      // Let run before, and begun after: at most the first one of each stream.
      const auto admitted_before = [&](Stamp moment) {
        return !assume_.one_thread && e.stamp < moment && (p == nullptr || p->over() < moment);
      };
      for (const StopPeriod& period : stops_[e.context_serial]) {
        if (period.in_force == kNever) continue;
        const auto in = [&](Stamp at) { return at > period.in_force && at < period.recovering; };
        if (t.began != nullptr && in(t.began->stamp) && !admitted_before(period.in_force)) {
          refuse("stop", "{} begins at {}, after {} stopped its context", name(e), t.began->stamp, name(*period.failure));
        }
        if (assume_.one_thread && e.task != TaskKind::marker && in(e.stamp)) {
          refuse("stop", "{} is submitted at {}, after {} stopped its context", name(e), e.stamp, name(*period.failure));
        }
      }
      if (assume_.complete && s.dropping.size() != s.in_force.size()) refuse("stop", "stream {} drops {} times, and it is in force {} times", e.stream, s.dropping.size(), s.in_force.size());
      for (const TraceEvent* d : s.in_force) {
        if (e.sequence < d->sequence && t.began != nullptr && t.began->stamp > d->stamp && !admitted_before(d->stamp)) {
          refuse("stop", "{} begins at {}, and was to be dropped from {} on", name(e), t.began->stamp, d->stamp);
        }
      }
    });
  }

  void drops() {
    each_task([&](const StreamTrace& s, const Life& t) {
      if (t.dropped == nullptr || t.failed != nullptr) return;
      const TraceEvent& e = *t.submitted;
      for (const TraceEvent* d : s.dropping) {
        if (d->stamp < t.dropped->stamp && e.sequence < d->sequence) return;
      }
      for (const StopPeriod& period : stops_[e.context_serial]) {
        // Decided before the context went on, though stamped after.
        const Stamp decided_after = assume_.one_thread ? t.dropped->stamp : arrival(s, t);
        if (period.failure->stamp < t.dropped->stamp && decided_after < period.recovered) return;
      }
      refuse("drop", "{} is dropped at {} and nothing stopped it", name(e), t.dropped->stamp);
    });
  }

  const std::span<const TraceEvent> trace_;
  const TraceAssumptions assume_;
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
