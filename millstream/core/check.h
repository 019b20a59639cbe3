// SPDX-License-Identifier: Apache-2.0
// The only macros: invariants that abort, and error propagation.
#pragma once

#include <string>
#include <string_view>

namespace millstream::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);
}  // namespace millstream::detail

/// Aborts with file:line when an invariant of ours is broken. Never for user input.
#define MST_CHECK(condition, message)                                                        \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      ::millstream::detail::check_failed(__FILE__, __LINE__, #condition, (message));         \
    }                                                                                        \
  } while (false)

#define MST_CONCAT_INNER(a, b) a##b
#define MST_CONCAT(a, b) MST_CONCAT_INNER(a, b)

/// `MST_TRY(auto x, f());` binds the value or returns the error.
#define MST_TRY(declaration, expression)                              \
  auto MST_CONCAT(mst_try_, __LINE__) = (expression);                 \
  if (!MST_CONCAT(mst_try_, __LINE__).ok())                           \
    return std::move(MST_CONCAT(mst_try_, __LINE__)).error();         \
  declaration = std::move(MST_CONCAT(mst_try_, __LINE__)).value()

/// `MST_TRY_VOID(f());` returns the error of a Result<void> (or drops the value of another Result).
#define MST_TRY_VOID(expression)                                          \
  do {                                                                    \
    auto mst_try_void = (expression);                                     \
    if (!mst_try_void.ok()) return std::move(mst_try_void).error();       \
  } while (false)
