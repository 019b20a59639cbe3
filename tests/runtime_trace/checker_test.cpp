// SPDX-License-Identifier: Apache-2.0
// The checker refuses a trace that breaks a rule, one trace a rule, and names the rule and the tasks.
#include "tests/runtime_trace/checker.h"

#include <gtest/gtest.h>

namespace millstream::rt {
namespace {

using Kind = TraceEvent::Kind;

class Trace {
 public:
  std::uint32_t thread = 1;
  std::uint32_t context = 0;
  std::uint32_t model = TraceEvent::kNoModel;  // and its execution: of what is added
  std::uint64_t execution = 0;

  TraceEvent& add(Kind kind, std::uint32_t stream, std::uint64_t sequence, TaskKind task = TaskKind::kernel, std::uint64_t object = 0) {
    TraceEvent e;
    e.stamp = events_.size() + 1;
    e.time_ns = e.stamp;
    e.kind = kind;
    e.task = task;
    e.stream = stream;
    e.stream_serial = 100 + stream;
    e.context = context;
    e.context_serial = 10 + context;
    e.sequence = sequence;
    e.object = object;
    e.event = static_cast<std::uint32_t>(object);
    e.name = to_string(task);
    const bool call = kind == Kind::submitted || (kind >= Kind::sync_begin && kind <= Kind::context_sync_end) || kind == Kind::stop_mode ||
                      kind == Kind::bound || kind == Kind::recorded;
    e.model_serial = model == TraceEvent::kNoModel ? 0 : 50 + model;
    e.model = model;
    e.execution = execution;
    e.thread = call ? thread : 0;
    events_.push_back(e);
    return events_.back();
  }
  Trace& submit(std::uint32_t s, std::uint64_t n, TaskKind task = TaskKind::kernel, std::uint64_t object = 0) { return then(add(Kind::submitted, s, n, task, object)); }
  Trace& begin(std::uint32_t s, std::uint64_t n, TaskKind task = TaskKind::kernel, std::uint64_t object = 0) { return then(add(Kind::began, s, n, task, object)); }
  Trace& end(std::uint32_t s, std::uint64_t n, TaskKind task = TaskKind::kernel, std::uint64_t object = 0) { return then(add(Kind::ended, s, n, task, object)); }
  Trace& run(std::uint32_t s, std::uint64_t n, TaskKind task = TaskKind::kernel, std::uint64_t object = 0) { return begin(s, n, task, object).end(s, n, task, object); }
  Trace& drop(std::uint32_t s, std::uint64_t n, TaskKind task = TaskKind::kernel, std::uint64_t object = 0) { return then(add(Kind::dropped, s, n, task, object)); }
  Trace& host(Kind kind, std::uint32_t s, std::uint64_t object = 0) { return then(add(kind, s, 0, TaskKind::marker, object)); }
  Trace& latch() {
    for (TraceEvent& e : events_) e.latch = e.task == TaskKind::record || e.task == TaskKind::wait || e.task == TaskKind::latch_reset;
    return *this;
  }
  // A model of stream 1, a head, with these tasks; and of others.
  Trace& in(std::uint32_t number) {
    model = number;
    execution = 0;
    return *this;
  }
  Trace& out() { return in(TraceEvent::kNoModel); }
  Trace& bind(std::uint32_t s, bool head, std::initializer_list<std::pair<TaskKind, std::uint64_t>> tasks) {
    add(Kind::bound, s, 0, TaskKind::marker).event = head;
    std::uint64_t n = 0;
    for (const auto& [task, object] : tasks) add(Kind::recorded, s, n++, task, object);
    return *this;
  }
  Trace& asked(std::uint64_t object) { return then(add(Kind::execution_asked, 0, 0, TaskKind::execute, object)); }
  // An execution of the model; what follows is of it, until `over`.
  Trace& execute(std::uint64_t number, std::uint64_t object) {
    execution = number;
    return then(add(Kind::execution_begin, 0, 0, TaskKind::execute, object));
  }
  Trace& over(std::uint64_t object) { return then(add(Kind::execution_end, 0, 0, TaskKind::execute, object)); }
  Trace& send(std::uint32_t s, std::uint64_t n, TaskKind task, std::uint32_t to, std::uint32_t place = 0) {
    add(Kind::activates, s, n, task, 100 + to).event = place;
    return *this;
  }
  Trace& on_worker(std::uint32_t worker) {
    events_.back().worker = worker;
    return *this;
  }

  std::vector<TraceEvent>& events() { return events_; }
  std::string refused(TraceAssumptions assume = {}) const { return check_trace(events_, assume).value_or("accepted"); }

