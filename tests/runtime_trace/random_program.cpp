// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime_trace/random_program.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "millstream/runtime/objects.h"
#include "tests/runtime_trace/checker.h"
#include "tests/runtime_trace/random_model.h"

namespace millstream::rt {
namespace {

// A handle that one thread may replace while others use it.
template <class T>
class Shared {
 public:
  void put(T object) {
    auto made = std::make_shared<T>(std::move(object));
    share(std::move(made));
  }
  void share(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    object_.swap(object);
  }
  std::shared_ptr<T> get() {
    const std::lock_guard lock(mutex_);
    return object_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    object_.reset();
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<T> object_;
};

struct Lanes {
  std::uint32_t context = 0;
  std::uint32_t owner = 0;
  Shared<Stream> stream;
  // The kernels', the last of them: a stream that was dropped at once may still run a task, on the number it had.
  std::deque<std::uint64_t> numbers = {0};
  std::uint64_t* number() { return &numbers.back(); }
  std::uint64_t expected = 0;  // the owner's
};

// A model, or none yet. One with a home is executed there only, so what it leaves is known to what follows there.
struct Instance {
  std::uint32_t context = 0;
  std::uint32_t owner = 0;
  std::uint32_t home = 0;
  bool at_home = false;
  Shared<RandomModel> model;
  std::atomic<std::uint32_t> executions{0};  // not yet expected
};

// The programs that run now, for the watchdog.
struct Running {
  std::string name;
  std::shared_ptr<DeviceState> device;
  std::chrono::steady_clock::time_point since;
};
std::mutex running_mutex;
std::map<const void*, Running> running;

class Program {
 public:
  Program(std::uint64_t seed, const ProgramPlace& place) : seed_(seed), place_(place), random_{mix(seed, 1)} {
    calm_ = random_.one_in(3);
    threads_ = 1 + (random_.one_in(2) ? random_.below(3) : 0);
    profile_.workers = place.workers != 0 ? place.workers : (const std::uint32_t[]){1, 2, 8}[random_.below(3)];
    profile_.callback_threads = 1 + random_.below(2);
    profile_.orphan_wait_ms = 3;
    profile_.engine_slots = {1 + random_.below(2), 1};
    profile_.tasks_per_stream = random_.one_in(4) ? 4 : 1024;
    profile_.devices = 4;
    if (random_.one_in(2)) profile_.delay_seed = seed;
    profile_.max_tasks_per_execution = 400;
    // What runs straight through has a faster way that shows in no trace.
    traced_ = place.backend == BackendId::sim || !calm_ || !random_.one_in(3);
  }

  ProgramRun run() {
    ProgramRun out;
    out.one_host = threads_ == 1;
    Result<Device> device = Device::open(place_.backend, place_.ordinal, profile_);
    if (!device.ok()) return complain(out, "open: " + to_string(device.error()));
    const std::shared_ptr<DeviceState> state = device->state();
    {
      const std::lock_guard lock(running_mutex);
      running[this] = {title(), state, std::chrono::steady_clock::now()};
    }
    if (traced_) device->start_trace();
    create(*device);
    std::vector<std::thread> hosts;
    for (std::uint32_t t = 1; t < threads_; ++t) hosts.emplace_back([this, t] { host(t); });
    host(0);
    for (std::thread& h : hosts) h.join();
    finish(*device);
    {
      const std::lock_guard lock(running_mutex);
      running.erase(this);
    }
    out.trace = state->trace.take();
    if (wrong_codes_ != 0) note("a call from a host function did not fail with in_callback");
    if (state->lanes_parked.load() != 0 || state->hosts_blocked.load() != 0) note("the device counts parked streams or blocked hosts at its end");
    if (state->lanes_abroad.load() != 0) note("the device counts streams that wait for another device, of which there is none");
    if (state->event_ids.in_use() != 0) note(fmt::format("{} event ids are in use at the end", state->event_ids.in_use()));
    if (state->notify_numbers.in_use() != 0) note("notify numbers are in use at the end");
    if (state->stream_numbers.in_use() != 0) note(fmt::format("{} stream numbers are in use at the end", state->stream_numbers.in_use()));
    if (state->model_numbers.in_use() != 0) note(fmt::format("{} model numbers are in use at the end", state->model_numbers.in_use()));
    if (state->label_numbers.in_use() != 0) note(fmt::format("{} label numbers are in use at the end", state->label_numbers.in_use()));
    const bool sim = place_.backend == BackendId::sim;
    if (const auto refused = traced_ ? check_trace(out.trace, {sim && threads_ == 1, !sim, true}) : std::nullopt) note(*refused);
    if (!wrong_.empty()) out.wrong = fmt::format("{}: {}", title(), wrong_);
    return out;
  }

