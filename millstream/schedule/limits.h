// SPDX-License-Identifier: Apache-2.0
// What a device allows, held against a schedule.
#pragma once

#include "millstream/schedule/schedule.h"
#include "millstream/schedule/split.h"

namespace millstream {

/// Streams, tasks of each stream, events or notifies. With `node` units a stream over its tasks is a warning, as that
/// count does not promise to stay under them. Errors: notify_limit (E06), stream_limit (E07), task_limit (E08),
/// allocation_limit (E19, events): needed, allowed, and the three largest contributors.
Result<std::vector<Error>> hold_limits(const Graph& graph, const StreamAssignment& on, const Schedule& schedule,
                                       const Target& target, const LowerOptions& options);

}  // namespace millstream
