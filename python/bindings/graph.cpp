// SPDX-License-Identifier: Apache-2.0
// Graphs as Python makes them, node by node.
#include <cmath>

#include <fmt/format.h>

#include "millstream/dump/notes.h"
#include "millstream/graph/text.h"
#include "python/bindings/bindings.h"

namespace millstream::python {
namespace {

// Stands for the Python program in places of nodes, whose line is the node's number from 1 on.
constexpr std::string_view kPythonProgram = "<python>";

// The names of torch and numpy, beside those of the text format.
constexpr std::pair<std::string_view, DType> kTypeNames[] = {
    {"float32", DType::f32},      {"float64", DType::f64},    {"float16", DType::f16},     {"bfloat16", DType::bf16},
    {"int8", DType::i8},          {"int16", DType::i16},      {"int32", DType::i32},       {"int64", DType::i64},
    {"uint8", DType::u8},         {"uint16", DType::u16},     {"uint32", DType::u32},      {"uint64", DType::u64},
    {"bool", DType::boolean},     {"complex64", DType::c64},  {"complex128", DType::c128}, {"float8_e4m3fn", DType::f8e4m3fn},
    {"float8_e4m3fnuz", DType::f8e4m3fnuz}, {"float8_e5m2", DType::f8e5m2}, {"float8_e5m2fnuz", DType::f8e5m2fnuz},
    {"float8_e8m0fnu", DType::f8e8m0},
};

DType dtype_of(std::string_view name) {
  if (name.rfind("torch.", 0) == 0) name.remove_prefix(6);
  for (const auto& [known, type] : kTypeNames) {
    if (known == name) return type;
  }
  if (const auto type = dtype_from_name(name)) return *type;
  throw nb::value_error(fmt::format("no element type \"{}\"; for example float32, float16, bfloat16, int64, bool", name).c_str());
}

TensorDesc desc_of(const std::string& dtype, const GraphUnderWork::Shape& shape) {
  TensorDesc out;
  out.dtype = dtype_of(dtype);
  out.shape.emplace();
  for (const auto& dim : shape) {
    if (const auto* symbol = std::get_if<std::string>(&dim)) {
      out.shape->push_back(Dim::named(*symbol));
      continue;
    }
    const std::int64_t n = std::get<std::int64_t>(dim);
    if (n < 0) throw nb::value_error(fmt::format("a dimension is {}: sizes are 0 or more, unknown ones are named by a str", n).c_str());
    out.shape->push_back(Dim::of(n));
  }
  return out;
}

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

Attr attr_of(const GraphUnderWork::AttributeValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return std::int64_t{*b ? 1 : 0};
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
  if (const auto* d = std::get_if<double>(&value)) return static_cast<float>(*d);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  if (const auto* i = std::get_if<std::vector<std::int64_t>>(&value)) return *i;
  if (const auto* d = std::get_if<std::vector<double>>(&value)) return floats(*d);
  return std::get<std::vector<std::string>>(value);
}

}  // namespace

void GraphUnderWork::need_node(std::uint32_t node) const {
  if (node < graph_.node_count()) return;
  throw nb::index_error(fmt::format("node {}: graph \"{}\" has {} so far", node, graph_.name(), graph_.node_count()).c_str());
}

void GraphUnderWork::need_value(std::uint32_t value) const {
  if (value < graph_.value_count()) return;
  throw nb::index_error(fmt::format("value {}: graph \"{}\" has {} so far", value, graph_.name(), graph_.value_count()).c_str());
}

std::uint32_t GraphUnderWork::add_value(const std::string& name, const std::string& dtype, const Shape& shape) {
  return graph_.add_input(name, desc_of(dtype, shape)).index;
}

std::uint32_t GraphUnderWork::add_node(const std::string& type, const std::string& name,
                                       const std::vector<std::optional<std::uint32_t>>& inputs, const std::vector<Output>& outputs,
                                       const std::vector<std::uint32_t>& after, const Attributes& attributes, const std::string& engine,
                                       const std::string& source, std::optional<double> cost) {
  std::vector<InputRef> refs;
  for (const auto& input : inputs) {
    if (input) need_value(*input);
    refs.push_back(input ? InputRef(ValueId(*input)) : InputRef());
  }
  for (const std::uint32_t node : after) need_node(node);
  if (cost && (!std::isfinite(*cost) || *cost < 0)) {
    throw nb::value_error(fmt::format("node \"{}\": a cost is microseconds, 0 or more, not {}", name, *cost).c_str());
  }
  std::vector<TensorDesc> descs;
  std::vector<std::string> names;
  for (const auto& [dtype, shape] : outputs) {
    descs.push_back(desc_of(dtype, shape));
    names.push_back(outputs.size() == 1 ? name : fmt::format("{}:{}", name, names.size()));
  }
  std::vector<std::pair<std::string, Attr>> attrs;
  for (const auto& [key, value] : attributes) attrs.emplace_back(key, attr_of(value));

  Graph::NodeSpec spec;
  spec.type = type;
  spec.name = name;
  spec.inputs = refs;
  const std::vector<std::string_view> views(names.begin(), names.end());
  spec.outputs = views;
  const NodeId node = graph_.add_node(spec);
  dump::take_notes(graph_, node, attrs);
  Attrs kept;
  for (auto& [key, value] : attrs) kept.set(key, std::move(value));
  if (!kept.empty()) graph_.set_attrs(node, std::move(kept));
  std::size_t i = 0;
  for (const ValueId v : graph_.outputs(node)) graph_.set_desc(v, std::move(descs[i++]));
  for (const std::uint32_t from : after) graph_.add_control_edge(NodeId(from), node);
  if (!engine.empty()) graph_.annotations().engine.set(node, graph_.intern(engine));
  if (cost) graph_.annotations().cost.set(node, *cost);
  sources_.push_back(source);
  if (!source.empty()) graph_.set_place(node, node.index + 1, 1);
  return node.index;
}

std::uint32_t GraphUnderWork::output(std::uint32_t node, std::uint32_t index) const {
  need_node(node);
  const auto values = graph_.outputs(NodeId(node));
  if (index >= values.size()) {
    throw nb::index_error(fmt::format("output {} of node \"{}\": it has {}", index, graph_.name(NodeId(node)), values.size()).c_str());
  }
  return values.begin().operator*().index + index;
}

void GraphUnderWork::set_outputs(const std::vector<std::uint32_t>& values) {
  std::vector<ValueId> outputs;
  for (const std::uint32_t v : values) {
    need_value(v);
    outputs.push_back(ValueId(v));
  }
  outputs_ = std::move(outputs);
}

std::string GraphUnderWork::node_name(std::uint32_t node) const {
  need_node(node);
  return std::string(graph_.name(NodeId(node)));
}

std::string GraphUnderWork::value_name(std::uint32_t value) const {
  need_value(value);
  return std::string(graph_.name(ValueId(value)));
}

Graph GraphUnderWork::finished() const {
  Graph graph = graph_;
  for (const ValueId v : outputs_) graph.add_output(v);
  graph.set_source(std::make_shared<SourceText>(SourceText{std::string(kPythonProgram), "", 1}));
  if (auto done = graph.finish(); !done.ok()) throw ErrorThrown{placed(std::move(done).error())};
  return graph;
}

Error GraphUnderWork::placed(Error error) const {
  if (!error.where || error.where->file != kPythonProgram) return error;
  const std::string& source = sources_.at(error.where->line - 1);
  const std::size_t colon = source.rfind(':');
  const std::string digits = colon == std::string::npos ? "" : source.substr(colon + 1);
  const bool numbered = !digits.empty() && digits.size() < 9 && digits.find_first_not_of("0123456789") == std::string::npos;
  error.where = numbered ? Where{source.substr(0, colon), static_cast<std::uint32_t>(std::stoul(digits)), 1, ""} : Where{source, 1, 1, ""};
  return error;
}

void bind_graph(nb::module_& m) {
  nb::class_<GraphUnderWork>(m, "Graph",
                             "A computation graph under work. Nodes and values have ids 0, 1, ... in order of adding, apart from each other.\n"
                             "Names are checked by compile.")
      .def(nb::init<std::string, bool>(), nb::arg("name") = "graph", nb::kw_only(), nb::arg("dynamic") = false,
           "An empty graph. dynamic: its shapes are only known when it runs; strategy ge then goes by the rules for dynamic shapes.")
      .def("add_input", &GraphUnderWork::add_value, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
           "A value that each run is given. Returns its value id.\n\n"
           "dtype: a name of torch, numpy or the text format (\"float32\", \"f32\"). shape: sizes of 0 or more; a str is a size known only at run time.\n"
           "Raises ValueError for an unknown dtype or a negative size.")
      .def("add_constant", &GraphUnderWork::add_value, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
           "A value that exists before every run: a weight, a lifted constant. Its bytes stay with Python, so to the plan it is an input.\n"
           "Returns its value id. Arguments and errors: those of add_input.")
      .def("add_node", &GraphUnderWork::add_node, nb::arg("type"), nb::arg("name"), nb::kw_only(), nb::arg("inputs") = nb::list(), nb::arg("outputs") = nb::list(),
           nb::arg("after") = nb::list(), nb::arg("attributes") = nb::dict(), nb::arg("engine") = "", nb::arg("source") = "", nb::arg("cost") = nb::none(),
           "A node behind those added so far. Returns its node id.\n\n"
           "type: the operator; one that is not known has a task and the default cost. inputs: value ids, None for one left out.\n"
           "outputs: (dtype, shape) of each. after: ids of nodes that must have ended before this one starts.\n"
           "attributes: the names of docs/dumps.md (\"_user_stream_label\", \"_user_stream_priority\", ...) say what the planner reads; others are kept for dumps.\n"
           "engine: fixes the engine. source: \"FILE:LINE\" for messages. cost: microseconds.\n"
           "Raises IndexError for an id that does not exist, ValueError for dtypes, sizes and costs that are none.")
      .def("output", &GraphUnderWork::output, nb::arg("node"), nb::arg("index") = 0, "The value id of an output of a node. Raises IndexError.")
      .def("set_outputs", &GraphUnderWork::set_outputs, nb::arg("values"),
           "Says which values a run returns; without it those that no node reads. Raises IndexError for an id that does not exist.")
      .def_prop_ro("name", &GraphUnderWork::name)
      .def_prop_ro("node_count", &GraphUnderWork::node_count)
      .def_prop_ro("value_count", &GraphUnderWork::value_count)
      .def("node_name", &GraphUnderWork::node_name, nb::arg("node"), "Raises IndexError.")
      .def("value_name", &GraphUnderWork::value_name, nb::arg("value"), "Raises IndexError.")
      .def("text", [](const GraphUnderWork& g) { return print(g.finished()); },
           "The graph in the text format (docs/text-format.md), which `millstream compile` reads. Raises Error E40 for a graph that is not sound.");
}

}  // namespace millstream::python