 private:
  std::string title() const {
    return fmt::format("seed {} on {} ({} workers, {} hosts{}{})", seed_, place_.backend == BackendId::cpu ? "cpu" : "sim", profile_.workers,
                       threads_, calm_ ? ", calm" : "", profile_.delay_seed ? ", delays" : "");
  }
  ProgramRun& complain(ProgramRun& out, const std::string& text) {
    out.wrong = fmt::format("{}: {}", title(), text);
    return out;
  }
  void note(const std::string& text) {
    const std::lock_guard lock(wrong_mutex_);
    if (wrong_.empty()) wrong_ = text;
  }

  void create(Device& device) {
    contexts_.push_back(std::make_unique<Context>(device.primary()));
    if (random_.one_in(2)) contexts_.push_back(std::make_unique<Context>(std::move(*device.create_context())));
    const std::uint32_t streams = std::max(threads_, 1 + random_.below(5));
    for (std::uint32_t i = 0; i < streams; ++i) {
      Lanes& lane = lanes_.emplace_back();
      lane.context = random_.below(static_cast<std::uint32_t>(contexts_.size()));
      lane.owner = i % threads_;
      lane.stream.put(random_.one_in(6) ? contexts_[lane.context]->default_stream() : new_stream(lane.context, random_));
    }
    for (std::uint32_t c = 0; c < contexts_.size(); ++c) {
      for (int i = 0; i < 2; ++i) {
        snapshots_.emplace_back().put(std::move(*contexts_[c]->create_event(Event::Kind::snapshot, {true, random_.one_in(2)})));
        event_context_.push_back(c);
        latches_.emplace_back().put(std::move(*contexts_[c]->create_event(Event::Kind::latch, {true, random_.one_in(2)})));
        notifies_.emplace_back().put(std::move(*contexts_[c]->create_notify()));
      }
      StreamOptions options;
      options.persistent = options.shared = options.huge = true;
      shared_.push_back(std::move(*contexts_[c]->create_stream(options)));
    }
    for (std::uint32_t i = random_.below(4); i != 0; --i) {
      Instance& instance = instances_.emplace_back();
      instance.home = random_.below(streams);
      instance.context = lanes_[instance.home].context;
      instance.owner = lanes_[instance.home].owner;
      instance.at_home = random_.one_in(2);
    }
  }

  Stream new_stream(std::uint32_t context, Random& random) {
    StreamOptions options;
    if (random.one_in(2)) options.priority = static_cast<std::int32_t>(random.below(8));
    options.fast_launch = random.one_in(4);
    options.fast_sync = random.one_in(4);
    Result<Stream> s = contexts_[context]->create_stream(options);
    MST_CHECK(s.ok(), to_string(s.error()));
    return std::move(*s);
  }

  // One host thread.
  void host(std::uint32_t thread) {
    Random random{mix(seed_, 100 + thread)};
    std::vector<std::uint32_t> own;
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[i].owner == thread) own.push_back(i);
    }
    const std::uint32_t calls = place_.size / 4 + random.below(place_.size);
    for (std::uint32_t i = 0; i < calls; ++i) call(random, own);
  }

  // Whether the answer is one that such a program may get.
  void allow(const char* what, const Result<void>& answer, std::initializer_list<ErrorCode> calm_too = {}) {
    if (answer.ok()) return;
    const ErrorCode code = answer.error().code;
    for (const ErrorCode c : calm_too) {
      if (c == code) return;
    }
    static const std::set<ErrorCode> wild = {ErrorCode::context_stopped, ErrorCode::deadlock,      ErrorCode::stream_aborted,
                                             ErrorCode::wait_timeout,    ErrorCode::kernel_failed, ErrorCode::host_func_failed,
                                             ErrorCode::bad_handle,      ErrorCode::model_aborted, ErrorCode::task_timeout,
                                             ErrorCode::bad_state};
    if (!calm_ && wild.count(code)) return;
    if (threads_ > 1 && code == ErrorCode::bad_handle) return;  // another host has closed it
    note(fmt::format("{} answers: {}", what, to_string(answer.error())));
  }
  void allow(const char* what, const Result<bool>& answer) {
    if (!answer.ok()) allow(what, Result<void>(answer.error()));
  }
  static constexpr std::initializer_list<ErrorCode> kTaskErrors = {ErrorCode::kernel_failed, ErrorCode::host_func_failed};
  static constexpr std::initializer_list<ErrorCode> kSyncErrors = {ErrorCode::kernel_failed, ErrorCode::host_func_failed, ErrorCode::sync_timeout};

