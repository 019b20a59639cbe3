// SPDX-License-Identifier: Apache-2.0
// Devices that wait for each other, on one back-end and on two: nobody hangs, and nobody is told of a deadlock that is none.
#include "tests/conformance/runtime_waits.h"

#include <sys/resource.h>

#include <csignal>
#include <limits>

namespace millstream {
namespace {

class TwoDevices : public testing::TestWithParam<BackendId> {
 protected:
  void SetUp() override {
    Profile profile;
    profile.devices = 2;
    profile.workers = 2;
    profile.orphan_wait_ms = 60;
    for (const int i : {0, 1}) {
      device[i].emplace(std::move(*Device::open(GetParam(), i, profile)));
      stream[i].emplace(std::move(*device[i]->primary().create_stream({})));
    }
  }
  void TearDown() override {
    for (const int i : {0, 1}) {
      stream[i].reset();
      device[i].reset();
    }
  }
  Event event(int i, Event::Kind kind = Event::Kind::snapshot) { return std::move(*device[i]->primary().create_event(kind, {})); }
  std::optional<Device> device[2];
  std::optional<Stream> stream[2];
};

INSTANTIATE_TEST_SUITE_P(Backends, TwoDevices, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

TEST_P(TwoDevices, AWaitForADeviceThatRunsTowardsItsRecordIsNoDeadlock) {
  within(seconds(60), [&] {
    Bodies bodies;
    int ran = 0;
    Event e = event(1);
    for (int i = 0; i < 4; ++i) {
      EXPECT_OK(bodies.launch(*stream[1], [&ran]() -> Result<void> {
        std::this_thread::sleep_for(milliseconds(60));
        ++ran;
        return {};
      }));
    }
    EXPECT_OK(stream[1]->record(e));
    EXPECT_OK(stream[0]->wait(e));
    int seen = 0;
    EXPECT_OK(bodies.launch(*stream[0], [&]() -> Result<void> {
      seen = ran;
      return {};
    }));
    EXPECT_OK(stream[0]->synchronize());
    EXPECT_EQ(4, seen);
  });
}

TEST_P(TwoDevices, AQueryMovesWhatItsStreamWaitsForOnAnotherDevice) {
  within(seconds(60), [&] {
    Event e = event(1);
    EXPECT_OK(stream[1]->launch(kNothing, {}, {}));
    EXPECT_OK(stream[1]->record(e));
    EXPECT_OK(stream[0]->wait(e));
    while (!*stream[0]->query()) std::this_thread::yield();
  });
}

TEST_P(TwoDevices, ThatWaitForEachOtherAreTold) {
  within(seconds(60), [&] {
    Event a = event(0, Event::Kind::latch), b = event(1, Event::Kind::latch);
    EXPECT_OK(stream[0]->wait(b));
    EXPECT_OK(stream[0]->record(a));
    EXPECT_OK(stream[1]->wait(a));
    EXPECT_OK(stream[1]->record(b));
    EXPECT_FALSE(stream[0]->synchronize().ok());
    (void)stream[1]->synchronize();
  });
}

TEST_P(TwoDevices, AWaitForADeviceThatHasEndedIsToldOfADeadlock) {
  within(seconds(60), [&] {
    Event e = event(1, Event::Kind::latch);
    EXPECT_OK(stream[0]->wait(e));
    stream[1].reset();
    EXPECT_OK(device[1]->reset(ResetMode::force));
    EXPECT_CODE(deadlock, stream[0]->synchronize());
  });
}

// What wakes a stream of another device is done with that device before it ends.
TEST_P(TwoDevices, ADeviceMayEndAsSoonAsAnotherHasWokenItsStreams) {
  Profile profile = device[0]->profile();
  for (int i = 0; i < 200; ++i) {
    Event e = event(1);
    EXPECT_OK(stream[1]->launch(kNothing, {}, {}));
    EXPECT_OK(stream[1]->record(e));
    EXPECT_OK(stream[0]->wait(e));
    stream[0].reset();
    device[0].reset();
    device[0].emplace(std::move(*Device::open(GetParam(), 0, profile)));
    stream[0].emplace(std::move(*device[0]->primary().create_stream({})));
  }
}

TEST_P(TwoDevices, TheProfileOfAnOpenDeviceNeedNotBeGivenAgain) {
  Result<Device> again = Device::open(GetParam(), 1);
  EXPECT_TRUE(again.ok()) << to_string(again.error());
}

// As many devices, on these back-ends, with a stream each.
struct Devices {
  explicit Devices(const std::vector<BackendId>& backends, std::uint32_t orphan_wait_ms = 60) {
    Profile profile;
    profile.devices = 8;
    profile.workers = 2;
    profile.orphan_wait_ms = orphan_wait_ms;
    for (std::size_t i = 0; i < backends.size(); ++i) {
      devices.push_back(std::move(*Device::open(backends[i], static_cast<std::int32_t>(i), profile)));
      streams.push_back(std::move(*devices.back().primary().create_stream({})));
      events.push_back(std::move(*devices.back().primary().create_event(Event::Kind::latch, {})));
    }
  }
  ~Devices() {
    events.clear();
    streams.clear();
    for (const Device& device : devices) {
      if (device.state()->lanes_parked != 0) continue;
      EXPECT_TRUE(comes([&] { return device.state()->lanes_abroad == 0; }));  // who let its last lane go may still be at it
    }
  }
  /// Behind what is queued: each waits for its event of the next.
  void chain() {
    for (std::size_t i = devices.size() - 1; i > 0; --i) {
      EXPECT_OK(streams[i].record(events[i]));
      EXPECT_OK(streams[i - 1].wait(events[i]));
    }
  }
  std::vector<Device> devices;
  std::vector<Stream> streams;
  std::vector<Event> events;
};

TEST(DevicesOfTwoBackends, WaitForEachOther) {
  for (const auto& backends : {std::vector{BackendId::cpu, BackendId::sim}, std::vector{BackendId::sim, BackendId::cpu}}) {
    within(seconds(60), [&] {
      Devices all(backends);
      for (int i = 0; i < 1000; ++i) EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      EXPECT_OK(all.streams[0].synchronize());
    });
  }
}

TEST(ThreeDevices, WaitForWhatRunsOnTheLast) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({backend, backend, backend});
      Bodies bodies;
      EXPECT_OK(bodies.launch(all.streams[2], []() -> Result<void> {
        std::this_thread::sleep_for(milliseconds(300));
        return {};
      }));
      all.chain();
      EXPECT_OK(all.streams[0].synchronize());
    });
  }
}

