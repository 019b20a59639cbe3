// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream {

bool is_plain_name(std::string_view name) {
  if (name.empty() || name == "_") return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/'; };
  if (!letter(name[0])) return false;
  for (const char c : name) {
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '$') return false;
  }
  return true;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string quote_name(std::string_view name) { return is_plain_name(name) ? std::string(name) : quote(name); }

namespace {

// A float keeps a point or exponent, so that text tells it from an integer.
template <class T>
std::string number(T x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class T, class Format>
std::string list(const std::vector<T>& items, Format format) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ", ") + format(items[i]);
  return out + "]";
}

template <class T>
std::string integers(const Tensor& t) {
  std::string out;
  for (const T x : t.as<T>()) out += fmt::format("{}{}", out.empty() ? "" : ", ", x);
  return out;
}

template <class T>
std::optional<std::string> floats(const Tensor& t) {
  std::string out;
  for (const T x : t.as<T>()) {
    if (std::isnan(x)) return std::nullopt;  // a NaN's payload needs hex
    out += (out.empty() ? "" : ", ") + number(x);
  }
  return out;
}

std::optional<std::string> readable(const Tensor& t) {
  if (t.elements() > 64) return std::nullopt;
  switch (t.dtype()) {
    case DType::f32: return floats<float>(t);
    case DType::f64: return floats<double>(t);
    case DType::u8: return integers<std::uint8_t>(t);
    case DType::boolean: return integers<std::uint8_t>(t);
    case DType::i8: return integers<std::int8_t>(t);
    case DType::u16: return integers<std::uint16_t>(t);
    case DType::i16: return integers<std::int16_t>(t);
    case DType::u32: return integers<std::uint32_t>(t);
    case DType::i32: return integers<std::int32_t>(t);
    case DType::u64: return integers<std::uint64_t>(t);
    case DType::i64: return integers<std::int64_t>(t);
    default: return std::nullopt;
  }
}

