// SPDX-License-Identifier: Apache-2.0
// Executions: which wait for which, what an abort, a stop or an unbind leaves of them, and what the next one finds.
#include "tests/conformance/runtime_recording.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

constexpr auto kSoon = std::chrono::milliseconds(5);

// Host threads that wait beside the one that tests: on sim they drive too.
struct Host {
  Host(Context& c) : stream(std::move(*c.create_stream())) {}
  void record(Event& e) {
    EXPECT_OK(stream.record(e));
    EXPECT_OK(stream.synchronize());
  }
  void reset(Event& e) {
    EXPECT_OK(stream.reset(e));
    EXPECT_OK(stream.synchronize());
  }
  Stream stream;
};

// A tape that waits for a gate from outside, then writes its letter.
void gated(Recording& r, Stream& s, Event& gate, Log& log, char letter) {
  EXPECT_OK(s.wait(gate));
  EXPECT_OK(log.launch(s, letter));
  r.finish(s);
}

TEST_P(OnEveryBackend, ExecutionsOfOneModelComeOneAfterTheOther) {
  open(patient(GetParam()));
  Recording r(*context);
  Host host(*context);
  Stream s = r.bound(StreamRole::head), a = stream(), b = stream();
  Event gate = event(Event::Kind::latch);
  Log log;
  EXPECT_OK(log.launch(s, '('));
  EXPECT_OK(s.wait(gate));
  EXPECT_OK(log.launch(s, ')'));
  r.finish(s);
  EXPECT_OK(r.model.execute_async(a));
  EXPECT_OK(r.model.execute_async(b));
  expect_held(a, log, "(");
  host.record(gate);
  EXPECT_OK(context->synchronize());
  EXPECT_EQ(")()", log.take());
}

TEST_P(OnEveryBackend, ModelsWithoutACommonStreamRunBesideEachOther) {
  Recording waits(*context), runs(*context);
  Host host(*context);
  Stream s = waits.bound(StreamRole::head), t = runs.bound(StreamRole::head), a = stream();
  Event gate = event(Event::Kind::latch);
  Log log;
  gated(waits, s, gate, log, 'w');
  EXPECT_OK(log.launch(t, 'r'));
  runs.finish(t);
  EXPECT_OK(waits.model.execute_async(a));
  EXPECT_CODE(sync_timeout, a.synchronize(kSoon));
  EXPECT_OK(runs.model.execute());
  EXPECT_EQ("r", log.take());
  host.record(gate);
  EXPECT_OK(a.synchronize());
  EXPECT_EQ("w", log.take());
}

// The third shares nothing with the first, but waits for the second, which was asked for before it.
TEST_P(OnEveryBackend, ExecutionsThatShareStreamsBeginInTheOrderTheyWereAskedFor) {
  open(patient(GetParam()));
  const StreamOptions shared{.persistent = true, .shared = true};
  Stream x = stream(shared), y = stream(shared), streams[] = {stream(), stream(), stream(), stream()};
  Host host(*context);
  Event gate = event(Event::Kind::latch);
  Log log;
  std::vector<Model> models;
  const std::vector<std::vector<Stream*>> bound = {{&x}, {&x, &y}, {&y}, {&y}};
  for (std::size_t m = 0; m < bound.size(); ++m) {
    Model& model = models.emplace_back(std::move(*context->begin_model()));
    for (Stream* s : bound[m]) EXPECT_OK(model.bind(*s, StreamRole::head));
    if (m == 0) EXPECT_OK(x.wait(gate));
    EXPECT_OK(log.launch(*bound[m].front(), static_cast<char>('a' + m)));
    EXPECT_OK(model.end_tasks(*bound[m].front()));
    EXPECT_OK(model.finish());
  }
  const auto asked_for = [&] {
    const std::lock_guard lock(context->state()->executions_mutex);
    return context->state()->executions.size() + context->state()->running.size();
  };
  for (int i = 0; i < 3; ++i) {
    for (std::size_t m = 0; m < bound.size(); ++m) {
      EXPECT_OK(models[m].execute_async(streams[m]));
      do EXPECT_CODE(sync_timeout, streams[m].synchronize(kSoon));
      while (asked_for() <= m);
    }
    expect_held(streams[0], log, "");
    host.record(gate);
    EXPECT_OK(context->synchronize());
    EXPECT_EQ("abcd", log.take());
    host.reset(gate);
  }
}

