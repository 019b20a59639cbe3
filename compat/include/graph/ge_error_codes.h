// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ge {

using graphStatus = std::uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFFu;

}  // namespace ge
