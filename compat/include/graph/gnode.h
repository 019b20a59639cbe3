// SPDX-License-Identifier: Apache-2.0
// A node of a graph that a pass is given. Header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "attr_value.h"

namespace ge __attribute__((visibility("hidden"))) {

class Graph;
class GNode;
using GNodePtr = std::shared_ptr<GNode>;
using GraphPtr = std::shared_ptr<Graph>;
using ConstGraphPtr = std::shared_ptr<const Graph>;

/// A handle, cheap to copy. Valid while the pass runs: afterwards, and on one made by GNode(), calls fail or find nothing.
class GNode {
 public:
  GNode() = default;

  graphStatus GetName(AscendString& name) const { return text(api_ == nullptr ? nullptr : api_->node_name, name); }
  graphStatus GetType(AscendString& type) const { return text(api_ == nullptr ? nullptr : api_->node_type, type); }

  std::size_t GetInputsSize() const { return ports(MST_INPUTS); }
  std::size_t GetOutputsSize() const { return ports(MST_OUTPUTS); }

  /// What feeds input `index`: the node and which of its outputs. Null and -1 where no node does: a graph input, a constant,
  /// an input left out.
  std::pair<GNodePtr, std::int32_t> GetInDataNodesAndPortIndexs(std::int32_t index) const {
    mst_port from = {nullptr, -1};
    if (api_ == nullptr || index < 0 || api_->node_producer(node_, static_cast<std::size_t>(index), &from) != 0 || from.node == nullptr) {
      return {nullptr, -1};
    }
    return {pointer(from.node), from.index};
  }
  /// The nodes that read output `index`, and by which of their inputs.
  std::vector<std::pair<GNodePtr, std::int32_t>> GetOutDataNodesAndPortIndexs(std::int32_t index) const {
    std::vector<std::pair<GNodePtr, std::int32_t>> out;
    if (api_ == nullptr || index < 0) return out;
    const std::size_t count = api_->node_consumer_count(node_, static_cast<std::size_t>(index));
    for (std::size_t i = 0; i < count; ++i) {
      mst_port to = {nullptr, -1};
      if (api_->node_consumer(node_, static_cast<std::size_t>(index), i, &to) == 0) out.emplace_back(pointer(to.node), to.index);
    }
    return out;
  }
  std::vector<GNodePtr> GetInControlNodes() const { return controls(MST_INPUTS); }
  std::vector<GNodePtr> GetOutControlNodes() const { return controls(MST_OUTPUTS); }

  graphStatus GetInputDesc(std::int32_t index, TensorDesc& desc) const { return describe(MST_INPUTS, index, desc); }
  graphStatus GetOutputDesc(std::int32_t index, TensorDesc& desc) const { return describe(MST_OUTPUTS, index, desc); }
  /// Failure where the input is no constant.
  graphStatus GetInputConstData(std::int32_t index, Tensor& data) const {
    mst_tensor t = mst_tensor();
    t.struct_size = sizeof t;
    if (api_ == nullptr || index < 0 || api_->node_constant(node_, static_cast<std::size_t>(index), &t) != 0) return GRAPH_FAILED;
    data = detail::tensor_of(t);
    return GRAPH_SUCCESS;
  }
  /// A port has the name of the value that passes it.
  graphStatus GetInputIndexByName(const AscendString& name, std::int32_t& index) const { return find(MST_INPUTS, name, index); }
  graphStatus GetOutputIndexByName(const AscendString& name, std::int32_t& index) const { return find(MST_OUTPUTS, name, index); }

  bool HasAttr(const AscendString& name) const {
    mst_attr attr;
    return read(name, attr);
  }
  graphStatus GetAttr(const AscendString& name, AttrValue& value) const {
    mst_attr attr;
    if (!read(name, attr)) return GRAPH_FAILED;
    switch (attr.kind) {
      case MST_ATTR_INT: value.SetAttrValue(attr.i); break;
      case MST_ATTR_FLOAT: value.SetAttrValue(attr.f); break;
      case MST_ATTR_STRING: value.SetAttrValue(detail::text_of(attr.s)); break;
      case MST_ATTR_INTS: value.SetAttrValue(std::vector<std::int64_t>(attr.ints, attr.ints + attr.count)); break;
      case MST_ATTR_FLOATS: value.SetAttrValue(std::vector<float>(attr.floats, attr.floats + attr.count)); break;
      case MST_ATTR_STRINGS: value.SetAttrValue(texts(name, attr.count)); break;
      case MST_ATTR_TENSOR: value.SetAttrValue(detail::tensor_of(attr.tensor)); break;
      default: return GRAPH_FAILED;
    }
    return GRAPH_SUCCESS;
  }
  /// T: int64, int32, uint32, float, AscendString, bool, Tensor, DataType, vectors of them, OpBytes. Failure where there is no
  /// such attribute, or one of another type.
  template <class T>
  graphStatus GetAttr(const AscendString& name, T& value) const {
    AttrValue any;
    return GetAttr(name, any) == GRAPH_SUCCESS ? any.GetAttrValue(value) : GRAPH_FAILED;
  }
  /// Always refused: at this stage only streams may change.
  template <class T>
  graphStatus SetAttr(const AscendString&, T&&) const {
    return GRAPH_FAILED;
  }

