// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace millstream {

/// Of the time in which something runs, the share in which two or more do: 0 to 1. `runs`: begin and end of each.
/// O(runs log runs).
double overlap(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& runs);

}  // namespace millstream
