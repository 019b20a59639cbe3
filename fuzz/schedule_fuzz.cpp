// SPDX-License-Identifier: Apache-2.0
// Whatever the lanes say, parse_schedule answers and check judges; what is read prints and reads back the same, and
// what check accepts has every dependency in the oracle.
#include <cstdlib>
#include <string_view>

#include "millstream/graph/text.h"
#include "millstream/schedule/schedule.h"

namespace {

// Eight nodes with edges of both kinds, one of them with an odd name.
const millstream::Graph& graph() {
  static const millstream::Graph g = [] {
    auto parsed = millstream::parse_graph(
        "graph\n a = Op()\n b = Op(a)\n c = Op(a)\n d = Op(b, c)\n e = Op() @after(c)\n \"odd name\" = Op(d)\n"
        " f = Op(e, \"odd name\")\n g = Op(f, a)\n",
        "fuzz");
    if (!parsed.ok()) std::abort();
    return std::move(parsed).value();
  }();
  return g;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millstream;
  const auto schedule = parse_schedule({reinterpret_cast<const char*>(data), size}, graph(), "fuzz");
  if (!schedule.ok()) return 0;
  const auto again = parse_schedule(print(graph(), *schedule), graph(), "printed");
  if (!again.ok() || !(*again == *schedule)) std::abort();
  if (schedule->event_count > 4096 || schedule->streams.size() > 512) return 0;  // slow, not wrong
  const CheckReport report = check(graph(), *schedule, nullptr);
  bool plain = !schedule->has_control();  // the small oracle knows launches and events only
  for (const PhysicalStream& stream : schedule->streams) {
    for (const Task& task : stream.tasks) plain = plain && task.kind != Task::Kind::attached;
  }
  const bool paired = pairs_of(graph(), *schedule).ok();
  if (!plain) return 0;
  if (!paired && report.ok()) std::abort();
  if (!report.ok()) return 0;
  const HappensBefore order(graph(), *schedule);
  for (const NodeId n : graph().nodes()) {
    for (const InputRef in : graph().inputs(n)) {
      const auto p = graph().producer(*in.get());
      if (p && !order.before(*p, n)) std::abort();
    }
  }
  return 0;
}
