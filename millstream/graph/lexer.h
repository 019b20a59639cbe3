// SPDX-License-Identifier: Apache-2.0
// Words of millstream text, with the position of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "millstream/core/result.h"

namespace millstream {

struct Token {
  enum class Kind : std::uint8_t { word, number, string, symbol, newline, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< as written; a string without its quotes, escapes still in it
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

/// Splits text into words, numbers, quoted strings, one-character symbols ("->" is one symbol) and line
/// ends. '#' starts a comment. Newlines inside brackets are kept; the parser decides.
class Lexer {
 public:
  Lexer(std::string_view text, std::string file, std::uint32_t first_line);

  const Token& peek() const { return token_; }
  /// Returns the current token and moves on. Errors: syntax (an unterminated string, a stray byte).
  Result<Token> next();
  /// Line end: skips blank lines too.
  Result<void> skip_newlines();
  bool at(std::string_view symbol_or_word) const;
  bool at_end() const { return token_.kind == Token::Kind::end; }

  /// An error at a token, with its source line.
  Error error(const Token& token, std::string message) const;
  Result<Token> expect(std::string_view symbol);

  /// Text of a string token with escapes resolved. Errors: a bad escape.
  Result<std::string> unescape(const Token& token) const;
  /// "word or quoted name"; errors otherwise.
  Result<std::string> expect_name(std::string_view what);
  Result<std::int64_t> expect_integer(std::string_view what);
  Result<double> expect_number(std::string_view what);

 private:
  Result<void> advance();
  std::string_view line_text(std::uint32_t line) const;

  std::string_view text_;
  std::string file_;
  std::uint32_t first_line_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_;
  Token token_;
  bool failed_ = false;
  Error failure_;
};

}  // namespace millstream
