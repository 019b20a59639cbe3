// SPDX-License-Identifier: Apache-2.0
// Protobuf text, read in place: fields one after the other, without a schema and without message objects.
// Why not TextFormat: docs/dumps.md. Source: the public text format specification of protobuf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/core/error.h"

namespace millstream::dump {

/// Walks the fields of the open message: `while (const auto f = s.field()) { if (*f == "name") ... else s.skip(); }`.
/// A list `[a, b]` gives its field once for each element. Each field's value must be read by exactly one call. After
/// an error every call answers at once with nothing; the error is the first one.
class Scanner {
 public:
  /// `text` must outlive the scanner.
  Scanner(std::string_view text, std::string file);

  /// The next field's name; none at the end of the open message, which is left, or after an error.
  std::optional<std::string_view> field();
  /// Enters the message that is the field's value.
  bool open();
  /// Decoded, adjacent parts joined. Valid until the next call of string().
  std::string_view string();
  /// Decimal, hexadecimal or octal; true and false count as 1 and 0.
  std::int64_t integer();
  double number();
  /// A name of an enumeration, or a number as it stands.
  std::string_view word();
  void skip();
  /// Whether the field's value is a message.
  bool at_message();

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  /// Records an error at a place of the text, unless there is one already.
  void fail(std::size_t offset, std::string message, std::string help = "");
  std::size_t offset() const { return at_; }
  Where where(std::size_t offset) const;
  const std::string& file() const { return file_; }
  std::string_view text() const { return text_; }

 private:
  struct Frame {
    char close;             // the bracket that ends it; 0: the end of the text
    std::size_t opened;     // where it begins
    std::string_view list;  // the field whose list is being read; empty: none
  };
  void blanks();
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::string_view take_word();
  std::string_view field_name();
  bool expect_scalar(std::string_view what);
  bool string_part(std::string& out);
  bool skip_string();
  bool skip_message();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::vector<Frame> frames_;
  std::string scratch_;
  std::optional<Error> error_;
};

}  // namespace millstream::dump