TEST_P(OnEveryBackend, AnExecutionWhoseModelIsGoneBeforeItBeginsSaysSo) {
  for (const bool closes : {false, true}) {
    Recording r(*context);
    Host host(*context);
    Stream s = r.bound(StreamRole::head), from = stream();
    Event gate = event(Event::Kind::latch);
    Log log;
    EXPECT_OK(log.launch(s, 's'));
    r.finish(s);
    EXPECT_OK(from.wait(gate));
    EXPECT_OK(r.model.execute_async(from));
    EXPECT_OK(log.launch(from, 'f'));
    if (closes) {
      EXPECT_OK(r.model.close());
    } else {
      EXPECT_OK(r.model.unbind(s));
    }
    host.record(gate);
    const Result<void> refused = from.synchronize();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(ErrorCode::bad_state, refused.error().code);
    EXPECT_NE(std::string::npos, refused.error().message.find("was unbound or destroyed before its execution began")) << refused.error().message;
    EXPECT_EQ("f", log.take());
  }
}

// And not only for the tape that is unbound.
TEST_P(OnEveryBackend, AnUnbindWaitsForTheExecutionThatRuns) {
  if (GetParam() == BackendId::sim) return;  // nothing runs between two calls
  open(patient(GetParam()));
  Recording r(*context);
  Host host(*context);
  Stream s = r.bound(StreamRole::head), t = r.bound(StreamRole::head), from = stream();
  Event gate = event(Event::Kind::latch);
  Log log;
  EXPECT_OK(log.launch(s, 's'));
  gated(r, t, gate, log, 't');
  EXPECT_OK(r.model.execute_async(from));
  expect_held(from, log, "s");
  std::atomic<bool> unbound{false};
  std::thread unbinds([&] {
    EXPECT_OK(r.model.unbind(s));
    unbound = true;
  });
  std::this_thread::sleep_for(kSoon * 4);
  EXPECT_FALSE(unbound);
  host.record(gate);
  unbinds.join();
  EXPECT_EQ("t", log.take());
  EXPECT_OK(from.synchronize());
}

// What woke the tape for its first wait must not let it pass the second.
TEST_P(OnEveryBackend, ANotifyOnATapeIsWaitedForThoughTheTapeWasJustWoken) {
  open(patient(GetParam()));
  Recording r(*context);
  Host host(*context);
  Stream writer = r.bound(StreamRole::head), reader = r.bound(StreamRole::head), from = stream();
  Event gate = event(Event::Kind::latch), e = event();
  Notify n = std::move(*context->create_notify());
  Log log;
  EXPECT_OK(writer.wait(gate));
  EXPECT_OK(log.launch(writer, 'w'));
  EXPECT_OK(writer.record(e));
  EXPECT_OK(log.launch(reader, 'a'));
  EXPECT_OK(reader.wait(e));
  EXPECT_OK(log.launch(reader, 'b'));
  EXPECT_OK(reader.wait(n));
  EXPECT_OK(log.launch(reader, 'c'));
  r.finish(writer);
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(r.model.execute_async(from));
    expect_held(from, log, "a");
    host.record(gate);
    expect_held(from, log, "wb");
    EXPECT_OK(host.stream.record(n));
    EXPECT_OK(host.stream.synchronize());
    EXPECT_OK(from.synchronize());
    EXPECT_EQ("c", log.take());
    host.reset(gate);
  }
}

TEST_P(OnEveryBackend, AnAbortOfAModelThatDoesNotRunLeavesTheNextExecutionAlone) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Log log;
  EXPECT_OK(log.launch(s, 's'));
  r.finish(s);
  EXPECT_OK(r.model.abort());
  EXPECT_OK(r.model.execute());
  EXPECT_OK(r.model.abort());
  EXPECT_OK(r.model.execute());
  EXPECT_EQ("ss", log.take());
}

