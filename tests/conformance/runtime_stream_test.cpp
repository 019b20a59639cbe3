// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/runtime_fixture.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

TEST_P(OnEveryBackend, TasksOfOneStreamRunInTheOrderOfTheirSubmits) {
  Stream s = stream();
  Bodies bodies;
  std::vector<int> seen;
  for (int i = 0; i < 5000; ++i) {
    EXPECT_OK(bodies.launch(s, [&seen, i]() -> Result<void> {
      seen.push_back(i);
      return {};
    }));
  }
  EXPECT_OK(s.synchronize());
  ASSERT_EQ(seen.size(), 5000u);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(*s.query());
}

template <class Kernel>
constexpr bool kLaunches = requires(Stream s, Kernel kernel) { s.launch(std::forward<Kernel>(kernel), {}, {}); };
template <class Kernel>
constexpr bool kTriesToLaunch = requires(Stream s, Kernel kernel) { s.try_launch(std::forward<Kernel>(kernel), {}, {}); };

TEST(Stream, AKernelThatEndsWithTheCallIsRefusedWhenCompiling) {
  static_assert(kLaunches<const KernelFunction&> && kLaunches<KernelFunction&> && !kLaunches<KernelFunction>);
  static_assert(kTriesToLaunch<const KernelFunction&> && kTriesToLaunch<KernelFunction&> && !kTriesToLaunch<KernelFunction>);
}

TEST_P(OnEveryBackend, AQueryBehindASynchroniseSaysComplete) {
  Stream s = stream();
  static const KernelFunction nothing{"nothing"};
  for (int i = 0; i < 3000; ++i) {
    EXPECT_OK(s.launch(nothing, {}, {}));
    EXPECT_OK(s.synchronize());
    ASSERT_TRUE(*s.query());
  }
}

TEST_P(OnEveryBackend, AWaitLetsPassOnlyAfterItsRecord) {
  Stream a = stream(), b = stream();
  Event e = event();
  Bodies bodies;
  int value = 0, seen = -1;
  for (int round = 0; round < 300; ++round) {
    EXPECT_OK(bodies.launch(a, [&value, round]() -> Result<void> {
      value = round;
      return {};
    }));
    EXPECT_OK(a.record(e));
    EXPECT_OK(b.wait(e));
    EXPECT_OK(bodies.launch(b, [&value, &seen, round]() -> Result<void> {
      seen = value;
      EXPECT_EQ(seen, round);
      return {};
    }));
    EXPECT_OK(b.record(e));
    EXPECT_OK(a.wait(e));
  }
  EXPECT_OK(context->synchronize());
  EXPECT_EQ(seen, 299);
}

TEST_P(OnEveryBackend, ALatchBlocksUntilItIsRecordedAndAgainAfterAReset) {
  Stream a = stream(), b = stream();
  Event latch = event(Event::Kind::latch);
  Bodies bodies;
  std::atomic<int> ran{0};
  const auto count = [&]() -> Result<void> {
    ++ran;
    return {};
  };
  EXPECT_FALSE(*latch.query());
  EXPECT_OK(b.wait(latch));
  EXPECT_OK(bodies.launch(b, count));
  EXPECT_OK(a.record(latch));
  EXPECT_OK(b.synchronize());
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(*latch.query());
  EXPECT_OK(a.reset(latch));
  EXPECT_OK(a.synchronize());
  EXPECT_FALSE(*latch.query());
}

TEST_P(OnEveryBackend, ACycleOfLatchesIsReportedWithItsStreams) {
  Stream a = stream(), b = stream();
  Event x = event(Event::Kind::latch), y = event(Event::Kind::latch);
  EXPECT_OK(a.wait(x));
  EXPECT_OK(a.record(y));
  EXPECT_OK(b.wait(y));
  EXPECT_OK(b.record(x));
  const Result<void> done = a.synchronize();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::deadlock);
  const std::string text = to_string(done.error());
  EXPECT_NE(text.find("the cycle: "), std::string::npos) << text;
  EXPECT_CODE(deadlock, b.synchronize());
  EXPECT_OK(a.synchronize());
}

TEST_P(OnEveryBackend, AWaitThatNobodyRecordsForIsReportedWhileAHostWaits) {
  Profile profile;
  profile.orphan_wait_ms = 500;  // the other thread may be slow
  open(profile);
  Stream a = stream();
  Event x = event(Event::Kind::latch);
  EXPECT_OK(a.wait(x));
  EXPECT_CODE(deadlock, a.synchronize());
  EXPECT_OK(a.wait(x));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Stream b = stream();
    EXPECT_OK(b.record(x));
    EXPECT_OK(b.synchronize());
  });
  EXPECT_OK(a.synchronize());
  later.join();
}

