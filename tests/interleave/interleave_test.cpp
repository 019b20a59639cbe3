// SPDX-License-Identifier: Apache-2.0
// Every order of two or three threads through the runtime's protocols; and a damaged copy of each, which must be caught.
#include <gtest/gtest.h>

#include <array>
#include <mutex>

#include <fmt/format.h>

#include "millstream/runtime/activations.h"
#include "millstream/runtime/arrivals.h"
#include "millstream/runtime/awake.h"
#include "millstream/runtime/parking.h"
#include "millstream/runtime/run_token.h"
#include "millstream/runtime/signal.h"
#include "millstream/runtime/users.h"
#include "tests/interleave/explorer.h"

namespace millstream::interleave {
namespace {

using rt::Waiter;
using rt::Wake;

using Sound = SteppedAtomics<false>;
using Broken = SteppedAtomics<true>;

void expect_sound(const char* what, const std::function<Program()>& make) {
  const Explored e = explore(make);
  fmt::print("{}: {} orders, {} states\n", what, e.orders, e.states);
  EXPECT_FALSE(e.wrong) << what << ": " << *e.wrong;
}
void expect_caught(const char* what, const std::function<Program()>& make) {
  const Explored e = explore(make);
  EXPECT_TRUE(e.wrong) << what << ": nothing noticed in " << e.orders << " orders";
  if (e.wrong) fmt::print("{}: {}\n", what, *e.wrong);
}

// A host or a lane that waits, and how it was let go.
struct Sleeper : Waiter {
  Sleeper() : Waiter(Kind::lane) {}
  int woken = 0;
};
template <class P>
void wake(Waiter* list) {
  while (list != nullptr) {
    Waiter* const next = list->next;
    ++static_cast<Sleeper*>(list)->woken;
    list = next;
  }
}

// ---- submit against a lane that becomes idle

template <class P>
struct LaneModel {
  rt::BasicRunToken<P> token;
  typename P::template Atomic<int> queued{0}, ready{0};
  int run = 0, holders = 0;
  bool gone = false;

  void submit() {
    queued.fetch_add(1);
    if (token.add()) ready.fetch_add(1);
  }
  // A worker that serves until `tasks` have run; `Careless`: it does not look again before it takes the last away.
  template <bool Careless>
  void serve(int tasks) {
    for (unsigned round = 0; run < tasks; ++round) {
      int seen = ready.load();
      if (seen == 0) {
        P::relax(round);
        continue;
      }
      if (!ready.compare_exchange_strong(seen, seen - 1)) continue;
      require(++holders == 1, "two hold the lane");
      std::uint64_t over = 0;
      for (;;) {
        require(!gone, "the lane is used after its end");
        if (token.pending() == over) {
          if (Careless) {
            token.remove(over);
            --holders;
            break;
          }
          // Before the token may be gone: another holder may begin at once.
          --holders;
          if (token.remove(over)) break;
          ++holders;
          over = 0;
          continue;
        }
        require(queued.load() > run, "the token counts a task that is not in the queue");
        ++run;
        ++over;
      }
    }
  }
};

template <class P, bool Careless>
Program submit_and_idle() {
  auto lane = std::make_shared<LaneModel<P>>();
  return {{[lane] { lane->submit(), lane->submit(); }, [lane] { lane->submit(); }, [lane] { lane->template serve<Careless>(3); }},
          [lane]() -> std::optional<std::string> {
            if (lane->run != 3 || lane->token.pending() != 0) return fmt::format("{} of 3 tasks ran, {} pending", lane->run, lane->token.pending());
            return std::nullopt;
          }};
}

TEST(Interleave, ASubmitAgainstALaneThatBecomesIdle) {
  expect_sound("submit against idle", submit_and_idle<Sound, false>);
  expect_caught("submit against idle, a counter added to without an atomic step", submit_and_idle<Broken, false>);
  expect_caught("submit against idle, the last look left out", submit_and_idle<Sound, true>);
}

// ---- a wait's push against a record, and a removal

template <class P>
struct SignalModel {
  rt::BasicSignal<P> signal;
  std::array<Sleeper, 2> sleepers;
  std::array<int, 2> passed{};

