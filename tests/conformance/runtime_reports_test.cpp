// SPDX-License-Identifier: Apache-2.0
// What users of such runtimes ran into elsewhere, each as the whole kind.
#include "millstream/runtime/stream_pools.h"
#include "tests/conformance/runtime_fixture.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

// A completion was made known before the value it stands for, once in a hundred runs.
TEST_P(OnEveryBackend, AValueIsThereBeforeItsRecordIsKnownHoweverLateThatIs) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Profile profile;
    profile.delay_seed = seed;
    open(profile);
    Stream a = stream(), b = stream();
    Event e = event();
    Bodies bodies;
    int value = 0;
    for (int i = 1; i <= 10; ++i) {
      EXPECT_OK(bodies.launch(a, [&value, i]() -> Result<void> {
        value = i;
        return {};
      }));
      EXPECT_OK(a.record(e));
      EXPECT_OK(b.wait(e));
      EXPECT_OK(bodies.launch(b, [&value, i, seed]() -> Result<void> {
        EXPECT_EQ(value, i) << "seed " << seed;
        return {};
      }));
      EXPECT_OK(b.record(e));
      EXPECT_OK(a.wait(e));
    }
    EXPECT_OK(e.synchronize());
    EXPECT_EQ(value, 10);
    EXPECT_OK(context->synchronize());
  }
}

// A callback took the runtime's lock and everything stopped.
TEST_P(OnEveryBackend, ACallbackThatBlocksDelaysNoOtherStream) {
  // On virtual time it takes a second instead of blocking.
  const bool cpu = GetParam() == BackendId::cpu;
  Profile profile;
  profile.callback_us = 1e6;
  open(profile);
  Stream a = stream(), b = stream();
  struct Gate {
    std::atomic<bool> open, passed{false};
  } gate{!cpu};
  EXPECT_OK(a.host_func(
      [](void* p) {
        auto& g = *static_cast<Gate*>(p);
        while (!g.open) std::this_thread::yield();
        g.passed = true;
      },
      &gate));
  Bodies bodies;
  int ran = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_OK(bodies.launch(b, [&]() -> Result<void> {
      ++ran;
      return {};
    }));
  }
  EXPECT_OK(b.synchronize());
  EXPECT_EQ(ran, 100);
  EXPECT_FALSE(gate.passed);
  gate.open = true;
  EXPECT_OK(a.synchronize());
  EXPECT_TRUE(gate.passed);
}

// A host function followed by a record and a wait hung.
TEST_P(OnEveryBackend, AHostFunctionThenARecordThenAWaitGoOn) {
  Stream a = stream(), b = stream();
  Event e = event();
  std::atomic<int> calls{0};
  for (int i = 0; i < 200; ++i) {
    EXPECT_OK(a.host_func([](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &calls));
    EXPECT_OK(a.record(e));
    EXPECT_OK(b.wait(e));
    EXPECT_OK(b.host_func([](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &calls));
    EXPECT_OK(b.record(e));
    EXPECT_OK(a.wait(e));
  }
  EXPECT_OK(context->synchronize());
  EXPECT_EQ(calls, 400);
}

// A parallel executor deadlocked with fewer threads than blocked streams.
TEST_P(OnEveryBackend, ManyBlockedStreamsOnOneWorkerFinish) {
  Profile profile;
  profile.workers = 1;
  open(profile);
  constexpr int kStreams = 200;
  std::vector<Stream> streams;
  std::vector<Event> events;
  Bodies bodies;
  std::vector<int> order;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(stream());
    events.push_back(event(Event::Kind::latch));
  }
  for (int i = 0; i < kStreams; ++i) {
    if (i + 1 < kStreams) EXPECT_OK(streams[static_cast<std::size_t>(i)].wait(events[static_cast<std::size_t>(i) + 1]));
    EXPECT_OK(bodies.launch(streams[static_cast<std::size_t>(i)], [&order, i]() -> Result<void> {
      order.push_back(i);
      return {};
    }));
    EXPECT_OK(streams[static_cast<std::size_t>(i)].record(events[static_cast<std::size_t>(i)]));
  }
  EXPECT_OK(context->synchronize());
  ASSERT_EQ(order.size(), static_cast<std::size_t>(kStreams));
  for (int i = 0; i < kStreams; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], kStreams - 1 - i);
}

