// SPDX-License-Identifier: Apache-2.0
// Hosts that wait: nobody hangs, and nobody is told of a deadlock that is none.
#include "tests/conformance/runtime_waits.h"

#include <limits>

#include "millstream/runtime/objects.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

TEST_P(OnEveryBackend, AHostWithNobodyToServeItSleepsUntilItIsTold) {
  Profile profile;
  profile.orphan_wait_ms = 500;
  open(profile);
  Stream s = stream();
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  EXPECT_LT(cpu_time_of([&] { EXPECT_CODE(deadlock, s.synchronize()); }), CLOCKS_PER_SEC / 10);
}

TEST(InVirtualTime, AKernelThatEndsWhatItRunsOnIsRefused) {
  within(seconds(60), [&] {
    Device device = std::move(*Device::open(BackendId::sim, 0));
    Context context = device.primary();
    Stream s = std::move(*context.create_stream({}));
    Recording recording(context);
    Stream tape = recording.bound(StreamRole::head);
    EXPECT_OK(tape.launch(kNothing, {}, {}));
    recording.finish(tape);
    Bodies bodies;
    EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
      EXPECT_EQ(ErrorCode::in_callback, code(recording.model.close()));
      EXPECT_EQ(ErrorCode::in_callback, code(recording.model.unbind(tape)));
      EXPECT_EQ(ErrorCode::in_callback, code(device.reset(ResetMode::force)));
      return {};
    }));
    EXPECT_OK(recording.model.execute_async(s));
    EXPECT_OK(s.synchronize());
  });
}

// A submit between the last look and the sleep is seen.
TEST(InVirtualTime, ASubmitOfAnotherThreadEndsTheWaitThatItServes) {
  within(seconds(120), [&] {
    Profile profile;
    profile.orphan_wait_ms = 100;
    Device device = std::move(*Device::open(BackendId::sim, 0, profile));
    Context context = device.primary();
    Stream waits = std::move(*context.create_stream({})), records = std::move(*context.create_stream({}));
    int timeouts = 0;
    for (int i = 0; i < 3000; ++i) {
      Event e = std::move(*context.create_event(Event::Kind::latch, {}));
      EXPECT_OK(waits.wait(e));
      std::atomic<bool> begun{false};
      std::thread host([&] {
        begun = true;
        if (!waits.synchronize(seconds(10)).ok()) ++timeouts;
      });
      while (!begun) {
      }
      for (volatile int spin = 0; spin < (i * 37) % 4000;) spin = spin + 1;
      EXPECT_OK(records.record(e));
      host.join();
    }
    EXPECT_LE(timeouts, 3);  // a machine may stop a thread for longer than 100 ms
  });
}

TEST(InVirtualTime, WhoQueriesTakesNoPatienceFromWhoWaits) {
  within(seconds(60), [&] {
    Profile profile;
    profile.orphan_wait_ms = 2000;
    Device device = std::move(*Device::open(BackendId::sim, 0, profile));
    Context context = device.primary();
    Stream s = std::move(*context.create_stream({})), other = std::move(*context.create_stream({}));
    Event latch = std::move(*context.create_event(Event::Kind::latch, {}));
    EXPECT_OK(s.wait(latch));
    std::atomic<bool> over{false};
    std::thread queries([&] {
      while (!over) (void)*other.query();
    });
    std::thread records([&] {
      std::this_thread::sleep_for(milliseconds(150));
      EXPECT_OK(other.record(latch));
    });
    EXPECT_OK(s.synchronize());
    over = true;
    queries.join();
    records.join();
  });
}

// While another drives the device, which runs a model that would never end.
class BesideAnEndlessModel : public OnEveryBackend {
 protected:
  void SetUp() override {
    Profile profile;
    profile.tasks_per_stream = 2;
    profile.max_tasks_per_execution = 0;
    profile.engine_slots = {2};
    open(profile);
    tape.emplace(stream({.persistent = true, .huge = true}));
    model.emplace(std::move(*context->begin_model()));
    EXPECT_OK(model->bind(*tape, StreamRole::head));
    label.emplace(std::move(*context->create_label()));
    EXPECT_OK(Tape(*tape).place(*label));
    EXPECT_OK(bodies.launch(*tape, [this]() -> Result<void> {
      runs = true;
      return {};
    }));
    EXPECT_OK(Tape(*tape).jump(*label));
    EXPECT_OK(model->end_tasks(*tape));
    EXPECT_OK(model->finish());
    host = std::thread([this] { EXPECT_FALSE(model->execute().ok()); });
    while (!runs) std::this_thread::yield();
  }
  void TearDown() override {
    EXPECT_OK(model->abort());
    host.join();
    model.reset();
    label.reset();
    tape.reset();
    OnEveryBackend::TearDown();
  }
  Bodies bodies;
  std::atomic<bool> runs{false};
  std::optional<Stream> tape;
  std::optional<Label> label;
  std::optional<Model> model;
  std::thread host;
};

