// SPDX-License-Identifier: Apache-2.0
// A whole file's bytes.
#pragma once

#include <string>
#include <string_view>

#include "millstream/core/result.h"

namespace millstream {

/// Errors: io, for what is no regular file or cannot be read; memory_limit.
Result<std::string> read_bytes(const std::string& path);

/// The same without a byte order mark at the start, which editors on other systems put before UTF-8.
Result<std::string> read_text(const std::string& path);

/// The file has its new bytes or its old ones, never a part: they are written to a file of another name beside
/// it, which then takes its place. A symbolic link stays, the file it leads to is replaced; permissions stay.
/// A device or a pipe is written to as it is. Errors: io, also when the file is not writable.
Result<void> write_bytes(const std::string& path, std::string_view bytes);

/// Whether both name the same existing file, over links and ways of writing the path.
bool same_file(const std::string& a, const std::string& b);

}  // namespace millstream
