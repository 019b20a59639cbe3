// SPDX-License-Identifier: Apache-2.0
// No memory at the k-th allocation of a call, for every k: the call says so, nothing is lost, and the next one works. And
// as many streams and events as a device may have, on few threads and little memory.
#include "tests/conformance/runtime_recording.h"

#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>

#include <sys/resource.h>

#include "millstream/runtime/objects.h"
#include "millstream/runtime/submit.h"

namespace {

// Of the thread that tests: the allocation that fails, counted down.
thread_local int fails_in = 0;
thread_local bool failed = false;

bool fails() {
  if (fails_in == 0 || --fails_in != 0) return false;
  failed = true;
  return true;
}

// Of all threads.
std::atomic<std::int64_t> live{0};

void* counted(void* p) {
  if (p != nullptr) ++live;
  return p;
}
void free_counted(void* p) {
  if (p != nullptr) --live;
  std::free(p);
}
std::size_t rounded(std::size_t bytes, std::align_val_t to) {
  const auto alignment = static_cast<std::size_t>(to);
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

// Not inlined: the compiler must not see that memory of `new` is of malloc.
#define MST_APART __attribute__((noinline))
MST_APART void* operator new(std::size_t bytes) {
  void* const p = fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  return counted(p);
}
MST_APART void* operator new(std::size_t bytes, std::align_val_t to) {
  void* const p = fails() ? nullptr : std::aligned_alloc(static_cast<std::size_t>(to), rounded(bytes, to));
  if (p == nullptr) throw std::bad_alloc();
  return counted(p);
}
MST_APART void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes)); }
MST_APART void* operator new(std::size_t bytes, std::align_val_t to, const std::nothrow_t&) noexcept {
  return counted(fails() ? nullptr : std::aligned_alloc(static_cast<std::size_t>(to), rounded(bytes, to)));
}
// The library's forms for arrays do just this, but a sanitizer has forms of its own.
MST_APART void* operator new[](std::size_t bytes) { return operator new(bytes); }
MST_APART void* operator new[](std::size_t bytes, std::align_val_t to) { return operator new(bytes, to); }
MST_APART void* operator new[](std::size_t bytes, const std::nothrow_t& none) noexcept { return operator new(bytes, none); }
MST_APART void* operator new[](std::size_t bytes, std::align_val_t to, const std::nothrow_t& none) noexcept { return operator new(bytes, to, none); }
MST_APART void operator delete[](void* p) noexcept { free_counted(p); }
MST_APART void operator delete[](void* p, std::size_t) noexcept { free_counted(p); }
MST_APART void operator delete[](void* p, std::align_val_t) noexcept { free_counted(p); }
MST_APART void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { free_counted(p); }
MST_APART void operator delete(void* p) noexcept { free_counted(p); }
MST_APART void operator delete(void* p, std::size_t) noexcept { free_counted(p); }
MST_APART void operator delete(void* p, std::align_val_t) noexcept { free_counted(p); }
MST_APART void operator delete(void* p, std::size_t, std::align_val_t) noexcept { free_counted(p); }

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

const KernelFunction kNothing{"nothing"};