// Of all threads of the process, so far.
long wake_ups() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

TEST(ADeviceThatWaitsForAnother, SleepsMeanwhile) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({backend, backend});
      Bodies bodies;
      std::atomic<bool> begun{false};
      EXPECT_OK(bodies.launch(all.streams[1], [&begun]() -> Result<void> {
        begun = true;
        std::this_thread::sleep_for(milliseconds(500));
        return {};
      }));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      std::thread host([&] { EXPECT_OK(all.streams[1].synchronize()); });
      while (!begun) std::this_thread::yield();
      const long before = wake_ups();
      EXPECT_LT(cpu_time_of([&] { EXPECT_OK(all.streams[0].synchronize()); }), CLOCKS_PER_SEC / 10);
      if (backend == BackendId::cpu) {
        EXPECT_LT(wake_ups() - before, 250);  // it looks every 16 ms
      }
      host.join();
    });
  }
}

TEST(TwoDevicesOneOfThem, WithADeadlineIsNotStandingStill) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({backend, backend});
      Event never_recorded = std::move(*all.devices[1].primary().create_event(Event::Kind::latch, {}));
      Stream late = std::move(*all.devices[1].primary().create_stream({}));
      EXPECT_OK(late.wait(never_recorded, milliseconds(300)));
      EXPECT_OK(late.host_func([](void*) {}, nullptr));
      EXPECT_OK(all.streams[1].wait(never_recorded, milliseconds(300)));
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      const std::uint64_t begin = all.devices[1].now_ns();
      EXPECT_FALSE(all.streams[0].synchronize().ok());
      EXPECT_GE(all.devices[1].now_ns() - begin, std::uint64_t{300'000'000});  // not before those
      (void)all.devices[1].primary().synchronize();
    });
  }
}

TEST(InVirtualTime, AKernelThatWaitsForADeviceThatWaitsForItsOwnIsTold) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim});
    Bodies bodies;
    EXPECT_OK(all.streams[1].wait(all.events[0]));
    EXPECT_OK(bodies.launch(all.streams[0], [&]() -> Result<void> {
      EXPECT_EQ(ErrorCode::deadlock, code(all.streams[1].synchronize()));
      return {};
    }));
    EXPECT_OK(all.streams[0].record(all.events[0]));
    EXPECT_OK(all.streams[0].synchronize());
  });
}

TEST(InVirtualTime, AStreamsNumberComesBackWhenAnotherDeviceHasEndedWhatItWaitsFor) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim});
    std::vector<Stream> rest;
    for (auto made = all.devices[0].primary().create_stream({}); made.ok(); made = all.devices[0].primary().create_stream({})) {
      rest.push_back(std::move(*made));
    }
    auto* destroyed = new Stream(std::move(rest.back()));
    rest.pop_back();
    for (int i = 0; i < 1000; ++i) EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
    EXPECT_OK(all.streams[1].record(all.events[1]));
    EXPECT_OK(destroyed->wait(all.events[1]));
    EXPECT_OK(all.streams[0].host_func([](void* stream) { delete static_cast<Stream*>(stream); }, destroyed));
    EXPECT_OK(all.streams[0].synchronize());
    Result<Stream> next = all.devices[0].primary().create_stream({});
    EXPECT_TRUE(next.ok()) << to_string(next.error());
  });
}

constexpr std::uint32_t kPatient = std::numeric_limits<std::uint32_t>::max();  // never told of a deadlock
const auto both_ways = {std::vector{BackendId::cpu, BackendId::sim}, std::vector{BackendId::sim, BackendId::cpu}};

TEST(DevicesOfTwoBackends, AQueryMovesWhatIsSubmittedLater) {
  for (const auto& backends : both_ways) {
    within(seconds(60), [&] {
      Devices all(backends, kPatient);
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      EXPECT_FALSE(*all.streams[0].query());
      std::this_thread::sleep_for(milliseconds(20));
      EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      while (!*all.streams[0].query()) std::this_thread::yield();
    });
  }
}

TEST(DevicesOfTwoBackends, AHostThatWaitsMovesWhatIsSubmittedLater) {
  for (const auto& backends : both_ways) {
    within(seconds(60), [&] {
      Devices all(backends, kPatient);
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      std::thread later([&] {
        std::this_thread::sleep_for(milliseconds(50));
        EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
        EXPECT_OK(all.streams[1].record(all.events[1]));
      });
      EXPECT_OK(all.streams[0].synchronize());
      later.join();
    });
  }
}

// Time in between moves only while somebody looks there.
TEST(ADeviceOfVirtualTime, BetweenTwoOthersMovesWhenTheLastHasRecorded) {
  within(seconds(60), [&] {
    Devices all({BackendId::cpu, BackendId::sim, BackendId::cpu}, kPatient);
    Bodies bodies;
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(bodies.launch(all.streams[2], []() -> Result<void> {
        std::this_thread::sleep_for(milliseconds(15));
        return {};
      }));
    }
    all.chain();
    EXPECT_OK(all.streams[0].synchronize());
  });
}

TEST(ADeviceOfVirtualTime, ServesTwoDevicesThatWaitForIt) {
  for (int round = 0; round < 10; ++round) {
    within(seconds(60), [&] {
      Devices all({BackendId::cpu, BackendId::cpu, BackendId::sim}, kPatient);
      Stream slow = std::move(*all.devices[2].primary().create_stream({}));
      Event last = std::move(*all.devices[2].primary().create_event(Event::Kind::latch, {}));
      for (int i = 0; i < 200; ++i) EXPECT_OK(slow.launch(kNothing, {}, {}));
      EXPECT_OK(slow.record(last));
      EXPECT_OK(all.streams[2].launch(kNothing, {}, {}));
      EXPECT_OK(all.streams[2].record(all.events[2]));
      EXPECT_OK(all.streams[0].wait(all.events[2]));
      EXPECT_OK(all.streams[1].wait(last));
      std::thread other([&] { EXPECT_OK(all.streams[1].synchronize()); });
      EXPECT_OK(all.streams[0].synchronize());
      other.join();
    });
  }
}

TEST(ADeviceOfVirtualTime, StandsStillWhileNobodyWaitsForTheDeviceThatWaitsForIt) {
  Devices all({BackendId::cpu, BackendId::sim});
  EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
  EXPECT_OK(all.streams[1].record(all.events[1]));
  EXPECT_OK(all.streams[0].wait(all.events[1]));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(0u, all.devices[1].now_ns());
  EXPECT_OK(all.streams[0].synchronize());
}

