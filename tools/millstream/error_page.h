// SPDX-License-Identifier: Apache-2.0
// What each E-number means, where it usually comes from, and what to do. docs/errors.md is printed from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "millstream/core/error.h"

namespace millstream::cli {

struct ErrorAdvice {
  ErrorCode code;
  std::string_view meaning;
  std::string_view cause;
  std::string_view remedy;
};

/// One row for each code, in the order of error_code_table().
const std::vector<ErrorAdvice>& error_advice();
/// Whether the text can only be meant as an error's number: digits, with or without an E.
bool is_error_number(std::string_view text);
/// The row of "E37" or "e37", or every row of a number of the acl interface.
std::vector<const ErrorAdvice*> find_advice(std::string_view number);
/// The table of docs/errors.md.
std::string error_table_markdown();

}  // namespace millstream::cli
