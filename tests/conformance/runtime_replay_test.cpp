// SPDX-License-Identifier: Apache-2.0
// Models without control flow, which worker threads run by segments: which they are, that it changes nothing, and that
// no worker stands still or hurries in vain.
#include <sys/resource.h>

#include <algorithm>

#include "millstream/runtime/replay.h"
#include "tests/conformance/runtime_recording.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

const KernelFunction kNothing{"nothing"};

TEST_P(OnEveryBackend, OnlyModelsThatNeedNoLaneAreReplayed) {
  const bool cpu = GetParam() == BackendId::cpu;
  const auto replayed = [&](const std::function<void(Recording&, Stream&, Stream&)>& record, StreamRole role = StreamRole::head, std::int32_t priority = 0) {
    Recording r(*context);
    Stream a = r.bound(StreamRole::head), b = stream({.priority = priority, .persistent = true});
    EXPECT_OK(r.model.bind(b, role));
    record(r, a, b);
    r.finish(a);
    return r.model.state()->replay != nullptr;
  };
  Event e = event(), f = event(), gate = event(Event::Kind::latch);
  Notify n = std::move(*context->create_notify());
  const auto nothing = [](Recording&, Stream&, Stream&) {};
  EXPECT_EQ(cpu, replayed(nothing));
  EXPECT_FALSE(replayed(nothing, StreamRole::activated));
  EXPECT_FALSE(replayed(nothing, StreamRole::head, 3));
  EXPECT_EQ(cpu, replayed([&](Recording&, Stream& a, Stream& b) {
    static int x = 0, y = 0;
    EXPECT_OK(a.launch(kNothing, {3}, {}));
    EXPECT_OK(a.record(e));
    EXPECT_OK(a.wait(f));
    EXPECT_OK(a.copy(&x, sizeof x, &y, sizeof y, CopyKind::host_to_host));
    EXPECT_OK(b.wait(e));
    EXPECT_OK(b.fill(&x, sizeof x, 1, sizeof x));
    EXPECT_OK(b.record(f));
    EXPECT_OK(b.launch(kNothing, {}, {}));
    EXPECT_OK(a.record(e));
    EXPECT_OK(b.wait(e));
  }));
  EXPECT_FALSE(replayed([&](Recording&, Stream& a, Stream&) { EXPECT_OK(a.host_func([](void*) {}, nullptr)); }));
  EXPECT_FALSE(replayed([&](Recording&, Stream& a, Stream&) { EXPECT_OK(a.wait(gate)); }));
  EXPECT_FALSE(replayed([&](Recording&, Stream& a, Stream&) { EXPECT_OK(a.record(n)); }));
  EXPECT_FALSE(replayed([&](Recording&, Stream& a, Stream& b) { EXPECT_OK(Tape(a).activate(b)); }));
  EXPECT_FALSE(replayed([&](Recording&, Stream& a, Stream& b) {  // each waits for what the other records later
    EXPECT_OK(a.wait(e));
    EXPECT_OK(a.record(f));
    EXPECT_OK(b.wait(f));
    EXPECT_OK(b.record(e));
  }));
}

TEST_P(OnEveryBackend, TapesThatWaitForEachOtherAreADeadlock) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Event x = event(), y = event();
  Log log;
  EXPECT_OK(log.launch(a, 'a'));
  EXPECT_OK(a.wait(x));
  EXPECT_OK(a.record(y));
  EXPECT_OK(b.wait(y));
  EXPECT_OK(b.record(x));
  r.finish(a);
  for (int i = 0; i < 2; ++i) EXPECT_CODE(deadlock, r.model.execute());
  EXPECT_EQ("aa", log.take());
}

