// SPDX-License-Identifier: Apache-2.0
// Nanoseconds and heap bytes a node of plan_sync, lower and check on lanes with one cross edge in four nodes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include <fmt/format.h>
#include <malloc.h>

#include "millstream/schedule/schedule.h"

namespace {

using namespace millstream;

// Heap bytes in use and their peak, as the allocator counts them (its rounding included).
std::size_t in_use = 0;
std::size_t most_in_use = 0;

void* counted(std::size_t size) {
  void* p = std::malloc(size);
  if (p == nullptr) std::abort();
  in_use += malloc_usable_size(p);
  most_in_use = std::max(most_in_use, in_use);
  return p;
}
void uncounted(void* p) {
  if (p != nullptr) in_use -= malloc_usable_size(p);
  std::free(p);
}

// `lane_first`: listed lane by lane, with edges from each lane to the next; else breadth first.
void measure(std::size_t nodes, std::size_t width, bool lane_first) {
  Graph graph("lanes");
  StreamAssignment on;
  on.rules = {"bench"};
  on.reasons = {"lane by lane"};
  for (std::size_t s = 0; s < width; ++s) on.new_stream();
  const std::size_t length = nodes / width;
  const auto lane_of = [&](std::size_t i) { return lane_first ? i / length : i % width; };
  const auto place_of = [&](std::size_t i) { return lane_first ? i % length : i / width; };
  const auto node_at = [&](std::size_t lane, std::size_t place) { return lane_first ? lane * length + place : place * width + lane; };
  for (std::size_t i = 0; i < length * width; ++i) {
    std::vector<InputRef> inputs;
    const std::size_t lane = lane_of(i), place = place_of(i);
    if (place > 0) inputs.push_back(graph.outputs(NodeId(node_at(lane, place - 1)))[0]);
    if (place > 0 && place % 4 == 0 && (!lane_first || lane > 0)) {
      const std::size_t other = lane_first ? lane - 1 : (lane + place / 4) % width;
      if (other != lane) inputs.push_back(graph.outputs(NodeId(node_at(other, place - 1)))[0]);
    }
    const std::string name = fmt::format("n{}", i);
    const std::string_view outputs[] = {name};
    Graph::NodeSpec spec;
    spec.type = "Op";
    spec.inputs = inputs;
    spec.outputs = outputs;
    graph.add_node(spec);
    on.placement.push_back(Placement{StreamId(lane), RuleId(0)});
  }
  if (const auto finished = graph.finish(); !finished.ok()) std::abort();
  Target target;
  target.name = "boundless";
  target.limits = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};

  using Clock = std::chrono::steady_clock;
  const std::size_t before = in_use;
  most_in_use = in_use;
  const auto t0 = Clock::now();
  const auto plan = plan_sync(graph, on, {});
  const auto t1 = Clock::now();
  const auto schedule = lower(graph, on, *plan, target, {});
  const auto t2 = Clock::now();
  const double bytes = static_cast<double>(most_in_use - before);
  const CheckReport report = check(graph, *schedule, nullptr, {}, false);
  const auto t3 = Clock::now();
  if (!report.ok()) std::abort();
  const auto per_node = [&](auto a, auto b) {
    return std::chrono::duration<double, std::nano>(b - a).count() / static_cast<double>(graph.node_count());
  };
  fmt::print("{:8} nodes {:3} streams {:7} listed: {:7} kept {:6} ids | plan_sync {:6.1f} ns/node, lower {:6.1f}, check {:6.1f} | peak {:5.1f} B/node of both\n",
             graph.node_count(), width, lane_first ? "lane" : "breadth", plan->kept.size(), schedule->event_count, per_node(t0, t1),
             per_node(t1, t2), per_node(t2, t3), bytes / static_cast<double>(graph.node_count()));
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete(void* p, std::size_t) noexcept { uncounted(p); }
void operator delete[](void* p, std::size_t) noexcept { uncounted(p); }

// sync_bench [NODES STREAMS lane|breadth]: one case; without words the table.
int main(int argc, char** argv) {
  if (argc == 4) {
    measure(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10), std::string(argv[3]) == "lane");
    return 0;
  }
  for (const std::size_t nodes : {100'000u, 1'000'000u}) {
    for (const std::size_t width : {8u, 32u}) {
      measure(nodes, width, false);
      measure(nodes, width, true);
    }
  }
  return 0;
}
