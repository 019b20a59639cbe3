// SPDX-License-Identifier: Apache-2.0
// Calls of the acl interface at random, from threads that share their handles: good ones, stale ones, null and numbers,
// in any phase, while contexts and devices end. Each call answers with a number, none crashes, none waits for ever, and
// nothing is left when the device has ended.
//   MST_ACL_SEED, MST_ACL_COUNT: the first seed and the number of rounds
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "compat/src/acl/objects.h"
#include "tests/compat/acl_fixture.h"

namespace millstream {
namespace {

constexpr unsigned kThreads = 3;
constexpr int kCalls = 200;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Handles of one kind that the threads hand to each other.
class Pool {
 public:
  void put(std::mt19937_64& random, void* handle) { slots_[random() % slots_.size()].store(handle, std::memory_order_relaxed); }
  void* get(std::mt19937_64& random) const { return slots_[random() % slots_.size()].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<void*>, 6> slots_{};
};

int count(const void* argument) {
  std::atomic<int>* counter = nullptr;
  std::memcpy(&counter, argument, sizeof counter);
  counter->fetch_add(1, std::memory_order_relaxed);
  return 0;
}
int fails(const void*) { return 1; }

struct Shared {
  Pool contexts, streams, events, notifies, models, device_blocks, host_blocks;
  std::atomic<int> counter{0};
  std::atomic<bool> inside{false};       // a host function calls
  std::atomic<int> calls{0}, refused{0}, wrong{0};
  std::int32_t left = 0, right = 1;

  // Of one call alone, until the device has ended: what copies and fills do in parallel is the caller's affair.
  std::int64_t* fresh() {
    const std::lock_guard lock(memory_mutex_);
    return memory_.emplace_back().data();
  }

  // A pool's handle, most often; sometimes of another pool, null, or a number.
  void* any(std::mt19937_64& random, const Pool& pool) {
    const Pool* const all[] = {&contexts, &streams, &events, &notifies, &models, &device_blocks, &host_blocks};
    const std::uint64_t draw = random() % 40;
    if (draw == 0) return nullptr;
    if (draw == 1) return reinterpret_cast<void*>(random());
    if (draw == 2) return all[random() % std::size(all)]->get(random);
    return pool.get(random);
  }

