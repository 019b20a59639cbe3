// SPDX-License-Identifier: Apache-2.0
#include "millstream/profile/json_text.h"

#include <fmt/format.h>

namespace millstream {
namespace {

constexpr int kDeepest = 100;

bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.'; }

void add_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

}  // namespace

char JsonText::peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n')) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

Result<void> JsonText::take(char c) {
  if (peek() != c || at_ >= text_.size()) return error_here(fmt::format("'{}' is expected here", c));
  ++at_;
  return {};
}

Result<void> JsonText::open(char bracket) {
  if (++depth_ > kDeepest) return error_here(fmt::format("the values are nested deeper than {}", kDeepest));
  return take(bracket);
}

bool JsonText::closes(char bracket) {
  if (peek() != bracket) return false;
  ++at_;
  return true;
}

Result<std::uint32_t> JsonText::four_digits() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return error_here("\\u needs four hexadecimal digits");
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  return value;
}

Result<std::string> JsonText::string() {
  peek();
  const std::size_t begin = at_;
  MST_TRY_VOID(take('"'));
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] != '\\') {
      out += text_[at_++];
      continue;
    }
    if (++at_ >= text_.size()) break;
    const char c = text_[at_++];
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (const std::size_t plain = kFrom.find(c); plain != std::string_view::npos) {
      out += kTo[plain];
    } else if (c == 'u') {
      MST_TRY(std::uint32_t code, four_digits());
      if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        MST_TRY(const std::uint32_t low, four_digits());
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
      }
      add_utf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    } else {
      return error_at(at_ - 2, fmt::format("\\{} is no escape", c));
    }
  }
  if (at_ >= text_.size()) return error_at(begin, "the string that begins here has no end");
  ++at_;
  return out;
}

Result<std::string> JsonText::scalar() {
  if (peek() == '"') return string();
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (at_ == begin) return error_here("a text or a number is expected here");
  return std::string(text_.substr(begin, at_ - begin));
}

Result<void> JsonText::skip() {
  if (peek() == '{') return object([this](const std::string&) { return skip(); });
  if (peek() == '[') return array([this] { return skip(); });
  MST_TRY_VOID(scalar());
  return {};
}

Result<void> JsonText::end() {
  if (peek() != '\0' || at_ < text_.size()) return error_here("nothing is expected behind the end of the trace");
  return {};
}

}  // namespace millstream
