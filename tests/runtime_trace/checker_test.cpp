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
    const bool call = kind == Kind::submitted || (kind >= Kind::sync_begin && kind <= Kind::context_sync_end) || kind == Kind::stop_mode;
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
  EXPECT_EQ(Trace().submit(1, 0).begin(1, 0).refused({false, false, false}), "accepted");
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
}

}  // namespace
}  // namespace millstream::rt
