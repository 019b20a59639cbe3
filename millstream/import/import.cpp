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
  if (extension == ".mst" || word == "graph" || word == "schedule") return import_text(bytes, path, options);
  if (extension == ".pbtxt" || extension == ".txt") {
    return Error{ErrorCode::bad_model, fmt::format("\"{}\" is a dump in text, which this version does not read", path)}
        .help("give an .onnx or .mst file");
  }
  std::string folder = file.parent_path().string();
  if (folder.empty()) folder = ".";
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