  std::uint64_t* new_cell() {
    const std::lock_guard lock(cells_mutex_);
    cells_.push_back(0);
    return &cells_.back();
  }

  // Launches an update in a stream of the caller, and says what it comes to.
  void update(Random& random, Lanes& lane, const std::uint64_t* read, std::uint64_t read_value, std::uint64_t* write, const KernelFunction* kernel = nullptr) {
    const Update u{lane.number(), random.next(), read, write};
    if (kernel == nullptr) kernel = random.one_in(5) ? &kSlowUpdate : &kUpdate;
    const std::size_t bytes = read == nullptr && write == nullptr ? 16 : sizeof u;
    const Result<void> done = lane.stream.get()->launch(*kernel, {}, std::as_bytes(std::span(&u, 1)).first(bytes));
    allow("launch", done);
    if (!done.ok()) return;
    Update expected{&lane.expected, u.id, read == nullptr ? nullptr : &read_value, nullptr};
    apply(expected);
  }

  Deadline deadline(Random& random) {
    return random.one_in(2) ? never : Deadline(std::chrono::microseconds(50 + random.below(3000)));
  }

  void call(Random& random, const std::vector<std::uint32_t>& own) {
    if (!instances_.empty() && random.one_in(5)) return use(random, instances_[random.below(static_cast<std::uint32_t>(instances_.size()))], own.front());
    Lanes& lane = lanes_[own[random.below(static_cast<std::uint32_t>(own.size()))]];
    // Of any thread, for what leaves numbers alone.
    Lanes& any = lanes_[random.below(static_cast<std::uint32_t>(lanes_.size()))];
    const std::uint32_t e = random.below(static_cast<std::uint32_t>(snapshots_.size()));
    const auto in_context = [&](std::uint32_t c) {  // an event of the stream's own context
      return event_context_[e] == c ? e : static_cast<std::uint32_t>((e + 2) % snapshots_.size());
    };
    const std::uint32_t draw = random.below(100);
    if (draw < 26) return update(random, lane, nullptr, 0, nullptr);
    if (draw < 38) return transfer(random, own, lane);
    if (draw < 45) return allow("record", any.stream.get()->record(*snapshots_[in_context(any.context)].get()));
    if (draw < 52) return allow("wait", any.stream.get()->wait(*snapshots_[e].get(), calm_ ? never : deadline(random)));
    if (draw < 56) return callback(random, lane);
    if (draw < 58) return allow("fill", any.stream.get()->fill(new_cell(), 8, 1, 8));
    if (draw < 60) return update(random, lane, nullptr, 0, nullptr, random.one_in(2) ? &kFail : &kThrow);
    if (draw < 63) return allow("synchronize", any.stream.get()->synchronize(deadline(random)), kSyncErrors);
    if (draw < 66) return allow("query", any.stream.get()->query());
    if (draw < 69) return allow("event query", snapshots_[e].get()->query());
    if (draw < 71) return allow("event synchronize", snapshots_[e].get()->synchronize(), {});
    if (draw < 72) return allow("context synchronize", contexts_[any.context]->synchronize(deadline(random)), kSyncErrors);
    if (draw < 73) {
      const auto old = lane.stream.get();
      if (old->state()->is_default) return;
      const Close how = calm_ || random.one_in(2) ? Close::drain : Close::drop;
      allow("close", old->close(how), kTaskErrors);
      if (how == Close::drop) lane.numbers.push_back(0);
      return lane.stream.put(new_stream(lane.context, random));
    }
    if (draw < 74) {
      snapshots_[e].put(std::move(*contexts_[event_context_[e]]->create_event(Event::Kind::snapshot)));
      return;
    }
    if (draw < 75) {
      const Result<void> tried = any.stream.get()->try_launch(kNothing, {2}, {});
      return allow("try_launch", tried, {ErrorCode::stream_full});
    }
    if (calm_) return;
    Event& latch = *latches_[e].get();
    Event& own_latch = *latches_[in_context(any.context)].get();
    Notify& notify = *notifies_[in_context(any.context)].get();
    if (draw < 80) return allow("record latch", any.stream.get()->record(own_latch));
    if (draw < 84) return allow("wait latch", any.stream.get()->wait(latch, deadline(random)));
    if (draw < 86) return allow("reset latch", any.stream.get()->reset(own_latch));
    if (draw < 87) return allow("latch synchronize", latch.synchronize(std::chrono::microseconds(500)), {ErrorCode::event_sync_timeout});
    if (draw < 91) return allow("record notify", any.stream.get()->record(notify));
    if (draw < 94) return allow("wait notify", any.stream.get()->wait(notify, deadline(random)));
    if (draw < 95) return allow("abort", any.stream.get()->abort());
    if (draw < 96 && random.one_in(2)) {
      return allow("set_failure_mode", any.stream.get()->set_failure_mode(FailureMode::stop), {ErrorCode::bad_state, ErrorCode::null_argument});
    }
    if (draw < 98) return allow("recover", contexts_[any.context]->recover());
    contexts_[any.context]->take_errors();
  }

