// SPDX-License-Identifier: Apache-2.0
// Control flow on tapes: each task with each answer, and what it refuses.
#include "tests/conformance/runtime_recording.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

Label label(Context& context) { return std::move(*context.create_label()); }

void names(const Result<void>& refused, ErrorCode code, const char* what) {
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(code, refused.error().code);
  EXPECT_NE(std::string::npos, refused.error().message.find(what)) << refused.error().message;
}

TEST_P(OnEveryBackend, ASwitchComparesItsOperandsInEachWayAndType) {
  const auto wanted = [](Comparison c, std::int64_t left, std::int64_t right) {
    switch (c) {
      case Comparison::equal: return left == right;
      case Comparison::not_equal: return left != right;
      case Comparison::greater: return left > right;
      case Comparison::greater_equal: return left >= right;
      case Comparison::less: return left < right;
      case Comparison::less_equal: return left <= right;
    }
    return false;
  };
  constexpr std::int64_t kHigh = std::int64_t{1} << 32;
  const std::pair<std::int64_t, std::int64_t> operands[] = {{-1, 1}, {1, -1}, {7, 7}, {kHigh + 1, 1}, {-kHigh, 0}, {2, kHigh}};
  for (const IntType type : {IntType::int32, IntType::int64}) {
    for (const bool otherwise : {false, true}) {
      for (int c = 0; c < 6; ++c) {
        Recording r(*context);
        Stream s = r.bound(StreamRole::head), yes = r.bound(StreamRole::activated), no = r.bound(StreamRole::activated);
        std::int64_t left = 0, right = 0;
        Log log;
        EXPECT_OK(Tape(s).switch_to(static_cast<Comparison>(c), &left, &right, type, yes, otherwise ? &no : nullptr));
        EXPECT_OK(log.launch(s, 's'));  // only where neither stream is taken
        EXPECT_OK(log.launch(yes, 'y'));
        EXPECT_OK(log.launch(no, 'n'));
        r.finish(s);
        for (const auto& [l, rr] : operands) {
          left = l, right = rr;
          const bool narrow = type == IntType::int32;
          const bool taken = wanted(static_cast<Comparison>(c), narrow ? static_cast<std::int32_t>(l) : l, narrow ? static_cast<std::int32_t>(rr) : rr);
          EXPECT_OK(r.model.execute());
          EXPECT_EQ(taken ? "y" : otherwise ? "n" : "s", log.take()) << l << " " << rr << " comparison " << c;
        }
      }
    }
  }
}

TEST_P(OnEveryBackend, ASwitchOverManyValuesStartsTheStreamOfTheFirstEqualOne) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), a = r.bound(StreamRole::activated), b = r.bound(StreamRole::activated), c = r.bound(StreamRole::activated);
  Log log;
  std::int64_t index = 0;
  const std::int64_t values[] = {3, 5, 5, -1};
  Stream* const targets[] = {&a, &b, &c, &c};
  EXPECT_OK(log.launch(s, 's'));
  EXPECT_OK(Tape(s).switch_n(&index, IntType::int64, values, targets));
  EXPECT_OK(log.launch(s, '-'));
  EXPECT_OK(log.launch(a, 'a'));
  EXPECT_OK(log.launch(b, 'b'));
  EXPECT_OK(log.launch(c, 'c'));
  r.finish(s);
  const std::pair<std::int64_t, const char*> cases[] = {{3, "sa"}, {5, "sb"}, {-1, "sc"}, {4, "s-"}, {(std::int64_t{1} << 32) + 3, "s-"}};
  for (const auto& [value, text] : cases) {
    index = value;
    EXPECT_OK(r.model.execute());
    EXPECT_EQ(text, log.take()) << value;
  }
}

TEST_P(OnEveryBackend, ANarrowSwitchOverManyValuesReadsOnlyItsIndex) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), a = r.bound(StreamRole::activated);
  Log log;
  const std::int32_t index[] = {-3, 1};
  const std::int64_t values[] = {-3};
  Stream* const targets[] = {&a};
  EXPECT_OK(Tape(s).switch_n(index, IntType::int32, values, targets));
  EXPECT_OK(log.launch(s, '-'));
  EXPECT_OK(log.launch(a, 'a'));
  r.finish(s);
  EXPECT_OK(r.model.execute());
  EXPECT_EQ("a", log.take());
}

