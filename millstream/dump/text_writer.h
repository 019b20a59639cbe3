// SPDX-License-Identifier: Apache-2.0
// Protobuf text as its own printer lays it out: one field a line, two blanks a level.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millstream::dump {

class TextWriter {
 public:
  void open(std::string_view field);
  void close();
  /// A field of type string: UTF-8 stays as it is, so that viewers show it.
  void text(std::string_view field, std::string_view value);
  /// A field of type bytes: whatever is not printable ASCII becomes three octal digits.
  void bytes(std::string_view field, std::string_view value);
  void integer(std::string_view field, std::int64_t value);
  void real(std::string_view field, float value);
  void word(std::string_view field, std::string_view value);

  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void begin(std::string_view field);
  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace millstream::dump
