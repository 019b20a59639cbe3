// SPDX-License-Identifier: Apache-2.0
// Real threads: workers that run ready lanes, a pool for host functions, and one thread for timers and the watch for
// deadlocks. Streams are never threads.
#include <deque>
#include <functional>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "millstream/runtime/deadlock.h"
#include "millstream/runtime/delays.h"
#include "millstream/runtime/host_waiter.h"
#include "millstream/runtime/model_state.h"
#include "millstream/runtime/ready_set.h"
#include "millstream/runtime/replay.h"
#include "millstream/runtime/step.h"
#include "millstream/runtime/trace_recorder.h"

namespace millstream::rt {
namespace {

using Clock = std::chrono::steady_clock;

// A condition variable that is waited on against the system clock: what ThreadSanitizer of gcc 12 understands.
using Wall = std::chrono::system_clock;

// What is longer is as good as for ever, and no clock can add it.
constexpr Nanoseconds kLongest = std::chrono::hours(24 * 365 * 100);
Nanoseconds bounded(std::uint64_t ns) { return Nanoseconds(std::min(ns, static_cast<std::uint64_t>(kLongest.count()))); }

void pause(Delays& delays) {
  if (const std::uint64_t us = delays.next_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

class CallbackPool {
 public:
  /// `on_idle`: called when a host function was the last that ran.
  CallbackPool(Machine& machine, TraceRecorder& trace, std::optional<std::uint64_t> delay_seed, std::function<void()> on_idle)
      : machine_(machine), trace_(trace), delay_seed_(delay_seed), on_idle_(std::move(on_idle)) {}
  void start(std::uint32_t threads, std::uint32_t first_worker) {
    for (std::uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this, i, first_worker] { serve(first_worker + i); });
  }
  void push(Lane& lane) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&lane);
    changed_.notify_one();
  }
  bool idle() const {
    const std::lock_guard lock(mutex_);
    return waiting_.empty() && running_ == 0;
  }
  void join() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

 private:
  void serve(std::uint32_t worker) {
    Delays delays(delay_seed_, worker);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Lane& lane = *waiting_.front();
      waiting_.pop_front();
      ++running_;
      lock.unlock();
      Task& task = *first_task(lane);
      pause(delays);
      if (admit(lane, task) == Admission::drop) {  // dropped while it waited for its turn
        if (trace_.on()) trace_.dropped(lane, task, worker);
        discard(lane, task);
      } else {
        if (trace_.on()) trace_.began(lane, task, worker);
        call_host_func(lane, task);
        if (trace_.on()) trace_.ended(lane, task, worker);
      }
      retire(lane, task);
      // Ready before it no longer counts as running: nobody sees an idle device in between.
      if (lane.binding != nullptr || !lane.token.remove(1)) machine_.make_ready(lane);
      machine_.room_made();
      lock.lock();
      if (--running_ != 0 || !waiting_.empty()) continue;
      lock.unlock();
      on_idle_();
      lock.lock();
    }
  }

  Machine& machine_;
  TraceRecorder& trace_;
  const std::optional<std::uint64_t> delay_seed_;
  const std::function<void()> on_idle_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Lane*> waiting_;
  std::uint32_t running_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

// A host thread that works while it waits.
class HelpingHost final : public HostWaiter {
 public:
  explicit HelpingHost(ReadySet& ready) : ready_(ready) {}
  void notify() override { ready_.end_host(ended); }
  std::atomic<bool> ended{false};

 private:
  ReadySet& ready_;
};

class CpuMachine final : public Machine {
 public:
  CpuMachine(DeviceState& device, std::uint32_t workers)
      : device_(device),
        trace_(device.trace),
        count_(workers),
        ready_(threads(), device.profile.priority_age),
        callbacks_(*this, trace_, device.profile.delay_seed, [this] { idle(); }) {}
  ~CpuMachine() override { shut_down(); }

  Result<void> start() {
    try {
      callbacks_.start(device_.profile.callback_threads, threads() == 0 ? count_ + 1 : count_);
      watch_ = std::thread([this] { watch(); });
      for (std::uint32_t i = 0; i < threads(); ++i) workers_.emplace_back([this, i] { work(i); });
      if (threads() == 0) workers_.emplace_back([this] { stand_by(); });
    } catch (const std::system_error& e) {
      return Error{ErrorCode::no_memory, fmt::format("Device::open: the threads of device {} cannot be started: {}", device_.number, e.what())}.help(
          fmt::format("the profile wants {} workers and {} callback threads", count_, device_.profile.callback_threads));
    }
    return {};
  }

