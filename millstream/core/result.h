// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. No exceptions cross the API.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "millstream/core/check.h"
#include "millstream/core/error.h"

namespace millstream {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}       // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    MST_CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  const T& value() const& {
    MST_CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  T&& value() && {
    MST_CHECK(ok(), error_text());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    MST_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }
  Error&& error() && {
    MST_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(std::move(state_));
  }

 private:
  std::string error_text() const { return ok() ? std::string() : to_string(std::get<1>(state_)); }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() {}  // not defaulted: `return {};` would clear the whole object first, on every success
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    MST_CHECK(!ok(), "error() of a Result that holds no error");
    return *error_;
  }
  Error&& error() && {
    MST_CHECK(!ok(), "error() of a Result that holds no error");
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace millstream
