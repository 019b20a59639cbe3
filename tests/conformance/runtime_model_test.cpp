// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/runtime_recording.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

const KernelFunction kNothing{"nothing"};
const KernelFunction kFails{"fails", [](const KernelCall&) -> Result<void> { return Error{ErrorCode::kernel, "as the test wants"}; }};

TEST_P(OnEveryBackend, ARecordedModelRunsAsOftenAsItIsExecuted) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Event e = event();
  Bodies bodies;
  int value = 0;
  std::vector<int> seen;
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    ++value;
    return {};
  }));
  EXPECT_OK(a.record(e));
  EXPECT_OK(b.wait(e));
  EXPECT_OK(bodies.launch(b, [&]() -> Result<void> {
    seen.push_back(value);
    return {};
  }));
  EXPECT_EQ(value, 0);
  EXPECT_CODE(bad_state, r.model.execute());
  EXPECT_CODE(bad_state, r.model.finish());  // no tape is ended
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_CODE(bad_state, r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  EXPECT_CODE(bad_state, a.record(e));
  for (int i = 0; i < 200; ++i) EXPECT_OK(r.model.execute());
  ASSERT_EQ(seen.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i + 1);
  Stream s = stream();
  for (int i = 0; i < 50; ++i) EXPECT_OK(r.model.execute_async(s));
  EXPECT_OK(s.synchronize());
  EXPECT_EQ(seen.size(), 250u);
  EXPECT_CODE(bad_state, a.close());
  EXPECT_OK(r.model.unbind(a));
  EXPECT_CODE(bad_state, r.model.execute());
  EXPECT_CODE(not_bound, r.model.unbind(a));
  EXPECT_CODE(not_bound, a.record(e));
  EXPECT_OK(a.close());
  EXPECT_OK(r.model.close());
  EXPECT_OK(b.close());
}

TEST_P(OnEveryBackend, TheFailureModeOfABoundStreamIsSetBeforeOrAfter) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head);
  EXPECT_CODE(bad_state, a.set_failure_mode(FailureMode::proceed));
  EXPECT_OK(r.model.unbind(a));
  EXPECT_OK(a.set_failure_mode(FailureMode::proceed));
}

TEST_P(OnEveryBackend, AForwardWaitMeetsTheRecordThatIsRecordedLater) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Event e = event();
  Bodies bodies;
  int value = 0, seen = 0;
  EXPECT_OK(b.wait(e));
  EXPECT_OK(bodies.launch(b, [&]() -> Result<void> {
    seen = value;
    return {};
  }));
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    ++value;
    return {};
  }));
  EXPECT_OK(a.record(e));
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  for (int i = 1; i <= 100; ++i) {
    EXPECT_OK(r.model.execute());
    EXPECT_EQ(seen, i);
  }
}

TEST_P(OnEveryBackend, AStreamThatActivatesItselfLoopsUntilItSwitchesAway) {
  Recording r(*context);
  Stream loop = r.bound(StreamRole::head), after = r.bound(StreamRole::activated);
  Bodies bodies;
  std::int32_t n = 0, limit = 5;
  int ends = 0;
  EXPECT_OK(bodies.launch(loop, [&]() -> Result<void> {
    ++n;
    return {};
  }));
  EXPECT_OK(Tape(loop).switch_to(Comparison::greater_equal, &n, &limit, IntType::int32, after));
  EXPECT_OK(Tape(loop).activate(loop));
  EXPECT_OK(bodies.launch(after, [&]() -> Result<void> {
    ++ends;
    return {};
  }));
  EXPECT_OK(r.model.end_tasks(loop));
  EXPECT_OK(r.model.finish());
  for (int i = 1; i <= 20; ++i) {
    n = 0;
    EXPECT_OK(r.model.execute());
    EXPECT_EQ(n, 5);
    EXPECT_EQ(ends, i);
  }
}

