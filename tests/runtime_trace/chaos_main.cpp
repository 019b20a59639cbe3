// SPDX-License-Identifier: Apache-2.0
// chaos_main [--seconds N] [--seed N]: random programs on several devices at once, on 1, 2 and 8 workers with and
// without delays, while other devices are closed by force under load. Every trace is checked, nothing may hang, and
// neither memory nor threads may grow.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "millstream/core/error.h"
#include "tests/runtime_trace/checker.h"
#include "tests/runtime_trace/random_program.h"

namespace millstream::rt {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> failed{false};
std::atomic<std::uint64_t> programs{0}, resets{0};

void complain(const std::string& text) {
  std::fprintf(stderr, "chaos: %s\n", text.c_str());
  failed = true;
}

// The address sanitizer keeps what is freed for a while.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

// Number after "VmRSS:" or "Threads:" of this process.
std::uint64_t of_process(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != key) continue;
    std::uint64_t number = 0;
    status >> number;
    return number;
  }
  return 0;
}

// Bytes that the process has allocated and not given back, over all arenas; glibc alone tells.
std::uint64_t heap_in_use() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const out = open_memstream(&text, &size);
  if (out == nullptr || malloc_info(0, out) != 0 || std::fclose(out) != 0) return 0;
  const std::string xml(text, size);
  std::free(text);
  // The sums over all arenas are the last of each name.
  const auto last = [&](const std::string& before) -> std::uint64_t {
    const std::size_t at = xml.rfind(before);
    if (at == std::string::npos) return 0;
    return std::strtoull(xml.c_str() + xml.find("size=\"", at) + 6, nullptr, 10);
  };
  return last("<system type=\"current\"") + last("<total type=\"mmap\"") - last("<total type=\"fast\"") - last("<total type=\"rest\"");
}

// KiB that stay when the allocator has given back what it only keeps for later. It does so for its first arena alone.
std::uint64_t resident() {
  malloc_trim(0);
  return of_process("VmRSS:");
}

void run_programs(std::uint64_t seed, std::int32_t ordinal, Clock::time_point until) {
  for (; Clock::now() < until && !failed; ++seed) {
    const BackendId backend = seed % 8 == 0 ? BackendId::sim : BackendId::cpu;
    const ProgramRun run = run_random_program(seed, {backend, ordinal, 0, seed % 5 == 0 ? 400u : 60u});
    if (run.wrong) complain(*run.wrong);
    ++programs;
  }
}

void nap(void*) { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

// Hosts submit while the device is closed under them: every call answers, and what had been submitted runs.
void run_resets(std::uint64_t seed, std::int32_t ordinal, Clock::time_point until) {
  static const KernelFunction kNothing{"nothing"};
  for (; Clock::now() < until && !failed; ++seed) {
    Profile profile;
    profile.devices = 4;
    profile.workers = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 2 : 8;
    profile.orphan_wait_ms = 3;
    if (seed % 2 == 0) profile.delay_seed = seed;
    Result<Device> device = Device::open(seed % 7 == 0 ? BackendId::sim : BackendId::cpu, ordinal, profile);
    if (!device.ok()) return complain(to_string(device.error()));
    std::vector<Context> contexts;
    contexts.push_back(device->primary());
    contexts.push_back(std::move(*device->create_context()));
    std::vector<Stream> streams;
    std::vector<Event> events;
    for (std::size_t i = 0; i < 6; ++i) {
      streams.push_back(std::move(*contexts[i % 2].create_stream()));
      events.push_back(std::move(*contexts[i % 2].create_event(i < 3 ? Event::Kind::snapshot : Event::Kind::latch)));
    }
    std::vector<std::thread> hosts;
    for (std::size_t h = 0; h < 2; ++h) {
      hosts.emplace_back([&, h] {
        for (std::uint64_t n = seed + h;; ++n) {
          Stream& s = streams[n % 6];
          Result<void> done;
          switch (n % 8) {
            case 0: done = s.record(events[n % 6]); break;
            case 1: done = s.wait(events[(n + 3) % 6]); break;
            case 2: done = s.host_func(nap, nullptr); break;
            case 3: done = n % 64 == 3 ? s.synchronize(std::chrono::milliseconds(1)) : s.launch(kNothing, {}, {}); break;
            case 4: done = n % 32 == 4 ? s.abort() : s.launch(kNothing, {}, {}); break;
            default: done = s.launch(kNothing, {3}, {}); break;
          }
          if (!done.ok() && done.error().code == ErrorCode::bad_handle) return;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(seed * 7919 % 20000));
    const Result<void> reset = device->reset(ResetMode::force);
    if (!reset.ok() && reset.error().code != ErrorCode::deadlock) complain("reset: " + to_string(reset.error()));
    for (std::thread& h : hosts) h.join();
    ++resets;
  }
}

int run(std::uint64_t seconds, std::uint64_t seed) {
  mallopt(M_ARENA_MAX, 2);
  const Watchdog watchdog(120);
  // What a process keeps once it has run a little: allocator's arenas, thread stacks.
  run_programs(seed, 0, Clock::now() + std::chrono::seconds(std::max<std::uint64_t>(1, seconds / 10)));
  const std::uint64_t threads = of_process("Threads:"), memory = resident(), heap = heap_in_use();
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  const auto slice = std::chrono::seconds(15);
  for (std::uint64_t round = 1; Clock::now() < end && !failed; ++round) {
    const auto until = std::min(end, Clock::now() + slice);
    std::vector<std::thread> drivers;
    for (std::int32_t ordinal = 0; ordinal < 2; ++ordinal) {
      drivers.emplace_back(run_programs, seed + round * 10'000'000 + static_cast<std::uint64_t>(ordinal) * 1'000'000, ordinal, until);
    }
    drivers.emplace_back(run_resets, seed + round, 2, until);
    for (std::thread& d : drivers) d.join();
    const std::uint64_t threads_now = of_process("Threads:"), memory_now = resident(), heap_now = heap_in_use();
    fmt::print("chaos: {} programs, {} resets, {} threads, {} MiB, {} KiB of heap in use\n", programs.load(), resets.load(), threads_now,
               memory_now / 1024, heap_now / 1024);
    std::fflush(stdout);
    if (threads_now != threads) complain(fmt::format("{} threads at rest, {} before", threads_now, threads));
    if (kMemoryIsOurs && memory_now > memory + 64 * 1024) complain(fmt::format("{} MiB at rest, {} before", memory_now / 1024, memory / 1024));
    if (heap_now > heap + 256 * 1024) complain(fmt::format("{} KiB of heap in use at rest, {} before", heap_now / 1024, heap / 1024));
  }
  fmt::print("chaos: {} passed, {} failed\n", programs.load() + resets.load() - (failed ? 1 : 0), failed ? 1 : 0);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace millstream::rt

int main(int argc, char** argv) {
  std::uint64_t seconds = 3600, seed = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    char* end = nullptr;
    const std::uint64_t value = i + 1 < argc ? std::strtoull(argv[i + 1], &end, 10) : 0;
    if ((option == "--seconds" || option == "--seed") && value != 0 && *end == '\0') {
      (option == "--seconds" ? seconds : seed) = value;
      continue;
    }
    const bool asked = option == "--help" || option == "-h";
    if (!asked) fmt::print(stderr, "error: \"{}\" is no option, or its number is missing\n", option);
    fmt::print(asked ? stdout : stderr, "runtime_chaos [--seconds N] [--seed N]: random programs on devices that are closed under load\n");
    return asked ? 0 : 2;
  }
  return millstream::rt::run(seconds, seed);
}
