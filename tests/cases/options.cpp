// SPDX-License-Identifier: Apache-2.0
// The options of a case: a preset, then the keys that the source and the tests use.
#include <fmt/format.h>

#include "tests/cases/case.h"

namespace millstream::cases {

Result<CompileOptions> options_of(const Case& c, Preset preset) {
  CompileOptions options;
  if (preset == Preset::ge2023) {
    MST_TRY_VOID(set_option(options, "compat", "ge2023"));
  } else {
    MST_TRY_VOID(set_option(options, "event_ids", "sequential"));  // so that ids can be compared
  }
  for (const char* key : {"EVENT", "AC_PARALLEL_ENABLE", "SINGLE_STREAM_ENABLE"}) {
    if (c.has_option(key)) MST_TRY_VOID(set_option(options, key, c.option(key).get<std::string>()));
  }
  options.lower.single_stream = options.assign.single_stream;
  // Cases say where it is on.
  options.assign.hcom_parallel = c.has_option("hcom_parallel") && c.option("hcom_parallel").get<bool>();
  for (const Json& engine : c.json.at("engines")) {
    if (engine.contains("max_parallel_num")) {
      options.assign.max_parallel.push_back({engine.at("name").get<std::string>(), engine.at("max_parallel_num").get<std::uint32_t>()});
    }
  }
  return options;
}

}  // namespace millstream::cases
