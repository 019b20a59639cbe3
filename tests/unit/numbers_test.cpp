// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "millstream/runtime/objects.h"

namespace millstream::rt {
namespace {

// Also those that lie far below the last one given out.
TEST(Numbers, GivenBackAreTakenAgainTheLowestFirst) {
  Numbers numbers(200);
  for (std::uint32_t i = 0; i < 200; ++i) EXPECT_EQ(i, numbers.take());
  EXPECT_EQ(std::nullopt, numbers.take());
  for (const std::uint32_t i : {199u, 3u, 130u, 64u}) numbers.give_back(i);
  EXPECT_EQ(196u, numbers.in_use());
  for (const std::uint32_t i : {3u, 64u, 130u, 199u}) EXPECT_EQ(i, numbers.take());
  EXPECT_EQ(std::nullopt, numbers.take());
}

TEST(Budget, HasAsManyAsWereNotTakenOrWereGivenBack) {
  Budget budget(2);
  EXPECT_TRUE(budget.take());
  EXPECT_TRUE(budget.take());
  EXPECT_FALSE(budget.take());
  budget.give_back();
  EXPECT_TRUE(budget.take());
  EXPECT_FALSE(budget.take());
}

}  // namespace
}  // namespace millstream::rt
