// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ge {

using Status = std::uint32_t;
constexpr Status SUCCESS = 0;
constexpr Status FAILED = 0xFFFFFFFFu;

}  // namespace ge
