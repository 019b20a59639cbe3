// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/replay.h"

#include <algorithm>
#include <numeric>

namespace millstream::rt {

std::unique_ptr<Replay> Replay::compile(ModelState& model, std::uint32_t slices) {
  std::unique_ptr<Replay> replay(new Replay(model));
  if (slices == 0 || !replay->cut() || !replay->acyclic()) return nullptr;
  // Its lanes count what they run, and end it.
  const std::uint64_t most = model.context->device.profile.max_tasks_per_execution;
  std::uint64_t tasks = 0;
  for (const auto& binding : model.bindings) tasks += binding->tape.size();
  if (most != 0 && tasks > most) return nullptr;
  replay->place_tapes(std::min(slices, static_cast<std::uint32_t>(model.bindings.size())));
  return replay;
}

Replay::~Replay() = default;

// Segments and their edges. False: something on a tape needs a lane.
bool Replay::cut() {
  std::map<const RecordSite*, std::uint32_t> recorded_in;
  struct Need {
    std::uint32_t segment;
    const RecordSite* site;
  };
  std::vector<Need> needs;
  for (std::uint32_t tape = 0; tape < model_.bindings.size(); ++tape) {
    const BindingState& binding = *model_.bindings[tape];
    if (binding.role != StreamRole::head) return false;
    // Segments are taken in order of arrival; priorities among a model's streams are the lanes' to keep.
    if (binding.lane.level != model_.bindings.front()->lane.level) return false;
    heads_.push_back(static_cast<std::uint32_t>(segments_.size()));
    segments_.push_back({tape, static_cast<std::uint32_t>(steps_.size()), 0, 0, 0, 0, kNone});
    bool begun = false;  // the segment has tasks or a record: a wait starts the next
    bool closed = false;  // behind a record
    const auto new_segment = [&] {
      const auto id = static_cast<std::uint32_t>(segments_.size());
      segments_.back().next = id;
      segments_.push_back({tape, static_cast<std::uint32_t>(steps_.size()), 0, 1, 0, 0, kNone});
      begun = closed = false;
    };
    for (std::uint32_t i = 0; i < binding.tape.size(); ++i) {
      const Task& task = binding.tape[i];
      switch (task.kind) {
        case TaskKind::site_record:
          recorded_in[task.site.site] = static_cast<std::uint32_t>(segments_.size() - 1);
          begun = closed = true;
          break;
        case TaskKind::site_wait:
          // Behind its record on one tape it has its order from the tape.
          if (const auto at = recorded_in.find(task.site.site); at != recorded_in.end() && segments_[at->second].tape == tape) break;
          if (begun) new_segment();
          needs.push_back({static_cast<std::uint32_t>(segments_.size() - 1), task.site.site});
          break;
        case TaskKind::kernel:
        case TaskKind::copy:
        case TaskKind::fill:
          if (closed) new_segment();
          begun = true;
          add_step(task, i);
          break;
        default:
          return false;
      }
    }
  }
  std::vector<std::vector<std::uint32_t>> out(segments_.size());
  for (const Need& need : needs) out[recorded_in.at(need.site)].push_back(need.segment);
  for (std::uint32_t s = 0; s < segments_.size(); ++s) {
    // Two records of one segment that another waits for are one arrival.
    std::sort(out[s].begin(), out[s].end());
    out[s].erase(std::unique(out[s].begin(), out[s].end()), out[s].end());
    segments_[s].out_begin = static_cast<std::uint32_t>(out_.size());
    segments_[s].out_count = static_cast<std::uint32_t>(out[s].size());
    for (const std::uint32_t to : out[s]) {
      ++segments_[to].in_degree;
      out_.push_back(to);
    }
  }
  arrivals_ = std::make_unique<BasicArrivals<RealAtomics>[]>(segments_.size());
  return true;
}

void Replay::add_step(const Task& task, std::uint32_t place) {
  ++segments_.back().count;
  if (task.kind == TaskKind::kernel && task.launch.blocks == 1) {
    steps_.push_back({task.launch.kernel->body, task.arguments().data(), task.launch.bytes, place});
  } else {
    steps_.push_back({nullptr, nullptr, 0, place});
  }
}

bool Replay::acyclic() const {
  std::vector<std::uint32_t> left(segments_.size());
  std::vector<std::uint32_t> ready;
  for (std::uint32_t s = 0; s < segments_.size(); ++s) {
    left[s] = segments_[s].in_degree;
    if (left[s] == 0) ready.push_back(s);
  }
  std::size_t seen = 0;
  while (!ready.empty()) {
    const Segment& s = segments_[ready.back()];
    ready.pop_back();
    ++seen;
    if (s.next != kNone && --left[s.next] == 0) ready.push_back(s.next);
    for (std::uint32_t i = 0; i < s.out_count; ++i) {
      if (--left[out_[s.out_begin + i]] == 0) ready.push_back(out_[s.out_begin + i]);
    }
  }
  return seen == segments_.size();
}

std::vector<std::uint32_t> Replay::homes(const std::vector<std::vector<std::uint32_t>>& partners, const std::vector<std::size_t>& tasks,
                                         std::uint32_t slices) {
  const std::size_t tapes = tasks.size();
  const std::size_t share = (std::accumulate(tasks.begin(), tasks.end(), std::size_t{0}) + slices - 1) / slices;
  const std::uint32_t last = slices - 1;  // takes whatever the others leave
  std::vector<std::uint32_t> home(tapes, last);
  for (std::uint32_t slice = 0; slice < last; ++slice) {
    std::vector<std::uint64_t> shared(tapes, 0);  // hand-overs of each tape to what is here
    std::size_t load = 0;
    for (;;) {
      // The tape that shares most with what is here, the first of equals; a slice without any takes the first left.
      std::size_t best = tapes;
      for (std::size_t t = 0; t < tapes; ++t) {
        if (home[t] == last && (best == tapes || shared[t] > shared[best])) best = t;
      }
      if (best == tapes || (load != 0 && load + tasks[best] / 2 > share)) break;
      home[best] = slice;
      load += tasks[best];
      for (const std::uint32_t other : partners[best]) ++shared[other];
    }
  }
  return home;
}

void Replay::place_tapes(std::uint32_t slices) {
  const std::size_t tapes = model_.bindings.size();
  std::vector<std::vector<std::uint32_t>> partners(tapes);
  for (const Segment& s : segments_) {
    for (std::uint32_t i = 0; i < s.out_count; ++i) {
      const std::uint32_t to = segments_[out_[s.out_begin + i]].tape;
      partners[s.tape].push_back(to);
      partners[to].push_back(s.tape);
    }
  }
  std::vector<std::size_t> tasks;
  for (const auto& b : model_.bindings) tasks.push_back(b->tape.size());
  home_ = homes(partners, tasks, slices);
  const BindingState& any = *model_.bindings.front();
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    auto lane = std::make_unique<Lane>(any.stream, *model_.context, any.lane.level);
    lane->replay = this;
    lane->place = slice;
    slices_.push_back(std::make_unique<Slice>(std::move(lane)));
    slices_.back()->ready.resize(tapes);
  }
}

