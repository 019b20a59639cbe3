// SPDX-License-Identifier: Apache-2.0
// Programs over 2 to 4 devices of both back-ends: streams wait for what any device records, there and back, in models too, while one
// to three hosts wait, with and without deadlines, and ask. Each record is submitted before its waits, so no call may hang, no wait
// may fail, and who has waited sees what came before the record.
// MST_PROGRAM_COUNT programs (default 300), from MST_PROGRAM_SEED (default 1).
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>

#include <fmt/format.h>

#include "millstream/runtime/model_state.h"
#include "tests/conformance/runtime_waits.h"
#include "tests/runtime_trace/random_parts.h"

namespace millstream::rt {
namespace {

constexpr std::uint32_t kStreams = 3;           // of a device
constexpr seconds kLong(20), kTooLong(15);      // patience, and what no call of these programs takes
constexpr Deadline kVirtualSecond{seconds(1)};  // longer than all that a program does

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Mark {
  std::atomic<bool> made{false};
};
struct Ask {
  const Stream* stream;
  const Event* event;
};
std::atomic<std::uint64_t> missed{0};  // marks that were not made when they should have been

template <class T>
T argument(const KernelCall& call) {
  T t;
  std::memcpy(&t, call.arguments.data(), sizeof t);
  return t;
}
KernelFunction kernel(const char* name, Result<void> (*body)(const KernelCall&), double virtual_us) {
  KernelFunction k{name, body};
  k.virtual_us = virtual_us;
  return k;
}
Result<void> make(const KernelCall& call) {
  argument<Mark*>(call)->made = true;
  return {};
}
Result<void> expect(const KernelCall& call) {
  if (!argument<Mark*>(call)->made) ++missed;
  return {};
}
Result<void> ask(const KernelCall& call) {
  const Ask a = argument<Ask>(call);
  for (int i = 0; i < 5; ++i) {
    MST_TRY_VOID(a.stream->query());
    if (a.event != nullptr) MST_TRY_VOID(a.event->query());
  }
  return {};
}
Result<void> nap(const KernelCall&) {
  std::this_thread::sleep_for(milliseconds(2));
  return {};
}
const KernelFunction kMake = kernel("make", make, 3), kExpect = kernel("expect", expect, 3), kAsk = kernel("ask", ask, 30), kNap = kernel("nap", nap, 20);
const KernelFunction kLongInVirtualTime = kernel("long", nullptr, 1000);

template <class T>
Result<void> launch(Stream& stream, const KernelFunction& kernel, const T& argument) {
  return stream.launch(kernel, {}, std::as_bytes(std::span(&argument, 1)));
}

class DevicesProgram {
 public:
  explicit DevicesProgram(std::uint64_t seed) : random_{mix(seed, 77)}, count_(2 + random_.below(3)) {}

  /// What went wrong, if something did.
  Result<void> run() {
    MST_TRY_VOID(open());
    const std::uint32_t steps = 12 * count_;
    for (std::uint32_t i = 0; i < steps; ++i) MST_TRY_VOID(step(random_.below(count_), random_.below(kStreams)));
    hosts_ = 1 + random_.below(3);
    asks_ = random_.one_in(2);
    std::vector<std::thread> hosts;
    std::vector<Result<void>> answers(hosts_);
    for (std::uint32_t h = 0; h < hosts_; ++h) hosts.emplace_back([this, &answers, h, seed = random_.next()] { answers[h] = host(seed); });
    for (std::thread& h : hosts) h.join();
    for (Result<void>& answer : answers) MST_TRY_VOID(std::move(answer));
    for (Place& place : places_) {
      for (Stream& s : place.streams) MST_TRY_VOID(in_time([&] { return s.synchronize(); }));
    }
    for (Past& past : past_) {
      if (!past.mark.made) return Error{ErrorCode::internal, "all streams have ended, and a mark is not made"};
    }
    for (Place& place : places_) {
      const DeviceState& device = *place.device.state();
      // Who let its last lane go may still be at it.
      if (device.lanes_parked != 0 || !comes([&] { return device.lanes_abroad == 0; })) return Error{ErrorCode::internal, "all streams have ended, and one is counted as parked"};
    }
    return {};
  }