  // A model: built, executed, ended. `mine`: a stream of the calling thread.
  void use(Random& random, Instance& instance, std::uint32_t mine) {
    const bool owned = lanes_[mine].owner == instance.owner;
    const auto model = instance.model.get();
    if (model == nullptr) return owned ? build(random, instance) : void();
    const std::uint32_t draw = random.below(10);
    if (draw < 5) return execute_async(random, instance, *model, owned);
    if (draw < 8) {
      // The default stream's order is not the home's.
      if (instance.at_home && !(owned && lanes_[instance.home].stream.get()->state()->is_default)) return;
      const Result<void> done = model->model().execute(deadline(random));
      allow("execute", done, kSyncErrors);
      return executed(instance, *model);
    }
    if (draw == 8) return owned ? end(random, instance, *model) : void();
    if (calm_) return;
    if (random.one_in(3)) return allow("unbind", model->model().unbind(model->stream(random.below(8))), {ErrorCode::not_bound});
    allow("abort model", model->model().abort());
  }

  void build(Random& random, Instance& instance) {
    ModelPlace place;
    place.context = contexts_[instance.context].get();
    const auto home = lanes_[instance.home].stream.get();
    place.home = home.get();
    place.shared = &shared_[instance.context];
    {
      const std::lock_guard lock(cells_mutex_);
      place.memory = &memories_.emplace_back();
    }
    place.calm = calm_;
    for (auto* list : {&snapshots_, &latches_}) {
      for (auto& e : *list) place.events.push_back(e.get());
    }
    for (auto& n : notifies_) place.notifies.push_back(n.get());
    place.wrong_codes = &wrong_codes_;
    Result<std::shared_ptr<RandomModel>> model = RandomModel::build(random.next(), place);
    if (!model.ok()) return allow("build", Result<void>(model.error()));
    instance.model.share(*model);
  }

  void execute_async(Random& random, Instance& instance, RandomModel& model, bool owned) {
    if (instance.at_home && !owned) return;
    Lanes* from = &lanes_[instance.home];
    for (int i = 0; i < 4 && !instance.at_home; ++i) {
      Lanes& other = lanes_[random.below(static_cast<std::uint32_t>(lanes_.size()))];
      if (other.context == instance.context) from = &other;
    }
    const Result<void> done = model.model().execute_async(*from->stream.get());
    allow("execute_async", done);
    if (!done.ok()) return;
    executed(instance, model);
    if (calm_ && instance.at_home && random.one_in(2)) update(random, *from, model.result(), model.expected_result(), nullptr);
  }

  void executed(Instance& instance, RandomModel& model) {
    if (!calm_) return;
    if (instance.at_home) {
      model.expect_execution();
    } else {
      ++instance.executions;
    }
  }