std::string data_text(const Tensor& t) {
  if (const auto text = readable(t)) return "[" + *text + "]";
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "hex \"";
  for (std::size_t i = 0; i < t.byte_size(); ++i) {
    const auto b = static_cast<unsigned>(t.bytes()[i]);
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out + "\"";
}

std::string desc_text(const TensorDesc& desc) {
  std::string out(dtype_name(desc.dtype));
  if (!desc.shape) return out + "[...]";
  out += '[';
  for (std::size_t i = 0; i < desc.shape->size(); ++i) {
    const Dim& d = (*desc.shape)[i];
    if (i != 0) out += ',';
    if (d.known()) {
      out += fmt::format("{}", *d.value);
    } else {
      out += d.symbol.empty() ? "?" : quote_name(d.symbol);
    }
  }
  return out + ']';
}

std::string attr_text(const Attr& attr) {
  struct Printer {
    std::string operator()(std::int64_t x) const { return fmt::format("{}", x); }
    std::string operator()(float x) const { return number(x); }
    std::string operator()(const std::string& x) const { return quote(x); }
    std::string operator()(const std::vector<std::int64_t>& x) const {
      return x.empty() ? "ints[]" : list(x, [](std::int64_t i) { return fmt::format("{}", i); });
    }
    std::string operator()(const std::vector<float>& x) const {
      return x.empty() ? "floats[]" : list(x, [](float f) { return number(f); });
    }
    std::string operator()(const std::vector<std::string>& x) const {
      return x.empty() ? "strings[]" : list(x, [](const std::string& s) { return quote(s); });
    }
    std::string operator()(const Tensor& t) const { return desc_text(t.desc()) + " = " + data_text(t); }
  };
  return std::visit(Printer{}, attr);
}

class GraphPrinter {
 public:
  std::string print(const Graph& root) {
    section("graph", root.name(), root);
    while (next_body_ < pending_.size()) {
      const auto [name, body] = pending_[next_body_++];
      out_ += '\n';
      section("body", name, *body);
    }
    return std::move(out_);
  }

 private:
  void section(std::string_view keyword, const std::string& name, const Graph& graph) {
    out_ += fmt::format("{} {} opset={}", keyword, quote_name(name), graph.opset());
    if (keyword == "body" && graph.name() != name) out_ += fmt::format(" name={}", quote(graph.name()));
    if (graph.dynamic()) out_ += " shapes=dynamic";
    out_ += '\n';
    std::vector<std::vector<NodeId>> after(graph.control_edges().empty() ? 0 : graph.node_count());
    for (const ControlEdge& e : graph.control_edges()) after[e.to.index].push_back(e.from);

    // Values print in id order, a node at its first output, so that reading gives the same ids.
    std::uint32_t next_node = 0;
    const auto node_line = [&](NodeId n) {
      node(graph, n, after.empty() ? std::span<const NodeId>() : std::span<const NodeId>(after[n.index]));
    };
    for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
      const ValueId v{i};
      switch (graph.kind(v)) {
        case ValueKind::input: declare("input", graph, v); break;
        case ValueKind::outer: declare("outer", graph, v); break;
        case ValueKind::constant:
          out_ += fmt::format("  const {} : {} = {}\n", quote_name(graph.name(v)), desc_text(graph.desc(v)),
                              data_text(*graph.constant(v)));
          break;
        case ValueKind::output:
          for (const std::uint32_t producer = graph.producer(v)->index; next_node <= producer; ++next_node) {
            node_line(NodeId(next_node));
          }
          break;
      }
    }
    for (; next_node < graph.node_count(); ++next_node) node_line(NodeId(next_node));
    for (const ControlEdge& e : graph.loop_back_edges()) {
      out_ += fmt::format("  loopback {} -> {}\n", quote_name(graph.name(e.from)), quote_name(graph.name(e.to)));
    }
    for (std::size_t i = 1; i < graph.scope_count(); ++i) {
      const Scope& scope = graph.scope(ScopeId(i));
      out_ += fmt::format("  scope {} of {}{}\n", quote_name(scope.name), quote_name(graph.name(*scope.parent_node)),
                          scope.dynamic ? " dynamic" : "");
    }
    bool listed = true;
    for (std::size_t i = 0; i < graph.order().size(); ++i) listed = listed && graph.order()[i].index == i;
    if (!listed || graph.order_is_fixed()) {
      out_ += graph.order_is_fixed() ? "  order fixed" : "  order";
      for (const NodeId n : graph.order()) out_ += " " + quote_name(graph.name(n));
      out_ += '\n';
    }
    for (const ValueId v : graph.outputs()) out_ += fmt::format("  output {}\n", quote_name(graph.name(v)));
  }

  void declare(std::string_view keyword, const Graph& graph, ValueId v) {
    out_ += fmt::format("  {} {} : {}\n", keyword, quote_name(graph.name(v)), desc_text(graph.desc(v)));
  }

  void node(const Graph& graph, NodeId n, std::span<const NodeId> after) {
    out_ += "  ";
    const auto outputs = graph.outputs(n);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string_view name = graph.name(outputs[i]);
      out_ += (i == 0 ? "" : ", ") + (name.empty() ? std::string("_") : quote_name(name));
    }
    if (!outputs.empty()) out_ += " = ";
    out_ += quote_name(graph.type(n)) + "(";
    const auto inputs = graph.inputs(n);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i != 0) out_ += ", ";
      out_ += inputs[i].absent() ? std::string("_") : quote_name(graph.name(*inputs[i].get()));
    }
    out_ += ")";
    attributes(graph, n);
    bool any = false;
    for (const ValueId v : outputs) any = any || !(graph.desc(v) == TensorDesc{});
    for (std::size_t i = 0; any && i < outputs.size(); ++i) {
      out_ += (i == 0 ? " : " : ", ") + desc_text(graph.desc(outputs[i]));
    }
    if (outputs.empty() || graph.name(n) != graph.name(outputs[0])) out_ += fmt::format(" @name({})", quote(graph.name(n)));
    const Annotations& notes = graph.annotations();
    const auto text_note = [&](std::string_view name, const SideTable<NodeId, StringId>& table) {
      if (const auto& id = table.get(n)) out_ += fmt::format(" @{}({})", name, quote(graph.text(*id)));
    };
    text_note("label", notes.label);
    text_note("user_label", notes.user_label);
    if (const auto& p = notes.priority.get(n)) out_ += fmt::format(" @priority({})", *p);
    text_note("parallel_group", notes.parallel_group);
    text_note("engine", notes.engine);
    if (const auto& c = notes.cost.get(n)) out_ += fmt::format(" @cost({})", *c);
    out_ += rare_notes(graph, n);
    for (std::size_t i = 0; i < after.size(); ++i) {
      out_ += (i == 0 ? " @after(" : ", ") + quote_name(graph.name(after[i]));
    }
    if (!after.empty()) out_ += ")";
    out_ += '\n';
  }

  void attributes(const Graph& graph, NodeId n) {
    std::string items;
    for (const auto& [name, value] : graph.attrs(n).items()) {
      items += fmt::format("{}{}={}", items.empty() ? "" : ", ", quote_name(name), attr_text(value));
    }
    for (const Body& b : graph.bodies(n)) {
      const std::string name = body_name(graph.body(b.body).name());
      pending_.push_back({name, &graph.body(b.body)});
      items += fmt::format("{}{}=body({})", items.empty() ? "" : ", ", quote_name(b.attribute), quote_name(name));
    }
    if (!items.empty()) out_ += " {" + items + "}";
  }

  // Body names are unique in a file: a repeated one gets a number.
  std::string body_name(const std::string& wanted) {
    std::string name = wanted.empty() ? "body" : wanted;
    for (int i = 1; !used_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  std::string out_;
  std::vector<std::pair<std::string, const Graph*>> pending_;
  std::size_t next_body_ = 0;
  std::set<std::string> used_;
};

}  // namespace

