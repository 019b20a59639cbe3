// SPDX-License-Identifier: Apache-2.0
// Schedules for tests, written as lanes: "!e0" records, "?e0" waits, a name launches.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "millstream/schedule/schedule.h"

namespace millstream::testing {

/// One string a stream, words apart by blanks. Only plain names.
inline Schedule hand_schedule(const Graph& graph, const std::vector<std::string>& lanes) {
  Schedule out;
  for (const std::string& lane : lanes) {
    PhysicalStream stream;
    stream.logical = StreamId(out.streams.size());
    std::istringstream words(lane);
    for (std::string word; words >> word;) {
      if (word[0] == '!' || word[0] == '?') {
        const EventId e(std::stoul(word.substr(2)));
        out.event_count = std::max(out.event_count, e.index + 1);
        stream.tasks.push_back(word[0] == '!' ? Task::record(e) : Task::wait(e));
      } else {
        const auto node = graph.find_node(word);
        MST_CHECK(node.has_value(), "no node " + word);
        stream.tasks.push_back(Task::launch(*node));
      }
    }
    out.streams.push_back(std::move(stream));
  }
  out.logical_streams = static_cast<std::uint32_t>(lanes.size());
  return out;
}

}  // namespace millstream::testing
