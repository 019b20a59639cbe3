// SPDX-License-Identifier: Apache-2.0
// Short words for ONNX models in tests. The bytes come from the protobuf messages of libonnx, so that our
// reader is checked against a writer it shares nothing with.
#pragma once

#define ONNX_NAMESPACE onnx
#define ONNX_ML 1
#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/import/import.h"

namespace millstream::test {

inline onnx::ModelProto model(int opset = 17, int ir = 8) {
  onnx::ModelProto m;
  m.set_ir_version(ir);
  m.add_opset_import()->set_version(opset);
  m.mutable_graph()->set_name("g");
  return m;
}

/// Dimensions: numbers, or names in text.
inline void describe(onnx::ValueInfoProto* v, const std::string& name, int type, const std::vector<std::string>& dims) {
  v->set_name(name);
  auto* tensor = v->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  auto* shape = tensor->mutable_shape();
  for (const std::string& d : dims) {
    auto* dim = shape->add_dim();
    if (!d.empty() && (d[0] == '-' || (d[0] >= '0' && d[0] <= '9'))) {
      dim->set_dim_value(std::stoll(d));
    } else if (!d.empty()) {
      dim->set_dim_param(d);
    }
  }
}
inline void input(onnx::GraphProto* g, const std::string& name, const std::vector<std::string>& dims, int type = 1) {
  describe(g->add_input(), name, type, dims);
}
inline void output(onnx::GraphProto* g, const std::string& name) { g->add_output()->set_name(name); }

inline onnx::NodeProto* node(onnx::GraphProto* g, const std::string& type, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, const std::string& name = "") {
  auto* n = g->add_node();
  n->set_op_type(type);
  if (!name.empty()) n->set_name(name);
  for (const auto& i : inputs) n->add_input(i);
  for (const auto& o : outputs) n->add_output(o);
  return n;
}
inline onnx::NodeProto* node(onnx::FunctionProto* f, const std::string& type, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs) {
  auto* n = f->add_node();
  n->set_op_type(type);
  for (const auto& i : inputs) n->add_input(i);
  for (const auto& o : outputs) n->add_output(o);
  return n;
}

inline onnx::AttributeProto* attribute(onnx::NodeProto* n, const std::string& name, onnx::AttributeProto::AttributeType type) {
  auto* a = n->add_attribute();
  a->set_name(name);
  a->set_type(type);
  return a;
}
inline void set_int(onnx::NodeProto* n, const std::string& name, std::int64_t value) {
  attribute(n, name, onnx::AttributeProto::INT)->set_i(value);
}
inline void set_ints(onnx::NodeProto* n, const std::string& name, const std::vector<std::int64_t>& values) {
  auto* a = attribute(n, name, onnx::AttributeProto::INTS);
  for (const auto v : values) a->add_ints(v);
}

inline onnx::TensorProto* floats(onnx::TensorProto* t, const std::string& name, const std::vector<std::int64_t>& dims,
                                 const std::vector<float>& values) {
  t->set_name(name);
  t->set_data_type(onnx::TensorProto::FLOAT);
  for (const auto d : dims) t->add_dims(d);
  t->set_raw_data(values.data(), values.size() * sizeof(float));
  return t;
}
inline onnx::TensorProto* ints(onnx::TensorProto* t, const std::string& name, const std::vector<std::int64_t>& dims,
                               const std::vector<std::int64_t>& values) {
  t->set_name(name);
  t->set_data_type(onnx::TensorProto::INT64);
  for (const auto d : dims) t->add_dims(d);
  for (const auto v : values) t->add_int64_data(v);
  return t;
}

inline Result<Graph> imported(const onnx::ModelProto& m, const ImportOptions& options = {}, const std::string& folder = "") {
  return import_onnx(m.SerializeAsString(), "test.onnx", folder, options);
}
inline std::string failure(const onnx::ModelProto& m, const ImportOptions& options = {}, const std::string& folder = "") {
  const auto graph = imported(m, options, folder);
  return graph.ok() ? "no error" : to_string(graph.error());
}
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace millstream::test