  // Executions of a calm one are over before it ends, so that each of them counts.
  void end(Random& random, Instance& instance, RandomModel& model) {
    if (calm_ && !instance.at_home) return;
    if (calm_) {
      allow("synchronize before a model's end", lanes_[instance.home].stream.get()->synchronize(), kTaskErrors);
      if (!model.as_expected()) note("a model's numbers differ from a serial run's");
    }
    if (random.one_in(2)) allow("close model", model.model().close());
    instance.model.clear();
  }

  // A number from one stream to another of the same thread, by an event of its own, a latch or a notify. Where another thread
  // may abort the stream that reads, between its wait and what it reads, nothing orders the two.
  void transfer(Random& random, const std::vector<std::uint32_t>& own, Lanes& from) {
    Lanes& to = lanes_[own[random.below(static_cast<std::uint32_t>(own.size()))]];
    std::uint64_t* const cell = new_cell();
    const KernelFunction* const loose = calm_ ? nullptr : &kLooseUpdate;
    const bool copies = random.one_in(3);
    if (copies) allow("copy", from.stream.get()->copy(calm_ ? cell : new_cell(), 8, from.number(), 8, CopyKind::device_to_device));
    if (!copies || !calm_) update(random, from, nullptr, 0, cell, loose);
    const std::uint64_t value = from.expected;
    const std::uint32_t how = random.below(from.context == to.context ? 3 : 2);
    if (how == 2) {
      Notify notify = std::move(*contexts_[from.context]->create_notify());
      if (!hand_over(from.stream.get()->record(notify), to, notify)) return;
    } else {
      Result<Event> event = contexts_[from.context]->create_event(how == 0 ? Event::Kind::snapshot : Event::Kind::latch);
      if (!event.ok()) return note(to_string(event.error()));
      if (!hand_over(from.stream.get()->record(*event), to, *event)) return;
    }
    update(random, to, cell, value, nullptr, loose);
  }

  // Whether the stream that is to read waits for the record. One that was refused orders nothing: what writes the number
  // may still run.
  template <class What>
  bool hand_over(const Result<void>& recorded, Lanes& to, What& what) {
    allow("record", recorded);
    if (!recorded.ok()) return false;
    const Result<void> waits = to.stream.get()->wait(what);
    allow("wait", waits);
    return waits.ok();
  }

  void callback(Random& random, Lanes& lane) {
    auto c = std::make_unique<Callback>();
    c->update = {lane.number(), random.next(), nullptr, nullptr};
    c->context = contexts_[lane.context].get();
    c->throws = random.one_in(6);
    c->wrong_codes = &wrong_codes_;
    const Result<void> done = lane.stream.get()->host_func(call_back, c.get());
    allow("host_func", done);
    if (done.ok()) {
      Update expected{&lane.expected, c->update.id, nullptr, nullptr};
      apply(expected);
    }
    const std::lock_guard lock(cells_mutex_);
    callbacks_.push_back(std::move(c));
  }

  void finish(Device& device) {
    for (auto& context : contexts_) {
      for (int i = 0;; ++i) {
        const Result<void> done = context->synchronize();
        if (done.ok()) break;
        allow("last synchronize", done, kTaskErrors);
        if (context->state()->stopped.load()) allow("last recover", context->recover());
        if (i == 1000) return note("the last synchronise fails for ever: " + to_string(done.error()));
      }
    }
    for (std::size_t i = 0; calm_ && i < lanes_.size(); ++i) {
      if (*lanes_[i].number() != lanes_[i].expected) note(fmt::format("the numbers of stream {} differ from a serial run's", lanes_[i].stream.get()->number()));
    }
    for (Instance& instance : instances_) {
      const auto model = instance.model.get();
      if (model == nullptr || !calm_) continue;
      for (std::uint32_t i = instance.executions; i != 0; --i) model->expect_execution();
      if (!model->as_expected()) note(fmt::format("a model's numbers differ from a serial run's after {} executions", instance.executions.load()));
    }
    instances_.clear();
    shared_.clear();
    for (Lanes& lane : lanes_) lane.stream.clear();
    snapshots_.clear();
    latches_.clear();
    notifies_.clear();
    while (contexts_.size() > 1) {
      if (random_.one_in(2)) allow("close context", contexts_.back()->close(), kTaskErrors);
      contexts_.pop_back();
    }
    // An execution goes on when the stream that asked for it is destroyed at once, and may be stuck when all streams are done.
    allow("reset", device.reset(ResetMode::counted));
  }

