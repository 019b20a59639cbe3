// SPDX-License-Identifier: Apache-2.0
// What kind of model a file is, by its name and then by its content.
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/import/file_bytes.h"
#include "millstream/import/import.h"
#include "millstream/ops/op.h"

namespace millstream {
namespace {

// The first word of a text, past blanks and comment lines.
std::string_view first_word(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
      ++i;
    } else {
      break;
    }
  }
  std::size_t end = i;
  while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
  return text.substr(i, end - i);
}

Result<void> bind_dims(Graph& graph, const ImportOptions& options) {
  std::set<std::string> symbols;
  for (const ValueId v : graph.values()) {
    const TensorDesc& desc = graph.desc(v);
    if (!desc.shape) continue;
    TensorDesc bound = desc;
    for (Dim& d : *bound.shape) {
      if (d.known() || d.symbol.empty()) continue;
      symbols.insert(d.symbol);
      if (const auto it = options.dims.find(d.symbol); it != options.dims.end()) d = Dim::of(it->second);
    }
    if (bound != desc) graph.set_desc(v, std::move(bound));
  }
  for (const auto& [name, value] : options.dims) {
    if (symbols.count(name) != 0) continue;
    Error error{ErrorCode::usage, fmt::format("graph \"{}\" has no symbolic dimension \"{}\"", graph.name(), name)};
    if (symbols.empty()) return std::move(error).note("it has none");
    std::string list;
    for (const std::string& s : symbols) list += (list.empty() ? "\"" : ", \"") + s + "\"";
    return std::move(error).note("it has " + list);
  }
  return {};
}

Result<Graph> import_text(std::string_view text, const std::string& path, const ImportOptions& options) {
  MST_TRY(const TextSections sections, split_sections(text, path));
  if (!sections.has_graph) {
    return Error{ErrorCode::usage, fmt::format("\"{}\" holds a schedule but no graph", path)}.help("give its model with --graph MODEL");
  }
  MST_TRY(Graph graph, parse_graph(sections.graph, path, sections.graph_line));
  MST_TRY_VOID(bind_dims(graph, options));
  MST_TRY(graph, infer_shapes(std::move(graph), InferOptions{options.max_memory, true}));
  if (!options.fold) return graph;
  return fold_constants(std::move(graph));
}

Result<Graph> import_checked(const std::string& path, const ImportOptions& options) {
  MST_TRY(const std::string bytes, read_text(path));  // ONNX never starts with a byte order mark
  const std::filesystem::path file(path);
  const std::string extension = file.extension().string();
  const std::string_view word = first_word(bytes);
  if (bytes.compare(0, 7, "MSTPLAN") == 0) {
    return Error{ErrorCode::bad_model, fmt::format("\"{}\" is a plan, not a model", path)}
        .help("a plan's name ends in .plan; --graph takes the model that it was made from");
  }
  if (extension == ".onnx" && (word == "graph" || word == "schedule")) {
    return Error{ErrorCode::bad_model, fmt::format("\"{}\" is millstream text, not ONNX", path)}.help("name it .mst");
  }
  const bool named_as_dump = extension == ".pbtxt" || extension == ".txt";
  // What follows the first field of a message in text; a graph of ours begins with its name or a new line.
  const std::size_t behind = bytes.find_first_not_of("abcdefghijklmnopqrstuvwxyz_ \t", static_cast<std::size_t>(word.data() - bytes.data()));
  const bool message = !word.empty() && behind != std::string::npos && (bytes[behind] == '{' || bytes[behind] == ':');
  if (extension == ".mst" || ((word == "graph" || word == "schedule") && !(named_as_dump && message))) return import_text(bytes, path, options);
  if (named_as_dump) {
    return Error{ErrorCode::bad_model, fmt::format("\"{}\" has the name of a graph dump, and {}", path, message ? "is one: import_graph reads models" : "is none")}
        .help("read_dump (millstream/dump/dump.h) reads dumps, and so do all commands; a dump begins with a field, such as ir_version:, version:, graph { or op {");
  }
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : std::string(".");
  return import_onnx(bytes, path, folder, options);
}

}  // namespace

Result<Graph> import_graph(const std::string& path, const ImportOptions& options) {
  try {
    return import_checked(path, options);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_limit, fmt::format("out of memory while reading \"{}\"", path)};
  } catch (const std::exception& e) {
    return Error{ErrorCode::io, fmt::format("\"{}\": {}", path, e.what())};
  }
}

}  // namespace millstream