  void wait(std::size_t i) {
    if (!signal.park(sleepers[i])) ++passed[i];
  }
  void record() { wake<P>(signal.publish()); }
  void remove(std::size_t i) {
    if (rt::give_up(sleepers[i], signal, wake<P>)) ++sleepers[i].woken;
  }
  std::optional<std::string> wrong() const {
    for (std::size_t i = 0; i < 2; ++i) {
      if (sleepers[i].woken + passed[i] != 1) return fmt::format("waiter {} goes on {} times", i, sleepers[i].woken + passed[i]);
    }
    return std::nullopt;
  }
};

template <class P>
Program wait_and_record() {
  auto m = std::make_shared<SignalModel<P>>();
  return {{[m] { m->wait(0); }, [m] { m->wait(1); }, [m] { m->record(); }}, [m] { return m->wrong(); }};
}
template <class P>
Program removal_and_record() {
  auto m = std::make_shared<SignalModel<P>>();
  return {{[m] { m->wait(0), m->remove(0); }, [m] { m->wait(1); }, [m] { m->record(); }}, [m] { return m->wrong(); }};
}

TEST(Interleave, AWaitAgainstARecord) {
  expect_sound("wait against record", wait_and_record<Sound>);
  expect_caught("wait against record, its compare-exchange a plain store", wait_and_record<Broken>);
}
TEST(Interleave, ARemovalAgainstARecord) {
  expect_sound("removal against record", removal_and_record<Sound>);
  expect_caught("removal against record, its compare-exchange a plain store", removal_and_record<Broken>);
}

// ---- a second record, and a reset, against a wait

// A snapshot: each record has a signal of its own, the last is taken under the lock. `Careless`: without it.
template <class P, bool Careless>
struct SnapshotModel {
  rt::BasicSpinLock<P> lock;
  std::array<rt::BasicSignal<P>, 2> records;
  // As a pointer and its count of owners: two words that belong together.
  typename P::template Atomic<int> last{0}, owned{0};
  Sleeper sleeper;
  bool passed = false;
  int took = -1;

  void record(int i) {
    {
      std::unique_lock hold(lock, std::defer_lock);
      if (!Careless) hold.lock();
      last.store(i);
      owned.store(i);
    }
    wake<P>(records[static_cast<std::size_t>(i)].publish());
  }
  void wait() {
    {
      std::unique_lock hold(lock, std::defer_lock);
      if (!Careless) hold.lock();
      took = last.load();
      require(took == owned.load(), "the record that was taken is not the one that is held");
    }
    if (!records[static_cast<std::size_t>(took)].park(sleeper)) passed = true;
  }
};
template <class P, bool Careless>
Program record_again_and_wait() {
  auto m = std::make_shared<SnapshotModel<P, Careless>>();
  return {{[m] { m->record(0), m->record(1); }, [m] { m->wait(); }}, [m]() -> std::optional<std::string> {
            if (m->sleeper.woken + m->passed == 1) return std::nullopt;
            return fmt::format("the wait for record {} goes on {} times", m->took, m->sleeper.woken + m->passed);
          }};
}

// A latch: one signal that is reset and published again, and removals, under its lock. `Careless`: without it.
template <class P, bool Careless>
struct LatchModel {
  rt::BasicSpinLock<P> lock;
  rt::BasicSignal<P> signal;
  Sleeper a, b;

