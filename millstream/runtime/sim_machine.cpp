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
#include "millstream/runtime/model_state.h"
#include "millstream/runtime/mover.h"
#include "millstream/runtime/step.h"

namespace millstream::rt {
namespace {

// A condition variable that is waited on against the system clock: what ThreadSanitizer of gcc 12 understands.
using Wall = std::chrono::system_clock;

class SimMachine final : public Machine {
 public:
  explicit SimMachine(DeviceState& device)
      : device_(device), profile_(device.profile), delays_(device.profile.delay_seed), engines_(std::max<std::size_t>(1, device.profile.engine_slots.size())) {
    for (std::size_t e = 0; e < device.profile.engine_slots.size(); ++e) engines_[e].slots = device.profile.engine_slots[e];
  }

  std::string_view name() const override { return "sim"; }
  std::uint64_t now_ns() override { return now_.load(std::memory_order_relaxed); }

  void make_ready(Lane& lane) override {
    {
      const std::lock_guard lock(ready_lock_);
      ready_.insert({lane.level, lane.stream.number, &lane});
      pushes_.fetch_add(1, std::memory_order_seq_cst);
    }
    if (!drives()) look_again();
  }

  bool may_wait() const override { return !drives(); }

  bool host_wait(Completion& completion, HostTimeout timeout, HostMode mode) override {
    const auto done = [&] { return completion.signal.done(); };
    const std::uint64_t until = timeout ? now_ns() + static_cast<std::uint64_t>(timeout->count()) : kNever;
    const BlockedHost blocked(device_);
    return drive(done, &completion, until, mode == HostMode::patient);
  }

  // The host function runs in the loop, at its virtual end.
  void run_callback(Lane& lane) override { start(lane, profile_.callback_us, 0, 0); }

  void arm_timer(Lane& lane, std::uint64_t park, std::uint64_t after_ns) override {
    moments_.push({now_ns() + after_ns, lane.level, lane.stream.number, order_++, &lane, keep(lane), park});
    ++timers_;
  }