  const std::uint64_t seed_;
  const ProgramPlace place_;
  Random random_;
  bool traced_ = true;
  bool calm_ = false;  // nothing is dropped, so numbers are known
  std::uint32_t threads_ = 1;
  Profile profile_;

  std::mutex cells_mutex_;
  std::deque<std::uint64_t> cells_;
  std::deque<std::deque<std::uint64_t>> memories_;  // of models
  std::vector<std::unique_ptr<Callback>> callbacks_;
  std::atomic<int> wrong_codes_{0};

  std::vector<std::unique_ptr<Context>> contexts_;
  std::deque<Lanes> lanes_;
  std::deque<Shared<Event>> snapshots_, latches_;
  std::vector<std::uint32_t> event_context_;
  std::deque<Shared<Notify>> notifies_;

  std::vector<Stream> shared_;  // by context
  std::deque<Instance> instances_;

  std::mutex wrong_mutex_;
  std::string wrong_;
};

// What every stream had left to do.
std::string unfinished(const std::vector<TraceEvent>& trace) {
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::string> left;
  std::map<std::uint64_t, std::string> executions;
  for (const TraceEvent& e : trace) {
    const std::tuple key{e.stream_serial, e.execution == 0 ? 0 : e.model_serial, e.sequence};
    if (e.kind == TraceEvent::Kind::execution_asked) executions[e.object] = fmt::format("execution {} of model {}, asked for", e.object, e.model);
    if (e.kind == TraceEvent::Kind::execution_begin) executions[e.object] += ", running";
    if (e.kind == TraceEvent::Kind::execution_end) executions.erase(e.object);
    if (e.kind == TraceEvent::Kind::began && e.execution != 0) left[key] = fmt::format("stream {} of model {} task {} ({}, object {})", e.stream, e.model, e.sequence, e.name, e.object);
    if (e.kind == TraceEvent::Kind::submitted) left[key] = fmt::format("stream {} task {} ({}, object {})", e.stream, e.sequence, e.name, e.object);
    if (e.kind == TraceEvent::Kind::began) left[key] += ", running";
    if (e.kind == TraceEvent::Kind::ended || e.kind == TraceEvent::Kind::dropped) left.erase(key);
  }
  std::string text;
  for (const auto& [object, line] : executions) text += "  " + line + "\n";
  for (const auto& [key, line] : left) text += "  " + line + "\n";
  return text;
}

}  // namespace

ProgramRun run_random_program(std::uint64_t seed, const ProgramPlace& place) { return Program(seed, place).run(); }

std::string to_text(const std::vector<TraceEvent>& trace) {
  std::string text;
  for (const TraceEvent& e : trace) {
    text += fmt::format("{} {} {} {}/{} {}/{} {} {} {} {} {} {} {} {}", e.stamp, to_string(e.kind), e.name, e.stream, e.stream_serial, e.context,
                        e.context_serial, e.sequence, e.object, e.worker, e.thread, e.event, e.latch, e.stops, e.time_ns);
    if (e.model != TraceEvent::kNoModel) text += fmt::format(" model {}/{} execution {}", e.model, e.model_serial, e.execution);
    text += '\n';
  }
  return text;
}

namespace {
std::mutex watch_mutex;
std::condition_variable watch_ends;
bool watch_over = false;
std::thread watcher;
}  // namespace

Watchdog::Watchdog(std::uint32_t seconds) {
  watch_over = false;
  watcher = std::thread([seconds] {
    std::unique_lock lock(watch_mutex);
    while (!watch_ends.wait_until(lock, std::chrono::system_clock::now() + std::chrono::seconds(1), [] { return watch_over; })) {
      const std::lock_guard now(running_mutex);
      for (const auto& [program, r] : running) {
        if (std::chrono::steady_clock::now() - r.since < std::chrono::seconds(seconds)) continue;
        std::fprintf(stderr, "HANGS: %s, after %u s; left to do:\n%s%u streams parked, %u hosts blocked\n", r.name.c_str(), seconds,
                     unfinished(r.device->trace.take()).c_str(), r.device->lanes_parked.load(), r.device->hosts_blocked.load());
        std::abort();
      }
    }
  });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(watch_mutex);
    watch_over = true;
  }
  watch_ends.notify_all();
  watcher.join();
}

}  // namespace millstream::rt
