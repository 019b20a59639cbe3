// SPDX-License-Identifier: Apache-2.0
#include "millstream/dump/scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace millstream::dump {
namespace {

constexpr std::size_t kDeepest = 100;  // messages in one another, as in protobuf's own readers

constexpr std::array<bool, 256> make_word_table() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = table[static_cast<std::size_t>(c - 'a' + 'A')] = true;
  table['_'] = table['.'] = table['+'] = table['-'] = true;  // of numbers
  return table;
}
constexpr std::array<bool, 256> kWord = make_word_table();

bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

Scanner::Scanner(std::string_view text, std::string file) : text_(text), file_(std::move(file)) { frames_.push_back({'\0', 0, {}}); }

Where Scanner::where(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  Where w;
  w.file = file_;
  const std::string_view before = text_.substr(0, offset);
  w.line = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  w.column = static_cast<std::uint32_t>(offset - begin) + 1;
  w.text = std::string(text_.substr(begin, std::min<std::size_t>(text_.find('\n', offset) - begin, 120)));
  for (char& c : w.text) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return w;
}

void Scanner::fail(std::size_t offset, std::string message, std::string help) {
  if (error_) return;
  error_ = Error{ErrorCode::syntax, std::move(message)}.at(where(offset));
  if (!help.empty()) error_->help(std::move(help));
  at_ = text_.size();
}

void Scanner::blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (blank(c)) {
      ++at_;
    } else if (c == '#') {
      const void* end = std::memchr(text_.data() + at_, '\n', text_.size() - at_);
      at_ = end == nullptr ? text_.size() : static_cast<std::size_t>(static_cast<const char*>(end) - text_.data());
    } else {
      return;
    }
  }
}

std::string_view Scanner::take_word() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && kWord[static_cast<unsigned char>(text_[at_])]) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::optional<std::string_view> Scanner::field() {
  if (failed()) return std::nullopt;
  Frame& frame = frames_.back();
  blanks();
  if (!frame.list.empty()) {
    if (peek() == ',') {
      ++at_;
      blanks();
      return frame.list;
    }
    if (peek() != ']') {
      fail(at_, fmt::format("expected , or ] in the list of \"{}\"", frame.list.substr(0, 60)));
      return std::nullopt;
    }
    ++at_;
    frame.list = {};
  }
  for (;;) {
    blanks();
    while (peek() == ',' || peek() == ';') {
      ++at_;
      blanks();
    }
    if (at_ >= text_.size()) {
      if (frame.close != '\0') fail(text_.size(), "the text ends inside a message", fmt::format("it was opened in line {}; the file may be cut off", where(frame.opened).line));
      return std::nullopt;
    }
    if (frame.close != '\0' && peek() == frame.close) {
      ++at_;
      frames_.pop_back();
      return std::nullopt;
    }
    const std::string_view name = field_name();
    if (name.empty()) return std::nullopt;
    blanks();
    const bool colon = peek() == ':';
    if (colon) {
      ++at_;
      blanks();
    } else if (!at_message()) {
      fail(at_, fmt::format("expected : or {{ behind \"{}\"", name.substr(0, 60)));
      return std::nullopt;
    }
    if (peek() != '[') return name;
    ++at_;
    blanks();
    if (peek() == ']') {  // an empty list: no element, so no field
      ++at_;
      continue;
    }
    frame.list = name;
    return name;
  }
}

// A word, or an extension or the type of an Any in brackets. Empty after an error.
std::string_view Scanner::field_name() {
  const std::size_t begin = at_;
  if (peek() != '[') {
    const std::string_view name = take_word();
    if (name.empty()) fail(begin, frames_.back().close == '\0' ? std::string("expected a field") : fmt::format("expected a field or {}", frames_.back().close));
    return name;
  }
  const std::size_t end = text_.find_first_of("]\n", at_);
  if (end == std::string_view::npos || text_[end] == '\n') {
    fail(begin, "[ without ]");
    return {};
  }
  at_ = end + 1;
  return text_.substr(begin, at_ - begin);
}

bool Scanner::at_message() { return peek() == '{' || peek() == '<'; }

bool Scanner::open() {
  if (failed()) return false;
  if (!at_message()) {
    fail(at_, "expected {");
    return false;
  }
  if (frames_.size() > kDeepest) {
    fail(at_, fmt::format("messages lie in one another more than {} deep", kDeepest));
    return false;
  }
  frames_.push_back({peek() == '{' ? '}' : '>', at_, {}});
  ++at_;
  return true;
}

bool Scanner::string_part(std::string& out) {
  const char quote = peek();
  const std::size_t begin = at_++;
  for (;;) {
    const std::size_t plain = at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\' && text_[at_] != '\n') ++at_;
    out.append(text_.substr(plain, at_ - plain));
    if (at_ >= text_.size() || text_[at_] == '\n') {
      fail(begin, "a string without its closing quote");
      return false;
    }
    if (text_[at_] == quote) {
      ++at_;
      return true;
    }
    const std::size_t escape = at_++;
    const char c = peek();
    ++at_;
    const auto digits = [&](int base, int most) {
      std::uint32_t value = 0;
      int n = 0;
      for (; n < most && at_ < text_.size() && digit_of(text_[at_]) < base; ++n) value = value * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit_of(text_[at_++]));
      return std::make_pair(value, n);
    };
    bool good = true;
    switch (c) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case 'a': out += '\a'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'v': out += '\v'; break;
      case '\\': case '\'': case '"': case '?': out += c; break;
      case 'x': case 'X': {
        const auto [value, n] = digits(16, 2);
        good = n > 0;
        out += static_cast<char>(value);
        break;
      }
      case 'u': case 'U': {
        const int most = c == 'u' ? 4 : 8;
        const auto [value, n] = digits(16, most);
        good = n == most && value <= 0x10ffff;
        append_utf8(out, value);
        break;
      }
      default: {
        --at_;
        const auto [value, n] = digits(8, 3);
        good = n > 0 && value < 256;
        out += static_cast<char>(value);
      }
    }
    if (!good) {
      fail(escape, "an escape that text format does not have");
      return false;
    }
  }
}