TEST_P(OnEveryBackend, LabelsAndJumpsMakeLoopsAndBranches) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Label top = std::move(*context->create_label()), odd = std::move(*context->create_label()), even = std::move(*context->create_label()),
        join = std::move(*context->create_label());
  Bodies bodies;
  std::uint32_t n = 0, which = 0;
  std::string text;
  Tape tape(s);
  EXPECT_OK(tape.place(top));
  EXPECT_CODE(bad_state, tape.place(top));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    which = n == 6 ? 9 : n % 2;
    return {};
  }));
  Label* const cases[] = {&even, &odd, &join};
  EXPECT_OK(tape.jump_by_index(&which, cases));
  EXPECT_OK(tape.place(even));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    text += 'e';
    ++n;
    return {};
  }));
  EXPECT_OK(tape.jump(top));
  EXPECT_OK(tape.place(odd));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    text += 'o';
    ++n;
    return {};
  }));
  EXPECT_OK(tape.jump(top));
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_CODE(bad_state, r.model.finish());  // join is placed nowhere
}

TEST_P(OnEveryBackend, AJumpByIndexBeyondTheListGoesToTheLastLabel) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), other = r.bound(StreamRole::activated);
  Label top = std::move(*context->create_label()), out = std::move(*context->create_label());
  Bodies bodies;
  std::uint32_t n = 0, which = 0;
  std::string text;
  Tape tape(s);
  EXPECT_OK(tape.place(top));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    text += 'a';
    which = ++n < 3 ? 0 : 77;
    return {};
  }));
  Label* const cases[] = {&top, &out};
  EXPECT_OK(tape.jump_by_index(&which, cases));
  EXPECT_OK(bodies.launch(other, [&]() -> Result<void> {
    text += 'x';  // before the label: skipped
    return {};
  }));
  EXPECT_OK(Tape(other).place(out));
  EXPECT_OK(bodies.launch(other, [&]() -> Result<void> {
    text += 'b';
    return {};
  }));
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_OK(r.model.finish());
  EXPECT_OK(r.model.execute());
  EXPECT_EQ(text, "aaab");
  n = 0;
  EXPECT_OK(r.model.execute());
  EXPECT_EQ(text, "aaabaaab");
}

TEST_P(OnEveryBackend, AFailedTaskOfAModelFailsItsExecutionAndTheModelStaysReady) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Bodies bodies;
  bool fails = true;
  int after = 0;
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    if (fails) return Error{ErrorCode::kernel, "no such luck"};
    return {};
  }));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    ++after;
    return {};
  }));
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_OK(r.model.finish());
  EXPECT_CODE(kernel_failed, r.model.execute());
  EXPECT_EQ(after, 1);
  fails = false;
  EXPECT_OK(r.model.execute());
  EXPECT_OK(context->synchronize());
  fails = true;
  Stream from = stream();
  EXPECT_OK(r.model.execute_async(from));
  EXPECT_CODE(kernel_failed, from.synchronize());
}

TEST_P(OnEveryBackend, AWaitForAnUntakenBranchIsADeadlockOfThatExecutionOnly) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), branch = r.bound(StreamRole::activated), reader = r.bound(StreamRole::head);
  Event e = event();
  std::int32_t take = 0, one = 1;
  EXPECT_OK(Tape(s).switch_to(Comparison::equal, &take, &one, IntType::int32, branch));
  EXPECT_OK(branch.record(e));
  EXPECT_OK(reader.wait(e));
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_OK(r.model.finish());
  EXPECT_CODE(deadlock, r.model.execute());
  take = 1;
  EXPECT_OK(r.model.execute());
  take = 0;
  EXPECT_CODE(deadlock, r.model.execute());
}

TEST_P(OnEveryBackend, AnExecutionThatWaitsForAnEventOutsideIsNoCycle) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head);
  Event gate = event(Event::Kind::latch);
  EXPECT_OK(a.wait(gate));
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  EXPECT_CODE(sync_timeout, r.model.execute(std::chrono::milliseconds(20)));
  Stream s = stream();
  EXPECT_OK(s.record(gate));
  EXPECT_OK(context->default_stream().synchronize());
  EXPECT_OK(r.model.execute());
}

TEST_P(OnEveryBackend, AStreamMayEndBeforeTheModelItWasUnboundFrom) {
  Recording r(*context);
  static const KernelFunction nothing{"nothing"};
  {
    Stream a = r.bound(StreamRole::head);
    EXPECT_OK(a.launch(nothing, {}, {}));
    EXPECT_OK(r.model.end_tasks(a));
    EXPECT_OK(r.model.finish());
    EXPECT_OK(r.model.execute());
    EXPECT_OK(r.model.unbind(a));
  }
  Stream b = stream({.persistent = true});
  EXPECT_CODE(not_bound, r.model.unbind(b));
  EXPECT_OK(r.model.close());
}