// A host function there may wait for what only this device can give it.
TEST(ACpuDevice, KeepsItsDeadlinesAndTellsOfItsCyclesWhileItWaitsForAHostFunctionInVirtualTime) {
  within(seconds(60), [&] {
    Devices all({BackendId::cpu, BackendId::sim}, kPatient);
    Context here = all.devices[0].primary();
    static std::atomic<bool> go;
    go = false;
    EXPECT_OK(all.streams[1].host_func(
        [](void*) {
          while (!go) std::this_thread::sleep_for(milliseconds(1));
        },
        nullptr));
    EXPECT_OK(all.streams[1].record(all.events[1]));
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    std::thread host([&] { EXPECT_OK(all.streams[0].synchronize()); });
    std::this_thread::sleep_for(milliseconds(50));
    Stream late = std::move(*here.create_stream({})), a = std::move(*here.create_stream({})), b = std::move(*here.create_stream({}));
    Event x = std::move(*here.create_event(Event::Kind::latch, {})), y = std::move(*here.create_event(Event::Kind::latch, {}));
    EXPECT_OK(late.wait(all.events[0], milliseconds(20)));
    EXPECT_CODE(wait_timeout, late.synchronize());
    EXPECT_OK(a.wait(x));
    EXPECT_OK(a.record(y));
    EXPECT_OK(b.wait(y));
    EXPECT_OK(b.record(x));
    EXPECT_CODE(deadlock, a.synchronize());
    go = true;
    host.join();
    (void)b.synchronize();
  });
}

TEST(AKernelInVirtualTime, MayWaitForADeadlineOfTheDeviceThatWaitsForIt) {
  within(seconds(60), [&] {
    Devices all({BackendId::cpu, BackendId::sim});
    Bodies bodies;
    Stream late = std::move(*all.devices[0].primary().create_stream({}));
    EXPECT_OK(bodies.launch(all.streams[1], [&]() -> Result<void> {
      EXPECT_EQ(ErrorCode{}, code(late.wait(all.events[0], milliseconds(10))));
      EXPECT_EQ(ErrorCode::wait_timeout, code(late.synchronize()));
      return {};
    }));
    EXPECT_OK(all.streams[1].record(all.events[1]));
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    EXPECT_OK(all.streams[0].synchronize());
  });
}

void until_is_set(void* flag) {
  while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::sleep_for(milliseconds(1));
}

// A device that is at work until the host says so, and then has recorded its event.
class AtWork {
 public:
  AtWork(Devices& all, std::size_t i) : stream_(all.streams[i]) {
    EXPECT_OK(bodies_.launch(all.streams[i], [this]() -> Result<void> {
      until_is_set(&over);
      return {};
    }));
    EXPECT_OK(all.streams[i].record(all.events[i]));
  }
  ~AtWork() {
    over = true;
    (void)stream_.synchronize();  // its kernel ends before what it calls
  }
  std::atomic<bool> over{false};

 private:
  Stream& stream_;
  Bodies bodies_;
};

// A device that records its event so much later.
class SlowRecord {
 public:
  SlowRecord(Devices& all, std::size_t i, milliseconds after) : stream_(all.streams[i]) {
    EXPECT_OK(bodies_.launch(all.streams[i], [after]() -> Result<void> {
      std::this_thread::sleep_for(after);
      return {};
    }));
    EXPECT_OK(all.streams[i].record(all.events[i]));
  }
  ~SlowRecord() { (void)stream_.synchronize(); }

 private:
  Stream& stream_;
  Bodies bodies_;
};

TEST(AHostsDeadline, HoldsHoweverLongAnotherDeviceRuns) {
  for (const auto& backends : {std::vector{BackendId::cpu, BackendId::cpu}, std::vector{BackendId::sim, BackendId::cpu}}) {
    within(seconds(60), [&] {
      Devices all(backends);
      AtWork other(all, 1);
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      EXPECT_OK(all.streams[0].record(all.events[0]));
      EXPECT_CODE(sync_timeout, all.streams[0].synchronize(milliseconds(10)));
      EXPECT_CODE(event_sync_timeout, all.events[0].synchronize(milliseconds(10)));
      other.over = true;
      EXPECT_OK(all.streams[0].synchronize());
    });
  }
}

TEST(ACycleOverDevices, IsToldThoughAHostQueriesOneOfThemAllTheTime) {
  for (const BackendId first : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({first, BackendId::sim, BackendId::sim});
      for (int i = 0; i < 3; ++i) {
        EXPECT_OK(all.streams[i].wait(all.events[(i + 1) % 3]));
        EXPECT_OK(all.streams[i].record(all.events[i]));
      }
      std::atomic<bool> told{false};
      std::thread queries([&] {
        while (!told) (void)all.streams[1].query();
      });
      EXPECT_CODE(deadlock, all.streams[0].synchronize());
      told = true;
      queries.join();
      for (int i = 1; i < 3; ++i) (void)all.streams[i].synchronize();
    });
  }
}

// Each device of virtual time moves by itself: one that stands in a kernel holds up no other.
TEST(ADeviceOfVirtualTime, MovesThoughAnotherStandsInAKernelThatWaitsForWhatItLetsGo) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({backend, BackendId::sim, BackendId::sim}, kPatient);
      Stream second = std::move(*all.devices[0].primary().create_stream({}));
      Bodies bodies;
      EXPECT_OK(all.streams[2].launch(kNothing, {}, {}));
      EXPECT_OK(all.streams[2].record(all.events[2]));
      EXPECT_OK(second.wait(all.events[2]));
      EXPECT_OK(bodies.launch(all.streams[1], [&]() -> Result<void> {
        EXPECT_EQ(ErrorCode{}, code(second.synchronize()));
        return {};
      }));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      EXPECT_OK(all.streams[0].synchronize());
    });
  }
}

TEST(AKernelInVirtualTime, MayEndTheDeviceThatWaitsForIt) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim});
    Profile profile = all.devices[0].profile();
    std::optional<Device> ended = std::move(*Device::open(BackendId::cpu, 1, profile));
    std::optional<Stream> waits = std::move(*ended->primary().create_stream({}));
    Stream asks = std::move(*ended->primary().create_stream({}));
    Bodies bodies;
    std::atomic<bool> over{false};
    EXPECT_OK(bodies.launch(all.streams[0], [&]() -> Result<void> {
      EXPECT_EQ(ErrorCode{}, code(waits->abort()));
      waits.reset();
      ended.reset();
      over = true;
      return {};
    }));
    EXPECT_OK(all.streams[0].record(all.events[0]));
    EXPECT_OK(waits->wait(all.events[0]));
    while (!over) (void)asks.query();
    EXPECT_OK(all.streams[0].synchronize());
  });
}

