// SPDX-License-Identifier: Apache-2.0
// A second file of one library: its passes join the first file's.
#include <stdexcept>

#include <register/register_custom_pass.h>

REGISTER_CUSTOM_PASS("lambda").CustomAllocateStreamPassFn([](const ge::ConstGraphPtr&, ge::StreamPassContext&) -> ge::Status {
  return ge::SUCCESS;
});
REGISTER_CUSTOM_PASS("throws").CustomAllocateStreamPassFn([](const ge::ConstGraphPtr&, ge::StreamPassContext&) -> ge::Status {
  throw std::runtime_error("no");
});
