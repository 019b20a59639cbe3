// SPDX-License-Identifier: Apache-2.0
// When code of a pass library runs: it may print, end the process or crash, and only the program can say so.
#pragma once

#include <string>

#include "millstream/core/error.h"

namespace millstream {

struct ForeignCode {
  ErrorCode code = ErrorCode::pass_library;  ///< of the error, should it end the process
  std::string what;                          ///< "stream pass "x" of "y.so""
};

/// Called before and after, never in one another. `begins` is null when it has ended.
using ForeignCodeWatch = void (*)(const ForeignCode* begins);

/// Null, the default: nobody is told. Not while a library is loaded or a pass runs.
void watch_foreign_code(ForeignCodeWatch watch);

/// Lives as long as the code runs.
class ForeignCodeScope {
 public:
  ForeignCodeScope(ErrorCode code, std::string what);
  ~ForeignCodeScope();
  ForeignCodeScope(const ForeignCodeScope&) = delete;
  ForeignCodeScope& operator=(const ForeignCodeScope&) = delete;

 private:
  ForeignCode code_;
};

}  // namespace millstream
