// SPDX-License-Identifier: Apache-2.0
// Which waits at split points are needed in a graph with control flow.
#pragma once

#include "millstream/schedule/activate.h"

namespace millstream {

/// Pairs to add to `kept` in a graph whose streams are cut: the boundary pairs of `splitting` that neither `kept` nor the order
/// of the pieces implies, and what a StreamActive needs that starts nothing but pieces. The exact reduction once
/// more, with every piece a stream of its own that starts where `starts` says; costs what that costs.
Result<std::vector<SyncPair>> needed_cuts(const StartInput& in, const Starts& starts, const std::vector<SyncPair>& kept);

}  // namespace millstream
