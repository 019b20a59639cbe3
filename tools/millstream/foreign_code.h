// SPDX-License-Identifier: Apache-2.0
// What passes do to the program: an exit, an uncaught exception or a crash names the pass; nothing is a success that was not.
#pragma once

namespace millstream::cli {

/// `json`: what a pass prints goes to stderr, since stdout is for one object.
void guard_foreign_code(bool json);

}  // namespace millstream::cli
