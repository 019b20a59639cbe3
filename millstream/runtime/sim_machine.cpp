// SPDX-License-Identifier: Apache-2.0
// Virtual time: a discrete-event loop that host threads drive while they wait. Ties go by time, priority, stream and
// then order, so a program that submits from one thread gives the same run every time.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "millstream/runtime/deadlock.h"
#include "millstream/runtime/delays.h"
#include "millstream/runtime/step.h"

namespace millstream::rt {
namespace {

class SimMachine final : public Machine {
 public:
  explicit SimMachine(DeviceState& device)
      : device_(device), profile_(device.profile), delays_(device.profile.delay_seed), free_slots_(device.profile.engine_slots) {
    if (free_slots_.empty()) free_slots_.push_back(1);
    queued_.resize(free_slots_.size());
  }

  std::string_view name() const override { return "sim"; }
  std::uint64_t now_ns() override { return now_.load(std::memory_order_relaxed); }

  void make_ready(Lane& lane) override {
    {
      const std::lock_guard lock(ready_lock_);
      ready_.insert({lane.level, lane.stream.number, &lane});
      pushes_.fetch_add(1, std::memory_order_seq_cst);
    }
    if (!drives()) wake_hosts();
  }

  bool host_wait(Completion& completion, HostTimeout timeout, bool) override {
    const auto done = [&] { return completion.signal.done(); };
    const std::uint64_t until = timeout ? now_ns() + static_cast<std::uint64_t>(timeout->count()) : kNever;
    device_.hosts_blocked.fetch_add(1, std::memory_order_seq_cst);
    const bool finished = drive(done, until);
    device_.hosts_blocked.fetch_sub(1, std::memory_order_seq_cst);
    return finished;
  }

  // The host function runs in the loop, at its virtual end.
  void run_callback(Lane& lane) override { start(lane, profile_.callback_us, std::nullopt); }

  void arm_timer(Lane& lane, std::uint64_t park, std::uint64_t after_ns) override {
    moments_.push({now_ns() + after_ns, lane.level, lane.stream.number, order_++, nullptr, lane.stream.shared_from_this(), park});
  }

  void wait_for_room(const std::function<bool()>& has_room) override {
    device_.hosts_blocked.fetch_add(1, std::memory_order_seq_cst);
    drive(has_room, kNever);
    device_.hosts_blocked.fetch_sub(1, std::memory_order_seq_cst);
  }
  void room_made() override {}

  void poll() override {
    // One thing happens: over when `drive` has looked before the loop and before its first step.
    unsigned looks = 0;
    drive([&] { return ++looks > 2; }, kNever, /*stay=*/false);
  }

  bool quiescent() override {
    const std::lock_guard lock(mutex_);
    const std::lock_guard ready(ready_lock_);
    return !driving_ && ready_.empty() && moments_.empty();
  }

  std::uint64_t activity() override { return pushes_.load(std::memory_order_seq_cst); }
  void shut_down() override { moments_ = {}; }  // timers keep streams, and with them the device

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static std::uint64_t ns(double us) { return static_cast<std::uint64_t>(std::llround(us * 1000)); }

