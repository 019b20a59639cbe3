// SPDX-License-Identifier: Apache-2.0
// gert::StreamAllocator and ge::ReusableStreamAllocator over the acl interface.
#include <set>
#include <thread>
#include <vector>

#include "framework/runtime/stream_allocator.h"
#include "millstream_stream.h"
#include "runtime/v1/graph/load/model_manager/reusable_stream_allocator.h"
#include "tests/compat/acl_fixture.h"

namespace millstream {
namespace {

class Allocators : public Acl {
 protected:
  // Streams that can still be made; all are destroyed again.
  static std::size_t room() {
    std::vector<aclrtStream> made;
    aclrtStream s = nullptr;
    while (aclrtCreateStream(&s) == ACL_SUCCESS) made.push_back(s);
    for (const aclrtStream m : made) OK(aclrtDestroyStream(m));
    return made.size();
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Allocators, testing::Values("cpu", "sim"), backend_of);

void append(std::vector<int>* list, int n) { list->push_back(n); }

TEST_P(Allocators, AListGrowsInPlaceAndEndsWithItsAllocator) {
  const std::size_t before = room();
  {
    const gert::StreamAllocator allocator(7, ACL_STREAM_FAST_LAUNCH);
    auto* const none = allocator.AcquireStreams(0);
    ASSERT_NE(none, nullptr);
    EXPECT_EQ(none->GetSize(), 0u);
    EXPECT_EQ(none->GetCapacity(), 2024u);
    auto* const streams = allocator.AcquireStreams(3);
    ASSERT_EQ(streams, none);
    const rtStream_t* const data = streams->GetData();
    const std::vector<rtStream_t> first(data, data + 3);
    EXPECT_EQ(std::set<rtStream_t>(first.begin(), first.end()).size(), 3u);
    EXPECT_EQ(allocator.AcquireStreams(100), streams);
    EXPECT_EQ(streams->GetData(), data);
    EXPECT_EQ(std::vector<rtStream_t>(data, data + 3), first);
    EXPECT_EQ(allocator.AcquireStreams(2), streams);
    EXPECT_EQ(streams->GetSize(), 100u);
    EXPECT_EQ(allocator.AcquireStreams(2025), nullptr);
    EXPECT_EQ(streams->GetSize(), 100u);
    std::vector<int> order;
    OK(MST_LAUNCH(append, 1, nullptr, data[99])(&order, 1));
    OK(aclrtSynchronizeStream(data[99]));
    EXPECT_EQ(order.size(), 1u);
  }
  EXPECT_EQ(room(), before);
}

// With k streams left the k-th further create fails: those of this call are destroyed again, and with room it works.
TEST_P(Allocators, AcquiringAllFailsCleanlyAtEachStreamThatCannotBeMade) {
  const std::size_t all = room();  // 2047: the default stream is one
  ASSERT_EQ(all, 2047u);
  std::vector<aclrtStream> taken;
  const gert::StreamAllocator allocator;
  auto* const streams = allocator.AcquireStreams(5);
  const auto leave = [&](std::size_t k) {
    while (taken.size() > all - 5 - k) {
      OK(aclrtDestroyStream(taken.back()));
      taken.pop_back();
    }
    while (taken.size() < all - 5 - k) taken.push_back(stream());
  };
  for (const std::size_t k : {0, 1, 2, 3, 63, 64, 500, 1023, 1024, 1025, 2000, 2017, 2018}) {
    leave(k);
    EXPECT_EQ(allocator.AcquireStreams(2024), nullptr) << k;
    EXPECT_TRUE(said("207008")) << aclGetRecentErrMsg();
    EXPECT_EQ(streams->GetSize(), 5u);
    aclrtStreamStatus status;
    OK(aclrtStreamQuery(streams->GetData()[4], &status));
    if (k % 8 == 0) {
      EXPECT_EQ(room(), k);
    }
  }
  leave(2019);
  EXPECT_EQ(allocator.AcquireStreams(2024), streams);
  EXPECT_EQ(streams->GetSize(), 2024u);
}

TEST_P(Allocators, ADeviceWithFewerStreamsThanAListHoldsRefusesAFullList) {
  reopen("a2");
  const gert::StreamAllocator allocator;
  EXPECT_EQ(allocator.AcquireStreams(2024), nullptr);
  EXPECT_TRUE(said("1984")) << aclGetRecentErrMsg();
  ASSERT_NE(allocator.AcquireStreams(1983), nullptr);
  EXPECT_EQ(allocator.AcquireStreams(1984), nullptr);
}

TEST_P(Allocators, AnAllocatorMayEndInAThreadWithoutItsContextAndAfterItsDevice) {
  const std::size_t before = room();
  auto allocator = std::make_unique<gert::StreamAllocator>();
  ASSERT_NE(allocator->AcquireStreams(10), nullptr);
  std::thread([&] {
    allocator.reset();
    CODE(107002, aclrtSynchronizeDevice());
  }).join();
  EXPECT_EQ(room(), before);
  allocator = std::make_unique<gert::StreamAllocator>();
  ASSERT_NE(allocator->AcquireStreams(10), nullptr);
  OK(aclrtResetDevice(0));
  EXPECT_EQ(allocator->AcquireStreams(11), nullptr);
  allocator.reset();
}

TEST_P(Allocators, ThreadsShareOneList) {
  aclrtContext context = nullptr;
  OK(aclrtGetCurrentContext(&context));
  const gert::StreamAllocator allocator;
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      OK(aclrtSetCurrentContext(context));
      for (std::size_t n = 0; n < 50; ++n) {
        const auto* const streams = allocator.AcquireStreams(n * t);
        ASSERT_NE(streams, nullptr);
        if (n != 0) {
          OK(aclrtSynchronizeStream(streams->GetData()[n * t - 1]));
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(allocator.AcquireStreams(0)->GetSize(), 196u);
}

TEST_P(Allocators, ModelsShareStreamsAndOneModelNeverGetsAStreamTwice) {
  const std::size_t before = room();
  const std::unique_ptr<ge::ReusableStreamAllocator> pool(ge::ReusableStreamAllocator::Create());
  const auto get = [&](std::uint32_t model, std::int32_t priority, std::uint32_t flag, std::uint32_t tasks) {
    aclrtStream s = nullptr;
    EXPECT_EQ(pool->GetOrCreateRtStream(s, model, priority, flag, tasks), ge::SUCCESS) << aclGetRecentErrMsg();
    return s;
  };
  const aclrtStream a = get(1, 0, 0, 10), b = get(1, 0, 0, 100);
  EXPECT_NE(a, b);
  EXPECT_EQ(get(2, 0, 0, 90), b);           // nearest
  EXPECT_EQ(get(2, 0, 0, 90), a);           // b is model 2's already
  EXPECT_NE(get(2, 0, 0, 90), a);
  EXPECT_NE(get(3, 1, 0, 90), b);           // another priority
  int marker = 0;
  aclrtStream none = &marker;
  EXPECT_EQ(pool->GetOrCreateRtStream(none, 1, 8, 0), ge::FAILED);
  EXPECT_EQ(none, &marker);
  EXPECT_EQ(pool->DestroyStream(a), ge::SUCCESS);  // one use less
  OK(aclrtSynchronizeStream(a));
  EXPECT_EQ(pool->DestroyStream(a), ge::SUCCESS);
  CODE(107017, aclrtSynchronizeStream(a));
  EXPECT_EQ(pool->DestroyStream(a), ge::FAILED);
  EXPECT_EQ(pool->DestroyStream(b, true), ge::SUCCESS);
  CODE(107017, aclrtSynchronizeStream(b));
  pool->ReleaseModel(2);
  pool->ReleaseModel(3);
  EXPECT_EQ(room(), before);
}

TEST_P(Allocators, ModelsThatShareAStreamRunOneAfterTheOther) {
  std::unique_ptr<ge::ReusableStreamAllocator> pool(ge::ReusableStreamAllocator::Create());
  aclrtStream shared = nullptr, again = nullptr;
  ASSERT_EQ(pool->GetOrCreateRtStream(shared, 1, 0, ACL_STREAM_PERSISTENT), ge::SUCCESS);
  ASSERT_EQ(pool->GetOrCreateRtStream(again, 2, 0, ACL_STREAM_PERSISTENT), ge::SUCCESS);
  ASSERT_EQ(shared, again);
  std::vector<int> order;
  aclmdlRI models[2];
  for (int i = 0; i < 2; ++i) {
    OK(aclmdlRIBuildBegin(&models[i], 0));
    OK(aclmdlRIBindStream(models[i], shared, ACL_MODEL_STREAM_FLAG_HEAD));
    OK(MST_LAUNCH(append, 1, nullptr, shared)(&order, i));
    OK(aclmdlRIEndTask(models[i], shared));
    OK(aclmdlRIBuildEnd(models[i], nullptr));
  }
  const aclrtStream run[2] = {stream(), stream()};
  for (int i = 0; i < 20; ++i) OK(aclmdlRIExecuteAsync(models[i % 2], run[i % 2]));
  OK(aclrtSynchronizeDevice());
  EXPECT_EQ(order.size(), 20u);
  for (const aclmdlRI m : models) OK(aclmdlRIDestroy(m));
}

}  // namespace
}  // namespace millstream