 private:
  Trace& then(TraceEvent&) { return *this; }
  std::vector<TraceEvent> events_;
};

constexpr TraceAssumptions kOneThread{true, false, true};
constexpr TraceAssumptions kPart{false, false, false};
constexpr TaskKind kRecord = TaskKind::record, kWait = TaskKind::wait, kMarker = TaskKind::marker, kReset = TaskKind::latch_reset;

TEST(TraceChecker, AcceptsARecordAWaitAndASync) {
  Trace t;
  t.submit(1, 0).submit(1, 1, kRecord, 7).submit(2, 0, kWait, 7).submit(2, 1).host(Kind::sync_begin, 2, 8).submit(2, 2, kMarker, 8);
  t.run(1, 0).run(1, 1, kRecord, 7).run(2, 0, kWait, 7).run(2, 1).run(2, 2, kMarker, 8).host(Kind::sync_end, 2, 8);
  EXPECT_EQ(t.refused(), "accepted");
  EXPECT_EQ(t.refused(kOneThread), "accepted");
}

TEST(TraceChecker, StampsGrowAndTimeDoesNotGoBack) {
  Trace t;
  t.submit(1, 0).run(1, 0);
  t.events()[2].time_ns = 1;
  EXPECT_EQ(t.refused(), "stamps: time goes back from 2 to 1 at stamp 3");
  t.events()[2].stamp = 2;
  EXPECT_EQ(t.refused(), "stamps: stamp 2 follows 2");
}

TEST(TraceChecker, ATaskIsRunOrDroppedExactlyOnce) {
  EXPECT_EQ(Trace().submit(1, 0).run(1, 0).end(1, 0).refused(), "once: task 0 (kernel) of stream 1 ended twice, at 3 and 4");
  EXPECT_EQ(Trace().submit(1, 0).begin(1, 0).begin(1, 0).refused(), "once: task 0 (kernel) of stream 1 began twice, at 2 and 3");
  EXPECT_EQ(Trace().submit(1, 0).run(1, 0).drop(1, 0).refused(), "once: task 0 (kernel) of stream 1 was run and dropped");
  EXPECT_EQ(Trace().submit(1, 0).end(1, 0).refused(), "once: task 0 (kernel) of stream 1 ended and had not begun");
  EXPECT_EQ(Trace().submit(1, 0).begin(1, 0).refused(), "once: task 0 (kernel) of stream 1 is neither run nor dropped");
  EXPECT_EQ(Trace().submit(1, 0).begin(1, 0).refused(kPart), "accepted");
}

TEST(TraceChecker, TasksOfAStreamKeepTheirOrderAndDoNotOverlap) {
  EXPECT_EQ(Trace().submit(1, 0).submit(1, 1).run(1, 1).run(1, 0).refused(),
            "O1: task 1 (kernel) of stream 1 begins at 3, before task 0 (kernel) of stream 1 is over");
  EXPECT_EQ(Trace().submit(1, 0).submit(1, 1).begin(1, 0).begin(1, 1).end(1, 0).end(1, 1).refused(),
            "O1: task 1 (kernel) of stream 1 begins at 4, before task 0 (kernel) of stream 1 is over");
  EXPECT_EQ(Trace().submit(1, 1).refused(), "O1: task 1 (kernel) of stream 1 is submitted where task 0 is next");
}

TEST(TraceChecker, ATaskIsSubmittedBeforeItBegins) {
  EXPECT_EQ(Trace().begin(1, 0).submit(1, 0).refused(), "O3: task 0 (kernel) of stream 1 began before it was submitted");
}

TEST(TraceChecker, ASyncAndAQueryEndBehindWhatTheyCover) {
  EXPECT_EQ(Trace().submit(1, 0).host(Kind::sync_begin, 1, 5).submit(1, 1, kMarker, 5).run(1, 0).host(Kind::sync_end, 1, 5).run(1, 1, kMarker, 5).refused(),
            "O4: a sync ends at 6, before task 1 (synchronise) of stream 1 is over");
  EXPECT_EQ(Trace().submit(1, 0).host(Kind::query_begin, 1).begin(1, 0).host(Kind::query_done, 1).end(1, 0).refused(),
            "O4: a query says complete at 4, before task 0 (kernel) of stream 1 is over");
  EXPECT_EQ(Trace().submit(1, 0, kRecord, 5).begin(1, 0, kRecord, 5).host(Kind::event_done, 0, 5).end(1, 0, kRecord, 5).refused(),
            "O4: a host is told at 3 that record 5 is done, before it is");
}

TEST(TraceChecker, AnotherThreadsSubmitCountsFromItsReturn) {
  Trace t;
  t.submit(1, 0);
  t.thread = 2;
  t.host(Kind::query_begin, 1).host(Kind::query_done, 1);
  EXPECT_EQ(Trace(t).run(1, 0).refused(), "accepted");
  t = {};
  t.submit(1, 0).host(Kind::query_begin, 2);
  t.thread = 2;
  t.host(Kind::query_begin, 1).host(Kind::query_done, 1);
  EXPECT_EQ(Trace(t).run(1, 0).refused(), "O4: a query says complete at 4, before task 0 (kernel) of stream 1 is over");
}

TEST(TraceChecker, AWaitPassesBehindTheRecordThatWasLast) {
  EXPECT_EQ(Trace().submit(1, 0, kRecord, 5).submit(2, 0, kWait, 5).run(2, 0, kWait, 5).run(1, 0, kRecord, 5).refused(),
            "O5: task 0 (wait) of stream 2 passes at 3, before task 0 (record) of stream 1 is over");
  EXPECT_EQ(Trace().submit(2, 0, kWait, 5).run(2, 0, kWait, 5).refused(),
            "O5: task 0 (wait) of stream 2 waits for record 5 of event 5, which nobody submitted");
  EXPECT_EQ(Trace().submit(2, 0, kWait, 5).submit(1, 0, kRecord, 5).run(1, 0, kRecord, 5).run(2, 0, kWait, 5).refused(),
            "O5: task 0 (wait) of stream 2 waits for task 0 (record) of stream 1, a later record");
  Trace t;
  t.submit(1, 0, kRecord, 5).submit(1, 1, kRecord, 6).submit(2, 0, kWait, 5);
  for (TraceEvent& e : t.events()) e.event = 1;
  EXPECT_EQ(t.run(1, 0, kRecord, 5).run(1, 1, kRecord, 6).run(2, 0, kWait, 5).refused(),
            "O5: task 0 (wait) of stream 2 waits for task 0 (record) of stream 1, and task 1 (record) of stream 1 came after that");
  Trace d;
  d.submit(1, 0, kRecord, 5).submit(2, 0, kWait, 5).add(Kind::dropping, 1, 1);
  EXPECT_EQ(d.drop(1, 0, kRecord, 5).run(2, 0, kWait, 5).refused(), "O5: task 0 (wait) of stream 2 passes task 0 (record) of stream 1, which was dropped");
}

TEST(TraceChecker, AHostFunctionHasAWorkerOfItsOwn) {
  Trace t;
  t.submit(1, 0, TaskKind::host_func).submit(2, 0);
  t.begin(1, 0, TaskKind::host_func).on_worker(3).end(1, 0, TaskKind::host_func).begin(2, 0).on_worker(3).end(2, 0);
  EXPECT_EQ(t.refused({false, true, true}), "O6: task 0 (kernel) of stream 2 runs on worker 3, which runs host functions");
}

TEST(TraceChecker, ASyncCoversWhatWasSubmittedBefore) {
  Trace t;
  t.submit(1, 0, kMarker, 5).host(Kind::sync_begin, 1, 4).submit(1, 1).host(Kind::sync_begin, 1, 5);
  t.run(1, 0, kMarker, 5).run(1, 1).host(Kind::sync_end, 1, 5);
  EXPECT_EQ(t.refused(), "O7: task 1 (kernel) of stream 1 was submitted before the sync at 4, which does not cover it");
}

TEST(TraceChecker, AContextSyncEndsBehindEveryStreamOfTheContext) {
  Trace t;
  t.submit(1, 0).submit(2, 0);
  t.context = 1;
  t.submit(3, 0);
  t.context = 0;
  t.host(Kind::context_sync_begin, 0, 9).run(1, 0);
  EXPECT_EQ(Trace(t).host(Kind::context_sync_end, 0, 9).run(2, 0).run(3, 0).refused(),
            "O8: a sync of context 0 ends at 7, before task 0 (kernel) of stream 2 is over");
  EXPECT_EQ(Trace(t).run(2, 0).host(Kind::context_sync_end, 0, 9).run(3, 0).refused(), "accepted");
}

TEST(TraceChecker, AFailedTaskIsOver) {
  Trace t;
  t.submit(1, 0).begin(1, 0).add(Kind::failed, 1, 0);
  EXPECT_EQ(t.refused(), "O9: task 0 (kernel) of stream 1 is neither run nor dropped");
}

TEST(TraceChecker, ALatchLetsPassOnlyWhileItIsSet) {
  EXPECT_EQ(Trace().submit(1, 0, kWait, 5).run(1, 0, kWait, 5).latch().refused(),
            "latch: task 0 (wait) of stream 1 passes event 5 at 2, and nobody has set it");
  Trace t;
  t.submit(2, 0, kRecord, 5).submit(2, 1, kReset, 5).run(2, 0, kRecord, 5).run(2, 1, kReset, 5);
  t.submit(1, 0, kWait, 5).run(1, 0, kWait, 5).latch();
  EXPECT_EQ(t.refused(kOneThread), "latch: task 0 (wait) of stream 1 passes event 5 at 8, though task 1 (reset) of stream 2 has cleared it");
  t.submit(2, 2).run(2, 2);
  EXPECT_EQ(t.refused(), "accepted");  // the reset is known to be done only when stream 2 goes on
  Trace parked;
  parked.submit(1, 0, kWait, 5).submit(2, 0, kRecord, 5).submit(2, 1, kReset, 5).run(2, 0, kRecord, 5).run(2, 1, kReset, 5).run(1, 0, kWait, 5).latch();
  EXPECT_EQ(parked.refused(kOneThread), "accepted");
}

TEST(TraceChecker, ANotifyLetsOneWaitPassARecord) {
  const TaskKind set = TaskKind::notify_record, pass = TaskKind::notify_wait;
  EXPECT_EQ(Trace().submit(1, 0, set, 5).submit(2, 0, pass, 5).submit(3, 0, pass, 5).run(1, 0, set, 5).run(2, 0, pass, 5).run(3, 0, pass, 5).refused(),
            "notify: task 0 (notify wait) of stream 3 is pass 2 of a notify that was recorded 1 times");
  Trace t;
  t.submit(1, 0, set, 5).submit(1, 1, set, 5).run(1, 0, set, 5).run(1, 1, set, 5);
  t.submit(2, 0, pass, 5).submit(3, 0, pass, 5).run(2, 0, pass, 5).run(3, 0, pass, 5);
  EXPECT_EQ(t.refused(kOneThread), "notify: task 0 (notify wait) of stream 3 passes a notify that was set once and recorded 0 times since 6");
}

TEST(TraceChecker, ATaskIsDroppedOnlyForACause) {
  EXPECT_EQ(Trace().submit(1, 0).drop(1, 0).refused(), "drop: task 0 (kernel) of stream 1 is dropped at 2 and nothing stopped it");
  Trace t;
  t.submit(1, 0).submit(1, 1).add(Kind::dropping, 1, 1);
  EXPECT_EQ(Trace(t).drop(1, 0).drop(1, 1).refused(), "stop: stream 1 drops 1 times, and it is in force 0 times");
  t.add(Kind::drop_in_force, 1, 1);
  EXPECT_EQ(t.drop(1, 0).drop(1, 1).refused(), "drop: task 1 (kernel) of stream 1 is dropped at 6 and nothing stopped it");
}

TEST(TraceChecker, AfterADropIsInForceNothingItCoversBegins) {
  Trace t;
  t.submit(1, 0).submit(1, 1).add(Kind::dropping, 1, 2);
  t.add(Kind::drop_in_force, 1, 2);
  EXPECT_EQ(Trace(t).run(1, 0).drop(1, 1).refused(), "accepted");  // it had been let run
  EXPECT_EQ(Trace(t).run(1, 0).drop(1, 1).refused(kOneThread), "stop: task 0 (kernel) of stream 1 begins at 5, and was to be dropped from 4 on");
  EXPECT_EQ(Trace(t).run(1, 0).run(1, 1).refused(), "stop: task 1 (kernel) of stream 1 begins at 7, and was to be dropped from 4 on");
}

TEST(TraceChecker, AStoppedContextRunsNothingUntilItRecovers) {
  Trace t;
  t.host(Kind::stop_mode, 0).submit(1, 0).submit(2, 0).submit(2, 1).begin(1, 0).add(Kind::failed, 1, 0).stops = true;
  t.end(1, 0);
  EXPECT_EQ(Trace(t).run(2, 0).drop(2, 1).refused(), "accepted");
  EXPECT_EQ(Trace(t).run(2, 0).run(2, 1).refused(), "stop: task 1 (kernel) of stream 2 begins at 10, after task 0 (kernel) of stream 1 stopped its context");
  EXPECT_EQ(Trace(t).run(2, 0).drop(2, 1).refused(kOneThread), "stop: task 0 (kernel) of stream 2 begins at 8, after task 0 (kernel) of stream 1 stopped its context");
  EXPECT_EQ(Trace(t).drop(2, 0).drop(2, 1).submit(2, 2).drop(2, 2).refused(kOneThread),
            "stop: task 2 (kernel) of stream 2 is submitted at 10, after task 0 (kernel) of stream 1 stopped its context");
  t.drop(2, 0).drop(2, 1).host(Kind::recover_begin, 0).host(Kind::recover_end, 0);
  EXPECT_EQ(Trace(t).submit(2, 2).run(2, 2).refused(kOneThread), "accepted");
  EXPECT_EQ(Trace(t).submit(2, 2).drop(2, 2).refused(), "drop: task 2 (kernel) of stream 2 is dropped at 13 and nothing stopped it");
}

TEST(TraceChecker, AContextStopsWhereItsModeSaysSo) {
  Trace t;
  t.submit(1, 0).begin(1, 0).add(Kind::failed, 1, 0).stops = true;
  EXPECT_EQ(t.end(1, 0).refused(), "mode: task 0 (kernel) of stream 1 stops context 0, which does not stop");
  Trace u;
  u.host(Kind::stop_mode, 0).submit(1, 0).begin(1, 0).add(Kind::failed, 1, 0);
  EXPECT_EQ(u.end(1, 0).refused(), "mode: task 0 (kernel) of stream 1 failed and context 0 goes on, though it stops on failure");
  Trace v;  // it fails while the call that sets the mode runs, and begins when that has returned
  v.submit(1, 0).host(Kind::stop_mode, 0).add(Kind::failed, 1, 0);
  EXPECT_EQ(v.submit(1, 1).run(1, 0).run(1, 1).refused(), "accepted");
}

constexpr TaskKind kKernel = TaskKind::kernel, kSiteRecord = TaskKind::site_record, kSiteWait = TaskKind::site_wait, kActivate = TaskKind::activate;
constexpr TaskKind kJump = TaskKind::jump, kLabel = TaskKind::label, kSwitch = TaskKind::switch_to, kExecute = TaskKind::execute;

TEST(TraceChecker, AcceptsTwoExecutionsOfAModel) {
  Trace t;
  t.in(0).bind(1, true, {{kKernel, 0}, {kSiteRecord, 7}}).bind(2, true, {{kSiteWait, 7}, {kKernel, 0}});
  t.submit(5, 0, kExecute, 90).asked(90).execute(1, 90).run(1, 0).run(1, 1, kSiteRecord, 7).run(2, 0, kSiteWait, 7).run(2, 1).over(90);
  t.in(0).run(5, 0, kExecute, 90).asked(91).execute(2, 91).run(1, 0).run(1, 1, kSiteRecord, 7).run(2, 0, kSiteWait, 7).run(2, 1).over(91);
  EXPECT_EQ(t.refused(), "accepted");
  EXPECT_EQ(t.refused(kOneThread), "accepted");
}

TEST(TraceChecker, ExecutionsOfAModelComeOneAfterTheOtherInTheOrderAskedFor) {
  Trace t;
  t.in(0).bind(1, true, {{kKernel, 0}}).asked(90).asked(91);
  EXPECT_EQ(Trace(t).execute(1, 90).begin(1, 0).execute(2, 91).refused(),
            "O10: execution 2 of model 0 begins at 7, before execution 1 of model 0 has ended");
  EXPECT_EQ(Trace(t).execute(1, 91).run(1, 0).over(91).execute(2, 90).run(1, 0).over(90).refused(),
            "O10: execution 1 of model 0 begins at 5, though execution 2 of model 0 was asked for before it");
  EXPECT_EQ(Trace(t).execute(1, 90).over(90).run(1, 0).refused(), "O10: task 0 (kernel) of stream 1 in execution 1 of model 0 began at 7, after its execution has ended");
  EXPECT_EQ(Trace(t).execute(2, 90).refused(), "O10: execution 2 of model 0 begins where 1 is next");
  EXPECT_EQ(Trace(t).execute(1, 92).refused(), "O10: execution 1 of model 0 begins at 5, and nobody has asked for it");
  EXPECT_EQ(Trace(t).asked(90).refused(), "once: execution 90 of model 0 is asked for twice");
  EXPECT_EQ(Trace(t).execute(1, 90).run(1, 0).over(90).refused(), "once: model 0 was asked for 2 executions, and 1 began");
  EXPECT_EQ(Trace(t).execute(1, 90).run(1, 0).refused(), "once: execution 1 of model 0 has no end");
}

TEST(TraceChecker, ModelsThatShareAStreamExcludeEachOther) {
  Trace t;
  t.in(0).bind(1, true, {{kKernel, 0}}).in(1).bind(1, true, {{kKernel, 0}}).in(0).asked(90).in(1).asked(91);
  EXPECT_EQ(Trace(t).in(0).execute(1, 90).run(1, 0).in(1).execute(1, 91).refused(),
            "O10: execution 1 of model 1 begins at 10, before execution 1 of model 0 has ended");
  EXPECT_EQ(Trace(t).in(1).execute(1, 91).run(1, 0).over(91).in(0).execute(1, 90).run(1, 0).over(90).refused(),
            "O10: execution 1 of model 1 begins at 7, though execution 1 of model 0 was asked for before it");
}

TEST(TraceChecker, AnExecutesTaskPassesBehindItsExecution) {
  Trace t;
  t.in(0).bind(1, true, {{kKernel, 0}}).out().submit(5, 0).in(0).submit(5, 1, kExecute, 90).out();
  Trace early(t);
  early.run(5, 0).in(0).asked(90).execute(1, 90).run(1, 0).in(0).run(5, 1, kExecute, 90).execution = 1;
  EXPECT_EQ(early.over(90).refused(), "O4: task 1 (execution) of stream 5 passes at 11, before its execution is over");
  EXPECT_EQ(Trace(t).in(0).asked(90).out().run(5, 0).in(0).execute(1, 90).run(1, 0).over(90).in(0).run(5, 1, kExecute, 90).refused(),
            "O1: task 1 (execution) of stream 5 asks for its execution at 5, before its stream comes to it");
  EXPECT_EQ(Trace(t).run(5, 0).in(0).asked(90).execute(1, 90).host(Kind::execution_done, 5, 90).refused(),
            "O4: a host is told at 9 that execution 90 is over, before it is");
  EXPECT_EQ(Trace(t).in(1).bind(2, true, {{kKernel, 0}}).out().run(5, 0).in(1).asked(90).execute(1, 90).run(2, 0).over(90).in(0).run(5, 1, kExecute, 90).refused(),
            "O10: task 1 (execution) of stream 5 executes model 0, and model 1 was asked");
}

TEST(TraceChecker, ATapeGoesFromTaskToTaskAndToItsEnd) {
  Trace t;
  t.in(0).bind(1, true, {{kKernel, 0}, {kKernel, 0}}).asked(90).execute(1, 90);
  EXPECT_EQ(Trace(t).run(1, 0).over(90).refused(), "once: task 1 of stream 1 in execution 1 of a model is neither run nor dropped");
  EXPECT_EQ(Trace(t).run(1, 0).run(1, 0).over(90).refused(), "O1: task 0 (kernel) of stream 1 in execution 1 of model 0 begins at 8, where task 1 is next");
  EXPECT_EQ(Trace(t).begin(1, 0).begin(1, 1).refused(),
            "O1: task 1 (kernel) of stream 1 in execution 1 of model 0 began at 7, before task 0 (kernel) of stream 1 in execution 1 of model 0 is over");
  EXPECT_EQ(Trace(t).over(90).refused(), "activation: stream 1 is a head and does not run in execution 1 of model 0");
  EXPECT_EQ(Trace(t).run(1, 0).drop(1, 1).over(90).refused(), "drop: task 1 (kernel) of stream 1 in execution 1 of model 0 is dropped at 8 and nothing stopped it");
}

TEST(TraceChecker, AStreamOfAModelRunsOnceForEachActivation) {
  Trace t;
  t.in(0).bind(1, true, {{kActivate, 102}, {kActivate, 102}, {kActivate, 102}, {kKernel, 0}}).bind(2, false, {{kKernel, 0}}).asked(90).execute(1, 90);
  const auto activate = [](Trace& trace, std::uint64_t n) -> Trace& { return trace.run(1, n, kActivate, 102).send(1, n, kActivate, 2); };
  EXPECT_EQ(Trace(t).run(2, 0).refused(), "activation: task 0 (kernel) of stream 2 in execution 1 of model 0 begins at 10, and nothing started its stream there");
  Trace once(t);
  activate(once, 0);
  EXPECT_EQ(Trace(once).run(2, 0).run(2, 0).refused(),
            "activation: task 0 (kernel) of stream 2 in execution 1 of model 0 begins at 15, and nothing started its stream there");
  Trace thrice(once);
  activate(activate(thrice, 1), 2).run(1, 3);
  EXPECT_EQ(Trace(thrice).run(2, 0).run(2, 0).run(2, 0).over(90).refused(),
            "activation: task 2 (activate) of stream 1 in execution 1 of model 0 starts stream 2 at 18, though it runs and is to start again");
  Trace refused(once);
  activate(activate(refused, 1), 2).add(Kind::failed, 1, 2, kActivate, 102);
  refused.run(1, 3).run(2, 0);
  EXPECT_EQ(Trace(refused).over(90).refused(), "activation: stream 2 was started at 15 in execution 1 of a model and did not run");
  EXPECT_EQ(Trace(refused).run(2, 0).over(90).refused(), "accepted");
  Trace wrongly(once);
  wrongly.run(2, 0);
  activate(wrongly, 1);
  wrongly.add(Kind::failed, 1, 1, kActivate, 102);
  activate(wrongly, 2).run(1, 3).run(2, 0);
  EXPECT_EQ(wrongly.over(90).refused(), "activation: task 1 (activate) of stream 1 in execution 1 of model 0 is refused to start stream 2 at 17, and might");
}

TEST(TraceChecker, AJumpGoesToItsLabelAndASwitchEndsItsStream) {
  Trace t;
  t.in(0).bind(1, true, {{kLabel, 0}, {kJump, 0}, {kKernel, 0}}).asked(90).execute(1, 90).run(1, 0, kLabel);
  EXPECT_EQ(Trace(t).run(1, 1, kJump).run(1, 2).refused(), "label: task 1 (jump) of stream 1 in execution 1 of model 0 ends and goes nowhere");
  EXPECT_EQ(Trace(t).run(1, 1, kJump).send(1, 1, kJump, 1, 2).run(1, 2).refused(), "label: task 1 (jump) of stream 1 in execution 1 of model 0 goes to task 2, which is no label");
  EXPECT_EQ(Trace(t).run(1, 1, kJump).send(1, 1, kJump, 1, 0).run(1, 2).refused(),
            "O1: task 2 (kernel) of stream 1 in execution 1 of model 0 begins at 12, where task 0 is next");
  Trace s;
  s.in(0).bind(1, true, {{kSwitch, 0}, {kKernel, 0}}).bind(2, false, {{kKernel, 0}}).asked(90).execute(1, 90).run(1, 0, kSwitch).send(1, 0, kSwitch, 2);
  EXPECT_EQ(Trace(s).run(2, 0).over(90).refused(), "accepted");
  EXPECT_EQ(Trace(s).run(2, 0).run(1, 1).refused(), "activation: task 1 (kernel) of stream 1 in execution 1 of model 0 begins at 13, and nothing started its stream there");
}

TEST(TraceChecker, AModelsWaitPassesForARecordOfTheSameExecution) {
  Trace t;
  t.in(0).bind(1, true, {{kSiteRecord, 7}, {kSiteRecord, 7}}).bind(2, true, {{kSiteWait, 7}}).asked(90).execute(1, 90);
  EXPECT_EQ(Trace(t).run(2, 0, kSiteWait, 7).run(1, 0, kSiteRecord, 7).refused(kPart),
            "O5: task 0 (wait) of stream 2 in execution 1 of model 0 passes for the 1. time at 8, and its record was made 0 times");
  t.run(1, 0, kSiteRecord, 7).run(1, 1, kSiteRecord, 7).run(2, 0, kSiteWait, 7).over(90).in(0).asked(91).execute(2, 91);
  // The second record of the execution before is not of this one.
  EXPECT_EQ(Trace(t).run(2, 0, kSiteWait, 7).refused(kPart), "O5: task 0 (wait) of stream 2 in execution 2 of model 0 passes for the 1. time at 17, and its record was made 0 times");
  Trace other;
  other.in(0).bind(1, true, {{kSiteRecord, 7}, {kSiteRecord, 8}}).bind(2, true, {{kSiteWait, 7}});
  for (TraceEvent& e : other.events()) e.event = e.task == TaskKind::marker;
  other.asked(90).execute(1, 90).run(1, 0, kSiteRecord, 7).run(1, 1, kSiteRecord, 8).run(2, 0, kSiteWait, 7);
  for (TraceEvent& e : other.events()) e.event = e.kind == Kind::bound;
  EXPECT_EQ(other.refused(kPart), "O5: task 0 (wait) of stream 2 in execution 1 of model 0 waits for record 7 of event 0, which is not the one recorded before it");
}

TEST(TraceChecker, AModelsWaitForWhatIsOutsidePassesBehindTheRecord) {
  const TaskKind outside = TaskKind::outside_wait;
  Trace t;
  t.in(0).bind(1, true, {{outside, 0}}).out().submit(5, 0, kRecord, 60).in(0).asked(90).execute(1, 90);
  for (TraceEvent& e : t.events()) e.event = e.kind == Kind::bound ? 1 : e.task == outside || e.task == kRecord ? 60 : e.event;
  EXPECT_EQ(Trace(t).run(1, 0, outside, 60).refused(kPart),
            "O5: task 0 (wait) of stream 1 in execution 1 of model 0 passes at 6, before task 0 (record) of stream 5 is over");
  EXPECT_EQ(Trace(t).run(1, 0, outside, 61).refused(kPart),
            "O5: task 0 (wait) of stream 1 in execution 1 of model 0 waits for record 61 of event 61, which nobody submitted");
}

// Its tape has nothing else, so the execution before ended with the same task; the failure is not that one's.
TEST(TraceChecker, AModelsWaitForADroppedRecordPassesIfItFails) {
  const TaskKind outside = TaskKind::outside_wait;
  Trace t;
  t.in(0).bind(1, true, {{outside, 0}}).out().submit(5, 0, kRecord, 60).run(5, 0, kRecord, 60);
  t.in(0).asked(90).execute(1, 90).run(1, 0, outside, 60).over(90).out().submit(5, 1, kRecord, 61).host(Kind::dropping, 5);
  t.events().back().sequence = 2;
  t.drop(5, 1, kRecord, 61).in(0).asked(91).execute(2, 91);
  const auto accepts = [&](bool fails) {
    Trace all(t);
    if (fails) all.add(Kind::failed, 1, 0, outside, 61);
    all.run(1, 0, outside, 61).over(91);
    for (TraceEvent& e : all.events()) e.event = e.kind == Kind::bound ? 1 : 60;
    return all.refused(kPart);
  };
  EXPECT_EQ(accepts(false), "O5: task 0 (wait) of stream 1 in execution 2 of model 0 passes task 1 (record) of stream 5, which was dropped");
  EXPECT_EQ(accepts(true), "accepted");
}

TEST(TraceChecker, AnExecutionThatIsGivenUpBeginsNothing) {
  Trace t;
  t.in(0).bind(1, true, {{kKernel, 0}, {kKernel, 0}, {kKernel, 0}}).asked(90).execute(1, 90).run(1, 0);
  t.add(Kind::execution_dropping, 0, 0, kExecute, 90);
  EXPECT_EQ(Trace(t).drop(1, 1).over(90).refused(), "accepted");
  t.add(Kind::execution_drop_in_force, 0, 0, kExecute, 90);
  EXPECT_EQ(Trace(t).run(1, 1).drop(1, 2).over(90).refused(), "accepted");  // it had been let run
  EXPECT_EQ(Trace(t).run(1, 1).run(1, 2).over(90).refused(),
            "stop: task 2 (kernel) of stream 1 in execution 1 of model 0 begins at 13, and was to be dropped from 10 on");
}

TEST(TraceChecker, AStopOfTheContextStopsItsModels) {
  Trace t;
  t.host(Kind::stop_mode, 0).in(0).bind(1, true, {{kKernel, 0}, {kKernel, 0}, {kKernel, 0}}).asked(90).execute(1, 90).begin(1, 0);
  t.add(Kind::failed, 1, 0).stops = true;
  t.end(1, 0);
  EXPECT_EQ(Trace(t).drop(1, 1).over(90).refused(kOneThread), "accepted");
  EXPECT_EQ(Trace(t).run(1, 1).drop(1, 2).over(90).refused(kOneThread),
            "stop: task 1 (kernel) of stream 1 in execution 1 of model 0 begins at 11, after task 0 (kernel) of stream 1 in execution 1 of model 0 stopped its context");
}

TEST(TraceChecker, ANotifysWaitsAreServedInTheirOrder) {
  const TaskKind set = TaskKind::notify_record, pass = TaskKind::notify_wait;
  Trace t;
  t.submit(1, 0, set, 5).submit(1, 1, set, 5).submit(2, 0, pass, 5).submit(3, 0, pass, 5);
  t.add(Kind::parked, 2, 0, pass, 5);
  t.add(Kind::parked, 3, 0, pass, 5);
  EXPECT_EQ(Trace(t).run(1, 0, set, 5).run(2, 0, pass, 5).run(1, 1, set, 5).run(3, 0, pass, 5).refused(), "accepted");
  EXPECT_EQ(Trace(t).run(1, 0, set, 5).run(1, 1, set, 5).run(3, 0, pass, 5).run(2, 0, pass, 5).refused(), "accepted");  // both had theirs
  EXPECT_EQ(Trace(t).run(1, 0, set, 5).run(3, 0, pass, 5).run(1, 1, set, 5).run(2, 0, pass, 5).refused(),
            "notify: task 0 (notify wait) of stream 3 passes at 9, before task 0 (notify wait) of stream 2, which waited from 5 on and longer");
}

}  // namespace
}  // namespace millstream::rt