// It passes no virtual time, however long another device takes.
TEST(AHostThatWaitsForAnEvent, HasNoDeadlineThatItWasNotGiven) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim});
    Bodies bodies;
    EXPECT_OK(bodies.launch(all.streams[1], []() -> Result<void> {
      std::this_thread::sleep_for(milliseconds(200));
      return {};
    }));
    EXPECT_OK(all.streams[1].record(all.events[1]));
    std::thread drives([&] { EXPECT_OK(all.streams[1].synchronize()); });
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    EXPECT_OK(all.streams[0].record(all.events[0]));
    EXPECT_OK(all.events[0].synchronize());
    drives.join();
    EXPECT_LT(all.devices[0].now_ns(), std::uint64_t{1'000'000});
  });
}

TEST(AWaitWithADeadline, GivesWayToTheDeviceThatItWaitsFor) {
  for (const auto& backends : {std::vector{BackendId::sim, BackendId::sim}, std::vector{BackendId::sim, BackendId::cpu},
                               std::vector{BackendId::cpu, BackendId::sim}}) {
    within(seconds(60), [&] {
      Devices all(backends);
      Bodies bodies;
      EXPECT_OK(bodies.launch(all.streams[1], []() -> Result<void> {
        std::this_thread::sleep_for(milliseconds(20));
        return {};
      }));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      EXPECT_OK(all.streams[0].wait(all.events[1], seconds(20)));
      EXPECT_OK(all.streams[0].synchronize());
    });
  }
}

// Nor do they wait for ever: each gives way to the other for as long as its deadline is.
TEST(AWaitWithADeadline, PassesWhereTwoDevicesWaitForEachOther) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({backend, backend});
      EXPECT_OK(all.streams[0].wait(all.events[1], milliseconds(100)));
      EXPECT_OK(all.streams[0].record(all.events[0]));
      EXPECT_OK(all.streams[1].wait(all.events[0], milliseconds(100)));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      EXPECT_FALSE(all.streams[0].synchronize().ok());
      (void)all.streams[1].synchronize();
    });
  }
}

TEST(AHostThatSpins, MovesWhatItWaitsFor) {
  within(seconds(60), [&] {
    Devices all({BackendId::cpu, BackendId::sim});
    Stream spins = std::move(*all.devices[0].primary().create_stream({.fast_sync = true}));
    Event e = std::move(*all.devices[1].primary().create_event(Event::Kind::snapshot, {}));
    bool moved = false;  // while it spins, for 100 ms; on a busy machine not each time
    for (int round = 0; round < 10 && !moved; ++round) {
      EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
      EXPECT_OK(all.streams[1].record(e));
      EXPECT_OK(spins.wait(e));
      moved = spins.synchronize(milliseconds(90)).ok();
      EXPECT_OK(spins.synchronize());
    }
    EXPECT_TRUE(moved);
  });
}

TEST(ADeviceWhoseOnlyWorkerIsAHost, RunsForAnotherThatWaitsForIt) {
  within(seconds(60), [&] {
    Profile profile;
    profile.devices = 2;
    profile.workers = 1;
    profile.host_helps = true;
    Device first = std::move(*Device::open(BackendId::cpu, 0, profile)), second = std::move(*Device::open(BackendId::cpu, 1, profile));
    Stream waits = std::move(*first.primary().create_stream({})), runs = std::move(*second.primary().create_stream({}));
    Event e = std::move(*second.primary().create_event(Event::Kind::snapshot, {}));
    EXPECT_OK(runs.launch(kNothing, {}, {}));
    EXPECT_OK(runs.record(e));
    EXPECT_OK(waits.wait(e));
    EXPECT_OK(waits.synchronize());
  });
}

// Whichever thread runs it: a host that drives, one that only asks, or the thread of a device of virtual time in between.
TEST(AKernelInVirtualTime, MayWaitForADeviceBetweenItAndTheOneThatIsWaitedFor) {
  for (const bool asks : {false, true}) {
    within(seconds(60), [&] {
      Devices all({BackendId::cpu, BackendId::sim, BackendId::sim}, kPatient);
      Stream here = std::move(*all.devices[0].primary().create_stream({})), between = std::move(*all.devices[1].primary().create_stream({}));
      Event e = std::move(*all.devices[1].primary().create_event(Event::Kind::latch, {}));
      Bodies bodies;
      EXPECT_OK(bodies.launch(all.streams[2], [&]() -> Result<void> {
        EXPECT_EQ(ErrorCode{}, code(between.launch(kNothing, {}, {})));
        EXPECT_EQ(ErrorCode{}, code(between.record(e)));
        EXPECT_EQ(ErrorCode{}, code(here.wait(e)));
        EXPECT_EQ(ErrorCode{}, code(here.synchronize()));
        return {};
      }));
      all.chain();
      while (asks && !*all.streams[0].query()) std::this_thread::yield();
      EXPECT_OK(all.streams[0].synchronize());
    });
  }
}

TEST(AKernelInVirtualTime, MayAskADeviceThatWaitsForIt) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim}, kPatient);
    Stream second = std::move(*all.devices[0].primary().create_stream({}));
    Bodies bodies;
    EXPECT_OK(bodies.launch(all.streams[1], [&]() -> Result<void> {
      EXPECT_EQ(ErrorCode{}, code(second.launch(kNothing, {}, {})));
      while (!*second.query()) std::this_thread::yield();
      return {};
    }));
    EXPECT_OK(all.streams[1].record(all.events[1]));
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    while (!*all.streams[0].query()) std::this_thread::yield();
  });
}

TEST(AWaitWithADeadline, GivesWayAnewEachTime) {
  Devices all({BackendId::sim, BackendId::sim});
  for (int round = 0; round < 3; ++round) {
    Event e = std::move(*all.devices[1].primary().create_event(Event::Kind::latch, {}));
    for (int i = 0; i < 5; ++i) EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
    EXPECT_OK(all.streams[1].record(e));
    EXPECT_OK(all.streams[0].wait(e, std::chrono::microseconds(5)));
    EXPECT_OK(all.streams[0].launch(kNothing, {}, {}));
    EXPECT_OK(all.streams[0].synchronize());
    EXPECT_OK(all.streams[1].synchronize());
    std::this_thread::sleep_for(milliseconds(150));  // longer than any patience here
  }
}

