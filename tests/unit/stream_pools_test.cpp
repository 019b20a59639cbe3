// SPDX-License-Identifier: Apache-2.0
// Where loaded plans get their streams from, beside the data cases of stage runtime: failures, releases, threads.
#include <algorithm>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "millstream/runtime/stream_pools.h"

namespace millstream {
namespace {

// Streams are numbers; the device has `most` at a time.
struct Device {
  std::size_t most = 1000000;
  std::set<std::uintptr_t> live;
  std::vector<std::uintptr_t> destroyed;
  std::uintptr_t next = 1;

  StreamSource source() {
    return {[this](StreamKind) -> Result<StreamHandle> {
              if (live.size() >= most) return Error{ErrorCode::stream_limit, "no more streams"};
              live.insert(next);
              return reinterpret_cast<StreamHandle>(next++);
            },
            [this](StreamHandle s) {
              live.erase(reinterpret_cast<std::uintptr_t>(s));
              destroyed.push_back(reinterpret_cast<std::uintptr_t>(s));
            }};
  }
};

TEST(StreamList, AFailedCallMakesNothingAndCanBeRepeated) {
  Device device;
  device.most = 5;
  StreamList list(device.source(), {});
  ASSERT_TRUE(list.acquire(2).ok());
  const auto failed = list.acquire(8);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::stream_limit);
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(device.live.size(), 2u);
  EXPECT_EQ(device.destroyed, (std::vector<std::uintptr_t>{5, 4, 3}));  // the last first
  device.most = 10;
  EXPECT_TRUE(list.acquire(8).ok());
}

TEST(StreamList, AFullListFailsCleanlyAtEachStreamThatCannotBeMade) {
  for (std::size_t k = 0; k <= StreamList::kMost - 5; ++k) {
    Device device;
    device.most = 5 + k;
    StreamList list(device.source(), {});
    const auto first = list.acquire(5);
    ASSERT_TRUE(first.ok());
    const auto all = list.acquire(StreamList::kMost);
    if (k == StreamList::kMost - 5) {
      ASSERT_TRUE(all.ok());
      break;
    }
    ASSERT_FALSE(all.ok()) << k;
    ASSERT_EQ(all.error().code, ErrorCode::stream_limit) << k;
    ASSERT_EQ(list.size(), 5u) << k;
    ASSERT_EQ(device.live, (std::set<std::uintptr_t>{1, 2, 3, 4, 5})) << k;
    ASSERT_EQ(device.destroyed.size(), k) << k;
    ASSERT_TRUE(std::is_sorted(device.destroyed.rbegin(), device.destroyed.rend())) << k;
  }
}

TEST(StreamList, HandlesStayInPlaceAndEndWithTheList) {
  Device device;
  {
    StreamList list(device.source(), {});
    const auto few = list.acquire(3);
    const auto all = list.acquire(StreamList::kMost);
    ASSERT_TRUE(few.ok() && all.ok());
    EXPECT_EQ(few->data(), all->data());
    EXPECT_EQ(few->size(), 3u);
    EXPECT_EQ(list.acquire(StreamList::kMost + 1).error().code, ErrorCode::allocation_limit);
  }
  EXPECT_TRUE(device.live.empty());
}

TEST(StreamList, ThreadsShareOneList) {
  Device device;
  StreamList list(device.source(), {});
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t <= 8; ++t) threads.emplace_back([&list, t] { EXPECT_TRUE(list.acquire(t * 10).ok()); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(list.size(), 80u);
  EXPECT_EQ(device.live.size(), 80u);
}

// Models of 3 and 5 streams: alone on a device each takes them from the front of one list; sharing it, the second
// takes what the first has, as far as that goes.
TEST(StreamPools, CreationsForTwoModels) {
  Device alone;
  StreamList list(alone.source(), {});
  ASSERT_TRUE(list.acquire(3).ok());
  EXPECT_EQ(alone.next - 1, 3u);
  ASSERT_TRUE(list.acquire(5).ok());
  EXPECT_EQ(alone.next - 1, 5u);
  Device shared;
  SharedStreams pool(shared.source());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.acquire({1, {}, 10}).ok());
  EXPECT_EQ(shared.next - 1, 3u);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pool.acquire({2, {}, 10}).ok());
  EXPECT_EQ(shared.next - 1, 5u);
}

TEST(SharedStreams, TheLastUserDestroysAStream) {
  Device device;
  SharedStreams pool(device.source());
  const StreamHandle a = *pool.acquire({1, {}, 10});
  EXPECT_EQ(*pool.acquire({2, {}, 10}), a);
  ASSERT_TRUE(pool.release(a).ok());
  EXPECT_EQ(device.live.size(), 1u);
  ASSERT_TRUE(pool.release(a).ok());
  EXPECT_TRUE(device.live.empty());
  EXPECT_FALSE(pool.release(a).ok());
}

TEST(SharedStreams, ForceDestroysAtOnceAndAModelCanLeaveAll) {
  Device device;
  SharedStreams pool(device.source());
  const StreamHandle a = *pool.acquire({1, {}, 10});
  const StreamHandle b = *pool.acquire({1, {}, 10});
  EXPECT_NE(a, b);
  EXPECT_EQ(*pool.acquire({2, {}, 10}), a);
  ASSERT_TRUE(pool.release(b, true).ok());
  EXPECT_EQ(pool.size(), 1u);
  pool.release_model(1);
  EXPECT_EQ(pool.size(), 1u);  // model 2 has it still
  pool.release_model(2);
  EXPECT_EQ(pool.size(), 0u);
  EXPECT_TRUE(device.live.empty());
}

TEST(SharedStreams, AFullStreamIsNotShared) {
  Device device;
  SharedStreams pool(device.source(), 100);
  const StreamHandle a = *pool.acquire({1, {}, 60});
  EXPECT_NE(*pool.acquire({2, {}, 60}), a);
  EXPECT_EQ(*pool.acquire({3, {}, 40}), a);
}

TEST(SharedStreams, TheStreamOfTheNearestLengthIsTaken) {
  Device device;
  SharedStreams pool(device.source());
  const StreamHandle shorter = *pool.acquire({1, {}, 30}), longer = *pool.acquire({1, {}, 50}), longest = *pool.acquire({1, {}, 90});
  EXPECT_EQ(*pool.acquire({2, {}, 35}), shorter);  // holds 65 then
  EXPECT_EQ(*pool.acquire({3, {}, 48}), longer);   // holds 98 then
  EXPECT_EQ(*pool.acquire({4, {}, 91}), longest);
  EXPECT_EQ(*pool.acquire({5, {}, 80}), shorter);
}

TEST(SharedStreams, AFailedCallChangesNothing) {
  Device device;
  device.most = 1;
  SharedStreams pool(device.source());
  ASSERT_TRUE(pool.acquire({1, {}, 1}).ok());
  EXPECT_FALSE(pool.acquire({1, {}, 1}).ok());
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_TRUE(pool.acquire({2, {}, 1}).ok());
}

}  // namespace
}  // namespace millstream
