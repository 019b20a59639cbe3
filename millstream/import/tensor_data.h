// SPDX-License-Identifier: Apache-2.0
// The data of a TensorProto, inline or in a file beside the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "millstream/core/result.h"
#include "millstream/graph/tensor.h"
#include "millstream/import/messages.h"

namespace millstream::onnx_file {

/// Makes tensors; one a model, since it counts what external data adds up to. Sizes are checked against
/// the data that is there before anything is allocated.
class TensorReader {
 public:
  /// `folder` is where external data may lie, "" = nowhere. `max_bytes` bounds each tensor.
  TensorReader(std::string folder, std::optional<std::uint64_t> max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  /// `what` names the tensor in errors, as in `initialiser "w"`. Errors: bad_model, memory_limit, io,
  /// unsupported_operator (strings).
  Result<Tensor> read(const TensorMessage& message, std::string_view what);

 private:
  Result<Tensor> read_external(const TensorMessage& message, std::string_view what, DType dtype, std::uint64_t bytes);

  std::string folder_;
  std::optional<std::uint64_t> max_bytes_;
  std::map<std::string, std::uint64_t> files_;  // external files seen, with their sizes
  std::uint64_t file_bytes_ = 0;                // sum of those
  std::uint64_t read_bytes_ = 0;                // what was read from them
};

}  // namespace millstream::onnx_file