  bool same_twice() const {
    return hosts_ == 1 && std::none_of(places_.begin(), places_.end(), [](const Place& p) { return p.cpu; });
  }
  std::vector<std::uint64_t> times() const {
    std::vector<std::uint64_t> out;
    for (const Place& place : places_) out.push_back(place.device.now_ns());
    return out;
  }
  std::string devices() const {
    std::string out;
    for (const Place& place : places_) out += place.cpu ? "cpu " : "sim ";
    return out + fmt::format("with {} hosts", hosts_);
  }

 private:
  struct Place {
    bool cpu;
    Device device;
    std::vector<Stream> streams = {};
    std::array<std::uint32_t, kStreams> behind = {};  // by stream: the devices whose work its end waits for, a bit each
  };
  struct Past {
    Event event;
    std::uint32_t device, behind;
    Mark mark = {};
  };
  struct Recorded {
    Model model;
    Stream tape;
  };

  Result<void> open() {
    Profile profile;
    profile.workers = 1 + random_.below(2);
    profile.orphan_wait_ms = static_cast<std::uint32_t>(milliseconds(kLong).count());
    profile.host_helps = random_.one_in(2);
    profile.wait_us = random_.below(2);
    profile.engine_slots = {1 + random_.below(2)};
    for (std::uint32_t d = 0; d < count_; ++d) {
      const bool cpu = random_.one_in(3);
      MST_TRY(Device device, Device::open_private(cpu ? BackendId::cpu : BackendId::sim, profile));
      places_.push_back({cpu, std::move(device)});
      for (std::uint32_t s = 0; s < kStreams; ++s) {
        MST_TRY(Stream stream, places_[d].device.primary().create_stream({}));
        places_[d].streams.push_back(std::move(stream));
      }
    }
    return {};
  }

  Result<void> step(std::uint32_t d, std::uint32_t s) {
    Stream& stream = places_[d].streams[s];
    std::uint32_t& behind = places_[d].behind[s];
    behind |= 1u << d;
    MST_TRY_VOID(work(stream));
    if (!past_.empty() && random_.one_in(2)) {
      Past& past = past_[random_.below(static_cast<std::uint32_t>(past_.size()))];
      if (random_.one_in(5)) {
        MST_TRY_VOID(execute(d, stream, past));
      } else {
        MST_TRY_VOID(stream.wait(past.event, deadline(d, past)));
        MST_TRY_VOID(launch(stream, kExpect, &past.mark));
      }
      behind |= past.behind;
      MST_TRY_VOID(work(stream));
    }
    if (random_.one_in(2)) return {};
    MST_TRY(Event event, places_[d].device.primary().create_event(random_.one_in(2) ? Event::Kind::latch : Event::Kind::snapshot, {}));
    Past& past = past_.emplace_back(std::move(event), d, behind);
    MST_TRY_VOID(launch(stream, kMake, &past.mark));
    return stream.record(past.event);
  }

  // One in virtual time holds while other devices move towards what is awaited. It may pass if those wait for this one's clock, which
  // it holds; so it is for what devices of higher numbers do alone.
  Deadline deadline(std::uint32_t d, const Past& past) {
    if (random_.one_in(3)) return std::nullopt;
    if (places_[d].cpu) return Deadline(kLong);
    if ((past.behind & ((2u << d) - 1)) != 0) return kVirtualSecond;
    return Deadline(Nanoseconds(1 + random_.below(1'000'000)));
  }

  Result<void> work(Stream& stream) {
    switch (random_.below(8)) {
      case 0: return stream.launch(kNap, {}, {});
      case 1: return stream.launch(kLongInVirtualTime, {}, {});
      case 2: return stream.host_func([](void*) {}, nullptr);
      case 3: {
        const Past* const past = past_.empty() ? nullptr : &past_[random_.below(static_cast<std::uint32_t>(past_.size()))];
        return launch(stream, kAsk, Ask{&any_stream(random_), past == nullptr ? nullptr : &past->event});
      }
      default:
        for (std::uint32_t n = random_.below(30); n > 0; --n) MST_TRY_VOID(stream.launch(kNothing, {}, {}));
        return {};
    }
  }

