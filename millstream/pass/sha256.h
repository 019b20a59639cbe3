// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for the list of libraries that may be loaded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millstream {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace millstream
