// SPDX-License-Identifier: Apache-2.0
// A task that failed, as synchronise calls report it.
#pragma once

#include <cstdint>
#include <string>

#include "millstream/core/error.h"

namespace millstream {

struct TaskError {
  Error error;
  std::uint32_t stream = 0;     ///< its number on the device
  std::uint64_t stream_serial = 0;  ///< numbers are used again, serials never
  std::uint64_t sequence = 0;   ///< of the task in its stream
  std::string task;             ///< a kernel's name, else the kind
  std::uint64_t order = 0;      ///< of completion among the device's failures
};

}  // namespace millstream