TEST_P(OnEveryBackend, ATapeMayCopyFillAndLaunchManyBlocks) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  std::array<int, 4> from{1, 2, 3, 4}, to{};
  std::array<unsigned char, 64> filled;  // as large as a kernel, and no kernel: a task is not to be taken for another
  filled.fill(5);
  struct Blocks {
    std::uint32_t* seen;
    std::uint32_t* counts;
    std::uint64_t more[4];  // too large to lie in the task
  };
  std::array<std::uint32_t, 3> seen{};
  std::uint32_t counts = 0;
  const Blocks arguments{seen.data(), &counts, {}};
  const KernelFunction blocks{"blocks", [](const KernelCall& call) -> Result<void> {
                                Blocks b{};
                                std::memcpy(&b, call.arguments.data(), sizeof b);
                                ++b.seen[call.block];
                                *b.counts += call.blocks;
                                return {};
                              }};
  Log log;
  EXPECT_OK(s.launch(kNothing, {}, {}));
  EXPECT_OK(s.copy(to.data(), sizeof to, from.data(), sizeof from, CopyKind::host_to_host));
  EXPECT_OK(log.launch(s, '1'));
  EXPECT_OK(s.fill(filled.data(), filled.size(), 9, 8));
  EXPECT_OK(s.fill(filled.data(), filled.size(), 7, 1));
  EXPECT_OK(s.launch(blocks, {3}, std::as_bytes(std::span(&arguments, 1))));
  EXPECT_OK(s.launch(kNothing, {2}, {}));
  EXPECT_OK(log.launch(s, '2'));
  r.finish(s);
  EXPECT_OK(r.model.execute());
  from[0] = 9;
  EXPECT_OK(r.model.execute());
  EXPECT_EQ(from, to);
  std::array<unsigned char, 64> expected;
  expected.fill(5);
  std::fill_n(expected.begin(), 8, static_cast<unsigned char>(9));
  expected[0] = 7;
  EXPECT_EQ(expected, filled);
  EXPECT_EQ((std::array<std::uint32_t, 3>{2, 2, 2}), seen);
  EXPECT_EQ(18u, counts);
  EXPECT_EQ("1212", log.take());
}

// The other tape's record needs the task.
TEST_P(OnEveryBackend, ATaskBeforeAWaitDoesNotWaitWithIt) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Event e = event();
  const bool cpu = GetParam() == BackendId::cpu;
  Log log;
  Bodies bodies;
  EXPECT_OK(log.launch(a, 'a'));
  EXPECT_OK(a.wait(e));
  EXPECT_OK(log.launch(a, 'c'));
  EXPECT_OK(bodies.launch(b, [&, cpu]() -> Result<void> {
    EXPECT_TRUE(!cpu || comes([&] { return log.text() == "a"; }));
    return {};
  }));
  EXPECT_OK(log.launch(b, 'b'));
  EXPECT_OK(b.record(e));
  r.finish(a);
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(r.model.execute());
    EXPECT_EQ("abc", log.take());
  }
}

TEST_P(OnEveryBackend, ARecordDoesNotWaitForTheTaskBehindIt) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Event e = event();
  const bool cpu = GetParam() == BackendId::cpu;
  Log log;
  Bodies bodies;
  EXPECT_OK(log.launch(a, 'a'));
  EXPECT_OK(a.record(e));
  EXPECT_OK(bodies.launch(a, [&, cpu]() -> Result<void> {
    EXPECT_TRUE(!cpu || comes([&] { return log.text() == "ab"; }));
    return {};
  }));
  EXPECT_OK(b.wait(e));
  EXPECT_OK(log.launch(b, 'b'));
  r.finish(a);
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(r.model.execute());
    EXPECT_EQ("ab", log.take());
  }
}

// Each round of a tape waits for the round before of all others.
TEST_P(OnEveryBackend, TapesThatMeetAgainAndAgainKeepStep) {
  for (const std::uint32_t workers : {1u, 2u, 3u}) {
    Profile profile;
    profile.workers = workers;
    open(profile);
    constexpr std::size_t kTapes = 4, kRounds = 6;
    Recording r(*context);
    std::vector<Stream> tapes;
    for (std::size_t t = 0; t < kTapes; ++t) tapes.push_back(r.bound(StreamRole::head));
    std::vector<Event> events;
    Bodies bodies;
    std::array<std::atomic<int>, kTapes> at{};
    std::atomic<int> wrong{0};
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (std::size_t t = 0; t < kTapes; ++t) {
        for (std::size_t other = 0; other < kTapes && round != 0; ++other) {
          if (other != t) EXPECT_OK(tapes[t].wait(events[(round - 1) * kTapes + other]));
        }
        EXPECT_OK(bodies.launch(tapes[t], [&at, &wrong, t]() -> Result<void> {
          const int mine = at[t];
          for (const auto& other : at) {
            if (other < mine || other > mine + 1) ++wrong;
          }
          ++at[t];
          return {};
        }));
        events.push_back(event());
        EXPECT_OK(tapes[t].record(events.back()));
      }
    }
    r.finish(tapes.front());
    EXPECT_EQ(GetParam() == BackendId::cpu, r.model.state()->replay != nullptr);
    for (int i = 1; i <= 50; ++i) {
      EXPECT_OK(r.model.execute());
      for (const auto& a : at) ASSERT_EQ(i * static_cast<int>(kRounds), a);
    }
    EXPECT_EQ(0, wrong);
  }
}

