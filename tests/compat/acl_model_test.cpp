// SPDX-License-Identifier: Apache-2.0
// Model instances of acl/acl_rt.h. Wrong use in each phase is in misuse_table.cpp.
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "millstream/target/profile.h"
#include "tests/compat/acl_fixture.h"

namespace millstream {
namespace {

class AclModel : public Acl {
 protected:
  static aclrtStream persistent(std::uint32_t flags = 0) {
    aclrtStream s = nullptr;
    EXPECT_EQ(aclrtCreateStreamWithConfig(&s, 0, ACL_STREAM_PERSISTENT | flags), ACL_SUCCESS) << aclGetRecentErrMsg();
    return s;
  }
  static aclmdlRI building() {
    aclmdlRI m = nullptr;
    EXPECT_EQ(aclmdlRIBuildBegin(&m, 0), ACL_SUCCESS) << aclGetRecentErrMsg();
    return m;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, AclModel, testing::Values("cpu", "sim"), backend_of);

void append(std::vector<int>* list, int n) { list->push_back(n); }
int fails() { return 1; }

// The order of calls of the Graph Engine's loader: all streams persistent, events, a model, each stream bound, tasks,
// the end; then an execution and a synchronise for each run; unbind, streams, model.
TEST_P(AclModel, TwoStreamsWithEventsRunAsOftenAsTheyAreExecuted) {
  const aclrtStream a = persistent(), b = persistent(ACL_STREAM_HUGE), run = stream();
  const aclrtEvent there = snapshot(), back = snapshot();
  const aclmdlRI m = building();
  OK(aclmdlRIBindStream(m, a, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(aclmdlRIBindStream(m, b, ACL_MODEL_STREAM_FLAG_HEAD));
  std::vector<int> order;
  OK(MST_LAUNCH(append, 1, nullptr, a)(&order, 1));
  OK(aclrtRecordEvent(there, a));
  OK(aclrtStreamWaitEvent(b, there));
  OK(MST_LAUNCH(append, 1, nullptr, b)(&order, 2));
  OK(aclrtRecordEvent(back, b));
  OK(aclrtStreamWaitEvent(a, back));
  OK(MST_LAUNCH(append, 1, nullptr, a)(&order, 3));
  OK(aclmdlRIEndTask(m, a));
  OK(aclmdlRIEndTask(m, b));
  OK(aclmdlRIBuildEnd(m, nullptr));
  EXPECT_TRUE(order.empty());
  std::vector<int> wanted;
  for (int i = 0; i < 20; ++i) {
    OK(aclmdlRIExecuteAsync(m, run));
    OK(MST_LAUNCH(append, 1, nullptr, run)(&order, 4));
    OK(aclrtSynchronizeStream(run));
    wanted.insert(wanted.end(), {1, 2, 3, 4});
  }
  EXPECT_EQ(order, wanted);
  OK(aclrtSynchronizeStream(a));  // persistent: nothing to wait for
  CODE(107000, aclrtDestroyStream(a));
  OK(aclmdlRIUnbindStream(m, a));
  OK(aclmdlRIUnbindStream(m, b));
  OK(aclrtDestroyStream(a));
  OK(aclrtDestroyStream(b));
  OK(aclmdlRIDestroy(m));
  CODE(107017, aclmdlRIDestroy(m));
}

TEST_P(AclModel, AnExecutionRunsBehindTheDefaultStream) {
  const aclrtStream a = persistent();
  const aclmdlRI m = building();
  std::vector<int> order;
  OK(aclmdlRIBindStream(m, a, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(MST_LAUNCH(append, 1, nullptr, a)(&order, 2));
  OK(aclmdlRIEndTask(m, a));
  OK(aclmdlRIBuildEnd(m, nullptr));
  OK(MST_LAUNCH(append, 1, nullptr, nullptr)(&order, 1));
  OK(aclmdlRIExecute(m, 1000));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_P(AclModel, AFailedExecutionLeavesTheModelReady) {
  const aclrtStream a = persistent(), run = stream();
  const aclmdlRI m = building();
  std::vector<int> order;
  OK(aclmdlRIBindStream(m, a, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(MST_LAUNCH(fails, 1, nullptr, a)());
  OK(MST_LAUNCH(append, 1, nullptr, a)(&order, 1));
  OK(aclmdlRIEndTask(m, a));
  OK(aclmdlRIBuildEnd(m, nullptr));
  CODE(507015, aclmdlRIExecute(m, -1));
  OK(aclmdlRIExecuteAsync(m, run));
  CODE(507015, aclrtSynchronizeStream(run));
  EXPECT_EQ(order.size(), 2u);
}

TEST_P(AclModel, AnExecutionThatTimesOutGoesOn) {
  const aclrtStream a = persistent();
  const aclrtEvent gate = latch();
  const aclmdlRI m = building();
  std::vector<int> order;
  OK(aclmdlRIBindStream(m, a, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(aclrtStreamWaitEvent(a, gate));
  OK(MST_LAUNCH(append, 1, nullptr, a)(&order, 1));
  OK(aclmdlRIEndTask(m, a));
  OK(aclmdlRIBuildEnd(m, nullptr));
  CODE(507046, aclmdlRIExecute(m, 10));
  const aclrtStream other = stream();
  OK(aclrtRecordEvent(gate, other));
  OK(aclrtSynchronizeStream(nullptr));
  EXPECT_EQ(order.size(), 1u);
}

// Two ways from one stream, chosen by what the memory holds when the execution gets there.
TEST_P(AclModel, ASwitchThatHoldsStartsItsStreamAndLeavesOutTheRest) {
  const aclrtStream s = persistent(), other = persistent();
  std::vector<int> order;
  std::int64_t left = 0, right = 5;
  const aclmdlRI m = building();
  OK(aclmdlRIBindStream(m, s, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(aclmdlRIBindStream(m, other, ACL_MODEL_STREAM_FLAG_DEFAULT));
  OK(MST_LAUNCH(append, 1, nullptr, s)(&order, 1));
  OK(aclrtSwitchStream(&left, ACL_RT_GREATER_OR_EQUAL, &right, ACL_RT_SWITCH_INT64, other, nullptr, s));
  OK(MST_LAUNCH(append, 1, nullptr, s)(&order, 2));
  OK(MST_LAUNCH(append, 1, nullptr, other)(&order, 3));
  OK(aclmdlRIEndTask(m, s));
  OK(aclmdlRIEndTask(m, other));
  OK(aclmdlRIBuildEnd(m, nullptr));
  for (left = 4; left <= 6; ++left) OK(aclmdlRIExecute(m, -1));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 1, 3, 1, 3}));
  OK(aclmdlRIDestroy(m));
}

TEST_P(AclModel, ASwitchComparesTheDataOfItsType) {
  const aclrtStream s = persistent(), other = persistent();
  int started = 0;
  // The low halves are equal, the whole numbers are not.
  std::int64_t left = (std::int64_t{1} << 32) + 7, right = 7;
  const auto count = [](int* n) { ++*n; };
  const aclmdlRI m = building();
  OK(aclmdlRIBindStream(m, s, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(aclmdlRIBindStream(m, other, ACL_MODEL_STREAM_FLAG_DEFAULT));
  OK(MST_LAUNCH(+count, 1, nullptr, other)(&started));
  OK(aclrtSwitchStream(&left, ACL_RT_EQUAL, &right, ACL_RT_SWITCH_INT64, other, nullptr, s));
  OK(aclrtSwitchStream(&left, ACL_RT_EQUAL, &right, ACL_RT_SWITCH_INT32, other, nullptr, s));
  OK(aclrtSwitchStream(&left, ACL_RT_NOT_EQUAL, &right, ACL_RT_SWITCH_INT64, other, nullptr, s));
  OK(aclmdlRIEndTask(m, s));
  OK(aclmdlRIBuildEnd(m, nullptr));
  OK(aclmdlRIExecute(m, -1));
  EXPECT_EQ(started, 1);
  OK(aclmdlRIDestroy(m));
}

TEST_P(AclModel, ALoopThatNeverEndsHoldsUpNoReset) {
  EXPECT_GT(Profile{}.max_tasks_per_execution, 0u);
  const std::string file = testing::TempDir() + "acl_loop_device.toml";
  std::ofstream(file) << "name = \"mine\"\nlike = \"edge\"\n[device]\nmax_tasks_per_execution = 300000\n";
  reopen(file.c_str());
  const aclrtStream s = persistent();
  std::int32_t left = 1, right = 2;
  const aclmdlRI m = building();
  OK(aclmdlRIBindStream(m, s, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(aclrtSwitchStream(&left, ACL_RT_LESS, &right, ACL_RT_SWITCH_INT32, s, nullptr, s));
  OK(aclmdlRIEndTask(m, s));
  OK(aclmdlRIBuildEnd(m, nullptr));
  EXPECT_NE(aclmdlRIExecute(m, 1), ACL_SUCCESS);  // not over in time, or on a busy machine cut off already
  OK(aclrtResetDevice(0));
}

TEST_P(AclModel, WhatIsLeftAtAResetGoesWithTheDevice) {
  const aclrtStream a = persistent();
  const aclmdlRI m = building();
  OK(aclmdlRIBindStream(m, a, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(aclmdlRIEndTask(m, a));
  OK(aclmdlRIBuildEnd(m, nullptr));
  OK(aclmdlRIExecuteAsync(m, nullptr));
  OK(aclrtResetDevice(0));
  CODE(107017, aclmdlRIExecute(m, -1));
  CODE(107017, aclrtDestroyStream(a));
}

TEST_P(AclModel, ADestroyRefusesAnExecutionThatIsQueued) {
  const aclrtStream a = persistent(), run = stream();
  const aclrtEvent gate = latch();
  std::vector<int> order;
  const aclmdlRI m = building();
  OK(aclmdlRIBindStream(m, a, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(MST_LAUNCH(append, 1, nullptr, a)(&order, 1));
  OK(aclmdlRIEndTask(m, a));
  OK(aclmdlRIBuildEnd(m, nullptr));
  OK(aclrtStreamWaitEvent(run, gate));
  OK(aclmdlRIExecuteAsync(m, run));
  OK(MST_LAUNCH(append, 1, nullptr, run)(&order, 2));
  OK(aclmdlRIDestroy(m));
  OK(aclrtRecordEvent(gate, nullptr));
  CODE(107000, aclrtSynchronizeStream(run));
  EXPECT_TRUE(said("destroyed before its execution began")) << aclGetRecentErrMsg();
  EXPECT_EQ(order, std::vector<int>{2});
}

TEST_P(AclModel, ALatchThatIsDestroyedKeepsItsIdWhileAModelHasIt) {
  const std::string file = testing::TempDir() + "acl_one_event.toml";
  std::ofstream(file) << "name = \"mine\"\nlike = \"edge\"\n[device]\nmax_events = 1\n";
  reopen(file.c_str());
  const aclrtStream a = persistent();
  const aclmdlRI m = building();
  const aclrtEvent e = latch();
  OK(aclmdlRIBindStream(m, a, ACL_MODEL_STREAM_FLAG_HEAD));
  OK(aclrtRecordEvent(e, a));
  OK(aclrtDestroyEvent(e));
  aclrtEvent other = nullptr;
  CODE(207007, aclrtCreateEvent(&other));
  OK(aclmdlRIDestroy(m));
  OK(aclrtCreateEvent(&other));
}

TEST_P(AclModel, AModelStaysWithItsContext) {
  const aclrtStream a = persistent();
  const aclmdlRI m = building();
  aclrtContext created = nullptr;
  OK(aclrtCreateContext(&created, 0));
  const aclrtStream there = persistent();
  CODE(107004, aclmdlRIBindStream(m, a, 0));
  CODE(107004, aclmdlRIBuildEnd(m, nullptr));
  const aclmdlRI here = building();
  CODE(107004, aclmdlRIBindStream(here, a, 0));
  OK(aclmdlRIBindStream(here, there, 0));
  CODE(107000, aclrtSetStreamFailureMode(there, ACL_STOP_ON_FAILURE));
  CODE(107000, aclrtStreamAbort(there));
}

}  // namespace
}  // namespace millstream
