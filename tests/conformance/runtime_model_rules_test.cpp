// SPDX-License-Identifier: Apache-2.0
// What a model may be told in which phase, and what it owns for how long.
#include <set>

#include "tests/conformance/runtime_recording.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

TEST_P(OnEveryBackend, AModelThatIsMovedToItselfStaysWhatItIs) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Model& same = r.model;
  r.model = std::move(same);
  r.finish(s);
  EXPECT_OK(r.model.execute());
}

TEST_P(OnEveryBackend, AModelThatAnotherIsMovedIntoEndsAndTheOtherGoesOn) {
  Recording a(*context), b(*context);
  Stream of_a = a.bound(StreamRole::head), of_b = b.bound(StreamRole::head);
  a.finish(of_a);
  b.finish(of_b);
  const std::weak_ptr<rt::ModelState> old = a.model.state();
  rt::ModelState* const other = b.model.state().get();
  a.model = std::move(b.model);
  EXPECT_TRUE(old.expired());
  EXPECT_EQ(other, a.model.state().get());
  EXPECT_OK(a.model.execute());
  EXPECT_OK(of_a.close());  // not bound any more
}

TEST_P(OnEveryBackend, TheNumberOfAModelIsFreeWhenItsOwnerGoes) {
  Profile profile;
  profile.max_models = 1;
  open(profile);
  for (int i = 0; i < 3; ++i) {
    Model model = std::move(*context->begin_model());
    EXPECT_EQ(0u, model.state()->number);
    EXPECT_CODE(no_model, context->begin_model());
    if (i == 1) EXPECT_OK(model.close());
  }
  EXPECT_EQ(0u, device->state()->model_numbers.in_use());
}

// A host function cannot wait for the model's executions; whoever ends the context does.
TEST_P(OnEveryBackend, AModelThatGoesInAHostFunctionEndsWithItsContext) {
  std::optional<Context> own = std::move(*device->create_context());
  std::optional<Model> model = std::move(*own->begin_model());
  const std::weak_ptr<rt::ModelState> state = model->state();
  Stream s = std::move(*own->create_stream());
  EXPECT_OK(s.host_func([](void* p) { static_cast<std::optional<Model>*>(p)->reset(); }, &model));
  EXPECT_OK(s.synchronize());
  EXPECT_FALSE(model.has_value());
  EXPECT_FALSE(state.expired());
  EXPECT_EQ(1u, device->state()->model_numbers.in_use());
  EXPECT_OK(s.close());
  EXPECT_OK(own->close());
  own.reset();
  EXPECT_TRUE(state.expired());
  EXPECT_EQ(0u, device->state()->model_numbers.in_use());
}

TEST_P(OnEveryBackend, AWaitBehindItsRecordOnOneTapePassesEachTime) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Event e = event();
  Log log;
  EXPECT_OK(log.launch(s, 'a'));
  EXPECT_OK(s.record(e));
  EXPECT_OK(s.wait(e));
  EXPECT_OK(log.launch(s, 'b'));
  r.finish(s);
  for (int i = 0; i < 5; ++i) EXPECT_OK(r.model.execute());
  EXPECT_EQ("ababababab", log.take());
}

TEST_P(OnEveryBackend, AWaitBeforeTheOnlyRecordOfItsOwnTapeIsRefused) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Event e = event();
  Log log;
  EXPECT_OK(log.launch(s, 'a'));
  EXPECT_OK(s.wait(e));
  EXPECT_OK(s.record(e));
  EXPECT_OK(r.model.end_tasks(s));
  const Result<void> refused = r.model.finish();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ErrorCode::bad_state, refused.error().code);
  EXPECT_NE(std::string::npos, refused.error().message.find("waits at task 1 of stream")) << refused.error().message;
}

// A jump over the wait comes back to it from behind the record.
TEST_P(OnEveryBackend, AWaitBeforeItsRecordIsAllowedWhereATapeJumps) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Label top = std::move(*context->create_label()), behind = std::move(*context->create_label()), out = std::move(*context->create_label());
  Event e = event();
  Log log;
  std::uint32_t again = 0;
  Bodies bodies;
  Tape tape(s);
  EXPECT_OK(tape.jump(behind));
  EXPECT_OK(tape.place(top));
  EXPECT_OK(s.wait(e));
  EXPECT_OK(log.launch(s, 'w'));
  EXPECT_OK(tape.place(behind));
  EXPECT_OK(s.record(e));
  EXPECT_OK(log.launch(s, 'r'));
  EXPECT_OK(bodies.launch(s, [&]() -> Result<void> {
    again = (again + 1) % 3;
    return {};
  }));
  Label* const ways[] = {&out, &top};
  EXPECT_OK(tape.jump_by_index(&again, ways));
  EXPECT_OK(tape.place(out));
  r.finish(s);
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(r.model.execute());
    EXPECT_EQ("rwrwr", log.take());
  }
}

TEST_P(OnEveryBackend, ATapeLivesUntilItsStreamEndsThoughItsModelIsGone) {
  std::weak_ptr<rt::BindingState> tape;
  {
    Stream s = stream({.persistent = true});
    for (const bool unbinds : {true, false}) {
      Model model = std::move(*context->begin_model());
      EXPECT_OK(model.bind(s, StreamRole::head));
      tape = s.state()->bindings.front();
      EXPECT_OK(model.end_tasks(s));
      EXPECT_OK(model.finish());
      EXPECT_OK(model.execute());
      if (unbinds) EXPECT_OK(model.unbind(s));
      EXPECT_OK(model.close());
    }
    EXPECT_FALSE(tape.expired());
    EXPECT_EQ(2u, s.state()->retired.size());
    EXPECT_TRUE(s.state()->bindings.empty());
  }
  EXPECT_TRUE(comes([&] { return tape.expired(); }));  // who looks for a deadlock may have it for a moment
}

TEST_P(OnEveryBackend, InATraceAHostsWaitForAnExecutionHasASerialOfItsOwn) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  r.finish(s);
  device->start_trace();
  EXPECT_OK(r.model.execute());
  EXPECT_OK(r.model.execute());
  EXPECT_OK(context->default_stream().synchronize());
  std::set<std::uint64_t> told;
  for (const rt::TraceEvent& e : device->state()->trace.take()) {
    if (e.kind != rt::TraceEvent::Kind::sync_end && e.kind != rt::TraceEvent::Kind::execution_done) continue;
    EXPECT_NE(0u, e.object);
    EXPECT_TRUE(told.insert(e.object).second);
  }
  EXPECT_EQ(3u, told.size());
}

}  // namespace
}  // namespace millstream