TEST_P(OnEveryBackend, ACallbackRunsBetweenItsNeighboursAndMayNotCallTheRuntime) {
  Stream s = stream();
  Bodies bodies;
  struct State {
    std::atomic<int> step{0};
    Stream* stream = nullptr;
    std::vector<ErrorCode> codes;
  } state;
  state.stream = &s;
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    EXPECT_EQ(state.step++, 0);
    return {};
  }));
  EXPECT_OK(s.host_func(
      [](void* p) {
        auto& st = *static_cast<State*>(p);
        EXPECT_EQ(st.step++, 1);
        st.codes.push_back(st.stream->synchronize().error().code);
        st.codes.push_back(st.stream->query().error().code);
        st.codes.push_back(st.stream->host_func(nullptr, nullptr).error().code);
      },
      &state));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    EXPECT_EQ(state.step++, 2);
    return {};
  }));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.codes, std::vector<ErrorCode>(3, ErrorCode::in_callback));
}

TEST_P(OnEveryBackend, AFailedTaskIsReportedOnceAndTheStreamGoesOn) {
  Stream s = stream(), other = stream();
  Bodies bodies;
  int after = 0;
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}; }));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    ++after;
    return {};
  }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_OK(s.synchronize());
  EXPECT_OK(other.synchronize());
  EXPECT_EQ(after, 1);
}

TEST_P(OnEveryBackend, AContextThatStopsDropsWhatIsQueuedAndRecovers) {
  Stream s = stream(), other = stream();
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  EXPECT_CODE(bad_state, s.set_failure_mode(FailureMode::stop));
  EXPECT_CODE(bad_state, other.set_failure_mode(FailureMode::proceed));
  Event latch = event(Event::Kind::latch);
  Bodies bodies;
  int after = 0;
  EXPECT_OK(other.wait(latch));
  EXPECT_OK(bodies.launch(other, [&]() -> Result<void> {
    ++after;
    return {};
  }));
  EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}; }));
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_CODE(context_stopped, other.synchronize());
  EXPECT_CODE(context_stopped, bodies.launch(other, []() -> Result<void> { return {}; }));
  EXPECT_CODE(kernel_failed, context->synchronize());
  EXPECT_OK(context->recover());
  EXPECT_EQ(after, 0);
  EXPECT_OK(bodies.launch(other, [&]() -> Result<void> {
    ++after;
    return {};
  }));
  EXPECT_OK(other.synchronize());
  EXPECT_EQ(after, 1);
}

TEST_P(OnEveryBackend, ANotifyLetsExactlyOneWaitPassASet) {
  Stream a = stream(), b = stream(), c = stream();
  Notify n = std::move(*context->create_notify());
  Bodies bodies;
  std::atomic<int> passed{0};
  const auto count = [&]() -> Result<void> {
    ++passed;
    return {};
  };
  EXPECT_OK(b.wait(n));
  EXPECT_OK(bodies.launch(b, count));
  EXPECT_OK(c.wait(n));
  EXPECT_OK(bodies.launch(c, count));
  EXPECT_OK(a.record(n));
  EXPECT_OK(a.synchronize());
  EXPECT_CODE(deadlock, context->synchronize());  // one passed, one never does
  EXPECT_EQ(passed, 1);
}

TEST_P(OnEveryBackend, AWaitForANotifyThatTimesOutLosesNobodyBehindIt) {
  Profile profile;
  if (GetParam() == BackendId::cpu) profile.orphan_wait_ms = 20000;  // on a busy machine what follows takes long
  open(profile);
  Stream a = stream(), b = stream(), c = stream(), r = stream();
  Notify n = std::move(*context->create_notify());
  // Each is in the list before the next comes.
  const auto settle = [](Stream& s) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(s.query());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  EXPECT_OK(a.wait(n));
  settle(a);
  EXPECT_OK(b.wait(n, std::chrono::milliseconds(60)));
  EXPECT_CODE(wait_timeout, b.synchronize());
  EXPECT_OK(c.wait(n));
  settle(c);
  for (int i = 0; i < 2; ++i) EXPECT_OK(r.record(n));
  EXPECT_OK(context->synchronize());
  EXPECT_EQ(n.ignored_records(), 0u);
}

TEST_P(OnEveryBackend, AnAbortDropsWhatIsQueuedAndWaitersAreTold) {
  Stream a = stream(), b = stream();
  Event latch = event(Event::Kind::latch), e = event();
  Bodies bodies;
  int ran = 0;
  const auto count = [&]() -> Result<void> {
    ++ran;
    return {};
  };
  EXPECT_OK(a.wait(latch));
  EXPECT_OK(bodies.launch(a, count));
  EXPECT_OK(a.record(e));
  EXPECT_OK(b.wait(e));
  EXPECT_OK(bodies.launch(b, count));
  EXPECT_OK(a.abort());
  EXPECT_CODE(stream_aborted, b.synchronize());
  EXPECT_EQ(ran, 0);
  EXPECT_OK(bodies.launch(a, count));
  EXPECT_OK(a.synchronize());
  EXPECT_EQ(ran, 1);
}