// A tape with a label is run by its lane, one without by segments.
TEST_P(OnEveryBackend, AnAbortLetsTheTaskThatRunsEndAndDropsTheRest) {
  for (const bool lanes : {false, true}) {
    Recording r(*context);
    Stream s = r.bound(StreamRole::head), t = r.bound(StreamRole::head), from = stream();
    Event e = event();
    Label l = std::move(*context->create_label());
    std::atomic<bool> release{false};
    std::atomic<int> begun{0};
    const bool cpu = GetParam() == BackendId::cpu;
    const auto body = [&, cpu]() -> Result<void> {
      ++begun;
      while (cpu && !release) std::this_thread::yield();
      return {};
    };
    // Virtual time: it takes longer than the host waits.
    const KernelFunction slow{"slow", call_body, 1e6, 0};
    const Body kept = body;
    const Body* const pointer = &kept;
    Log log;
    if (lanes) EXPECT_OK(Tape(s).place(l));
    EXPECT_OK(s.launch(slow, {}, std::as_bytes(std::span(&pointer, 1))));
    EXPECT_OK(log.launch(s, 'x'));
    EXPECT_OK(s.record(e));
    EXPECT_OK(log.launch(s, 'y'));
    EXPECT_OK(t.wait(e));
    EXPECT_OK(log.launch(t, 'z'));
    r.finish(s);
    for (int i = 0; i < 2; ++i) {
      EXPECT_OK(r.model.execute_async(from));
      if (cpu) {
        while (begun == 0) std::this_thread::yield();
      } else {
        EXPECT_CODE(sync_timeout, from.synchronize(kSoon));
      }
      EXPECT_OK(r.model.abort());
      release = true;
      EXPECT_CODE(model_aborted, from.synchronize());
      EXPECT_EQ("", log.take());
      EXPECT_EQ(1, begun);
      EXPECT_OK(r.model.execute());
      EXPECT_EQ("x", log.take().substr(0, 1));
      release = false;
      begun = 0;
    }
  }
}

TEST_P(OnEveryBackend, ARecordOfADroppedExecutionIsNotTakenForOneOfTheNext) {
  open(patient(GetParam()));
  Recording r(*context);
  Host host(*context);
  Stream writer = r.bound(StreamRole::head), reader = r.bound(StreamRole::head), from = stream();
  Event may_write = event(Event::Kind::latch), may_read = event(Event::Kind::latch), e = event();
  Log log;
  EXPECT_OK(writer.wait(may_write));
  EXPECT_OK(log.launch(writer, 'w'));
  EXPECT_OK(writer.record(e));
  EXPECT_OK(reader.wait(may_read));
  EXPECT_OK(reader.wait(e));
  EXPECT_OK(log.launch(reader, 'r'));
  r.finish(writer);
  host.record(may_write);
  host.record(may_read);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i) EXPECT_OK(r.model.execute());
    EXPECT_EQ("wrwr", log.take());
    // The writer records, the reader never comes to its wait.
    host.reset(may_read);
    EXPECT_OK(r.model.execute_async(from));
    expect_held(from, log, "w");
    EXPECT_OK(r.model.abort());
    EXPECT_CODE(model_aborted, from.synchronize());
    EXPECT_EQ("", log.take());
    // The reader comes first.
    host.reset(may_write);
    host.record(may_read);
    EXPECT_OK(r.model.execute_async(from));
    expect_held(from, log, "");
    host.record(may_write);
    EXPECT_OK(from.synchronize());
    EXPECT_EQ("wr", log.take());
  }
}