TEST_P(OnEveryBackend, ControlFlowWithoutAnOperandSaysWhichAndRecordsNothing) {
  Recording r(*context), other(*context);
  Stream s = r.bound(StreamRole::head), a = r.bound(StreamRole::activated), foreign = other.bound(StreamRole::head);
  Tape tape(s);
  const std::int32_t value = 0;
  const std::uint32_t index = 0;
  const std::int64_t values[] = {1, 2};
  Label l = label(*context);
  names(tape.switch_to(Comparison::equal, nullptr, &value, IntType::int32, a), ErrorCode::null_argument, "the left operand");
  names(tape.switch_to(Comparison::equal, &value, nullptr, IntType::int32, a), ErrorCode::null_argument, "the right operand");
  names(tape.switch_to(Comparison::equal, &value, &value, IntType::int32, foreign), ErrorCode::not_bound, "is not bound to model");
  names(tape.switch_to(Comparison::equal, &value, &value, IntType::int32, a, &foreign), ErrorCode::not_bound, "is not bound to model");
  names(tape.activate(foreign), ErrorCode::not_bound, "is not bound to model");
  Stream* const two[] = {&a, &a};
  Stream* const with_null[] = {&a, nullptr};
  Stream* const with_foreign[] = {&a, &foreign};
  names(tape.switch_n(nullptr, IntType::int32, values, two), ErrorCode::null_argument, "the index");
  names(tape.switch_n(&value, IntType::int32, {}, {}), ErrorCode::bad_value, "0 values for 0 streams");
  names(tape.switch_n(&value, IntType::int32, std::span(values).first(1), two), ErrorCode::bad_value, "1 values for 2 streams");
  names(tape.switch_n(&value, IntType::int32, values, with_null), ErrorCode::null_argument, "a target");
  names(tape.switch_n(&value, IntType::int32, values, with_foreign), ErrorCode::not_bound, "is not bound to model");
  Label* const none[] = {&l, nullptr};
  names(tape.jump_by_index(nullptr, none), ErrorCode::null_argument, "the index");
  names(tape.jump_by_index(&index, {}), ErrorCode::bad_value, "no labels");
  names(tape.jump_by_index(&index, none), ErrorCode::null_argument, "a label");
  EXPECT_EQ(0u, s.state()->bindings.front()->tape.size());
}

TEST_P(OnEveryBackend, ALabelOfAnotherContextIsRefused) {
  Context there = std::move(*device->create_context());
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Label l = label(there), own = label(*context);
  Tape tape(s);
  const std::uint32_t index = 0;
  Label* const mixed[] = {&own, &l};
  EXPECT_CODE(label_context, tape.place(l));
  EXPECT_CODE(label_context, tape.jump(l));
  EXPECT_CODE(label_context, tape.jump_by_index(&index, mixed));
}

TEST_P(OnEveryBackend, ControlFlowOnAStreamThatRunsItsTasksAtOnceOrIsGoneIsRefused) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), plain = stream(), gone = stream({.persistent = true});
  EXPECT_OK(gone.close());
  Label l = label(*context);
  EXPECT_CODE(bad_state, Tape(plain).activate(s));
  EXPECT_CODE(bad_state, Tape(plain).place(l));
  EXPECT_CODE(bad_handle, Tape(gone).activate(s));
  r.finish(s);
  EXPECT_CODE(bad_state, Tape(s).activate(s));
}

TEST_P(OnEveryBackend, AJumpSkipsWhatLiesBetween) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Label l = label(*context);
  Log log;
  EXPECT_OK(log.launch(s, 'a'));
  EXPECT_OK(Tape(s).jump(l));
  EXPECT_OK(log.launch(s, '-'));
  EXPECT_OK(Tape(s).place(l));
  EXPECT_OK(log.launch(s, 'b'));
  r.finish(s);
  for (int i = 0; i < 3; ++i) EXPECT_OK(r.model.execute());
  EXPECT_EQ("ababab", log.take());
}

TEST_P(OnEveryBackend, AJumpToAnotherStreamGoesOnThereAndEndsHere) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), there = r.bound(StreamRole::activated);
  Label l = label(*context);
  Log log;
  EXPECT_OK(log.launch(s, 'a'));
  EXPECT_OK(Tape(s).jump(l));
  EXPECT_OK(log.launch(s, '-'));
  EXPECT_OK(log.launch(there, '-'));
  EXPECT_OK(Tape(there).place(l));
  EXPECT_OK(log.launch(there, 'b'));
  r.finish(s);
  for (int i = 0; i < 3; ++i) EXPECT_OK(r.model.execute());
  EXPECT_EQ("ababab", log.take());
}