  template <class F>
  auto locked(F f) {
    std::unique_lock hold(lock, std::defer_lock);
    if (!Careless) hold.lock();
    return f();
  }
  LatchModel() {
    signal.park(a);
    signal.park(b);
  }
};
template <class P, bool Careless>
Program reset_and_removal() {
  auto m = std::make_shared<LatchModel<P, Careless>>();
  return {{[m] {
             const auto out = m->locked([&] { return m->signal.remove(m->a); });
             wake<P>(out.to_wake);
             if (out.found) ++m->a.woken;
           },
           [m] {
             wake<P>(m->locked([&] { return m->signal.publish(); }));
             m->locked([&] { m->signal.reset(); });
           }},
          [m]() -> std::optional<std::string> {
            if (m->a.woken == 1 && m->b.woken == 1) return std::nullopt;
            return fmt::format("the latch was set while both waited: one goes on {}, the other {} times", m->a.woken, m->b.woken);
          }};
}

TEST(Interleave, ASecondRecordAgainstAWait) {
  expect_sound("record again against wait", record_again_and_wait<Sound, false>);
  expect_caught("record again against wait, without the lock", record_again_and_wait<Sound, true>);
  expect_caught("record again against wait, the lock a plain store", record_again_and_wait<Broken, false>);
}
TEST(Interleave, ALatchsResetAgainstARemoval) {
  expect_sound("reset against removal", reset_and_removal<Sound, false>);
  expect_caught("reset against removal, without the lock", reset_and_removal<Sound, true>);
}

// ---- stop against park

template <class P>
struct AwaitedModel {
  rt::BasicSpinLock<P> lock;
  rt::BasicSignal<P> signal;
  auto remove(const Waiter& w) {
    const std::lock_guard one(lock);
    return signal.remove(w);
  }
};
template <class P>
struct ParkingLane : Sleeper {
  rt::BasicSpinLock<P> park_lock;
  AwaitedModel<P>* parked_on = nullptr;
  std::uint64_t parks = 0;
  Wake wake = Wake::published;
  std::unique_ptr<Error> wake_error;
};
template <class P, bool Careless>
struct StopModel {
  AwaitedModel<P> event;
  ParkingLane<P> lane;
  typename P::template Atomic<bool> stopped{false};
  int went_on = 0;  // dropped or passed without a park

  void work() {
    const auto dropped = [&] { return !Careless && stopped.load(); };
    if (Careless && stopped.load()) {
      ++went_on;
      return;
    }
    if (!rt::prepare_to_park(lane, event, dropped)) {
      ++went_on;
      return;
    }
    if (event.signal.park(lane)) return;
    rt::no_longer_parked(lane);
    ++went_on;
  }
  static void wake_lanes(Waiter* list) {
    while (list != nullptr) {
      auto* const l = static_cast<ParkingLane<P>*>(static_cast<Sleeper*>(list));
      list = list->next;
      rt::no_longer_parked(*l);
      ++l->woken;
    }
  }
  void stop() {
    stopped.store(true);
    std::unique_ptr<Error> none;
    if (rt::take_out<P>(lane, Wake::stopped, std::nullopt, none, wake_lanes)) ++lane.woken;
  }
  void record() { wake_lanes(event.signal.publish()); }
  std::optional<std::string> wrong() const {
    if (lane.woken + went_on == 1 && lane.parked_on == nullptr) return std::nullopt;
    return fmt::format("the stopped lane goes on {} times{}", lane.woken + went_on, lane.parked_on != nullptr ? " and counts as parked" : "");
  }
};
template <class P, bool Careless, bool Record>
Program stop_and_park() {
  auto m = std::make_shared<StopModel<P, Careless>>();
  Program p{{[m] { m->work(); }, [m] { m->stop(); }}, [m] { return m->wrong(); }};
  if (Record) p.threads.push_back([m] { m->record(); });
  return p;
}

// Two lanes that wait for one record; one of them is stopped.
template <class P, bool Careless>
Program stop_beside_another() {
  struct Two : StopModel<P, false> {
    ParkingLane<P> other;
  };
  auto m = std::make_shared<Two>();
  for (ParkingLane<P>* lane : {&m->lane, &m->other}) {
    (void)rt::prepare_to_park(*lane, m->event, [] { return false; });
    m->event.signal.park(*lane);
  }
  return {{[m] {
             std::unique_ptr<Error> none;
             const auto wake = [](Waiter* list) {
               if (!Careless) Two::wake_lanes(list);
             };
             if (rt::take_out<P>(m->lane, Wake::stopped, std::nullopt, none, wake)) ++m->lane.woken;
           },
           [m] { m->record(); }},
          [m]() -> std::optional<std::string> {
            if (m->other.woken != 1) return fmt::format("the lane beside the stopped one goes on {} times", m->other.woken);
            return m->wrong();
          }};
}

TEST(Interleave, AStopAgainstAPark) {
  expect_sound("stop against park", stop_and_park<Sound, false, false>);
  expect_sound("stop against park and record", stop_and_park<Sound, false, true>);
  expect_sound("stop of one of two that wait for a record", stop_beside_another<Sound, false>);
  expect_caught("stop of one of two that wait for a record, which then wakes nobody", stop_beside_another<Sound, true>);
  expect_caught("stop against park, the second look left out", stop_and_park<Sound, true, false>);
  expect_caught("stop against park and record, compare-exchanges plain stores", stop_and_park<Broken, false, true>);
}

// ---- destroy against synchronize

template <class P, bool Careless>
struct DestroyModel {
  rt::BasicSpinLock<P> lock;
  LaneModel<P> lane;
  typename P::template Atomic<bool> closed{false};
  std::array<int, 2> markers{};  // which was submitted as which task; 0: none
  std::array<rt::BasicSignal<P>, 2> done;
  int submitted = 0;
  int refused = 0;