  std::string_view name() const override { return "cpu"; }
  void make_ready(Lane& lane) override { ready_.push(lane); }
  std::uint64_t now_ns() override {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(Clock::now() - start_).count());
  }

  bool may_wait() const override { return true; }

  bool host_wait(Completion& completion, HostTimeout timeout, HostMode mode) override {
    const Clock::time_point begin = Clock::now();
    std::optional<Nanoseconds> longest = timeout ? std::optional(std::min(*timeout, kLongest)) : std::nullopt;
    const auto at_most = [&](std::uint32_t ms) { longest = std::min<Nanoseconds>(longest.value_or(kLongest), std::chrono::milliseconds(ms)); };
    if (device_.profile.callback_stall_ms != 0) at_most(device_.profile.callback_stall_ms);
    if (mode == HostMode::patient) at_most(std::max(1u, device_.profile.orphan_wait_ms));
    const auto until = longest ? std::optional(Wall::now() + *longest) : std::nullopt;
    const auto comes_within = [&](Nanoseconds patience) {
      const Nanoseconds looks = std::min(patience, longest.value_or(patience));
      for (unsigned round = 0; !completion.signal.done() && Clock::now() - begin < looks; ++round) RealAtomics::relax(round % 64);
      return completion.signal.done();
    };
    if (comes_within(std::chrono::microseconds(2))) return true;
    if (device_.profile.host_helps && !longest) return help(completion);
    want_worker();
    const BlockedHost blocked(device_);
    idle();
    // A stream that asked for it spins on while others sleep.
    if (mode == HostMode::spin && comes_within(std::chrono::milliseconds(100))) return true;
    return HostWaiter().wait(completion, until);
  }

  void run_callback(Lane& lane) override { callbacks_.push(lane); }

  void arm_timer(Lane& lane, std::uint64_t park, std::uint64_t after_ns) override {
    const std::lock_guard lock(watch_mutex_);
    timers_.insert({Clock::now() + bounded(after_ns), keep(lane), park});
    changed_.notify_one();
  }

