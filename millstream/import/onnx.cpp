// SPDX-License-Identifier: Apache-2.0
// The ONNX entry: versions, symbolic dimensions, and what follows reading: shapes and folding.
#include <new>

#include <fmt/format.h>

#include "millstream/import/onnx_reader.h"
#include "millstream/ops/op.h"

namespace millstream {
namespace onnx_file {
namespace {

constexpr std::int64_t kMinIr = 3, kMaxIr = 13;
constexpr int kDefaultOpset = 23;  // of a model that uses no operator of the default set

}  // namespace

std::string_view default_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

std::string spelling(const NodeMessage& node) {
  const std::string_view domain = default_domain(node.domain);
  if (domain.empty() || domain == "millstream") return std::string(node.op_type);
  return fmt::format("{}::{}", domain, node.op_type);
}

int Reader::domain_version(std::string_view domain) const {
  const auto it = versions_.find(default_domain(domain));
  return it == versions_.end() ? 0 : static_cast<int>(it->second);
}

Result<void> Reader::check_versions(const ModelMessage& model) {
  if (model.ir_version < kMinIr || model.ir_version > kMaxIr) {
    return Error{ErrorCode::unsupported_operator, fmt::format("model \"{}\" has IR version {}, allowed are {} to {}", name_,
                                                              model.ir_version, kMinIr, kMaxIr)}
        .help("convert it with onnx.version_converter, or export it again");
  }
  for (const OpsetMessage& opset : model.opsets) {
    if (opset.version < 0 || opset.version > 1'000'000) {
      return Error{ErrorCode::bad_model, fmt::format("model \"{}\" imports version {} of domain \"{}\"", name_,
                                                     opset.version, opset.domain)};
    }
    const auto [it, added] = versions_.emplace(default_domain(opset.domain), opset.version);
    if (!added && it->second != opset.version) {
      return Error{ErrorCode::bad_model, fmt::format("model \"{}\" imports domain \"{}\" as version {} and {}", name_,
                                                     opset.domain, it->second, opset.version)};
    }
  }
  // A model of nothing but function calls may leave the default domain to its functions.
  if (versions_.count("") == 0) {
    for (const auto& [key, function] : functions_) {
      for (const OpsetMessage& opset : function.opsets) {
        if (default_domain(opset.domain).empty()) versions_.emplace("", opset.version);
      }
    }
  }
  // Which versions are allowed is each operator's to say (why_missing).
  const auto it = versions_.find("");
  opset_ = it != versions_.end() ? static_cast<int>(it->second) : kDefaultOpset;
  return {};
}

Result<void> Reader::check_dims() const {
  for (const auto& [name, value] : options_.dims) {
    if (symbols_.count(name) != 0) continue;
    Error error{ErrorCode::usage, fmt::format("model \"{}\" has no symbolic dimension \"{}\"", name_, name)};
    if (symbols_.empty()) {
      error.note("it has none");
    } else {
      std::string list;
      for (const std::string& s : symbols_) list += (list.empty() ? "\"" : ", \"") + s + "\"";
      error.note("it has " + list);
    }
    return error;
  }
  return {};
}

Result<Graph> Reader::read() {
  if (bytes_.empty()) return Error{ErrorCode::bad_model, fmt::format("\"{}\" is empty, which is no ONNX model", name_)};
  MST_TRY(const ModelMessage model, read_model(bytes_));
  if (!model.graph) return Error{ErrorCode::bad_model, fmt::format("\"{}\" holds no graph: it is no ONNX model", name_)};
  top_graph_ = *model.graph;
  MST_TRY_VOID(read_functions(model));
  MST_TRY_VOID(check_versions(model));
  MST_TRY(Graph graph, read_graph(top_graph_, nullptr, "graph", 0));
  if (!missing_.empty()) {
    Error error = missing_.error(name_);
    if (unsupported_) error.note(unsupported_->message);
    return error;
  }
  if (unsupported_) return *unsupported_;
  MST_TRY_VOID(check_dims());
  return graph;
}

}  // namespace onnx_file

namespace {

Result<Graph> import_checked(std::string_view bytes, const std::string& name, const std::string& folder,
                             const ImportOptions& options) {
  auto read = onnx_file::Reader(bytes, name, folder, options).read();
  if (!read.ok()) {
    Error error = std::move(read).error();
    if (error.message.find(name) == std::string::npos) error.note(fmt::format("in \"{}\"", name));
    return error;
  }
  Graph graph = std::move(*read);
  MST_TRY(graph, infer_shapes(std::move(graph), InferOptions{options.max_memory}));
  if (!options.fold) return graph;
  return fold_constants(std::move(graph));
}

}  // namespace

Result<Graph> import_onnx(std::string_view bytes, const std::string& name, const std::string& folder,
                          const ImportOptions& options) {
  try {
    return import_checked(bytes, name, folder, options);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_limit, fmt::format("out of memory while reading \"{}\"", name)};
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_model, fmt::format("\"{}\": {}", name, e.what())};
  }
}

}  // namespace millstream