  bool push(int marker, bool last) {
    bool first = false;
    {
      const std::lock_guard hold(lock);
      if (!Careless && closed.load()) return false;
      require(!lane.gone, "a marker goes into a stream that is gone");
      markers[static_cast<std::size_t>(submitted++)] = marker;
      if (last) closed.store(true);
      first = lane.token.add();
    }
    if (first) lane.ready.fetch_add(1);
    return true;
  }
  void sync() {
    if (Careless && closed.load()) return void(++refused);
    if (!push(1, false)) ++refused;
  }
  void destroy() {
    push(2, true);
    for (unsigned round = 0; !done[1].done(); ++round) P::relax(round);
    for (unsigned round = 0; lane.token.pending() != 0; ++round) P::relax(round);
    lane.gone = true;
  }
  void serve() {
    std::uint64_t run = 0;
    bool last = false;
    for (unsigned round = 0; !last; ++round) {
      if (lane.ready.load() == 0) {
        P::relax(round);
        continue;
      }
      lane.ready.fetch_sub(1);
      for (std::uint64_t over = 0;;) {
        require(!lane.gone, "a worker uses a stream that is gone");
        if (lane.token.pending() == over) {
          if (lane.token.remove(over)) break;
          over = 0;
          continue;
        }
        const int marker = markers[static_cast<std::size_t>(run++)];
        require(marker != 0, "the token counts a task that is not in the queue");
        last |= marker == 2;
        ++over;
        done[static_cast<std::size_t>(marker - 1)].publish();
      }
    }
  }
};
template <class P, bool Careless>
Program destroy_and_sync() {
  auto m = std::make_shared<DestroyModel<P, Careless>>();
  return {{[m] { m->sync(); }, [m] { m->destroy(); }, [m] { m->serve(); }}, [m]() -> std::optional<std::string> {
            if (m->lane.gone && m->submitted + m->refused == 2 && (m->refused == 1 || m->done[0].done())) return std::nullopt;
            return "a call got no answer";
          }};
}

TEST(Interleave, ADestroyAgainstASynchronise) {
  expect_sound("destroy against synchronise", destroy_and_sync<Sound, false>);
  expect_caught("destroy against synchronise, the look under the lock left out", destroy_and_sync<Sound, true>);
  expect_caught("destroy against synchronise, counters and lock without atomic steps", destroy_and_sync<Broken, false>);
}

// ---- an activation against the end of the tape that it starts

// Counts as live only what has its token already.
template <class P>
struct LateActivations {
  typename P::template Atomic<std::uint64_t> live{0};
  void begin(std::uint64_t heads) { live.store(heads); }
  auto start(rt::BasicRunToken<P>& token, std::uint64_t most) {
    const auto added = token.add_below(most);
    if (added != rt::BasicRunToken<P>::Added::no) live.fetch_add(1);
    return added;
  }
  auto end(rt::BasicRunToken<P>& token) {
    const bool idle = token.remove(1);
    return typename rt::BasicActivations<P>::End{idle, live.fetch_sub(1) == 1};
  }
};

// Heads that each start one more tape, which is a head itself if `Head`, by an activation, or by a jump if `Jump`.
template <class P, template <class> class Activations, std::size_t Heads, bool Head, bool Jump>
struct ExecutionModel {
  using Token = rt::BasicRunToken<P>;
  Activations<P> live;
  std::array<Token, Heads> heads;
  Token target;
  typename P::template Atomic<int> ready{0};
  typename P::template Atomic<bool> over{false};
  std::size_t started = Head, refused = 0, passes = 0;
  int holders = 0, ends = 0;