// The execution goes on to its end; what waits for it is told why it failed. A head runs as soon as the first one does.
TEST_P(OnEveryBackend, AJumpIntoAStreamThatRunsFailsTheTask) {
  open(patient(GetParam()));
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), there = r.bound(StreamRole::head), from = stream(), host = stream();
  Event gate = event(Event::Kind::latch);
  Label l = label(*context);
  Log log;
  EXPECT_OK(there.wait(gate));
  EXPECT_OK(Tape(there).place(l));
  EXPECT_OK(log.launch(there, 't'));
  EXPECT_OK(Tape(s).jump(l));
  EXPECT_OK(log.launch(s, 's'));
  r.finish(s);
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(r.model.execute_async(from));
    expect_held(from, log, "s");
    EXPECT_OK(host.record(gate));
    names(from.synchronize(), ErrorCode::bad_state, "a jump to a label of stream");
    EXPECT_EQ("t", log.take());
    EXPECT_OK(host.reset(gate));
    EXPECT_OK(host.synchronize());
  }
}

TEST_P(OnEveryBackend, OfTwoJumpsIntoOneStreamOnlyOneIsTaken) {
  open(patient(GetParam()));
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head), there = r.bound(StreamRole::activated), from = stream(), host = stream();
  Event gate = event(Event::Kind::latch);
  Label l = label(*context);
  Log log;
  for (Stream* s : {&a, &b}) {
    EXPECT_OK(Tape(*s).jump(l));
    EXPECT_OK(log.launch(*s, 's'));
  }
  EXPECT_OK(log.launch(there, '-'));
  EXPECT_OK(Tape(there).place(l));
  EXPECT_OK(there.wait(gate));
  EXPECT_OK(log.launch(there, 't'));
  r.finish(a);
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(r.model.execute_async(from));
    expect_held(from, log, "s");
    EXPECT_OK(host.record(gate));
    names(from.synchronize(), ErrorCode::bad_state, "a jump to a label of stream");
    EXPECT_EQ("t", log.take());
    EXPECT_OK(host.reset(gate));
    EXPECT_OK(host.synchronize());
  }
}

// Each head starts the other before the execution has come to it.
TEST_P(OnEveryBackend, AHeadThatAnotherHeadStartsRunsTwiceFromItsFirstTask) {
  Recording r(*context);
  Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
  Log log;
  EXPECT_OK(Tape(a).activate(b));
  for (const char c : {'1', '2', '3', '4'}) EXPECT_OK(log.launch(b, c));
  r.finish(a);
  for (int i = 0; i < 200; ++i) {
    EXPECT_OK(r.model.execute());
    ASSERT_EQ("12341234", log.take());
  }
}

TEST_P(OnEveryBackend, AStreamThatRunsIsStartedAgainOnceAndASecondTimeFailsTheTask) {
  open(patient(GetParam()));
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), there = r.bound(StreamRole::activated), from = stream(), host = stream();
  Event gate = event(Event::Kind::latch);
  Log log;
  EXPECT_OK(there.wait(gate));
  EXPECT_OK(log.launch(there, 't'));
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(Tape(s).activate(there));
    EXPECT_OK(log.launch(s, static_cast<char>('1' + i)));
  }
  r.finish(s);
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(r.model.execute_async(from));
    expect_held(from, log, "123");
    EXPECT_OK(host.record(gate));
    names(from.synchronize(), ErrorCode::bad_state, "will be started again already");
    EXPECT_EQ("tt", log.take());
    EXPECT_OK(host.reset(gate));
    EXPECT_OK(host.synchronize());
  }
}

// The reader is bound first, so that it runs first where nothing holds it.
TEST_P(OnEveryBackend, ForwardWaitsForTwoEventsEachMeetTheirOwnRecord) {
  for (const bool first_x : {true, false}) {
    Recording r(*context);
    Stream reader = r.bound(StreamRole::head), writer = r.bound(StreamRole::head);
    Event x = event(), y = event();
    Log log;
    EXPECT_OK(reader.wait(first_x ? x : y));
    EXPECT_OK(log.launch(reader, 'r'));
    EXPECT_OK(reader.wait(first_x ? y : x));
    EXPECT_OK(log.launch(reader, 's'));
    EXPECT_OK(log.launch(writer, 'a'));
    EXPECT_OK(writer.record(x));
    EXPECT_OK(log.launch(writer, 'b'));
    EXPECT_OK(writer.record(y));
    r.finish(writer);
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(r.model.execute());
      const std::string text = log.take();
      ASSERT_EQ(4u, text.size());
      const auto at = [&](char c) { return text.find(c); };
      EXPECT_LT(at(first_x ? 'a' : 'b'), at('r')) << text;
      EXPECT_LT(at('b'), at('s')) << text;
    }
  }
}