  graphStatus GetSubgraph(std::uint32_t index, GraphPtr& graph) const;
  graphStatus GetALLSubgraphs(std::vector<GraphPtr>& graphs) const;

 private:
  friend class Graph;
  friend class StreamPassContext;
  GNode(const mst_host_api* api, const mst_node* node) : api_(api), node_(node) {}

  GNodePtr pointer(const mst_node* node) const { return GNodePtr(new GNode(api_, node)); }
  graphStatus text(std::int32_t (*ask)(const mst_node*, mst_str*), AscendString& out) const {
    mst_str s = {nullptr, 0};
    if (ask == nullptr || ask(node_, &s) != 0) return GRAPH_FAILED;
    out = detail::text_of(s);
    return GRAPH_SUCCESS;
  }
  std::size_t ports(std::int32_t side) const { return api_ == nullptr ? 0 : api_->node_port_count(node_, side); }
  std::vector<GNodePtr> controls(std::int32_t side) const {
    std::vector<GNodePtr> out;
    const std::size_t count = api_ == nullptr ? 0 : api_->node_control_count(node_, side);
    for (std::size_t i = 0; i < count; ++i) out.push_back(pointer(api_->node_control(node_, side, i)));
    return out;
  }
  graphStatus describe(std::int32_t side, std::int32_t index, TensorDesc& out) const {
    if (api_ == nullptr || index < 0) return GRAPH_FAILED;
    const std::size_t port = static_cast<std::size_t>(index);
    mst_desc desc = {sizeof(mst_desc), 0, 0};
    std::vector<std::int64_t> dims(8);
    if (api_->node_desc(node_, side, port, &desc, dims.data(), dims.size()) != 0) return GRAPH_FAILED;
    if (desc.rank > static_cast<std::int32_t>(dims.size())) {
      dims.resize(static_cast<std::size_t>(desc.rank));
      if (api_->node_desc(node_, side, port, &desc, dims.data(), dims.size()) != 0) return GRAPH_FAILED;
    }
    if (desc.rank < 0) {
      dims.assign(1, -2);
    } else {
      dims.resize(static_cast<std::size_t>(desc.rank));
    }
    out = TensorDesc(Shape(dims), FORMAT_ND, detail::type_of(desc.dtype));
    mst_str name = {nullptr, 0};
    if (api_->node_port_name(node_, side, port, &name) == 0) out.SetName(detail::text_of(name).GetString());
    return GRAPH_SUCCESS;
  }
  graphStatus find(std::int32_t side, const AscendString& name, std::int32_t& index) const {
    for (std::size_t i = 0; i < ports(side); ++i) {
      mst_str s = {nullptr, 0};
      if (api_->node_port_name(node_, side, i, &s) != 0 || detail::text_of(s) != name) continue;
      index = static_cast<std::int32_t>(i);
      return GRAPH_SUCCESS;
    }
    return GRAPH_FAILED;
  }
  bool read(const AscendString& name, mst_attr& attr) const {
    attr = mst_attr();
    attr.struct_size = sizeof attr;
    attr.tensor.struct_size = sizeof attr.tensor;
    return api_ != nullptr && api_->node_attr(node_, detail::str_of(name), &attr) == 0;
  }
  std::vector<AscendString> texts(const AscendString& name, std::size_t count) const {
    std::vector<AscendString> out(count);
    for (std::size_t i = 0; i < count; ++i) {
      mst_str s = {nullptr, 0};
      if (api_->node_attr_string(node_, detail::str_of(name), i, &s) == 0) out[i] = detail::text_of(s);
    }
    return out;
  }

  const mst_host_api* api_ = nullptr;
  const mst_node* node_ = nullptr;
};

}  // namespace ge

#include "graph.h"
