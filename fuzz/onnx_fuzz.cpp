// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes, import_onnx answers; what it accepts is a sound graph within the memory it was allowed.
#include <cstdlib>
#include <string_view>

#include "millstream/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millstream::ImportOptions options;
  options.max_memory = std::uint64_t{1} << 24;
  const auto graph =
      millstream::import_onnx(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz", "", options);
  if (!graph.ok()) {
    if (graph.error().code == millstream::ErrorCode::internal || graph.error().message.empty()) std::abort();
    return 0;
  }
  if (!millstream::verify(*graph).empty()) std::abort();
  for (const millstream::ValueId v : graph->values()) {
    const auto bytes = graph->desc(v).bytes();
    if (bytes && *bytes > *options.max_memory) std::abort();
  }
  return 0;
}