  bool drives() const { return driver_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  void wake_hosts() {
    const std::lock_guard lock(mutex_);
    ++submissions_;
    changed_.notify_all();
  }

  // One host at a time runs the loop; others sleep until it leaves it or their own wait is over.
  template <class Done>
  bool drive(const Done& done, std::uint64_t until, bool stay = true) {
    std::unique_lock lock(mutex_);
    std::uint64_t idle_since = kNever;  // submissions when the loop ran dry
    while (!done()) {
      if (driving_) {
        changed_.wait(lock, [&] { return !driving_; });
        continue;
      }
      driving_ = true;
      driver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
      lock.unlock();
      bool late = false;
      while (!done() && !late && step(until, late)) {
      }
      const bool over = done();
      const std::uint64_t before = activity();
      std::optional<Stuck> stuck;
      if (!over && !late) stuck = find_stuck(device_);
      if (activity() != before) stuck.reset();
      if (stuck && stuck->certain) report(*stuck);
      lock.lock();
      driver_.store(std::thread::id(), std::memory_order_relaxed);
      driving_ = false;
      changed_.notify_all();
      if (over) return true;
      if (late) return done();
      if (!stay) return false;
      if (stuck && stuck->certain) continue;
      // Nothing can happen unless another host submits something: it gets some real time to do so.
      if (idle_since == submissions_ && stuck) {
        lock.unlock();
        report(*stuck);
        lock.lock();
        idle_since = kNever;
        continue;
      }
      idle_since = submissions_;
      const auto patience = std::chrono::system_clock::now() + std::chrono::milliseconds(std::max(1u, profile_.orphan_wait_ms));
      changed_.wait_until(lock, patience, [&] { return submissions_ != idle_since || driving_; });
      if (until != kNever && submissions_ == idle_since) {  // nobody will: the virtual deadline passes
        if (stuck && until - now_ns() >= ns(profile_.orphan_wait_ms * 1000.0)) continue;  // unless a report is due before
        pass_to(until);
        return done();
      }
    }
    return true;
  }

  // By the driver. False: nothing is left to happen. `late`: what is next lies behind `until`.
  bool step(std::uint64_t until, bool& late) {
    if (Lane* lane = take_ready()) {
      arrive(*lane);
      return true;
    }
    if (moments_.empty()) return false;
    if (moments_.top().at > until) {
      pass_to(until);
      late = true;
      return true;
    }
    const Moment moment = moments_.top();
    moments_.pop();
    if (moment.lane == nullptr && !in_park(moment.stream->lane, moment.park)) return true;  // its wait was over before
    pass_to(moment.at);
    if (moment.lane != nullptr) {
      end(*moment.lane);
    } else {
      unpark(moment.stream->lane, Wake::timed_out, moment.park);
    }
    return true;
  }

  void pass_to(std::uint64_t at) { now_.store(std::max(now_ns(), at), std::memory_order_relaxed); }

  static bool in_park(Lane& lane, std::uint64_t park) {
    const std::lock_guard lock(lane.park_lock);
    return lane.parked_on != nullptr && lane.parks == park;
  }

  Lane* take_ready() {
    const std::lock_guard lock(ready_lock_);
    if (ready_.empty()) return nullptr;
    Lane* const lane = std::get<2>(*ready_.begin());
    ready_.erase(ready_.begin());
    return lane;
  }

  // The lane comes to its first task.
  void arrive(Lane& lane) {
    Task& task = lane.queue.front();
    const bool handed_over = lane.woken;
    switch (admit(lane, task)) {
      case Admission::run:
        if (task.kind == TaskKind::kernel) {
          const std::uint32_t engine = std::min<std::uint32_t>(task.launch.kernel->engine, static_cast<std::uint32_t>(free_slots_.size()) - 1);
          if (free_slots_[engine] == 0) {
            queued_[engine].insert({lane.level, order_++, &lane});
            return;
          }
          --free_slots_[engine];
          return start(lane, cost_us(task, handed_over), engine);
        }
        return start(lane, cost_us(task, handed_over), std::nullopt);
      case Admission::drop:
        if (device_.trace.on()) device_.trace.dropped(lane, task, 0);
        discard(lane, task);
        return go_on(lane, task);
      case Admission::parked:
        return;
      case Admission::elsewhere:
        return run_callback(lane);
    }
  }

  double cost_us(const Task& task, bool handed_over) {
    double us = static_cast<double>(delays_.next_us());
    switch (task.kind) {
      case TaskKind::kernel:
        return us + profile_.launch_us + task.launch.kernel->virtual_us;
      case TaskKind::copy:
        return us + static_cast<double>(task.copy.bytes) / profile_.copy_bytes_per_us;
      case TaskKind::fill:
        return us + static_cast<double>(task.fill.bytes) / profile_.copy_bytes_per_us;
      case TaskKind::record:
      case TaskKind::notify_record:
      case TaskKind::latch_reset:
        return us + profile_.record_us;
      case TaskKind::wait:
      case TaskKind::notify_wait:
        return us + profile_.wait_us + (handed_over ? profile_.hand_off_us : 0);
      case TaskKind::host_func:
        return us + profile_.callback_us;
      case TaskKind::marker:
        return 0;
    }
    return us;
  }

  void start(Lane& lane, double us, std::optional<std::uint32_t> engine) {
    if (device_.trace.on()) device_.trace.began(lane, lane.queue.front(), engine.value_or(0));
    moments_.push({now_ns() + ns(us), lane.level, lane.stream.number, order_++, &lane, nullptr, 0});
  }

  // The lane's first task ends: its effect, then what comes behind it.
  void end(Lane& lane) {
    Task& task = lane.queue.front();
    if (task.kind == TaskKind::kernel) give_back(std::min<std::uint32_t>(task.launch.kernel->engine, static_cast<std::uint32_t>(free_slots_.size()) - 1));
    if (device_.trace.on()) device_.trace.ended(lane, task, 0);
    if (task.kind == TaskKind::host_func) {
      call_host_func(lane, task);
    } else {
      perform(lane, task);
    }
    go_on(lane, task);
  }

  void give_back(std::uint32_t engine) {
    ++free_slots_[engine];
    // Admitted again: what stopped it meanwhile drops it, and the slot goes to the next.
    while (free_slots_[engine] != 0 && !queued_[engine].empty()) {
      Lane* const next = std::get<2>(*queued_[engine].begin());
      queued_[engine].erase(queued_[engine].begin());
      arrive(*next);
    }
  }

  void go_on(Lane& lane, Task& task) {
    retire(lane, task);
    if (lane.token.remove(1)) return;
    const std::lock_guard lock(ready_lock_);
    ready_.insert({lane.level, lane.stream.number, &lane});
  }

  struct Moment {
    std::uint64_t at;
    std::uint8_t level;
    std::uint32_t stream_number;
    std::uint64_t order;
    Lane* lane;                           // whose task ends; null: a timer
    std::shared_ptr<StreamState> stream;  // of a timer
    std::uint64_t park;
    bool operator<(const Moment& o) const {
      return std::tie(o.at, o.level, o.stream_number, o.order) < std::tie(at, level, stream_number, order);
    }
  };

  DeviceState& device_;
  const Profile& profile_;
  Delays delays_;

  // Between hosts.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool driving_ = false;
  std::uint64_t submissions_ = 0;
  std::atomic<std::thread::id> driver_{};
  SpinLock ready_lock_;
  std::set<std::tuple<std::uint8_t, std::uint32_t, Lane*>> ready_;
  std::atomic<std::uint64_t> pushes_{0};

  // The driver's.
  std::atomic<std::uint64_t> now_{0};
  std::uint64_t order_ = 0;
  std::priority_queue<Moment> moments_;
  std::vector<std::uint32_t> free_slots_;  // by engine
  std::vector<std::set<std::tuple<std::uint8_t, std::uint64_t, Lane*>>> queued_;
};

}  // namespace

std::unique_ptr<Machine> make_sim_machine(DeviceState& device) { return std::make_unique<SimMachine>(device); }

}  // namespace millstream::rt
