// SPDX-License-Identifier: Apache-2.0
// A graph as text of ge.proto.ModelDef, fields in the order of their numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "millstream/dump/writers.h"

namespace millstream {
namespace dump {
namespace {

class ProtoWriter {
 public:
  ProtoWriter(const Rows& rows, DumpDetail detail) : rows_(rows), detail_(detail) {}

  std::string model(std::size_t first, bool whole) {
    alone_ = !whole;
    out_.integer("version", 1);
    graph(first);
    if (whole) {
      for (std::size_t s = 1; s < rows_.sections().size(); ++s) graph(s);
    }
    const int opset = rows_.sections()[first].graph->opset();
    if (opset != 23) {
      out_.open("attr");
      out_.text("key", "_millstream_opset");
      out_.open("value");
      out_.integer("i", opset);
      out_.close();
      out_.close();
    }
    return out_.take();
  }

 private:
  void graph(std::size_t section) {
    out_.open("graph");
    out_.text("name", rows_.sections()[section].name);
    for (const std::string& input : rows_.inputs(section)) out_.text("input", input);
    for (const auto& [node, index] : rows_.outputs(section)) out_.text("output", fmt::format("{}:{}", node, index));
    rows_.for_each(section, alone_, [&](const NodeRow& row) { op(row); });
    out_.close();
  }

  void op(const NodeRow& row) {
    out_.open("op");
    out_.text("name", row.name);
    out_.text("type", row.type);
    for (const std::string& input : row.inputs) out_.text("input", input);
    attrs(row);
    if (row.id.value_or(0) != 0) out_.integer("id", *row.id);
    if (row.stream.value_or(0) != 0) out_.integer("stream_id", *row.stream);
    for (const DescRow& desc : row.input_descs) descriptor("input_desc", desc, false);
    for (const DescRow& desc : row.output_descs) descriptor("output_desc", desc, false);
    for (const std::string& name : row.subgraphs) out_.text("subgraph_name", name);
    out_.close();
  }

  void descriptor(std::string_view field, const DescRow& desc, bool device) {
    out_.open(field);
    if (desc.dtype != DType::undefined) out_.word("dtype", dt_name(desc.dtype));
    out_.open("shape");
    for (const std::int64_t d : desc.dims) out_.integer("dim", d);
    out_.close();
    out_.text("layout", "ND");
    if (device) out_.text("device_type", "NPU");
    out_.close();
  }

  void attrs(const NodeRow& row) {
    const bool weights = detail_ == DumpDetail::full || (row.type != "Const" && row.type != "Constant");
    std::vector<std::pair<std::string_view, Attr>> list;
    for (const auto& [name, value] : row.attrs) list.push_back({name, value});
    if (!row.send.empty()) list.push_back({"send_event_id_list", row.send});
    if (!row.recv.empty()) list.push_back({"recv_event_id_list", row.recv});
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [name, value] : list) {
      if (std::holds_alternative<Tensor>(value) && !weights) continue;
      out_.open("attr");
      out_.text("key", name);
      out_.open("value");
      attr_value(value);
      out_.close();
      out_.close();
    }
  }

  // A member of a oneof is printed also where it is 0.
  void attr_value(const Attr& value) {
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
      out_.integer("i", *i);
    } else if (const auto* f = std::get_if<float>(&value)) {
      out_.real("f", *f);
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      out_.bytes("s", *s);
    } else if (const auto* t = std::get_if<Tensor>(&value)) {
      out_.open("t");
      descriptor("desc", to_row(t->desc()), true);
      out_.bytes("data", std::string_view(reinterpret_cast<const char*>(t->bytes()), t->byte_size()));
      out_.close();
    } else {
      out_.open("list");
      if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
        for (const std::int64_t v : *ints) out_.integer("i", v);
        out_.word("val_type", "VT_LIST_INT");
      } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
        for (const float v : *floats) out_.real("f", v);
        out_.word("val_type", "VT_LIST_FLOAT");
      } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
        for (const std::string& v : *strings) out_.bytes("s", v);
        out_.word("val_type", "VT_LIST_STRING");
      }
      out_.close();
    }
  }

  const Rows& rows_;
  DumpDetail detail_;
  bool alone_ = false;
  TextWriter out_;
};

}  // namespace

std::string write_proto(const Rows& rows, std::size_t first, bool whole, DumpDetail detail) { return ProtoWriter(rows, detail).model(first, whole); }

}  // namespace dump

namespace {

std::string write(const dump::Rows& rows, std::size_t first, bool whole, DumpFormat format, DumpDetail detail) {
  return format == DumpFormat::onnx ? write_onnx(rows, first, whole, detail) : write_proto(rows, first, whole, detail);
}

}  // namespace

std::string write_dump(const Graph& graph, const DumpStreams& streams, DumpFormat format, DumpDetail detail) {
  return write(dump::Rows(graph, streams), 0, true, format, detail);
}

std::size_t dump_subgraphs(const Graph& graph) {
  const DumpStreams none;
  return dump::Rows(graph, none).sections().size() - 1;
}

std::string write_subgraph_dump(const Graph& graph, std::size_t index, const DumpStreams& streams, DumpFormat format, DumpDetail detail) {
  return write(dump::Rows(graph, streams), index + 1, false, format, detail);
}

}  // namespace millstream