struct Counts {
  std::uint32_t streams, contexts, notifies, events, ids, models, labels;
  friend bool operator==(const Counts&, const Counts&) = default;
};
Counts counts(Device& device) {
  rt::DeviceState& d = *device.state();
  return {d.stream_numbers.in_use(), d.context_numbers.in_use(), d.notify_numbers.in_use(), d.event_numbers.in_use(), d.event_ids.in_use(),
          d.model_numbers.in_use(), d.label_numbers.in_use()};
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

TEST_P(OnEveryBackend, TheFirstContextOfADeviceWithoutMemoryChangesNothingAndLeavesNoMemoryBehind) {
  std::optional<std::int64_t> closed;
  for (int k = 1;; ++k) {
    open({});
    const Counts before = counts(*device);
    failed = false;
    fails_in = k;
    Result<Context> made = device->create_context();
    fails_in = 0;
    if (!failed) break;
    EXPECT_CODE(no_memory, status(made));
    EXPECT_EQ(before, counts(*device)) << "allocation " << k;
    EXPECT_EQ(1u, device->state()->live_contexts().size());
    made = device->create_context();  // and grows what stays with the process
    made = Error{ErrorCode::no_memory, ""};
    context.reset();
    device.reset();
    if (!closed) closed = live;
    EXPECT_EQ(*closed, live) << "allocation " << k;
  }
}

TEST_P(OnEveryBackend, AContextThatAResetDeviceRefusesLeavesNothingBehind) {
  std::optional<std::int64_t> closed;
  for (int round = 0; round < 3; ++round) {
    open({});
    context.reset();
    {
      Device other = std::move(*Device::open(GetParam(), 0));
      EXPECT_OK(device->reset(ResetMode::force));
      const Counts before = counts(other);
      EXPECT_CODE(no_context, status(other.create_context()));
      EXPECT_EQ(before, counts(other));
    }
    device.reset();
    if (!closed) closed = live;  // the first round grows what stays with the process
    EXPECT_EQ(*closed, live);
  }
}

// A sanitizer's address space cannot be bounded.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Threads, ThatCannotBeStartedLeaveNoDeviceBehind) {
  const auto opens = [] {
    Profile profile;
    profile.workers = 4096;
    const rlimit bound{std::size_t{1} << 30, std::size_t{1} << 30};
    if (setrlimit(RLIMIT_AS, &bound) != 0) std::_Exit(2);
    const Result<Device> opened = Device::open(BackendId::cpu, 0, profile);
    if (opened.ok() || opened.error().code != ErrorCode::no_memory) std::_Exit(3);
    profile.workers = 2;
    std::_Exit(Device::open(BackendId::cpu, 0, profile).ok() ? 0 : 4);
  };
  EXPECT_EXIT(opens(), testing::ExitedWithCode(0), "");
}
#endif

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

// What goes wrong or is cut off, in one context. What is made here goes at its end, in the order it likes.
struct Mishap {
  const char* name;
  void (*happens)(Device& device, Context& context);
};
Stream made(Context& context, StreamOptions options = {}) { return std::move(*context.create_stream(options)); }
Event latch_of(Context& context) { return std::move(*context.create_event(Event::Kind::latch)); }

Result<void> fail_body(const KernelCall&) { return Error{ErrorCode::kernel, "as the test wants"}; }
const KernelFunction kFails{"fails", fail_body};

// Each kind of task behind a wait that nobody ends. The second stream waits for the first.
void fill_up(Stream& s, Stream& behind, Event& gate, Event& e, Notify& n, Model* model = nullptr) {
  static std::array<std::byte, 100> large{};
  static int number = 0;
  EXPECT_OK(s.wait(gate));
  EXPECT_OK(s.launch(kNothing, {}, large));
  EXPECT_OK(s.copy(&number, sizeof number, &number, sizeof number, CopyKind::host_to_host));
  EXPECT_OK(s.host_func([](void*) {}, nullptr));
  EXPECT_OK(s.record(n));
  EXPECT_OK(s.wait(n));
  if (model != nullptr) EXPECT_OK(model->execute_async(s));
  EXPECT_OK(s.record(e));
  EXPECT_OK(behind.wait(e));
  EXPECT_OK(behind.launch(kNothing, {}, large));
}