INSTANTIATE_TEST_SUITE_P(Backends, BesideAnEndlessModel, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

TEST_P(BesideAnEndlessModel, AHostsDeadlinePasses) {
  within(seconds(60), [&] {
    Stream s = stream();
    Event latch = event(Event::Kind::latch);
    EXPECT_OK(s.wait(latch));
    EXPECT_CODE(sync_timeout, s.synchronize(milliseconds(1)));
    EXPECT_CODE(event_sync_timeout, latch.synchronize(milliseconds(1)));
    EXPECT_OK(stream().record(latch));
    EXPECT_OK(s.synchronize());
  });
}

TEST_P(BesideAnEndlessModel, AHostFindsRoomInAFullStream) {
  within(seconds(60), [&] {
    Stream s = stream();
    for (int i = 0; i < 100; ++i) EXPECT_OK(s.launch(kNothing, {}, {}));
    EXPECT_OK(s.synchronize());
  });
}

// On each round another host submits something.
TEST_P(OnEveryBackend, AnEventIsNoDeadlockWhileAnotherHostIsAboutToRecordIt) {
  within(seconds(60), [&] {
    static const KernelFunction kLong{"long", nullptr, 1.5e6};
    for (int run = 0; run < 20; ++run) {
      Profile profile;
      profile.orphan_wait_ms = 1000;
      open(profile);
      Stream s = stream();
      Event latch = event(Event::Kind::latch);
      std::atomic<bool> over{false};
      std::thread waits([&] { EXPECT_OK(latch.synchronize()); });
      std::thread queries([&] {
        while (!over) (void)s.query();
      });
      for (int i = 0; i < 100; ++i) {
        EXPECT_OK(s.launch(kLong, {}, {}));
        EXPECT_OK(s.synchronize());
      }
      EXPECT_OK(s.record(latch));
      EXPECT_OK(s.synchronize());
      waits.join();
      over = true;
      queries.join();
    }
  });
}

// To look at many queued tasks takes longer than a slice of its wait.
TEST_P(OnEveryBackend, ADeadlockBeforeManyTasksIsToldToWhoWaitsForAnEventBehindThem) {
  within(seconds(60), [&] {
    Profile profile;
    profile.orphan_wait_ms = 200;
    profile.callback_stall_ms = 1;
    open(profile);
    Stream s = stream({.huge = true});
    Event latch = event(Event::Kind::latch), e = event();
    EXPECT_OK(s.wait(latch));
    for (int i = 0; i < 300000; ++i) EXPECT_OK(s.launch(kNothing, {}, {}));
    EXPECT_OK(s.record(e));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_CODE(deadlock, e.synchronize());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(4));
  });
}

TEST_P(OnEveryBackend, WhoWaitsForALatchIsToldAtOnceThatItsContextRecovered) {
  within(seconds(60), [&] {
    Profile profile;
    profile.orphan_wait_ms = 20000;
    open(profile);
    Context second = std::move(*device->create_context());
    Stream s = std::move(*second.create_stream({}));
    std::vector<Event> latches;
    for (int i = 0; i < 20000; ++i) latches.push_back(std::move(*second.create_event(Event::Kind::latch, {})));
    EXPECT_OK(s.set_failure_mode(FailureMode::stop));
    std::thread waits([&] { EXPECT_CODE(context_stopped, latches.back().synchronize()); });
    std::this_thread::sleep_for(milliseconds(50));
    static const KernelFunction kFails{"fails", [](const KernelCall&) -> Result<void> { return Error{ErrorCode::bad_value, "no"}; }, 1};
    EXPECT_OK(s.launch(kFails, {}, {}));
    EXPECT_FALSE(s.synchronize().ok());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_OK(second.recover());
    waits.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  });
}

