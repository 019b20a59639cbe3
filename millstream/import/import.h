// SPDX-License-Identifier: Apache-2.0
// From a file to a Graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

struct ImportOptions {
  std::map<std::string, std::int64_t> dims;  ///< symbolic dimension -> value (--dim)
  std::optional<std::uint64_t> max_memory;   ///< bytes; a larger tensor is refused by name (E34)
  bool fold = true;                          ///< evaluate small shape arithmetic
};

/// Reads a model by its content and extension: .onnx, .mst. Errors: io, bad_model, syntax,
/// unsupported_operator (one error lists all), shape, memory_limit. Never throws or crashes on bad bytes;
/// memory stays within 64 MiB + 8 x the file.
Result<Graph> import_graph(const std::string& path, const ImportOptions& options);

/// The same over bytes in memory; `folder` is where external data may lie ("" = none allowed).
Result<Graph> import_onnx(std::string_view bytes, const std::string& name, const std::string& folder,
                          const ImportOptions& options);

/// A single tensor file: .pb (TensorProto) or .npy (version 1-3, C order, numeric types).
Result<Tensor> read_tensor(const std::string& path);
/// Writes .npy or .pb by extension.
Result<void> write_tensor(const std::string& path, const Tensor& tensor);

}  // namespace millstream
