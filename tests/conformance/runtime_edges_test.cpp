// SPDX-License-Identifier: Apache-2.0
// What ends, late or in an unusual order: callbacks, timers, dropped records, streams that were let go.
#include "millstream/runtime/objects.h"
#include "tests/conformance/runtime_fixture.h"

#include <ctime>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

const KernelFunction kNothing{"nothing"};
const KernelFunction kSlow{"slow", nullptr, 5000};

TEST_P(OnEveryBackend, AHostThatOnlyQueriesSeesTheEnd) {
  Stream s = stream();
  Event e = event();
  EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_OK(s.record(e));
  while (!*e.query()) std::this_thread::yield();
  EXPECT_OK(s.launch(kNothing, {}, {}));
  while (!*s.query()) std::this_thread::yield();
}

TEST_P(OnEveryBackend, ADeadlockIsReportedThoughACallbackWasTheLastToRun) {
  Stream a = stream(), b = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(b.wait(latch));
  EXPECT_OK(a.host_func([](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }, nullptr));
  EXPECT_CODE(deadlock, b.synchronize());
  EXPECT_OK(a.synchronize());
}

TEST_P(OnEveryBackend, ADeadlockIsReportedThoughATimerOfAWaitThatIsOverIsArmed) {
  Stream a = stream(), b = stream();
  Event soon = event(Event::Kind::latch), x = event(Event::Kind::latch);
  for (const auto timeout : {std::chrono::milliseconds(60), std::chrono::milliseconds(3600000)}) {
    EXPECT_OK(a.wait(soon, timeout));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // cpu: it has parked
    EXPECT_OK(b.record(soon));
    EXPECT_OK(a.synchronize());
    EXPECT_OK(a.wait(x));
    EXPECT_CODE(deadlock, a.synchronize());
    EXPECT_OK(b.reset(soon));
    EXPECT_OK(b.synchronize());
  }
}

TEST_P(OnEveryBackend, AContextEndsThoughAStreamThatWasLetGoStillRuns) {
  Context own = std::move(*device->create_context());
  Stream a = std::move(*own.create_stream()), b = std::move(*own.create_stream());
  EXPECT_OK(a.launch(kSlow, {}, {}));
  EXPECT_OK(b.launch(kNothing, {}, {}));
  EXPECT_OK(b.synchronize());
  EXPECT_OK(a.close(Close::drop));
  EXPECT_OK(own.close());
}

TEST_P(OnEveryBackend, ALatchWhoseRecordWasDroppedCanBeRecordedAgain) {
  Stream a = stream(), b = stream();
  Event gate = event(Event::Kind::latch), latch = event(Event::Kind::latch);
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(a.wait(gate));
    EXPECT_OK(a.record(latch));
    EXPECT_OK(a.record(latch));
    EXPECT_OK(b.wait(latch));
    EXPECT_OK(a.abort());
    EXPECT_CODE(stream_aborted, b.synchronize());
    EXPECT_CODE(stream_aborted, latch.synchronize());
    if (i == 0) {
      EXPECT_OK(a.record(latch));  // a good record is as good as any
    } else {
      EXPECT_OK(a.reset(latch));
      EXPECT_OK(a.synchronize());
      EXPECT_FALSE(*latch.query());
      EXPECT_OK(a.record(latch));
    }
    EXPECT_OK(a.synchronize());
    EXPECT_OK(latch.synchronize());
    EXPECT_OK(b.wait(latch));
    EXPECT_OK(b.synchronize());
    EXPECT_OK(a.reset(latch));
    EXPECT_OK(a.synchronize());
  }
}

TEST_P(OnEveryBackend, ACycleThatAnotherStreamMayStillBreakIsNoDeadlockYet) {
  Profile profile;
  profile.workers = 1;
  open(profile);
  Stream a = stream(), b = stream(), c = stream(), d = stream();
  Event x = event(Event::Kind::latch), y = event(Event::Kind::latch), outside = event(Event::Kind::latch);
  EXPECT_OK(a.wait(x));
  EXPECT_OK(a.record(y));
  EXPECT_OK(b.wait(y));
  EXPECT_OK(b.record(x));
  EXPECT_OK(c.wait(outside));
  EXPECT_OK(c.record(x));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_OK(d.record(outside));
    EXPECT_OK(d.synchronize());
  });
  EXPECT_OK(a.synchronize());
  later.join();
  EXPECT_OK(context->synchronize());
}

TEST_P(OnEveryBackend, TheNumberOfAStreamThatWasLetGoIsFreeForOtherContextsToo) {
  Profile profile;
  profile.max_streams = 3;  // two of them default ones
  open(profile);
  Context own = std::move(*device->create_context());
  Stream a = stream();
  EXPECT_OK(a.launch(kSlow, {}, {}));
  EXPECT_OK(a.close(Close::drop));
  EXPECT_OK(own.default_stream().launch(kSlow, {}, {}));
  EXPECT_OK(own.default_stream().launch(kSlow, {}, {}));
  EXPECT_OK(own.synchronize());
  EXPECT_TRUE(own.create_stream().ok());
}

TEST_P(OnEveryBackend, AHostThatWaitsForARecordBehindAStuckWaitIsTold) {
  Stream a = stream();
  Event e = event(), latch = event(Event::Kind::latch);
  EXPECT_OK(a.wait(latch));
  EXPECT_OK(a.record(e));
  EXPECT_CODE(deadlock, e.synchronize());
  EXPECT_CODE(deadlock, a.synchronize());
}

TEST_P(OnEveryBackend, AContextRecoversThoughAStreamWasLetGo) {
  Stream s = stream(), gone = stream();
  Bodies bodies;
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  EXPECT_OK(gone.launch(kSlow, {}, {}));
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}; }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  (void)gone.close(Close::drop);
  EXPECT_OK(context->recover());
  EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, AHostFunctionThatThrowsIsAFailedTask) {
  Stream s = stream();
  EXPECT_OK(s.host_func([](void*) { throw std::runtime_error("no such luck"); }, nullptr));
  const Result<void> first = s.synchronize();
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().code, ErrorCode::host_func_failed);
  EXPECT_NE(first.error().message.find("no such luck"), std::string::npos);
  EXPECT_OK(s.host_func([](void*) { throw 1; }, nullptr));
  EXPECT_CODE(host_func_failed, s.synchronize());
  EXPECT_OK(s.synchronize());  // the thread is no callback any more
}