TEST(InVirtualTime, WhatIsRefusedInAKernelHasNoEffect) {
  Device device = std::move(*Device::open(BackendId::sim, 0, Profile{}));
  Context context = device.primary();
  Recording recording(context);
  Stream tape = recording.bound(StreamRole::head);
  Bodies bodies;
  int ran = 0;
  EXPECT_OK(bodies.launch(tape, [&ran]() -> Result<void> {
    ++ran;
    return {};
  }));
  recording.finish(tape);
  Stream s = std::move(*context.create_stream({})), aborted = std::move(*context.create_stream({})), closed = std::move(*context.create_stream({}));
  Event latch = std::move(*context.create_event(Event::Kind::latch, {}));
  int went_on = 0;
  EXPECT_OK(aborted.wait(latch));
  EXPECT_OK(bodies.launch(aborted, [&went_on]() -> Result<void> {
    ++went_on;
    return {};
  }));
  auto destroyed = std::make_optional(std::move(*context.create_stream({})));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    EXPECT_EQ(ErrorCode::in_callback, code(recording.model.execute()));
    EXPECT_EQ(ErrorCode::in_callback, code(aborted.abort()));
    EXPECT_EQ(ErrorCode::in_callback, code(closed.close(Close::drain)));
    destroyed.reset();  // with its last task
    for (std::uint32_t i = 0; i < device.profile().tasks_per_stream; ++i) EXPECT_EQ(ErrorCode::in_callback, code(closed.synchronize()));
    EXPECT_EQ(ErrorCode{}, code(closed.try_launch(kNothing, {}, {})));  // there is room
    return {};
  }));
  EXPECT_OK(s.record(latch));
  EXPECT_OK(s.synchronize());
  EXPECT_OK(aborted.synchronize());
  EXPECT_OK(closed.launch(kNothing, {}, {}));
  EXPECT_OK(context.synchronize());
  EXPECT_EQ(0, ran);
  EXPECT_EQ(1, went_on);
}

TEST_P(OnEveryBackend, AnEventsPatienceIsNotThatOfHostFunctions) {
  within(seconds(60), [&] {
    Profile profile;
    profile.callback_stall_ms = 20;
    profile.orphan_wait_ms = 3000;
    open(profile);
    Event latch = event(Event::Kind::latch);
    Stream s = stream();
    std::thread records([&] {
      std::this_thread::sleep_for(milliseconds(120));
      EXPECT_OK(s.record(latch));
    });
    EXPECT_OK(latch.synchronize());
    records.join();
  });
}

TEST_P(OnEveryBackend, AHostThatSpinsIsToldOfADeadlockHoweverSoonHostFunctionsStall) {
  within(seconds(60), [&] {
    for (const std::uint32_t stall_ms : {0u, 20u, 90u}) {
      Profile profile;
      profile.callback_stall_ms = stall_ms;
      profile.orphan_wait_ms = 200;
      open(profile);
      Stream s = stream({.fast_sync = true});
      Event latch = event(Event::Kind::latch);
      EXPECT_OK(s.wait(latch));
      EXPECT_CODE(deadlock, s.synchronize());
    }
  });
}

TEST_P(OnEveryBackend, OneWorkerThatIsAHostServesHostsThatWaitOtherwise) {
  within(seconds(60), [&] {
    Profile profile;
    profile.workers = 1;
    profile.host_helps = true;
    profile.tasks_per_stream = 16;
    for (int how = 0; how < 4; ++how) {
      open(profile);
      Stream s = stream();
      Event e = event();
      EXPECT_OK(s.launch(kNothing, {}, {}));
      EXPECT_OK(s.record(e));
      if (how == 0) EXPECT_OK(e.synchronize());
      if (how == 1) EXPECT_OK(s.synchronize(seconds(20)));
      while (how == 2 && !*s.query()) std::this_thread::yield();
      for (int i = 0; how == 3 && i < 100; ++i) EXPECT_OK(s.launch(kNothing, {}, {}));
      EXPECT_OK(context->synchronize());
    }
  });
}

TEST_P(OnEveryBackend, ADeadlockIsFoundWithoutAHostThatHelpsThoughItIsTheOnlyWorker) {
  within(seconds(60), [&] {
    Profile profile;
    profile.workers = 1;
    profile.host_helps = true;
    open(profile);
    Stream s = stream();
    Event latch = event(Event::Kind::latch);
    EXPECT_OK(s.wait(latch));
    EXPECT_CODE(deadlock, s.synchronize(seconds(20)));
  });
}

// Each of its waits makes the device look again.
TEST_P(OnEveryBackend, WhoWaitsAgainAndAgainDoesNotPutOffTheReportOfAnother) {
  within(seconds(60), [&] {
    Stream s = stream();
    Event latch = event(Event::Kind::latch), other = event(Event::Kind::latch);
    EXPECT_OK(s.wait(latch));
    std::atomic<bool> over{false};
    std::thread host([&] {
      while (!over) (void)other.synchronize(milliseconds(5));
    });
    EXPECT_CODE(deadlock, s.synchronize());
    over = true;
    host.join();
  });
}