TEST_P(OnEveryBackend, AnExecutionThatWaitsForADroppedRecordFailsAndTheNextRecordServes) {
  for (const bool parked : {false, true}) {
    Recording r(*context);
    Host host(*context);
    Stream s = r.bound(StreamRole::head), writer = stream(), from = stream();
    Event e = event(), gate = event(Event::Kind::latch);
    Log log;
    EXPECT_OK(s.wait(e));
    EXPECT_OK(log.launch(s, 's'));
    r.finish(s);
    EXPECT_OK(writer.wait(gate));
    EXPECT_OK(writer.record(e));
    if (!parked) EXPECT_OK(writer.abort());
    EXPECT_OK(r.model.execute_async(from));
    if (parked) {
      EXPECT_CODE(sync_timeout, from.synchronize(kSoon));
      EXPECT_OK(writer.abort());
    }
    const Result<void> failed = from.synchronize();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(ErrorCode::stream_aborted, failed.error().code) << to_string(failed.error());  // in one context: what ended the record
    EXPECT_NE(std::string::npos, failed.error().message.find("was never recorded")) << failed.error().message;
    (void)log.take();
    host.record(e);
    EXPECT_OK(r.model.execute());
    EXPECT_EQ("s", log.take());
  }
}

TEST_P(OnEveryBackend, TheBoundOfTasksIsOfOneExecution) {
  Profile profile;
  profile.max_tasks_per_execution = 20;
  open(profile);
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Label l = std::move(*context->create_label());
  Log log;
  EXPECT_OK(Tape(s).place(l));
  for (int i = 0; i < 9; ++i) EXPECT_OK(log.launch(s, 's'));
  r.finish(s);
  for (int i = 0; i < 10; ++i) EXPECT_OK(r.model.execute());
  EXPECT_EQ(std::string(90, 's'), log.take());
}

TEST_P(OnEveryBackend, ATraceHasEachTaskOfAModel) {
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Log log;
  EXPECT_OK(log.launch(s, 'a'));
  EXPECT_OK(log.launch(s, 'b'));
  r.finish(s);
  for (const bool traced : {false, true, false}) {
    if (traced) {
      device->start_trace();
    } else {
      device->state()->trace.stop();
    }
    EXPECT_OK(r.model.execute());
    EXPECT_OK(context->synchronize());
    int began = 0;
    for (const rt::TraceEvent& e : device->state()->trace.take()) began += e.kind == rt::TraceEvent::Kind::began && e.stream == s.number() ? 1 : 0;
    EXPECT_EQ(traced ? 2 : 0, began);
  }
  EXPECT_EQ("ababab", log.take());
}

// What stops a context: its first stream that fails.
struct Stopping {
  explicit Stopping(Context& c) : stream(std::move(*c.create_stream())) { EXPECT_OK(stream.set_failure_mode(FailureMode::stop)); }
  void stop() {
    static const KernelFunction fails{"fails", [](const KernelCall&) -> Result<void> { return Error{ErrorCode::kernel, "as the test wants"}; }, 1, 1};
    EXPECT_OK(stream.launch(fails, {}, {}));
    EXPECT_CODE(kernel_failed, stream.synchronize());
  }
  Stream stream;
};

TEST_P(OnEveryBackend, AnExecutionThatItsContextsStopCutsOffSaysSo) {
  for (const bool lanes : {false, true}) {
    Context own = std::move(*device->create_context());
    Recording r(own);
    Stopping stopping(own);
    Stream s = r.bound(StreamRole::head);
    Event gate = std::move(*own.create_event(Event::Kind::latch));
    Log log;
    if (lanes) {
      EXPECT_OK(s.wait(gate));
    }
    EXPECT_OK(log.launch(s, 's'));
    r.finish(s);
    if (lanes) {
      std::thread stops([&] {
        std::this_thread::sleep_for(kSoon);
        stopping.stop();
      });
      EXPECT_CODE(context_stopped, r.model.execute());
      stops.join();
      EXPECT_EQ("", log.take());
    } else {
      stopping.stop();
      EXPECT_CODE(context_stopped, r.model.execute());
      EXPECT_EQ("", log.take());
    }
    EXPECT_OK(own.recover());
    if (!lanes) {
      EXPECT_OK(r.model.execute());
      EXPECT_EQ("s", log.take());
    }
  }
}

