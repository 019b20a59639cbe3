// SPDX-License-Identifier: Apache-2.0
// Whether a schedule can finish at all, told before anything runs.
#pragma once

#include "millstream/backend/event_pairs.h"

namespace millstream {

/// Runs the streams without time. Errors: deadlock (E38) with each stream that stands still, what it waits for, its last
/// node, and the cycle. O(tasks).
Result<void> can_finish(const Graph& graph, const Schedule& schedule, const EventPairs& pairs);

}  // namespace millstream
