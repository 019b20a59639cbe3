// SPDX-License-Identifier: Apache-2.0
// ge_onnx_*.pbtxt: a ModelProto of ONNX whose node attributes hold what Graph Engine knows of a node.
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "millstream/dump/readers.h"

namespace millstream::dump {
namespace {

// Attributes that say how Graph Engine stores a node, not what it is.
constexpr std::string_view kBookkeeping[] = {
    "_input_name_key", "_input_name_value", "_ir_attr_names", "_ir_inputs_key", "_ir_inputs_value", "_ir_outputs_key", "_ir_outputs_value",
    "_opt_input", "_output_name_key", "_output_name_value", "dst_index", "dst_name", "input_desc_nums", "input_i", "input_name", "is_input_const",
    "output_desc_nums", "output_i", "src_index", "src_name", "workspace", "workspace_bytes"};

struct AttrRow {
  std::string name;
  std::string_view type;
  std::int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::string_view seen;  // the field that held the value, where no type is given
  void clear() {
    name.clear();
    type = seen = {};
    i = 0;
    f = 0;
    s.clear();
    ints.clear();
    floats.clear();
    strings.clear();
  }
};

bool starts_with(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

class OnnxReader {
 public:
  OnnxReader(Scanner& scanner, Assembler& out) : s_(scanner), out_(out) {}

  void model() {
    bool any = false;
    while (const auto f = s_.field()) {
      if (*f == "graph" && s_.at_message()) {
        if (any) return s_.fail(s_.offset(), "a second graph; a model of ONNX has one");
        any = true;
        const std::uint32_t section = out_.open_section(s_.offset());
        if (s_.open()) graph(section);
      } else if (*f == "opset_import" && s_.open()) {
        while (const auto g = s_.field()) {
          if (*g == "version") {
            if (const std::int64_t version = s_.integer(); version >= 1 && version <= 1000) out_.set_opset(version);
          } else {
            s_.skip();
          }
        }
      } else {
        s_.skip();
      }
    }
  }

 private:
  void graph(std::uint32_t section) {
    NodeRow row;
    std::string output;
    while (const auto f = s_.field()) {
      if (*f == "node") {
        row.clear();
        row.place = s_.offset();
        if (s_.open()) node(section, row);
      } else if (*f == "name") {
        out_.name_section(section, s_.string());
      } else if (*f == "output") {
        if (!s_.open()) return;
        output.clear();
        while (const auto g = s_.field()) {
          if (*g == "name") {
            output = s_.string();
          } else {
            s_.skip();
          }
        }
        if (!output.empty()) out_.add_output(section, output, -1);
      } else {
        s_.skip();
      }
    }
  }

  void node(std::uint32_t section, NodeRow& row) {
    bool holds_graph = false;
    tensors_.clear();
    while (const auto f = s_.field()) {
      if (*f == "input") {
        row.inputs.emplace_back(s_.string());
      } else if (*f == "output") {
        const std::string_view text = s_.string();
        const std::size_t colon = text.rfind(':');
        std::int64_t index = -1;
        if (colon != std::string_view::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), index);
        if (index >= 0 && index < 65535) row.outputs.push_back(index);
      } else if (*f == "name") {
        row.name = s_.string();
      } else if (*f == "op_type") {
        row.type = s_.string();
      } else if (*f == "attribute") {
        if (!s_.open()) return;
        holds_graph = attribute(row) || holds_graph;
      } else {
        s_.skip();
      }
    }
    if (s_.failed()) return;
    if (row.type == "subgraph") {
      if (!holds_graph) s_.fail(row.place, fmt::format("the subgraph node \"{}\" holds no graph", row.name));
      return;
    }
    const std::size_t colon = row.type.find(':');
    if (colon == std::string::npos) {
      return s_.fail(row.place, fmt::format("node \"{}\" has the operator type \"{}\"; dumps write ge:TYPE", row.name, row.type));
    }
    row.type.erase(0, colon + 1);
    join_tensors(row);
    out_.add(section, row);
  }

  // Whether it holds a graph, which then has been read.
  bool attribute(NodeRow& row) {
    attr_.clear();
    bool graph_read = false;
    while (const auto f = s_.field()) {
      if (*f == "name") {
        attr_.name = s_.string();
        continue;
      }
      if (*f == "type") {
        attr_.type = s_.word();
        continue;
      }
      if (*f == "i") {
        attr_.i = s_.integer();
      } else if (*f == "f") {
        attr_.f = s_.number();
      } else if (*f == "s") {
        attr_.s = s_.string();
      } else if (*f == "ints") {
        attr_.ints.push_back(s_.integer());
      } else if (*f == "floats") {
        attr_.floats.push_back(static_cast<float>(s_.number()));
      } else if (*f == "strings") {
        attr_.strings.emplace_back(s_.string());
        out_.count_text();
      } else if (*f == "g" && s_.at_message()) {
        const std::uint32_t section = out_.open_section(s_.offset());
        AttrRow outer = std::exchange(attr_, {});
        auto tensors = std::exchange(tensors_, {});
        if (s_.open()) graph(section);
        attr_ = std::move(outer);
        tensors_ = std::move(tensors);
        if (!out_.section_has_name(section)) out_.name_section(section, row.name);
        graph_read = true;
        continue;
      } else {
        s_.skip();
        continue;
      }
      attr_.seen = *f;
    }
    if (!s_.failed() && !graph_read) take(row);
    return graph_read;
  }

  enum class Value { integer, real, text, integers, reals, texts, other };
  Value value_kind() const {
    const std::string_view t = attr_.type;
    if (t == "INT" || t == "2") return Value::integer;
    if (t == "INTS" || t == "7") return Value::integers;
    if (t == "STRING" || t == "3") return Value::text;
    if (t == "STRINGS" || t == "8") return Value::texts;
    if (t == "FLOAT" || t == "1") return Value::real;
    if (t == "FLOATS" || t == "6") return Value::reals;
    if (!t.empty()) return Value::other;
    if (attr_.seen == "i") return Value::integer;
    if (attr_.seen == "ints") return Value::integers;
    if (attr_.seen == "s") return Value::text;
    if (attr_.seen == "strings") return Value::texts;
    if (attr_.seen == "f") return Value::real;
    return attr_.seen == "floats" ? Value::reals : Value::other;
  }

  // "dtype:3" of output_desc_dtype:3.
  DescRow* desc(NodeRow& row, std::string_view rest, std::string_view& what) {
    const std::size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return nullptr;
    std::uint32_t index = 0;
    const char* end = rest.data() + rest.size();
    const auto [stop, code] = std::from_chars(rest.data() + colon + 1, end, index);
    // Descs stand in order of their names, so 10 may come before 2.
    if (code != std::errc() || stop != end || index > row.output_descs.size() + 1000 || index >= 65535) return nullptr;
    if (index >= row.output_descs.size()) row.output_descs.resize(index + 1);
    what = rest.substr(0, colon);
    return &row.output_descs[index];
  }

  void take(NodeRow& row) {
    const std::string_view name = attr_.name;
    const Value kind = value_kind();
    if (name == "stream_id" && kind == Value::integer) {
      row.stream = attr_.i;
    } else if (name == "id" && kind == Value::integer) {
      row.id = attr_.i;
    } else if (name == "send_event_id_list" && kind == Value::integers) {
      row.send = std::move(attr_.ints);
    } else if (name == "recv_event_id_list" && kind == Value::integers) {
      row.recv = std::move(attr_.ints);
    } else if (starts_with(name, "input_desc_")) {
      return;
    } else if (starts_with(name, "output_desc_") && name.find(':') != std::string_view::npos) {
      std::string_view what;
      DescRow* out = desc(row, name.substr(12), what);
      if (out != nullptr && what == "dtype") out->dtype = dt_from_name(attr_.s);
      if (out != nullptr && what == "shape") {
        out->dims = std::move(attr_.ints);
        out->has_shape = true;
      }
    } else if (std::binary_search(std::begin(kBookkeeping), std::end(kBookkeeping), name)) {
      return;
    } else if (const std::size_t at = name.rfind("_desc_"); at != std::string_view::npos && tensor_part(name.substr(0, at), name.substr(at + 6))) {
      return;
    } else {
      switch (kind) {
        case Value::integer: row.attrs.push_back({attr_.name, attr_.i}); break;
        case Value::real: row.attrs.push_back({attr_.name, static_cast<float>(attr_.f)}); break;
        case Value::text: row.attrs.push_back({std::move(attr_.name), std::move(attr_.s)}); break;
        case Value::integers: row.attrs.push_back({std::move(attr_.name), std::move(attr_.ints)}); break;
        case Value::reals: row.attrs.push_back({std::move(attr_.name), std::move(attr_.floats)}); break;
        case Value::texts: row.attrs.push_back({std::move(attr_.name), std::move(attr_.strings)}); break;
        case Value::other: break;
      }
    }
  }

  // A tensor attribute T is spread over T_desc_dtype, T_desc_shape and more, and T_data.
  bool tensor_part(std::string_view of, std::string_view part) {
    if (part != "dtype" && part != "shape" && part != "layout" && part != "device_type") return false;
    DescRow& desc = tensors_[std::string(of)];
    if (part == "dtype") desc.dtype = dt_from_name(attr_.s);
    if (part == "shape") {
      desc.dims = std::move(attr_.ints);
      desc.has_shape = true;
    }
    return true;
  }

  void join_tensors(NodeRow& row) {
    if (tensors_.empty()) return;
    constexpr std::string_view kData = "_data";
    std::vector<std::pair<std::string, Attr>> joined;
    for (auto& [name, value] : row.attrs) {
      const bool data = name.size() > kData.size() && name.compare(name.size() - kData.size(), kData.size(), kData) == 0;
      const auto desc = data ? tensors_.find(name.substr(0, name.size() - kData.size())) : tensors_.end();
      if (desc == tensors_.end()) {
        joined.push_back({std::move(name), std::move(value)});
        continue;
      }
      const auto* bytes = std::get_if<std::string>(&value);
      if (auto tensor = bytes == nullptr ? std::nullopt : tensor_of(desc->second, *bytes)) joined.push_back({desc->first, *std::move(tensor)});
    }
    row.attrs = std::move(joined);
  }

  Scanner& s_;
  Assembler& out_;
  AttrRow attr_;
  std::map<std::string, DescRow> tensors_;  // of the node that is open
};

}  // namespace

void read_onnx(Scanner& scanner, Assembler& out) { OnnxReader(scanner, out).model(); }

}  // namespace millstream::dump
