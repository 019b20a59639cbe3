// SPDX-License-Identifier: Apache-2.0
// How many workers run a schedule.
#pragma once

#include <algorithm>
#include <cstdint>

#include "millstream/schedule/schedule.h"

namespace millstream {

/// Where the user names none: cores / threads, at most the streams, at least one.
inline std::uint32_t default_workers(std::uint32_t cores, std::uint32_t threads, const Schedule& schedule) {
  const auto streams = static_cast<std::uint32_t>(schedule.streams.size());
  return std::max<std::uint32_t>(1, std::min(cores / std::max<std::uint32_t>(threads, 1), streams));
}

}  // namespace millstream