bool Scanner::expect_scalar(std::string_view what) {
  if (failed()) return false;
  const char c = peek();
  const bool quoted = c == '"' || c == '\'';
  if (what == "a string" ? quoted : kWord[static_cast<unsigned char>(c)]) return true;
  fail(at_, fmt::format("expected {}", what));
  return false;
}

std::string_view Scanner::string() {
  if (!expect_scalar("a string")) return {};
  // In place where nothing needs decoding.
  const char quote = peek();
  std::size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != quote && text_[end] != '\\' && text_[end] != '\n') ++end;
  if (end < text_.size() && text_[end] == quote) {
    const std::size_t begin = at_ + 1;
    const std::size_t back = at_;
    at_ = end + 1;
    blanks();
    if (peek() != '"' && peek() != '\'') return text_.substr(begin, end - begin);
    at_ = back;
  }
  scratch_.clear();
  while (peek() == '"' || peek() == '\'') {
    if (!string_part(scratch_)) return {};
    blanks();
  }
  return scratch_;
}

std::string_view Scanner::word() {
  if (!expect_scalar("a name or a number")) return {};
  return take_word();
}

std::int64_t Scanner::integer() {
  if (!expect_scalar("an integer")) return 0;
  const std::size_t begin = at_;
  std::string_view w = take_word();
  bool negative = false;
  if (w == "-") {  // a blank may follow the sign
    blanks();
    w = take_word();
    negative = true;
  } else if (!w.empty() && w[0] == '-') {
    negative = true;
    w.remove_prefix(1);
  }
  if (!negative && (w == "true" || w == "True" || w == "t")) return 1;
  if (!negative && (w == "false" || w == "False" || w == "f")) return 0;
  int base = 10;
  if (w.size() > 2 && w[0] == '0' && (w[1] == 'x' || w[1] == 'X')) {
    base = 16;
    w.remove_prefix(2);
  } else if (w.size() > 1 && w[0] == '0') {
    base = 8;
    w.remove_prefix(1);
  }
  std::uint64_t value = 0;
  const auto [stop, code] = std::from_chars(w.data(), w.data() + w.size(), value, base);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (code != std::errc() || stop != w.data() + w.size() || value > (negative ? kMost + 1 : kMost)) {
    fail(begin, "expected an integer of 64 bits");
    return 0;
  }
  return static_cast<std::int64_t>(negative ? ~value + 1 : value);
}

double Scanner::number() {
  if (!expect_scalar("a number")) return 0;
  const std::size_t begin = at_;
  std::string_view w = take_word();
  bool negative = false;
  if (!w.empty() && w[0] == '-') {
    negative = true;
    w.remove_prefix(1);
    if (w.empty()) {
      blanks();
      w = take_word();
    }
  }
  double value = 0;
  if (w == "inf" || w == "infinity" || w == "Infinity" || w == "inff") {
    value = std::numeric_limits<double>::infinity();
  } else if (w == "nan" || w == "NaN") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto [stop, code] = std::from_chars(w.data(), w.data() + w.size(), value);
    std::string_view rest(stop, static_cast<std::size_t>(w.data() + w.size() - stop));
    if (rest == "f" || rest == "F") rest = {};
    if (code == std::errc::result_out_of_range) {
      value = w.find("e-") != std::string_view::npos || w.find("E-") != std::string_view::npos ? 0 : std::numeric_limits<double>::infinity();
    } else if (code != std::errc() || !rest.empty()) {
      fail(begin, "expected a number");
      return 0;
    }
  }
  return negative ? -value : value;
}

bool Scanner::skip_string() {
  const char quote = peek();
  const std::size_t begin = at_++;
  while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size() || text_[at_] != quote) {
    fail(begin, "a string without its closing quote");
    return false;
  }
  ++at_;
  return true;
}

bool Scanner::skip_message() {
  const std::size_t begin = at_;
  std::string closing;  // brackets that must come
  do {
    blanks();
    if (at_ >= text_.size()) {
      fail(begin, "the text ends inside a message", "the file may be cut off");
      return false;
    }
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      if (!skip_string()) return false;
      continue;
    }
    if (c == '{' || c == '<' || c == '[') {
      closing += c == '{' ? '}' : c == '<' ? '>' : ']';
      if (closing.size() + frames_.size() > 2 * kDeepest) {
        fail(at_, fmt::format("messages lie in one another more than {} deep", kDeepest));
        return false;
      }
    } else if (c == '}' || c == '>' || c == ']') {
      if (closing.back() != c) {
        fail(at_, fmt::format("expected {} and found {}", closing.back(), c));
        return false;
      }
      closing.pop_back();
    }
    ++at_;
  } while (!closing.empty());
  return true;
}

void Scanner::skip() {
  if (failed()) return;
  if (at_message()) {
    skip_message();
  } else if (peek() == '"' || peek() == '\'') {
    while (!failed() && (peek() == '"' || peek() == '\'')) {
      if (skip_string()) blanks();
    }
  } else {
    const std::size_t begin = at_;
    if (take_word() == "-") {
      blanks();
      take_word();
    }
    if (at_ == begin) fail(begin, "expected a value");
  }
}

}  // namespace millstream::dump