TEST_P(OnEveryBackend, ADeadlineHoldsHoweverSoonHostFunctionsStall) {
  within(seconds(60), [&] {
    Profile profile;
    profile.callback_stall_ms = 20;
    profile.orphan_wait_ms = 5000;
    open(profile);
    Stream s = stream();
    Event latch = event(Event::Kind::latch);
    EXPECT_OK(s.wait(latch));
    EXPECT_CODE(sync_timeout, s.synchronize(milliseconds(100)));
    EXPECT_OK(stream().record(latch));
    EXPECT_OK(s.synchronize());
  });
}

TEST(ATrace, NumbersCallbackThreadsBehindTheWorkers) {
  for (const bool helps : {false, true}) {
    for (const std::uint32_t workers : {1u, 2u}) {
      Profile profile;
      profile.workers = workers;
      profile.host_helps = helps;
      Device device = std::move(*Device::open(BackendId::cpu, 0, profile));
      device.start_trace();
      EXPECT_OK(device.primary().default_stream().host_func([](void*) {}, nullptr));
      EXPECT_OK(device.primary().synchronize());
      device.stop_trace();
      std::uint32_t ran = 0;
      for (const rt::TraceEvent& e : device.take_trace()) {
        if (e.kind == rt::TraceEvent::Kind::ended && e.task == rt::TaskKind::host_func) ran = e.worker;
      }
      EXPECT_EQ(helps && workers == 1 ? 2u : workers, ran);  // one more stands by
    }
  }
}

TEST_P(OnEveryBackend, AHostIsToldOfADeadlockAlthoughAnotherThatHelpedHasLeft) {
  within(seconds(120), [&] {
    Profile profile;
    profile.host_helps = true;
    profile.orphan_wait_ms = 20;
    for (const std::uint32_t workers : {1u, 2u}) {
      profile.workers = workers;
      open(profile);
      for (int i = 0; i < 50; ++i) {
        Stream stuck = stream(), other = stream();
        Event latch = event(Event::Kind::latch);
        EXPECT_OK(stuck.wait(latch));
        std::thread told([&] { EXPECT_CODE(deadlock, stuck.synchronize()); });
        EXPECT_OK(other.launch(kNothing, {}, {}));
        EXPECT_OK(other.synchronize());
        told.join();
      }
    }
  });
}

TEST_P(OnEveryBackend, WithoutPatienceForOrphansAnEventsDeadlineHolds) {
  within(seconds(60), [&] {
    Profile profile;
    profile.orphan_wait_ms = 0;
    open(profile);
    Event latch = event(Event::Kind::latch);
    EXPECT_FALSE(latch.synchronize(milliseconds(10)).ok());  // whichever is told first
    EXPECT_CODE(deadlock, latch.synchronize());
  });
}

TEST_P(OnEveryBackend, TheLongestDeadlineIsNotOverAtOnce) {
  const Deadline longest = std::chrono::nanoseconds(std::numeric_limits<std::int64_t>::max());
  Stream s = stream(), other = stream();
  Event latch = event(Event::Kind::latch);
  Bodies bodies;
  EXPECT_OK(s.wait(latch, longest));
  EXPECT_OK(bodies.launch(other, []() -> Result<void> {
    std::this_thread::sleep_for(milliseconds(30));
    return {};
  }));
  EXPECT_OK(other.record(latch));
  EXPECT_OK(s.synchronize(longest));
  EXPECT_OK(latch.synchronize(longest));
  EXPECT_OK(context->synchronize(longest));
}

TEST_P(OnEveryBackend, AQueryNeverWaitsForTheTaskThatRuns) {
  within(seconds(60), [&] {
    Stream s = stream(), other = stream();
    Bodies bodies;
    std::atomic<bool> begun{false}, asked{false};
    EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
      begun = true;
      while (!asked) std::this_thread::yield();
      return {};
    }));
    std::thread host([&] { EXPECT_OK(s.synchronize()); });
    while (!begun) std::this_thread::yield();
    EXPECT_TRUE(other.query().ok());
    EXPECT_FALSE(*s.query());
    asked = true;
    host.join();
  });
}

