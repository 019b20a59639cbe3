// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "millstream/compile/compile.h"

namespace millstream {

/// Whether the plan's warnings name what the verifier found: the race of a pair that compat loses, or the wait of a pair
/// that compat keeps although its record may never come.
bool warned_of(const Graph& graph, const Compiled& made, const Violation& v);

}  // namespace millstream
