// SPDX-License-Identifier: Apache-2.0
// What ran when: a value that back-ends fill and printers read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

struct Span {
  TaskRef task;
  Task what;
  std::uint64_t begin_ns = 0;  ///< from the run's start; virtual on sim
  std::uint64_t end_ns = 0;
  std::uint32_t worker = 0;
};

struct Trace {
  std::vector<Span> spans;  ///< by stream, then index
  std::uint64_t total_ns = 0;
  bool virtual_time = false;
  bool cut = false;  ///< the run did more than the spans say: a loop went on for long
};

/// Text lanes on a grid of `tick_ns`: the picture of the golden tests. At most 1000 columns.
std::string print_lanes(const Graph& graph, const Schedule& schedule, const Trace& trace,
                        std::uint64_t tick_ns);
/// Chrome trace JSON (opens in Perfetto): one track a stream, flow arrows from record to wait.
std::string to_chrome_json(const Graph& graph, const Schedule& schedule, const Trace& trace);
/// Share of busy time (a launch runs) with two or more streams busy, in [0, 1].
double overlap(const Schedule& schedule, const Trace& trace);
/// Everything wrong with a trace: a task missing, spans against stream order, a wait that ends before its
/// record begins, a node that begins before one it depends on has ended.
std::vector<Error> verify(const Graph& graph, const Schedule& schedule, const Trace& trace);

}  // namespace millstream