TEST_P(OnEveryBackend, ALoopWithoutEndIsStoppedByTheProfile) {
  Profile profile;
  profile.max_tasks_per_execution = 1000;
  open(profile);
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  EXPECT_OK(Tape(s).activate(s));
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_OK(r.model.finish());
  EXPECT_CODE(task_timeout, r.model.execute());
  EXPECT_CODE(task_timeout, r.model.execute());
}

TEST_P(OnEveryBackend, AnEndlessLoopStopsAContextThatStopsOnFailures) {
  Profile profile;
  profile.max_tasks_per_execution = 100;
  open(profile);
  EXPECT_OK(stream().set_failure_mode(FailureMode::stop));
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  EXPECT_OK(Tape(s).activate(s));
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_OK(r.model.finish());
  EXPECT_CODE(task_timeout, r.model.execute());
  const Result<void> refused = stream().launch(kNothing, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ErrorCode::context_stopped, refused.error().code);
  // It names the task that failed.
  EXPECT_NE(std::string::npos, to_string(refused.error()).find("(activate) of stream ")) << to_string(refused.error());
  EXPECT_NE(std::string::npos, to_string(refused.error()).find("has run 100 tasks")) << to_string(refused.error());
}

TEST_P(OnEveryBackend, AStoppedContextRecordsNothingUntilItRecovers) {
  Recording r(*context);
  Stream tape = r.bound(StreamRole::head), s = stream();
  Event e = event();
  Label label = std::move(*context->create_label());
  EXPECT_OK(s.set_failure_mode(FailureMode::stop));
  EXPECT_OK(s.launch(kFails, {}, {}));
  EXPECT_CODE(kernel_failed, s.synchronize());
  EXPECT_CODE(context_stopped, tape.launch(kNothing, {}, {}));
  EXPECT_CODE(context_stopped, tape.record(e));
  EXPECT_CODE(context_stopped, tape.wait(e));
  EXPECT_CODE(context_stopped, Tape(tape).activate(tape));
  EXPECT_CODE(context_stopped, Tape(tape).place(label));
  EXPECT_OK(context->recover());
  EXPECT_OK(tape.launch(kNothing, {}, {}));
  r.finish(tape);
  EXPECT_OK(r.model.execute());
}

TEST_P(OnEveryBackend, AClosedContextMakesNoLabels) {
  Context other = std::move(*device->create_context());
  EXPECT_OK(other.close());
  EXPECT_CODE(bad_handle, other.create_label());
}

TEST_P(OnEveryBackend, ModelsThatShareAStreamExcludeEachOther) {
  StreamOptions options;
  options.persistent = true;
  options.shared = true;
  Stream shared = stream(options);
  Bodies bodies;
  std::atomic<int> inside{0};
  int runs = 0;
  std::vector<Model> models;
  for (int i = 0; i < 2; ++i) {
    Model m = std::move(*context->begin_model());
    EXPECT_OK(m.bind(shared, StreamRole::head));
    EXPECT_OK(bodies.launch(shared, [&]() -> Result<void> {
      EXPECT_EQ(inside++, 0);
      ++runs;
      --inside;
      return {};
    }));
    EXPECT_OK(m.end_tasks(shared));
    EXPECT_OK(m.finish());
    models.push_back(std::move(m));
  }
  Stream a = stream(), b = stream();
  for (int i = 0; i < 50; ++i) {
    EXPECT_OK(models[0].execute_async(a));
    EXPECT_OK(models[1].execute_async(b));
  }
  EXPECT_OK(context->synchronize());
  EXPECT_EQ(runs, 100);
}