TEST_P(OnEveryBackend, AHostWhoseWaitIsOverLeavesWhileAHostFunctionRuns) {
  within(seconds(60), [&] {
    Stream s = stream();
    Event e = event();
    Bodies bodies;
    struct Meeting {
      std::atomic<bool> begun{false}, waits{false}, over{false};
    } meeting;
    EXPECT_OK(bodies.launch(s, [&meeting]() -> Result<void> {
      meeting.begun = true;
      while (!meeting.waits) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(20));
      return {};
    }));
    EXPECT_OK(s.record(e));
    EXPECT_OK(s.host_func(
        [](void* p) {
          while (!static_cast<Meeting*>(p)->over) std::this_thread::yield();
        },
        &meeting));
    std::thread host([&] { EXPECT_OK(s.synchronize()); });
    while (!meeting.begun) std::this_thread::yield();
    meeting.waits = true;
    EXPECT_OK(e.synchronize());
    meeting.over = true;
    host.join();
  });
}

// Many of a kind end before the one that the host waits for: it sleeps again between them.
TEST_P(OnEveryBackend, AHostWhoseWaitIsOverLeavesWhileAKernelRuns) {
  constexpr int kMany = 1000;
  static const KernelFunction kSooner{"sooner", nullptr, 500, 0};
  static const KernelFunction kLater{"later", call_body, 1000, 0};
  struct Meeting {
    std::atomic<bool> begun{false}, waits{false}, over{false};
  };
  Context second = std::move(*device->create_context());
  Stream other = std::move(*second.create_stream({}));
  Stream s = context->default_stream();
  std::vector<Stream> more;
  for (int i = 0; i < kMany; ++i) more.push_back(stream());
  Event e = event(), many = event(Event::Kind::latch);
  Recording recording(*context);
  Stream tape = recording.bound(StreamRole::head);
  recording.finish(tape);
  struct Wait {
    std::function<void()> before;
    std::function<Result<void>()> call;
  };
  const Wait waits[] = {{[] {}, [&] { return context->synchronize(); }},
                        {[&] {
                           for (int i = 0; i < kMany; ++i) EXPECT_OK(s.record(many));
                           EXPECT_OK(s.record(e));
                         },
                         [&] { return e.synchronize(); }},
                        {[&] {
                           for (int i = 0; i < kMany; ++i) EXPECT_OK(recording.model.execute_async(s));
                         },
                         [&] { return recording.model.execute(); }}};
  for (const Wait& wait : waits) {
    within(seconds(60), [&] {
      Meeting meeting;
      Body stays = [&meeting]() -> Result<void> {
        EXPECT_TRUE(comes([&] { return meeting.over.load(); }));
        return {};
      };
      Body* const later = &stays;
      EXPECT_OK(s.launch(kSooner, {}, {}));
      wait.before();
      EXPECT_OK(other.host_func(
          [](void* p) {
            auto& met = *static_cast<Meeting*>(p);
            met.begun = true;
            while (!met.waits) std::this_thread::yield();
            std::this_thread::sleep_for(milliseconds(50));
          },
          &meeting));
      EXPECT_OK(other.launch(kLater, {}, std::as_bytes(std::span(&later, 1))));
      std::thread host([&] { EXPECT_OK(other.synchronize()); });
      while (!meeting.begun) std::this_thread::yield();
      meeting.waits = true;
      EXPECT_OK(wait.call());
      meeting.over = true;
      host.join();
    });
  }
}

TEST(InVirtualTime, AKernelThatWaitsForItsDeviceIsRefused) {
  within(seconds(60), [&] {
    Profile profile;
    profile.tasks_per_stream = 4;
    Device device = std::move(*Device::open(BackendId::sim, 0, profile));
    Context context = device.primary();
    Stream s = std::move(*context.create_stream({})), other = std::move(*context.create_stream({}));
    Event e = std::move(*context.create_event(Event::Kind::snapshot, {}));
    Bodies bodies;
    const Body body = [&]() -> Result<void> {
      EXPECT_TRUE(other.query().ok());
      EXPECT_EQ(ErrorCode::in_callback, code(other.synchronize()));
      EXPECT_EQ(ErrorCode::in_callback, code(context.synchronize()));
      Result<void> launched;
      for (int i = 0; i <= 4 && launched.ok(); ++i) launched = other.launch(kNothing, {}, {});
      EXPECT_EQ(ErrorCode::in_callback, code(launched));
      EXPECT_EQ(ErrorCode::in_callback, code(other.close()));
      return {};
    };
    EXPECT_OK(bodies.launch(s, body));
    EXPECT_OK(s.record(e));
    EXPECT_OK(s.synchronize());
  });
}

