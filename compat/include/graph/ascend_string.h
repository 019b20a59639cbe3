// SPDX-License-Identifier: Apache-2.0
// The string type of the ecosystem's interfaces. Header only.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>

namespace ge {

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char* text) : text_(text == nullptr ? "" : text) {}  // NOLINT: implicit, as users expect
  AscendString(const char* text, std::size_t length) : text_(text, length) {}
  AscendString(const std::string& text) : text_(text) {}                  // NOLINT: implicit, as users expect
  const char* GetString() const { return text_.c_str(); }
  std::size_t GetLength() const { return text_.size(); }
  operator std::string() const { return text_; }                          // NOLINT: implicit, as users expect
  friend bool operator==(const AscendString& a, const AscendString& b) { return a.text_ == b.text_; }
  friend bool operator!=(const AscendString& a, const AscendString& b) { return a.text_ != b.text_; }
  friend bool operator<(const AscendString& a, const AscendString& b) { return a.text_ < b.text_; }
  friend std::ostream& operator<<(std::ostream& out, const AscendString& s) { return out << s.text_; }

 private:
  std::string text_;
};

}  // namespace ge

template <>
struct std::hash<ge::AscendString> {
  std::size_t operator()(const ge::AscendString& s) const { return std::hash<std::string>()(s.GetString()); }
};
