// SPDX-License-Identifier: Apache-2.0
// The graph section of millstream text (.mst): docs/text-format.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

/// The two sections a .mst file may hold, as parts of its text, with the line each starts on.
struct TextSections {
  std::string_view graph;  ///< from its "graph" line; empty when absent
  std::uint32_t graph_line = 1;
  std::string_view schedule;  ///< the lanes behind the "schedule" line; empty when absent
  std::uint32_t schedule_line = 1;
  bool has_graph = false;
  bool has_schedule = false;
};
/// Errors: syntax when the first word is neither "graph" nor "schedule".
Result<TextSections> split_sections(std::string_view text, const std::string& file);

/// Reads a graph section (and stops before a "schedule" line). The result is finished and verified, but
/// descs that the text does not give are unknown (see infer_shapes). Errors: syntax with line and column,
/// bad_graph.
Result<Graph> parse_graph(std::string_view text, const std::string& file, std::uint32_t first_line = 1);

/// Prints a graph so that parse_graph gives it back, except the text ids and unknown NaN payloads.
std::string print(const Graph& graph);

/// The rare annotations of a node as text, " @key(...)" each; empty when it has none.
std::string rare_notes(const Graph& graph, NodeId n);

/// A name as it stands in text: plain when it is a word ([A-Za-z_/][A-Za-z0-9_./$]*), else in double
/// quotes with \" \\ \n \t \xHH escapes.
std::string quote_name(std::string_view name);
std::string quote(std::string_view text);
bool is_plain_name(std::string_view name);

/// Semantic equality of two graphs: same names, types, edges, attributes, descs, order, annotations.
bool same(const Graph& a, const Graph& b);

}  // namespace millstream
