// SPDX-License-Identifier: Apache-2.0
// MST_PROGRAM_COUNT programs a back-end (default 1 000), from MST_PROGRAM_SEED (default 1), of about MST_PROGRAM_SIZE calls
// a host thread (default 40). With one program the trace of a failing one is printed.
#include "tests/runtime_trace/random_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

namespace millstream::rt {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void run_all(BackendId backend) {
  const Watchdog watchdog(60);
  const std::uint64_t count = number("MST_PROGRAM_COUNT", 1000), first = number("MST_PROGRAM_SEED", 1);
  auto said = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    ProgramPlace place{backend};
    place.size = static_cast<std::uint32_t>(number("MST_PROGRAM_SIZE", place.size));
    const ProgramRun run = run_random_program(first + i, place);
    if (run.wrong) ADD_FAILURE() << *run.wrong << "\nagain: MST_PROGRAM_SEED=" << first + i << " MST_PROGRAM_COUNT=1" << (count == 1 ? "\n" + to_text(run.trace) : "");
    if (backend == BackendId::sim && run.one_host) {
      const ProgramRun again = run_random_program(first + i, place);
      EXPECT_EQ(to_text(run.trace), to_text(again.trace)) << "two runs of seed " << first + i << " differ";
    }
    if (testing::Test::HasFailure()) return;
    if (count > 10000 && std::chrono::steady_clock::now() - said > std::chrono::seconds(15)) {
      said = std::chrono::steady_clock::now();
      fmt::print("{} of {} programs\n", i + 1, count);
      std::fflush(stdout);
    }
  }
}

TEST(RandomPrograms, OfThreadsKeepTheRules) { run_all(BackendId::cpu); }
TEST(RandomPrograms, OfVirtualTimeKeepTheRulesAndAreTheSameTwice) { run_all(BackendId::sim); }

}  // namespace
}  // namespace millstream::rt
