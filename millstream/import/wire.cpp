// SPDX-License-Identifier: Apache-2.0
#include "millstream/import/wire.h"

#include <cstring>

namespace millstream::wire {
namespace {

// Takes one varint (at most ten bytes) off the front of `rest`.
std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < rest.size() && i < 10; ++i) {
    const auto byte = static_cast<std::uint8_t>(rest[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      rest.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

template <class T>
std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

}  // namespace

float Field::as_float() const {
  const auto low = static_cast<std::uint32_t>(bits);
  float value = 0;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

std::optional<Field> Fields::fail() {
  malformed_ = true;
  rest_ = {};
  return std::nullopt;
}

std::optional<Field> Fields::next() {
  if (rest_.empty()) return std::nullopt;
  const auto key = take_varint(rest_);
  if (!key || *key >> 3 == 0 || *key >> 3 > 0x1fffffff) return fail();
  Field field;
  field.number = static_cast<std::uint32_t>(*key >> 3);
  field.type = static_cast<Type>(*key & 7);
  switch (field.type) {
    case Type::varint: {
      const auto value = take_varint(rest_);
      if (!value) return fail();
      field.bits = *value;
      return field;
    }
    case Type::fixed64:
      if (rest_.size() < 8) return fail();
      field.bits = little_endian<std::uint64_t>(rest_);
      rest_.remove_prefix(8);
      return field;
    case Type::fixed32:
      if (rest_.size() < 4) return fail();
      field.bits = little_endian<std::uint32_t>(rest_);
      rest_.remove_prefix(4);
      return field;
    case Type::bytes: {
      const auto length = take_varint(rest_);
      if (!length || *length > rest_.size()) return fail();
      field.bytes = rest_.substr(0, static_cast<std::size_t>(*length));
      rest_.remove_prefix(static_cast<std::size_t>(*length));
      return field;
    }
  }
  return fail();  // groups (3, 4) are not used by ONNX; 6 and 7 do not exist
}

std::optional<std::uint64_t> Varints::next() {
  if (rest_.empty()) return std::nullopt;
  const auto value = take_varint(rest_);
  if (!value) {
    malformed_ = true;
    rest_ = {};
  }
  return value;
}

std::size_t Varints::count(std::string_view packed) {
  std::size_t n = 0;
  for (const char c : packed) n += (static_cast<std::uint8_t>(c) & 0x80) == 0;
  if (!packed.empty() && (static_cast<std::uint8_t>(packed.back()) & 0x80) != 0) ++n;
  return n;
}

}  // namespace millstream::wire
