// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/ready_set.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "millstream/runtime/device.h"
#include "millstream/runtime/objects.h"

namespace millstream::rt {
namespace {

// Lanes as the ready set sees them; they have no tasks.
class OfReadyLanes : public testing::Test {
 protected:
  OfReadyLanes() : device_(std::move(*Device::open_private(BackendId::sim, Profile()))), stream_(std::move(*device_.primary().create_stream())) {}
  std::unique_ptr<Lane> lane(std::uint8_t level) { return std::make_unique<Lane>(*stream_.state(), stream_.state()->lane.context, level); }
  static Lane* next(ReadySet& ready) {
    return ready.take([] { FAIL() << "none is ready"; });
  }

  Device device_;
  Stream stream_;
};

TEST_F(OfReadyLanes, GoByLevelAndThenInOrderOfArrival) {
  ReadySet ready(1, 0);
  const auto low = lane(3), first = lane(1), second = lane(1);
  for (const auto& l : {&low, &first, &second}) ready.push(**l);
  EXPECT_TRUE(ready.any());
  EXPECT_TRUE(ready.higher_than(2));
  EXPECT_FALSE(ready.higher_than(1));
  EXPECT_EQ(first.get(), next(ready));
  EXPECT_EQ(second.get(), next(ready));
  EXPECT_EQ(low.get(), next(ready));
  EXPECT_FALSE(ready.any());
}

TEST_F(OfReadyLanes, AreCountedWhenTheyArrive) {
  ReadySet ready(1, 0);
  const auto a = lane(0);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ready.push(*a);
    EXPECT_EQ(i, ready.pushes());
    EXPECT_EQ(a.get(), next(ready));
    EXPECT_EQ(i, ready.pushes());
  }
}

// It waits its full time again, however often it went before.
TEST_F(OfReadyLanes, GoBeforeHigherOnesAfterTheyHaveBeenPassedOverOftenEnough) {
  constexpr std::uint32_t kAge = 3;
  ReadySet ready(1, kAge);
  const auto low = lane(5), high = lane(0);
  for (int round = 0; round < 3; ++round) {
    ready.push(*low);
    for (std::uint32_t i = 0; i < kAge; ++i) {
      ready.push(*high);
      EXPECT_EQ(high.get(), next(ready)) << round;
    }
    ready.push(*high);
    EXPECT_EQ(low.get(), next(ready)) << round;
    EXPECT_EQ(high.get(), next(ready)) << round;
  }
}

TEST_F(OfReadyLanes, AreNoneWhenItIsClosedOrWhatTheHostWaitsForEnded) {
  ReadySet ready(1, 0);
  std::atomic<bool> ended{false};
  ready.end_host(ended);
  EXPECT_TRUE(ended);
  EXPECT_EQ(nullptr, ready.take_as_host(ended, [] {}));
  ready.close();
  EXPECT_EQ(nullptr, ready.take([] {}));
}

TEST(ReadySet, AHostThatSleepsIsWokenByTheEndOfWhatItWaitsFor) {
  ReadySet hosts_only(0, 0);
  std::atomic<bool> ended{false}, sleeps{false};
  hosts_only.host_begins();
  std::thread host([&] { EXPECT_EQ(nullptr, hosts_only.take_as_host(ended, [&] { sleeps = true; })); });
  while (!sleeps) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  hosts_only.end_host(ended);
  host.join();
}

}  // namespace
}  // namespace millstream::rt
