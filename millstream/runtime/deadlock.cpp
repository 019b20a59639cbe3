// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/deadlock.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "millstream/runtime/model_state.h"
#include "millstream/runtime/step.h"

namespace millstream::rt {
namespace {

struct Parked {
  std::shared_ptr<Lane> lane;
  std::string name;                    // of the lane
  std::shared_ptr<ModelState> model;   // of its tape
  std::uint64_t park = 0;
  bool timed = false;                  // ends by itself
  const Awaited* on = nullptr;
  std::uint64_t home = 0;              // the device that records it
  std::string awaited;
  std::string text;
  std::vector<std::size_t> recorders;  // parked streams with a queued record of it, in order
  bool closed_world = false;           // in a model, for what only the model's own tapes record
  bool execution = false;              // for an execution: the model's own streams are what is stuck
};

// With its park_lock held, while it is parked: a tape's model is running.
std::string name(const Lane& lane) {
  return lane.binding == nullptr ? lane.stream.name() : fmt::format("{} in model {}", lane.stream.name(), lane.binding->model->number);
}

std::string describe(const Lane& lane, const Task& head, const std::string& awaited) {
  const std::string last = lane.last_kind == TaskKind::marker
                               ? std::string("before any other task")
                               : fmt::format("after task {} ({})", lane.last_sequence, std::string_view(lane.last_name.data(), lane.last_name_size));
  return fmt::format("{} of context {} waits for {} at task {}, {}", name(lane), lane.context.number, awaited, head.sequence, last);
}

const Awaited* recorded_by(const Task& task) {
  switch (task.kind) {
    case TaskKind::record:
    case TaskKind::marker:
      return task.sync.completion;
    case TaskKind::notify_record:
      return task.notify.notify;
    case TaskKind::site_record:
      return task.site.site;
    case TaskKind::execute:
      return task.execute.completion;
    default:
      return nullptr;
  }
}

// What a parked lane has still to do: what is queued, or the rest of its tape. With its park_lock held.
template <class Visit>
void for_each_task(Lane& lane, Visit visit) {
  if (lane.binding != nullptr) {
    const std::vector<Task>& tape = lane.binding->tape;
    for (std::size_t i = lane.place; i < tape.size(); ++i) visit(tape[i]);
    return;
  }
  const std::lock_guard queue(lane.queue.lock);
  lane.queue.for_each(visit);
}

// With the lane's park_lock held: it has tasks, and a host or a worker is about to see to them. What they record nobody
// can tell. On a busy machine a host may stand for long between its submit and the wake-up of the lane.
bool is_moving(const Lane& lane) { return lane.parked_on == nullptr && lane.token.pending() != 0; }

struct Survey {
  std::vector<Parked> parked;
  std::map<const Awaited*, std::vector<std::size_t>> recorders;  // of them, that hold a record of it
  bool moving = false;                                           // some other lane is
};

// Of every lane of the device, with its `control` held. While a lane's park_lock is held nobody can wake it, so its queue stands still; between lanes a host may
// change something, which the caller sees in Machine::activity.
Survey survey(DeviceState& device) {
  Survey all;
  auto& [out, recorders, moving] = all;
  for (const auto& context : device.live_contexts()) {
    for (const auto& lane : context->lanes()) {
      const std::lock_guard parked(lane->park_lock);
      moving = moving || is_moving(*lane);
      if (lane->parked_on == nullptr) continue;
      const std::size_t i = out.size();
      Parked p;
      p.lane = lane;
      p.name = name(*lane);
      p.park = lane->parks;
      p.timed = lane->park_timed;
      p.on = lane->parked_on;
      p.home = p.on->home();
      p.awaited = p.on->describe();
      out.push_back(std::move(p));
      if (lane->binding != nullptr) {
        out[i].model = lane->binding->model->shared_from_this();
        out[i].closed_world = dynamic_cast<const RecordSite*>(lane->parked_on) != nullptr;
        const std::lock_guard executions(context->executions_mutex);
        recorders[lane->binding->model->current.get()].push_back(i);
      } else if (const auto* completion = dynamic_cast<const Completion*>(lane->parked_on)) {
        out[i].execution = completion->what() == Completion::What::execution;
      }
      for_each_task(*lane, [&](const Task& task) {
        if (out[i].text.empty()) out[i].text = describe(*lane, task, out[i].awaited);
        const bool asked = task.kind == TaskKind::execute && recorded_by(task) == lane->parked_on;  // the model records it
        if (const Awaited* what = asked ? nullptr : recorded_by(task)) {
          auto& list = recorders[what];
          if (list.empty() || list.back() != i) list.push_back(i);
        }
      });
    }
  }
  // Executions that wait for those before them: what lets them begin is what runs.
  for (const auto& context : device.live_contexts()) {
    const std::lock_guard executions(context->executions_mutex);
    std::map<const ModelState*, std::set<std::size_t>> blocking;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].model && &out[i].lane->context == context.get()) blocking[out[i].model.get()].insert(i);
    }
    for (const auto& asked : context->executions) {
      std::set<std::size_t> by;
      for (const auto& [model, lanes] : blocking) {
        if (shares_stream(*model, *asked.model)) by.insert(lanes.begin(), lanes.end());
      }
      recorders[asked.completion.get()].assign(by.begin(), by.end());
      blocking[asked.model.get()].merge(by);  // who asked later waits for these too
    }
  }
  for (Parked& p : out) {
    if (const auto it = recorders.find(p.on); it != recorders.end()) p.recorders = it->second;
  }
  return all;
}

