// SPDX-License-Identifier: Apache-2.0
// Nested graphs become scopes of one flat graph, and control flow becomes label, jump and activation nodes.
#pragma once

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

/// One graph without bodies. Nodes of a body go to a scope of the node that owns it, behind that node in list
/// and execution order; names get `OWNER/ATTRIBUTE/` in front, and `_1`, `_2`, ... behind where that is taken.
/// The root's own names stay. A graph without bodies comes back as it is.
///
/// - A body's inputs become Data nodes (int attribute `index`: which input) without inputs: the owner hands
///   them their value, in loops anew each turn (a turn's slice for what Scan scans). Its outputs feed a
///   NetOutput, unless the body holds one. Outer values become the values they stand for; a node of the
///   owner's scope that makes one comes before the owner (control edge).
/// - If, Case, While, For, Loop, Scan and PartitionedCall get LabelSet, LabelGoto, LabelGotoEx, LabelSwitch,
///   LabelSwitchByIndex and StreamActive nodes, all with role rts_label: the opening label, then the
///   StreamActive with role first_active, then what the body holds, then NetOutput, then the closing node.
///   Int attribute `label_index` (ints `label_list`) numbers labels from 0 over the whole graph. If jumps by
///   [else, then], since false is 0; While by [leave, enter].
/// - For, Loop and Scan are a While with a counter: its scope `cond` compares it, `body` adds the step.
/// - Kept apart, with scopes but without labels and activations: nodes whose scope or one of whose bodies is
///   dynamic, and nodes of another scheduler (`thread_scope`), whose bodies' nodes get the same note. What nothing
///   in such a body reads comes before its NetOutput (control edge).
///
/// Errors: control_flow (E22) for bodies, inputs or outputs that the operator does not have; bad_graph.
/// O(nodes + edges), times the depth for names.
Result<Graph> flatten(const Graph& source);

}  // namespace millstream