// A model of two tapes; what it waits for from outside, if anything.
struct Small {
  Small(Context& context, Event* gate, bool lanes) : a(made(context, {.persistent = true})), b(made(context, {.persistent = true})),
        label(std::move(*context.create_label())), e(std::move(*context.create_event(Event::Kind::snapshot))), model(std::move(*context.begin_model())) {
    static std::array<std::byte, 100> large{};
    EXPECT_OK(model.bind(a, StreamRole::head));
    EXPECT_OK(model.bind(b, StreamRole::head));
    if (lanes) EXPECT_OK(Tape(a).place(label));
    if (gate != nullptr) EXPECT_OK(a.wait(*gate));
    EXPECT_OK(a.launch(kNothing, {}, large));
    EXPECT_OK(a.record(e));
    EXPECT_OK(b.wait(e));
    EXPECT_OK(b.launch(kFails, {}, large));
    EXPECT_OK(model.end_tasks(a));
    EXPECT_OK(model.finish());
  }
  Stream a, b;
  Label label;
  Event e;
  Model model;
};

// What is recorded on the first of two head tapes; the second waits for the event before any record of it.
struct Draft {
  explicit Draft(Context& context)
      : a(made(context, {.persistent = true})), b(made(context, {.persistent = true})), later(made(context, {.persistent = true})),
        target(made(context, {.persistent = true})), e(std::move(*context.create_event(Event::Kind::snapshot))), label(std::move(*context.create_label())),
        model(std::move(*context.begin_model())) {
    EXPECT_OK(model.bind(a, StreamRole::head));
    EXPECT_OK(model.bind(b, StreamRole::head));
    EXPECT_OK(model.bind(target, StreamRole::activated));
    EXPECT_OK(b.wait(e));
  }
  Stream a, b, later, target;
  Event e;
  Label label;
  Model model;
};

TEST_P(OnEveryBackend, ARecordingWithoutMemoryChangesNothing) {
  static std::array<std::byte, 100> large{};
  static const std::int32_t index = 0;
  static const std::uint32_t way = 0;
  using Records = Result<void> (*)(Draft&);
  const std::pair<const char*, Records> calls[] = {
      {"launch", [](Draft& d) { return d.a.launch(kNothing, {}, large); }},
      {"record", [](Draft& d) { return d.a.record(d.e); }},
      {"wait", [](Draft& d) { return d.a.wait(d.e); }},
      {"activate", [](Draft& d) { return Tape(d.a).activate(d.target); }},
      {"switch", [](Draft& d) { return Tape(d.a).switch_to(Comparison::equal, &index, &index, IntType::int32, d.target); }},
      {"switch n",
       [](Draft& d) {
         const std::int64_t values[] = {1, 0};
         Stream* const targets[] = {&d.target, &d.target};
         return Tape(d.a).switch_n(&index, IntType::int32, values, targets);
       }},
      {"place", [](Draft& d) { return Tape(d.a).place(d.label); }},
      {"jump", [](Draft& d) { return Tape(d.a).jump(d.label); }},
      {"jump by index",
       [](Draft& d) {
         Label* const labels[] = {&d.label, &d.label};
         return Tape(d.a).jump_by_index(&way, labels);
       }},
      {"bind", [](Draft& d) { return d.model.bind(d.later, StreamRole::head); }},
      {"finish",
       [](Draft& d) -> Result<void> {
         if (d.label.state()->binding == nullptr) {
           const int armed = std::exchange(fails_in, 0);
           EXPECT_OK(d.b.launch(kNothing, {}, large));
           EXPECT_OK(d.a.record(d.e));
           EXPECT_OK(Tape(d.b).place(d.label));
           EXPECT_OK(d.model.end_tasks(d.a));
           fails_in = armed;
         }
         return d.model.finish();
       }},
  };
  for (const auto& [name, records] : calls) {
    const bool finishes = std::string_view(name) == "finish";
    SCOPED_TRACE(name);
    EXPECT_GE(fail_each(*device,
                        [&, records = records]() -> Result<void> {
                          const int armed = std::exchange(fails_in, 0);
                          Draft draft(*context);
                          fails_in = armed;
                          const Result<void> done = records(draft);
                          fails_in = 0;
                          if (!done.ok()) EXPECT_OK(records(draft));
                          if (!finishes) {
                            if (draft.label.state()->binding == nullptr) EXPECT_OK(Tape(draft.a).place(draft.label));
                            EXPECT_OK(draft.model.end_tasks(draft.b));
                            EXPECT_OK(draft.model.finish());
                          }
                          for (int i = 0; i < 2; ++i) EXPECT_OK(draft.model.execute());
                          EXPECT_OK(draft.model.close());
                          return done;
                        }),
              1);
  }
}

