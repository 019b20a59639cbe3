// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes, parse_graph answers; what it accepts, it prints and reads back the same.
#include <cstdlib>
#include <string_view>

#include "millstream/graph/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("fill") != std::string_view::npos) return 0;  // its data is generated: slow, and tested elsewhere
  const auto sections = millstream::split_sections(text, "fuzz");
  if (!sections.ok() || !sections->has_graph) return 0;
  const auto graph = millstream::parse_graph(sections->graph, "fuzz", sections->graph_line);
  if (!graph.ok()) return 0;
  const std::string printed = millstream::print(*graph);
  const auto again = millstream::parse_graph(printed, "printed");
  if (!again.ok() || millstream::print(*again) != printed) std::abort();
  return 0;
}