TEST_P(OnEveryBackend, AKernelThatThrowsIsAFailedTask) {
  Stream s = stream();
  Bodies bodies;
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { throw std::runtime_error("no such luck"); }));
  const Result<void> first = s.synchronize();
  ASSERT_FALSE(first.ok());
  EXPECT_NE(first.error().message.find("no such luck"), std::string::npos);
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { throw 1; }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}.note("a note"); }));
  const Result<void> noted = s.synchronize();
  ASSERT_FALSE(noted.ok());
  EXPECT_NE(to_string(noted.error()).find("a note"), std::string::npos);
}

TEST_P(OnEveryBackend, ADeadlocksReportNamesTheLastTaskThatRan) {
  Stream a = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(a.wait(latch));
  const Result<void> nothing_before = a.synchronize();
  ASSERT_FALSE(nothing_before.ok());
  EXPECT_NE(nothing_before.error().message.find("at task 0, before any other task"), std::string::npos) << nothing_before.error().message;
  EXPECT_OK(a.launch(kNothing, {}, {}));
  EXPECT_OK(a.synchronize());
  EXPECT_OK(a.wait(latch));
  const Result<void> stuck = a.synchronize();
  ASSERT_FALSE(stuck.ok());
  EXPECT_NE(stuck.error().message.find("waits for event"), std::string::npos);
  EXPECT_NE(stuck.error().message.find("after task 2 (nothing)"), std::string::npos) << stuck.error().message;
}

TEST_P(OnEveryBackend, ADroppedRecordSaysWhatStoppedItsContext) {
  Stream s = stream(), other = stream();
  Event gate = event(Event::Kind::latch), e = event();
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  EXPECT_OK(other.wait(gate));
  EXPECT_OK(other.record(e));
  Bodies bodies;
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}; }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  const Result<void> done = e.synchronize();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::context_stopped);
  EXPECT_NE(to_string(done.error()).find("task 0 (body) of stream"), std::string::npos) << to_string(done.error());
}