TEST_P(OnEveryBackend, AHostWhoseExecutionIsDroppedBeforeItIsAskedForIsTold) {
  Recording r(*context);
  Stopping stopping(*context);
  Stream s = r.bound(StreamRole::head);
  Event gate = event(Event::Kind::latch);
  Log log;
  EXPECT_OK(log.launch(s, 's'));
  r.finish(s);
  Stream first = context->default_stream();
  EXPECT_OK(first.wait(gate));
  std::thread host([&] { EXPECT_CODE(context_stopped, r.model.execute()); });
  EXPECT_TRUE(comes([&] { return first.state()->lane.submitted >= 2; }));
  stopping.stop();
  host.join();
  EXPECT_EQ("", log.take());
}

TEST_P(OnEveryBackend, AnExecutionThatStopsItsContextSaysWhyItDid) {
  for (const bool lanes : {false, true}) {
    Context own = std::move(*device->create_context());
    Recording r(own);
    Stopping stopping(own);
    Stream s = r.bound(StreamRole::head);
    Label l = std::move(*own.create_label());
    Bodies bodies;
    Log log;
    if (lanes) EXPECT_OK(Tape(s).place(l));
    EXPECT_OK(bodies.launch(s, []() -> Result<void> { return Error{ErrorCode::kernel, "no such luck"}; }));
    EXPECT_OK(log.launch(s, '-'));
    r.finish(s);
    for (int i = 0; i < 2; ++i) {
      EXPECT_CODE(kernel_failed, r.model.execute());
      EXPECT_EQ("", log.take());
      EXPECT_CODE(context_stopped, stopping.stream.query());
      EXPECT_OK(own.recover());
    }
  }
}

// A kernel that runs while another, on the second engine, fails: on cpu each waits for the other; on virtual time the failure
// comes at 20 us and the kernel ends at 100.
struct StopsWhileItRuns {
  StopsWhileItRuns(Context& context, bool cpu)
      : body([this, &context]() -> Result<void> {
          begun = true;
          while (!context.state()->stopped.load()) std::this_thread::yield();
          return {};
        }),
        failing([this, cpu]() -> Result<void> {
          while (cpu && !begun) std::this_thread::yield();
          return Error{ErrorCode::kernel, "as the test wants"};
        }) {}
  Result<void> launch(Stream& stream) { return stream.launch(slow, {}, std::as_bytes(std::span(pointers, 1))); }
  Result<void> launch_failing(Stream& stream) { return stream.launch(fails, {}, std::as_bytes(std::span(pointers + 1, 1))); }

  std::atomic<bool> begun{false};
  const Body body, failing;
  const KernelFunction slow{"slow", call_body, 100, 0}, fails{"fails", call_body, 20, 1};
  const Body* const pointers[2] = {&body, &failing};
};

// Nothing of it was dropped.
TEST_P(OnEveryBackend, AnExecutionWhoseLastTaskRanAsItsContextStoppedIsWhole) {
  Profile profile;
  profile.engine_slots = {1, 1};
  for (const bool lanes : {false, true}) {
    open(profile);
    Recording r(*context);
    Stopping stopping(*context);
    Stream s = r.bound(StreamRole::head);
    Label l = std::move(*context->create_label());
    StopsWhileItRuns kernels(*context, GetParam() == BackendId::cpu);
    if (lanes) EXPECT_OK(Tape(s).place(l));
    EXPECT_OK(kernels.launch(s));
    r.finish(s);
    EXPECT_OK(kernels.launch_failing(stopping.stream));
    EXPECT_OK(r.model.execute());
    EXPECT_TRUE(context->state()->stopped.load());
  }
}