TEST_P(OnEveryBackend, AWaitIsForTheLastRecordBeforeIt) {
  open(patient(GetParam()));
  Recording r(*context);
  Stream writer = r.bound(StreamRole::head), reader = r.bound(StreamRole::head);
  Event e = event(), gate = event(Event::Kind::latch);
  Log log;
  EXPECT_OK(writer.record(e));
  EXPECT_OK(writer.wait(gate));
  EXPECT_OK(log.launch(writer, 'w'));
  EXPECT_OK(reader.wait(e));  // for the record that is there, not for the later one
  EXPECT_OK(log.launch(reader, 'r'));
  EXPECT_OK(writer.record(e));
  EXPECT_OK(reader.wait(e));
  EXPECT_OK(log.launch(reader, 's'));
  r.finish(writer);
  Stream from = stream(), host = stream();
  EXPECT_OK(r.model.execute_async(from));
  expect_held(from, log, "r");
  EXPECT_OK(host.record(gate));
  EXPECT_OK(from.synchronize());
  EXPECT_EQ("ws", log.take());
}

TEST_P(OnEveryBackend, AModelKeepsTheEventsThatItsTapesName) {
  rt::Numbers& events = device->state()->event_numbers;
  {
    Recording r(*context);
    Stream a = r.bound(StreamRole::head), b = r.bound(StreamRole::head);
    {
      Event recorded = event(), other = event();
      EXPECT_OK(a.record(recorded));
      EXPECT_EQ(2u, events.in_use());
    }
    EXPECT_EQ(1u, events.in_use());
    {
      Event outside = event();
      EXPECT_OK(b.wait(outside));
      Stream host = stream();
      EXPECT_OK(host.record(outside));
      EXPECT_OK(host.synchronize());
    }
    EXPECT_EQ(2u, events.in_use());
    // An event that comes later is not taken for one that was recorded before.
    Log log;
    for (int i = 0; i < 5; ++i) {
      Event later = event();
      EXPECT_OK(b.wait(later));
    }
    EXPECT_OK(log.launch(b, 'b'));
    r.finish(a);
    EXPECT_OK(r.model.execute());
    EXPECT_EQ("b", log.take());
    EXPECT_OK(context->synchronize());  // the task that executed it holds it
  }
  EXPECT_TRUE(comes([&] { return events.in_use() == 0; }));  // its last worker lets go of it behind the end
}

TEST_P(OnEveryBackend, AFullTapeTakesNothingMore) {
  Profile profile;
  profile.tasks_per_stream = 2;
  open(profile);
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), other = r.bound(StreamRole::head);
  Log log;
  Event e = event(), f = event();
  Label l = label(*context);
  EXPECT_OK(log.launch(s, 'a'));
  EXPECT_OK(log.launch(s, 'b'));
  const std::int32_t value = 1;
  const std::int64_t values[] = {1};
  Stream* const targets[] = {&other};
  EXPECT_CODE(stream_full, log.launch(s, 'c'));
  EXPECT_CODE(stream_full, s.record(e));
  EXPECT_CODE(stream_full, s.wait(f));
  EXPECT_CODE(stream_full, Tape(s).place(l));
  EXPECT_CODE(stream_full, Tape(s).activate(other));
  EXPECT_CODE(stream_full, Tape(s).switch_n(&value, IntType::int32, values, targets));
  EXPECT_EQ(nullptr, l.state()->binding);
  EXPECT_OK(Tape(other).place(l));
  EXPECT_OK(log.launch(other, 'o'));
  r.finish(s);
  EXPECT_OK(r.model.execute());
  const std::string text = log.take();
  EXPECT_EQ(3u, text.size());
  EXPECT_LT(text.find('a'), text.find('b'));
}

TEST_P(OnEveryBackend, AModelThatIsNotToBeRecordedOnIsLeftAsItIs) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), t = r.bound(StreamRole::head);
  Event e = event();
  EXPECT_OK(r.model.end_tasks(s));
  EXPECT_CODE(bad_state, s.record(e));
  EXPECT_CODE(bad_state, s.wait(e));
  EXPECT_CODE(bad_state, Tape(s).activate(t));
  {
    // Another thread builds it at this moment.
    const std::lock_guard building(r.model.state()->build);
    std::thread([&] {
      EXPECT_CODE(bad_state, t.record(e));
      EXPECT_CODE(bad_state, Tape(t).activate(s));
      EXPECT_CODE(bad_state, r.model.finish());
      EXPECT_CODE(bad_state, r.model.end_tasks(t));
    }).join();
  }
  EXPECT_EQ(0u, t.state()->bindings.front()->tape.size());
  EXPECT_OK(r.model.finish());
  EXPECT_OK(r.model.execute());
}

}  // namespace
}  // namespace millstream