TEST(AHostsDeadline, HoldsBesideADeviceThatWorksNowAndThen) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu});
    Bodies bodies;
    std::atomic<bool> over{false};
    std::thread submits([&] {
      while (!over) {
        EXPECT_OK(bodies.launch(all.streams[1], []() -> Result<void> {
          std::this_thread::sleep_for(milliseconds(5));
          return {};
        }));
        std::this_thread::sleep_for(milliseconds(10));
      }
    });
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    EXPECT_CODE(sync_timeout, all.streams[0].synchronize(milliseconds(1)));
    over = true;
    submits.join();
    EXPECT_OK(all.streams[1].record(all.events[1]));
    EXPECT_OK(all.streams[0].synchronize());
  });
}

TEST(AHostThatWaitsForAnEvent, IsToldThatNobodyRecordsItBesideADeviceThatMoves) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({backend, BackendId::cpu});
      AtWork other(all, 1);
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      EXPECT_CODE(deadlock, all.events[0].synchronize());
      other.over = true;
      EXPECT_OK(all.streams[0].synchronize());
    });
  }
}

// What keeps a device from standing still: something that is not over before the host says so, or a deadline that is far.
enum class Busy : std::uint8_t { kernel, host_function, deadline };

TEST(ADeviceOfVirtualTime, MovesThoughADeviceThatWaitsForItIsBusy) {
  const std::vector<std::vector<BackendId>> chains = {
      {BackendId::cpu, BackendId::sim}, {BackendId::cpu, BackendId::cpu, BackendId::sim}, {BackendId::sim, BackendId::cpu, BackendId::sim}};
  for (const auto& backends : chains) {
    for (const Busy busy : {Busy::kernel, Busy::host_function, Busy::deadline}) {
      for (const bool asks : {false, true}) {
        within(seconds(60), [&] {
          Devices all(backends, kPatient);
          const std::size_t before_last = backends.size() - 2;
          Stream other = std::move(*all.devices[before_last].primary().create_stream({}));
          Event at_the_end = std::move(*all.devices[before_last].primary().create_event(Event::Kind::latch, {}));
          Bodies bodies;
          std::atomic<bool> over{false};
          if (busy == Busy::kernel) {
            EXPECT_OK(bodies.launch(other, [&over]() -> Result<void> {
              until_is_set(&over);
              return {};
            }));
          }
          if (busy == Busy::host_function) EXPECT_OK(other.host_func(until_is_set, &over));
          if (busy == Busy::deadline) EXPECT_OK(other.wait(at_the_end, seconds(1000)));
          EXPECT_OK(all.streams.back().launch(kNothing, {}, {}));
          all.chain();
          while (asks && !*all.streams[0].query()) std::this_thread::yield();
          EXPECT_OK(all.streams[0].synchronize(seconds(100)));
          over = true;
          Stream records = std::move(*all.devices[before_last].primary().create_stream({}));
          EXPECT_OK(records.record(at_the_end));
          EXPECT_OK(other.synchronize());
        });
      }
    }
  }
}

TEST(AWaitWithADeadline, GivesWayToADeviceWhoseKernelAsksTheOneThatWaits) {
  for (const bool asks_for_its_event : {false, true}) {
    for (const bool over_another : {false, true}) {
      within(seconds(60), [&] {
        Devices all(over_another ? std::vector{BackendId::cpu, BackendId::sim, BackendId::sim} : std::vector{BackendId::sim, BackendId::sim}, kPatient);
        const std::size_t waits = over_another ? 1 : 0, runs = waits + 1;
        Bodies bodies;
        EXPECT_OK(bodies.launch(all.streams[runs], [&]() -> Result<void> {
          EXPECT_TRUE(asks_for_its_event ? all.events[waits].query().ok() : all.streams[waits].query().ok());
          return {};
        }));
        EXPECT_OK(all.streams[runs].record(all.events[runs]));
        EXPECT_OK(all.streams[waits].wait(all.events[runs], seconds(20)));
        EXPECT_OK(all.streams[waits].record(all.events[waits]));
        if (over_another) EXPECT_OK(all.streams[0].wait(all.events[waits]));
        EXPECT_OK(all.streams[0].synchronize());
        EXPECT_OK(all.streams[waits].synchronize());
        EXPECT_LT(all.devices[waits].now_ns(), std::uint64_t{1'000'000'000});
      });
    }
  }
}

enum class Whose : std::uint8_t { stream, host_at_a_stream, host_at_an_event };

TEST(AWaitWithADeadline, GivesWayThoughItsDeviceHasAKernelThatEndsBehindIt) {
  KernelFunction long_kernel = kNothing;
  long_kernel.virtual_us = 10'000;
  for (const BackendId backend : {BackendId::sim, BackendId::cpu}) {
    for (const Whose whose : {Whose::stream, Whose::host_at_a_stream, Whose::host_at_an_event}) {
      within(seconds(60), [&] {
        Devices all({BackendId::sim, backend}, kPatient);
        Stream other = std::move(*all.devices[0].primary().create_stream({}));
        SlowRecord slow(all, 1, milliseconds(20));
        EXPECT_OK(other.launch(long_kernel, {}, {}));
        EXPECT_OK(whose == Whose::stream ? all.streams[0].wait(all.events[1], milliseconds(1)) : all.streams[0].wait(all.events[1]));
        EXPECT_OK(all.streams[0].record(all.events[0]));
        if (whose == Whose::stream) EXPECT_OK(all.streams[0].synchronize());
        if (whose == Whose::host_at_a_stream) EXPECT_OK(all.streams[0].synchronize(milliseconds(1)));
        if (whose == Whose::host_at_an_event) EXPECT_OK(all.events[0].synchronize(milliseconds(1)));
        EXPECT_OK(other.synchronize());
      });
    }
  }
}

// By nanoseconds: a kernel of another stream that ends with the deadline, and before and behind it.
TEST(AWaitWithADeadline, GivesWayWhateverElseHappensAtThatMoment) {
  KernelFunction kernel = kNothing;
  kernel.virtual_us = 100;
  for (const BackendId backend : {BackendId::sim, BackendId::cpu}) {
    for (const bool ends_first : {true, false}) {
      for (int ns = 90'000; ns <= 110'000; ns += 500) {
        Devices all({BackendId::sim, backend}, kPatient);
        Stream second = std::move(*all.devices[0].primary().create_stream({}));
        Stream& runs = ends_first ? all.streams[0] : second;
        Stream& waits = ends_first ? second : all.streams[0];
        for (int i = 0; i < 3; ++i) EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
        EXPECT_OK(all.streams[1].record(all.events[1]));
        EXPECT_OK(runs.launch(kernel, {}, {}));
        EXPECT_OK(waits.wait(all.events[1], std::chrono::nanoseconds(ns)));
        EXPECT_OK(waits.synchronize());
        EXPECT_OK(runs.synchronize());
      }
    }
  }
}

// The deadlines of two streams, which another device keeps waiting, and behind them a kernel and the host's own deadline.
TEST(AHostsDeadline, PassesBehindWhatComesBeforeIt) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu});
    KernelFunction kernel = kNothing;
    kernel.virtual_us = 10'000;
    AtWork busy(all, 1);
    Stream second = std::move(*all.devices[0].primary().create_stream({})), runs = std::move(*all.devices[0].primary().create_stream({}));
    EXPECT_OK(all.streams[0].wait(all.events[1], milliseconds(1)));
    EXPECT_OK(second.wait(all.events[1], milliseconds(2)));
    EXPECT_OK(runs.launch(kernel, {}, {}));
    EXPECT_OK(runs.synchronize(milliseconds(50)));
    EXPECT_CODE(wait_timeout, second.synchronize(milliseconds(50)));
    EXPECT_CODE(wait_timeout, all.streams[0].synchronize(milliseconds(50)));
    busy.over = true;
  });
}