// Nor does it matter what became of the execution before it.
TEST_P(OnEveryBackend, AnExecutionBehindAnAbortedOneIsWholeThoughItsContextStopped) {
  Profile profile;
  profile.engine_slots = {1, 1};
  open(profile);
  Recording r(*context);
  Stopping stopping(*context);
  Stream s = r.bound(StreamRole::head), from = stream();
  Event gate = event(Event::Kind::latch);
  StopsWhileItRuns kernels(*context, GetParam() == BackendId::cpu);
  EXPECT_OK(s.wait(gate));
  EXPECT_OK(kernels.launch(s));
  r.finish(s);
  device->start_trace();
  EXPECT_OK(r.model.execute_async(from));
  EXPECT_CODE(sync_timeout, from.synchronize(kSoon));
  EXPECT_OK(r.model.abort());
  EXPECT_CODE(model_aborted, from.synchronize());
  // A trace says when the drop was asked for and when it was in force.
  std::vector<rt::TraceEvent::Kind> drops;
  for (const rt::TraceEvent& moment : device->take_trace()) {
    using Kind = rt::TraceEvent::Kind;
    if (moment.kind == Kind::execution_dropping || moment.kind == Kind::execution_drop_in_force) drops.push_back(moment.kind);
  }
  EXPECT_EQ((std::vector{rt::TraceEvent::Kind::execution_dropping, rt::TraceEvent::Kind::execution_drop_in_force}), drops);
  EXPECT_FALSE(kernels.begun);
  EXPECT_OK(context->recover());
  EXPECT_OK(from.record(gate));
  EXPECT_OK(from.synchronize());
  EXPECT_OK(kernels.launch_failing(stopping.stream));
  EXPECT_OK(r.model.execute());
  EXPECT_TRUE(context->state()->stopped.load());
}

TEST_P(OnEveryBackend, AnExecutionThatWaitsForADroppedRecordOfAnotherContextReportsItAndGoesOn) {
  Context elsewhere = std::move(*device->create_context());
  Stream writer = std::move(*elsewhere.create_stream());
  Event gate = std::move(*elsewhere.create_event(Event::Kind::latch)), latch = std::move(*elsewhere.create_event(Event::Kind::latch));
  Recording r(*context);
  Stream s = r.bound(StreamRole::head);
  Log log;
  EXPECT_OK(s.wait(latch));
  EXPECT_OK(log.launch(s, 's'));
  r.finish(s);
  EXPECT_OK(writer.wait(gate));
  EXPECT_OK(writer.record(latch));
  EXPECT_OK(writer.abort());
  EXPECT_CODE(context_stopped, r.model.execute());
  EXPECT_EQ("s", log.take());
}

TEST_P(OnEveryBackend, AnExecutionThatWaitsForADroppedRecordStopsAContextThatStopsOnFailures) {
  Recording r(*context);
  Stopping stopping(*context);
  Stream s = r.bound(StreamRole::head), writer = stream(), from = stream();
  Event e = event(), gate = event(Event::Kind::latch);
  EXPECT_OK(s.wait(e));
  r.finish(s);
  EXPECT_OK(writer.wait(gate));
  EXPECT_OK(writer.record(e));
  // By no stream that would report it, and with it stop the context, itself.
  std::thread host([&] { EXPECT_CODE(stream_aborted, r.model.execute()); });
  std::this_thread::sleep_for(kSoon);
  EXPECT_OK(writer.abort());
  host.join();
  EXPECT_CODE(context_stopped, from.query());
}

// The stream that asked, older than the model's, would let the model go on behind the execution.
TEST_P(OnEveryBackend, ACycleThroughAnExecutionNamesBothStreams) {
  Profile profile;
  profile.orphan_wait_ms = 60000;
  open(profile);
  Stream asks = stream();
  Event gate = event(Event::Kind::latch);
  Recording r(*context);
  Stream tape = r.bound(StreamRole::head);
  EXPECT_OK(tape.wait(gate));
  r.finish(tape);
  EXPECT_OK(r.model.execute_async(asks));
  EXPECT_OK(asks.record(gate));
  const Result<void> told = asks.synchronize(std::chrono::seconds(20));
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(ErrorCode::deadlock, told.error().code) << to_string(told.error());
  EXPECT_EQ(
      "error: DEADLOCK: stream 1 of context 0 waits for an execution of model 0 at task 0, before any other task [E38 deadlock]\n"
      "  note: the cycle: stream 1 waits for an execution of model 0, recorded by stream 2 in model 0, which waits for event 0, recorded by stream 1\n"
      "  note: stream 2 in model 0 of context 0 waits for event 0 at task 0, before any other task\n"
      "  help: let one stream of the cycle record before it waits\n"
      "  note: task 0 (execution) of stream 1",
      to_string(told.error()));
}