  void wait_for_room(const std::function<bool()>& has_room) override {
    const BlockedHost blocked(device_);
    room_sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (!drive(has_room, nullptr, kNever, false)) {
    }
    room_sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  void room_made() override {
    if (room_sleepers_.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  void look_again() override {
    const std::lock_guard lock(mutex_);
    ++submissions_;
    changed_.notify_all();
  }
  void waits_abroad() override {}
  void move_for(std::weak_ptr<DeviceState> other) override { mover_.request(std::move(other)); }

  // One thing happens, here or on a device that lanes wait for.
  bool poll() override {
    if (std::find(polled_.begin(), polled_.end(), this) != polled_.end()) return false;
    polled_.push_back(this);
    const bool happened = poll_once();
    polled_.pop_back();
    return happened;
  }

  bool quiescent() override {
    const std::lock_guard lock(mutex_);
    const std::lock_guard ready(ready_lock_);
    const auto free = [](const Engine& engine) { return engine.queue.empty(); };
    return (!driving_ || looking_) && ready_.empty() && moments_.empty() && std::all_of(engines_.begin(), engines_.end(), free);
  }

  std::uint64_t activity() override { return pushes_.load(std::memory_order_seq_cst); }
  std::uint32_t replay_workers() const override { return 0; }
  void shut_down() override {
    mover_.join();
    decltype(moments_) left;  // timers keep streams, and with them the device
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !driving_; });
    left.swap(moments_);
    timers_ = 0;
    lock.unlock();
  }

 private:
  struct Engine {
    std::uint32_t slots = 1;
    std::uint32_t used = 0;        // numbers given out so far
    std::set<std::uint32_t> free;  // given back; the lowest goes first
    std::set<std::tuple<std::uint8_t, std::uint64_t, std::uint32_t, Lane*>> queue;
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static std::uint64_t ns(double us) { return static_cast<std::uint64_t>(std::llround(us * 1000)); }

  // Of a host that waits here, in a list of them; with mutex_ held when it begins and ends.
  class HostsDeadline {
   public:
    HostsDeadline(HostsDeadline*& first, std::uint64_t at) : at_(at), first_(first), next_(first) { first = this; }
    HostsDeadline(const HostsDeadline&) = delete;
    HostsDeadline& operator=(const HostsDeadline&) = delete;
    ~HostsDeadline() {
      HostsDeadline** mine = &first_;
      while (*mine != this) mine = &(*mine)->next_;
      *mine = next_;
    }
    // The first of the list that has not passed.
    static std::uint64_t next(const HostsDeadline* first, std::uint64_t now) {
      std::uint64_t next = kNever;
      for (; first != nullptr; first = first->next_) {
        if (first->at_ >= now) next = std::min(next, first->at_);
      }
      return next;
    }

   private:
    const std::uint64_t at_;
    HostsDeadline*& first_;
    HostsDeadline* next_;
  };

  bool drives() const { return driver_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  void take_wheel(std::unique_lock<std::mutex>& lock) {
    driving_ = true;
    driver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    lock.unlock();
  }
  void leave_wheel(std::unique_lock<std::mutex>& lock) {
    lock.lock();
    driver_.store(std::thread::id(), std::memory_order_relaxed);
    driving_ = false;
    looking_ = false;
    changed_.notify_all();
  }

  bool poll_once() {
    std::unique_lock lock(mutex_);
    if (driving_) return false;  // whoever drives, this thread perhaps, goes on
    const std::uint64_t until = HostsDeadline::next(deadlines_, now_ns());
    take_wheel(lock);
    looked_ = std::max(looked_, Wall::now() - std::chrono::milliseconds(1));
    bool late = false;
    bool happened = step(until, OwnKernel::goes_on, late);
    if (late) {  // the host whose deadline is next says whether it passes
      happened = !gives_way(until) && step(kNever, OwnKernel::goes_on, late);
    } else if (!happened) {
      const std::optional<Stuck> stuck = look_dry();
      happened = stuck && stuck->certain;
    }
    leave_wheel(lock);
    lock.unlock();
    if (happened) return true;
    const auto others = moving_towards(device_, OwnKernel::goes_on);
    if (!Mover::runs_here()) return move_devices(others, *this, [] { return false; });
    for (const auto& other : others) other->machine->move_for(device_.weak_from_this());
    return false;
  }

  // By the driver, when nothing is left to happen. What is certain is reported.
  std::optional<Stuck> look() {
    const std::uint64_t before = activity();
    std::optional<Stuck> stuck = find_stuck(device_);
    if (activity() != before) stuck.reset();
    if (stuck && stuck->certain) report(*stuck);
    return stuck;
  }

  // The same before it leaves the loop: a device that only looks does not move.
  std::optional<Stuck> look_dry() {
    {
      const std::lock_guard lock(mutex_);
      looking_ = true;
    }
    return look();
  }

  // Until nobody drives, or the wait is over. False: it stays in one host function.
  template <class Done>
  bool sleep_while_driven(std::unique_lock<std::mutex>& lock, const Done& done, std::uint64_t until) {
    const auto over = [&] {
      wake_at_.store(std::min(wake_at_.load(std::memory_order_relaxed), until), std::memory_order_seq_cst);
      return !driving_ || done() || now_.load(std::memory_order_seq_cst) > until;
    };
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool woken = true;
    if (profile_.callback_stall_ms == 0) {
      changed_.wait(lock, over);
    } else {
      woken = changed_.wait_until(lock, Wall::now() + std::chrono::milliseconds(profile_.callback_stall_ms), over);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return woken;
  }
  // By the driver, which has moved time: some host's deadline may have passed.
  void tell_late() {
    if (now_ns() <= wake_at_.load(std::memory_order_seq_cst)) return;
    const std::lock_guard lock(mutex_);
    wake_at_.store(kNever, std::memory_order_relaxed);  // who sleeps on says so again
    changed_.notify_all();
  }
  // By the driver: what hosts wait for may have come.
  void tell_sleepers() {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  // One host at a time runs the loop; others sleep until it leaves it or their own wait is over. False: `until` has come, or
  // the loop stands in a host function for longer than callback_stall_ms, or it is `patient` and the caller is to look.
  template <class Done>
  bool drive(const Done& done, const Awaited* awaited, std::uint64_t until, bool patient) {
    std::vector<std::shared_ptr<DeviceState>> others;  // let go without the lock
    std::unique_lock lock(mutex_);
    const HostsDeadline deadline(deadlines_, until);
    bool dry = false;               // nothing can happen unless another host submits something
    Wall::time_point dry_until;     // so long
    std::uint64_t dry_at = 0;       // since so many submissions
    bool away = false;              // another device is what moves, or has moved, without a submission here
    Wall::time_point away_since;
    std::uint64_t away_at = 0;
    bool begun = false;
    while (!done()) {
      if (now_ns() > until) return false;
      if (driving_) {
        if (!sleep_while_driven(lock, done, until)) return false;
        continue;
      }
      const std::uint64_t submitted = submissions_;
      take_wheel(lock);
      if (!std::exchange(begun, true)) looked_ = Wall::now();
      bool late = false;
      while (!done() && !late && step(until, OwnKernel::waits, late)) tell_late();
      const bool over = done();
      std::optional<Stuck> stuck;
      if (!over && !late) stuck = look_dry();
      bool holds = true;  // the deadline, now
      if (!over) {
        others = moving_towards(device_, OwnKernel::waits);
        holds = (others.empty() || (late && !moves_towards(device_, *awaited, OwnKernel::waits)) || !gives_way(until)) && !on_its_way();
      }
      leave_wheel(lock);
      if (over) return true;
      if (late && holds && !any_ready()) {
        pass_to(until);
        return done();
      }
      if ((stuck && stuck->certain) || submissions_ != submitted || any_ready()) continue;
      if (!others.empty()) {
        if (!std::exchange(away, true) || away_at != submitted) away_since = Wall::now();
        away_at = submitted;
        if (patient && until == kNever && Wall::now() - away_since >= patience()) return done();
        if (until != kNever && holds && moments_.empty()) {
          pass_to(until);
          return done();
        }
        lock.unlock();
        const bool moved = move_devices(others, *this, done);
        others.clear();
        lock.lock();
        if (!moved) wait_for_submission(lock, Wall::now() + std::chrono::milliseconds(1), submitted, done);
        dry = false;
        continue;
      }
      if (!dry || dry_at != submitted) {  // who could submit something gets some real time to do so
        dry = true;
        dry_until = Wall::now() + patience();
        dry_at = submitted;
      }
      if (Wall::now() < dry_until) {
        const auto soon = Wall::now() + std::chrono::milliseconds(16);  // what goes on abroad nobody tells
        wait_for_submission(lock, device_.lanes_abroad.load(std::memory_order_seq_cst) != 0 ? std::min(dry_until, soon) : dry_until, submitted, done);
        continue;
      }
      dry = false;
      if (stuck && (until == kNever || until >= now_ns() + ns(profile_.orphan_wait_ms * 1000.0))) {
        lock.unlock();
        report(*stuck);
        lock.lock();
      } else if (patient && (until == kNever || until >= now_ns() + ns(profile_.orphan_wait_ms * 1000.0))) {
        return done();
      } else if (until != kNever) {  // nobody will: the virtual deadline passes
        pass_to(until);
        return done();
      }
    }
    return true;
  }

  template <class Done>
  void wait_for_submission(std::unique_lock<std::mutex>& lock, Wall::time_point until, std::uint64_t submitted, const Done& done) {
    changed_.wait_until(lock, until, [&] { return submissions_ != submitted || done(); });
  }
  bool any_ready() {
    const std::lock_guard lock(ready_lock_);
    return !ready_.empty();
  }

  // By the driver. False: nothing is left to happen. `late`: what is next lies behind `until`. Everything that happens
  // at a moment comes before slots are given out at it, so ties go by priority and stream and not by who was first.
  bool step(std::uint64_t until, OwnKernel own, bool& late) {
    if (Lane* lane = take_ready()) {
      arrive(*lane);
      return true;
    }
    const bool now = !moments_.empty() && moments_.top().at <= now_ns();
    if (!now && start_launches()) return true;
    if (moments_.empty()) return false;
    if (moments_.top().owner) {
      if (before_timer()) return true;
      if (moments_.top().at <= until && ((moves_towards(device_, *moments_.top().lane, own) && gives_way(moments_.top().at)) || on_its_way())) return false;
      if (any_ready()) return true;  // what it waits for has come meanwhile
    }
    if (moments_.top().at > until) {
      late = true;
      return true;
    }
    const Moment moment = moments_.top();
    moments_.pop();
    if (moment.owner) --timers_;
    if (moment.owner && !in_park(*moment.lane, moment.park)) return true;  // its wait was over before
    pass_to(moment.at);
    if (moment.owner) {
      unpark(*moment.lane, Wake::timed_out, moment.park);
    } else {
      end(*moment.lane);
    }
    return true;
  }

  // A time-out is what happens next, unless its wait is over. If nothing else is left, streams that wait for each other without
  // any need not see it pass. True: look again.
  bool before_timer() {
    bool over = false;
    for (; !moments_.empty() && moments_.top().owner && !in_park(*moments_.top().lane, moments_.top().park); over = true) {
      moments_.pop();
      --timers_;
    }
    if (over) return true;
    if (moments_.size() != timers_ || std::exchange(looked_at_, activity()) == activity()) return false;
    const std::optional<Stuck> stuck = look();
    return stuck && stuck->certain;
  }

  // By the driver, while another device moves towards what waits until `at`. Two clocks have nothing in common: it may, for as long
  // as that is in real time; but only what has passed while hosts looked counts, since only then does virtual time move there.
  bool gives_way(std::uint64_t at) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(held_at_, submissions_) != submissions_) {
        held_from_ = now_ns();
        held_for_ = {};
      }
    }
    const Wall::time_point before = std::exchange(looked_, Wall::now());
    held_for_ += std::max<Nanoseconds>(Nanoseconds(0), looked_ - before);
    return held_for_ < std::max<Nanoseconds>(patience(), Nanoseconds(at - std::min(at, held_from_)));
  }

  // By the driver: another device has let a lane go, which is not in the ready set yet. Who asks behind this whether any is ready
  // misses none.
  bool on_its_way() {
    if (device_.lanes_abroad.load(std::memory_order_seq_cst) == 0) return false;
    const std::size_t moving = moving_lanes(device_);
    const std::lock_guard lock(ready_lock_);
    std::size_t known = ready_.size() + moments_.size() - timers_;
    for (const Engine& engine : engines_) known += engine.queue.size();
    return moving > known;
  }

  std::chrono::milliseconds patience() const { return std::chrono::milliseconds(std::max(1u, profile_.orphan_wait_ms)); }

  void pass_to(std::uint64_t at) { now_.store(std::max(now_ns(), at), std::memory_order_seq_cst); }

  static bool in_park(Lane& lane, std::uint64_t park) {
    const std::lock_guard lock(lane.park_lock);
    return lane.parked_on != nullptr && lane.parks == park;
  }

  Engine& engine_of(const Task& task) { return engines_[std::min<std::size_t>(task.launch.kernel->engine, engines_.size() - 1)]; }

  Lane* take_ready() {
    const std::lock_guard lock(ready_lock_);
    if (ready_.empty()) return nullptr;
    Lane* const lane = std::get<2>(*ready_.begin());
    ready_.erase(ready_.begin());
    return lane;
  }

  // The lane comes to its first task, or again to the one it was woken from.
  void arrive(Lane& lane) {
    if (first_task(lane) == nullptr) {  // a tape without tasks
      if (end_of_tape(lane)) make_ready(lane);
      return;
    }
    Task& task = *first_task(lane);
    // Who came at this very moment was not kept waiting.
    const bool handed_over = lane.woken && lane.arrived_ns < now_ns();
    if (!lane.woken) lane.arrived_ns = now_ns();
    switch (admit(lane, task)) {
      case Admission::run:
        if (task.kind == TaskKind::kernel) {
          engine_of(task).queue.insert({lane.level, lane.arrived_ns, lane.stream.number, &lane});
          return;
        }
        return start(lane, cost_us(task), handed_over ? profile_.hand_off_us : 0, 0);
      case Admission::drop:
        if (device_.trace.on()) device_.trace.dropped(lane, task, 0);
        discard(lane, task);
        go_on(lane, task);
        return tell_sleepers();
      case Admission::parked:
        return;
      case Admission::elsewhere:
        return run_callback(lane);
    }
  }

  // Launches that wait for a slot, by priority, then arrival, then stream. Admitted again: what was stopped meanwhile is
  // dropped, and the slot goes to the next.
  bool start_launches() {
    bool any = false;
    for (Engine& engine : engines_) {
      while (!engine.queue.empty() && (!engine.free.empty() || engine.used < engine.slots)) {
        Lane& lane = *std::get<3>(*engine.queue.begin());
        engine.queue.erase(engine.queue.begin());
        any = true;
        Task& task = *first_task(lane);
        if (admit(lane, task) == Admission::drop) {
          if (device_.trace.on()) device_.trace.dropped(lane, task, 0);
          discard(lane, task);
          go_on(lane, task);
          continue;
        }
        if (engine.free.empty()) {
          lane.slot = engine.used++;
        } else {
          lane.slot = *engine.free.begin();
          engine.free.erase(engine.free.begin());
        }
        start(lane, cost_us(task), 0, lane.slot);
      }
    }
    return any;
  }

  double cost_us(const Task& task) {
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
        return us + profile_.wait_us;
      case TaskKind::host_func:
        return us + profile_.callback_us;
      case TaskKind::site_record:
        return us + profile_.record_us;
      case TaskKind::site_wait:
      case TaskKind::outside_wait:
        return us + profile_.wait_us;
      case TaskKind::activate:
      case TaskKind::switch_to:
      case TaskKind::switch_n:
      case TaskKind::jump:
      case TaskKind::jump_by_index:
        return us + profile_.switch_us;
      case TaskKind::execute:
      case TaskKind::label:
      case TaskKind::marker:
        return 0;
    }
    return us;
  }

  // The task runs for `us`, from `latency_us` from now on.
  void start(Lane& lane, double us, double latency_us, std::uint32_t slot) {
    if (device_.trace.on()) device_.trace.began(lane, *first_task(lane), slot);
    moments_.push({now_ns() + ns(latency_us + us), lane.level, lane.stream.number, order_++, &lane, nullptr, 0});
  }

  // The lane's first task ends: its effect, then what comes behind it.
  void end(Lane& lane) {
    Task& task = *first_task(lane);
    if (task.kind == TaskKind::kernel) engine_of(task).free.insert(lane.slot);
    if (device_.trace.on()) device_.trace.ended(lane, task, task.kind == TaskKind::kernel ? lane.slot : 0);
    const auto polled = std::exchange(polled_, {});  // what a kernel asks for is asked anew
    if (task.kind == TaskKind::host_func) {
      tell_sleepers();  // it may take long, or wait for one of them
      call_host_func(lane, task);
    } else {
      perform(lane, task);
    }
    polled_ = polled;
    const bool told = task.kind == TaskKind::record || task.kind == TaskKind::marker || task.kind == TaskKind::execute;
    go_on(lane, task);
    if (told) tell_sleepers();
  }

  void go_on(Lane& lane, Task& task) {
    retire(lane, task);
    if (lane.binding != nullptr) {
      if (first_task(lane) == nullptr && !end_of_tape(lane)) return;
    } else {
      const bool last = lane.token.remove(1);
      room_made();
      if (last) return;
    }
    const std::lock_guard lock(ready_lock_);
    ready_.insert({lane.level, lane.stream.number, &lane});
  }

  struct Moment {
    std::uint64_t at;
    std::uint8_t level;
    std::uint32_t stream_number;
    std::uint64_t order;
    Lane* lane;                          // whose task ends, or whose time is over
    std::shared_ptr<Lane> owner;  // of a timer: keeps the lane
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
  HostsDeadline* deadlines_ = nullptr;
  bool looking_ = false;           // who drives has found nothing that could happen
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> room_sleepers_{0};
  std::atomic<std::uint64_t> wake_at_{kNever};  // the first deadline of those that sleep while another drives
  std::atomic<std::thread::id> driver_{};
  SpinLock ready_lock_;
  std::set<std::tuple<std::uint8_t, std::uint32_t, Lane*>> ready_;
  std::atomic<std::uint64_t> pushes_{0};

  // The driver's.
  std::atomic<std::uint64_t> now_{0};
  std::uint64_t order_ = 0;
  std::priority_queue<Moment> moments_;
  std::size_t timers_ = 0;        // among them
  std::uint64_t looked_at_ = 0;   // activity when only timers were left
  std::uint64_t held_at_ = 0;     // since so many submissions, time-outs have given way to another device
  std::uint64_t held_from_ = 0;   // from this moment on
  Nanoseconds held_for_{};        // so long in real time
  Wall::time_point looked_;       // up to here
  std::vector<Engine> engines_;

  Mover mover_{*this};  // ends first

  // Devices that the calling thread polls one for the other: two that wait for each other would move each other for ever.
  static thread_local std::vector<const SimMachine*> polled_;
};

thread_local std::vector<const SimMachine*> SimMachine::polled_;

}  // namespace

std::unique_ptr<Machine> make_sim_machine(DeviceState& device) { return std::make_unique<SimMachine>(device); }

}  // namespace millstream::rt