TEST_P(OnEveryBackend, AWaitWithADeadlineDropsTheRestOfItsStream) {
  Stream a = stream();
  Event latch = event(Event::Kind::latch);
  Bodies bodies;
  int ran = 0;
  EXPECT_OK(a.wait(latch, std::chrono::milliseconds(20)));
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    ++ran;
    return {};
  }));
  EXPECT_CODE(wait_timeout, a.synchronize());
  EXPECT_EQ(ran, 0);
}

TEST_P(OnEveryBackend, AFullQueueBlocksAndTrySaysSo) {
  Profile profile;
  profile.tasks_per_stream = 4;
  open(profile);
  Stream s = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  static const KernelFunction nothing{"nothing"};
  for (int i = 0; i < 3; ++i) EXPECT_OK(s.try_launch(nothing, {}, {}));
  EXPECT_CODE(stream_full, s.try_launch(nothing, {}, {}));
  Stream b = stream();
  EXPECT_OK(b.record(latch));
  for (int i = 0; i < 100; ++i) EXPECT_OK(s.launch(nothing, {}, {}));
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, StreamNumbersAreReusedLowestFirst) {
  Profile profile;
  profile.max_streams = 3;
  open(profile);
  Stream a = stream(), b = stream();
  EXPECT_CODE(no_more_streams, context->create_stream());
  EXPECT_EQ(a.number(), 1u);
  EXPECT_OK(a.close());
  EXPECT_CODE(bad_handle, a.close());
  EXPECT_EQ(stream().number(), 1u);
}

TEST_P(OnEveryBackend, ASynchroniseThatTimesOutNamesWhatTheStreamWaitsFor) {
  Profile profile;
  profile.orphan_wait_ms = 5000;
  open(profile);
  Stream a = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(a.wait(latch));
  const Result<void> late = a.synchronize(std::chrono::milliseconds(200));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::sync_timeout) << to_string(late.error());
  EXPECT_NE(to_string(late.error()).find("waits for event"), std::string::npos) << to_string(late.error());
  Stream b = stream();
  EXPECT_OK(b.record(latch));
  EXPECT_OK(a.synchronize());
}

TEST_P(OnEveryBackend, AnElapsedTimeNeedsTwoTimedAndCompleteRecords) {
  Stream s = stream();
  Event plain = event(), start = event(Event::Kind::snapshot, {true, true}), end = event(Event::Kind::snapshot, {true, true});
  EXPECT_OK(s.record(plain));
  EXPECT_CODE(no_timestamp, Event::elapsed(start, end));
  EXPECT_OK(s.record(start));
  static const KernelFunction slow{"slow", nullptr, 500};
  EXPECT_OK(s.launch(slow, {}, {}));
  EXPECT_OK(s.record(end));
  EXPECT_OK(s.synchronize());
  const auto took = Event::elapsed(start, end);
  ASSERT_TRUE(took.ok()) << to_string(took.error());
  if (GetParam() == BackendId::sim) {
    EXPECT_EQ(took->count(), 501100);
  }
  EXPECT_CODE(no_timestamp, Event::elapsed(plain, end));
  EXPECT_CODE(reversed_time, Event::elapsed(end, start));
}

TEST_P(OnEveryBackend, ALatchIsOnItsWayWhileARecordOfItIsQueued) {
  Stream s = stream();
  Event start = event(Event::Kind::snapshot, {true, true}), end = event(Event::Kind::latch, {true, true}), held = event(Event::Kind::latch);
  EXPECT_OK(s.record(start));
  EXPECT_OK(s.wait(held));
  EXPECT_OK(s.record(end));
  EXPECT_CODE(sync_timeout, s.synchronize(std::chrono::milliseconds(20)));
  EXPECT_CODE(not_complete, Event::elapsed(start, end));
  Stream host = stream();
  EXPECT_OK(host.record(held));
  EXPECT_OK(s.synchronize());
  EXPECT_TRUE(Event::elapsed(start, end).ok());
  EXPECT_OK(s.reset(end));
  EXPECT_OK(s.synchronize());
  EXPECT_CODE(no_timestamp, Event::elapsed(start, end));
  EXPECT_OK(host.close(Close::drain));
  EXPECT_CODE(bad_handle, host.record(end));
  EXPECT_CODE(no_timestamp, Event::elapsed(start, end));
}

}  // namespace
}  // namespace millstream
