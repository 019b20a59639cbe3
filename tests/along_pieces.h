// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "millstream/schedule/schedule.h"

namespace millstream::testing {

/// Where a logical stream is cut, its order goes on.
inline std::vector<Requirement> along_pieces(const Schedule& s) {
  std::vector<Requirement> out;
  for (const StreamId l : ids<StreamId>(s.logical_streams)) {
    std::optional<NodeId> last;
    for (const PhysicalStream& p : s.streams) {
      if (p.logical != l || p.relay) continue;
      for (const Task& t : p.tasks) {
        if (t.kind != Task::Kind::launch && !t.is_control()) continue;
        const NodeId n = t.is_control() ? s.controls[t.index].node : t.node();
        if (last && *last != n) out.push_back({*last, n, Requirement::Kind::control, ValueId()});
        last = n;
      }
    }
  }
  return out;
}

}  // namespace millstream::testing
