// SPDX-License-Identifier: Apache-2.0
// What happens where a pass fails, by its name.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "millstream/pass/pass.h"

namespace millstream {

/// `stop` is another word for `fail`. Errors: bad_option, naming `option`.
inline Result<PassPolicy> pass_policy(std::string_view text, std::string_view option) {
  if (text == "fail" || text == "stop") return PassPolicy::fail;
  if (text == "rollback") return PassPolicy::rollback;
  if (text == "strict") return PassPolicy::strict;
  return Error{ErrorCode::bad_option, fmt::format("{} cannot be \"{}\"", option, text)}.help("legal values: fail, rollback, strict");
}

}  // namespace millstream
