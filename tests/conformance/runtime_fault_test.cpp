// SPDX-License-Identifier: Apache-2.0
// No memory at the k-th allocation of a call, for every k: the call says so, nothing is lost, and the next one works. And
// as many streams and events as a device may have, on few threads and little memory.
#include "tests/conformance/runtime_fixture.h"

#include <cstdlib>
#include <fstream>
#include <new>

#include "millstream/runtime/objects.h"

namespace {

// Of the thread that tests: the allocation that fails, counted down.
thread_local int fails_in = 0;
thread_local bool failed = false;

bool fails() {
  if (fails_in == 0 || --fails_in != 0) return false;
  failed = true;
  return true;
}

}  // namespace

// Not inlined: the compiler must not see that memory of `new` is of malloc.
#define MST_APART __attribute__((noinline))
MST_APART void* operator new(std::size_t bytes) {
  void* const p = fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
MST_APART void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes); }
MST_APART void operator delete(void* p) noexcept { std::free(p); }
MST_APART void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

const KernelFunction kNothing{"nothing"};

struct Counts {
  std::uint32_t streams, contexts, notifies, events, ids;
  friend bool operator==(const Counts&, const Counts&) = default;
};
Counts counts(Device& device) {
  rt::DeviceState& d = *device.state();
  return {d.stream_numbers.in_use(), d.context_numbers.in_use(), d.notify_numbers.in_use(), d.event_numbers.in_use(), d.event_ids.in_use()};
}

// The call, with each of its allocations failing in turn. `call` makes something and lets it go again.
int fail_each(Device& device, const std::function<Result<void>()>& call) {
  EXPECT_OK(call());
  const Counts before = counts(device);
  for (int k = 1;; ++k) {
    failed = false;
    fails_in = k;
    const Result<void> answer = call();
    fails_in = 0;
    if (!failed) {
      EXPECT_OK(answer);
      return k - 1;
    }
    if (answer.ok() || answer.error().code != ErrorCode::no_memory) {
      ADD_FAILURE() << "allocation " << k << ": " << (answer.ok() ? "no error" : to_string(answer.error()));
      return k;
    }
    EXPECT_EQ(before, counts(device)) << "allocation " << k;
    EXPECT_OK(call());
    if (testing::Test::HasFailure()) return k;
  }
}
template <class T>
Result<void> status(const Result<T>& made) {
  return made.ok() ? Result<void>() : Result<void>(made.error());
}

TEST_P(OnEveryBackend, ACreationWithoutMemoryChangesNothing) {
  // Closing allocates too: what is made here is kept, and ends outside.
  std::vector<Stream> streams;
  std::vector<Context> contexts;
  streams.reserve(1), contexts.reserve(1);
  const auto made = [&](const std::function<Result<void>()>& make) {
    return [&streams, &contexts, make] {
      const int armed = std::exchange(fails_in, 0);
      streams.clear(), contexts.clear();
      fails_in = armed;
      Result<void> done = make();
      const int left = std::exchange(fails_in, 0);
      if (!done.ok()) return done;
      streams.clear(), contexts.clear();
      fails_in = left;
      return done;
    };
  };
  const auto stream_of = [&](StreamOptions options) {
    return made([this, &streams, options]() -> Result<void> {
      MST_TRY(Stream s, context->create_stream(options));
      streams.push_back(std::move(s));
      return {};
    });
  };
  EXPECT_GE(fail_each(*device, stream_of({})), 1);
  EXPECT_GE(fail_each(*device, stream_of({.fast_launch = true})), 2);
  EXPECT_GE(fail_each(*device, made([this, &contexts]() -> Result<void> {
              MST_TRY(Context c, device->create_context());
              contexts.push_back(std::move(c));
              return {};
            })), 2);
  EXPECT_GE(fail_each(*device, [&] { return status(context->create_event(Event::Kind::snapshot)); }), 1);
  EXPECT_GE(fail_each(*device, [&] { return status(context->create_event(Event::Kind::latch)); }), 2);
  EXPECT_GE(fail_each(*device, [&] { return status(context->create_notify()); }), 1);
}

TEST_P(OnEveryBackend, TheFirstContextOfADeviceWithoutMemoryChangesNothing) {
  for (int k = 1;; ++k) {
    open({});
    const Counts before = counts(*device);
    failed = false;
    fails_in = k;
    const Result<Context> made = device->create_context();
    fails_in = 0;
    if (!failed) break;
    EXPECT_CODE(no_memory, status(made));
    EXPECT_EQ(before, counts(*device)) << "allocation " << k;
    EXPECT_EQ(1u, device->state()->live_contexts().size());
  }
}