// The two share a worker, for they hand over to each other; the long third one has the other worker.
TEST_P(OnEveryBackend, ATapeWhoseWorkerIsBusyIsTakenOverByOneThatSleeps) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head), c = r.bound(StreamRole::head);
  Event e = event();
  const bool cpu = GetParam() == BackendId::cpu;
  Log log;
  Bodies bodies;
  EXPECT_OK(bodies.launch(a, []() -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the other has gone to sleep
    return {};
  }));
  EXPECT_OK(a.record(e));
  EXPECT_OK(bodies.launch(a, [&, cpu]() -> Result<void> {
    EXPECT_TRUE(!cpu || comes([&] { return log.text() == "b"; }));
    return {};
  }));
  EXPECT_OK(b.wait(e));
  EXPECT_OK(log.launch(b, 'b'));
  for (int i = 0; i < 6; ++i) EXPECT_OK(c.launch(kNothing, {}, {}));
  r.finish(a);
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(r.model.execute());
    EXPECT_EQ("b", log.take());
  }
}

// What is ready when its worker is busy is found by one that is awake.
TEST_P(OnEveryBackend, ManyStreamsExecuteOneModelAndNoTaskIsLost) {
  Profile profile;
  profile.workers = 4;
  open(profile);
  Recording r(*context);
  std::vector<Stream> tapes, from;
  for (int i = 0; i < 4; ++i) tapes.push_back(r.bound(StreamRole::head));
  for (int i = 0; i < 8; ++i) from.push_back(stream());
  Event e = event();
  Bodies bodies;
  std::array<std::atomic<int>, 4> ran{};
  for (std::size_t t = 0; t < tapes.size(); ++t) {
    if (t == 3) EXPECT_OK(tapes[t].wait(e));
    EXPECT_OK(bodies.launch(tapes[t], [&ran, t]() -> Result<void> {
      ++ran[t];
      return {};
    }));
    if (t == 0) EXPECT_OK(tapes[t].record(e));
  }
  r.finish(tapes.front());
  const int executions = GetParam() == BackendId::cpu ? 40000 : 400;  // what is rare comes within 10 000
  for (int i = 0; i < executions / 8; ++i) {
    for (Stream& s : from) EXPECT_OK(r.model.execute_async(s));
  }
  EXPECT_OK(context->synchronize());
  for (const auto& n : ran) EXPECT_EQ(executions, n);
}

TEST_P(OnEveryBackend, AModelGivesItsWorkerToWhatGoesFirst) {
  Profile profile;
  profile.workers = 1;
  open(profile);
  for (const bool lanes : {false, true}) {
    for (const bool more_urgent : {false, true}) {
      Stream s = stream({.priority = 5, .persistent = true}), other = stream({.priority = more_urgent ? 1 : 5});
      Recording r(*context);
      EXPECT_OK(r.model.bind(s, StreamRole::head));
      Label l = std::move(*context->create_label());
      Log log;
      Bodies bodies;
      if (lanes) EXPECT_OK(Tape(s).place(l));
      EXPECT_OK(bodies.launch(s, [&]() -> Result<void> { return log.launch(other, 'o'); }));
      std::vector<Event> events;
      for (int i = 0; i < 100; ++i) {
        events.push_back(event());
        EXPECT_OK(s.record(events.back()));
        EXPECT_OK(log.launch(s, 's'));
      }
      r.finish(s);
      EXPECT_OK(r.model.execute());
      EXPECT_OK(context->synchronize());
      const std::string text = log.take();
      EXPECT_EQ(101u, text.size());
      if (GetParam() == BackendId::sim) continue;
      if (more_urgent) {
        EXPECT_LE(text.find('o'), 1u) << text;
      } else {  // behind its turn, of 64
        EXPECT_GT(text.find('o'), 20u) << text;
        EXPECT_LT(text.find('o'), 80u) << text;
      }
    }
  }
}

double cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3; };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

TEST_P(OnEveryBackend, WorkersWithoutATaskSleepWhileAnotherOfTheirModelIsLong) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Bodies bodies;
  EXPECT_OK(bodies.launch(a, []() -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return {};
  }));
  EXPECT_OK(b.launch(kNothing, {}, {}));
  r.finish(a);
  const double before = cpu_ms();
  EXPECT_OK(r.model.execute());
  EXPECT_LT(cpu_ms() - before, 50);
}

