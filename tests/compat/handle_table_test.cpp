// SPDX-License-Identifier: Apache-2.0
#include "compat/src/acl/handle_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

extern "C" int acl_calls_from_c(void);
#include "acl/acl.h"

namespace millstream::acl {
namespace {

struct Counted final : Object {
  explicit Counted(std::atomic<int>& c) : count(c) { ++count; }
  ~Counted() override { --count; }
  std::atomic<int>& count;
};

TEST(HandleTable, AHandleIsFoundUntilItIsRemovedAndNeverAsAnotherType) {
  HandleTable table;
  std::atomic<int> live{0};
  void* const h = *table.insert(HandleType::stream, std::make_unique<Counted>(live));
  EXPECT_TRUE(table.find(HandleType::stream, h));
  EXPECT_FALSE(table.find(HandleType::event, h));
  EXPECT_EQ(table.why_not_found(h), "is a stream");
  EXPECT_TRUE(table.remove(table.find(HandleType::stream, h)));
  EXPECT_EQ(live, 0);
  EXPECT_FALSE(table.find(HandleType::stream, h));
  EXPECT_EQ(table.why_not_found(h), "is a stream that was destroyed");
  int here = 0;
  for (const std::uint64_t random : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{0x0200000100000400}, std::uint64_t{0x0200ffff00000000},
                                     reinterpret_cast<std::uint64_t>(&here)}) {
    EXPECT_FALSE(table.find(HandleType::stream, reinterpret_cast<void*>(random)));
    EXPECT_EQ(table.why_not_found(reinterpret_cast<void*>(random)), "is no handle");
  }
}

TEST(HandleTable, ASlotIsUsedAgainLowestFirstUntilItsGenerationsEnd) {
  HandleTable table(3);
  std::atomic<int> live{0};
  const auto insert = [&] { return *table.insert(HandleType::event, std::make_unique<Counted>(live)); };
  const auto slot = [](void* h) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(h)); };
  std::vector<void*> seen;
  for (int i = 0; i < 3; ++i) {
    seen.push_back(insert());
    EXPECT_EQ(slot(seen.back()), 0u);
    EXPECT_TRUE(table.remove(table.find(HandleType::event, seen.back())));
  }
  void* const next = insert();
  EXPECT_EQ(slot(next), 1u);
  for (void* const h : seen) EXPECT_FALSE(table.find(HandleType::event, h));
  EXPECT_EQ(table.live(HandleType::event), 1u);
  EXPECT_TRUE(table.remove(table.find(HandleType::event, next)));
}

TEST(HandleTable, ARemovalWaitsForCallsThatHaveBegun) {
  HandleTable table;
  std::atomic<int> live{0};
  std::atomic<bool> removed{false};
  void* const h = *table.insert(HandleType::stream, std::make_unique<Counted>(live));
  HandleTable::Pin call = table.find(HandleType::stream, h);
  std::thread other([&] {
    EXPECT_TRUE(table.remove(table.find(HandleType::stream, h)));
    removed = true;
  });
  while (table.find(HandleType::stream, h)) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(removed);
  EXPECT_EQ(live, 1);
  call.drop();
  other.join();
  EXPECT_EQ(live, 0);
}

TEST(HandleTable, OneOfManyRemovalsWins) {
  HandleTable table;
  std::atomic<int> live{0};
  for (int round = 0; round < 200; ++round) {
    void* const h = *table.insert(HandleType::stream, std::make_unique<Counted>(live));
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        if (HandleTable::Pin pin = table.find(HandleType::stream, h)) won += table.remove(std::move(pin));
      });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(live, 0);
  }
}

TEST(AclHeaders, AreC) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(acl_calls_from_c(), 0) << aclGetRecentErrMsg();
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

}  // namespace
}  // namespace millstream::acl
