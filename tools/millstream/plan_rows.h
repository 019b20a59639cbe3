// SPDX-License-Identifier: Apache-2.0
// The lists of `compile --json` that have an entry for each node or task: written as they are made, since a
// graph may have a million nodes and a JSON value of each takes kilobytes.
#pragma once

#include "tools/millstream/common.h"

namespace millstream::cli {

/// Prints `head`, one object, with the lists `lanes` (each physical stream's tasks in order) and `placement` (where
/// each node runs and what put it there, in execution order) as its last members.
void print_with_rows(const Json& head, const Graph& graph, const Compiled& compiled);

}  // namespace millstream::cli