TEST_P(OnEveryBackend, AStopAmidAnExecutionDropsTheRestOfIt) {
  Profile profile;
  profile.engine_slots = {1, 1};
  for (const bool lanes : {false, true}) {
    open(profile);
    Recording r(*context);
    Stream s = r.bound(StreamRole::head), failing = stream();
    EXPECT_OK(failing.set_failure_mode(FailureMode::stop));
    Label l = std::move(*context->create_label());
    const bool cpu = GetParam() == BackendId::cpu;
    std::atomic<bool> begun{false};
    const Body body = [&]() -> Result<void> {
      begun = true;
      EXPECT_TRUE(comes([&] { return context->state()->stopped.load(); }));
      return {};
    };
    const Body fails = [&, cpu]() -> Result<void> {
      EXPECT_TRUE(!cpu || comes([&] { return begun.load(); }));
      return Error{ErrorCode::kernel, "as the test wants"};
    };
    const KernelFunction slow{"slow", call_body, 100, 0}, soon{"soon", call_body, 20, 1};
    const Body* const pointers[] = {&body, &fails};
    Log log;
    if (lanes) EXPECT_OK(Tape(s).place(l));
    EXPECT_OK(s.launch(slow, {}, std::as_bytes(std::span(pointers, 1))));
    EXPECT_OK(log.launch(s, '-'));
    r.finish(s);
    EXPECT_OK(failing.launch(soon, {}, std::as_bytes(std::span(pointers + 1, 1))));
    EXPECT_CODE(context_stopped, r.model.execute());
    EXPECT_EQ("", log.take());
  }
}

using Homes = std::vector<std::uint32_t>;
using Partners = std::vector<std::vector<std::uint32_t>>;

struct HandOvers {
  std::uint32_t a, b, count;
};
Partners partners(std::size_t tapes, const std::vector<HandOvers>& between) {
  Partners out(tapes);
  for (const HandOvers& h : between) {
    out[h.a].insert(out[h.a].end(), h.count, h.b);
    out[h.b].insert(out[h.b].end(), h.count, h.a);
  }
  return out;
}

TEST(ReplayHomes, TapesThatHandOverMostAreTogether) {
  const Partners often_seldom = partners(4, {{0, 3, 9}, {0, 1, 1}, {1, 2, 2}});
  EXPECT_EQ((Homes{0, 1, 1, 0}), rt::Replay::homes(often_seldom, {10, 10, 10, 10}, 2));
  EXPECT_EQ((Homes{0, 0, 0, 0}), rt::Replay::homes(often_seldom, {10, 10, 10, 10}, 1));
}

TEST(ReplayHomes, TheFirstOfEqualsGoesFirst) {
  const Partners none = partners(4, {});
  EXPECT_EQ((Homes{0, 0, 1, 1}), rt::Replay::homes(none, {10, 10, 10, 10}, 2));
  EXPECT_EQ((Homes{0, 1, 2, 3}), rt::Replay::homes(none, {10, 10, 10, 10}, 4));
}

TEST(ReplayHomes, ASliceTakesNoMoreThanItsShareButOneTapeOfAnyLength) {
  const Partners none = partners(3, {});
  EXPECT_EQ((Homes{0, 1, 1}), rt::Replay::homes(none, {100, 10, 10}, 2));
  EXPECT_EQ((Homes{0, 1, 1}), rt::Replay::homes(none, {100, 1, 1}, 3));
  EXPECT_EQ((Homes{0, 0, 1}), rt::Replay::homes(none, {10, 10, 100}, 2));
}

TEST(ReplayHomes, HandOversToAllTapesOfASliceCountTogether) {
  // 2 hands over to 0 and to 1, which are together, and so more often than 3 does to 0.
  const Partners together = partners(4, {{0, 1, 9}, {0, 2, 2}, {0, 3, 3}, {1, 2, 2}});
  EXPECT_EQ((Homes{0, 0, 0, 1}), rt::Replay::homes(together, {10, 10, 10, 30}, 2));
}

// A cubic search would take minutes.
TEST(ReplayHomes, ThousandsOfTapesAreDividedSoon) {
  constexpr std::uint32_t kTapes = 8000;
  std::vector<HandOvers> ring;
  for (std::uint32_t t = 0; t < kTapes; ++t) ring.push_back({t, (t + 1) % kTapes, 1});
  const Homes home = rt::Replay::homes(partners(kTapes, ring), std::vector<std::size_t>(kTapes, 2), 4);
  for (const std::uint32_t slice : {0u, 1u, 2u, 3u}) EXPECT_EQ(kTapes / 4, std::count(home.begin(), home.end(), slice));
}

}  // namespace
}  // namespace millstream