TEST_P(OnEveryBackend, AThreadThatWaitsForTheStreamOfTheHostFunctionThatWaitsForItIsTold) {
  within(seconds(60), [&] {
    Profile profile;
    profile.callback_stall_ms = 100;
    open(profile);
    for (const Deadline deadline : {Deadline(), Deadline(seconds(30))}) {
      struct Meeting {
        Stream* stream;
        Deadline deadline;
        Result<void> told;
      } meeting{nullptr, deadline, {}};
      Stream s = stream();
      meeting.stream = &s;
      EXPECT_OK(s.host_func(
          [](void* p) {
            auto& m = *static_cast<Meeting*>(p);
            std::thread helper([&m] { m.told = m.stream->synchronize(m.deadline); });
            helper.join();
          },
          &meeting));
      EXPECT_OK(s.record(*std::make_unique<Event>(event())));
      Result<void> host = context->synchronize();  // may be told too
      EXPECT_TRUE(host.ok() || host.error().code == ErrorCode::deadlock);
      EXPECT_OK(s.synchronize());
      ASSERT_FALSE(meeting.told.ok());
      EXPECT_EQ(ErrorCode::deadlock, meeting.told.error().code) << to_string(meeting.told.error());
      EXPECT_NE(std::string::npos, meeting.told.error().message.find("host function, task 0")) << meeting.told.error().message;
    }
  });
}

TEST_P(OnEveryBackend, AHostFunctionThatTakesLongIsNoDeadlockToWhoWaitsForAnotherStream) {
  Profile profile;
  profile.callback_stall_ms = 20;
  open(profile);
  Stream s = stream(), other = stream();
  EXPECT_OK(s.host_func([](void*) { std::this_thread::sleep_for(milliseconds(120)); }, nullptr));
  std::thread host([&] { EXPECT_OK(other.synchronize()); });
  EXPECT_OK(other.synchronize());
  host.join();
}

TEST_P(OnEveryBackend, StreamsDestroyedAtOnceGiveTheirNumbersBack) {
  Profile profile;
  profile.max_streams = 8;
  open(profile);
  for (int i = 0; i < 200; ++i) {
    Result<Stream> made = context->create_stream({});
    for (int look = 0; !made.ok() && look < 2000; ++look) {  // on cpu its worker may need a moment
      std::this_thread::sleep_for(milliseconds(1));
      made = context->create_stream({});
    }
    ASSERT_TRUE(made.ok()) << to_string(made.error());
    EXPECT_OK(made->launch(kNothing, {}, {}));
    EXPECT_OK(made->close(Close::drop));
  }
}

TEST_P(OnEveryBackend, ARecordThatMayWaitForAnIdGetsTheOneOfARecordThatHasEnded) {
  Profile profile;
  profile.max_events = 4;
  profile.event_wait_ms = 5000;
  open(profile);
  Stream s = stream();
  Event e = event();
  for (int i = 0; i < 100; ++i) {
    EXPECT_OK(s.launch(kNothing, {}, {}));
    EXPECT_OK(s.record(e));
  }
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, ADeadlockIsToldBeforeAFailureThatCameFirst) {
  Context second = std::move(*device->create_context());
  Stream fails = std::move(*second.create_stream({})), stuck = std::move(*second.create_stream({}));
  Event latch = std::move(*second.create_event(Event::Kind::latch, {}));
  Bodies bodies;
  EXPECT_OK(bodies.launch(fails, []() -> Result<void> { return Error{ErrorCode::kernel_failed, "bad"}; }));
  EXPECT_OK(stuck.wait(latch));
  EXPECT_CODE(deadlock, device->reset(ResetMode::force));
}

TEST_P(OnEveryBackend, AContextsWaitThatWasDroppedSaysSo) {
  Stream s = stream();
  Bodies bodies;
  std::atomic<bool> begun{false}, go{false};
  std::thread host;
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    begun = true;
    while (!go) std::this_thread::yield();
    return {};
  }));
  Result<void> told;
  host = std::thread([&] { told = context->synchronize(); });
  while (!begun || s.state()->lane.submitted.load() < 2) std::this_thread::yield();
  std::thread aborts([&] { EXPECT_OK(s.abort()); });
  while (s.state()->lane.drop_until.load() < 2) std::this_thread::yield();
  go = true;
  aborts.join();
  host.join();
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(ErrorCode::stream_aborted, told.error().code) << to_string(told.error());
}

