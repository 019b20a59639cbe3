// SPDX-License-Identifier: Apache-2.0
// ge_proto_*.txt: a ModelDef of Graph Engine, or a bare GraphDef.
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "millstream/dump/readers.h"

namespace millstream::dump {
namespace {

class ProtoReader {
 public:
  ProtoReader(Scanner& scanner, Assembler& out) : s_(scanner), out_(out) {}

  void model() {
    while (const auto f = s_.field()) {
      if (*f == "graph" && s_.at_message()) {
        const std::uint32_t section = out_.open_section(s_.offset());
        if (s_.open()) graph(section);
      } else if (*f == "attr" && s_.at_message()) {
        model_attr();
      } else {
        s_.skip();
      }
    }
  }

  void graph(std::uint32_t section) {
    while (const auto f = s_.field()) {
      if (*f == "op") {
        row_.clear();
        row_.place = s_.offset();
        // Numbers that are left out are 0.
        row_.stream = 0;
        row_.id = 0;
        if (!s_.open()) return;
        op();
        if (!s_.failed()) out_.add(section, row_);
      } else if (*f == "name") {
        out_.name_section(section, s_.string());
      } else if (*f == "output") {
        const std::string_view text = s_.string();
        const std::size_t colon = text.rfind(':');
        std::int64_t index = -1;
        if (colon != std::string_view::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), index);
        if (!text.empty()) out_.add_output(section, text.substr(0, colon), index);
      } else {
        s_.skip();
      }
    }
  }

 private:
  void model_attr() {
    std::string key;
    if (!s_.open()) return;
    while (const auto f = s_.field()) {
      if (*f == "key") {
        key = s_.string();
      } else if (*f == "value" && key == "_millstream_opset" && s_.open()) {
        while (const auto g = s_.field()) {
          if (*g == "i") {
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

  void op() {
    while (const auto f = s_.field()) {
      if (*f == "name") {
        row_.name = s_.string();
      } else if (*f == "type") {
        row_.type = s_.string();
      } else if (*f == "input") {
        row_.inputs.emplace_back(s_.string());
      } else if (*f == "stream_id") {
        row_.stream = s_.integer();
      } else if (*f == "id") {
        row_.id = s_.integer();
      } else if (*f == "attr") {
        attr();
      } else if (*f == "output_desc") {
        if (!s_.open()) return;
        row_.output_descs.push_back(desc());
      } else if (*f == "subgraph_name") {
        row_.subgraphs.emplace_back(s_.string());
      } else {
        s_.skip();
      }
    }
  }

  DescRow desc() {
    DescRow out;
    while (const auto f = s_.field()) {
      if (*f == "dtype") {
        out.dtype = dt_from_name(s_.word());
      } else if (*f == "shape" && s_.at_message()) {
        out.has_shape = true;
        if (!s_.open()) return out;
        while (const auto g = s_.field()) {
          if (*g == "dim") {
            out.dims.push_back(s_.integer());
          } else {
            s_.skip();
          }
        }
      } else {
        s_.skip();
      }
    }
    return out;
  }

  void attr() {
    if (!s_.open()) return;
    std::string key;
    std::optional<Attr> value;
    while (const auto f = s_.field()) {
      if (*f == "key") {
        key = s_.string();
      } else if (*f == "value" && s_.at_message()) {
        if (!s_.open()) return;
        value = attr_value();
      } else {
        s_.skip();
      }
    }
    if (s_.failed() || !value) return;
    if (auto* list = std::get_if<std::vector<std::int64_t>>(&*value)) {
      if (key == "send_event_id_list") row_.send = std::move(*list);
      if (key == "recv_event_id_list") row_.recv = std::move(*list);
      if (key == "send_event_id_list" || key == "recv_event_id_list") return;
    }
    constexpr std::string_view kStored[] = {"_input_name_key", "_input_name_value", "_output_name_key", "_output_name_value", "_opt_input", "_ir_attr_names",
                                            "_ir_inputs_key", "_ir_inputs_value", "_ir_outputs_key", "_ir_outputs_value"};
    for (const std::string_view stored : kStored) {
      if (key == stored) return;
    }
    row_.attrs.push_back({std::move(key), *std::move(value)});
  }

  // None for what a graph has no word for: graphs, functions, lists of lists.
  std::optional<Attr> attr_value() {
    std::optional<Attr> out;
    while (const auto f = s_.field()) {
      if (*f == "i" || *f == "b") {
        out = s_.integer();
      } else if (*f == "f") {
        out = static_cast<float>(s_.number());
      } else if (*f == "s" || *f == "bt") {
        out = std::string(s_.string());
      } else if (*f == "list" && s_.at_message()) {
        if (!s_.open()) return out;
        out = list();
      } else if (*f == "t" && s_.at_message()) {
        if (!s_.open()) return out;
        if (auto t = tensor()) out = *std::move(t);
      } else {
        s_.skip();
      }
    }
    return out;
  }

  std::optional<Attr> list() {
    std::vector<std::int64_t> ints;
    std::vector<float> floats;
    std::vector<std::string> strings;
    std::string_view type;
    while (const auto f = s_.field()) {
      if (*f == "i" || *f == "b") {
        ints.push_back(s_.integer());
      } else if (*f == "f") {
        floats.push_back(static_cast<float>(s_.number()));
      } else if (*f == "s" || *f == "bt") {
        strings.emplace_back(s_.string());
        out_.count_text();
      } else if (*f == "val_type") {
        type = s_.word();
      } else {
        s_.skip();
      }
    }
    if (!ints.empty() || type == "VT_LIST_INT" || type == "VT_LIST_BOOL") return Attr(std::move(ints));
    if (!floats.empty() || type == "VT_LIST_FLOAT") return Attr(std::move(floats));
    if (!strings.empty() || type == "VT_LIST_STRING" || type == "VT_LIST_BYTES") return Attr(std::move(strings));
    return std::nullopt;
  }

  std::optional<Tensor> tensor() {
    DescRow of;
    std::string data;
    while (const auto f = s_.field()) {
      if (*f == "desc" && s_.at_message()) {
        if (!s_.open()) return std::nullopt;
        of = desc();
      } else if (*f == "data") {
        data = s_.string();
      } else {
        s_.skip();
      }
    }
    return tensor_of(of, data);
  }

  Scanner& s_;
  Assembler& out_;
  NodeRow row_;
};

}  // namespace

std::optional<Tensor> tensor_of(const DescRow& desc, std::string_view bytes) {
  if (!desc.has_shape || dtype_bits(desc.dtype) == 0) return std::nullopt;
  // Counted against the bytes that are there, so that no product overflows.
  std::uint64_t elements = 1;
  for (const std::int64_t d : desc.dims) {
    if (d < 0) return std::nullopt;
    if (d != 0 && elements > 8 * bytes.size() / static_cast<std::uint64_t>(d)) return std::nullopt;
    elements *= static_cast<std::uint64_t>(d);
  }
  if (dtype_bytes(desc.dtype, static_cast<std::size_t>(elements)) != bytes.size()) return std::nullopt;
  Tensor out(desc.dtype, desc.dims);
  if (!bytes.empty()) std::memcpy(out.mutable_bytes(), bytes.data(), bytes.size());
  return out;
}

void read_proto(Scanner& scanner, Assembler& out, bool bare_graph) {
  ProtoReader reader(scanner, out);
  if (bare_graph) {
    reader.graph(out.open_section(0));
  } else {
    reader.model();
  }
}

}  // namespace millstream::dump