TEST_P(OnEveryBackend, AnAbortEndsTheExecutionThatRuns) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Event latch = event(Event::Kind::latch);
  EXPECT_OK(s.wait(latch));
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_OK(r.model.finish());
  Stream from = stream();
  EXPECT_OK(r.model.execute_async(from));
  if (GetParam() == BackendId::sim) (void)*from.query();
  EXPECT_CODE(sync_timeout, from.synchronize(std::chrono::milliseconds(10)));
  EXPECT_OK(r.model.abort());
  EXPECT_CODE(model_aborted, from.synchronize());
  Stream other = stream();
  EXPECT_OK(other.record(latch));
  EXPECT_OK(other.synchronize());
  EXPECT_OK(r.model.execute());
}

TEST_P(OnEveryBackend, AHeadThatAnotherHeadActivatesAtOnceRunsTwiceFromItsFirstTask) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Bodies bodies;
  std::vector<int> ran;
  EXPECT_OK(Tape(a).activate(b));
  for (int i = 0; i < 8; ++i) {
    EXPECT_OK(bodies.launch(b, [&ran, i]() -> Result<void> {
      ran.push_back(i);
      return {};
    }));
  }
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  for (int n = 0; n < 300; ++n) {
    ran.clear();
    EXPECT_OK(r.model.execute());
    ASSERT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST_P(OnEveryBackend, AWaitDoesNotPassForARecordOfAnEarlierExecution) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head), skipped = r.bound(StreamRole::activated);
  Event e = event();
  Bodies bodies;
  std::int32_t skip = 1;
  const std::int32_t one = 1;
  std::atomic<bool> written{false};
  bool seen = false;
  static const KernelFunction slow{"slow", nullptr, 1000};
  EXPECT_OK(a.launch(slow, {}, {}));
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    if (GetParam() == BackendId::cpu) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    written = true;
    return {};
  }));
  EXPECT_OK(a.record(e));
  EXPECT_OK(Tape(b).switch_to(Comparison::equal, &skip, &one, IntType::int32, skipped));
  EXPECT_OK(b.wait(e));
  EXPECT_OK(bodies.launch(b, [&]() -> Result<void> {
    seen = written;
    return {};
  }));
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  EXPECT_OK(r.model.execute());  // nobody waits for its record
  skip = 0;
  written = false;
  EXPECT_OK(r.model.execute());
  EXPECT_TRUE(seen);
}

TEST_P(OnEveryBackend, ARecoveryWaitsForTheModelsThatRun) {
  const bool threads = GetParam() == BackendId::cpu;  // a kernel of virtual time waits for nobody
  Recording r(*context);
  Stream a = r.bound(StreamRole::head);
  Bodies bodies;
  std::atomic<bool> inside{false}, go{!threads};
  int later = 0;
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    inside = true;
    while (!go) std::this_thread::yield();
    return {};
  }));
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    ++later;
    return {};
  }));
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  Stream x = stream(), failing = stream();
  EXPECT_OK(failing.set_failure_mode(FailureMode::stop));
  EXPECT_OK(r.model.execute_async(x));
  while (threads && !inside) std::this_thread::yield();
  EXPECT_OK(bodies.launch(failing, []() -> Result<void> { return Error{ErrorCode::kernel, "on purpose"}; }));
  EXPECT_CODE(kernel_failed, failing.synchronize());
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go = true;
  });
  EXPECT_OK(context->recover());
  EXPECT_TRUE(go);
  release.join();
  if (threads) {
    EXPECT_EQ(later, 0);
  }
  const int before = later;
  EXPECT_OK(r.model.execute());
  EXPECT_EQ(later, before + 1);
}

TEST_P(OnEveryBackend, AnExecutionAfterAnAbortLooksAtEventsOutsideAnew) {
  open(patient(GetParam()));
  Recording r(*context);
  Stream a = r.bound(StreamRole::head);
  Event e = event(), never_set = event(Event::Kind::latch);
  EXPECT_OK(a.wait(e));
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  Stream s = stream(), x = stream(), y = stream();
  EXPECT_OK(s.wait(never_set));
  EXPECT_OK(s.record(e));
  EXPECT_OK(r.model.execute_async(x));
  EXPECT_CODE(sync_timeout, x.synchronize(std::chrono::milliseconds(10)));
  EXPECT_OK(r.model.abort());
  EXPECT_CODE(model_aborted, x.synchronize());
  EXPECT_OK(y.record(e));
  EXPECT_OK(r.model.execute());
  EXPECT_OK(s.abort());
}

