// SPDX-License-Identifier: Apache-2.0
// A graph as text of an ONNX ModelProto, as Graph Engine lays it out and ONNX viewers open it.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "millstream/dump/writers.h"

namespace millstream::dump {
namespace {

struct OnnxAttr {
  std::string name;
  Attr value;
  bool of_op = false;  // texts of these are left out below full detail
};

class OnnxWriter {
 public:
  OnnxWriter(const Rows& rows, DumpDetail detail) : rows_(rows), detail_(detail) {}

  std::string model(std::size_t first, bool whole) {
    alone_ = !whole;
    out_.integer("ir_version", 6);
    out_.text("producer_name", "GE");
    out_.integer("model_version", 1);
    out_.open("graph");
    nodes(first);
    if (whole) {
      for (std::size_t s = 1; s < rows_.sections().size(); ++s) subgraph(s);
    }
    end_graph(first, false);
    out_.close();
    // Graph Engine names no operator set: only what differs from what a reader takes for granted.
    const int opset = rows_.sections()[first].graph->opset();
    if (opset != 23) {
      out_.open("opset_import");
      out_.integer("version", opset);
      out_.close();
    }
    return out_.take();
  }

 private:
  void nodes(std::size_t section) {
    rows_.for_each(section, alone_, [&](const NodeRow& row) { node(row); });
  }

  void end_graph(std::size_t section, bool inputs) {
    out_.text("name", rows_.sections()[section].name);
    if (inputs) {
      for (const std::string& name : rows_.inputs(section)) value_info("input", std::string_view(name).substr(0, name.rfind(':')), nullptr);
    }
    for (const auto& [node, index] : rows_.outputs(section)) value_info("output", node, &node);
  }

  void value_info(std::string_view field, std::string_view name, const std::string* node) {
    out_.open(field);
    out_.text("name", name);
    const auto found = node == nullptr ? descs_.end() : descs_.find(*node);
    if (found != descs_.end()) {
      out_.open("type");
      out_.open("tensor_type");
      const int type = found->second.empty() ? 0 : onnx_type(found->second.front().dtype);
      if (type != 0) out_.integer("elem_type", type);
      out_.open("shape");
      for (const DescRow& desc : found->second) {
        for (const std::int64_t d : desc.dims) {
          out_.open("dim");
          if (d != 0) out_.integer("dim_value", d);
          out_.close();
        }
      }
      out_.close();
      out_.close();
      out_.close();
    }
    out_.close();
  }

  // Types that viewers know by this number.
  static int onnx_type(DType type) {
    return type == DType::string || type == DType::c64 || type == DType::c128 || type > DType::u64 ? 0 : static_cast<int>(type);
  }

  void subgraph(std::size_t section) {
    out_.open("node");
    out_.text("name", rows_.sections()[section].name);
    out_.text("op_type", "subgraph");
    out_.open("attribute");
    out_.text("name", "graph");
    out_.open("g");
    nodes(section);
    end_graph(section, true);
    out_.close();
    out_.word("type", "GRAPH");
    out_.close();
    out_.close();
  }

  void node(const NodeRow& row) {
    out_.open("node");
    for (const std::string& input : row.inputs) out_.text("input", input);
    for (const std::int64_t i : row.outputs) out_.text("output", fmt::format("{}:{}", row.name, i));
    out_.text("name", row.name);
    out_.text("op_type", "ge:" + row.type);
    if (detail_ != DumpDetail::links) attributes(row);
    out_.close();
    if (!row.output_descs.empty() && is_result(row.name)) descs_[row.name] = row.output_descs;
  }

  bool is_result(const std::string& name) {
    if (!results_known_) {
      for (const auto& [node, index] : rows_.outputs(0)) results_.push_back(node);
      std::sort(results_.begin(), results_.end());
      results_known_ = true;
    }
    return std::binary_search(results_.begin(), results_.end(), name);
  }

