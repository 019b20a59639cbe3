// SPDX-License-Identifier: Apache-2.0
// What a launch runs: a function of the host, with what it would cost on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "millstream/core/result.h"

namespace millstream {

/// One block of one launch, as the kernel sees it.
struct KernelCall {
  std::uint32_t block = 0;
  std::uint32_t blocks = 1;
  std::span<const std::byte> arguments;  ///< the launch's copy, aligned to 8
};

/// Outlives every launch of it. On the cpu back-end `body` runs once a block, the blocks one after the other on one
/// worker; on sim once a block at the virtual end of the task, if it is set.
struct KernelFunction {
  std::string_view name;
  Result<void> (*body)(const KernelCall&) = nullptr;
  double virtual_us = 1;     ///< on sim, of the whole launch, without the device's launch_us; 0 to 1e12
  std::uint32_t engine = 0;  ///< on sim: which of the device's engines it takes
};

/// Number of blocks of a launch; at least 1.
struct Grid {
  std::uint32_t blocks = 1;
};

/// Copied at submit; what its pointers point at must stay until the launch has completed.
using ArgSpan = std::span<const std::byte>;

}  // namespace millstream