  ExecutionModel() {
    live.begin(Heads + Head);
    for (Token& head : heads) head.add();
    if (Head) {
      target.add();
      ready.store(1);
    }
  }
  // Whether the lane is idle.
  bool end(Token& token) {
    const auto end = live.end(token);
    if (!end.over) return end.idle;
    require(++ends == 1, "the execution ends twice");
    require(end.idle && passes == started, "the execution ends before a tape that was started has run");
    over.store(true);
    return true;
  }
  void run_head(std::size_t i) {
    require(ends == 0, "a tape runs after the end of its execution");
    const auto added = live.start(target, Jump ? 1 : 2);
    ++(added == Token::Added::no ? refused : started);
    if (added == Token::Added::first) ready.fetch_add(1);
    end(heads[i]);
  }
  // A worker: the target's passes, until the execution has ended.
  void serve() {
    for (unsigned round = 0; !over.load(); ++round) {
      int seen = ready.load();
      if (seen == 0 || !ready.compare_exchange_strong(seen, seen - 1)) {
        P::relax(round);
        continue;
      }
      do {
        require(++holders == 1, "two hold the lane");
        require(ends == 0, "a tape runs after the end of its execution");
        ++passes;
        --holders;
      } while (!end(target));
    }
  }
  std::optional<std::string> wrong() const {
    if (ends == 1 && passes == started && started + refused == Heads + Head && target.pending() == 0) return std::nullopt;
    return fmt::format("the execution ended {} times, {} of {} starts ran, {} were refused", ends, passes, started, refused);
  }
};
template <class P, template <class> class Activations, std::size_t Heads, bool Head, bool Jump>
Program activate_and_end() {
  auto m = std::make_shared<ExecutionModel<P, Activations, Heads, Head, Jump>>();
  Program p{{[m] { m->serve(); }}, [m] { return m->wrong(); }};
  for (std::size_t i = 0; i < Heads; ++i) p.threads.push_back([m, i] { m->run_head(i); });
  return p;
}

TEST(Interleave, AnActivationAgainstTheEndOfItsTape) {
  expect_sound("two activations against end", activate_and_end<Sound, rt::BasicActivations, 2, false, false>);
  expect_sound("activation against the end of a tape that runs", activate_and_end<Sound, rt::BasicActivations, 1, true, false>);
  expect_sound("two jumps to one tape against its end", activate_and_end<Sound, rt::BasicActivations, 2, false, true>);
  expect_caught("activation against end, counted as live behind its token", activate_and_end<Sound, LateActivations, 1, true, false>);
  expect_caught("two activations against end, counters without atomic steps", activate_and_end<Broken, rt::BasicActivations, 2, false, false>);
  expect_caught("two jumps to one tape, the token's compare-exchange a plain store", activate_and_end<Broken, rt::BasicActivations, 2, false, true>);
}

// ---- a push for a worker that goes to sleep

// The last look comes before the flag is cleared.
template <class P>
struct HastyAwake {
  typename P::template Atomic<bool> flag{false};
  bool wake() { return !flag.exchange(true); }
  template <class Find>
  auto sleep_unless(Find find, bool& owns) {
    const auto found = find();
    owns = found.has_value();
    if (!found) flag.store(false);
    return found;
  }
};

// It stays in its part though that was made ready elsewhere.
template <class P>
struct KeepingAwake : rt::BasicAwake<P> {
  template <class Find>
  auto sleep_unless(Find find, bool& owns) {
    const auto found = rt::BasicAwake<P>::sleep_unless(find, owns);
    owns = found.has_value();
    return found;
  }
};

template <class P, template <class> class Awake, int Pushes>
struct SleepModel {
  Awake<P> awake;
  typename P::template Atomic<int> queued{0};
  int inside = 0, ran = 0;