// Whether each waits for nothing but streams that are stuck themselves: one recorder that a host or its deadline may still
// let go would free all that wait for it. What no tape of a model records now, one that goes on may have recorded yet.
std::vector<bool> closed_in(const std::vector<Parked>& parked) {
  std::vector<bool> closed(parked.size());
  for (std::size_t i = 0; i < parked.size(); ++i) closed[i] = !parked[i].timed && (parked[i].closed_world || !parked[i].recorders.empty());
  const auto stuck = [&](std::size_t i) {
    const auto& r = parked[i].recorders;
    if (!r.empty()) return std::all_of(r.begin(), r.end(), [&](std::size_t other) { return closed[other]; });
    for (std::size_t other = 0; other < parked.size(); ++other) {
      if (parked[other].model == parked[i].model && !closed[other]) return false;
    }
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < parked.size(); ++i) {
      if (!closed[i] || stuck(i)) continue;
      closed[i] = false;
      changed = true;
    }
  }
  return closed;
}

constexpr std::size_t kNamed = 16;  // streams of a cycle that a report words

// The first cycle along first recorders that goes through `start`, else nothing.
std::vector<std::size_t> cycle_through(const std::vector<Parked>& parked, std::size_t start) {
  std::vector<std::size_t> path;
  std::vector<bool> seen(parked.size(), false);
  for (std::size_t at = start; !seen[at];) {
    seen[at] = true;
    path.push_back(at);
    if (parked[at].recorders.empty()) return {};
    at = parked[at].recorders.front();
    if (at == start) return path;
  }
  return {};
}

std::string cycle_text(const std::vector<Parked>& parked, const std::vector<std::size_t>& cycle) {
  std::string text = "the cycle: " + parked[cycle.front()].name;
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    if (k == kNamed && cycle.size() > kNamed + 1) {
      text += fmt::format(", and so on over {} more, back to {}", cycle.size() - kNamed, parked[cycle.front()].name);
      break;
    }
    text += fmt::format("{} waits for {}, recorded by {}", k == 0 ? "" : ", which", parked[cycle[k]].awaited, parked[cycle[(k + 1) % cycle.size()]].name);
  }
  return text;
}

// Devices that move towards what lanes of `here` wait for.
class Search {
 public:
  Search(DeviceState& here, OwnKernel own) : here_(here.id), own_(own) {}
  bool comes_back = false;  // a lane elsewhere waits for what `here` records

  // None found yet.
  bool goes_on() const { return moving_.empty(); }
  // Those it has looked at lie still all at once only if none has gone on since: what it saw last may have moved what it saw first.
  std::vector<std::shared_ptr<DeviceState>> moving() const {
    std::vector<std::shared_ptr<DeviceState>> out = moving_;
    for (const auto& [device, activity] : looked_at_) {
      if (out.empty() && device->machine->activity() != activity) out.push_back(device);
    }
    return out;
  }

