// SPDX-License-Identifier: Apache-2.0
// The ONNX messages we read, as views of the file's bytes. Field numbers are those of the public onnx.proto;
// fields that do not concern us are skipped, whatever they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/tensor.h"

namespace millstream::onnx_file {

/// AttributeProto.AttributeType.
enum class AttributeKind : std::uint8_t {
  undefined = 0,
  float_value = 1,
  int_value = 2,
  string_value = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

struct TensorMessage {
  std::string_view message;  ///< whole; typed data is read from it
  std::string_view name;
  std::vector<std::int64_t> dims;
  std::int64_t data_type = 0;
  std::optional<std::string_view> raw;
  bool external = false;
  bool segmented = false;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
};

struct AttributeMessage {
  std::string_view name;
  std::string_view ref_name;  ///< of the function's attribute that gives the value
  AttributeKind kind = AttributeKind::undefined;
  float f = 0;
  std::int64_t i = 0;
  std::string_view s;
  std::string_view tensor;
  std::string_view graph;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string_view> strings;
};

struct NodeMessage {
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> attributes;  ///< AttributeMessage bytes
};

struct ValueMessage {
  std::string_view name;
  std::string_view type;  ///< TypeProto bytes; empty when absent
};

struct OpsetMessage {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionMessage {
  std::string_view message;  ///< its nodes are fields kFunctionNode
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;         ///< names without a default
  std::vector<std::string_view> default_attributes; ///< AttributeMessage bytes
  std::vector<OpsetMessage> opsets;
};

struct ModelMessage {
  std::int64_t ir_version = 0;
  std::optional<std::string_view> graph;
  std::vector<OpsetMessage> opsets;
  std::vector<std::string_view> functions;
};

inline constexpr std::uint32_t kGraphNode = 1;
inline constexpr std::uint32_t kGraphName = 2;
inline constexpr std::uint32_t kGraphInitializer = 5;
inline constexpr std::uint32_t kGraphInput = 11;
inline constexpr std::uint32_t kGraphOutput = 12;
inline constexpr std::uint32_t kGraphValueInfo = 13;
inline constexpr std::uint32_t kGraphSparseInitializer = 15;
inline constexpr std::uint32_t kFunctionNode = 7;

// Errors: bad_model, for bytes that are no such message.
Result<ModelMessage> read_model(std::string_view bytes);
Result<FunctionMessage> read_function(std::string_view bytes);
Result<NodeMessage> read_node(std::string_view bytes);
Result<AttributeMessage> read_attribute(std::string_view bytes);
Result<TensorMessage> read_tensor_message(std::string_view bytes);
Result<ValueMessage> read_value(std::string_view bytes);

/// A TypeProto. `kind` is "tensor", or what it is instead ("sequence", "map", "optional", "sparse tensor",
/// "opaque", "" when it says nothing).
struct TypeMessage {
  std::string_view kind;
  TensorDesc desc;
};
Result<TypeMessage> read_type(std::string_view bytes);

/// What an error says about bytes that are no such message.
Error malformed(std::string_view what);

}  // namespace millstream::onnx_file