Stream bound(Context& context, Model& model, StreamRole role, std::int32_t priority = 0) {
  Stream s = std::move(*context.create_stream(StreamOptions{.priority = priority, .persistent = true}));
  EXPECT_OK(model.bind(s, role));
  return s;
}

// A loop recorded while a sibling stream was open failed.
TEST_P(OnEveryBackend, ALoopIsRecordedWhileASiblingStreamIsOpen) {
  Model model = std::move(*context->begin_model());
  Stream sibling = bound(*context, model, StreamRole::head), loop = bound(*context, model, StreamRole::head);
  Bodies bodies;
  std::int32_t n = 0, limit = 3;
  int other = 0;
  EXPECT_OK(bodies.launch(sibling, [&]() -> Result<void> {
    ++other;
    return {};
  }));
  Stream out = bound(*context, model, StreamRole::activated);
  EXPECT_OK(bodies.launch(loop, [&]() -> Result<void> {
    ++n;
    return {};
  }));
  EXPECT_OK(Tape(loop).switch_to(Comparison::greater_equal, &n, &limit, IntType::int32, out));
  EXPECT_OK(bodies.launch(sibling, [&]() -> Result<void> {
    ++other;
    return {};
  }));
  EXPECT_OK(Tape(loop).activate(loop));
  EXPECT_OK(model.end_tasks(loop));  // the sibling is ended by finish
  EXPECT_OK(model.finish());
  EXPECT_OK(model.execute());
  EXPECT_EQ(n, 3);
  EXPECT_EQ(other, 2);
}

// Priorities were lost between the plan and its replay.
TEST_P(OnEveryBackend, AModelsStreamsKeepTheirPriorities) {
  Profile profile;
  profile.workers = 1;
  profile.priority_age = 0;
  open(profile);
  Model model = std::move(*context->begin_model());
  Stream low = bound(*context, model, StreamRole::head, 7), high = bound(*context, model, StreamRole::head, 0);
  Event go = event();
  Bodies bodies;
  std::string order;
  Stream gate = bound(*context, model, StreamRole::head, 0);
  EXPECT_OK(low.wait(go));
  EXPECT_OK(high.wait(go));
  for (Stream* s : {&low, &high}) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(bodies.launch(*s, [&order, s, &low]() -> Result<void> {
        order += s == &low ? 'l' : 'h';
        return {};
      }));
    }
  }
  EXPECT_OK(bodies.launch(gate, []() -> Result<void> { return {}; }));
  EXPECT_OK(gate.record(go));
  EXPECT_OK(model.end_tasks(gate));
  EXPECT_OK(model.finish());
  for (int i = 0; i < 5; ++i) {
    order.clear();
    EXPECT_OK(model.execute());
    if (GetParam() == BackendId::cpu) {
      EXPECT_EQ(order, "hhhlll");
    } else {
      EXPECT_EQ(order.front(), 'h');
    }
  }
}

// A hard cap of events was hit, and throughput fell to a crawl.
TEST_P(OnEveryBackend, AtTheCapOfEventsARecordWaitsForAFreeIdOrSaysSo) {
  Profile profile;
  profile.max_events = 3;
  open(profile);
  Event latch = event(Event::Kind::latch);
  {
    Stream a = stream(), gate = stream();
    std::vector<Event> events;
    for (int i = 0; i < 3; ++i) events.push_back(event());
    EXPECT_OK(a.wait(latch));
    EXPECT_OK(a.record(events[0]));
    EXPECT_OK(a.record(events[1]));
    EXPECT_CODE(no_event, a.record(events[2]));
    EXPECT_OK(gate.record(latch));
    EXPECT_OK(a.synchronize());
    for (int i = 0; i < 1000; ++i) {
      EXPECT_OK(a.record(events[2]));
      EXPECT_OK(a.synchronize());
    }
  }
  if (GetParam() == BackendId::sim) return;  // virtual time stands still while a submit waits
  profile.event_wait_ms = 2000;
  open(profile);
  Stream a = stream();
  Event e = event();
  Bodies bodies;
  for (int i = 0; i < 200; ++i) {
    EXPECT_OK(bodies.launch(a, []() -> Result<void> { return {}; }));
    EXPECT_OK(a.record(e));
  }
  EXPECT_OK(a.synchronize());
}

