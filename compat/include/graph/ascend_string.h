// SPDX-License-Identifier: Apache-2.0
// The string type of the ecosystem's interfaces. Header only. It owns its bytes itself, so that it looks the same whichever
// std::string a library was built with.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>

namespace ge {

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char* text) : AscendString(text, text == nullptr ? 0 : std::strlen(text)) {}  // NOLINT: implicit, as users expect
  AscendString(const char* text, std::size_t length) {
    if (length == 0) return;
    text_ = new char[length + 1];
    std::memcpy(text_, text, length);
    text_[length] = '\0';
    length_ = length;
  }
  AscendString(const std::string& text) : AscendString(text.data(), text.size()) {}  // NOLINT: implicit, as users expect
  AscendString(const AscendString& other) : AscendString(other.text_, other.length_) {}
  AscendString(AscendString&& other) noexcept : text_(other.text_), length_(other.length_) { other.forget(); }
  AscendString& operator=(const AscendString& other) { return *this = AscendString(other); }
  AscendString& operator=(AscendString&& other) noexcept {
    if (this == &other) return *this;
    delete[] text_;
    text_ = other.text_;
    length_ = other.length_;
    other.forget();
    return *this;
  }
  ~AscendString() { delete[] text_; }

  const char* GetString() const { return text_ == nullptr ? "" : text_; }  ///< never null
  std::size_t GetLength() const { return length_; }
  /// Position of the first occurrence, or std::string::npos.
  std::size_t Find(const AscendString& part) const { return static_cast<std::string>(*this).find(part.GetString(), 0, part.length_); }
  std::size_t Hash() const { return std::hash<std::string>()(*this); }
  operator std::string() const { return std::string(GetString(), length_); }  // NOLINT: implicit, as users expect

  friend bool operator==(const AscendString& a, const AscendString& b) { return a.compare(b) == 0; }
  friend bool operator!=(const AscendString& a, const AscendString& b) { return a.compare(b) != 0; }
  friend bool operator<(const AscendString& a, const AscendString& b) { return a.compare(b) < 0; }
  friend bool operator>(const AscendString& a, const AscendString& b) { return a.compare(b) > 0; }
  friend bool operator<=(const AscendString& a, const AscendString& b) { return a.compare(b) <= 0; }
  friend bool operator>=(const AscendString& a, const AscendString& b) { return a.compare(b) >= 0; }
  friend std::ostream& operator<<(std::ostream& out, const AscendString& s) {
    return out.write(s.GetString(), static_cast<std::streamsize>(s.length_));
  }

 private:
  int compare(const AscendString& other) const {
    const std::size_t both = length_ < other.length_ ? length_ : other.length_;
    const int order = both == 0 ? 0 : std::memcmp(text_, other.text_, both);
    if (order != 0 || length_ == other.length_) return order;
    return length_ < other.length_ ? -1 : 1;
  }
  void forget() {
    text_ = nullptr;
    length_ = 0;
  }

  char* text_ = nullptr;  // null: empty
  std::size_t length_ = 0;
};

}  // namespace ge

namespace std {
template <>
struct hash<ge::AscendString> {
  std::size_t operator()(const ge::AscendString& s) const { return s.Hash(); }
};
}  // namespace std
