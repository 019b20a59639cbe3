// SPDX-License-Identifier: Apache-2.0
// A node as dumps of every format show it. Readers fill rows, writers print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millstream/graph/attrs.h"
#include "millstream/graph/tensor.h"

namespace millstream::dump {

/// An output's element type and dimensions as dumps number them: -1 is unknown, [-2] an unknown rank.
struct DescRow {
  DType dtype = DType::undefined;
  std::vector<std::int64_t> dims;
  bool has_shape = false;
};

struct NodeRow {
  std::string name;
  std::string type;
  std::vector<std::string> inputs;  ///< "source:index", "source:-1" for a control edge, "" for one left out
  std::vector<std::int64_t> outputs;  ///< writers: which outputs somebody reads; -1: control
  std::optional<std::int64_t> id;
  std::optional<std::int64_t> stream;  ///< -1: none
  std::vector<std::int64_t> send, recv;
  std::vector<DescRow> input_descs;  ///< writers only: readers take them from the producers
  std::vector<DescRow> output_descs;
  std::vector<std::string> subgraphs;
  std::vector<std::pair<std::string, Attr>> attrs;
  std::size_t place = 0;  ///< in the text it was read from

  void clear() {
    name.clear();
    type.clear();
    inputs.clear();
    outputs.clear();
    id.reset();
    stream.reset();
    send.clear();
    recv.clear();
    input_descs.clear();
    output_descs.clear();
    subgraphs.clear();
    attrs.clear();
    place = 0;
  }
};

/// "DT_FLOAT" and so on; "DT_UNDEFINED" for what these formats have no name for.
std::string_view dt_name(DType type);
DType dt_from_name(std::string_view name);
/// The number of that name in the enumeration of ge_proto's schema.
int dt_number(DType type);

TensorDesc to_desc(const DescRow& row);
DescRow to_row(const TensorDesc& desc);

/// Node types that stand for a task of synchronisation.
bool is_send(std::string_view type);
bool is_recv(std::string_view type);

/// Streams that a text may number: each costs memory.
inline constexpr std::int64_t kMostStreams = 65536;

// Attributes of ours, for what these formats have no word for.
inline constexpr std::string_view kValueAttr = "_millstream_value";       ///< 1 input, 2 constant, 3 outer value
inline constexpr std::string_view kOutputNames = "_millstream_outputs";   ///< where values are not called NODE or NODE:i
inline constexpr std::string_view kGraphOutputs = "_millstream_results";  ///< pairs: place among the graph's outputs, output index
inline constexpr std::string_view kLoopBack = "_millstream_loop_back";    ///< names of nodes with a loop-back edge to this one
inline constexpr std::string_view kAttachedTo = "_millstream_attached_to";  ///< physical streams of the node's attached parts
inline constexpr std::string_view kSelfAttachedTo = "_millstream_self_attached_to";
inline constexpr std::string_view kBodies = "_millstream_bodies";  ///< attribute and graph name of each body
inline constexpr std::string_view kScopes = "_millstream_scopes";  ///< of what each subgraph is: 1 a scope, 2 one of dynamic shapes
inline constexpr std::string_view kSubgraphs = "_millstream_subgraphs";     ///< ge_onnx: names of its subgraphs

}  // namespace millstream::dump