TEST_P(OnEveryBackend, AWaitThatIsDroppedAfterItsNotifyUsesTheRecordUp) {
  Profile profile;
  profile.workers = 1;
  open(profile);
  Stream s = stream(), r = stream();
  Notify n = std::move(*context->create_notify());
  Bodies bodies;
  std::atomic<bool> started{false}, go_on{GetParam() == BackendId::sim};
  EXPECT_OK(s.wait(n));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_OK(r.record(n));
  EXPECT_OK(bodies.launch(r, [&]() -> Result<void> {  // the one worker is here while `s` is ready
    started = true;
    while (!go_on) std::this_thread::yield();
    return {};
  }));
  while (GetParam() == BackendId::cpu && !started) std::this_thread::yield();
  std::thread abort([&] { EXPECT_OK(s.abort()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  go_on = true;
  abort.join();
  EXPECT_OK(r.record(n));
  EXPECT_OK(r.synchronize());
  EXPECT_OK(s.wait(n));
  EXPECT_OK(s.synchronize());
  EXPECT_OK(s.wait(n, std::chrono::milliseconds(1)));
  EXPECT_CODE(wait_timeout, s.synchronize());
}

TEST_P(OnEveryBackend, ARefusedSubmitKeepsNothing) {
  Stream s = stream();
  EXPECT_OK(s.close());
  {
    Notify n = std::move(*context->create_notify());
    EXPECT_CODE(bad_handle, s.record(n));
    EXPECT_CODE(bad_handle, s.wait(n));
  }
  EXPECT_EQ(device->state()->notify_numbers.in_use(), 0u);
}

TEST_P(OnEveryBackend, AnErrorThatASyncOfAStoppedContextTellsIsReported) {
  Stream s = stream();
  Bodies bodies;
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}; }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_TRUE(context->take_errors().empty());
}

TEST_P(OnEveryBackend, TheNumberOfAnIdleStreamIsFreeAsSoonAsItIsDestroyed) {
  Stream s = stream();
  const std::uint32_t before = device->state()->stream_numbers.in_use();
  EXPECT_OK(s.close(Close::drop));
  EXPECT_EQ(device->state()->stream_numbers.in_use(), before - 1);
}

TEST_P(OnEveryBackend, AStreamThatWasLetGoIsClearedAwayWhenAnotherEnds) {
  const std::uint32_t before = device->state()->stream_numbers.in_use();
  Stream a = stream(), b = stream();
  EXPECT_OK(a.launch(kSlow, {}, {}));
  const auto state = a.state();
  EXPECT_OK(a.close(Close::drop));
  EXPECT_OK(context->synchronize());
  while (state->lane.token.pending() != 0) std::this_thread::yield();
  EXPECT_OK(b.close());
  EXPECT_EQ(before, device->state()->stream_numbers.in_use());
}

TEST_P(OnEveryBackend, TheNumberOfAStreamThatWasLetGoIsTheNextOneWhenItHasEnded) {
  Stream a = stream();
  const std::uint32_t number = a.number();
  EXPECT_OK(a.launch(kSlow, {}, {}));
  const auto state = a.state();
  EXPECT_OK(a.close(Close::drop));
  EXPECT_OK(context->synchronize());
  while (state->lane.token.pending() != 0) std::this_thread::yield();
  EXPECT_EQ(number, stream().number());
}

// No host waits, and no worker becomes idle.
TEST_P(OnEveryBackend, AWaitTimesOutThoughAnotherStreamIsBusy) {
  const bool cpu = GetParam() == BackendId::cpu;
  Stream a = stream(), b = stream();
  Event latch = event(Event::Kind::latch);
  std::atomic<bool> begun{false}, over{false};
  Bodies bodies;
  EXPECT_OK(bodies.launch(b, [&, cpu]() -> Result<void> {
    begun = true;
    while (cpu && !over) std::this_thread::yield();
    return {};
  }));
  while (cpu && !begun) std::this_thread::yield();
  EXPECT_OK(a.wait(latch, std::chrono::milliseconds(10)));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  bool timed_out = false;
  while (!timed_out && std::chrono::steady_clock::now() < patience) timed_out = *a.query();
  EXPECT_TRUE(timed_out);
  over = true;
  EXPECT_CODE(wait_timeout, a.synchronize());
  EXPECT_OK(b.synchronize());
}

TEST_P(OnEveryBackend, AFullQueueHasRoomWhenItsStreamComesToAWait) {
  const bool cpu = GetParam() == BackendId::cpu;
  Profile profile;
  profile.tasks_per_stream = 4;
  if (cpu) profile.orphan_wait_ms = 20000;
  open(profile);
  Stream s = stream(), other = stream();
  Event gate = event(Event::Kind::latch);
  std::atomic<bool> release{false};
  Bodies bodies;
  EXPECT_OK(bodies.launch(s, [&, cpu]() -> Result<void> {
    while (cpu && !release) std::this_thread::yield();
    return {};
  }));
  EXPECT_OK(s.wait(gate));
  for (int i = 0; i < 2; ++i) EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_CODE(stream_full, s.try_launch(kNothing, {}, {}));
  std::atomic<bool> submitted{false};
  std::thread submits([&] {
    EXPECT_OK(s.launch(kNothing, {}, {}));
    submitted = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  release = true;
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!submitted && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  EXPECT_TRUE(submitted);
  EXPECT_OK(other.record(gate));
  submits.join();
  EXPECT_OK(s.synchronize());
}

// Before its patience is over.
TEST_P(OnEveryBackend, AHostThatWaitsIsWokenByWhatAnotherSubmits) {
  Profile profile;
  profile.orphan_wait_ms = 6000;
  open(profile);
  Stream s = stream(), other = stream();
  Event gate = event(Event::Kind::latch);
  EXPECT_OK(s.wait(gate));
  const auto begin = std::chrono::steady_clock::now();
  std::thread host([&] { EXPECT_OK(s.synchronize()); });
  while (device->state()->hosts_blocked == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(*other.query());  // which looks whether anything is left to happen
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_OK(other.record(gate));
  host.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

// It would look again and again.
TEST_P(OnEveryBackend, NothingHurriesAfterASuspicionThatCameToNothing) {
  Profile profile;
  profile.orphan_wait_ms = 200;
  open(profile);
  Stream s = stream(), other = stream();
  Event gate = event(Event::Kind::latch);
  EXPECT_OK(s.wait(gate));
  std::thread host([&] { EXPECT_OK(s.synchronize()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // of 200 until it is called a deadlock
  EXPECT_OK(other.record(gate));
  EXPECT_OK(other.synchronize());
  host.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(220));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.04);
}

TEST_P(OnEveryBackend, AHostThatHelpsMayBeTheOnlyWorker) {
  Profile profile;
  profile.workers = 1;
  profile.host_helps = true;
  open(profile);
  Stream a = stream(), b = stream();
  Event e = event();
  Bodies bodies;
  std::vector<std::thread::id> by;
  for (Stream* s : {&a, &b}) {
    if (s == &b) EXPECT_OK(b.wait(e));
    for (int i = 0; i < 100; ++i) {
      EXPECT_OK(bodies.launch(*s, [&by]() -> Result<void> {
        by.push_back(std::this_thread::get_id());
        return {};
      }));
    }
    if (s == &a) EXPECT_OK(a.record(e));
  }
  EXPECT_OK(b.synchronize());
  EXPECT_EQ(std::vector<std::thread::id>(200, std::this_thread::get_id()), by);
  EXPECT_OK(context->synchronize());
}

TEST_P(OnEveryBackend, ADeadlockIsFoundWhileHostsHelpAndAfterTheyHave) {
  Profile profile;
  profile.host_helps = true;
  open(profile);
  Stream s = stream();
  Event latch = event(Event::Kind::latch);
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(s.launch(kNothing, {}, {}));
    EXPECT_OK(s.synchronize());
    EXPECT_OK(s.wait(latch));
    EXPECT_CODE(deadlock, s.synchronize());
    EXPECT_OK(s.wait(latch));
    EXPECT_CODE(deadlock, s.synchronize(std::chrono::seconds(20)));  // one that only waits
  }
}

TEST_P(OnEveryBackend, AHostThatHelpsFromTheStartIsToldOfADeadlock) {
  Profile profile;
  profile.host_helps = true;
  open(profile);
  Stream s = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  EXPECT_CODE(deadlock, s.synchronize());
}

// A latch may come as late as it likes while no host waits for it.
TEST_P(OnEveryBackend, WhatNoHostWaitsForIsNoDeadlock) {
  for (const bool helps : {false, true}) {
    Profile profile;
    profile.host_helps = helps;
    profile.orphan_wait_ms = 20;
    open(profile);
    Stream s = stream();
    Event latch = event(Event::Kind::latch);
    EXPECT_OK(s.launch(kNothing, {}, {}));
    EXPECT_OK(s.synchronize());
    EXPECT_OK(s.wait(latch));
    EXPECT_FALSE(*s.query());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_OK(stream().record(latch));
    EXPECT_OK(s.synchronize());
  }
}

TEST_P(OnEveryBackend, AHostThatWaitsForRoomIsToldOfADeadlock) {
  Profile profile;
  profile.tasks_per_stream = 2;
  open(profile);
  Stream s = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_FALSE(*s.query());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // its worker sleeps
  EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_CODE(deadlock, s.synchronize());
}

TEST_P(OnEveryBackend, ACycleIsReportedBeforeAShortDeadlineIsOver) {
  Profile profile;
  profile.orphan_wait_ms = 300;
  open(profile);
  Stream a = stream(), b = stream();
  Event x = event(Event::Kind::latch), y = event(Event::Kind::latch);
  EXPECT_OK(a.wait(x));
  EXPECT_OK(a.record(y));
  EXPECT_OK(b.wait(y));
  EXPECT_OK(b.record(x));
  EXPECT_CODE(deadlock, a.synchronize(std::chrono::milliseconds(GetParam() == BackendId::cpu ? 20000 : 1)));
}

TEST_P(OnEveryBackend, AHostThatGrantsNextToNoTimeIsToldAtOnce) {
  Stream s = stream(), other = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  EXPECT_CODE(sync_timeout, s.synchronize(std::chrono::nanoseconds(1)));
  EXPECT_OK(other.record(latch));
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, AKernelEndsInTheTraceBehindItsBody) {
  Stream s = stream();
  device->start_trace();
  const KernelFunction slow{"slow", [](const KernelCall&) -> Result<void> {
                              std::this_thread::sleep_for(std::chrono::milliseconds(5));
                              return {};
                            }, 5000};
  EXPECT_OK(s.launch(slow, {}, {}));
  EXPECT_OK(s.synchronize());
  std::uint64_t began = 0, ended = 0;
  for (const rt::TraceEvent& moment : device->take_trace()) {
    if (moment.task != rt::TaskKind::kernel) continue;
    if (moment.kind == rt::TraceEvent::Kind::began) began = moment.time_ns;
    if (moment.kind == rt::TraceEvent::Kind::ended) ended = moment.time_ns;
  }
  EXPECT_GE(ended, began + 5000000);
}

TEST_P(OnEveryBackend, HostsThatHelpLeaveNoTaskBehind) {
  Profile profile;
  profile.host_helps = true;
  open(profile);
  std::vector<std::thread> hosts;
  std::atomic<int> ran{0};
  const Body count = [&]() -> Result<void> {
    ++ran;
    return {};
  };
  const Body* const pointer = &count;
  for (int h = 0; h < 2; ++h) {
    hosts.emplace_back([&] {
      Stream mine = stream(), beside = stream();
      Event e = event();
      for (int i = 0; i < 300; ++i) {
        EXPECT_OK(mine.launch(kNothing, {}, {}));
        EXPECT_OK(mine.record(e));
        EXPECT_OK(beside.wait(e));
        EXPECT_OK(beside.launch(kCallBody, {}, std::as_bytes(std::span(&pointer, 1))));
        EXPECT_OK(mine.synchronize());
        // Nobody helps here.
        EXPECT_OK(beside.synchronize(std::chrono::seconds(20)));
      }
    });
  }
  for (std::thread& h : hosts) h.join();
  EXPECT_EQ(600, ran);
}

TEST_P(OnEveryBackend, TheDefaultStreamIsNotClosedAndIsCalledSo) {
  Stream s = context->default_stream();
  const Result<void> refused = s.close();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ErrorCode::bad_state, refused.error().code);
  EXPECT_NE(std::string::npos, refused.error().message.find("the default stream 0")) << refused.error().message;
  EXPECT_OK(s.synchronize());
  EXPECT_CODE(null_argument, s.set_failure_mode(FailureMode::proceed));
}

TEST_P(OnEveryBackend, AnErrorWordsThreeThatFailedBehindItAndCountsTheRest) {
  Stream s = stream();
  const KernelFunction fails{"fails", [](const KernelCall&) -> Result<void> { return Error{ErrorCode::kernel, "as the test wants"}; }};
  const auto words = [](const std::string& text, const char* what) {
    int n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  };
  std::uint64_t task = 0;
  for (const int failures : {1, 3, 4, 6}) {
    for (int i = 0; i < failures; ++i) EXPECT_OK(s.launch(fails, {}, {}));
    const Result<void> failed = s.synchronize();
    ASSERT_FALSE(failed.ok());
    const std::string text = to_string(failed.error());
    EXPECT_EQ(std::min(failures, 4), words(text, "as the test wants")) << text;
    for (int i = 0; i < std::min(failures, 4); ++i) EXPECT_EQ(1, words(text, fmt::format("task {} (fails)", task + i).c_str())) << text;
    EXPECT_EQ(failures == 6, words(text, "and 2 more failed") == 1) << text;
    EXPECT_EQ(failures == 6, words(text, " more failed") == 1) << text;
    EXPECT_OK(s.synchronize());
    task += failures + 2;  // a synchronise has a place in the stream too
  }
}

TEST_P(OnEveryBackend, AStoppedContextSaysWhatStoppedItAndHowToGoOn) {
  Stream s = stream();
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  const KernelFunction fails{"fails", [](const KernelCall&) -> Result<void> { return Error{ErrorCode::kernel, "as the test wants"}; }};
  EXPECT_OK(s.launch(fails, {}, {}));
  for (int i = 0; i < 2; ++i) {
    const Result<void> failed = s.synchronize();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(ErrorCode::kernel_failed, failed.error().code);
    const std::string text = to_string(failed.error());
    for (const char* words : {"task 0 (fails) of stream", "has stopped: it dropped what was queued", "help: Context::recover"}) {
      EXPECT_NE(std::string::npos, text.find(words)) << text;
    }
  }
  EXPECT_OK(context->recover());
}

TEST_P(OnEveryBackend, AWaitThatTimesOutSaysForWhatAndHowLong) {
  Stream s = stream();
  Event e = event(Event::Kind::latch);
  Notify n = std::move(*context->create_notify());
  EXPECT_OK(s.wait(e, std::chrono::milliseconds(3)));
  Result<void> failed = s.synchronize();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(ErrorCode::wait_timeout, failed.error().code);
  EXPECT_NE(std::string::npos, failed.error().message.find(fmt::format("waited 3000 us for event {}", e.state()->number))) << failed.error().message;
  EXPECT_OK(s.wait(n, std::chrono::microseconds(700)));
  failed = s.synchronize();
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(std::string::npos, failed.error().message.find("waited 700 us for notify")) << failed.error().message;
}

TEST_P(OnEveryBackend, AContextThatEndsRunsTheExecutionsThatItsStreamsHold) {
  static std::atomic<int> ran;
  ran = 0;
  const KernelFunction counts{"counts", [](const KernelCall&) -> Result<void> {
                                ++ran;
                                return {};
                              }};
  const KernelFunction slow{"slow", [](const KernelCall&) -> Result<void> {
                              std::this_thread::sleep_for(std::chrono::milliseconds(5));
                              return {};
                            }};
  Context c = std::move(*device->create_context());
  Stream s = std::move(*c.create_stream()), tape = std::move(*c.create_stream({.persistent = true}));
  Model model = std::move(*c.begin_model());
  EXPECT_OK(model.bind(tape, StreamRole::head));
  EXPECT_OK(tape.launch(counts, {}, {}));
  EXPECT_OK(model.end_tasks(tape));
  EXPECT_OK(model.finish());
  EXPECT_OK(s.launch(slow, {}, {}));
  EXPECT_OK(model.execute_async(s));
  EXPECT_OK(model.execute_async(s));
  EXPECT_OK(c.close());
  EXPECT_EQ(2, ran);
}

TEST_P(OnEveryBackend, AStreamDoesNotReportWhatOneOfTheSameNumberDid) {
  const KernelFunction fails{"fails", [](const KernelCall&) -> Result<void> { return Error{ErrorCode::kernel, "as the test wants"}; }};
  std::uint32_t number = 0;
  {
    Stream s = stream();
    number = s.number();
    EXPECT_OK(s.launch(fails, {}, {}));
  }
  Stream s = stream();
  EXPECT_EQ(number, s.number());
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(1u, context->take_errors().size());
}

TEST_P(OnEveryBackend, ARecordThatAnotherDeviceDroppedFailsTheWaitAlone) {
  static std::atomic<int> ran;
  ran = 0;
  const KernelFunction counts{"counts", [](const KernelCall&) -> Result<void> {
                                ++ran;
                                return {};
                              }};
  const KernelFunction fails{"fails", [](const KernelCall&) -> Result<void> { return Error{ErrorCode::kernel, "as the test wants"}; }};
  Device first = std::move(*Device::open_private(GetParam(), {})), second = std::move(*Device::open_private(GetParam(), {}));
  Context here = std::move(*first.create_context()), there = std::move(*second.create_context());
  ASSERT_EQ(here.number(), there.number());
  Stream a = std::move(*here.create_stream()), b = std::move(*there.create_stream());
  Event e = std::move(*here.create_event(Event::Kind::snapshot));
  EXPECT_OK(a.set_failure_mode(FailureMode::stop));
  Event gate = std::move(*here.create_event(Event::Kind::latch));
  Stream opens = std::move(*here.create_stream());
  EXPECT_OK(a.wait(gate));
  EXPECT_OK(a.launch(fails, {}, {}));
  EXPECT_OK(a.record(e));
  EXPECT_OK(opens.record(gate));
  EXPECT_CODE(kernel_failed, a.synchronize());
  EXPECT_OK(b.wait(e));
  EXPECT_OK(b.launch(counts, {}, {}));
  EXPECT_CODE(context_stopped, b.synchronize());
  EXPECT_EQ(1, ran);
}

TEST_P(OnEveryBackend, ADeadlockNamesATaskWhoseKernelIsGone) {
  Stream s = stream();
  Event e = event(Event::Kind::latch);
  auto name = std::make_unique<std::string>("a kernel that is gone by then");
  auto kernel = std::make_unique<KernelFunction>(KernelFunction{*name});
  EXPECT_OK(s.launch(*kernel, {}, {}));
  EXPECT_OK(s.synchronize());
  kernel.reset();
  name.reset();
  EXPECT_OK(s.wait(e));
  const Result<void> stuck = s.synchronize();
  ASSERT_FALSE(stuck.ok());
  EXPECT_EQ(ErrorCode::deadlock, stuck.error().code);
  EXPECT_NE(std::string::npos, to_string(stuck.error()).find("(a kernel that is gone by then)")) << to_string(stuck.error());
}

TEST_P(OnEveryBackend, AModelsWaitTakesNoDeadline) {
  Stream tape = stream({.persistent = true});
  Event e = event();
  Model model = std::move(*context->begin_model());
  EXPECT_OK(model.bind(tape, StreamRole::head));
  EXPECT_CODE(unsupported, tape.wait(e, std::chrono::milliseconds(20)));
  EXPECT_OK(tape.wait(e));
}

TEST_P(OnEveryBackend, AnExecutionRunsAsManyTasksAsTheProfileAllows) {
  static std::atomic<int> ran;
  const KernelFunction counts{"counts", [](const KernelCall&) -> Result<void> {
                                ++ran;
                                return {};
                              }};
  Profile profile;
  profile.max_tasks_per_execution = 5;
  open(profile);
  for (const int tasks : {5, 10}) {
    ran = 0;
    Stream tape = stream({.persistent = true});
    Model model = std::move(*context->begin_model());
    EXPECT_OK(model.bind(tape, StreamRole::head));
    for (int i = 0; i < tasks; ++i) EXPECT_OK(tape.launch(counts, {}, {}));
    EXPECT_OK(model.end_tasks(tape));
    EXPECT_OK(model.finish());
    if (tasks == 5) {
      EXPECT_OK(model.execute());
    } else {
      EXPECT_CODE(task_timeout, model.execute());
    }
    EXPECT_EQ(5, ran);
  }
}

TEST_P(OnEveryBackend, AFullQueueHasRoomWhenACallbackEnds) {
  Profile profile;
  profile.tasks_per_stream = 1;
  open(profile);
  Stream s = stream();
  EXPECT_OK(s.host_func([](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
  EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, AHostThatSpinsIsToldOfADeadlock) {
  Stream s = stream({.fast_sync = true});
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  EXPECT_CODE(deadlock, s.synchronize());
}

TEST_P(OnEveryBackend, AHostThatWaitsForALatchNobodyRecordsIsTold) {
  Event latch = event(Event::Kind::latch);
  EXPECT_CODE(deadlock, latch.synchronize());
  EXPECT_CODE(event_sync_timeout, latch.synchronize(std::chrono::milliseconds(1)));
}

TEST_P(OnEveryBackend, EventsOfARecoveredContextWereNeverRecorded) {
  Stream s = stream(), other = stream();
  Event latch = event(Event::Kind::latch), gate = event(Event::Kind::latch), e = event();
  EXPECT_OK(s.record(latch));
  EXPECT_OK(s.synchronize());
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  EXPECT_OK(other.wait(gate));
  EXPECT_OK(other.record(e));
  Bodies bodies;
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}; }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_CODE(context_stopped, e.synchronize());
  EXPECT_OK(context->recover());
  EXPECT_FALSE(*latch.query());
  EXPECT_OK(e.synchronize());
}

TEST_P(OnEveryBackend, AQueryBehindASynchroniseSaysComplete) {
  Stream s = stream();
  for (int i = 0; i < 5000; ++i) {
    EXPECT_OK(s.launch(kNothing, {}, {}));
    EXPECT_OK(s.synchronize());
    ASSERT_TRUE(*s.query()) << i;
  }
}

TEST_P(OnEveryBackend, ADeviceClosesWithATimerArmed) {
  const std::weak_ptr<rt::DeviceState> state = device->state();
  {
    Stream a = stream(), b = stream();
    Event latch = event(Event::Kind::latch);
    EXPECT_OK(a.wait(latch, std::chrono::hours(1)));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_OK(b.record(latch));
    EXPECT_OK(a.synchronize());
  }
  context.reset();
  device.reset();
  EXPECT_TRUE(state.expired());
}

// A host that looks whether anything still records its event while that very record is made.
TEST_P(OnEveryBackend, ARecordThatIsMadeWhileItsHostLosesPatienceIsNoDeadlock) {
  Profile profile;
  profile.orphan_wait_ms = 1;
  open(profile);
  Stream a = stream();
  Event e = event(Event::Kind::snapshot);
  Bodies bodies;
  for (int i = 0; i < 400; ++i) {
    EXPECT_OK(bodies.launch(a, [i]() -> Result<void> {
      std::this_thread::sleep_for(std::chrono::microseconds(900 + i % 200));
      return {};
    }));
    EXPECT_OK(a.record(e));
    EXPECT_OK(e.synchronize());
  }
}

TEST_P(OnEveryBackend, ARecordWaitsItsTimeForAnEventIdAndIsThenRefused) {
  Profile profile;
  profile.max_events = 2;
  profile.event_wait_ms = 20;
  open(profile);
  Stream s = stream();
  Event latch = event(Event::Kind::latch), first = event(), second = event();
  EXPECT_OK(s.wait(latch));
  EXPECT_OK(s.record(first));
  EXPECT_CODE(no_event, s.record(second));
  EXPECT_OK(stream().record(latch));
  EXPECT_OK(s.synchronize());
  EXPECT_OK(s.record(second));
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, RecordsOfANotifyThatIsSetAreIgnoredAndCounted) {
  Stream s = stream();
  Notify n = std::move(*context->create_notify());
  for (int i = 0; i < 4; ++i) EXPECT_OK(s.record(n));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(3u, n.ignored_records());
  EXPECT_OK(s.wait(n));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(3u, n.ignored_records());
}

TEST_P(OnEveryBackend, AWaitThatIsParkedOnANotifyIsInTheTrace) {
  Stream s = stream(), other = stream();
  Notify n = std::move(*context->create_notify());
  EXPECT_OK(other.record(n));
  EXPECT_OK(other.synchronize());
  device->start_trace();
  const auto parked = [&] {
    int count = 0;
    for (const rt::TraceEvent& moment : device->take_trace()) count += moment.kind == rt::TraceEvent::Kind::parked;
    return count;
  };
  EXPECT_OK(s.wait(n));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(0, parked());
  EXPECT_OK(s.wait(n));
  EXPECT_CODE(sync_timeout, s.synchronize(std::chrono::milliseconds(10)));
  EXPECT_OK(other.record(n));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(1, parked());
}

// It stays as it is; but a good record makes up for one that was dropped.
TEST_P(OnEveryBackend, ALatchKeepsItsFirstRecordUnlessThatWasDropped) {
  Stream s = stream(), other = stream();
  Event start = event(Event::Kind::latch, {.timing = true}), twice = event(Event::Kind::latch, {.timing = true});
  EXPECT_OK(s.record(start));
  EXPECT_OK(s.record(twice));
  EXPECT_OK(s.synchronize());
  const std::chrono::nanoseconds before = *Event::elapsed(start, twice);
  EXPECT_OK(s.launch(kSlow, {}, {}));
  EXPECT_OK(s.record(twice));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(before, *Event::elapsed(start, twice));

  Event never = event(Event::Kind::latch), latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(never, std::chrono::milliseconds(5)));
  EXPECT_OK(s.record(latch));
  EXPECT_CODE(wait_timeout, s.synchronize());
  EXPECT_OK(other.wait(latch));
  ASSERT_FALSE(other.synchronize().ok());
  EXPECT_OK(s.record(latch));
  EXPECT_OK(s.synchronize());
  EXPECT_OK(other.wait(latch));
  EXPECT_OK(other.synchronize());
}

TEST_P(OnEveryBackend, LanesThatWaitedTogetherWaitForTheirOwnNotifiesAfterwards) {
  constexpr std::size_t kStreams = 3;
  Event latch = event(Event::Kind::latch);
  std::vector<Stream> streams;
  std::vector<Notify> notifies;
  Stream other = stream();
  for (std::size_t i = 0; i < kStreams; ++i) {
    streams.push_back(stream());
    notifies.push_back(std::move(*context->create_notify()));
    EXPECT_OK(streams[i].wait(latch));
    EXPECT_FALSE(*streams[i].query());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // all are parked
  EXPECT_OK(other.record(latch));
  EXPECT_OK(context->synchronize());
  for (std::size_t i = 0; i < kStreams; ++i) EXPECT_OK(streams[i].wait(notifies[i]));
  for (Stream& s : streams) EXPECT_FALSE(*s.query());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (std::size_t i = 0; i < kStreams; ++i) {
    for (std::size_t k = 0; k < kStreams; ++k) EXPECT_OK(other.record(notifies[i]));
    EXPECT_OK(other.synchronize());
    EXPECT_EQ(kStreams - 2, notifies[i].ignored_records());
    EXPECT_OK(streams[i].synchronize());
    for (std::size_t k = i + 1; k < kStreams; ++k) EXPECT_FALSE(*streams[k].query()) << k << " after " << i;
  }
}

// Nothing but a time-out is left to happen: that is no deadlock, whoever waits behind it.
TEST_P(OnEveryBackend, WhatARecordBehindATimedWaitIsForIsNotGivenUp) {
  Profile profile;
  profile.orphan_wait_ms = 20;
  open(profile);
  Stream s = stream();
  Event never = event(Event::Kind::latch), behind = event(Event::Kind::latch);
  EXPECT_OK(s.wait(never, std::chrono::milliseconds(300)));
  EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_OK(s.record(behind));
  const Result<void> told = behind.synchronize();
  EXPECT_TRUE(told.ok() || told.error().code != ErrorCode::deadlock) << to_string(told.error());
  EXPECT_CODE(wait_timeout, s.synchronize());
}

TEST_P(OnEveryBackend, AHostThatWaitsForALatchNobodyRecordsIsToldThoughOthersWaitToo) {
  Stream s = stream();
  Event gate = event(Event::Kind::latch), latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(gate, std::chrono::seconds(20)));
  for (int i = 0; i < 2; ++i) EXPECT_OK(s.launch(kNothing, {}, {}));
  if (GetParam() == BackendId::cpu) {
    EXPECT_CODE(deadlock, latch.synchronize());
  }
  EXPECT_OK(stream().record(gate));
  EXPECT_OK(s.synchronize());
}

// A host may stand for long between its submit and the wake-up of the stream.
TEST_P(OnEveryBackend, WhatAHostHasSubmittedAndNotYetMadeReadyIsNotGivenUp) {
  Profile profile;
  profile.orphan_wait_ms = 5;
  open(profile);
  Stream held = stream(), s = stream();
  Event latch = event(Event::Kind::latch);
  rt::Lane& lane = held.state()->lane;
  EXPECT_TRUE(lane.token.add());
  EXPECT_OK(held.record(latch));
  EXPECT_OK(s.wait(latch));
  std::thread first([&] { EXPECT_OK(s.synchronize()); }), second([&] { EXPECT_OK(latch.synchronize()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(lane.token.remove(1));
  device->state()->machine->make_ready(lane);
  first.join();
  second.join();
}

TEST_P(OnEveryBackend, ADeviceEndsAfterTheContextThatAnotherThreadEnds) {
  Context other = std::move(*device->create_context());
  Stream s = std::move(*other.create_stream());
  Bodies bodies;
  std::atomic<bool> begun{false};
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return {};
  }));
  for (int i = 0; i < 100; ++i) EXPECT_OK(s.launch(kNothing, {}, {}));
  // Whichever of the two comes first ends it.
  std::thread ends([&] {
    const Result<void> ended = other.close();
    EXPECT_TRUE(ended.ok() || ended.error().code == ErrorCode::bad_handle);
  });
  while (!begun) std::this_thread::yield();
  EXPECT_OK(device->reset(ResetMode::force));
  ends.join();
}

TEST_P(OnEveryBackend, AHostThatWaitsForALatchIsToldWhenTheDeviceEnds) {
  Event latch = event(Event::Kind::latch);
  std::atomic<bool> waits{false};
  std::thread host([&] {
    waits = true;
    EXPECT_CODE(deadlock, latch.synchronize());
  });
  while (!waits) std::this_thread::yield();
  EXPECT_OK(device->reset(ResetMode::force));
  host.join();
}

// What is suspected anew has its full time again.
TEST_P(OnEveryBackend, ASecondSuspicionDoesNotTakeOverTheTimeOfTheFirst) {
  Profile profile;
  profile.orphan_wait_ms = 1200;
  open(profile);
  Stream s = stream(), other = stream();
  Event first = event(Event::Kind::latch), second = event(Event::Kind::latch);
  EXPECT_OK(s.wait(first));
  EXPECT_OK(s.wait(second));
  std::thread host([&] { EXPECT_OK(s.synchronize()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(900));
  EXPECT_OK(other.record(first));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_OK(other.record(second));
  host.join();
}

// Nobody can wait for the model there: the stream lives until the model lets it go.
TEST_P(OnEveryBackend, ABoundStreamThatGoesInAHostFunctionLivesUntilItIsUnbound) {
  const std::uint32_t before = device->state()->stream_numbers.in_use();
  std::optional<Stream> tape = stream({.persistent = true});
  const std::weak_ptr<rt::StreamState> state = tape->state();
  {
    Model model = std::move(*context->begin_model());
    EXPECT_OK(model.bind(*tape, StreamRole::head));
    EXPECT_OK(tape->launch(kNothing, {}, {}));
    EXPECT_OK(model.end_tasks(*tape));
    EXPECT_OK(model.finish());
    Stream s = stream();
    EXPECT_OK(s.host_func([](void* p) { static_cast<std::optional<Stream>*>(p)->reset(); }, &tape));
    EXPECT_OK(s.synchronize());
    EXPECT_FALSE(tape.has_value());
    Stream clears_away = stream();
    ASSERT_FALSE(state.expired());
    EXPECT_OK(model.execute());
    EXPECT_OK(model.close());
  }
  (void)stream();
  EXPECT_TRUE(state.expired());
  EXPECT_EQ(before, device->state()->stream_numbers.in_use());
}

// Though a worker, or anybody else, has the model itself for a while.
TEST_P(OnEveryBackend, AModelThatIsClosedKeepsNothing) {
  Profile profile;
  profile.max_models = 1;
  open(profile);
  rt::DeviceState& d = *device->state();
  Stream s = stream({.persistent = true});
  Model model = std::move(*context->begin_model());
  EXPECT_OK(model.bind(s, StreamRole::head));
  {
    Label label = std::move(*context->create_label());
    Event e = event();
    Notify n = std::move(*context->create_notify());
    EXPECT_OK(Tape(s).place(label));
    EXPECT_OK(s.record(e));
    EXPECT_OK(s.record(n));
  }
  EXPECT_OK(model.end_tasks(s));
  EXPECT_OK(model.finish());
  EXPECT_EQ(1u, d.model_numbers.in_use());
  EXPECT_EQ(1u, d.label_numbers.in_use());
  const std::shared_ptr<rt::ModelState> held = model.state();
  EXPECT_OK(model.close());
  s.drop_tapes();
  EXPECT_EQ(0u, d.model_numbers.in_use());
  EXPECT_EQ(0u, d.label_numbers.in_use());
  EXPECT_EQ(0u, d.event_numbers.in_use());
  EXPECT_EQ(0u, d.notify_numbers.in_use());
  EXPECT_TRUE(context->begin_model().ok());
}

TEST_P(OnEveryBackend, ArgumentsThatNoTaskHoldsAreRefused) {
  Stream s = stream();
  const std::byte one{};
  const ArgSpan huge(&one, std::size_t{1} << 32);  // refused before it is read
  EXPECT_CODE(bad_value, s.launch(kNothing, {}, huge));
  EXPECT_CODE(bad_value, s.try_launch(kNothing, {}, huge));
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, APersistentStreamThatIsClosedRefusesEveryCallAsSuch) {
  Stream s = stream({.persistent = true});
  Event e = event();
  Notify n = std::move(*context->create_notify());
  Label l = std::move(*context->create_label());
  EXPECT_OK(s.close());
  EXPECT_CODE(bad_handle, s.launch(kNothing, {}, {}));
  EXPECT_CODE(bad_handle, s.record(e));
  EXPECT_CODE(bad_handle, s.wait(e));
  EXPECT_CODE(bad_handle, s.record(n));
  EXPECT_CODE(bad_handle, s.wait(n));
  EXPECT_CODE(bad_handle, Tape(s).place(l));
}

TEST_P(OnEveryBackend, AWaitForNothingIsRefusedWhereAnyWaitIs) {
  Stream s = stream(), closed = stream();
  Event e = event();
  Bodies bodies;
  EXPECT_OK(s.wait(e));
  EXPECT_OK(closed.close());
  EXPECT_CODE(bad_handle, closed.wait(e));
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "as the test wants"}; }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_CODE(context_stopped, s.wait(e));
  EXPECT_OK(context->recover());
  EXPECT_OK(s.wait(e));
}

// By the lanes of the tapes too, which come to a wait twice.
TEST_P(OnEveryBackend, AWaitThatIsWokenIsOneTaskOfAsManyAsTheProfileAllows) {
  Profile profile;
  profile.max_tasks_per_execution = 4;
  open(profile);
  const KernelFunction late{"late", [](const KernelCall&) -> Result<void> {
                              std::this_thread::sleep_for(std::chrono::milliseconds(20));
                              return {};
                            }, 100};
  Stream s = stream({.persistent = true}), t = stream({.persistent = true});
  Event e = event();
  Model model = std::move(*context->begin_model());
  EXPECT_OK(model.bind(s, StreamRole::head));
  EXPECT_OK(model.bind(t, StreamRole::head));
  EXPECT_OK(s.launch(late, {}, {}));
  EXPECT_OK(s.record(e));
  EXPECT_OK(t.wait(e));
  EXPECT_OK(t.launch(kNothing, {}, {}));
  EXPECT_OK(model.end_tasks(s));
  EXPECT_OK(model.finish());
  EXPECT_OK(model.execute());
  device->start_trace();
  EXPECT_OK(model.execute());
}

// Virtual time alone.
class OnVirtualTime : public OnEveryBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, OnVirtualTime, testing::Values(BackendId::sim), backend_name);

TEST_P(OnVirtualTime, WhatBecomesReadyIsActivity) {
  Stream s = stream();
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = device->state()->machine->activity();
    EXPECT_OK(s.launch(kNothing, {}, {}));
    EXPECT_LT(before, device->state()->machine->activity());
    EXPECT_OK(s.synchronize());
  }
}

TEST_P(OnVirtualTime, AHostThatWaitsWhileAnotherMovesTheClockTakesOverFromIt) {
  Stream a = stream(), b = stream();
  Bodies bodies;
  std::atomic<bool> begun{false}, go{false};
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    begun = true;
    while (!go) std::this_thread::yield();
    return {};
  }));
  std::thread first([&] { EXPECT_OK(a.synchronize()); });
  while (!begun) std::this_thread::yield();
  EXPECT_OK(b.launch(kSlow, {}, {}));
  std::thread second([&] { EXPECT_OK(b.synchronize()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  go = true;
  first.join();
  second.join();
}

TEST_P(OnVirtualTime, ADeadlineThatPassesMovesTheClockToIt) {
  Stream s = stream();
  EXPECT_OK(s.launch(kSlow, {}, {}));
  EXPECT_CODE(sync_timeout, s.synchronize(std::chrono::milliseconds(1)));
  EXPECT_EQ(1000000u, device->now_ns());
  EXPECT_OK(s.synchronize());
  const std::uint64_t end = device->now_ns();
  EXPECT_GE(end, 5000000u);
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  EXPECT_CODE(sync_timeout, s.synchronize(std::chrono::milliseconds(2)));
  EXPECT_EQ(end + 2000000, device->now_ns());
  EXPECT_OK(stream().record(latch));
  EXPECT_OK(s.synchronize());
}

// Each launch has one of its engine's slots from its start to its end, the lowest that is free.
TEST_P(OnVirtualTime, AnEngineRunsAsManyLaunchesAtOnceAsItHasSlots) {
  Profile profile;
  profile.engine_slots = {2, 1};
  open(profile);
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(stream());
  const KernelFunction kernels[] = {{"on 0", nullptr, 10, 0}, {"on 1", nullptr, 7, 1}};
  device->start_trace();
  for (int round = 0; round < 3; ++round) {
    for (Stream& s : streams) {
      for (const KernelFunction& kernel : kernels) EXPECT_OK(s.launch(kernel, {}, {}));
    }
  }
  EXPECT_OK(context->synchronize());
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> slot;  // of a stream's task
  std::map<std::string_view, std::set<std::uint32_t>> busy;
  std::map<std::string_view, std::size_t> most;
  for (const rt::TraceEvent& moment : device->take_trace()) {
    if (moment.task != rt::TaskKind::kernel) continue;
    std::set<std::uint32_t>& slots = busy[moment.name];
    if (moment.kind == rt::TraceEvent::Kind::began) {
      for (std::uint32_t lower = 0; lower < moment.worker; ++lower) EXPECT_TRUE(slots.contains(lower)) << moment.name << " at " << moment.time_ns;
      EXPECT_TRUE(slots.insert(moment.worker).second) << moment.name << " at " << moment.time_ns;
      slot[{moment.stream, moment.sequence}] = moment.worker;
      most[moment.name] = std::max(most[moment.name], slots.size());
    } else if (moment.kind == rt::TraceEvent::Kind::ended) {
      EXPECT_EQ((slot[{moment.stream, moment.sequence}]), moment.worker) << moment.name << " at " << moment.time_ns;
      EXPECT_EQ(1u, slots.erase(moment.worker)) << moment.name << " at " << moment.time_ns;
    }
  }
  EXPECT_EQ(2u, most["on 0"]);
  EXPECT_EQ(1u, most["on 1"]);
}

}  // namespace
}  // namespace millstream
