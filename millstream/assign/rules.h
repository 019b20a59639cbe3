// SPDX-License-Identifier: Apache-2.0
// The rules, one a file. The driver (pipeline.cpp) compares before and after, and names who decided.
#pragma once

#include "millstream/assign/assignment.h"

namespace millstream {

/// by_label.cpp: nodes with a stream label go to the label's stream.
Result<StreamAssignment> assign_by_label(const RuleInput& in, StreamAssignment on);

/// single.cpp: every node on one stream. Errors: E02 when a node has a label.
Result<StreamAssignment> assign_single(const RuleInput& in, StreamAssignment on);

/// auto/choose.cpp: the nodes that no rule placed yet, by predicted cost.
Result<StreamAssignment> assign_auto(const RuleInput& in, StreamAssignment on);

}  // namespace millstream