 private:
  std::mutex memory_mutex_;
  std::deque<std::array<std::int64_t, 64>> memory_;
};

void call_back(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  if (aclrtSynchronizeDevice() != 207006) ++shared.wrong;
}

template <class Make>
aclError made(Pool& pool, std::mt19937_64& random, Make make) {
  void* handle = nullptr;
  const aclError error = make(&handle);
  if (error == ACL_SUCCESS) pool.put(random, handle);
  return error;
}

// A model from its first call to its executions, which chance alone seldom gets to. The other threads have its handles meanwhile.
aclError whole_model(Shared& s, std::mt19937_64& random) {
  void* model = nullptr;
  std::array<void*, 2> streams{};
  aclError error = made(s.models, random, [&](void** h) { return aclmdlRIBuildBegin(&model, 0) == ACL_SUCCESS ? (*h = model, ACL_SUCCESS) : 107002; });
  if (error != ACL_SUCCESS) return error;
  for (void*& stream : streams) {
    error = aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_PERSISTENT);
    if (error != ACL_SUCCESS) return error;
    s.streams.put(random, stream);
    (void)aclmdlRIBindStream(model, stream, ACL_MODEL_STREAM_FLAG_HEAD);
    std::atomic<int>* const counter = &s.counter;
    (void)mst_launch("count", count, 1, &counter, sizeof counter, stream);
    if (random() % 8 == 0) (void)mst_launch("fails", fails, 1, nullptr, 0, stream);
  }
  void* const event = s.events.get(random);
  (void)aclrtRecordEvent(event, streams[0]);
  (void)aclrtStreamWaitEvent(streams[1], event);
  (void)aclmdlRIEndTask(model, streams[0]);
  error = aclmdlRIBuildEnd(model, nullptr);
  for (std::uint64_t left = random() % 4; left > 0; --left) error = aclmdlRIExecute(model, -1);
  if (random() % 2 == 0) return error;
  error = aclmdlRIDestroy(model);
  for (void* const stream : streams) (void)aclrtDestroyStream(stream);
  return error;
}

aclError one_call(Shared& s, std::mt19937_64& random, int phase) {
  const auto stream = [&] { return s.any(random, s.streams); };
  const auto event = [&] { return s.any(random, s.events); };
  const auto model = [&] { return s.any(random, s.models); };
  const auto number = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  std::atomic<int>* const counter = &s.counter;
  switch (random() % 61) {
    case 0: return aclrtSetDevice(0);
    case 1: return number(4) == 0 ? aclrtResetDevice(0) : ACL_SUCCESS;
    case 2: return phase == 2 && number(20) == 0 ? aclrtResetDeviceForce(0) : ACL_SUCCESS;
    case 3: return made(s.contexts, random, [](void** h) { return aclrtCreateContext(h, 0); });
    case 4: return number(3) == 0 ? aclrtDestroyContext(s.any(random, s.contexts)) : ACL_SUCCESS;
    case 5: return aclrtSetCurrentContext(s.any(random, s.contexts));
    case 6: return made(s.contexts, random, [](void** h) { return aclrtGetCurrentContext(h); });
    case 7: return aclrtSynchronizeDevice();
    case 8: case 9: return made(s.streams, random, [](void** h) { return aclrtCreateStream(h); });
    case 10: case 11: {
      const std::uint32_t priority = number(9), flags = number(32);
      return made(s.streams, random, [&](void** h) { return aclrtCreateStreamWithConfig(h, priority, flags); });
    }
    case 12: return made(s.streams, random, [](void** h) { return aclrtCreateStreamWithConfig(h, 0, ACL_STREAM_PERSISTENT); });
    case 13: return aclrtDestroyStream(stream());
    case 14: return aclrtDestroyStreamForce(stream());
    case 15: case 16: return aclrtSynchronizeStream(stream());
    case 17: return aclrtSynchronizeStreamWithTimeout(stream(), static_cast<int>(number(4)) - 1);
    case 18: {
      aclrtStreamStatus status;
      return aclrtStreamQuery(stream(), &status);
    }
    case 19: return aclrtSetStreamFailureMode(stream(), number(20) == 0 ? 1 : 0);
    case 20: return aclrtStreamAbort(stream());
    case 21: return aclrtLaunchHostFunc(stream(), call_back, &s);
    case 22: case 23: return made(s.events, random, [](void** h) { return aclrtCreateEvent(h); });
    case 24: case 25: {
      const std::uint32_t flags = number(16);
      return made(s.events, random, [&](void** h) { return aclrtCreateEventExWithFlag(h, flags); });
    }
    case 26: return aclrtDestroyEvent(event());
    case 27: case 28: case 29: return aclrtRecordEvent(event(), stream());
    case 30: return aclrtResetEvent(event(), stream());
    case 31: case 32: case 33: return aclrtStreamWaitEvent(stream(), event());
    case 34: {
      aclrtEventRecordedStatus status;
      return aclrtQueryEventStatus(event(), &status);
    }
    case 35: return aclrtSynchronizeEvent(event());
    case 36: {
      float ms = 0;
      return aclrtEventElapsedTime(&ms, event(), event());
    }
    case 37: return made(s.notifies, random, [](void** h) { return aclrtCreateNotify(h, 0); });
    case 38: return aclrtDestroyNotify(s.any(random, s.notifies));
    case 39: return aclrtRecordNotify(s.any(random, s.notifies), stream());
    case 40: return made(s.device_blocks, random, [&](void** h) { return aclrtMalloc(h, number(4096), ACL_MEM_MALLOC_HUGE_FIRST); });
    case 41: return made(s.host_blocks, random, [&](void** h) { return aclrtMallocHost(h, number(4096)); });
    case 42: return aclrtMemsetAsync(s.fresh(), 512, 0, number(600), stream());
    case 43: {
      std::int64_t* const at = s.fresh();
      return aclrtMemcpyAsync(at, 256, at + 32, number(300), ACL_MEMCPY_DEVICE_TO_DEVICE, stream());
    }
    case 44: case 45: case 46: case 47: return mst_launch("count", count, 1 + number(2), &counter, sizeof counter, stream());
    case 48: return number(10) == 0 ? mst_launch("fails", fails, 1, nullptr, 0, stream()) : ACL_SUCCESS;
    case 49: return made(s.models, random, [](void** h) { return aclmdlRIBuildBegin(h, 0); });
    case 50: case 51: return aclmdlRIBindStream(model(), stream(), number(3) == 0 ? ACL_MODEL_STREAM_FLAG_DEFAULT : ACL_MODEL_STREAM_FLAG_HEAD);
    case 52: return aclmdlRIEndTask(model(), stream());
    case 53: return aclmdlRIBuildEnd(model(), nullptr);
    case 54: return aclmdlRIExecute(model(), static_cast<int>(number(3)) - 1);
    case 55: return aclmdlRIExecuteAsync(model(), stream());
    case 56: return aclmdlRIUnbindStream(model(), stream());
    case 57: return aclmdlRIDestroy(model());
    case 59: return whole_model(s, random);
    case 58: return aclrtSwitchStream(&s.left, static_cast<aclrtCondition>(number(6)), &s.right, ACL_RT_SWITCH_INT32, stream(), nullptr, stream());
    default: {
      std::int64_t* const at = s.fresh();
      return aclrtMemcpy(at + 48, 64, at, number(80), ACL_MEMCPY_HOST_TO_HOST);
    }
  }
}

class AclRandom : public Acl {
 protected:
  void SetUp() override {
    Acl::SetUp();
    // A wait that nobody records for, and a loop that never ends, are told of soon: both happen all the time here.
    std::ofstream(file_) << "name = \"impatient\"\nlike = \"edge\"\n[device]\norphan_wait_ms = 3\nmax_tasks_per_execution = 10000\n";
    reopen(file_.c_str());
  }
  void TearDown() override {
    Acl::TearDown();
    std::remove(file_.c_str());
  }
  // Read at each opening.
  const std::string file_ = testing::TempDir() + "acl_random_device_" + std::to_string(getpid()) + ".toml";
};
INSTANTIATE_TEST_SUITE_P(Backends, AclRandom, testing::Values("cpu", "sim"), backend_of);

TEST_P(AclRandom, CallsFromThreadsThatShareHandlesAnswerAndLeaveNothing) {
  const std::uint64_t first = from_environment("MST_ACL_SEED", 1), rounds = from_environment("MST_ACL_COUNT", 60);
  int calls = 0, refused = 0;
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    SCOPED_TRACE("MST_ACL_SEED=" + std::to_string(seed));
    Shared shared;
    (void)aclrtSetDevice(0);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(seed * kThreads + t);
        (void)aclrtSetDevice(0);
        for (int i = 0; i < kCalls; ++i) {
          const aclError error = one_call(shared, random, static_cast<int>(seed % 3));
          ++shared.calls;
          if (error == ACL_SUCCESS) continue;
          ++shared.refused;
          if (error < 100000 || std::string(aclGetRecentErrMsg()).empty()) ++shared.wrong;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    // What is still held up waits for records that nobody makes any more.
    while (aclrtResetDeviceForce(0) == ACL_SUCCESS) {
    }
    EXPECT_EQ(shared.wrong, 0);
    for (const acl::HandleType type : {acl::HandleType::context, acl::HandleType::stream, acl::HandleType::event, acl::HandleType::notify, acl::HandleType::model}) {
      ASSERT_EQ(acl::handles().live(type), 0u) << to_string(type);
    }
    calls += shared.calls;
    refused += shared.refused;
  }
  std::printf("%d calls, %d refused\n", calls, refused);
  EXPECT_GT(calls - refused, calls / 4);
}

}  // namespace
}  // namespace millstream