TEST_P(OnEveryBackend, AModelIsDroppedWithTheRecordThatItWaitsFor) {
  open(patient(GetParam()));
  Recording r(*context);
  Stream a = r.bound(StreamRole::head);
  Event e = event(), never_set = event(Event::Kind::latch);
  Bodies bodies;
  bool ran = false;
  EXPECT_OK(a.wait(e));
  EXPECT_OK(bodies.launch(a, [&]() -> Result<void> {
    ran = true;
    return {};
  }));
  EXPECT_OK(r.model.end_tasks(a));
  EXPECT_OK(r.model.finish());
  Stream s = stream(), x = stream();
  EXPECT_OK(s.wait(never_set));
  EXPECT_OK(s.record(e));
  EXPECT_OK(r.model.execute_async(x));
  EXPECT_CODE(sync_timeout, x.synchronize(std::chrono::milliseconds(10)));
  EXPECT_OK(s.abort());
  EXPECT_CODE(stream_aborted, x.synchronize());
  EXPECT_FALSE(ran);
}

TEST_P(OnEveryBackend, AnExecutionBehindOneThatWaitsForItIsADeadlock) {
  open(patient(GetParam()));
  StreamOptions options;
  options.persistent = options.shared = true;
  Stream shared = stream(options);
  Event e = event(), gate = event(Event::Kind::latch);
  std::vector<Model> models;
  for (int i = 0; i < 2; ++i) {
    models.push_back(std::move(*context->begin_model()));
    EXPECT_OK(models.back().bind(shared, StreamRole::head));
    if (i == 0) EXPECT_OK(shared.wait(e));
    EXPECT_OK(models.back().end_tasks(shared));
    EXPECT_OK(models.back().finish());
  }
  // The first waits for a record that stands behind the second, which waits for the first.
  Stream x = stream(), y = stream(), z = stream();
  EXPECT_OK(y.wait(gate));
  EXPECT_OK(models[1].execute_async(y));
  EXPECT_OK(y.record(e));
  EXPECT_OK(models[0].execute_async(x));
  EXPECT_CODE(sync_timeout, x.synchronize(std::chrono::milliseconds(10)));
  EXPECT_OK(z.record(gate));
  EXPECT_CODE(deadlock, x.synchronize());
}

TEST_P(OnEveryBackend, ALabelStaysPlacedWhenAnotherModelThatJumpsToItEnds) {
  Recording owner(*context);
  Stream s = owner.bound(StreamRole::head);
  Label behind = std::move(*context->create_label());
  Log log;
  EXPECT_OK(Tape(s).jump(behind));
  EXPECT_OK(log.launch(s, 'x'));
  EXPECT_OK(Tape(s).place(behind));
  EXPECT_OK(log.launch(s, 'b'));
  const auto another_ends = [&] {
    Recording other(*context);
    Stream t = other.bound(StreamRole::head);
    EXPECT_OK(Tape(t).jump(behind));
    EXPECT_OK(other.model.end_tasks(t));
    EXPECT_CODE(bad_state, other.model.finish());
  };
  another_ends();
  EXPECT_CODE(bad_state, Tape(s).place(behind));
  owner.finish(s);
  another_ends();
  EXPECT_OK(owner.model.execute());
  EXPECT_EQ("b", log.take());
  EXPECT_OK(owner.model.close());
  Recording next(*context);
  Stream t = next.bound(StreamRole::head);
  EXPECT_OK(Tape(t).place(behind));  // it is placed nowhere any more
}

TEST_P(OnEveryBackend, ARefusedJumpUsesNoLabel) {
  Context elsewhere = std::move(*device->create_context());
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Label placed_nowhere = std::move(*context->create_label()), foreign = std::move(*elsewhere.create_label());
  static const std::uint32_t way = 0;
  Label* const labels[] = {&placed_nowhere, &foreign};
  EXPECT_CODE(label_context, Tape(s).jump_by_index(&way, labels));
  Label* const one_missing[] = {&placed_nowhere, nullptr};
  EXPECT_CODE(null_argument, Tape(s).jump_by_index(&way, one_missing));
  r.finish(s);
  EXPECT_OK(r.model.execute());
}

}  // namespace
}  // namespace millstream