std::string rare_notes(const Graph& graph, NodeId n) {
  const Annotations& a = graph.annotations();
  std::string out;
  const auto texts = [&](std::string_view key, const SideTable<NodeId, std::vector<StringId>>& table) {
    const auto& list = table.get(n);
    if (!list) return;
    std::string items;
    for (const StringId id : *list) items += (items.empty() ? "" : ", ") + quote(graph.text(id));
    out += fmt::format(" @{}({})", key, items);
  };
  const auto number = [&](std::string_view key, const SideTable<NodeId, std::int64_t>& table) {
    if (const auto& x = table.get(n)) out += fmt::format(" @{}({})", key, *x);
  };
  const auto text = [&](std::string_view key, const SideTable<NodeId, StringId>& table) {
    if (const auto& id = table.get(n)) out += fmt::format(" @{}({})", key, quote(graph.text(*id)));
  };
  if (graph.scope_of(n).index != 0) out += fmt::format(" @scope({})", quote(graph.scope(graph.scope_of(n)).name));
  if (const auto& inner = a.inner_parallel.get(n)) out += fmt::format(" @inner_parallel({})", *inner);
  number("new_stream", a.new_stream);
  number("stream", a.preset_stream);
  if (const auto& list = a.attached.get(n)) {
    for (const AttachedRequest& r : *list) out += fmt::format(" @attached({}, {})", r.count, quote(r.reuse_key));
  }
  texts("activates", a.activates);
  if (const auto& list = a.activates_streams.get(n)) {
    std::string items;
    for (const std::int64_t id : *list) items += fmt::format("{}{}", items.empty() ? "" : ", ", id);
    out += fmt::format(" @activates_streams({})", items);
  }
  if (const auto& r = a.roles.get(n)) {
    std::string items;
    const auto role = [&](bool on, std::string_view name) {
      if (on) items += fmt::format("{}{}", items.empty() ? "" : ", ", name);
    };
    role(r->rts_label, "rts_label");
    role(r->first_active, "first_active");
    role(r->end_node, "end_node");
    role(r->loop_active, "loop_active");
    role(r->true_branch, "true_branch");
    out += fmt::format(" @role({})", items);
  }
  text("continuous", a.continuous);
  text("batch", a.batch);
  texts("multiplex", a.multiplex);
  number("thread_scope", a.thread_scope);
  number("used_streams", a.used_streams);
  return out;
}

std::string print(const Graph& graph) { return GraphPrinter().print(graph); }

bool same(const Graph& a, const Graph& b) { return a.name() == b.name() && print(a) == print(b); }

}  // namespace millstream