  void attributes(const NodeRow& row) {
    std::vector<OnnxAttr> list;
    const auto descs = [&](std::string_view side, const std::vector<DescRow>& all) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        list.push_back({fmt::format("{}_desc_dtype:{}", side, i), std::string(dt_name(all[i].dtype))});
        list.push_back({fmt::format("{}_desc_layout:{}", side, i), "ND"});
        list.push_back({fmt::format("{}_desc_shape:{}", side, i), all[i].dims});
      }
      if (!all.empty()) list.push_back({fmt::format("{}_desc_nums", side), static_cast<std::int64_t>(all.size())});
    };
    descs("input", row.input_descs);
    descs("output", row.output_descs);
    if (row.id) list.push_back({"id", *row.id});
    if (row.stream) list.push_back({"stream_id", *row.stream});
    if (!row.send.empty()) list.push_back({"send_event_id_list", row.send});
    if (!row.recv.empty()) list.push_back({"recv_event_id_list", row.recv});
    const std::size_t own = list.size();
    const auto add = [&](std::string name, Attr value) {
      // An attribute of the operator never takes the place of what Graph Engine keeps under that name.
      const bool taken = std::any_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(own), [&](const OnnxAttr& a) { return a.name == name; });
      if (!taken) list.push_back({std::move(name), std::move(value), true});
    };
    for (const auto& [name, value] : row.attrs) {
      if (const Tensor* tensor = std::get_if<Tensor>(&value)) {
        list.push_back({name + "_desc_dtype", std::string(dt_name(tensor->dtype()))});
        list.push_back({name + "_desc_shape", std::vector<std::int64_t>(tensor->shape().begin(), tensor->shape().end())});
        list.push_back({name + "_desc_layout", "ND"});
        list.push_back({name + "_desc_device_type", "NPU"});
        if (detail_ == DumpDetail::full) add(name + "_data", std::string(reinterpret_cast<const char*>(tensor->bytes()), tensor->byte_size()));
      } else {
        add(name, value);
      }
    }
    if (!row.subgraphs.empty()) add(std::string(kSubgraphs), row.subgraphs);
    std::stable_sort(list.begin(), list.end(), [](const OnnxAttr& a, const OnnxAttr& b) { return a.name < b.name; });
    for (const OnnxAttr& a : list) {
      const bool is_text = std::holds_alternative<std::string>(a.value) || std::holds_alternative<std::vector<std::string>>(a.value);
      if (!(a.of_op && is_text && detail_ != DumpDetail::full)) attribute(a);
    }
  }

  void attribute(const OnnxAttr& a) {
    out_.open("attribute");
    out_.text("name", a.name);
    // Fields of zero are not printed.
    if (const auto* i = std::get_if<std::int64_t>(&a.value)) {
      if (*i != 0) out_.integer("i", *i);
      out_.word("type", "INT");
    } else if (const auto* f = std::get_if<float>(&a.value)) {
      if (*f != 0) out_.real("f", *f);
      out_.word("type", "FLOAT");
    } else if (const auto* s = std::get_if<std::string>(&a.value)) {
      if (!s->empty()) out_.bytes("s", *s);
      out_.word("type", "STRING");
    } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&a.value)) {
      for (const std::int64_t v : *list) out_.integer("ints", v);
      out_.word("type", "INTS");
    } else if (const auto* floats = std::get_if<std::vector<float>>(&a.value)) {
      for (const float v : *floats) out_.real("floats", v);
      out_.word("type", "FLOATS");
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&a.value)) {
      for (const std::string& v : *strings) out_.bytes("strings", v);
      out_.word("type", "STRINGS");
    }
    out_.close();
  }

  const Rows& rows_;
  DumpDetail detail_;
  bool alone_ = false;
  TextWriter out_;
  std::unordered_map<std::string, std::vector<DescRow>> descs_;  // of nodes with results; looked up only
  std::vector<std::string> results_;
  bool results_known_ = false;
};

}  // namespace

std::string write_onnx(const Rows& rows, std::size_t first, bool whole, DumpDetail detail) { return OnnxWriter(rows, detail).model(first, whole); }

}  // namespace millstream::dump
