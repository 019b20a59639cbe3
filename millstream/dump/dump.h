// SPDX-License-Identifier: Apache-2.0
// Graph dumps of the Ascend ecosystem, read and written as text: ge_onnx_*.pbtxt and ge_proto_*.txt. docs/dumps.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "millstream/core/id.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

enum class DumpKind : std::uint8_t {
  ge_onnx,      ///< text of an ONNX ModelProto
  ge_proto,     ///< text of ge.proto.ModelDef
  torch_txt,    ///< TorchAir: text of a bare ge.proto.GraphDef
  torch_pbtxt,  ///< TorchAir: looks like a TensorFlow GraphDef
};
std::string_view to_string(DumpKind kind);

struct Dump {
  DumpKind kind = DumpKind::ge_onnx;
  /// Without nodes of synchronisation. The stream that the dump gives a node is its annotation preset_stream.
  Graph graph;
  /// What each stream runs, where the dump holds Send and Recv nodes or event lists.
  std::optional<Schedule> schedule;
  bool has_streams = false;  ///< at least one node stands on a stream
};

/// Whether a text begins as one of these formats does, not as millstream text.
bool is_dump(std::string_view text);

/// Reads any of the four. Unknown fields are skipped, unknown operator types kept; subgraphs become scopes, or bodies
/// where they are not lowered yet. Errors: syntax at line and column for what is no text of protobuf, no such
/// dump, or names and links that do not fit; bad_graph for cycles. O(text); memory about 64 MiB + 4 x the text at most.
Result<Dump> read_dump(std::string_view text, const std::string& file);

/// What each stream runs by the nodes' preset streams alone, in execution order: no records, no waits.
Schedule placed_lanes(const Graph& graph);

enum class DumpFormat : std::uint8_t { onnx, proto };

/// 1: everything; 2: no weights, and in onnx no attributes that are texts; 3: in onnx no attributes at all.
enum class DumpDetail : std::uint8_t { full = 1, no_weights = 2, links = 3 };

/// What a dump shows beside the graph.
struct DumpStreams {
  /// By node, -1 for none. Empty: the graph's own preset streams.
  IdVec<NodeId, std::int64_t> stream;
  /// The compiled graph: physical streams, and nodes for records, waits and relays. Takes the place of `stream`.
  const Schedule* schedule = nullptr;
};

/// The whole graph, subgraphs included. O(graph).
std::string write_dump(const Graph& graph, const DumpStreams& streams, DumpFormat format, DumpDetail detail);

/// Subgraphs of write_dump's text: scopes, then bodies.
std::size_t dump_subgraphs(const Graph& graph);
/// One of them as a dump of its own; what its nodes need from outside stands there as Data.
std::string write_subgraph_dump(const Graph& graph, std::size_t index, const DumpStreams& streams, DumpFormat format, DumpDetail detail);

}  // namespace millstream
