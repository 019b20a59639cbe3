// SPDX-License-Identifier: Apache-2.0
// What programs see of acl/acl.h. Wrong use of each call is in misuse_table.cpp.
#include "tests/compat/acl_fixture.h"

#include <atomic>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, Acl, testing::Values("cpu", "sim"), backend_of);

void add_block(const int* in, int* out, std::size_t n) {
  for (std::size_t i = mst_block_index(); i < n; i += mst_block_count()) out[i] = in[i] + 1;
}
void throws() { throw std::runtime_error("no such luck"); }
int returns(int status) { return status; }
// Numbers that an int does not hold.
float returns_half() { return 0.5F; }
std::int64_t returns_much() { return std::int64_t{1} << 32; }
void count(std::atomic<int>* counter) { ++*counter; }
void wait_for(std::atomic<int>* flag) {
  while (*flag == 0) std::this_thread::yield();
}
void set(void* flag) { *static_cast<std::atomic<int>*>(flag) = 1; }

TEST_P(Acl, CopiesAndKernelsOfAStreamRunInOrder) {
  for (const aclrtStream s : {stream(), static_cast<aclrtStream>(nullptr)}) {
    std::vector<int> host(100), back(100);
    for (int i = 0; i < 100; ++i) host[static_cast<std::size_t>(i)] = i;
    void *in = nullptr, *out = nullptr;
    OK(aclrtMalloc(&in, 400, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&out, 400, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMemsetAsync(out, 400, -1, 400, s));
    OK(aclrtMemcpyAsync(in, 400, host.data(), 400, ACL_MEMCPY_HOST_TO_DEVICE, s));
    OK(MST_LAUNCH(add_block, 8, nullptr, s)(static_cast<int*>(in), static_cast<int*>(out), 100));
    OK(aclrtMemcpyAsync(back.data(), 400, out, 400, ACL_MEMCPY_DEVICE_TO_HOST, s));
    OK(aclrtSynchronizeStream(s));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(back[static_cast<std::size_t>(i)], i + 1);
    OK(aclrtFree(in));
    CODE(107017, aclrtFree(in));
    OK(aclrtFree(out));
  }
}

TEST_P(Acl, ASynchronousCopyDoesNotWaitForTheDefaultStream) {
  const aclrtEvent gate = latch();
  int to = 0;
  const int first = 1, second = 2;
  OK(aclrtStreamWaitEvent(nullptr, gate));
  OK(aclrtMemcpyAsync(&to, 4, &first, 4, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
  OK(aclrtMemcpy(&to, 4, &second, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_EQ(to, 2);
  const aclrtStream s = stream();
  OK(aclrtRecordEvent(gate, s));
  OK(aclrtSynchronizeStream(nullptr));
  EXPECT_EQ(to, 1);
}

TEST_P(Acl, AKernelThatThrowsOrReturnsANumberFailsItsTask) {
  const aclrtStream s = stream();
  OK(MST_LAUNCH(throws, 1, nullptr, s)());
  CODE(507015, aclrtSynchronizeStream(s));
  EXPECT_TRUE(said("no such luck")) << aclGetRecentErrMsg();
  OK(MST_LAUNCH(returns, 3, nullptr, s)(7));
  CODE(507015, aclrtSynchronizeStream(s));
  OK(MST_LAUNCH(returns, 3, nullptr, s)(0));
  OK(MST_LAUNCH(returns_half, 1, nullptr, s)());
  CODE(507015, aclrtSynchronizeStream(s));
  OK(MST_LAUNCH(returns_much, 1, nullptr, s)());
  CODE(507015, aclrtSynchronizeStream(s));
  OK(aclrtSynchronizeStream(s));
  EXPECT_EQ(mst_block_count(), 0u);
}

TEST_P(Acl, ALaunchWhoseArgumentsDoNotFitIsRefused) {
  const int argument = 0;
  const mst_kernel_body never = [](const void*) { return 1; };
  for (const std::size_t bytes : {std::size_t{0xfffffff8}, std::size_t{1} << 32, (std::size_t{1} << 32) + sizeof argument, SIZE_MAX - 8, SIZE_MAX}) {
    CODE(107000, mst_launch("k", never, 1, &argument, bytes, nullptr));
    EXPECT_TRUE(said("help: at most 4294967287")) << aclGetRecentErrMsg();
  }
  OK(aclrtSynchronizeStream(nullptr));
}

TEST_P(Acl, ALaunchWithAnEmptyNameIsToldSo) {
  const mst_kernel_body never = [](const void*) { return 1; };
  CODE(107000, mst_launch("", never, 1, nullptr, 0, nullptr));
  EXPECT_TRUE(said("mst_launch: the kernel's name is empty")) << aclGetRecentErrMsg();
  OK(aclrtSynchronizeStream(nullptr));
}

TEST_P(Acl, DestroyingAStreamRunsItsTasksAndReturnsTheErrorThatNobodySaw) {
  std::atomic<int> counter{0};
  aclrtStream s = stream();
  OK(MST_LAUNCH(throws, 1, nullptr, s)());
  for (int i = 0; i < 100; ++i) OK(MST_LAUNCH(count, 1, nullptr, s)(&counter));
  CODE(507015, aclrtDestroyStream(s));
  EXPECT_TRUE(said("the stream was destroyed")) << aclGetRecentErrMsg();
  EXPECT_EQ(counter, 100);
  CODE(107017, aclrtDestroyStream(s));
  s = stream();
  const aclrtEvent gate = latch();
  OK(aclrtStreamWaitEvent(s, gate));
  OK(MST_LAUNCH(count, 1, nullptr, s)(&counter));
  aclrtDestroyStreamForce(s);
  CODE(107017, aclrtStreamAbort(s));
  EXPECT_EQ(counter, 100);
}

TEST_P(Acl, ADeviceIsOpenUntilItsLastReset) {
  OK(aclrtSetDevice(0));
  const aclrtStream s = stream();
  OK(aclrtResetDevice(0));
  aclrtStreamStatus status;
  OK(aclrtStreamQuery(s, &status));
  std::atomic<int> counter{0};
  const aclrtEvent e = latch();
  for (int i = 0; i < 100; ++i) OK(MST_LAUNCH(count, 1, nullptr, s)(&counter));
  OK(aclrtResetDevice(0));
  EXPECT_EQ(counter, 100);
  CODE(107017, aclrtSynchronizeStream(s));
  CODE(107017, aclrtSynchronizeEvent(e));
  CODE(107002, aclrtSynchronizeStream(nullptr));
  CODE(107002, aclrtResetDevice(0));
  CODE(107002, aclrtResetDeviceForce(0));
  OK(aclrtSetDevice(0));
  CODE(107017, aclrtSynchronizeStream(s));
}

TEST_P(Acl, ADeviceThatIsResetIsOpenedAnewWhenTheResetIsDone) {
  aclrtContext context = nullptr;
  OK(aclrtGetCurrentContext(&context));
  std::atomic<int> gate{0};
  std::atomic<bool> opened{false};
  OK(MST_LAUNCH(wait_for, 1, nullptr, nullptr)(&gate));
  std::thread closes([] { OK(aclrtResetDevice(0)); });
  aclrtEvent e = nullptr;
  while (aclrtCreateEvent(&e) == ACL_SUCCESS) OK(aclrtDestroyEvent(e));
  std::thread opens([&] {
    OK(aclrtSetDevice(0));
    opened = true;
    std::atomic<int> counter{0};
    OK(MST_LAUNCH(count, 1, nullptr, nullptr)(&counter));
    OK(aclrtSynchronizeStream(nullptr));
    EXPECT_EQ(counter, 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(opened);
  gate = 1;
  closes.join();
  opens.join();
  CODE(107017, aclrtSetCurrentContext(context));
}

TEST_P(Acl, AResetWhoseDrainCannotFinishFailsTheWaitsAndClosesTheDevice) {
  const std::string file = testing::TempDir() + "acl_impatient.toml";
  std::ofstream(file) << "name = \"impatient\"\nlike = \"edge\"\n[device]\norphan_wait_ms = 20\n";
  reopen(file.c_str());
  for (aclError (*const end)(std::int32_t) : {aclrtResetDevice, aclrtResetDeviceForce}) {
    std::atomic<int> before{0}, after{0};
    aclrtContext created = nullptr;
    if (end == aclrtResetDeviceForce) {
      OK(aclrtCreateContext(&created, 0));
    }
    // One waits for what nobody records; two wait for each other.
    const aclrtStream orphan = stream(), left = stream(), right = stream(), whole = stream();
    const aclrtEvent never = latch(), of_left = latch(), of_right = latch();
    for (const aclrtStream s : {orphan, left, right, whole}) OK(MST_LAUNCH(count, 1, nullptr, s)(&before));
    OK(aclrtStreamWaitEvent(orphan, never));
    OK(aclrtStreamWaitEvent(left, of_right));
    OK(aclrtRecordEvent(of_left, left));
    OK(aclrtStreamWaitEvent(right, of_left));
    OK(aclrtRecordEvent(of_right, right));
    for (const aclrtStream s : {orphan, left, right}) OK(MST_LAUNCH(count, 1, nullptr, s)(&after));
    for (int i = 0; i < 100; ++i) OK(MST_LAUNCH(count, 1, nullptr, whole)(&before));
    CODE(107019, end(0));
    EXPECT_TRUE(said("DEADLOCK")) << aclGetRecentErrMsg();
    EXPECT_EQ(before, 104);
    EXPECT_EQ(after, 0);
    for (const aclrtStream s : {orphan, left, right, whole}) CODE(107017, aclrtSynchronizeStream(s));
    CODE(107017, aclrtResetEvent(never, nullptr));
    CODE(107002, aclrtSynchronizeDevice());
    if (created != nullptr) {
      CODE(107017, aclrtSetCurrentContext(created));
    }
    OK(aclrtSetDevice(0));
    const aclrtStream again = stream();
    OK(MST_LAUNCH(count, 1, nullptr, again)(&before));
    OK(aclrtSynchronizeStream(again));
    EXPECT_EQ(before, 105);
  }
}

TEST_P(Acl, AMessageNamesTheCallOfThisInterfaceAlone) {
  const std::string file = testing::TempDir() + "acl_impatient_host.toml";
  std::ofstream(file) << "name = \"impatient\"\nlike = \"edge\"\n[device]\norphan_wait_ms = 20\n";
  reopen(file.c_str());
  CODE(107019, aclrtSynchronizeEvent(latch()));
  EXPECT_TRUE(said("aclrtSynchronizeEvent: DEADLOCK (suspected): nothing on device 0 records event")) << aclGetRecentErrMsg();
  CODE(107000, aclrtResetEvent(snapshot(), nullptr));
  EXPECT_TRUE(said("aclrtResetEvent: event") && !said("::")) << aclGetRecentErrMsg();
}

TEST_P(Acl, ADeadlockIsReportedByTheResetThoughAKernelFailedBefore) {
  const std::string file = testing::TempDir() + "acl_impatient_reset.toml";
  std::ofstream(file) << "name = \"impatient\"\nlike = \"edge\"\n[device]\norphan_wait_ms = 20\n";
  reopen(file.c_str());
  const aclrtStream waits = stream(), other = stream();
  std::atomic<int> counter{0};
  OK(MST_LAUNCH(throws, 1, nullptr, other)());
  OK(aclrtStreamWaitEvent(waits, latch()));
  OK(MST_LAUNCH(count, 1, nullptr, waits)(&counter));
  CODE(107019, aclrtResetDevice(0));
  EXPECT_TRUE(said("DEADLOCK (suspected)") && said("no such luck")) << aclGetRecentErrMsg();
  EXPECT_EQ(counter, 0);
}

TEST_P(Acl, AResetWithCreatedContextsIsRefusedWithAListOfThem) {
  aclrtContext primary = nullptr, created = nullptr, now = nullptr;
  OK(aclrtGetCurrentContext(&primary));
  OK(aclrtCreateContext(&created, 0));
  OK(aclrtGetCurrentContext(&now));
  EXPECT_EQ(now, created);
  const aclrtStream s = stream();
  CODE(507007, aclrtResetDevice(0));
  EXPECT_TRUE(said("context 1 with 2 streams")) << aclGetRecentErrMsg();
  OK(aclrtSynchronizeStream(s));
  OK(aclrtSetCurrentContext(primary));
  CODE(107003, aclrtSynchronizeStream(s));
  CODE(107000, aclrtDestroyContext(primary));
  OK(aclrtDestroyContext(created));
  CODE(107017, aclrtDestroyContext(created));
  CODE(107017, aclrtSynchronizeStream(s));
  OK(aclrtCreateContext(&created, 0));
  OK(aclrtResetDeviceForce(0));
  CODE(107017, aclrtSetCurrentContext(created));
}

TEST_P(Acl, TheCurrentContextIsTheThreadsOwn) {
  aclrtContext created = nullptr;
  OK(aclrtCreateContext(&created, 0));
  const aclrtStream s = stream();
  std::atomic<int> step{0};
  std::thread other([&] {
    CODE(107002, aclrtSynchronizeDevice());
    EXPECT_TRUE(said("no current context")) << aclGetRecentErrMsg();
    CODE(107002, aclrtSynchronizeStream(s));
    OK(aclrtSetCurrentContext(created));
    OK(aclrtSynchronizeStream(s));
    step = 1;
    while (step != 2) std::this_thread::yield();
    CODE(107002, aclrtSynchronizeDevice());
    EXPECT_TRUE(said("was destroyed")) << aclGetRecentErrMsg();
  });
  while (step != 1) std::this_thread::yield();
  CODE(100000, aclrtGetDevice(nullptr));
  EXPECT_TRUE(said("aclrtGetDevice: deviceId is null [100000")) << aclGetRecentErrMsg();
  OK(aclrtDestroyContext(created));
  step = 2;
  other.join();
  EXPECT_TRUE(said("aclrtGetDevice: deviceId is null [100000")) << aclGetRecentErrMsg();
  CODE(107002, aclrtSynchronizeDevice());
  OK(aclrtSetCurrentContext(nullptr));
  CODE(107002, aclrtSynchronizeDevice());
}

TEST_P(Acl, TheTwoKindsOfEventsAndTheirTwoQueries) {
  const aclrtStream s = stream();
  const aclrtEvent bit = latch(), snap = snapshot();
  aclrtEventStatus old;
  aclrtEventRecordedStatus recorded;
  OK(aclrtQueryEvent(snap, &old));
  EXPECT_EQ(old, 0);
  OK(aclrtQueryEventStatus(snap, &recorded));
  EXPECT_EQ(recorded, 1);
  OK(aclrtQueryEvent(bit, &old));
  EXPECT_EQ(old, 1);
  OK(aclrtQueryEventStatus(bit, &recorded));
  EXPECT_EQ(recorded, 0);
  OK(aclrtStreamWaitEvent(s, snap));  // never recorded: nothing to wait for
  OK(aclrtRecordEvent(bit, s));
  OK(aclrtSynchronizeEvent(bit));
  OK(aclrtQueryEventStatus(bit, &recorded));
  EXPECT_EQ(recorded, 1);
  OK(aclrtResetEvent(bit, s));
  OK(aclrtSynchronizeStream(s));
  OK(aclrtQueryEventStatus(bit, &recorded));
  EXPECT_EQ(recorded, 0);
  CODE(107000, aclrtResetEvent(snap, s));
  OK(aclrtDestroyEvent(snap));
  CODE(107017, aclrtRecordEvent(snap, s));
}

TEST_P(Acl, ElapsedTimeNeedsTwoTimedAndCompleteRecords) {
  const aclrtStream s = stream();
  const aclrtEvent start = snapshot(), end = snapshot(), plain = snapshot(ACL_EVENT_SYNC), silent = snapshot(ACL_EVENT_TIME_LINE);
  float ms = -1;
  CODE(107006, aclrtEventElapsedTime(&ms, start, end));
  OK(aclrtRecordEvent(start, s));
  const aclrtEvent gate = latch();
  OK(aclrtStreamWaitEvent(s, gate));
  OK(aclrtRecordEvent(end, s));
  CODE(507006, aclrtEventElapsedTime(&ms, start, end));
  EXPECT_EQ(ms, -1);
  OK(aclrtRecordEvent(gate, nullptr));
  OK(aclrtSynchronizeEvent(end));
  OK(aclrtEventElapsedTime(&ms, start, end));
  EXPECT_GT(ms, 0);
  CODE(107007, aclrtEventElapsedTime(&ms, end, start));
  CODE(107006, aclrtEventElapsedTime(&ms, plain, end));
  CODE(107000, aclrtStreamWaitEvent(s, silent));
}

TEST_P(Acl, ElapsedTimeOfALatchIsNotCompleteWhileARecordIsQueued) {
  const aclrtStream s = stream();
  const aclrtEvent start = latch(), end = latch(), gate = latch();
  float ms = -1;
  OK(aclrtRecordEvent(start, s));
  OK(aclrtSynchronizeStream(s));
  CODE(107006, aclrtEventElapsedTime(&ms, start, end));
  EXPECT_TRUE(said("ACL_EVENT_TIME_LINE")) << aclGetRecentErrMsg();
  OK(aclrtStreamWaitEvent(s, gate));
  OK(aclrtRecordEvent(end, s));
  CODE(507006, aclrtEventElapsedTime(&ms, start, end));
  CODE(507006, aclrtEventElapsedTime(&ms, end, start));
  EXPECT_EQ(ms, -1);
  OK(aclrtRecordEvent(gate, nullptr));
  OK(aclrtSynchronizeStream(s));
  OK(aclrtEventElapsedTime(&ms, start, end));
  OK(aclrtResetEvent(end, s));
  OK(aclrtSynchronizeStream(s));
  CODE(107006, aclrtEventElapsedTime(&ms, start, end));
}

TEST_P(Acl, ElapsedTimeOfARecordThatWasDroppedIsWhyItWas) {
  const aclrtEvent gate = latch();
  for (const aclrtEvent e : {latch(), snapshot()}) {
    const aclrtStream s = stream();
    float ms = -1;
    OK(aclrtStreamWaitEvent(s, gate));
    OK(aclrtRecordEvent(e, s));
    OK(aclrtStreamAbort(s));
    CODE(107023, aclrtEventElapsedTime(&ms, e, e));
    EXPECT_TRUE(said("was aborted")) << aclGetRecentErrMsg();
    EXPECT_EQ(ms, -1);
    OK(aclrtRecordEvent(e, s));
    OK(aclrtSynchronizeStream(s));
    OK(aclrtEventElapsedTime(&ms, e, e));
    EXPECT_EQ(ms, 0);
  }
}

TEST_P(Acl, AWaitForAnEventOfAnotherContextIsAllowedARecordIsNot) {
  const aclrtEvent e = snapshot();
  const aclrtStream here = stream();
  OK(aclrtRecordEvent(e, here));
  aclrtContext created = nullptr;
  OK(aclrtCreateContext(&created, 0));
  const aclrtStream there = stream();
  OK(aclrtStreamWaitEvent(there, e));
  OK(aclrtSynchronizeStream(there));
  CODE(107003, aclrtRecordEvent(e, there));
  CODE(107003, aclrtDestroyEvent(e));
}

TEST_P(Acl, AModeIsPassedByAddressAndSetOnce) {
  const aclrtStream s = stream(), other = stream();
  // As the article has it: the constant is a null pointer.
  CODE(100000, aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_FAILURE_MODE, ACL_CONTINUE_ON_FAILURE));
  aclrtStreamAttrValue value{};
  value.failureMode = ACL_STOP_ON_FAILURE;
  OK(aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_FAILURE_MODE, &value));
  CODE(107000, aclrtSetStreamFailureMode(s, ACL_STOP_ON_FAILURE));
  CODE(107000, aclrtSetStreamFailureMode(other, ACL_CONTINUE_ON_FAILURE));
  CODE(107000, aclrtSetStreamFailureMode(other, 2));
  OK(aclrtSetStreamFailureMode(other, ACL_STOP_ON_FAILURE));
  CODE(100000, aclrtSetStreamFailureMode(nullptr, ACL_STOP_ON_FAILURE));
  CODE(207000, aclrtSetStreamAttribute(s, static_cast<aclrtStreamAttr>(9), &value));
}

TEST_P(Acl, AContextThatStopsRefusesWorkUntilItIsDestroyed) {
  aclrtContext created = nullptr;
  OK(aclrtCreateContext(&created, 0));
  const aclrtStream s = stream(), other = stream();
  OK(aclrtSetStreamFailureMode(s, ACL_STOP_ON_FAILURE));
  OK(MST_LAUNCH(throws, 1, nullptr, s)());
  CODE(507015, aclrtSynchronizeStream(s));
  CODE(507015, aclrtSynchronizeStream(s));
  CODE(107035, aclrtSynchronizeStream(other));
  EXPECT_TRUE(said("throws")) << aclGetRecentErrMsg();
  std::atomic<int> counter{0};
  CODE(107035, MST_LAUNCH(count, 1, nullptr, other)(&counter));
  aclrtStreamStatus status;
  CODE(107035, aclrtStreamQuery(other, &status));
  CODE(507015, aclrtSynchronizeDevice());
  EXPECT_TRUE(said("help: Context::recover (acl has none: reset the device), or destroy the context")) << aclGetRecentErrMsg();
  CODE(507015, aclrtDestroyContext(created));
  EXPECT_TRUE(said("the context was destroyed") && !said("help:")) << aclGetRecentErrMsg();
  OK(aclrtSetDevice(0));
  OK(aclrtSynchronizeDevice());
  EXPECT_EQ(counter, 0);
}

TEST_P(Acl, ASynchroniseThatTimesOutLeavesTheWorkRunning) {
  const aclrtStream s = stream();
  const aclrtEvent gate = latch();
  OK(aclrtStreamWaitEvent(s, gate));
  CODE(507046, aclrtSynchronizeStreamWithTimeout(s, 200));
  EXPECT_TRUE(said("waits for event")) << aclGetRecentErrMsg();
  CODE(107000, aclrtSynchronizeStreamWithTimeout(s, 0));
  CODE(107000, aclrtSynchronizeStreamWithTimeout(s, -2));
  aclrtStreamStatus status;
  OK(aclrtStreamQuery(s, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  OK(aclrtRecordEvent(gate, nullptr));
  OK(aclrtSynchronizeStreamWithTimeout(s, -1));
  OK(aclrtStreamQuery(s, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
}

TEST_P(Acl, AnAbortDropsWhatIsQueued) {
  const aclrtStream s = stream();
  const aclrtEvent gate = latch();
  std::atomic<int> counter{0};
  OK(aclrtStreamWaitEvent(s, gate));
  OK(MST_LAUNCH(count, 1, nullptr, s)(&counter));
  OK(aclrtStreamAbort(s));
  OK(MST_LAUNCH(count, 1, nullptr, s)(&counter));
  aclrtSynchronizeStream(s);
  EXPECT_EQ(counter, 1);
}

TEST_P(Acl, AHostFunctionRunsInItsPlace) {
  const aclrtStream s = stream();
  std::atomic<int> flag{0}, seen{0};
  OK(aclrtLaunchHostFunc(s, set, &flag));
  struct Both {
    std::atomic<int>*flag, *seen;
  } both{&flag, &seen};
  OK(aclrtLaunchHostFunc(
      s,
      [](void* p) {
        const auto& b = *static_cast<Both*>(p);
        *b.seen = b.flag->load();
      },
      &both));
  OK(aclrtSynchronizeStream(s));
  EXPECT_EQ(seen, 1);
}

TEST_P(Acl, AHostFunctionThatCallsLeavesTheMessageOfWhoWaitsAlone) {
  const aclrtStream s = stream();
  CODE(107002, aclrtResetDevice(7));
  const char* const message = aclGetRecentErrMsg();
  const std::string text = message;
  std::string inside;
  OK(aclrtLaunchHostFunc(
      s,
      [](void* to) {
        CODE(207006, aclrtSynchronizeDevice());
        *static_cast<std::string*>(to) = aclGetRecentErrMsg();
      },
      &inside));
  OK(aclrtSynchronizeStream(s));
  EXPECT_NE(inside.find("aclrtSynchronizeDevice: called from a host function"), std::string::npos) << inside;
  EXPECT_EQ(aclGetRecentErrMsg(), message);
  EXPECT_EQ(aclGetRecentErrMsg(), text);
}

TEST_P(Acl, PrioritiesAreNotClamped) {
  std::int32_t least = -1, greatest = -1;
  OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 7);
  EXPECT_EQ(greatest, 0);
  aclrtStream s = nullptr;
  OK(aclrtCreateStreamWithConfig(&s, 7, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_HUGE));
  OK(aclrtDestroyStream(s));
  CODE(107000, aclrtCreateStreamWithConfig(&s, 8, 0));
  CODE(107000, aclrtCreateStreamWithConfig(&s, 0, 0x20));
  CODE(207000, aclrtCreateStreamWithConfig(&s, 0, ACL_STREAM_CPU_SCHEDULE));
}

TEST_P(Acl, TheGreatestPriorityThatTheDeviceGivesIsTakenWhenItIsNegative) {
  const std::string file = testing::TempDir() + "acl_priorities.toml";
  std::ofstream(file) << "name = \"mine\"\nlike = \"edge\"\n[device]\ngreatest_priority = -3\nleast_priority = -1\n";
  reopen(file.c_str());
  std::int32_t least = 0, greatest = 0;
  OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, -1);
  EXPECT_EQ(greatest, -3);
  aclrtStream s = nullptr;
  for (const std::int32_t taken : {greatest, least}) OK(aclrtCreateStreamWithConfig(&s, static_cast<std::uint32_t>(taken), 0));
  for (const std::int32_t refused : {greatest - 1, least + 1}) CODE(107000, aclrtCreateStreamWithConfig(&s, static_cast<std::uint32_t>(refused), 0));
  EXPECT_TRUE(said("priority 0 is outside -3 (greatest) to -1 (least)")) << aclGetRecentErrMsg();
}

TEST_P(Acl, AProfileLimitsItsStreamsAndADestroyMakesRoom) {
  reopen("edge");
  std::vector<aclrtStream> all;
  aclrtStream s = nullptr;
  while (aclrtCreateStream(&s) == ACL_SUCCESS) all.push_back(s);
  CODE(207008, aclrtCreateStream(&s));
  EXPECT_EQ(all.size(), 511u);  // and the default stream
  aclrtContext c = nullptr;
  CODE(207008, aclrtCreateContext(&c, 0));
  OK(aclrtDestroyStream(all.back()));
  OK(aclrtCreateStream(&s));
  OK(aclrtResetDevice(0));
  setenv("MILLSTREAM_PROFILE", "nonesuch", 1);
  CODE(107000, aclrtSetDevice(0));
  EXPECT_TRUE(said("MILLSTREAM_PROFILE is \"nonesuch\"") && said("a2")) << aclGetRecentErrMsg();
  const std::string file = testing::TempDir() + "acl_device.toml";
  setenv("MILLSTREAM_PROFILE", file.c_str(), 1);
  std::ofstream(file) << "name = \"mine\"\nlike = \"edge\"\n[device]\nmax_streams = 3\ndevices = 2\n";
  OK(aclrtSetDevice(1));
  OK(aclrtCreateStream(&s));
  OK(aclrtCreateStream(&s));
  CODE(207008, aclrtCreateStream(&s));
  EXPECT_TRUE(said("device 1 has 3 streams")) << aclGetRecentErrMsg();
  OK(aclrtResetDevice(1));
  std::ofstream(file) << "name = \"mine\"\nlike = \"edge\"\n[device]\nmax_streams = 0\n";
  CODE(107000, aclrtSetDevice(0));
  EXPECT_TRUE(said("max_streams of device") && said("acl_device.toml:4:15")) << aclGetRecentErrMsg();
  unsetenv("MILLSTREAM_PROFILE");
  setenv("MILLSTREAM_DEVICE", "gpu", 1);
  CODE(107000, aclrtSetDevice(0));
  EXPECT_TRUE(said("cpu or sim")) << aclGetRecentErrMsg();
}

TEST_P(Acl, ADevicesMemoryEndsWithItTheHostsDoesNot) {
  void *device = nullptr, *host = nullptr;
  OK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_ONLY));
  OK(aclrtMallocHost(&host, 64));
  CODE(107017, aclrtFreeHost(device));
  CODE(107017, aclrtFree(host));
  OK(aclrtMemset(device, 64, 1, 64));
  OK(aclrtResetDevice(0));
  CODE(107002, aclrtFreeHost(host));
  OK(aclrtSetDevice(0));
  CODE(107017, aclrtFree(device));
  OK(aclrtFreeHost(host));
}

TEST_P(Acl, ABlockOfNearlyAllThereCouldBeIsNotToBeHad) {
  void* block = nullptr;
  for (const std::size_t less : {0, 1, 62, 63, 64, 4096}) {
    CODE(207001, aclrtMalloc(&block, SIZE_MAX - less, ACL_MEM_MALLOC_HUGE_FIRST));
    CODE(207001, aclrtMallocHost(&block, SIZE_MAX - less));
    CODE(207001, aclrtMallocHost(&block, PTRDIFF_MAX - less));
  }
  EXPECT_EQ(block, nullptr);
}

TEST_P(Acl, ACopyOrFillBeyondABlockIsRefusedWhateverTheCallerSaysOfItsSize) {
  void *small = nullptr, *host = nullptr;
  OK(aclrtMalloc(&small, 16, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMallocHost(&host, 64));
  char* const at = static_cast<char*>(small);
  const aclrtStream s = stream();
  CODE(107000, aclrtMemcpy(small, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_TRUE(said("64 bytes at offset 0 of dst are too many: the block has 16")) << aclGetRecentErrMsg();
  CODE(107000, aclrtMemcpyAsync(host, 64, small, 17, ACL_MEMCPY_DEVICE_TO_HOST, s));
  CODE(107000, aclrtMemset(at + 8, 64, 0, 9));
  CODE(107000, aclrtMemsetAsync(at + 15, 64, 0, 2, s));
  OK(aclrtMemset(at + 8, 64, 0, 8));
  OK(aclrtMemcpyAsync(small, 16, static_cast<char*>(host) + 48, 16, ACL_MEMCPY_HOST_TO_DEVICE, s));
  OK(aclrtSynchronizeStream(s));
  OK(aclrtFree(small));
  OK(aclrtFreeHost(host));
}

TEST_P(Acl, WhatEndsWithAThreadMayStillMakeCallsThatFail) {
  static std::atomic<aclError> last{ACL_SUCCESS};
  static std::string message;
  struct EndsLate {
    ~EndsLate() {
      last = aclrtResetDevice(7);
      message = aclGetRecentErrMsg();
    }
  };
  std::thread([] {
    static thread_local EndsLate later_than_the_message;
    (void)&later_than_the_message;
    CODE(107002, aclrtResetDevice(5));
    EXPECT_TRUE(said("device 5 is not open"));
  }).join();
  EXPECT_EQ(last, 107002);
  EXPECT_EQ(message, "no context");
}

TEST_P(Acl, InitAndFinalizeComeInPairs) {
  CODE(107000, aclFinalize());
  OK(aclInit(nullptr));
  CODE(107000, aclInit(""));
  CODE(207000, aclInit("acl.json"));
  OK(aclFinalize());
}

TEST_P(Acl, WhatIsMadeInAContextWhileItEndsEndsWithIt) {
  aclrtContext primary = nullptr;
  OK(aclrtGetCurrentContext(&primary));
  for (int round = 0; round < 30; ++round) {
    aclrtContext created = nullptr;
    OK(aclrtCreateContext(&created, 0));
    std::vector<aclrtStream> made;
    std::atomic<bool> begun{false};
    std::thread other([&] {
      OK(aclrtSetCurrentContext(created));
      aclError error = ACL_SUCCESS;
      while (error == ACL_SUCCESS && made.size() < 1000) {
        aclrtStream s = nullptr;
        error = aclrtCreateStream(&s);
        if (error == ACL_SUCCESS) made.push_back(s);
        begun = true;
      }
      EXPECT_TRUE(made.size() == 1000 || error == 107002 || error == 107017) << aclGetRecentErrMsg();
    });
    while (!begun) std::this_thread::yield();
    OK(aclrtDestroyContext(created));
    other.join();
    OK(aclrtSetCurrentContext(primary));
    aclrtStreamStatus status;
    for (const aclrtStream s : made) CODE(107017, aclrtStreamQuery(s, &status));
  }
}

TEST_P(Acl, ThreadsThatUseAndDestroyTheSameStreamsGetCodesAndNoCrash) {
  constexpr int kStreams = 8;
  std::atomic<aclrtStream> streams[kStreams];
  for (auto& s : streams) s = stream();
  aclrtContext context = nullptr;
  OK(aclrtGetCurrentContext(&context));
  const aclrtEvent e = snapshot();
  std::atomic<int> counter{0}, wrong{0}, alive{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      OK(aclrtSetCurrentContext(context));
      const auto expected = [&](aclError error) {
        if (error != ACL_SUCCESS && error != 107017) ++wrong;
      };
      for (unsigned i = 0; i < 400; ++i) {
        std::atomic<aclrtStream>& slot = streams[(i * 7 + t * 3) % kStreams];
        const aclrtStream s = slot;
        switch ((i + t) % 6) {
          case 0: {
            expected(aclrtDestroyStream(s));
            aclrtStream fresh = nullptr;
            expected(aclrtCreateStream(&fresh));
            aclrtStream old = s;
            if (slot.compare_exchange_strong(old, fresh)) {
              ++alive;
            } else {
              expected(aclrtDestroyStream(fresh));
            }
            break;
          }
          case 1: expected(aclrtSynchronizeStream(s)); break;
          case 2: expected(aclrtRecordEvent(e, s)); break;
          case 3: expected(aclrtStreamWaitEvent(s, e)); break;
          default: expected(MST_LAUNCH(count, 1, nullptr, s)(&counter));
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0) << aclGetRecentErrMsg();
  EXPECT_GT(alive, 0);
  OK(aclrtSynchronizeDevice());
}

}  // namespace
}  // namespace millstream
