// SPDX-License-Identifier: Apache-2.0
// Two threads that end, bind and execute the same things at once: each call succeeds or is refused, and nothing is used after
// its end (which the sanitizers see). Lags of pseudo-random length, the same in every run, move the two against each other.
#include <random>
#include <thread>

#include "millstream/runtime/model_state.h"
#include "tests/conformance/runtime_recording.h"

namespace millstream {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, OnEveryBackend, testing::Values(BackendId::cpu, BackendId::sim), backend_name);

const KernelFunction kNothing{"nothing", [](const KernelCall&) -> Result<void> { return {}; }};
constexpr int kRounds = 150;

class Lags {
 public:
  template <class F, class G>
  void both(F f, G g) {
    const unsigned first = random_() % 2000, second = random_() % 2000;
    std::atomic<int> here{0};
    const auto begin = [&here](unsigned lag) {
      here.fetch_add(1);
      while (here.load() != 2) std::this_thread::yield();
      for (unsigned i = lag; i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
    };
    std::thread other([&] {
      begin(first);
      f();
    });
    begin(second);
    g();
    other.join();
  }

 private:
  std::minstd_rand random_{7};
};

// A context of its own with one model on `tapes` streams.
struct Built {
  Built(Device& device, int tapes, bool bind = true)
      : context(*device.create_context()), model(*context.begin_model()) {
    for (int i = 0; i < tapes; ++i) {
      streams.push_back(*context.create_stream({.persistent = true}));
      if (!bind) continue;
      EXPECT_OK(model.bind(streams.back(), StreamRole::head));
      for (int task = 0; task < 5; ++task) EXPECT_OK(streams.back().launch(kNothing, {}, {}));
      EXPECT_OK(model.end_tasks(streams.back()));
    }
  }
  Context context;
  Model model;
  std::vector<Stream> streams;
};

bool closed(const Model& model) { return model.state()->phase.load() == rt::ModelState::Phase::closed; }

TEST_P(OnEveryBackend, AStreamThatIsClosedIsNotBound) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    Built b(*device, 1, false);
    Result<void> bound, ended;
    lags.both([&] { bound = b.model.bind(b.streams[0], StreamRole::head); }, [&] { ended = b.streams[0].close(); });
    EXPECT_NE(bound.ok(), ended.ok());
    if (!bound.ok()) {
      EXPECT_EQ(ErrorCode::bad_handle, bound.error().code);
    }
    if (!ended.ok()) {
      EXPECT_EQ(ErrorCode::bad_state, ended.error().code);
    }
  }
}

TEST_P(OnEveryBackend, AModelThatIsClosedWhileItIsFinishedStaysClosed) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    Built b(*device, 1);
    Result<void> finished, ended;
    lags.both([&] { finished = b.model.finish(); }, [&] { ended = b.model.close(); });
    EXPECT_OK(ended);
    EXPECT_TRUE(closed(b.model));
    EXPECT_CODE(bad_handle, b.model.execute());
  }
}

TEST_P(OnEveryBackend, AModelThatIsClosedWhileAStreamIsUnboundStaysClosed) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    Built b(*device, 2);
    EXPECT_OK(b.model.finish());
    Result<void> unbound, ended;
    lags.both([&] { unbound = b.model.unbind(b.streams[0]); }, [&] { ended = b.model.close(); });
    EXPECT_OK(ended);
    EXPECT_TRUE(closed(b.model));
    EXPECT_CODE(bad_handle, b.model.close());
  }
}

TEST_P(OnEveryBackend, AnExecutionAndTheEndOfItsContextTakeTurns) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    Built b(*device, 2);
    EXPECT_OK(b.model.finish());
    Result<void> done, ended;
    lags.both([&] { done = b.model.execute(); }, [&] { ended = b.context.close(); });
    EXPECT_OK(ended);
    if (!done.ok()) {
      EXPECT_TRUE(done.error().code == ErrorCode::bad_handle || done.error().code == ErrorCode::bad_state) << to_string(done.error());
    }
    EXPECT_CODE(bad_handle, b.context.default_stream().synchronize());
  }
}

TEST_P(OnEveryBackend, AModelAndItsContextMayEndAtOnce) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    Built b(*device, 3);
    EXPECT_OK(b.model.finish());
    b.streams.clear();  // bound: refused, which the context reports, and ended with it
    Result<void> ended;
    lags.both([&] { (void)b.model.close(); }, [&] { ended = b.context.close(); });
    EXPECT_TRUE(!ended.ok() && ended.error().code == ErrorCode::bad_state) << "the streams were bound";
    EXPECT_TRUE(closed(b.model));
  }
}

