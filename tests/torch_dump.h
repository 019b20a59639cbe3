// SPDX-License-Identifier: Apache-2.0
// What millstream writes, in the two forms that TorchAir writes of a graph.
#pragma once

#include <optional>
#include <sstream>
#include <string>

namespace millstream::testing {

/// A ge.proto.ModelDef as the bare GraphDef of its first graph.
inline std::string torch_txt(const std::string& proto) {
  std::istringstream in(proto);
  std::string out;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!inside) {
      inside = line == "graph {";
    } else if (line == "}") {
      return out;
    } else {
      out += line.substr(2) + "\n";
    }
  }
  return out;
}

/// Text of an ONNX ModelProto as a look-alike of TensorFlow's GraphDef: control inputs are ^NODE, attributes texts. Attributes
/// of more than one value and subgraphs are left out.
inline std::string torch_pbtxt(const std::string& onnx) {
  std::istringstream in(onnx);
  std::string out, node, key;
  std::optional<std::string> value;
  const auto after = [](const std::string& line, const std::string& field) {
    return line.rfind(field, 0) == 0 ? std::optional(line.substr(field.size())) : std::nullopt;
  };
  bool is_subgraph = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "  node {") {
      node = "node {\n";
      is_subgraph = false;
    } else if (line == "  }" && !node.empty()) {
      if (!is_subgraph) out += node + "}\n";
      node.clear();
    } else if (node.empty()) {
      continue;
    } else if (const auto name = after(line, "    name: ")) {
      node += "  name: " + *name + "\n";
    } else if (const auto type = after(line, "    op_type: \"ge:")) {
      node += "  op: \"" + *type + "\n";
    } else if (line.rfind("    op_type: ", 0) == 0) {
      is_subgraph = true;
    } else if (const auto input = after(line, "    input: \"")) {
      const std::size_t control = input->size() < 4 ? std::string::npos : input->rfind(":-1\"");
      node += "  input: \"" + (control == input->size() - 4 ? "^" + input->substr(0, control) + "\"" : *input) + "\n";
    } else if (line == "    attribute {") {
      key.clear();
      value.reset();
    } else if (const auto attribute = after(line, "      name: ")) {
      key = attribute->rfind("\"output_desc_dtype:", 0) == 0 ? "\"[o]" + attribute->substr(19) : *attribute;
      if (key == "\"stream_id\"" || key == "\"id\"") value = "\"0\"";  // a zero is not printed there
    } else if (const auto text = after(line, "      s: ")) {
      value = *text;
    } else if (const auto number = after(line, "      i: ")) {
      value = '"' + *number + '"';
    } else if (line == "    }" && !key.empty() && value) {
      node += "  attr {\n    key: " + key + "\n    value {\n      s: " + *value + "\n    }\n  }\n";
    }
  }
  return out;
}

}  // namespace millstream::testing
