// SPDX-License-Identifier: Apache-2.0
// The runtime's own cost: a recorded model of empty tasks beside a oneTBB flow graph of the same tasks and edges, in
// turns; what a submit and a satisfied record and wait cost; and the gate on 1 hand-off in 16 tasks, with the cost of a
// hand-off between two threads measured in the same process.
//   replay [--tasks N] [--rounds N] [--workers N]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>

#include "millstream/runtime/device.h"

namespace {

using namespace millstream;
using Clock = std::chrono::steady_clock;

template <class T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}
void must(Result<void> result) {
  if (result.ok()) return;
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

double ns_since(Clock::time_point begin) { return std::chrono::duration<double, std::nano>(Clock::now() - begin).count(); }
double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

Result<void> nothing(const KernelCall&) { return {}; }
const KernelFunction kNothing{"nothing", nothing};

// Lanes of tasks; in each lane every `every`-th task waits for the task before that place in the next lane. 0: never.
struct Shape {
  const char* name;
  std::uint32_t lanes;
  std::uint32_t every;
};

class OurModel {
 public:
  OurModel(Context& context, const Shape& shape, std::uint32_t tasks) : model_(must(context.begin_model())) {
    for (std::uint32_t l = 0; l < shape.lanes; ++l) {
      streams_.push_back(must(context.create_stream(StreamOptions{.persistent = true, .huge = true})));
      must(model_.bind(streams_[l], StreamRole::head));
      events_.push_back(must(context.create_event(Event::Kind::snapshot)));
    }
    for (std::uint32_t i = 0; i < tasks / shape.lanes; ++i) {
      if (shape.every != 0 && i % shape.every == shape.every - 1) {
        for (std::uint32_t l = 0; l < shape.lanes; ++l) must(streams_[l].record(events_[l]));
        for (std::uint32_t l = 0; l < shape.lanes; ++l) must(streams_[l].wait(events_[(l + 1) % shape.lanes]));
      }
      for (Stream& s : streams_) must(s.launch(kNothing, {}, {}));
    }
    for (Stream& s : streams_) must(model_.end_tasks(s));
    must(model_.finish());
  }
  void run() { must(model_.execute()); }

 private:
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  Model model_;
};

class TbbGraph {
 public:
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;
  TbbGraph(const Shape& shape, std::uint32_t tasks) {
    const std::uint32_t rows = tasks / shape.lanes;
    for (std::uint32_t i = 0; i < rows * shape.lanes; ++i) nodes_.push_back(std::make_unique<Node>(graph_, [](tbb::flow::continue_msg) {}));
    const auto at = [&](std::uint32_t row, std::uint32_t lane) -> Node& { return *nodes_[row * shape.lanes + lane]; };
    for (std::uint32_t i = 1; i < rows; ++i) {
      for (std::uint32_t l = 0; l < shape.lanes; ++l) {
        tbb::flow::make_edge(at(i - 1, l), at(i, l));
        if (shape.every != 0 && i % shape.every == shape.every - 1) tbb::flow::make_edge(at(i - 1, (l + 1) % shape.lanes), at(i, l));
      }
    }
    lanes_ = shape.lanes;
  }
  void run() {
    for (std::uint32_t l = 0; l < lanes_; ++l) nodes_[l]->try_put(tbb::flow::continue_msg());
    graph_.wait_for_all();
  }

 private:
  tbb::flow::graph graph_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint32_t lanes_ = 0;
};

struct Pair {
  double ours, tbb;
};

Pair compare(Context& context, const Shape& shape, std::uint32_t tasks, int rounds) {
  OurModel model(context, shape, tasks);
  TbbGraph graph(shape, tasks);
  model.run();
  graph.run();
  std::vector<double> ours, theirs;
  for (int r = 0; r < rounds; ++r) {
    Clock::time_point begin = Clock::now();
    model.run();
    ours.push_back(ns_since(begin) / tasks);
    begin = Clock::now();
    graph.run();
    theirs.push_back(ns_since(begin) / tasks);
  }
  return {median(ours), median(theirs)};
}

// One hand-off: two threads in turn raise a counter that the other waits for.
double hand_off_ns() {
  constexpr std::uint32_t kTurns = 200000;
  alignas(64) std::atomic<std::uint32_t> a{0};
  alignas(64) std::atomic<std::uint32_t> b{0};
  std::thread other([&] {
    for (std::uint32_t i = 1; i <= kTurns; ++i) {
      while (a.load(std::memory_order_acquire) < i) {
      }
      b.store(i, std::memory_order_release);
    }
  });
  const Clock::time_point begin = Clock::now();
  for (std::uint32_t i = 1; i <= kTurns; ++i) {
    a.store(i, std::memory_order_release);
    while (b.load(std::memory_order_acquire) < i) {
    }
  }
  const double ns = ns_since(begin) / (2.0 * kTurns);
  other.join();
  return ns;
}

double submit_ns(Context& context) {
  // Behind a latch, so that no worker takes part.
  std::vector<double> times;
  for (int r = 0; r < 5; ++r) {
    Stream gate = must(context.create_stream()), s = must(context.create_stream(StreamOptions{.huge = true}));
    Event latch = must(context.create_event(Event::Kind::latch));
    must(s.wait(latch));
    constexpr int kTasks = 100000;
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kTasks; ++i) must(s.launch(kNothing, {}, {}));
    times.push_back(ns_since(begin) / kTasks);
    must(gate.record(latch));
    must(s.synchronize());
  }
  return median(times);
}

