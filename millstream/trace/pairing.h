// SPDX-License-Identifier: Apache-2.0
// Which record each wait consumed, read off a trace.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "millstream/trace/trace.h"

namespace millstream {

/// Indices into Trace::spans: of an event's waits the k-th to end consumed the k-th record to begin.
/// Waits beyond the records have none. By event, then k.
struct ConsumedRecord {
  std::optional<std::size_t> record;
  std::size_t wait = 0;
};
std::vector<ConsumedRecord> pair_records(const Trace& trace);

}  // namespace millstream