  SleepModel() { (void)awake.wake(); }  // the worker runs, and finds nothing
  std::optional<int> find() {
    for (int have = queued.load(); have != 0;) {
      if (queued.compare_exchange_weak(have, have - 1)) return have;
    }
    return std::nullopt;
  }
  void run_slice() {
    require(++inside == 1, "two workers run one part");
    for (bool owns = true; owns;) {
      auto found = find();
      if (!found) {
        --inside;  // from here on another may be in it
        found = awake.sleep_unless([&] { return find(); }, owns);
        if (owns) require(++inside == 1, "two workers run one part");
      }
      if (found) ++ran;
    }
  }
  // Whoever makes the part ready is also the worker that then runs it.
  void push() {
    queued.fetch_add(1);
    if (awake.wake()) run_slice();
  }
  std::optional<std::string> wrong() const {
    if (ran == Pushes) return std::nullopt;
    return fmt::format("{} of {} segments ran", ran, Pushes);
  }
};
template <class P, template <class> class Awake, int Pushes>
Program sleep_and_push() {
  auto m = std::make_shared<SleepModel<P, Awake, Pushes>>();
  Program p{{[m] { m->run_slice(); }}, [m] { return m->wrong(); }};
  for (int i = 0; i < Pushes; ++i) p.threads.push_back([m] { m->push(); });
  return p;
}

TEST(Interleave, APushAgainstAWorkerThatGoesToSleep) {
  expect_sound("push against sleep", sleep_and_push<Sound, rt::BasicAwake, 1>);
  expect_sound("two pushes against sleep", sleep_and_push<Sound, rt::BasicAwake, 2>);
  expect_caught("push against sleep, the last look before the flag is cleared", sleep_and_push<Sound, HastyAwake, 1>);
  expect_caught("push against sleep, the part kept though another was woken for it", sleep_and_push<Sound, KeepingAwake, 1>);
}

// ---- the end of a replay against who is still in it

// Who begins an execution pushes its one task, and wakes a part for it. Another part that is awake may take the task first, run
// it, and be gone; the owner destroys the replay when the execution is over and nobody is in it. `Begin`: who begins counts.
template <class P, bool Begin>
struct EndModel {
  rt::BasicUsers<P> users;
  rt::BasicAwake<P> awake;
  typename P::template Atomic<int> queued{0}, over{0};
  bool destroyed = false;

  EndModel() { users.enter(); }  // the other part runs
  void touch() const { require(!destroyed, "the replay is used after its end"); }
  void run_part() {
    touch();
    int one = 1;
    if (queued.compare_exchange_strong(one, 0)) over.store(1);
    touch();
    users.leave();
  }
  void begin() {
    if (Begin) users.enter();
    queued.store(1);
    touch();
    if (awake.wake()) {
      users.enter();
      run_part();
    }
    if (Begin) users.leave();
  }
  void other_part() {
    for (unsigned round = 0; over.load() == 0 && queued.load() == 0; ++round) P::relax(round);
    run_part();
  }
  void end() {
    for (unsigned round = 0; over.load() == 0 || !users.none(); ++round) P::relax(round);
    destroyed = true;
  }
};
template <class P, bool Begin>
Program begin_and_end() {
  auto m = std::make_shared<EndModel<P, Begin>>();
  return {{[m] { m->begin(); }, [m] { m->other_part(); }, [m] { m->end(); }},
          [m]() -> std::optional<std::string> { return m->destroyed ? std::nullopt : std::optional<std::string>("the replay never ends"); }};
}

TEST(Interleave, TheEndOfAReplayAgainstWhoIsStillInIt) {
  expect_sound("begin against the end of a replay", begin_and_end<Sound, true>);
  expect_caught("begin against the end of a replay, who begins not counted", begin_and_end<Sound, false>);
  expect_caught("begin against the end of a replay, the count without atomic steps", begin_and_end<Broken, true>);
}

// ---- a segment's arrivals over epochs that wrap

// Takes whatever is not less for the last arrival.
template <class P, class Number>
struct OrderedArrivals {
  typename P::template Atomic<Number> made{0};
  explicit OrderedArrivals(Number before) : made(before) {}
  bool arrive(Number epoch, Number each) { return static_cast<Number>(made.fetch_add(1) + 1) >= static_cast<Number>(epoch * each); }
};
// The last arrival that looks before it arrives leaves no trace in the count.
template <class P, class Number>
struct UncountedArrivals {
  explicit UncountedArrivals(Number before) : made(before) {}
  bool arrive(Number epoch, Number each) { return static_cast<Number>(made.fetch_add(1) + 1) == static_cast<Number>(epoch * each); }
  bool arrive_if_last(Number epoch, Number each) { return static_cast<Number>(made.load() + 1) == static_cast<Number>(epoch * each); }
  typename P::template Atomic<Number> made;
};
// Writes the count down whether it is the last or not.
template <class P, class Number>
struct HastyArrivals {
  explicit HastyArrivals(Number before) : made(before) {}
  bool arrive(Number epoch, Number each) { return static_cast<Number>(made.fetch_add(1) + 1) == static_cast<Number>(epoch * each); }
  bool arrive_if_last(Number epoch, Number each) {
    const auto before = made.load();
    made.store(static_cast<Number>(before + 1));
    return static_cast<Number>(before + 1) == static_cast<Number>(epoch * each);
  }
  typename P::template Atomic<Number> made;
};

// Segments that all must have run before the joint one, which begins the next epoch; the epochs go over the end of a byte.
// The first of them looks a few times whether it is the last before it arrives.
template <class P, template <class, class> class Arrivals, std::size_t Before, int Epochs, int Looks>
struct EpochModel {
  using Byte = std::uint8_t;
  static constexpr Byte kFirst = 255;  // the next is 0
  typename P::template Atomic<Byte> epoch{kFirst};
  Arrivals<P, Byte> arrivals{static_cast<Byte>((kFirst - 1) * Before)};
  typename P::template Atomic<int> done{0};
  std::array<int, Before> ran{};

