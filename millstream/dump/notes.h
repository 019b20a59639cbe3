// SPDX-License-Identifier: Apache-2.0
// Annotations of a node as the attributes that dumps hold for them. docs/dumps.md lists the names.
#pragma once

#include "millstream/dump/node_row.h"
#include "millstream/graph/graph.h"

namespace millstream::dump {

/// Takes the attributes that stand for annotations out of `attrs` and sets them on the node. One with another type
/// than its annotation stays an attribute.
void take_notes(Graph& graph, NodeId n, std::vector<std::pair<std::string, Attr>>& attrs);

/// Whether take_notes would look at an attribute of that name.
bool is_note(std::string_view name);

/// The attributes of a node's annotations, without its stream.
std::vector<std::pair<std::string, Attr>> notes_of(const Graph& graph, NodeId n);

}  // namespace millstream::dump
