// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format, read in place. ONNX files are read field by field over the file's bytes instead
// of into a tree of message objects: a node of a few dozen bytes would cost hundreds there, which breaks
// the reader's memory bound, and fields newer than an installed schema would be lost.
// Source: the public protobuf encoding specification.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace millstream::wire {

enum class Type : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  Type type = Type::varint;
  std::uint64_t bits = 0;   ///< varint, fixed32 and fixed64
  std::string_view bytes;   ///< length-delimited; a view of the message

  std::int64_t as_int() const { return static_cast<std::int64_t>(bits); }
  float as_float() const;
};

/// Walks the fields of one message in file order. Stops at the end or at the first malformed field.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  std::optional<Field> next();
  /// True after next() met bytes that are no field: a truncated value, an unknown wire type, field 0.
  bool malformed() const { return malformed_; }

 private:
  std::optional<std::uint64_t> varint();
  std::optional<Field> fail();

  std::string_view rest_;
  bool malformed_ = false;
};

/// The varints of a packed field, one after the other.
class Varints {
 public:
  explicit Varints(std::string_view packed) : rest_(packed) {}
  std::optional<std::uint64_t> next();
  bool malformed() const { return malformed_; }
  /// How many there are, without decoding; counts a truncated last one too.
  static std::size_t count(std::string_view packed);

 private:
  std::string_view rest_;
  bool malformed_ = false;
};

}  // namespace millstream::wire