  // The device that records it, if anything moves there or a wait there ends by itself, and those that its lanes wait for. One
  // of virtual time that stands in the calling thread's kernel moves only if that goes on; of what other threads' kernels wait
  // for nothing is known.
  void add(std::uint64_t home) {
    if (home == here_) comes_back = true;
    if (home == 0 || home == here_ || !seen_.insert(home).second) return;
    const std::shared_ptr<DeviceState> other = device_of(home);
    if (!other || (own_ == OwnKernel::waits && !other->machine->may_wait())) return;
    looked_at_.emplace_back(other, other->machine->activity());
    bool moves = !other->machine->quiescent();
    std::set<std::uint64_t> homes;
    for (const auto& context : other->live_contexts()) {
      for (const auto& lane : context->lanes()) {
        const std::lock_guard parked(lane->park_lock);
        moves = moves || is_moving(*lane) || (lane->parked_on != nullptr && lane->park_timed);
        if (lane->parked_on != nullptr) homes.insert(lane->parked_on->home());
      }
    }
    if (moves) moving_.push_back(other);
    for (const std::uint64_t next : homes) add(next);
  }

 private:
  const std::uint64_t here_;
  const OwnKernel own_;
  std::set<std::uint64_t> seen_;
  std::vector<std::pair<std::shared_ptr<DeviceState>, std::uint64_t>> looked_at_;  // with their activity before
  std::vector<std::shared_ptr<DeviceState>> moving_;
};

}  // namespace

std::optional<Stuck> find_stuck(DeviceState& device) {
  const std::lock_guard control(device.control);
  const Survey all = survey(device);
  if (all.moving) return std::nullopt;
  const std::vector<Parked>& parked = all.parked;
  Stuck out;
  const auto add = [&](std::size_t i, Error error) { out.waits.push_back({parked[i].lane, parked[i].park, std::move(error)}); };
  const std::vector<bool> closed = closed_in(parked);
  for (std::size_t i = 0; i < parked.size(); ++i) {
    const std::vector<std::size_t> cycle = closed[i] ? cycle_through(parked, i) : std::vector<std::size_t>{};
    if (cycle.empty()) continue;
    out.certain = true;
    Error error{ErrorCode::deadlock, "DEADLOCK: " + parked[i].text};
    error.note(cycle_text(parked, cycle));
    for (std::size_t k = 1; k < std::min(cycle.size(), kNamed); ++k) error.note(parked[cycle[k]].text);
    add(i, std::move(error).help("let one stream of the cycle record before it waits"));
  }
  // Inside a model only its own tapes can signal.
  for (std::size_t i = 0; i < parked.size(); ++i) {
    if (!closed[i] || !parked[i].recorders.empty()) continue;
    out.certain = true;
    add(i, Error{ErrorCode::deadlock, "DEADLOCK: " + parked[i].text}
               .note("no stream of the model that still runs records it")
               .help("record it on a path that runs, or wait only where it was recorded"));
  }
  if (!out.waits.empty()) return out;
  if (device.hosts_blocked.load(std::memory_order_seq_cst) == 0) return std::nullopt;
  if (std::any_of(parked.begin(), parked.end(), [](const Parked& p) { return p.timed; })) return std::nullopt;
  for (std::size_t i = 0; i < parked.size(); ++i) {
    if (!parked[i].recorders.empty() || parked[i].execution) continue;
    Search search(device, OwnKernel::waits);
    search.add(parked[i].home);
    if (!search.moving().empty()) continue;
    out.fingerprint = out.fingerprint * 1000003 + parked[i].lane->stream.number * 31 + parked[i].park + 1;
    add(i, Error{ErrorCode::deadlock, "DEADLOCK (suspected): " + parked[i].text}
               .note(fmt::format("no queued task of device {} records it, and none came in {} ms (`orphan_wait_ms`)", device.number,
                                 device.profile.orphan_wait_ms))
               .help("record it, or let the wait have a deadline (acl has none)"));
  }
  if (out.waits.empty()) return std::nullopt;
  return out;
}

std::vector<std::shared_ptr<DeviceState>> moving_towards(DeviceState& device, OwnKernel own) {
  if (device.lanes_abroad.load(std::memory_order_seq_cst) == 0) return {};
  std::set<std::uint64_t> homes;
  for (const auto& context : device.live_contexts()) {
    for (const auto& lane : context->lanes()) {
      const std::lock_guard parked(lane->park_lock);
      if (lane->parked_on != nullptr) homes.insert(lane->parked_on->home());
    }
  }
  Search search(device, own);
  for (const std::uint64_t home : homes) search.add(home);
  return search.moving();
}

