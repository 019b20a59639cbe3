// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes, parse_plan answers; what it accepts, it writes and reads back the same. The checksum is put
// right first, so that the fuzzer reaches what lies behind it.
#include <cstdlib>

#include "millstream/memory/plan_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millstream;  // NOLINT: the program's own names
  std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)parse_plan(bytes, "fuzz").ok();
  PlanWriter sum;
  sum.u64(plan_checksum(bytes));
  const Result<Plan> plan = parse_plan(bytes + sum.bytes(), "fuzz");
  if (!plan.ok()) return 0;
  const std::string written = plan_bytes(*plan);
  const Result<Plan> again = parse_plan(written, "written");
  if (!again.ok() || plan_bytes(*again) != written) std::abort();
  return 0;
}
