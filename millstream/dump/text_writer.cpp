// SPDX-License-Identifier: Apache-2.0
#include "millstream/dump/text_writer.h"

#include <cmath>

#include <fmt/format.h>

namespace millstream::dump {
namespace {

// Bytes of the UTF-8 character that begins here; 0 where none does.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  const std::size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return too_long || outside ? 0 : n;
}

// Only escapes that every reader knows.
void append_quoted(std::string& out, std::string_view value, bool utf8) {
  out += '"';
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    switch (c) {
      case '"': out += "\\\""; continue;
      case '\'': out += "\\'"; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      default: break;
    }
    if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) {
      out += c;
    } else if (const std::size_t n = utf8 ? utf8_length(value.substr(i)) : 0; n != 0) {
      out.append(value.substr(i, n));
      i += n - 1;
    } else {
      fmt::format_to(std::back_inserter(out), "\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  out += "\"\n";
}

}  // namespace

void TextWriter::begin(std::string_view field) {
  out_.append(2 * depth_, ' ');
  out_ += field;
}

void TextWriter::open(std::string_view field) {
  begin(field);
  out_ += " {\n";
  ++depth_;
}

void TextWriter::close() {
  --depth_;
  begin("}\n");
}

void TextWriter::text(std::string_view field, std::string_view value) {
  begin(field);
  out_ += ": ";
  append_quoted(out_, value, true);
}

void TextWriter::bytes(std::string_view field, std::string_view value) {
  begin(field);
  out_ += ": ";
  append_quoted(out_, value, false);
}

void TextWriter::integer(std::string_view field, std::int64_t value) {
  begin(field);
  const fmt::format_int digits(value);
  out_ += ": ";
  out_.append(digits.data(), digits.size());
  out_ += '\n';
}

void TextWriter::real(std::string_view field, float value) {
  begin(field);
  out_ += std::isnan(value) ? std::string(": nan\n") : fmt::format(": {}\n", value);
}

void TextWriter::word(std::string_view field, std::string_view value) {
  begin(field);
  out_ += ": ";
  out_ += value;
  out_ += '\n';
}

}  // namespace millstream::dump
