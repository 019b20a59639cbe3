// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/lexer.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace millstream {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }

}  // namespace

Lexer::Lexer(std::string_view text, std::string file, std::uint32_t first_line)
    : text_(text), file_(std::move(file)), first_line_(first_line), line_(first_line) {
  if (auto r = advance(); !r.ok()) {
    failed_ = true;
    failure_ = std::move(r).error();
  }
}

Result<void> Lexer::advance() {
  const auto set = [&](Token::Kind kind, std::size_t begin, std::size_t size) {
    token_.kind = kind;
    token_.text = text_.substr(begin, size);
  };
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else {
      break;
    }
  }
  token_.line = line_;
  token_.column = static_cast<std::uint32_t>(at_ - line_start_ + 1);
  if (at_ >= text_.size()) {
    set(Token::Kind::end, text_.size(), 0);
    return {};
  }
  const std::size_t begin = at_;
  const char c = text_[at_];
  if (c == '\n') {
    ++at_;
    ++line_;
    line_start_ = at_;
    set(Token::Kind::newline, begin, 1);
  } else if (c == '"') {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size() || text_[at_] == '\n') {
      at_ = std::min(at_, text_.size());
      return error(token_, "this string has no closing quote");
    }
    set(Token::Kind::string, begin + 1, at_ - begin - 1);
    ++at_;
  } else if (is_letter(c)) {
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    set(Token::Kind::word, begin, at_ - begin);
  } else if (is_digit(c) || ((c == '-' || c == '.') && at_ + 1 < text_.size() &&
                             (is_digit(text_[at_ + 1]) || text_[at_ + 1] == '.' ||
                              text_.substr(at_, 4) == "-inf"))) {
    if (text_.substr(at_, 4) == "-inf") {
      at_ += 4;
    } else {
      ++at_;
      while (at_ < text_.size() &&
             (is_digit(text_[at_]) || text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E' ||
              ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))) {
        ++at_;
      }
    }
    set(Token::Kind::number, begin, at_ - begin);
  } else if (text_.substr(at_, 2) == "->") {
    at_ += 2;
    set(Token::Kind::symbol, begin, 2);
  } else if (std::string_view("()[]{}=,:@?!>|+").find(c) != std::string_view::npos) {
    ++at_;
    set(Token::Kind::symbol, begin, 1);
  } else {
    return error(token_, fmt::format("unexpected character {}", c >= 0x20 && c < 0x7f
                                                                     ? fmt::format("'{}'", c)
                                                                     : fmt::format("0x{:02x}", static_cast<unsigned char>(c))));
  }
  return {};
}

Result<Token> Lexer::next() {
  if (failed_) return failure_;
  const Token current = token_;
  if (current.kind == Token::Kind::end) return current;
  if (auto r = advance(); !r.ok()) {
    failed_ = true;
    failure_ = std::move(r).error();
  }
  return current;
}

Result<void> Lexer::skip_newlines() {
  while (!failed_ && token_.kind == Token::Kind::newline) MST_TRY_VOID(next());
  if (failed_) return failure_;
  return {};
}

bool Lexer::at(std::string_view text) const {
  return !failed_ && (token_.kind == Token::Kind::word || token_.kind == Token::Kind::symbol) && token_.text == text;
}

std::string_view Lexer::line_text(std::uint32_t line) const {
  std::size_t begin = 0;
  for (std::uint32_t l = first_line_; l < line; ++l) {
    begin = text_.find('\n', begin);
    if (begin == std::string_view::npos) return {};
    ++begin;
  }
  std::string_view rest = text_.substr(begin);
  rest = rest.substr(0, rest.find('\n'));
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
  return rest;
}

Error Lexer::error(const Token& token, std::string message) const {
  // Of a long line the part around the place is shown: columns count from the line's start, blanks included.
  constexpr std::size_t kShown = 120;
  std::string_view line = line_text(token.line);
  std::string text(line.substr(0, kShown));
  if (line.size() > kShown) {
    const char* at = token.text.data();
    const std::size_t before = at >= line.data() && at <= line.data() + line.size() ? static_cast<std::size_t>(at - line.data()) : 0;
    const std::size_t begin = before > kShown * 3 / 4 ? before - kShown / 2 : 0;
    text = fmt::format("{}{}{}", begin > 0 ? "..." : "", line.substr(begin, kShown), begin + kShown < line.size() ? "..." : "");
  }
  return Error{ErrorCode::syntax, std::move(message)}.at(Where{file_, token.line, token.column, std::move(text)});
}

Result<Token> Lexer::expect(std::string_view symbol) {
  if (failed_) return failure_;
  if (!at(symbol)) {
    return error(token_, fmt::format("expected \"{}\", found {}", symbol,
                                     token_.kind == Token::Kind::newline ? "the end of the line"
                                     : token_.kind == Token::Kind::end
                                         ? "the end of the text"
                                         : fmt::format("\"{}\"", token_.text)));
  }
  return next();
}

Result<std::string> Lexer::unescape(const Token& token) const {
  std::string out;
  const auto hex = [](char c) -> int {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < token.text.size(); ++i) {
    if (token.text[i] != '\\') {
      out += token.text[i];
      continue;
    }
    if (++i >= token.text.size()) return error(token, "a backslash ends this string");
    switch (token.text[i]) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case '"': out += '"'; break;
      case '\\': out += '\\'; break;
      case 'x': {
        const int high = i + 1 < token.text.size() ? hex(token.text[i + 1]) : -1;
        const int low = i + 2 < token.text.size() ? hex(token.text[i + 2]) : -1;
        if (high < 0 || low < 0) return error(token, "\\x needs two hexadecimal digits");
        out += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default: return error(token, fmt::format("unknown escape \\{} in a string; use \\n \\t \\\" \\\\ \\xHH", token.text[i]));
    }
  }
  return out;
}

Result<std::string> Lexer::expect_name(std::string_view what) {
  if (failed_) return failure_;
  const Token token = token_;
  if (token.kind == Token::Kind::word) {
    MST_TRY_VOID(next());
    return std::string(token.text);
  }
  if (token.kind == Token::Kind::string) {
    MST_TRY_VOID(next());
    return unescape(token);
  }
  return error(token, fmt::format("expected {} (a word or a quoted name)", what));
}

Result<std::int64_t> Lexer::expect_integer(std::string_view what) {
  if (failed_) return failure_;
  const Token token = token_;
  std::int64_t value = 0;
  if (token.kind == Token::Kind::number) {
    const char* end = token.text.data() + token.text.size();
    const auto [stop, code] = std::from_chars(token.text.data(), end, value);
    if (code == std::errc() && stop == end) {
      MST_TRY_VOID(next());
      return value;
    }
  }
  return error(token, fmt::format("expected {}: an integer that fits 64 bits", what));
}

Result<double> Lexer::expect_number(std::string_view what) {
  if (failed_) return failure_;
  const Token token = token_;
  double value = 0;
  if (token.text == "nan" || token.text == "inf" || token.text == "-inf") {
    MST_TRY_VOID(next());
    if (token.text == "nan") return std::numeric_limits<double>::quiet_NaN();
    return token.text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }
  if (token.kind == Token::Kind::number) {
    const char* end = token.text.data() + token.text.size();
    const auto [stop, code] = std::from_chars(token.text.data(), end, value);
    if (code == std::errc() && stop == end) {
      MST_TRY_VOID(next());
      return value;
    }
  }
  return error(token, fmt::format("expected {}: a number", what));
}

}  // namespace millstream