// What a record and a wait that is satisfied add to a tape's tasks, on one stream.
double satisfied_ns(Context& context) {
  constexpr std::uint32_t kPairs = 100000;
  const auto time = [&](bool with) {
    Model model = must(context.begin_model());
    Stream s = must(context.create_stream(StreamOptions{.persistent = true, .huge = true}));
    Event e = must(context.create_event(Event::Kind::snapshot));
    must(model.bind(s, StreamRole::head));
    for (std::uint32_t i = 0; i < kPairs; ++i) {
      must(s.launch(kNothing, {}, {}));
      if (!with) continue;
      must(s.record(e));
      must(s.wait(e));
    }
    must(model.end_tasks(s));
    must(model.finish());
    must(model.execute());
    std::vector<double> times;
    for (int r = 0; r < 5; ++r) {
      const Clock::time_point begin = Clock::now();
      must(model.execute());
      times.push_back(ns_since(begin) / kPairs);
    }
    return median(times);
  };
  const double without = time(false);
  return time(true) - without;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t tasks = 200000, workers = 2;
  int rounds = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const int value = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--tasks") == 0 && value > 0) {
      tasks = static_cast<std::uint32_t>(value);
    } else if (std::strcmp(argv[i], "--rounds") == 0 && value > 0) {
      rounds = value;
    } else if (std::strcmp(argv[i], "--workers") == 0 && value > 0) {
      workers = static_cast<std::uint32_t>(value);
    } else {
      std::fprintf(stderr, "replay: unknown option \"%s\"\nusage: replay [--tasks N] [--rounds N] [--workers N]\n", argv[i]);
      return 2;
    }
  }
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  Profile profile;
  profile.workers = workers;
  profile.tasks_per_huge_stream = Profile::kUnlimited;
  Device device = must(Device::open_private(BackendId::cpu, profile));
  Context context = device.primary();
  bool met = true;
  std::printf("%u empty tasks, %u workers, median of %d runs in turns\n", tasks, workers, rounds);
  for (const Shape& shape : {Shape{"chain", 1, 0}, Shape{"8 lanes, 1 wait in 4", 8, 4}}) {
    const Pair p = compare(context, shape, tasks, rounds);
    const bool ok = p.ours <= p.tbb / 2;
    met = met && ok;
    std::printf("%-22s ours %6.1f ns/task, oneTBB %6.1f, ratio %.2f (wanted at most 0.50) %s\n", shape.name, p.ours, p.tbb, p.ours / p.tbb, ok ? "ok" : "MISSED");
  }
  const double h = hand_off_ns();
  const Pair sparse = compare(context, Shape{"2 lanes, 1 wait in 16", 2, 16}, tasks, rounds);
  const double bound = 1.5 + h / 16 + 5;
  const bool gate = sparse.ours <= bound && (h > 80 || sparse.ours <= 20);
  met = met && gate;
  std::printf("2 lanes, 1 wait in 16  ours %6.1f ns/task, bound %.1f with a hand-off of %.1f ns %s\n", sparse.ours, bound, h, gate ? "ok" : "MISSED");
  const double submit = submit_ns(context), satisfied = satisfied_ns(context);
  met = met && submit <= 60 && satisfied <= 15;
  std::printf("submit                 %6.1f ns (wanted at most 60) %s\n", submit, submit <= 60 ? "ok" : "MISSED");
  std::printf("record + wait          %6.1f ns when satisfied (wanted at most 15) %s\n", satisfied, satisfied <= 15 ? "ok" : "MISSED");
  return met ? 0 : 1;
}