TEST_P(OnEveryBackend, ASubmitWithoutMemoryPutsNothingIntoTheStream) {
  Stream s = stream(), gate = stream();
  Event latch = event(Event::Kind::latch), e = event();
  int ran = 0;
  const auto body = +[](const KernelCall& call) -> Result<void> {
    int* count = nullptr;
    std::memcpy(&count, call.arguments.data(), sizeof count);
    ++*count;
    return {};
  };
  const KernelFunction count{"count", body};
  EXPECT_OK(s.wait(latch));  // nothing runs, so every block of the queue is new
  std::array<int*, 5> arguments{&ran};
  int expected = 0;
  int most = 0;
  for (int i = 0; i < 200; ++i) {
    const Counts before = counts(*device);
    for (int k = 1;; ++k) {
      failed = false;
      fails_in = k;
      const Result<void> answer = s.launch(count, {}, std::as_bytes(std::span(arguments)));
      fails_in = 0;
      if (answer.ok()) break;
      EXPECT_CODE(no_memory, answer);
      EXPECT_TRUE(failed);
      most = std::max(most, k);
    }
    ++expected;
    for (int k = 1;; ++k) {
      fails_in = k;
      const Result<void> answer = s.record(e);
      fails_in = 0;
      if (answer.ok()) break;
      EXPECT_CODE(no_memory, answer);
      EXPECT_EQ(before, counts(*device));
    }
  }
  EXPECT_GE(most, 2) << "the argument block, and a block of the queue";
  EXPECT_OK(gate.record(latch));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(ran, expected);
  EXPECT_EQ(device->state()->event_ids.in_use(), 1u);  // the latch's
}

TEST_P(OnEveryBackend, ACreationWithoutAStreamLeftSaysSoAndTheNextOneWorks) {
  Profile profile;
  profile.max_streams = 2;
  profile.max_notifies = 1;
  profile.max_events = 1;
  open(profile);
  {
    const Stream last = stream();
    const Counts before = counts(*device);
    EXPECT_CODE(no_more_streams, device->create_context());
    EXPECT_CODE(no_more_streams, context->create_stream());
    EXPECT_EQ(before, counts(*device));
  }
  EXPECT_TRUE(device->create_context().ok());
  {
    const Notify n = std::move(*context->create_notify());
    EXPECT_CODE(no_notify, context->create_notify());
  }
  EXPECT_TRUE(context->create_notify().ok());
  {
    const Event latch = event(Event::Kind::latch);
    EXPECT_CODE(no_event, context->create_event(Event::Kind::latch));
    Event e = event();
    Stream s = stream();
    EXPECT_CODE(no_event, s.record(e));
  }
  EXPECT_TRUE(context->create_event(Event::Kind::latch).ok());
}

TEST_P(OnEveryBackend, ASynchroniseWithoutMemorySaysSo) {
  Stream s = stream();
  EXPECT_OK(s.launch(kNothing, {}, {}));
  failed = false;
  fails_in = 1;
  EXPECT_CODE(no_memory, s.synchronize());
  fails_in = 0;
  EXPECT_TRUE(failed);
  EXPECT_OK(s.synchronize());
}

// Number after "VmRSS:" or "Threads:" of this process.
std::uint64_t of_process(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    if (word != key) continue;
    std::uint64_t number = 0;
    in >> number;
    return number;
  }
  return 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kMostKiB = 512 * 1024;
#else
constexpr std::uint64_t kMostKiB = 24 * 1024;
#endif

TEST_P(OnEveryBackend, ADeviceFullOfStreamsAndEventsTakesFewThreadsAndLittleMemory) {
  context.reset();
  device.reset();
  const std::uint64_t threads = of_process("Threads:"), memory = of_process("VmRSS:");
  Profile profile;
  profile.max_events = 65535;
  profile.workers = std::max(1u, std::thread::hardware_concurrency());
  open(profile);
  std::vector<Stream> streams;
  for (int i = 0; i < 2024; ++i) streams.push_back(stream());
  std::vector<Event> events;
  events.reserve(65535);
  for (int i = 0; i < 65535; ++i) events.push_back(event(Event::Kind::latch));
  EXPECT_CODE(no_event, context->create_event(Event::Kind::latch));
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_OK(streams[i].launch(kNothing, {}, {}));
    EXPECT_OK(streams[i].record(events[i * 32]));
    EXPECT_OK(streams[(i + 1) % streams.size()].wait(events[i * 32]));
  }
  EXPECT_OK(context->synchronize());
  EXPECT_LE(of_process("Threads:"), threads + std::thread::hardware_concurrency() + 3);
  EXPECT_LE(of_process("VmRSS:"), memory + kMostKiB);
  events.pop_back();
  EXPECT_TRUE(context->create_event(Event::Kind::latch).ok());
}

}  // namespace
}  // namespace millstream
