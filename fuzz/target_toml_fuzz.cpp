// SPDX-License-Identifier: Apache-2.0
// parse_target must not crash, and what it accepts must read back as the same text.
#include <cstdint>
#include <string_view>

#include "millstream/target/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millstream;
  const Result<Target> t =
      parse_target(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml");
  if (!t.ok()) return 0;
  const std::string text = to_toml(*t);
  const Result<Target> again = parse_target(text, "again.toml");
  MST_CHECK(again.ok(), "to_toml wrote what parse_target refuses: " + to_string(again.error()));
  MST_CHECK(to_toml(*again) == text, "to_toml and parse_target disagree");
  return 0;
}