TEST_P(OnEveryBackend, AModelIsBegunBeforeItsContextEndsAndEndsWithItOrNotAtAll) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    Built b(*device, 1, false);
    std::optional<Model> late;
    lags.both(
        [&] {
          if (Result<Model> begun = b.context.begin_model(); begun.ok()) late.emplace(std::move(begun).value());
          if (late) (void)late->bind(b.streams[0], StreamRole::head);
        },
        [&] { EXPECT_OK(b.context.close()); });
    if (late) {
      EXPECT_TRUE(closed(*late));
    }
  }
}

TEST_P(OnEveryBackend, AStreamAndItsContextMayEndAtOnce) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    const std::uint32_t before = device->state()->stream_numbers.in_use();
    {
      Context c = std::move(*device->create_context());
      Stream s = std::move(*c.create_stream());
      EXPECT_OK(s.launch(kNothing, {}, {}));
      lags.both([&] { (void)s.close(); }, [&] { EXPECT_OK(c.close()); });
    }
    ASSERT_EQ(before, device->state()->stream_numbers.in_use());
  }
}

TEST_P(OnEveryBackend, AModelMayBeClosedAsSoonAsItHasExecuted) {
  Profile profile;
  profile.workers = 8;
  open(profile);
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(stream({.persistent = true}));
  for (int i = 0; i < 20 * kRounds; ++i) {
    Model model = std::move(*context->begin_model());
    for (Stream& s : streams) {
      EXPECT_OK(model.bind(s, StreamRole::head));
      EXPECT_OK(s.launch(kNothing, {}, {}));
      EXPECT_OK(model.end_tasks(s));
    }
    EXPECT_OK(model.finish());
    EXPECT_OK(model.execute());
    EXPECT_OK(model.close());
    for (Stream& s : streams) s.drop_tapes();
  }
}

TEST_P(OnEveryBackend, AModelMayEndWhileAnotherThatUsesItsLabelIsFinished) {
  Lags lags;
  for (int i = 0; i < 3 * kRounds; ++i) {
    Built owner(*device, 1, false);
    Stream& tape = owner.streams[0];
    Stream same = std::move(*owner.context.create_stream({.persistent = true}));
    Label label = std::move(*owner.context.create_label());
    Model user = std::move(*owner.context.begin_model());
    EXPECT_OK(owner.model.bind(tape, StreamRole::head));
    EXPECT_OK(user.bind(same, StreamRole::head));
    EXPECT_OK(Tape(tape).place(label));
    EXPECT_OK(Tape(same).jump(label));
    EXPECT_OK(user.end_tasks(same));
    lags.both(
        [&] {
          EXPECT_OK(owner.model.close());
          tape.drop_tapes();
        },
        [&] {
          for (int k = 0; k < 5; ++k) EXPECT_CODE(bad_state, user.finish());
        });
  }
}

TEST_P(OnEveryBackend, OneOfTwoModelsPlacesALabel) {
  Lags lags;
  Stream a = stream({.persistent = true}), b = stream({.persistent = true});
  for (int i = 0; i < 20 * kRounds; ++i) {
    Model first = std::move(*context->begin_model()), second = std::move(*context->begin_model());
    Label label = std::move(*context->create_label());
    EXPECT_OK(first.bind(a, StreamRole::head));
    EXPECT_OK(second.bind(b, StreamRole::head));
    Result<void> by_first, by_second;
    lags.both([&] { by_first = Tape(a).place(label); }, [&] { by_second = Tape(b).place(label); });
    ASSERT_NE(by_first.ok(), by_second.ok());
    EXPECT_OK(first.close());
    EXPECT_OK(second.close());
    a.drop_tapes(), b.drop_tapes();
  }
}

// By its owner, or by the context with a marker in it; not by both.
TEST_P(OnEveryBackend, APersistentStreamIsEndedByItsOwnerOrByItsContext) {
  Lags lags;
  for (int i = 0; i < kRounds; ++i) {
    Built b(*device, 24, false);
    std::vector<Result<void>> ended;
    lags.both(
        [&] {
          for (Stream& s : b.streams) ended.push_back(s.close());
        },
        [&] { EXPECT_OK(b.context.close()); });
    for (std::size_t s = 0; s < b.streams.size(); ++s) {
      ASSERT_NE(ended[s].ok(), b.streams[s].state()->lane.submitted.load() == 1);
    }
  }
}

TEST(ResetByAnotherOwner, LeavesAClosedDevice) {
  for (const BackendId backend : {BackendId::cpu, BackendId::sim}) {
    Device first = std::move(*Device::open(backend, 0)), second = std::move(*Device::open(backend, 0));
    EXPECT_OK(first.reset(ResetMode::force));
    const Result<Context> refused = second.create_context();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(ErrorCode::no_context, refused.error().code) << to_string(refused.error());
    EXPECT_CODE(bad_handle, second.primary().synchronize());
    EXPECT_CODE(bad_handle, second.primary().default_stream().launch(kNothing, {}, {}));
    EXPECT_CODE(no_context, second.reset(ResetMode::counted));
  }
}

}  // namespace
}  // namespace millstream