  void wait_for_room(const std::function<bool()>& has_room) override {
    room_waiters_.fetch_add(1, std::memory_order_seq_cst);
    want_worker();
    {
      const BlockedHost blocked(device_);
      idle();
      std::unique_lock lock(room_mutex_);
      room_.wait(lock, has_room);
    }
    room_waiters_.fetch_sub(1, std::memory_order_seq_cst);
  }
  void room_made() override {
    if (room_waiters_.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard lock(room_mutex_);
    room_.notify_all();
  }

  void look_again() override { wake_watch(); }
  void waits_abroad() override { wake_watch(); }
  void move_for(std::weak_ptr<DeviceState>) override { want_worker(); }

  bool poll() override {
    want_worker();
    if (device_.lanes_abroad.load(std::memory_order_seq_cst) == 0) return false;
    asked_.store(true, std::memory_order_relaxed);
    wake_watch();
    return false;
  }

  bool quiescent() override {
    // A lane leaves the pool ready, and the ready set into a worker that is awake: looked at in that order.
    return gone_.load(std::memory_order_acquire) || (callbacks_.idle() && ready_.idle() && callbacks_.idle());
  }

  std::uint32_t replay_workers() const override { return count_; }
  std::uint64_t activity() override { return ready_.pushes(); }

  void shut_down() override {
    if (gone_.load(std::memory_order_acquire)) return;
    ready_.close();
    want_worker();
    for (std::thread& t : workers_) t.join();
    callbacks_.join();
    {
      const std::lock_guard lock(watch_mutex_);
      closed_ = true;
    }
    changed_.notify_one();
    if (watch_.joinable()) watch_.join();
    timers_.clear();  // they keep streams, and with them the device
    gone_.store(true, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t kTurn = 64;

  std::uint32_t threads() const { return device_.profile.host_helps ? count_ - 1 : count_; }

  void work(std::uint32_t worker) {
    if (device_.thread_start) device_.thread_start();
    Delays delays(device_.profile.delay_seed, worker);
    while (Lane* lane = ready_.take([this] { idle(); })) run(*lane, worker, delays);
  }

  // The worker of a device whose only one is a host that helps: for hosts that wait otherwise.
  void stand_by() {
    {
      std::unique_lock lock(stand_by_mutex_);
      wanted_changed_.wait(lock, [&] { return wanted_.load(std::memory_order_relaxed); });
    }
    ready_.worker_begins();
    work(count_);
  }
  void want_worker() {
    if (threads() != 0 || wanted_.load(std::memory_order_relaxed)) return;
    {
      const std::lock_guard lock(stand_by_mutex_);
      wanted_.store(true, std::memory_order_relaxed);
    }
    wanted_changed_.notify_one();
  }

  // The calling thread as the last of the workers, until the completion is done.
  bool help(Completion& completion) {
    HelpingHost host(ready_);
    if (!completion.signal.park(host)) return true;
    Delays delays(device_.profile.delay_seed, count_ - 1);
    const BlockedHost blocked(device_);
    ready_.host_begins();
    while (Lane* lane = ready_.take_as_host(host.ended, [this] { idle(); })) run(*lane, count_ - 1, delays);
    ready_.host_ends();
    idle();  // all that are left may have slept before
    return true;
  }

  void run(Lane& lane, std::uint32_t worker, Delays& delays) {
    if (lane.replay != nullptr) {
      replay(lane);
    } else {
      follow(lane, worker, delays);
    }
  }

  // A worker or a host is about to sleep: nothing may be left that would wake it.
  void idle() {
    if (device_.lanes_parked.load(std::memory_order_seq_cst) != 0) wake_watch();
  }

  void replay(Lane& lane) {
    std::uint32_t segments = 0;
    const std::uint8_t level = lane.level;
    const auto yield = [&] { return ready_.higher_than(level) || (++segments >= kTurn && ready_.any()); };
    if (lane.replay->run(lane, yield)) ready_.push(lane);
  }

  // Runs the lane until it has no more tasks, waits, or has had its turn.
  void follow(Lane& lane, std::uint32_t worker, Delays& delays) {
    std::uint64_t over = 0;  // tasks of a queue that have run, and are not yet taken from the token
    // True: none is left. Another worker may have the lane then, and it may be gone.
    const auto take_off = [&] {
      const bool last = lane.token.remove(std::exchange(over, 0));
      room_made();
      return last;
    };
    for (std::uint32_t turn = 0;; ++turn) {
      if (lane.binding != nullptr) {
        if (first_task(lane) == nullptr) {
          if (!end_of_tape(lane)) return;
          continue;
        }
      } else if (lane.token.pending() == over) {
        if (take_off()) return;
        continue;
      }
      if (turn >= kTurn || (turn != 0 && ready_.higher_than(lane.level))) {
        if (over != 0 && take_off()) return;
        return ready_.push(lane);
      }
      Task& task = *first_task(lane);
      pause(delays);
      const bool may_leave = task.kind == TaskKind::wait || task.kind == TaskKind::notify_wait || task.kind == TaskKind::host_func ||
                             task.kind == TaskKind::execute;
      if (may_leave && over != 0) take_off();  // this task is still pending, so the token stays
      switch (admit(lane, task)) {
        case Admission::run:
          if (trace_.on()) trace_.began(lane, task, worker);
          perform_traced(lane, task, worker, delays);
          break;
        case Admission::drop:
          if (trace_.on()) trace_.dropped(lane, task, worker);
          discard(lane, task);
          break;
        case Admission::parked:
          return;
        case Admission::elsewhere:
          return callbacks_.push(lane);
      }
      retire(lane, task);
      if (lane.binding == nullptr) ++over;
    }
  }

  void perform_traced(Lane& lane, Task& task, std::uint32_t worker, Delays& delays) {
    // A record has ended when it is made known: what it wakes begins later.
    const bool publishes = task.kind == TaskKind::record || task.kind == TaskKind::marker ||
                           task.kind == TaskKind::notify_record || task.kind == TaskKind::site_record || task.kind == TaskKind::activate;
    if (trace_.on() && publishes) trace_.ended(lane, task, worker);
    pause(delays);
    perform(lane, task);
    if (trace_.on() && !publishes) trace_.ended(lane, task, worker);
  }

  void wake_watch() {
    const std::lock_guard lock(watch_mutex_);
    look_ = true;
    changed_.notify_one();
  }

  struct Timer {
    Clock::time_point at;
    std::shared_ptr<Lane> lane;
    std::uint64_t park;
    bool operator<(const Timer& other) const { return at < other.at; }
    /// Its wait is not over yet.
    bool armed() const {
      const std::lock_guard lock(lane->park_lock);
      return lane->parked_on != nullptr && lane->parks == park;
    }
  };

  void watch() {
    std::unique_lock lock(watch_mutex_);
    while (!closed_) {
      const auto awake = [&] { return look_ || closed_ || due(); };
      if (timers_.empty() && !suspect_at_ && !again_at_) {
        changed_.wait(lock, [&] { return awake() || !timers_.empty(); });
      } else {
        const auto first = timers_.empty() ? Clock::time_point::max() : timers_.begin()->at;
        const auto next = std::min({first, suspect_at_.value_or(first), again_at_.value_or(first)});
        changed_.wait_until(lock, Wall::now() + std::min<Nanoseconds>(next - Clock::now(), kLongest), awake);
      }
      fire_timers(lock);
      const bool suspect = suspect_at_ && *suspect_at_ <= Clock::now();
      if (!look_ && !suspect && !(again_at_ && *again_at_ <= Clock::now())) continue;
      look_ = false;
      std::erase_if(timers_, [](const Timer& timer) { return !timer.armed(); });
      lock.unlock();
      const std::uint64_t before = activity();
      std::optional<Stuck> stuck = quiescent() ? find_stuck(device_) : std::nullopt;
      if (!quiescent() || activity() != before) stuck.reset();  // whoever is the next to be idle looks again
      if (stuck && stuck->certain) report(*stuck);
      const bool waited_for = device_.hosts_blocked.load(std::memory_order_seq_cst) != 0 && device_.lanes_abroad.load(std::memory_order_seq_cst) != 0;
      if (asked_.exchange(false, std::memory_order_relaxed) || waited_for) {  // virtual time there moves only while a host looks
        for (const auto& other : moving_towards(device_, OwnKernel::waits)) other->machine->move_for(device_.weak_from_this());
      }
      lock.lock();
      // What goes on there nobody tells.
      again_in_ = before == looked_at_ ? std::min(2 * again_in_, std::chrono::milliseconds(16)) : std::chrono::milliseconds(1);
      looked_at_ = before;
      again_at_ = waited_for ? std::optional(Clock::now() + again_in_) : std::nullopt;
      // What nobody records for may still come from a host; it is called a deadlock after a while without change.
      if (stuck && !stuck->certain) {
        const bool known = suspect_at_ && stuck->fingerprint == suspected_;
        if (known && suspect) {
          lock.unlock();
          report(*stuck);
          lock.lock();
        }
        if (!known || suspect) suspect_at_ = Clock::now() + std::chrono::milliseconds(std::max(1u, device_.profile.orphan_wait_ms));
        suspected_ = stuck->fingerprint;
      } else {
        suspect_at_.reset();
      }
    }
  }
  bool due() const {
    const auto now = Clock::now();
    return (!timers_.empty() && timers_.begin()->at <= now) || (suspect_at_ && *suspect_at_ <= now) || (again_at_ && *again_at_ <= now);
  }
  void fire_timers(std::unique_lock<std::mutex>& lock) {
    while (!timers_.empty() && timers_.begin()->at <= Clock::now()) {
      const Timer timer = *timers_.begin();
      timers_.erase(timers_.begin());
      lock.unlock();
      unpark(*timer.lane, Wake::timed_out, timer.park);
      lock.lock();
    }
  }

  DeviceState& device_;
  TraceRecorder& trace_;
  const std::uint32_t count_;
  const Clock::time_point start_ = Clock::now();
  ReadySet ready_;
  CallbackPool callbacks_;

  std::mutex room_mutex_;
  std::condition_variable room_;
  std::atomic<std::uint32_t> room_waiters_{0};

  std::mutex stand_by_mutex_;
  std::condition_variable wanted_changed_;
  std::atomic<bool> wanted_{false};

  std::mutex watch_mutex_;
  std::condition_variable changed_;
  std::multiset<Timer> timers_;
  bool look_ = false;
  bool closed_ = false;
  std::atomic<bool> asked_{false};  // a host polls
  std::atomic<bool> gone_{false};  // no thread is left
  std::optional<Clock::time_point> suspect_at_;
  std::uint64_t suspected_ = 0;
  std::optional<Clock::time_point> again_at_;  // it looks again, since lanes wait for another device
  std::chrono::milliseconds again_in_{1};
  std::uint64_t looked_at_ = 0;                // activity

  std::vector<std::thread> workers_;
  std::thread watch_;
};

}  // namespace

Result<std::unique_ptr<Machine>> make_cpu_machine(DeviceState& device, std::uint32_t workers) {
  auto machine = std::make_unique<CpuMachine>(device, workers);
  MST_TRY_VOID(machine->start());
  return std::unique_ptr<Machine>(std::move(machine));
}

}  // namespace millstream::rt
