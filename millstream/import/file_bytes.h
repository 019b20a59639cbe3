// SPDX-License-Identifier: Apache-2.0
// A whole file's bytes.
#pragma once

#include <string>

#include "millstream/core/result.h"

namespace millstream {

/// Errors: io, for what is no regular file or cannot be read.
Result<std::string> read_bytes(const std::string& path);
Result<void> write_bytes(const std::string& path, std::string_view bytes);

}  // namespace millstream