  void run(std::size_t i) {
    for (int round = 0; round < Epochs; ++round) {
      for (unsigned wait = 0; done.load() < round; ++wait) P::relax(wait);
      ++ran[i];
      if (!arrive(i)) continue;
      for (const int n : ran) require(n == round + 1, "the joint segment runs before the epoch's others");
      epoch.store(static_cast<Byte>(epoch.load() + 1));
      require(done.fetch_add(1) == round, "the joint segment runs twice in an epoch");
    }
  }
  bool arrive(std::size_t i) {
    if constexpr (Looks > 0) {
      for (int look = 0; i == 0 && look < Looks; ++look) {
        if (arrivals.arrive_if_last(epoch.load(), Before)) return true;
      }
    }
    return arrivals.arrive(epoch.load(), Before);
  }
  std::optional<std::string> wrong() const {
    if (done.load() == Epochs) return std::nullopt;
    return fmt::format("the joint segment ran in {} of {} epochs", done.load(), Epochs);
  }
};
template <class P, template <class, class> class Arrivals, std::size_t Before, int Epochs, int Looks = 0>
Program epochs() {
  auto m = std::make_shared<EpochModel<P, Arrivals, Before, Epochs, Looks>>();
  Program p{{}, [m] { return m->wrong(); }};
  for (std::size_t i = 0; i < Before; ++i) p.threads.push_back([m, i] { m->run(i); });
  return p;
}

TEST(Interleave, ArrivalsOverEpochsThatWrap) {
  expect_sound("two arrivals an epoch, over the wrap", epochs<Sound, rt::BasicArrivals, 2, 3>);
  expect_sound("three arrivals an epoch, over the wrap", epochs<Sound, rt::BasicArrivals, 3, 2>);
  expect_sound("two arrivals an epoch, one of them looks twice first", epochs<Sound, rt::BasicArrivals, 2, 3, 2>);
  expect_sound("three arrivals an epoch, one of them looks once first", epochs<Sound, rt::BasicArrivals, 3, 2, 1>);
  expect_caught("a last arrival that is not counted", epochs<Sound, UncountedArrivals, 2, 3, 2>);
  expect_caught("an arrival counted by a look that is not the last", epochs<Sound, HastyArrivals, 2, 3, 1>);
  expect_caught("arrivals over the wrap, compared by order", epochs<Sound, OrderedArrivals, 3, 2>);
  expect_caught("arrivals over the wrap, the counter without atomic steps", epochs<Broken, rt::BasicArrivals, 2, 3>);
}

}  // namespace
}  // namespace millstream::interleave
