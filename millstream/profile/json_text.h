// SPDX-License-Identifier: Apache-2.0
// JSON read from front to back, with the place of each error and numbers as they are written.
#pragma once

#include <string>
#include <string_view>

#include "millstream/core/result.h"
#include "millstream/profile/place.h"

namespace millstream {

class JsonText {
 public:
  JsonText(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// The next character that is no blank, or 0 at the end.
  char peek();
  std::size_t offset() const { return at_; }
  bool is_container() { return peek() == '{' || peek() == '['; }

  /// Calls `member(key)` with the reader before each value, which it must read or skip.
  template <class Member>
  Result<void> object(Member member) {
    MST_TRY_VOID(open('{'));
    for (bool first = true; !closes('}'); first = false) {
      if (!first) MST_TRY_VOID(comma());
      MST_TRY(const std::string key, string());
      MST_TRY_VOID(take(':'));
      MST_TRY_VOID(member(key));
    }
    --depth_;
    return {};
  }
  template <class Element>
  Result<void> array(Element element) {
    MST_TRY_VOID(open('['));
    for (bool first = true; !closes(']'); first = false) {
      if (!first) MST_TRY_VOID(comma());
      MST_TRY_VOID(element());
    }
    --depth_;
    return {};
  }
  /// A string's text, or a number, true, false or null as written.
  Result<std::string> scalar();
  /// Reads over any value.
  Result<void> skip();
  /// Nothing but blanks may follow.
  Result<void> end();

  Error error_at(std::size_t offset, std::string message) const {
    return Error{ErrorCode::syntax, std::move(message)}.at(place_of(text_, file_, offset));
  }
  Error error_here(std::string message) const { return error_at(at_, std::move(message)); }

 private:
  Result<void> open(char bracket);
  bool closes(char bracket);
  Result<void> take(char c);
  Result<void> comma() { return take(','); }
  Result<std::string> string();
  Result<std::uint32_t> four_digits();

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace millstream