// A on the first stream, B on both, C on the second: C waits for A though they share nothing.
TEST_P(OnEveryBackend, AnExecutionWaitsForThoseThatTheOneBeforeItWaitsFor) {
  Profile profile;
  profile.orphan_wait_ms = 60000;
  open(profile);
  const StreamOptions options{.persistent = true, .shared = true};
  Stream one = stream(options), two = stream(options), asks = stream();
  Event gate = event(Event::Kind::latch);
  std::vector<Model> models;
  for (const std::vector<Stream*>& on : {std::vector<Stream*>{&one}, {&one, &two}, {&two}}) {
    Model m = std::move(*context->begin_model());
    for (Stream* s : on) {
      EXPECT_OK(m.bind(*s, StreamRole::head));
      if (models.empty()) EXPECT_OK(s->wait(gate));
      EXPECT_OK(m.end_tasks(*s));
    }
    EXPECT_OK(m.finish());
    models.push_back(std::move(m));
  }
  std::vector<Stream> askers;
  for (std::size_t i = 0; i < 3; ++i) {
    askers.push_back(stream());
    EXPECT_OK(models[i].execute_async(askers[i]));
    EXPECT_FALSE(*askers[i].query());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it has asked
  }
  EXPECT_OK(askers[2].record(gate));
  EXPECT_CODE(deadlock, askers[2].synchronize(std::chrono::seconds(20)));
}

TEST_P(OnEveryBackend, ARecordOnATapeThatDoesNotRunIsACertainDeadlock) {
  Profile profile;
  profile.orphan_wait_ms = 60000;
  open(profile);
  Recording r(*context);
  Stream waits = r.bound(StreamRole::head), idle = r.bound(StreamRole::activated);
  Event e = event();
  EXPECT_OK(idle.record(e));
  EXPECT_OK(waits.wait(e));
  EXPECT_OK(r.model.end_tasks(idle));
  r.finish(waits);
  EXPECT_CODE(deadlock, r.model.execute(std::chrono::seconds(20)));
}

// Its context's synchronise is for streams; who closes the context waits, and is told.
TEST_P(OnEveryBackend, AnExecutionOutlivesTheStreamThatAskedForItAndWasDestroyedAtOnce) {
  for (const bool comes : {true, false}) {
    Context own = std::move(*device->create_context());
    Recording r(own);
    Stopping stopping(own);
    Stream s = r.bound(StreamRole::head), from = std::move(*own.create_stream());
    Event gate = std::move(*own.create_event(Event::Kind::latch));
    Log log;
    EXPECT_OK(s.wait(gate));
    EXPECT_OK(log.launch(s, 's'));
    r.finish(s);
    EXPECT_OK(r.model.execute_async(from));
    EXPECT_CODE(sync_timeout, from.synchronize(kSoon));
    EXPECT_OK(from.close(Close::drop));
    EXPECT_OK(own.synchronize());
    if (comes) {
      EXPECT_OK(stopping.stream.record(gate));
      EXPECT_OK(own.close());
    } else {
      EXPECT_CODE(deadlock, own.close());
    }
    EXPECT_EQ(comes ? "s" : "", log.take());
  }
}

TEST_P(OnEveryBackend, AWaitForANotifyThatIsWokenIsStillOneTask) {
  Profile profile;
  profile.max_tasks_per_execution = 1;
  open(profile);
  Recording r(*context);
  Stream s = r.bound(StreamRole::head), from = stream(), other = stream();
  Notify n = std::move(*context->create_notify());
  EXPECT_OK(s.wait(n));
  r.finish(s);
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(r.model.execute_async(from));
    EXPECT_CODE(sync_timeout, from.synchronize(kSoon));
    EXPECT_OK(other.record(n));
    EXPECT_OK(from.synchronize());
  }
}

}  // namespace
}  // namespace millstream