TEST(AWaitWithADeadline, GivesWayOnlyForTimeInWhichAHostLooks) {
  Devices all({BackendId::sim, BackendId::sim});
  for (int i = 0; i < 300; ++i) EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
  EXPECT_OK(all.streams[1].record(all.events[1]));
  EXPECT_OK(all.streams[0].wait(all.events[1], milliseconds(10)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(*all.streams[0].query());
    std::this_thread::sleep_for(milliseconds(100));  // longer than any patience here
  }
  while (!*all.streams[0].query()) std::this_thread::yield();
  EXPECT_OK(all.streams[0].synchronize());
}

TEST(AWaitWithADeadline, GivesWayOnlyToWhatItWaitsFor) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu}, kPatient);
    KernelFunction kernel = kNothing;
    kernel.virtual_us = 10'000;
    AtWork busy(all, 1);
    EXPECT_OK(all.streams[0].wait(all.events[1]));  // and nobody waits for this stream
    Stream waits = std::move(*all.devices[0].primary().create_stream({})), runs = std::move(*all.devices[0].primary().create_stream({}));
    EXPECT_OK(waits.wait(all.events[0], milliseconds(1)));
    EXPECT_OK(runs.launch(kernel, {}, {}));
    EXPECT_CODE(sync_timeout, runs.synchronize(milliseconds(5)));
    EXPECT_OK(runs.synchronize());
    EXPECT_CODE(wait_timeout, waits.synchronize());
    busy.over = true;
    EXPECT_OK(all.streams[0].synchronize());
  });
}

// Not each in its turn: that would take over a minute here.
TEST(DeadlinesOfManyStreams, GiveWayTogether) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu}, 200);
    AtWork busy(all, 1);
    std::vector<Stream> streams;
    for (int i = 0; i < 400; ++i) {
      streams.push_back(std::move(*all.devices[0].primary().create_stream({})));
      EXPECT_OK(streams.back().wait(all.events[1], std::chrono::microseconds(100 + i)));
    }
    EXPECT_CODE(wait_timeout, streams.back().synchronize());
    EXPECT_EQ(std::uint64_t{499}, all.devices[0].now_ns() / 1000);
    busy.over = true;
  });
}

// What a stream waits for comes from another of its device, or from its own device over the other one.
TEST(AWaitWithADeadline, GivesWayThroughStreamsOfItsOwnDevice) {
  for (const bool over_the_other : {false, true}) {
    within(seconds(60), [&] {
      Devices all({BackendId::sim, BackendId::sim, BackendId::cpu}, kPatient);
      Stream waits = std::move(*all.devices[0].primary().create_stream({}));
      SlowRecord slow(all, 2, milliseconds(20));
      EXPECT_OK(all.streams[0].wait(all.events[2]));
      EXPECT_OK(all.streams[0].record(all.events[0]));
      if (over_the_other) {
        EXPECT_OK(all.streams[1].wait(all.events[0]));
        EXPECT_OK(all.streams[1].record(all.events[1]));
      }
      EXPECT_OK(waits.wait(over_the_other ? all.events[1] : all.events[0], milliseconds(1)));
      EXPECT_OK(waits.synchronize(milliseconds(2)));
    });
  }
}

// The wait that had it is over, and the stream waits without one now.
TEST(AWaitWithADeadline, HoldsUpNothingWhenItIsOver) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu}, kPatient);
    AtWork busy(all, 1);
    KernelFunction kernel = kNothing;
    kernel.virtual_us = 10'000;
    Stream records = std::move(*all.devices[0].primary().create_stream({})), runs = std::move(*all.devices[0].primary().create_stream({}));
    EXPECT_OK(all.streams[0].wait(all.events[0], milliseconds(1)));
    EXPECT_FALSE(*all.streams[0].query());
    EXPECT_OK(records.record(all.events[0]));
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    EXPECT_OK(runs.launch(kernel, {}, {}));
    EXPECT_OK(runs.synchronize());
    busy.over = true;
    EXPECT_OK(all.streams[0].synchronize());
  });
}

TEST(ACycle, IsToldAtOnceBesideADeadlineAndOneThatIsOver) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim});
    Context context = all.devices[0].primary();
    const auto stream = [&] { return std::move(*context.create_stream({})); };
    const auto latch = [&] { return std::move(*context.create_event(Event::Kind::latch, {})); };
    Stream a = stream(), b = stream(), c = stream(), d = stream();
    Event over = latch(), of_b = latch(), of_c = latch(), never = latch();
    EXPECT_OK(a.wait(over, milliseconds(1)));
    EXPECT_FALSE(*a.query());
    EXPECT_OK(b.record(over));
    EXPECT_OK(a.synchronize());
    EXPECT_OK(d.wait(never, seconds(20)));
    EXPECT_OK(b.wait(of_c));
    EXPECT_OK(b.record(of_b));
    EXPECT_OK(c.wait(of_b));
    EXPECT_OK(c.record(of_c));
    EXPECT_CODE(deadlock, b.synchronize());
    EXPECT_LT(all.devices[0].now_ns(), std::uint64_t{1'000'000'000});
    EXPECT_OK(d.abort());
  });
}