TEST_P(OnEveryBackend, AContextThatEndsRunsTheExecutionsOfStreamsThatWereLetGo) {
  Context second = std::move(*device->create_context());
  Stream gate = std::move(*second.create_stream({})), tape = std::move(*second.create_stream({.persistent = true}));
  Bodies bodies;
  int ran = 0;
  Model model = std::move(*second.begin_model());
  EXPECT_OK(model.bind(tape, StreamRole::head));
  EXPECT_OK(bodies.launch(tape, [&ran]() -> Result<void> {
    ++ran;
    return {};
  }));
  EXPECT_OK(model.end_tasks(tape));
  EXPECT_OK(model.finish());
  std::atomic<bool> go{false};
  std::optional<Stream> left = std::move(*second.create_stream({}));
  EXPECT_OK(bodies.launch(*left, [&go]() -> Result<void> {
    std::this_thread::sleep_for(milliseconds(30));
    return {};
  }));
  EXPECT_OK(model.execute_async(*left));
  EXPECT_OK(bodies.launch(*left, []() -> Result<void> { return Error{ErrorCode::kernel_failed, "slow and bad"}; }));
  EXPECT_OK(gate.host_func([](void* p) { static_cast<std::optional<Stream>*>(p)->reset(); }, &left));
  EXPECT_OK(gate.synchronize());
  EXPECT_CODE(kernel_failed, second.close());
  EXPECT_EQ(1, ran);
}

TEST_P(OnEveryBackend, WhoWaitsForALatchWhoseContextRecoversIsTold) {
  Context second = std::move(*device->create_context());
  Stream fails = std::move(*second.create_stream({})), s = stream();
  EXPECT_OK(fails.set_failure_mode(FailureMode::stop));
  Event latch = std::move(*second.create_event(Event::Kind::latch, {}));
  Bodies bodies;
  EXPECT_OK(s.wait(latch));
  EXPECT_OK(bodies.launch(fails, []() -> Result<void> { return Error{ErrorCode::kernel_failed, "bad"}; }));
  EXPECT_FALSE(fails.synchronize().ok());
  EXPECT_OK(second.recover());
  const Result<void> told = s.synchronize();
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(ErrorCode::context_stopped, told.error().code) << to_string(told.error());
  EXPECT_NE(std::string::npos, to_string(told.error()).find("recovered")) << to_string(told.error());
  EXPECT_OK(std::move(*second.create_stream({})).record(latch));
  EXPECT_OK(s.wait(latch));
  EXPECT_OK(s.synchronize());
}