// A stale map from streams to events after a stream was destroyed and another made.
TEST_P(OnEveryBackend, AnEventOutlivesItsStreamAndIsNotTakenForItsSuccessors) {
  Stream b = stream();
  Event e = event();
  Bodies bodies;
  int value = 0;
  for (int i = 1; i <= 50; ++i) {
    Stream a = stream();
    EXPECT_OK(bodies.launch(a, [&value, i]() -> Result<void> {
      value = i;
      return {};
    }));
    EXPECT_OK(a.record(e));
    EXPECT_OK(a.close());
    Stream successor = stream();  // the same number
    Event latch = event(Event::Kind::latch);
    EXPECT_OK(successor.wait(latch));
    EXPECT_OK(b.wait(e));  // not behind the successor's wait
    EXPECT_OK(bodies.launch(b, [&value, i]() -> Result<void> {
      EXPECT_EQ(value, i);
      return {};
    }));
    EXPECT_OK(b.synchronize());
    EXPECT_OK(b.record(latch));
    EXPECT_OK(successor.synchronize());
  }
}

// The only symptom of a hang was a time-out on a synchronise.
TEST_P(OnEveryBackend, AHangNamesTheStreamItsLastTaskAndTheAwaitedEvent) {
  Stream a = stream();
  Event latch = event(Event::Kind::latch);
  static const KernelFunction prepare{"prepare", nullptr, 1, 0};
  EXPECT_OK(a.launch(prepare, {}, {}));
  EXPECT_OK(a.wait(latch));
  const Result<void> hung = a.synchronize();
  ASSERT_FALSE(hung.ok());
  const std::string text = to_string(hung.error());
  EXPECT_NE(text.find("stream " + std::to_string(a.number())), std::string::npos) << text;
  EXPECT_NE(text.find("after task 0 (prepare)"), std::string::npos) << text;
  EXPECT_NE(text.find("waits for event"), std::string::npos) << text;
}

// Two models on one device took their streams twice.
TEST_P(OnEveryBackend, TwoModelsTakeTheirStreamsFromOnePool) {
  int made = 0, ended = 0;
  StreamSource source{[&](StreamKind) -> Result<StreamHandle> {
                        MST_TRY(Stream s, context->create_stream(StreamOptions{.persistent = true, .shared = true}));
                        ++made;
                        return static_cast<StreamHandle>(new Stream(std::move(s)));
                      },
                      [&](StreamHandle h) {
                        ++ended;
                        delete static_cast<Stream*>(h);
                      }};
  {
    SharedStreams pool(source);
    Bodies bodies;
    std::vector<int> runs(2, 0);
    std::vector<Model> models;
    for (std::uint32_t m = 0; m < 2; ++m) {
      Model model = std::move(*context->begin_model());
      for (std::uint32_t i = 0; i < 3 + m; ++i) {
        Result<StreamHandle> h = pool.acquire({m, {}, 10});
        ASSERT_TRUE(h.ok());
        Stream& s = *static_cast<Stream*>(*h);
        EXPECT_OK(model.bind(s, StreamRole::head));
        EXPECT_OK(bodies.launch(s, [&runs, m, i]() -> Result<void> {
          if (i == 0) ++runs[m];
          return {};
        }));
        EXPECT_OK(model.end_tasks(s));
      }
      EXPECT_OK(model.finish());
      models.push_back(std::move(model));
    }
    EXPECT_EQ(made, 4) << "three streams serve both, one is the second's";
    for (int i = 0; i < 20; ++i) {
      for (Model& model : models) EXPECT_OK(model.execute());
    }
    EXPECT_EQ(runs, (std::vector<int>{20, 20}));
    models.clear();
  }
  EXPECT_EQ(ended, 4);
}

}  // namespace
}  // namespace millstream
