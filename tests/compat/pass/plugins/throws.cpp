// SPDX-License-Identifier: Apache-2.0
// A global object throws while the library is loaded.
#include <stdexcept>

struct Throws {
  Throws() { throw std::runtime_error("thrown at the start"); }
} throws;