TEST_P(OnEveryBackend, ACycleNeedNotWaitForTheDeadlineOfAnother) {
  Stream a = stream(), b = stream(), other = stream();
  Event x = event(Event::Kind::latch), y = event(Event::Kind::latch), z = event(Event::Kind::latch);
  for (int i = 0; i < 3; ++i) EXPECT_OK(other.launch(kNothing, {}, {}));
  EXPECT_OK(other.wait(z, milliseconds(1)));
  EXPECT_CODE(wait_timeout, other.synchronize());
  EXPECT_OK(other.wait(z, seconds(20)));
  EXPECT_OK(a.wait(x));
  EXPECT_OK(a.record(y));
  EXPECT_OK(b.wait(y));
  EXPECT_OK(b.record(x));
  const std::uint64_t begin = device->now_ns();
  EXPECT_CODE(deadlock, a.synchronize(seconds(10)));
  EXPECT_LT(device->now_ns() - begin, std::uint64_t{9'000'000'000});
  EXPECT_OK(stream().record(z));
  EXPECT_OK(other.synchronize());
}

// The first is let go by a host, and starts the tape that the second waits for.
TEST_P(OnEveryBackend, AModelsDeadlockIsToldAtOnceThoughAStreamBesideItWaitsForAHost) {
  Profile profile;
  profile.orphan_wait_ms = 20000;
  open(profile);
  Event held = event(Event::Kind::latch), inside = event();
  Stream beside = stream();
  EXPECT_OK(beside.wait(held));
  Stream waits = stream({.persistent = true}), never_started = stream({.persistent = true});
  Model model = std::move(*context->begin_model());
  EXPECT_OK(model.bind(waits, StreamRole::head));
  EXPECT_OK(model.bind(never_started, StreamRole::activated));
  EXPECT_OK(never_started.record(inside));
  EXPECT_OK(waits.wait(inside));
  for (Stream* s : {&waits, &never_started}) EXPECT_OK(model.end_tasks(*s));
  EXPECT_OK(model.finish());
  const std::uint64_t begin = device->now_ns();
  EXPECT_CODE(deadlock, model.execute());
  EXPECT_LT(device->now_ns() - begin, std::uint64_t{15'000'000'000});
  EXPECT_OK(stream().record(held));
  EXPECT_OK(beside.synchronize());
}

TEST_P(OnEveryBackend, ATapeThatAnotherMayStillStartIsNoDeadlock) {
  Event outside = event(Event::Kind::latch), inside = event();
  Stream first = stream({.persistent = true}), second = stream({.persistent = true}), third = stream({.persistent = true}), host = stream();
  Model model = std::move(*context->begin_model());
  EXPECT_OK(model.bind(first, StreamRole::head));
  EXPECT_OK(model.bind(second, StreamRole::head));
  EXPECT_OK(model.bind(third, StreamRole::activated));
  EXPECT_OK(first.wait(outside));
  EXPECT_OK(Tape(first).activate(third));
  EXPECT_OK(third.record(inside));
  EXPECT_OK(second.wait(inside));
  for (Stream* s : {&first, &second, &third}) EXPECT_OK(model.end_tasks(*s));
  EXPECT_OK(model.finish());
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_OK(host.record(outside));
    if (GetParam() == BackendId::sim) EXPECT_OK(host.synchronize());
  });
  EXPECT_OK(model.execute());
  later.join();
}

TEST_P(OnEveryBackend, AHostFunctionThatIsDroppedWhileItWaitsForItsTurnDoesNotRun) {
  struct Turn {
    std::atomic<bool> begun{false}, go{false}, ran{false};
  } turn;
  Stream first = stream(), second = stream();
  EXPECT_OK(first.host_func(
      [](void* p) {
        auto& t = *static_cast<Turn*>(p);
        t.begun = true;
        while (!t.go) std::this_thread::yield();
      },
      &turn));
  std::thread host([&] { EXPECT_OK(first.synchronize()); });
  while (!turn.begun) std::this_thread::yield();
  EXPECT_OK(second.host_func([](void* p) { static_cast<Turn*>(p)->ran = true; }, &turn));
  std::this_thread::sleep_for(milliseconds(20));
  std::thread aborts([&] { EXPECT_OK(second.abort()); });
  while (second.state()->lane.drop_until.load() == 0) std::this_thread::yield();
  turn.go = true;
  aborts.join();
  host.join();
  EXPECT_FALSE(turn.ran);
}

TEST(AProfile, ThatNoDeviceCouldHaveIsRefused) {
  Profile many, backwards, slotless, still, crawling, full, early;
  many.least_priority = 40;
  backwards.least_priority = -1;
  slotless.engine_slots = {1, 0};
  still.copy_bytes_per_us = 0;
  crawling.copy_bytes_per_us = 1e-300;
  full.tasks_per_stream = 0;
  early.launch_us = -1;
  for (const Profile& profile : {many, backwards, slotless, still, crawling, full, early}) {
    for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
      const Result<Device> opened = Device::open(backend, 0, profile);
      ASSERT_FALSE(opened.ok());
      EXPECT_EQ(ErrorCode::bad_value, opened.error().code);
    }
  }
}

TEST_P(OnEveryBackend, AKernelThatTakesATimeThatThereIsNotIsRefused) {
  Stream s = stream();
  for (const double us : {-1.0, 2e12, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const KernelFunction kernel{"kernel", nullptr, us};
    EXPECT_CODE(bad_value, s.launch(kernel, {}, {}));
  }
}

TEST(ADeviceWithoutCallbackThreads, TakesNoHostFunction) {
  Profile profile;
  profile.callback_threads = 0;
  Device device = std::move(*Device::open(BackendId::cpu, 0, profile));
  EXPECT_CODE(unsupported, device.primary().default_stream().host_func([](void*) {}, nullptr));
}

TEST(ALongCycle, IsToldInALineOfSomeStreams) {
  Profile profile;
  profile.orphan_wait_ms = 50;
  Device device = std::move(*Device::open(BackendId::sim, 0, profile));
  Context context = device.primary();
  std::vector<Stream> streams;
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) {
    streams.push_back(std::move(*context.create_stream({})));
    events.push_back(std::move(*context.create_event(Event::Kind::latch, {})));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_OK(streams[i].wait(events[i]));
    EXPECT_OK(streams[i].record(events[(i + 1) % events.size()]));
  }
  const Result<void> told = streams[0].synchronize();
  ASSERT_FALSE(told.ok());
  const std::string text = to_string(told.error());
  EXPECT_LT(text.size(), 6000u);
  EXPECT_NE(std::string::npos, text.find("and so on over 284 more")) << text;
  const std::string line = text.substr(text.find("the cycle: "), text.find("and so on") - text.find("the cycle: "));
  std::size_t named = 0;
  for (std::size_t at = line.find(", recorded by "); at != std::string::npos; at = line.find(", recorded by ", at + 1)) ++named;
  EXPECT_EQ(16u, named) << line;
}

}  // namespace
}  // namespace millstream
