// SPDX-License-Identifier: Apache-2.0
// How Graph Engine numbers events: the phases behind splitting, each a function of the events so far.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

/// One record and one wait of an event.
struct EventUse {
  std::optional<NodeId> from;  ///< none: nothing records it
  std::optional<NodeId> to;    ///< none: nothing waits for it
  std::uint32_t id = 0;
  friend bool operator==(const EventUse&, const EventUse&) = default;
};

/// Uses in order of insertion: that of every node's lists of sends and receives.
struct Events {
  std::vector<EventUse> uses;
  std::uint32_t count = 0;  ///< event_num: no id is above it
  friend bool operator==(const Events&, const Events&) = default;
};

/// Only one branch of a multi-dims model runs at a time: events outside any come first, then each branch
/// numbers its own from there, in execution order. Errors: conditional_wait (E17), ends in two branches.
Result<Events> reuse_across_dims(const Graph& graph, Events events);

/// Explicit sharing ("SendTo;peer;k", "RecvFrom;peer;k"): the first event of both nodes becomes count + k. Acts only
/// above `threshold` events; the texts are checked always. Errors: bad_attribute (E16) with node and text.
Result<Events> multiplex(const Graph& graph, Events events, std::uint32_t threshold);

/// Of each text that multiplex obeys although several events join its two nodes. Errors: those of multiplex.
Result<std::vector<Error>> multiplex_warnings(const Graph& graph, const Events& events, std::uint32_t threshold);

/// Ids dense from 0 by first sender in execution order. Errors: wait_without_record (E05).
Result<Events> make_continuous(const Graph& graph, Events events);

}  // namespace millstream
