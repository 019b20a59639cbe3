// SPDX-License-Identifier: Apache-2.0
// Whatever the text of a profile, it is read, or refused with a place.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "millstream/profile/records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto records = millstream::read_records(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!records.ok() && (!records.error().where || records.error().message.empty())) std::abort();
  if (records.ok()) {
    for (const millstream::ProfileRecord& r : *records) {
      if (r.dur_ns < 0 || r.start_ns.value_or(0) < 0) std::abort();
    }
  }
  return 0;
}