TEST(AWaitWithADeadline, GivesWayForAsLongHoweverMuchTimeHasPassedBefore) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu});
    AtWork busy(all, 1);
    KernelFunction kernel = kNothing;
    kernel.virtual_us = 1e9;
    EXPECT_OK(all.streams[0].launch(kernel, {}, {}));
    EXPECT_OK(all.streams[0].wait(all.events[1], milliseconds(1)));
    EXPECT_CODE(wait_timeout, all.streams[0].synchronize());
    busy.over = true;
  });
}

TEST(AWaitWithADeadline, GivesWayAfterOneThatHasPassed) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu}, 300);
    {
      AtWork busy(all, 1);
      EXPECT_OK(all.streams[0].wait(all.events[1], milliseconds(1)));
      EXPECT_CODE(wait_timeout, all.streams[0].synchronize());
      busy.over = true;
      EXPECT_OK(all.streams[1].synchronize());
    }
    Event e = std::move(*all.devices[1].primary().create_event(Event::Kind::latch, {}));
    Bodies bodies;
    EXPECT_OK(bodies.launch(all.streams[1], []() -> Result<void> {
      std::this_thread::sleep_for(milliseconds(20));
      return {};
    }));
    EXPECT_OK(all.streams[1].record(e));
    EXPECT_OK(all.streams[0].wait(e, milliseconds(1)));
    EXPECT_OK(all.streams[0].synchronize());
  });
}

// It waits for a device that stands still, and another stream for one that is at work.
TEST(AWaitWithADeadline, GivesWayToNoDeviceThatOthersWaitFor) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu, BackendId::cpu}, kPatient);
    AtWork busy(all, 2);
    EXPECT_OK(all.streams[0].wait(all.events[2]));
    Stream waits = std::move(*all.devices[0].primary().create_stream({}));
    EXPECT_OK(waits.wait(all.events[1], milliseconds(1)));
    EXPECT_CODE(wait_timeout, waits.synchronize());
    busy.over = true;
    EXPECT_OK(all.streams[0].synchronize());
  });
}

TEST(AWaitWithADeadline, GivesWayThroughANotify) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu}, kPatient);
    SlowRecord slow(all, 1, milliseconds(20));
    Notify n = std::move(*all.devices[0].primary().create_notify());
    Stream waits = std::move(*all.devices[0].primary().create_stream({}));
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    EXPECT_OK(all.streams[0].record(n));
    EXPECT_OK(waits.wait(n, milliseconds(1)));
    EXPECT_OK(waits.synchronize());
    EXPECT_OK(all.streams[0].synchronize());
  });
}

// A tape waits for a device that waits for another stream of the tape's own, which waits for what is at work.
// With a kernel that ends behind the deadline: what the host moves for it, moves its device, but not past it.
TEST(AHostsDeadline, GivesWayThroughAModelAndBack) {
  for (const BackendId between : {BackendId::sim, BackendId::cpu}) {
    for (const bool kernel_behind : {false, true}) within(seconds(60), [&] {
      Devices all({BackendId::sim, between, BackendId::cpu}, kPatient);
      Context context = all.devices[0].primary();
      Recording recording(context);
      Stream tape = recording.bound(StreamRole::head), asks = std::move(*context.create_stream({}));
      EXPECT_OK(tape.wait(all.events[1]));
      recording.finish(tape);
      SlowRecord slow(all, 2, milliseconds(20));
      EXPECT_OK(all.streams[0].wait(all.events[2]));
      EXPECT_OK(all.streams[0].record(all.events[0]));
      EXPECT_OK(all.streams[1].wait(all.events[0]));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      KernelFunction kernel = kNothing;
      kernel.virtual_us = 10'000;
      Stream runs = std::move(*context.create_stream({}));
      if (kernel_behind) EXPECT_OK(runs.launch(kernel, {}, {}));
      EXPECT_OK(recording.model.execute_async(asks));
      EXPECT_OK(asks.synchronize(milliseconds(1)));
    });
  }
}

// The host stands in a kernel of the other device, which waits for what comes behind the deadline.
TEST(AHostsDeadline, HoldsItsDeviceNoLongerThanItGivesWay) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim}, 60);
    KernelFunction kernel = kNothing;
    kernel.virtual_us = 10'000;
    Stream runs = std::move(*all.devices[0].primary().create_stream({}));
    EXPECT_OK(runs.launch(kernel, {}, {}));
    EXPECT_OK(runs.record(all.events[0]));
    Bodies bodies;
    std::atomic<bool> stands{false}, recorded{false};
    EXPECT_OK(bodies.launch(all.streams[1], [&]() -> Result<void> {
      stands = true;
      until_is_set(&recorded);
      return {};
    }));
    EXPECT_OK(all.streams[1].record(all.events[1]));
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    std::thread asks([&] {
      until_is_set(&stands);
      while (!*all.events[0].query()) std::this_thread::sleep_for(milliseconds(1));
      recorded = true;
    });
    EXPECT_CODE(sync_timeout, all.streams[0].synchronize(milliseconds(1)));
    asks.join();
    EXPECT_OK(all.streams[0].synchronize());
  });
}

void stand_still(int) { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

// Another host lets the lane go that is to record it: at each moment somebody knows of that lane, and here somebody always asks. A
// signal makes that host stand still wherever it is.
TEST(AWaitWithADeadline, GivesWayWhileALaneIsLetGo) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim}, kPatient);
    Context here = all.devices[0].primary();
    Stream records = std::move(*here.create_stream({}));
    Event first = std::move(*all.devices[1].primary().create_event(Event::Kind::snapshot, {})), second = std::move(*here.create_event(Event::Kind::snapshot, {}));
    Bodies bodies;
    std::atomic<bool> begun{false}, go{false};
    struct sigaction stands = {}, before = {};
    stands.sa_handler = stand_still;
    ASSERT_EQ(0, sigaction(SIGUSR1, &stands, &before));
    for (int round = 0; round < 1000 && !testing::Test::HasFailure(); ++round) {
      begun = go = false;
      EXPECT_OK(bodies.launch(all.streams[1], [&]() -> Result<void> {
        begun = true;
        while (!go) std::this_thread::yield();
        return {};
      }));
      for (int i = 0; i < round % 10; ++i) EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
      EXPECT_OK(all.streams[1].record(first));
      EXPECT_OK(records.wait(first));
      EXPECT_OK(records.record(second));
      EXPECT_OK(all.streams[0].wait(second, milliseconds(1)));
      std::thread moves([&] { EXPECT_OK(all.streams[1].synchronize()); });
      while (!begun) std::this_thread::yield();
      while (all.devices[0].state()->lanes_parked != 2) EXPECT_FALSE(*all.streams[0].query());
      for (int spin = round * 7 % 400; spin >= 0; --spin) go = true;
      pthread_kill(moves.native_handle(), SIGUSR1);
      while (!*all.streams[0].query()) continue;
      EXPECT_OK(all.streams[0].synchronize());
      moves.join();
    }
    sigaction(SIGUSR1, &before, nullptr);
  });
}