  // The wait is on a tape of a model.
  Result<void> execute(std::uint32_t d, Stream& stream, Past& past) {
    Context context = places_[d].device.primary();
    StreamOptions options;
    options.persistent = true;
    MST_TRY(Model model, context.begin_model());
    MST_TRY(Stream tape, context.create_stream(options));
    Recorded& all = models_.emplace_back(std::move(model), std::move(tape));
    MST_TRY_VOID(all.model.bind(all.tape, StreamRole::head));
    MST_TRY_VOID(all.tape.wait(past.event));
    MST_TRY_VOID(launch(all.tape, kExpect, &past.mark));
    MST_TRY_VOID(all.model.end_tasks(all.tape));
    MST_TRY_VOID(all.model.finish());
    return all.model.execute_async(stream);
  }

  Result<void> host(std::uint64_t seed) {
    Random random{seed};
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t d = random.below(count_), s = random.below(kStreams);
      Stream& stream = places_[d].streams[s];
      const Deadline far = random.one_in(2) ? std::nullopt : places_[d].cpu ? Deadline(kLong) : kVirtualSecond;
      if (random.one_in(3) && !past_.empty()) {
        Past& past = past_[random.below(static_cast<std::uint32_t>(past_.size()))];
        MST_TRY_VOID(in_time([&] { return past.event.synchronize(places_[past.device].cpu || !far ? far : kVirtualSecond); }));
      } else if (random.one_in(2)) {
        MST_TRY_VOID(in_time([&] { return stream.synchronize(far); }));
      } else if (asks_) {
        for (int n = 0; n < 50; ++n) MST_TRY_VOID(stream.query());
      }
    }
    return {};
  }

  // Who waits for its patience to end, though what it waits for has come or cannot, takes longer.
  template <class Call>
  static Result<void> in_time(Call call) {
    const auto begin = std::chrono::steady_clock::now();
    MST_TRY_VOID(call());
    const auto took = std::chrono::steady_clock::now() - begin;
    if (took > kTooLong) return Error{ErrorCode::internal, fmt::format("a call took {} s", std::chrono::duration_cast<seconds>(took).count())};
    return {};
  }

  const Stream& any_stream(Random& random) { return places_[random.below(count_)].streams[random.below(kStreams)]; }

  Random random_;
  const std::uint32_t count_;
  std::uint32_t hosts_ = 0;
  bool asks_ = false;
  std::vector<Place> places_;
  std::deque<Past> past_;
  std::deque<Recorded> models_;
};

TEST(RandomPrograms, OfSeveralDevicesEndAndWaitsSeeWhatTheyWaitedFor) {
  const std::uint64_t count = number("MST_PROGRAM_COUNT", 300), first = number("MST_PROGRAM_SEED", 1);
  auto said = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    within(seconds(120), [seed] {
      missed = 0;
      auto program = std::make_unique<DevicesProgram>(seed);
      EXPECT_OK(program->run());
      EXPECT_EQ(0u, missed);
      if (program->same_twice() && !HasFailure()) {
        DevicesProgram again(seed);
        EXPECT_OK(again.run());
        EXPECT_EQ(program->times(), again.times()) << "two runs differ";
      }
      if (!HasFailure()) return;
      std::printf("%s; again: MST_PROGRAM_SEED=%lu MST_PROGRAM_COUNT=1\n", program->devices().c_str(), static_cast<unsigned long>(seed));
      (void)program.release();  // its kernels may still run
    }, fmt::format("MST_PROGRAM_SEED={} MST_PROGRAM_COUNT=1", seed));
    if (count > 1000 && std::chrono::steady_clock::now() - said > seconds(15)) {
      said = std::chrono::steady_clock::now();
      fmt::print("{} of {} programs\n", seed + 1 - first, count);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace millstream::rt