void Replay::begin() {
  users_.enter();
  tapes_left_.store(static_cast<std::uint32_t>(heads_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_relaxed);
  for (const std::uint32_t head : heads_) {
    if (segments_[head].in_degree == 0) push(head);
  }
  users_.leave();
}

void Replay::push(std::uint32_t segment) {
  Slice& home = *slices_[home_[segments_[segment].tape]];
  {
    const std::lock_guard lock(home.lock);
    const std::uint32_t size = home.size.load(std::memory_order_relaxed);
    std::uint32_t at = home.head + size;
    if (at >= home.ready.size()) at -= static_cast<std::uint32_t>(home.ready.size());
    home.ready[at] = segment;
    home.size.store(size + 1, std::memory_order_seq_cst);
  }
  if (!home.awake.load(std::memory_order_seq_cst)) return wake(home);
  // Its home may be busy with something long: one that sleeps takes it.
  for (const auto& slice : slices_) {
    if (!slice->awake.load(std::memory_order_relaxed)) return wake(*slice);
  }
}

void Replay::wake(Slice& slice) {
  if (!slice.awake.wake()) return;
  users_.enter();
  model_.context->device.machine->make_ready(*slice.lane);
}

std::uint32_t Replay::pop(Slice& slice) {
  if (slice.size.load(std::memory_order_seq_cst) == 0) return kNone;
  const std::lock_guard lock(slice.lock);
  const std::uint32_t size = slice.size.load(std::memory_order_relaxed);
  if (size == 0) return kNone;
  const std::uint32_t segment = slice.ready[slice.head];
  if (++slice.head == slice.ready.size()) slice.head = 0;
  slice.size.store(size - 1, std::memory_order_relaxed);
  return segment;
}

std::uint32_t Replay::find(Slice& own) {
  std::uint32_t at = pop(own);
  for (std::size_t i = 0; at == kNone && i < slices_.size(); ++i) at = pop(*slices_[i]);
  return at;
}

// The tape has come to the segment. True: nothing else has to come first, or has come now. Of what comes at about the same
// time it is cheaper to wait for the arrival than for a push; not while other work is ready here.
bool Replay::reach(std::uint32_t segment, const Slice& own) {
  const std::uint32_t in_degree = segments_[segment].in_degree;
  if (in_degree == 1) return true;
  const std::uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  for (unsigned looks = 0; looks < kLooks; ++looks) {
    if (arrivals_[segment].arrive_if_last(epoch, in_degree)) return true;
    if (own.size.load(std::memory_order_relaxed) != 0) break;
  }
  return arrive(segment);
}

void Replay::run_tasks(const Segment& segment) {
  const std::atomic<bool>& dropping = model_.dropping;
  const std::atomic<bool>& stopped = model_.context->stopped;
  BindingState& binding = *model_.bindings[segment.tape];
  const Step* step = steps_.data() + segment.first;
  const Step* const end = step + segment.count;
  while (step != end) {
    const Result<void> done = call_kernels([&]() -> Result<void> {
      for (; step != end; ++step) {
        if (dropping.load(std::memory_order_relaxed) || stopped.load(std::memory_order_relaxed)) {
          model_.dirty.store(true, std::memory_order_relaxed);
          step = end;
          break;
        }
        if (step->body == nullptr) {
          perform(binding.lane, binding.tape[step->place]);
          continue;
        }
        MST_TRY_VOID(step->body({0, 1, {step->arguments, step->bytes}}));
      }
      return {};
    });
    if (done.ok()) return;
    kernel_failed(binding.lane, binding.tape[step->place], done.error());
    ++step;
  }
}

}  // namespace millstream::rt