// The last device comes to rest between two looks, of which the first is long: what it has let go on the device between, which was
// looked at before it, is what moves.
TEST(AWaitWithADeadline, GivesWayThoughWhatMovesComesToRestMeanwhile) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim, BackendId::sim}, kPatient);
    Event first = std::move(*all.devices[2].primary().create_event(Event::Kind::snapshot, {}));
    Event second = std::move(*all.devices[1].primary().create_event(Event::Kind::snapshot, {}));
    Context looked_at_later = std::move(*all.devices[1].create_context());
    std::vector<Stream> idle;
    for (int i = 0; i < 1000; ++i) idle.push_back(std::move(*looked_at_later.create_stream({})));
    Bodies bodies;
    std::atomic<bool> begun{false};
    for (int round = 0; round < 200 && !testing::Test::HasFailure(); ++round) {
      begun = false;
      EXPECT_OK(bodies.launch(all.streams[2], [&]() -> Result<void> {
        begun = true;
        std::this_thread::sleep_for(std::chrono::microseconds(2000 + 7 * round));  // the others have parked by then
        return {};
      }));
      EXPECT_OK(all.streams[2].record(first));
      EXPECT_OK(all.streams[1].wait(first));
      EXPECT_OK(all.streams[1].record(second));
      EXPECT_OK(all.streams[0].wait(second, milliseconds(1)));
      std::thread moves([&] { EXPECT_OK(all.streams[2].synchronize()); });
      while (!begun) continue;
      while (!*all.streams[0].query()) continue;
      EXPECT_OK(all.streams[0].synchronize());
      moves.join();
    }
  });
}

// A tape with a deadline waits for one that waits for one that has not begun: what begins it waits for another device.
TEST(AWaitWithADeadline, GivesWayThroughATapeThatHasNotBegun) {
  for (const bool asker_goes : {false, true}) within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu}, kPatient);
    Context context = all.devices[0].primary();
    Recording recording(context);
    Stream waits = recording.bound(StreamRole::head), between = recording.bound(StreamRole::head), begins = recording.bound(StreamRole::head);
    Stream last = recording.bound(StreamRole::activated);
    Event site = std::move(*context.create_event(Event::Kind::snapshot, {}));
    Notify n = std::move(*context.create_notify());
    EXPECT_OK(last.record(site));
    EXPECT_OK(begins.wait(all.events[1]));
    EXPECT_OK(Tape(begins).activate(last));
    EXPECT_OK(between.wait(site));
    EXPECT_OK(between.record(n));
    EXPECT_OK(waits.wait(n, milliseconds(1)));
    Bodies bodies;
    bool went_on = false;
    EXPECT_OK(bodies.launch(waits, [&]() -> Result<void> {
      went_on = true;
      return {};
    }));
    recording.finish(begins);
    SlowRecord slow(all, 1, milliseconds(20));
    Stream asks = std::move(*context.create_stream({}));
    EXPECT_OK(recording.model.execute_async(asks));
    if (asker_goes) {  // nobody waits for the execution then
      EXPECT_FALSE(*asks.query());
      EXPECT_OK(asks.abort());
      EXPECT_OK(recording.model.close());
    } else {
      EXPECT_OK(asks.synchronize());
    }
    EXPECT_TRUE(went_on);
  });
}

TEST(AHostThatSleeps, LeavesTheCore) {
  within(seconds(60), [&] {
    Devices all({BackendId::cpu});
    Bodies bodies;
    EXPECT_OK(bodies.launch(all.streams[0], []() -> Result<void> {
      std::this_thread::sleep_for(milliseconds(300));
      return {};
    }));
    EXPECT_LT(cpu_time_of([&] { EXPECT_OK(all.streams[0].synchronize()); }), CLOCKS_PER_SEC / 20);
  });
}

TEST(AHostThatWaitsForAnEvent, LeavesTheCoreBesideADeviceThatMoves) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::cpu}, 2000);
    SlowRecord slow(all, 1, milliseconds(500));
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    EXPECT_OK(all.streams[0].record(all.events[0]));
    EXPECT_LT(cpu_time_of([&] { EXPECT_OK(all.events[0].synchronize()); }), CLOCKS_PER_SEC / 10);
  });
}

// Nothing moves there yet, and nobody else drives it then.
TEST(AHostThatWaits, MovesADeviceOfItsOwnKindThatIsGivenSomethingLater) {
  within(seconds(60), [&] {
    Devices all({BackendId::sim, BackendId::sim}, kPatient);
    EXPECT_OK(all.streams[0].wait(all.events[1]));
    std::thread host([&] { EXPECT_OK(all.streams[0].synchronize()); });
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_OK(all.streams[1].launch(kNothing, {}, {}));
    EXPECT_OK(all.streams[1].record(all.events[1]));
    host.join();
  });
}

// The tapes of a model that runs there are no streams that have something queued.
TEST(ADeviceThatRunsAModel, IsMoving) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    within(seconds(60), [&] {
      Devices all({backend, backend});
      Context context = all.devices[1].primary();
      Recording recording(context);
      Stream tape = recording.bound(StreamRole::head), other = std::move(*context.create_stream({}));
      Bodies bodies;
      EXPECT_OK(bodies.launch(tape, []() -> Result<void> {
        std::this_thread::sleep_for(milliseconds(300));  // longer than any patience here
        return {};
      }));
      recording.finish(tape);
      // It has looked for what is left to happen before, and found nothing.
      Event latch = std::move(*context.create_event(Event::Kind::latch, {}));
      EXPECT_OK(other.wait(latch));
      EXPECT_CODE(sync_timeout, other.synchronize(milliseconds(1)));
      EXPECT_OK(all.streams[1].record(latch));
      EXPECT_OK(other.synchronize());
      EXPECT_OK(recording.model.execute_async(all.streams[1]));
      EXPECT_OK(all.streams[1].record(all.events[1]));
      EXPECT_OK(all.streams[0].wait(all.events[1]));
      std::thread host([&] { EXPECT_OK(all.streams[1].synchronize()); });
      EXPECT_OK(all.streams[0].synchronize());
      host.join();
    });
  }
}

}  // namespace
}  // namespace millstream
