// SPDX-License-Identifier: Apache-2.0
// Where in a text something lies, for messages.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "millstream/core/error.h"

namespace millstream {

/// The line and column of a byte; of a long line its first part. O(offset).
inline Where place_of(std::string_view text, const std::string& file, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
  Where where;
  where.file = file;
  where.line = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1);
  where.column = static_cast<std::uint32_t>(offset - begin + 1);
  where.text = std::string(text.substr(begin, std::min<std::size_t>(std::max(end, begin) - begin, 160)));
  return where;
}

}  // namespace millstream
