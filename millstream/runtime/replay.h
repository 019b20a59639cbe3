// SPDX-License-Identifier: Apache-2.0
// The fast way to execute a model without control flow: its tapes cut at records and waits into segments, whose order
// is fixed once. Each segment counts arrivals over all executions, so nothing is reset between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "millstream/runtime/arrivals.h"
#include "millstream/runtime/awake.h"
#include "millstream/runtime/model_state.h"
#include "millstream/runtime/users.h"

namespace millstream::rt {

class Replay {
 public:
  /// Null: the model has control flow, host functions, waits for what it does not record, streams of several priorities,
  /// more tasks than an execution may run, or a cycle; the lanes of its tapes run it. `slices`: workers that may run it at
  /// once; 0: none may. O(tasks).
  static std::unique_ptr<Replay> compile(ModelState& model, std::uint32_t slices);
  ~Replay();

  /// The next execution. One at a time; `end_of_execution(model)` is called when it is over.
  void begin();
  /// By the worker that holds a slice: runs segments until none is ready, or (true) other lanes are to have the worker, which
  /// then makes the slice ready again.
  template <class Yield>
  bool run(Lane& slice, const Yield& yield);
  /// Nobody is inside, or will be before the next execution.
  bool asleep() const { return users_.none(); }

  /// The slice of each tape: those that hand over to each other often share one, as long as no slice gets more than its
  /// share of the tasks. `partners[a]`: for each hand-over of a, in either direction, the tape at its other end.
  /// O(tapes^2 + hand-overs).
  static std::vector<std::uint32_t> homes(const std::vector<std::vector<std::uint32_t>>& partners, const std::vector<std::size_t>& tasks,
                                          std::uint32_t slices);

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr unsigned kLooks = 64;  // that follow at once: on some virtual machines a pause takes longer than a hand-over

  // A task that is run; records and waits are the segments' edges.
  struct Step {
    Result<void> (*body)(const KernelCall&);  // of a kernel of one block; null: any other task, the tape says what
    const std::byte* arguments;
    std::uint32_t bytes;
    std::uint32_t place;      // on the tape
  };
  struct Segment {
    std::uint32_t tape;
    std::uint32_t first;      // in steps_
    std::uint32_t count;
    std::uint32_t in_degree;  // arrivals that make it ready: the segment before, and records
    std::uint32_t out_begin;  // into out_
    std::uint32_t out_count;
    std::uint32_t next;       // on the same tape
  };
  // Ready segments of the tapes that live here; at most one a tape.
  struct alignas(64) Slice {
    explicit Slice(std::unique_ptr<Lane> l) : lane(std::move(l)) {}
    std::unique_ptr<Lane> lane;
    SpinLock lock;
    std::vector<std::uint32_t> ready;        // a ring
    std::uint32_t head = 0;
    std::atomic<std::uint32_t> size{0};
    BasicAwake<RealAtomics> awake;
  };

  explicit Replay(ModelState& model) : model_(model) {}
  template <class Yield>
  bool run_slice(Lane& slice, const Yield& yield);
  bool cut();
  void add_step(const Task& task, std::uint32_t place);
  void place_tapes(std::uint32_t slices);
  bool acyclic() const;
  void push(std::uint32_t segment);
  std::uint32_t pop(Slice& slice);
  std::uint32_t find(Slice& own);
  void wake(Slice& slice);
  bool arrive(std::uint32_t segment) {
    return arrivals_[segment].arrive(epoch_.load(std::memory_order_relaxed), segments_[segment].in_degree);
  }
  bool reach(std::uint32_t segment, const Slice& own);
  void run_tasks(const Segment& segment);

  ModelState& model_;
  std::vector<Step> steps_;
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> heads_;        // the first segment of each tape
  std::vector<std::uint32_t> out_;
  std::unique_ptr<BasicArrivals<RealAtomics>[]> arrivals_;
  std::vector<std::uint32_t> home_;         // by tape: its slice
  std::vector<std::unique_ptr<Slice>> slices_;
  std::atomic<std::uint64_t> epoch_{0};
  std::atomic<std::uint32_t> tapes_left_{0};
  BasicUsers<RealAtomics> users_;           // slices that were made ready and whose run has not ended, and threads in `begin`
};

template <class Yield>
bool Replay::run(Lane& lane, const Yield& yield) {
  const bool yields = run_slice(lane, yield);
  if (!yields) users_.leave();
  return yields;
}

template <class Yield>
bool Replay::run_slice(Lane& lane, const Yield& yield) {
  Slice& own = *slices_[lane.place];
  bool owns = true;
  for (unsigned idle = 0; owns;) {
    std::uint32_t at = pop(own);
    // Its own first; another's only when it would stand still for a while.
    if (at == kNone && idle > kLooks) at = find(own);
    if (at == kNone) {
      if (++idle < 2000 && tapes_left_.load(std::memory_order_relaxed) != 0) {
        if (idle > kLooks) RealAtomics::relax(idle % 64);
        if (idle % 64 == 0 && yield()) return true;
        continue;
      }
      const auto look = [&] {
        const std::uint32_t found = find(own);
        return found == kNone ? std::nullopt : std::optional(found);
      };
      const auto found = own.awake.sleep_unless(look, owns);
      if (!found) return false;
      at = *found;
    }
    idle = 0;
    while (at != kNone) {
      const Segment& segment = segments_[at];
      run_tasks(segment);
      for (std::uint32_t i = 0; i < segment.out_count; ++i) {
        const std::uint32_t to = out_[segment.out_begin + i];
        if (arrive(to)) push(to);
      }
      const std::uint32_t next = segment.next;
      if (next == kNone) {
        if (tapes_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) end_of_execution(model_);
        break;
      }
      if (!reach(next, own)) break;
      at = next;
      if (yield()) {
        push(at);
        return owns;
      }
    }
  }
  return false;
}

}  // namespace millstream::rt