namespace {

// From the parked lanes `from` on, along those that record what they wait for.
bool moves_towards(DeviceState& device, const std::vector<Parked>& parked, std::vector<std::size_t> from, OwnKernel own) {
  Search search(device, own);
  std::vector<bool> seen(parked.size(), false);
  for (std::size_t k = 0; k < from.size() && search.goes_on(); ++k) {
    const Parked& p = parked[from[k]];
    if (seen[from[k]]) continue;
    seen[from[k]] = true;
    if (p.home != device.id) search.add(p.home);
    from.insert(from.end(), p.recorders.begin(), p.recorders.end());
    if (!search.comes_back && !(p.closed_world && p.recorders.empty())) continue;
    for (std::size_t other = 0; other < parked.size(); ++other) {  // which one is not known
      if (search.comes_back || parked[other].model == p.model) from.push_back(other);
    }
  }
  return !search.moving().empty();
}

}  // namespace

bool moves_towards(DeviceState& device, Lane& waits, OwnKernel own) {
  if (device.lanes_abroad.load(std::memory_order_seq_cst) == 0) return false;
  std::uint64_t home = device.id;
  {
    const std::lock_guard parked(waits.park_lock);
    if (waits.parked_on != nullptr && waits.park_abroad) home = waits.parked_on->home();
  }
  if (home != device.id) {
    Search search(device, own);
    search.add(home);
    const bool moves = !search.moving().empty();
    if (moves || !search.comes_back) return moves;
  }
  const std::lock_guard control(device.control);
  const Survey all = survey(device);
  std::vector<std::size_t> from;
  for (std::size_t i = 0; i < all.parked.size(); ++i) {
    if (all.parked[i].lane.get() == &waits) from.push_back(i);
  }
  return moves_towards(device, all.parked, std::move(from), own);
}

bool moves_towards(DeviceState& device, const Awaited& awaited, OwnKernel own) {
  if (device.lanes_abroad.load(std::memory_order_seq_cst) == 0) return false;
  const std::lock_guard control(device.control);
  const Survey all = survey(device);
  const auto by = all.recorders.find(&awaited);
  return by != all.recorders.end() && moves_towards(device, all.parked, by->second, own);
}

std::size_t moving_lanes(DeviceState& device) {
  std::size_t out = 0;
  for (const auto& context : device.live_contexts()) {
    for (const auto& lane : context->lanes()) {
      const std::lock_guard parked(lane->park_lock);
      out += is_moving(*lane) ? 1 : 0;
    }
  }
  return out;
}

namespace {

// Among what has not begun; a lane that is moving may be one.
bool has_recorder(DeviceState& device, const Awaited& awaited) {
  const std::lock_guard control(device.control);
  bool found = false;
  for (const auto& context : device.live_contexts()) {
    for (const auto& lane : context->lanes()) {
      const std::lock_guard parked(lane->park_lock);
      found = found || is_moving(*lane);
      if (lane->parked_on == nullptr) continue;
      for_each_task(*lane, [&](const Task& task) { found = found || recorded_by(task) == &awaited; });
    }
  }
  return found;
}

}  // namespace

bool nobody_records(DeviceState& device, const Awaited& awaited) {
  // What begins while it looks may be what records it.
  const std::uint64_t before = device.machine->activity();
  return device.machine->quiescent() && !has_recorder(device, awaited) && device.machine->quiescent() && device.machine->activity() == before;
}

void report(const Stuck& stuck) {
  // Each is told before any goes on: the failure of one may let others through.
  std::vector<Lane*> told;
  for (const Stuck::Wait& wait : stuck.waits) {
    auto error = std::make_unique<Error>(wait.error);
    if (take_out<RealAtomics>(*wait.lane, Wake::deadlocked, wait.park, error, wake_all)) told.push_back(wait.lane.get());
  }
  for (Lane* lane : told) resume(*lane);
}

std::vector<std::string> blocking_chain(DeviceState& device, StreamState& stream) {
  std::vector<std::string> out;
  const std::lock_guard control(device.control);
  const std::vector<Parked> parked = survey(device).parked;
  std::vector<bool> seen(parked.size(), false);
  std::size_t at = 0;
  while (at < parked.size() && parked[at].lane.get() != &stream.lane) ++at;
  while (at < parked.size() && !seen[at]) {
    seen[at] = true;
    out.push_back(parked[at].text);
    at = parked[at].recorders.empty() ? parked.size() : parked[at].recorders.front();
  }
  return out;
}

}  // namespace millstream::rt
