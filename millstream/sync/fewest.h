// SPDX-License-Identifier: Apache-2.0
// Fewer pairs than the exact set, at the price of order that nothing requires.
#pragma once

#include "millstream/core/result.h"
#include "millstream/sync/conditions.h"
#include "millstream/sync/reduce.h"

namespace millstream {

/// Replaces neighbouring pairs between two streams, a1 -> b1 and a2 -> b2, by a2 -> b1, those that delay least
/// first, until `most` pairs are left or none can be merged. Every required order stays; the order added is
/// reported as a warning. Rounds of O(pairs log pairs) and one walk of the clocks each.
Result<SyncPlan> merge_pairs(const ReduceInput& in, Conditions& conditions, SyncPlan exact, std::uint32_t most);

}  // namespace millstream
