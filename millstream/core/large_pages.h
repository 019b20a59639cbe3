// SPDX-License-Identifier: Apache-2.0
// Large pages for large buffers.
#pragma once
#include <cstddef>

namespace millstream {

/// Asks the system for 2 MiB pages under what a fresh buffer covers of them, before it is touched. Where the small
/// pages of a large buffer come to lie makes one instance of a plan some per cent slower than the next. A wish: a
/// system that refuses it, or does not know it, runs on.
void prefer_large_pages(void* begin, std::size_t bytes);

inline constexpr std::size_t kLargePage = std::size_t{2} << 20;

}  // namespace millstream
