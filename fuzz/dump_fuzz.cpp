// SPDX-License-Identifier: Apache-2.0
// Whatever the text, reading a dump answers: with a sound graph and lanes of its nodes and events, or with an error that says
// where. Built twice: what is fed is wrapped so that each format is reached. What was read is written and read again by
// tests/property/dump_mutation_test.cpp: the writers need most of the library.
#include <cstdlib>
#include <string>
#include <string_view>

#include "millstream/dump/readers.h"

namespace {

std::vector<bool> every_node(const millstream::Graph& graph) { return std::vector<bool>(graph.node_count(), true); }

bool fits(const millstream::Schedule& schedule, std::size_t nodes, millstream::Task task) {
  using Kind = millstream::Task::Kind;
  if (task.is_control()) return task.index < schedule.controls.size() && schedule.controls[task.index].node.index < nodes;
  return task.index < (task.kind == Kind::record || task.kind == Kind::wait ? schedule.event_count : nodes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string text = std::string(MST_DUMP_HEAD) + std::string(bytes);
  const auto dump = millstream::dump::read(text, "fuzz", every_node);
  if (!dump.ok()) {
    if (dump.error().code == millstream::ErrorCode::internal || dump.error().message.empty() || !dump.error().where) std::abort();
    return 0;
  }
  if (!millstream::verify(dump->graph).empty()) std::abort();
  if (!dump->schedule) return 0;
  for (const millstream::PhysicalStream& stream : dump->schedule->streams) {
    for (const millstream::Task& task : stream.tasks) {
      if (!fits(*dump->schedule, dump->graph.node_count(), task)) std::abort();
    }
  }
  return 0;
}