TEST_P(OnEveryBackend, AModelALabelAndAnExecutionWithoutMemoryChangeNothing) {
  EXPECT_GE(fail_each(*device, [&] { return status(context->begin_model()); }), 1);
  EXPECT_GE(fail_each(*device, [&] { return status(context->create_label()); }), 1);
  Small small(*context, nullptr, true);
  Stream s = stream(), other = stream();
  Event gate = event(Event::Kind::latch);
  EXPECT_GE(fail_each(*device, [&]() -> Result<void> {
              const int armed = std::exchange(fails_in, 0);
              EXPECT_OK(s.wait(gate));  // the stream has a task: the back-end need not be told of the next
              fails_in = armed;
              const Result<void> done = small.model.execute_async(s);
              fails_in = 0;
              EXPECT_OK(other.record(gate));
              EXPECT_NE(done.ok(), s.synchronize().ok()) << "a kernel of the model fails";
              EXPECT_OK(other.reset(gate));
              EXPECT_OK(other.synchronize());
              return done;
            }), 2);
}

const Mishap kMishaps[] = {
    {"abort", [](Device&, Context& c) {
       Stream s = made(c), behind = made(c);
       Event gate = latch_of(c), e = std::move(*c.create_event(Event::Kind::snapshot));
       Notify n = std::move(*c.create_notify());
       fill_up(s, behind, gate, e, n);
       EXPECT_OK(s.abort());
       EXPECT_CODE(stream_aborted, behind.synchronize());
     }},
    {"close at once", [](Device&, Context& c) {
       Stream s = made(c), behind = made(c);
       Event gate = latch_of(c), e = std::move(*c.create_event(Event::Kind::snapshot));
       Notify n = std::move(*c.create_notify());
       fill_up(s, behind, gate, e, n);
       EXPECT_OK(s.close(Close::drop));
       EXPECT_CODE(stream_aborted, behind.synchronize());
     }},
    {"deadlock", [](Device&, Context& c) {
       Stream s = made(c), behind = made(c);
       Event gate = latch_of(c), e = std::move(*c.create_event(Event::Kind::snapshot));
       Notify n = std::move(*c.create_notify());
       fill_up(s, behind, gate, e, n);
       EXPECT_CODE(deadlock, s.synchronize());
       EXPECT_FALSE(behind.synchronize().ok());
     }},
    {"time-out of a wait", [](Device&, Context& c) {
       Stream s = made(c);
       Event gate = latch_of(c);
       EXPECT_OK(s.wait(gate, std::chrono::milliseconds(1)));
       EXPECT_OK(s.launch(kNothing, {}, {}));
       EXPECT_CODE(wait_timeout, s.synchronize());
     }},
    {"stop and recovery", [](Device&, Context& c) {
       Stream s = made(c), behind = made(c), fails = made(c);
       Event gate = latch_of(c), e = std::move(*c.create_event(Event::Kind::snapshot));
       Notify n = std::move(*c.create_notify());
       Small small(c, nullptr, true);
       EXPECT_OK(fails.set_failure_mode(FailureMode::stop));
       fill_up(s, behind, gate, e, n, &small.model);
       EXPECT_OK(fails.launch(kFails, {}, {}));
       EXPECT_CODE(kernel_failed, fails.synchronize());
       EXPECT_CODE(context_stopped, s.launch(kNothing, {}, {}));
       EXPECT_OK(c.recover());
     }},
    {"end of a context that is stopped", [](Device& d, Context&) {
       Context c = std::move(*d.create_context());
       Stream s = made(c), behind = made(c), fails = made(c);
       Event gate = latch_of(c), e = std::move(*c.create_event(Event::Kind::snapshot));
       Notify n = std::move(*c.create_notify());
       EXPECT_OK(fails.set_failure_mode(FailureMode::stop));
       fill_up(s, behind, gate, e, n);
       EXPECT_OK(fails.launch(kFails, {}, {}));
       EXPECT_CODE(kernel_failed, c.close());
     }},
    {"host function that throws", [](Device&, Context& c) {
       Stream s = made(c);
       EXPECT_OK(s.host_func([](void*) { throw std::runtime_error("as the test wants"); }, nullptr));
       EXPECT_CODE(host_func_failed, s.synchronize());
     }},
    {"failed executions", [](Device&, Context& c) {
       for (const bool lanes : {false, true}) {
         Small small(c, nullptr, lanes);
         EXPECT_CODE(kernel_failed, small.model.execute());
         EXPECT_CODE(kernel_failed, small.model.execute());
       }
     }},
    {"aborted executions", [](Device&, Context& c) {
       Event gate = latch_of(c);
       Stream s = made(c), t = made(c);
       Small small(c, &gate, true);
       EXPECT_OK(small.model.execute_async(s));
       EXPECT_OK(small.model.execute_async(t));
       EXPECT_CODE(sync_timeout, s.synchronize(std::chrono::milliseconds(2)));
       // Until both are over: the second may not have begun.
       while (true) {
         EXPECT_OK(small.model.abort());
         if (s.synchronize(std::chrono::milliseconds(2)).ok() && t.synchronize(std::chrono::milliseconds(2)).ok()) break;
       }
     }},
    {"an execution whose model is unbound first", [](Device&, Context& c) {
       Event gate = latch_of(c);
       Stream s = made(c), t = made(c);
       Small small(c, nullptr, false);
       EXPECT_OK(s.wait(gate));
       EXPECT_OK(small.model.execute_async(s));
       EXPECT_OK(small.model.unbind(small.a));
       EXPECT_OK(t.record(gate));
       EXPECT_CODE(bad_state, s.synchronize());
     }},
    {"a model that is never finished", [](Device&, Context& c) {
       Stream s = made(c, {.persistent = true});
       Label l = std::move(*c.create_label());
       Event e = std::move(*c.create_event(Event::Kind::snapshot));
       Model m = std::move(*c.begin_model());
       EXPECT_OK(m.bind(s, StreamRole::head));
       EXPECT_OK(Tape(s).jump(l));
       EXPECT_OK(s.wait(e));
       EXPECT_CODE(bad_state, m.finish());
     }},
};

// Live objects of each kind, and memory.
TEST_P(OnEveryBackend, AMishapLeavesNothingBehind) {
  for (const Mishap& mishap : kMishaps) {
    open({});
    const Counts before = counts(*device);
    for (int i = 0; i < 3; ++i) {
      mishap.happens(*device, *context);
      // Streams that were let go end with their last task, and workers let go of models behind their end.
      const auto cleared = [&] {
        (void)context->synchronize();
        rt::sweep(*context->state());
        return counts(*device) == before && device->state()->lanes_parked == 0 && device->state()->hosts_blocked == 0;
      };
      EXPECT_TRUE(comes(cleared)) << mishap.name;
      (void)context->take_errors();
    }
  }
}

TEST_P(OnEveryBackend, ADeviceLeavesNoMemoryBehindWhateverHappenedOnIt) {
  for (const Mishap& mishap : kMishaps) {
    std::array<std::int64_t, 3> after{};
    for (std::int64_t& left : after) {
      open({});
      for (int i = 0; i < 2; ++i) mishap.happens(*device, *context);
      context.reset();
      device.reset();
      left = live;
    }
    EXPECT_EQ(after[1], after[2]) << mishap.name;
  }
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
